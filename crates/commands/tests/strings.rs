//! What the commands on strings answer, announce and record. Ordinary replies are compared with a real Redis elsewhere; here
//! stands what such a comparison does not reach: newer commands, events, effects, time.

mod common;

use common::{Server, decode};

fn server() -> Server {
    Server::new()
}

/// The record as words separated by spaces, commands by ` | `.
fn recorded(server: &mut Server, line: &str) -> String {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let ran = server.run(&words);
    let commands: Vec<String> = decode(&ran.record)
        .iter()
        .map(|words| {
            words
                .iter()
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    commands.join(" | ")
}

fn events(server: &mut Server, line: &str) -> Vec<&'static str> {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    server.run(&words).events
}

#[test]
fn set_with_comparisons() {
    let mut s = server();
    assert_eq!(s.say("SET a v1 IFEQ x"), "$-1");
    assert_eq!(s.say("GET a"), "$-1");
    assert_eq!(s.say("SET a v1 IFNE x"), "+OK");
    assert_eq!(s.say("SET a v2 IFNE v1"), "$-1");
    assert_eq!(s.say("SET a v2 IFEQ v1 GET"), "$2 v1");
    assert_eq!(s.say("GET a"), "$2 v2");
    for both in ["NX", "XX", "IFNE v2"] {
        assert_eq!(
            s.say(&format!("SET a v5 IFEQ v2 {both}")),
            "-ERR syntax error"
        );
    }
    let digest = s.say("DIGEST a")[4..].to_owned();
    assert_eq!(digest.len(), 16);
    assert_eq!(s.say(&format!("SET a v3 IFDNE {digest}")), "$-1");
    assert_eq!(
        s.say(&format!("SET a v3 IFDEQ {}", digest.to_ascii_uppercase())),
        "+OK"
    );
    assert_eq!(
        s.say("SET a v4 IFDEQ abc"),
        "-ERR must be exactly 16 hexadecimal characters"
    );
    assert_eq!(s.say("DIGEST nokey"), "$-1");
}

#[test]
fn deleting_with_comparisons() {
    let mut s = server();
    s.say("SET b 1");
    assert_eq!(s.say("DELEX b IFNE 1"), ":0");
    assert_eq!(s.say("DELEX b IFNE 2"), ":1");
    assert_eq!(s.say("DELEX b"), ":0");
    assert_eq!(s.say("DELEX b IFNE 2"), ":0");
    assert_eq!(
        s.say("DELEX b IFEQ"),
        "-ERR wrong number of arguments for 'delex' command"
    );
    s.say("SET b 1");
    assert_eq!(s.say("DELIFEQ b 2"), ":0");
    assert_eq!(recorded(&mut s, "DELIFEQ b 1"), "DEL b");
}

#[test]
fn several_with_one_expiry() {
    let mut s = server();
    let at = s.now_ms + 5000;
    assert_eq!(
        recorded(&mut s, "MSETEX 2 a 1 b 2 NX PX 5000"),
        format!("SET a 1 PXAT {at} | SET b 2 PXAT {at}")
    );
    assert_eq!(s.say("MSETEX 2 a 3 c 4 NX"), ":0");
    assert_eq!(s.say("MSETEX 2 a 3 c 4 XX"), ":0");
    assert_eq!(
        recorded(&mut s, "MSETEX 1 a 3 XX KEEPTTL"),
        "SET a 3 KEEPTTL"
    );
    assert_eq!(s.contents()[&b"a".to_vec()].expiry_ms, Some(at));
    assert_eq!(
        s.say("MSETEX key1 val1 ex 10"),
        "-ERR invalid numkeys value"
    );
    assert_eq!(
        s.say("MSETEX 2147483648 key1 val1 ex 10"),
        "-ERR invalid numkeys value"
    );
    assert_eq!(
        s.say("MSETEX 2147483647 key1 val1 ex 10"),
        "-ERR wrong number of key-value pairs"
    );
    assert_eq!(s.say("MSETEX 1 a 1 EX 5 PX 5"), "-ERR syntax error");
    assert_eq!(s.say("MSETEX 1 a 1 GET"), "-ERR syntax error");
    assert_eq!(
        s.say("MSETEX 1 a 1 EX 0"),
        "-ERR invalid expire time in 'msetex' command"
    );
}

#[test]
fn increments_within_bounds() {
    let mut s = server();
    for (line, reply) in [
        ("INCREX k", ":1 :1"),
        ("INCREX k BYINT 5 UBOUND 4", ":1 :0"),
        ("INCREX k BYINT 5 UBOUND 4 SATURATE", ":4 :3"),
        ("INCREX k BYINT -9 LBOUND 2 SATURATE", ":2 :-2"),
        ("INCREX k NX", ":2 :0"),
        ("INCREX missing XX", ":0 :0"),
        ("INCREX missing LBOUND 5", ":0 :0"),
        ("INCREX k BYFLOAT 2.5", "$3 4.5 $3 2.5"),
        ("INCREX k BYFLOAT 5.5 UBOUND 6.25", "$3 4.5 $1 0"),
        (
            "INCREX k BYFLOAT 5.5 UBOUND 6.25 SATURATE",
            "$4 6.25 $4 1.75",
        ),
        ("INCREX k BYFLOAT -10 LBOUND -inf", "$5 -3.75 $3 -10"),
        (
            "INCREX k BYFLOAT 1 LBOUND inf UBOUND inf SATURATE",
            "-ERR applied increment would be Infinity",
        ),
        ("INCREX k", "-ERR value is not an integer or out of range"),
    ] {
        let reply = if reply.starts_with('-') {
            reply.to_owned()
        } else {
            format!("*2 {reply}")
        };
        assert_eq!(s.say(line), reply, "{line}");
    }
    for (line, error) in [
        ("INCREX k BYINT 1 BYINT 2", "syntax error"),
        ("INCREX k ENX", "ENX flag requires an expiration"),
        ("INCREX k PERSIST ENX", "syntax error"),
        (
            "INCREX k BYINT 1 LBOUND 10 UBOUND 5",
            "LBOUND can't be greater than UBOUND",
        ),
        (
            "INCREX k BYFLOAT 1 UBOUND -inf",
            "LBOUND can't be greater than UBOUND",
        ),
        (
            "INCREX k UBOUND abc",
            "UBOUND is not an integer or out of range",
        ),
        ("INCREX k BYFLOAT abc", "Increment is not a valid float"),
        ("INCREX k EX 0", "invalid expire time in 'increx' command"),
    ] {
        assert_eq!(s.say(line), format!("-ERR {error}"), "{line}");
    }
    s.say("SET m 9223372036854775807");
    assert_eq!(s.say("INCREX m SATURATE"), "*2 :9223372036854775807 :0");
    assert_eq!(
        s.say("INCREX m BYINT -5 UBOUND -9223372036854775808 SATURATE"),
        "-ERR applied increment would overflow"
    );
}

#[test]
fn effects_of_increx() {
    let mut s = server();
    let at = s.now_ms + 100_000;
    s.say("SET k 10 EX 500");
    assert_eq!(recorded(&mut s, "INCREX k BYINT 5"), "SET k 15 KEEPTTL");
    assert_eq!(recorded(&mut s, "INCREX k EX 100 ENX"), "SET k 16 KEEPTTL");
    assert_eq!(recorded(&mut s, "INCREX k PERSIST"), "SET k 17");
    assert_eq!(
        recorded(&mut s, "INCREX k BYFLOAT 0.5 EX 100 ENX"),
        format!("SET k 17.5 PXAT {at}")
    );
    s.say("SET k 1");
    assert_eq!(events(&mut s, "INCREX k EX 100"), ["incrby", "expire"]);
    assert_eq!(events(&mut s, "INCREX k PERSIST"), ["incrby", "persist"]);
    assert_eq!(events(&mut s, "INCREX k EXAT 1"), ["del"]);
}

#[test]
fn effects_are_canonical() {
    let mut s = server();
    let at = s.now_ms + 10_000;
    for (line, record) in [
        ("SET k v", "SET k v".to_owned()),
        ("SET k v EX 10", format!("SET k v PXAT {at}")),
        ("SET k w KEEPTTL GET", "SET k w KEEPTTL".to_owned()),
        ("SET k w NX", String::new()),
        ("SETEX k 10 v", format!("SET k v PXAT {at}")),
        ("PSETEX k 10000 v", format!("SET k v PXAT {at}")),
        ("GETSET k w", "SET k w".to_owned()),
        ("GETEX k EX 10", format!("PEXPIREAT k {at}")),
        ("GETEX k PERSIST", "PERSIST k".to_owned()),
        ("GETEX k PERSIST", String::new()),
        ("GETEX k EXAT 1", "DEL k".to_owned()),
        ("GETEX k EX 10", String::new()),
        ("SETNX k 10", "SET k 10".to_owned()),
        ("INCRBYFLOAT k 0.5", "SET k 10.5 KEEPTTL".to_owned()),
        ("GETDEL k", "DEL k".to_owned()),
        ("GETDEL k", String::new()),
        ("SET k v", "SET k v".to_owned()),
        ("SET k v PXAT 1", "DEL k".to_owned()),
        ("SET k v PXAT 1", String::new()),
        ("PFADD h a", "PFADD h a".to_owned()),
        ("PFADD h a", String::new()),
        ("PFCOUNT h", "PFCOUNT h".to_owned()),
        ("PFCOUNT h", String::new()),
        ("SETBIT b 7 1", "SETBIT b 7 1".to_owned()),
        ("SETBIT b 7 1", String::new()),
        ("BITFIELD b GET u8 0", String::new()),
        (
            "BITFIELD b INCRBY u8 0 1",
            "BITFIELD b INCRBY u8 0 1".to_owned(),
        ),
    ] {
        assert_eq!(recorded(&mut s, line), record, "{line}");
    }
}

#[test]
fn events_in_order() {
    let mut s = server();
    for (line, names) in [
        ("SET k v", &["new", "set"][..]),
        ("SET k v EX 10", &["overwritten", "set", "expire"]),
        ("GETEX k PERSIST", &["persist"]),
        ("APPEND k x", &["append"]),
        ("APPEND n x", &["new", "append"]),
        ("SETRANGE k 1 x", &["setrange"]),
        ("GET missing", &["keymiss"]),
        ("GETDEL k", &["del"]),
        ("INCR k", &["new", "incrby"]),
        ("INCRBYFLOAT k 1", &["incrbyfloat"]),
        ("PFADD h a", &["new", "pfadd"]),
        ("SETBIT k 1 1", &["setbit"]),
        ("BITOP AND t k", &["new", "set"]),
        ("BITOP AND t nokey", &["keymiss", "del"]),
    ] {
        assert_eq!(events(&mut s, line), names, "{line}");
    }
}

#[test]
fn expiry_is_seen_by_every_command() {
    let mut s = server();
    s.say("SET k v PX 10");
    // As in Redis, a key lives through the millisecond of its expiry.
    s.now_ms += 10;
    assert_eq!(s.say("GET k"), "$1 v");
    s.now_ms += 1;
    let ran = s.run(&[b"GET", b"k"]);
    assert_eq!(ran.reply, b"$-1\r\n");
    assert_eq!(decode(&ran.record), [[b"DEL".to_vec(), b"k".to_vec()]]);
    assert_eq!(s.say("SET k w XX GET KEEPTTL"), "$-1");
}

#[test]
fn throttle_lets_a_burst_through() {
    let mut s = server();
    assert_eq!(s.say("CL.THROTTLE u 2 30 60"), "*5 :0 :3 :2 :-1 :2");
    assert_eq!(s.say("CL.THROTTLE u 2 30 60"), "*5 :0 :3 :1 :-1 :4");
    assert_eq!(s.say("CL.THROTTLE u 2 30 60"), "*5 :0 :3 :0 :-1 :6");
    assert_eq!(s.say("CL.THROTTLE u 2 30 60"), "*5 :1 :3 :0 :2 :6");
    s.now_ms += 2000;
    assert_eq!(s.say("CL.THROTTLE u 2 30 60"), "*5 :0 :3 :0 :-1 :6");
    s.now_ms += 6002;
    assert!(s.contents().is_empty());
    assert_eq!(
        s.say("CL.THROTTLE u -1 30 60"),
        "-ERR value is not an integer or out of range"
    );
}

#[test]
fn bitop_of_redis_8() {
    let mut s = server();
    s.run(&[b"SET", b"x", b"\xff"]);
    s.run(&[b"SET", b"y", b"\x0f\x01"]);
    s.run(&[b"SET", b"z", b"\x3c"]);
    for (op, result) in [
        ("DIFF", &b"\xc0\x00"[..]),
        ("DIFF1", &b"\x00\x01"[..]),
        ("ANDOR", &b"\x3f\x00"[..]),
        ("ONE", &b"\xc0\x01"[..]),
    ] {
        assert_eq!(s.say(&format!("BITOP {op} t x y z")), ":2", "{op}");
        assert_eq!(
            s.run(&[b"GET", b"t"]).reply,
            [b"$2\r\n", result, b"\r\n"].concat(),
            "{op}"
        );
    }
}

#[test]
fn large_bitmaps_are_combined_in_place() {
    let mut s = server();
    s.say("SETBIT a 800000 1");
    s.say("SETBIT a 5 1");
    s.say("SETBIT b 400000 1");
    assert_eq!(s.say("BITOP OR a a b"), ":100001");
    assert_eq!(s.say("BITCOUNT a"), ":3");
    assert_eq!(s.say("BITPOS a 1 1"), ":400000");
    assert_eq!(s.say("BITOP NOT c a"), ":100001");
    assert_eq!(s.say("BITCOUNT c"), ":800005");
    assert_eq!(s.say("BITOP XOR c c a"), ":100001");
    assert_eq!(s.say("BITCOUNT c"), ":800008");
}

#[test]
fn other_types_are_refused() {
    let mut s = server();
    let key = s.store.key(b"list");
    {
        let set = pantala_store::borrow::ShardSet::one(s.store.shard_of(key.hash));
        let mut space = s
            .store
            .borrow_blocking(&set, pantala_store::borrow::Party::new(0));
        let mut db = space.db(0, s.now_ms);
        let meta = pantala_store::PutMeta::CLEAR;
        db.slot_quiet(&key).put(
            pantala_store::Kind::List,
            pantala_store::Encoding::RAW,
            b"x",
            meta,
        );
    }
    for line in [
        "GET list",
        "SET list v GET",
        "SET list v IFEQ x",
        "GETDEL list",
        "GETEX list",
        "APPEND list x",
        "STRLEN list",
        "SETRANGE list 0 x",
        "GETRANGE list 0 1",
        "INCR list",
        "INCRBYFLOAT list 1",
        "INCREX list",
        "DIGEST list",
        "DELIFEQ list x",
        "SETBIT list 0 1",
        "GETBIT list 0",
        "BITCOUNT list",
        "BITPOS list 1",
        "BITOP AND t list",
        "BITFIELD list GET u8 0",
        "BITFIELD list SET u8 0 1",
        "PFADD list a",
        "PFCOUNT list",
        "PFMERGE t list",
        "CL.THROTTLE list 1 1 1",
    ] {
        assert_eq!(
            s.say(line),
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
            "{line}"
        );
    }
    assert_eq!(
        s.say("DELEX list IFEQ x"),
        "-ERR Key should be of string type if conditions are specified"
    );
    assert_eq!(
        s.say("LCS list list"),
        "-ERR The specified keys must contain string values"
    );
    assert_eq!(s.say("MGET list"), "*1 $-1");
    assert_eq!(
        events(&mut s, "SET list v"),
        ["overwritten", "type_changed", "set"]
    );
}

#[test]
fn dense_registers_are_changed_in_place() {
    let mut s = server();
    let mut expected = pantala_types::hyperloglog::empty();
    for n in 0..6000u32 {
        let element = format!("e{n}");
        let changed = pantala_types::hyperloglog::add(&mut expected, element.as_bytes(), 3000);
        let reply = s.run(&[b"PFADD", b"h", element.as_bytes()]).reply;
        assert_eq!(
            reply,
            format!(":{}\r\n", u8::from(changed == Ok(true) || n == 0)).as_bytes(),
            "{element}"
        );
        if n % 500 == 0 {
            let count = pantala_types::hyperloglog::count(&expected).expect("well formed");
            assert_eq!(s.say("PFCOUNT h"), format!(":{count}"));
            pantala_types::hyperloglog::set_cached(&mut expected, count);
        }
    }
    assert_eq!(s.say("PFDEBUG ENCODING h"), "+dense");
    let held = s.contents().remove(&b"h"[..]).expect("the key");
    assert!(held.value == expected);
}

#[test]
fn the_largest_numbers_are_longer_than_an_entry() {
    let mut s = server();
    let len = s.say("INCRBYFLOAT k 1e4932").len();
    assert!(len > 4932);
    assert_eq!(s.say("INCRBYFLOAT k -1e4932"), "$1 0");
}

#[test]
fn lengths_beyond_the_store_are_refused_whatever_is_configured() {
    let mut s = server();
    s.settings.proto_max_bulk_len_bytes = i64::MAX as u64;
    let too_long = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    for offset in ["9223372036854775807", "1099511627776"] {
        assert_eq!(s.say(&format!("SETRANGE k {offset} x")), too_long);
    }
    for offset in ["9223372036854775807", "8796093022208"] {
        let refused = "-ERR bit offset is not an integer or out of range";
        assert_eq!(s.say(&format!("SETBIT k {offset} 1")), refused);
        assert_eq!(s.say(&format!("BITFIELD k SET i64 {offset} 1")), refused);
    }
    assert_eq!(s.say("SETBIT k 8796093021000 1"), ":0");
    assert_eq!(s.say("BITFIELD k SET i64 8796093021690 1"), "*1 :0");
    assert_eq!(s.say("STRLEN k"), ":1099511627720");
}
