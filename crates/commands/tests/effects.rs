//! Random commands on one store; their recorded effects are replayed into a second one, which must then hold the same.

mod common;

use common::Server;
use proptest::prelude::*;

const KEYS: [&str; 6] = ["a", "b", "c", "dd", "h1", "h2"];

fn key() -> impl Strategy<Value = Vec<u8>> {
    proptest::sample::select(&KEYS[..]).prop_map(|key| key.as_bytes().to_vec())
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<i64>().prop_map(|n| n.to_string().into_bytes()),
        (-20i64..20).prop_map(|n| n.to_string().into_bytes()),
        (-20i64..20).prop_map(|n| format!("{n}.25").into_bytes()),
        "[ -~]{0,40}".prop_map(String::into_bytes),
        (0usize..9000).prop_map(|len| vec![b'x'; len]),
        proptest::collection::vec(any::<u8>(), 0..60),
    ]
}

fn number(range: std::ops::Range<i64>) -> impl Strategy<Value = Vec<u8>> {
    range.prop_map(|n| n.to_string().into_bytes())
}

fn word(words: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    proptest::sample::select(words).prop_map(|word| word.as_bytes().to_vec())
}

macro_rules! command {
    ($($part:expr),+ $(,)?) => { [$($part.boxed()),+].to_vec() };
}

fn literal(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    Just(text.as_bytes().to_vec())
}

fn command() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let expire = || word(&["EX", "PX"]);
    let forms: Vec<Vec<BoxedStrategy<Vec<u8>>>> = vec![
        command![literal("SET"), key(), value()],
        command![
            literal("SET"),
            key(),
            value(),
            word(&["NX", "XX", "GET", "KEEPTTL"])
        ],
        command![literal("SET"), key(), value(), expire(), number(1..5)],
        command![
            literal("SET"),
            key(),
            value(),
            literal("PXAT"),
            number(1..3)
        ],
        command![
            literal("SET"),
            key(),
            value(),
            word(&["IFEQ", "IFNE"]),
            value()
        ],
        command![literal("SETEX"), key(), number(1..5), value()],
        command![literal("SETNX"), key(), value()],
        command![literal("GETSET"), key(), value()],
        command![
            word(&["GETDEL", "GET", "STRLEN", "INCR", "DECR", "DELEX", "DIGEST"]),
            key()
        ],
        command![literal("GETEX"), key(), literal("PERSIST")],
        command![literal("GETEX"), key(), expire(), number(1..5)],
        command![literal("GETEX"), key(), literal("EXAT"), number(1..5)],
        command![literal("MSET"), key(), value(), key(), value()],
        command![literal("MSETNX"), key(), value(), key(), value()],
        command![
            literal("MSETEX"),
            literal("2"),
            key(),
            value(),
            key(),
            value(),
            word(&["NX", "XX", "KEEPTTL"])
        ],
        command![
            literal("MSETEX"),
            literal("2"),
            key(),
            value(),
            key(),
            value(),
            expire(),
            number(1..5)
        ],
        command![literal("APPEND"), key(), value()],
        command![literal("SETRANGE"), key(), number(0..9000), value()],
        command![
            literal("GETRANGE"),
            key(),
            number(-50..9000),
            number(-50..9000)
        ],
        command![
            word(&["INCRBY", "DECRBY", "INCRBYFLOAT"]),
            key(),
            number(-1000..1000)
        ],
        command![literal("INCRBYFLOAT"), key(), value()],
        command![
            literal("INCREX"),
            key(),
            literal("BYINT"),
            number(-50..50),
            literal("UBOUND"),
            number(-20..40),
            literal("SATURATE")
        ],
        command![
            literal("INCREX"),
            key(),
            literal("BYFLOAT"),
            value(),
            expire(),
            number(1..5),
            literal("ENX")
        ],
        command![literal("LCS"), literal("a"), literal("b"), literal("LEN")],
        command![literal("DELIFEQ"), key(), value()],
        command![
            literal("CL.THROTTLE"),
            key(),
            number(0..3),
            number(1..3),
            number(1..3)
        ],
        command![
            literal("SETBIT"),
            key(),
            number(0..80_000),
            word(&["0", "1"])
        ],
        command![word(&["GETBIT", "BITPOS"]), key(), word(&["0", "1"])],
        command![
            literal("BITCOUNT"),
            key(),
            number(-50..9000),
            number(-50..9000),
            word(&["BYTE", "BIT"])
        ],
        command![
            literal("BITPOS"),
            key(),
            word(&["0", "1"]),
            number(-50..9000),
            number(-50..9000),
            word(&["BYTE", "BIT"])
        ],
        command![
            literal("BITOP"),
            word(&["AND", "OR", "XOR", "DIFF", "DIFF1", "ANDOR", "ONE"]),
            key(),
            key(),
            key()
        ],
        command![literal("BITOP"), literal("NOT"), key(), key()],
        command![
            literal("BITFIELD"),
            key(),
            literal("OVERFLOW"),
            word(&["WRAP", "SAT", "FAIL"]),
            literal("INCRBY"),
            word(&["u8", "i5", "i64", "u63"]),
            number(0..300),
            number(-500..500)
        ],
        command![
            literal("BITFIELD"),
            key(),
            literal("SET"),
            word(&["u8", "i5", "i64"]),
            word(&["#0", "#7", "13"]),
            number(-500..500)
        ],
        command![literal("PFADD"), word(&["h1", "h2"]), value(), value()],
        command![literal("PFCOUNT"), word(&["h1", "h2"])],
        command![literal("PFMERGE"), word(&["h1", "h2"]), word(&["h1", "h2"])],
        command![literal("PFDEBUG"), literal("TODENSE"), word(&["h1", "h2"])],
    ];
    proptest::sample::select(forms).prop_flat_map(|parts| parts)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_replayed_record_gives_the_same_store(commands in proptest::collection::vec((command(), 0i64..800), 1..60)) {
        let mut first = Server::new();
        let mut second = Server::new();
        for (words, pause_ms) in commands {
            first.now_ms += pause_ms;
            second.now_ms = first.now_ms;
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            let ran = first.run(&words);
            second.replay(&ran.record);
        }
        prop_assert_eq!(first.contents(), second.contents());
    }
}
