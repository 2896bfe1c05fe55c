//! Replies: the bytes of each type in both versions, and that the client side reads them back.

use pantala_protocol::client::{ReplyReader, Value, parse_reply};
use pantala_protocol::{Proto, Reply};
use proptest::prelude::*;

fn in_both(write: impl Fn(&mut Reply<'_>)) -> [String; 2] {
    [Proto::Resp2, Proto::Resp3].map(|proto| {
        let mut out = Vec::new();
        write(&mut Reply::new(&mut out, proto));
        out.escape_ascii().to_string()
    })
}

macro_rules! check {
    ($reply:ident => $write:expr, $resp2:literal, $resp3:literal) => {
        assert_eq!(
            in_both(|$reply| $write),
            [$resp2, $resp3].map(|text| text.as_bytes().escape_ascii().to_string())
        );
    };
}

#[test]
fn each_type_in_both_versions() {
    check!(r => r.ok(), "+OK\r\n", "+OK\r\n");
    check!(r => r.simple("QUEUED"), "+QUEUED\r\n", "+QUEUED\r\n");
    check!(r => r.error("ERR a\r\nb\r\n"), "-ERR a  b\r\n", "-ERR a  b\r\n");
    check!(r => r.error_fmt(format_args!("ERR {}", 1)), "-ERR 1\r\n", "-ERR 1\r\n");
    check!(r => r.integer(0), ":0\r\n", ":0\r\n");
    check!(r => r.integer(1023), ":1023\r\n", ":1023\r\n");
    check!(r => r.integer(1024), ":1024\r\n", ":1024\r\n");
    check!(r => r.integer(i64::MIN), ":-9223372036854775808\r\n", ":-9223372036854775808\r\n");
    check!(r => r.bulk(b"a\r\nb"), "$4\r\na\r\nb\r\n", "$4\r\na\r\nb\r\n");
    check!(r => r.bulk_str(""), "$0\r\n\r\n", "$0\r\n\r\n");
    check!(r => r.bulk_fmt(format_args!("{}-{}", 1, 2)), "$3\r\n1-2\r\n", "$3\r\n1-2\r\n");
    check!(r => r.bulk_integer(-10), "$3\r\n-10\r\n", "$3\r\n-10\r\n");
    check!(r => r.null(), "$-1\r\n", "_\r\n");
    check!(r => r.null_array(), "*-1\r\n", "_\r\n");
    check!(r => r.array(100), "*100\r\n", "*100\r\n");
    check!(r => r.map(3), "*6\r\n", "%3\r\n");
    check!(r => r.set(3), "*3\r\n", "~3\r\n");
    check!(r => r.push(3), "*3\r\n", ">3\r\n");
    check!(r => r.boolean(true), ":1\r\n", "#t\r\n");
    check!(r => r.boolean(false), ":0\r\n", "#f\r\n");
    check!(r => r.double(3.0), "$1\r\n3\r\n", ",3\r\n");
    check!(r => r.double(0.1), "$19\r\n0.10000000000000001\r\n", ",0.10000000000000001\r\n");
    check!(r => r.double(f64::NEG_INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n");
    check!(r => r.double_shortest(0.1), "$3\r\n0.1\r\n", ",0.1\r\n");
    check!(r => r.human_double(1.5), "$3\r\n1.5\r\n", ",1.5\r\n");
    check!(r => r.big_number("123"), "$3\r\n123\r\n", "(123\r\n");
    check!(r => r.verbatim("txt", b"hi\r\n"), "$4\r\nhi\r\n\r\n", "=8\r\ntxt:hi\r\n\r\n");
}

#[test]
fn lengths_may_come_last() {
    for n in [0, 1, 9, 10, 2000] {
        let [deferred, direct] = [true, false].map(|deferred| {
            let mut out = b"+before\r\n".to_vec();
            let mut r = Reply::new(&mut out, Proto::Resp3);
            let elements = |r: &mut Reply<'_>| (0..n).for_each(|i| r.integer(i));
            let count = usize::try_from(n).expect("small");
            if deferred {
                let (a, m, s) = (r.array_deferred(), r.map_deferred(), r.set_deferred());
                elements(&mut r);
                r.set_set_len(s, count);
                r.set_map_len(m, count);
                r.set_array_len(a, 3);
            } else {
                r.array(3);
                r.map(count);
                r.set(count);
                elements(&mut r);
            }
            out
        });
        assert_eq!(deferred, direct);
    }
}

#[test]
fn a_value_may_come_in_chunks() {
    let mut out = Vec::new();
    let mut r = Reply::new(&mut out, Proto::Resp2);
    let mark = r.begin_bulk(6);
    r.raw(b"abc");
    r.raw(b"def");
    r.end_bulk(mark);
    assert_eq!(out, b"$6\r\nabcdef\r\n");
}

#[test]
#[should_panic(expected = "the length it announced")]
fn a_value_of_another_length_is_a_bug() {
    let mut out = Vec::new();
    let mut r = Reply::new(&mut out, Proto::Resp2);
    let mark = r.begin_bulk(6);
    r.end_bulk(mark);
}

fn value() -> impl Strategy<Value = Value> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..40);
    let leaf = prop_oneof![
        bytes().prop_map(Value::Bulk),
        any::<i64>().prop_map(Value::Integer),
        (0..2000i64).prop_map(Value::Integer),
        any::<bool>().prop_map(Value::Boolean),
        (-1e300..1e300f64).prop_map(Value::Double),
        Just(Value::Null),
        "[a-z ]{0,9}".prop_map(|text| Value::Simple(text.into_bytes())),
        "[a-z ]{0,9}".prop_map(|text| Value::Error(text.into_bytes())),
        bytes().prop_map(|text| Value::Verbatim {
            format: *b"txt",
            text
        }),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let items = prop::collection::vec(inner.clone(), 0..6);
        let pairs = prop::collection::vec((inner.clone(), inner.clone()), 0..4);
        prop_oneof![
            items.clone().prop_map(Value::Array),
            items.clone().prop_map(Value::Set),
            items.prop_map(Value::Push),
            pairs.clone().prop_map(Value::Map),
            (pairs, inner).prop_map(|(attributes, value)| Value::Attributed {
                attributes,
                value: Box::new(value)
            }),
        ]
    })
}

fn write(reply: &mut Reply<'_>, value: &Value) {
    match value {
        Value::Simple(text) => reply.simple(text),
        Value::Error(text) => reply.error(text),
        Value::Integer(n) => reply.integer(*n),
        Value::Bulk(bytes) => reply.bulk(bytes),
        Value::Null => reply.null(),
        Value::Boolean(b) => reply.boolean(*b),
        Value::Double(d) => reply.double(*d),
        Value::BigNumber(digits) => reply.big_number(&String::from_utf8_lossy(digits)),
        Value::Verbatim { text, .. } => reply.verbatim("txt", text),
        Value::Array(items) => all(reply, items, |r, n| r.array(n)),
        Value::Set(items) => all(reply, items, |r, n| r.set(n)),
        Value::Push(items) => all(reply, items, |r, n| r.push(n)),
        Value::Map(pairs) => {
            reply.map(pairs.len());
            both(reply, pairs);
        }
        Value::Attributed { attributes, value } => {
            reply.attribute(attributes.len());
            both(reply, attributes);
            write(reply, value);
        }
    }
}

fn all(reply: &mut Reply<'_>, items: &[Value], header: fn(&mut Reply<'_>, usize)) {
    header(reply, items.len());
    items.iter().for_each(|item| write(reply, item));
}

fn both(reply: &mut Reply<'_>, pairs: &[(Value, Value)]) {
    for (key, value) in pairs {
        write(reply, key);
        write(reply, value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn written_replies_are_read_back(values in prop::collection::vec(value(), 1..4), piece in 1..50usize) {
        let mut bytes = Vec::new();
        for value in &values {
            write(&mut Reply::new(&mut bytes, Proto::Resp3), value);
        }
        let mut reader = ReplyReader::new();
        let mut buf = Vec::new();
        let mut got = Vec::new();
        for chunk in bytes.chunks(piece) {
            buf.extend_from_slice(chunk);
            let mut at = 0;
            while let Some(value) = reader.next(&buf, &mut at).expect("well formed") {
                got.push(value);
            }
            buf.drain(..at);
        }
        prop_assert!(!reader.in_reply() && buf.is_empty());
        prop_assert_eq!(got, values);
    }

    #[test]
    fn any_bytes_are_survived(bytes in "[-+:$*_#,(!=%~>|a-f0-9\r\n]{0,60}") {
        let _ = parse_reply(bytes.as_bytes());
    }
}
