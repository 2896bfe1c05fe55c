//! Commands on keys whatever they hold, and on the keyspace. The expected replies are those of redis-server 7.0.15, unless a
//! comment says otherwise.

mod common;

use common::Server;

/// Runs lines `command => reply`; the reply as [`Server::say`] shows it.
fn dialogue(server: &mut Server, lines: &[(&str, &str)]) {
    for (line, reply) in lines {
        assert_eq!(server.say(line), *reply, "{line}");
    }
}

/// The bytes of a bulk string.
fn bulk(reply: &[u8]) -> Vec<u8> {
    let body = reply
        .iter()
        .position(|byte| *byte == b'\n')
        .expect("a header")
        + 1;
    reply[body..reply.len() - 2].to_vec()
}

fn server() -> Server {
    Server::new()
}

#[test]
fn keys_are_counted_and_removed() {
    dialogue(
        &mut server(),
        &[
            ("SET i 1", "+OK"),
            ("SET j 1", "+OK"),
            ("EXISTS i i no", ":2"),
            ("TOUCH i j no", ":2"),
            ("TYPE i", "+string"),
            ("TYPE no", "+none"),
            ("DBSIZE", ":2"),
            ("DEL i i no", ":1"),
            ("UNLINK j", ":1"),
            ("UNLINK j", ":0"),
            ("DBSIZE", ":0"),
        ],
    );
}

#[test]
fn times_beyond_the_range_are_refused() {
    let mut server = server();
    for (command, number, reply) in [
        ("EXPIRE", "9223372036854775", "invalid"),
        ("EXPIRE", "9223372036854776", "invalid"),
        ("EXPIRE", "-9223372036854776", "invalid"),
        ("PEXPIRE", "9223372036854775807", "invalid"),
        ("PEXPIRE", "-9223372036854775808", "taken"),
        ("PEXPIRE", "9223372036854775", "taken"),
        ("EXPIREAT", "9223372036854775", "taken"),
        ("EXPIREAT", "9223372036854776", "invalid"),
        ("EXPIREAT", "-9223372036854775808", "invalid"),
        ("PEXPIREAT", "9223372036854775807", "taken"),
        ("PEXPIREAT", "-9223372036854775808", "taken"),
        ("PEXPIREAT", "9223372036854775808", "no integer"),
        ("EXPIRE", "1.5", "no integer"),
        ("EXPIRE", "", "no integer"),
    ] {
        server.say("SET k v");
        let name = command.to_ascii_lowercase();
        let expected = match reply {
            "invalid" => format!("-ERR invalid expire time in '{name}' command"),
            "no integer" => "-ERR value is not an integer or out of range".to_owned(),
            _ => ":1".to_owned(),
        };
        assert_eq!(
            server.say(&format!("{command} k {number}")),
            expected,
            "{command} {number}"
        );
        // Whether the key exists does not matter to the arguments.
        if reply != "taken" {
            assert_eq!(server.say(&format!("{command} none {number}")), expected);
        }
    }
}

#[test]
fn options_of_expire() {
    let mut server = server();
    let incompatible = "-ERR NX and XX, GT or LT options at the same time are not compatible";
    dialogue(
        &mut server,
        &[
            ("SET k v", "+OK"),
            ("EXPIRE k 10 FOO", "-ERR Unsupported option FOO"),
            ("EXPIRE k x FOO", "-ERR Unsupported option FOO"),
            ("EXPIRE k x NX XX", incompatible),
            ("EXPIRE k 10 GT LT NX", incompatible),
            (
                "EXPIRE k 10 GT LT",
                "-ERR GT and LT options at the same time are not compatible",
            ),
            ("EXPIRE no 10", ":0"),
            ("EXPIRE k 10 XX", ":0"),
            ("EXPIRE k 10 GT", ":0"),
            ("EXPIRE k -1 GT", ":0"),
            ("EXPIRE k 10 LT", ":1"),
            ("EXPIRE k 10 NX", ":0"),
            ("EXPIRE k 20 LT", ":0"),
            ("EXPIRE k 10 GT", ":0"),
            ("EXPIRE k 20 GT XX", ":1"),
            ("TTL k", ":20"),
            ("PERSIST k", ":1"),
            ("PERSIST k", ":0"),
            ("PERSIST no", ":0"),
            ("TTL k", ":-1"),
            ("TTL no", ":-2"),
            ("PTTL no", ":-2"),
            ("EXPIRETIME no", ":-2"),
            ("PEXPIRETIME k", ":-1"),
            ("EXPIRE k 0 LT", ":1"),
            ("EXISTS k", ":0"),
        ],
    );
}

#[test]
fn times_left() {
    let mut server = server();
    server.now_ms = 1_000_000;
    dialogue(
        &mut server,
        &[
            ("SET k v", "+OK"),
            ("PEXPIRE k 1499", ":1"),
            ("TTL k", ":1"),
            ("PTTL k", ":1499"),
            ("EXPIRETIME k", ":1001"),
            ("PEXPIRETIME k", ":1001499"),
            ("PEXPIREAT k 9223372036854775807", ":1"),
            ("EXPIRETIME k", ":9223372036854776"),
            ("PEXPIRE k 499", ":1"),
            ("TTL k", ":0"),
        ],
    );
    server.now_ms += 499;
    assert_eq!(
        server.say("PTTL k"),
        ":0",
        "a key lives through the millisecond in which it expires"
    );
    server.now_ms += 1;
    assert_eq!(server.say("PTTL k"), ":-2");
}

#[test]
fn a_time_that_is_over_removes_the_key() {
    let mut server = server();
    for (command, record, lazy) in [
        ("EXPIRE k 0", "DEL", false),
        ("EXPIRE k -5", "DEL", false),
        ("PEXPIREAT k 1", "DEL", false),
        ("EXPIREAT k -1", "UNLINK", true),
    ] {
        server.settings.lazyfree_lazy_expire = lazy;
        server.say("SET k v");
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        let ran = server.run(&words);
        assert_eq!(ran.reply, b":1\r\n");
        assert_eq!(ran.events, ["del"]);
        assert_eq!(common::decode(&ran.record), [[record.as_bytes(), b"k"]]);
        assert_eq!(server.say("EXISTS k"), ":0");
    }
}

#[test]
fn effects_and_events() {
    let mut server = server();
    server.now_ms = 5_000;
    for (line, record, events) in [
        ("SET a 1", "SET a 1", "new set"),
        ("EXPIRE a 10 NX", "PEXPIREAT a 15000", "expire"),
        ("EXPIRE a 10 NX", "", ""),
        ("PEXPIREAT a 16000", "PEXPIREAT a 16000", "expire"),
        ("PERSIST a", "PERSIST a", "persist"),
        ("PERSIST a", "", ""),
        ("RENAME a b", "RENAME a b", "new rename_from rename_to"),
        ("RENAME b b", "", ""),
        ("SET c 1", "SET c 1", "new set"),
        ("RENAME b c", "RENAME b c", "new rename_from rename_to"),
        ("RENAMENX c d", "RENAMENX c d", "new rename_from rename_to"),
        ("COPY d e", "COPY d e", "new copy_to"),
        ("COPY d e", "", ""),
        ("COPY no e", "", "keymiss"),
        ("MOVE e 3", "MOVE e 3", "move_from move_to"),
        ("MOVE e 3", "", ""),
        ("EXISTS d no", "", "keymiss"),
        ("TTL no", "", "keymiss"),
        ("DEL d no", "DEL d no", "del"),
        ("DEL d no", "", ""),
        ("UNLINK no", "", ""),
        ("SORT no", "", "keymiss"),
        ("SET f 1", "SET f 1", "new set"),
        ("SORT no STORE f", "DEL f", "keymiss del"),
        ("SORT no STORE f", "", "keymiss"),
        ("OBJECT ENCODING no", "", ""),
        ("SWAPDB 0 1", "SWAPDB 0 1", ""),
        ("FLUSHDB", "FLUSHDB", ""),
        ("FLUSHALL ASYNC", "FLUSHALL ASYNC", ""),
    ] {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let ran = server.run(&words);
        let recorded: Vec<String> = common::decode(&ran.record)
            .iter()
            .map(|words| String::from_utf8_lossy(&words.join(&b' ')).into_owned())
            .collect();
        assert_eq!(recorded.join(";"), record, "{line}");
        assert_eq!(ran.events.join(" "), events, "{line}");
    }
}

#[test]
fn values_change_their_key() {
    dialogue(
        &mut server(),
        &[
            ("RENAME no no", "-ERR no such key"),
            ("RENAMENX no x", "-ERR no such key"),
            ("SET a 1", "+OK"),
            ("PEXPIRE a 5000", ":1"),
            ("SET b 2", "+OK"),
            ("RENAME a a", "+OK"),
            ("RENAMENX a a", ":0"),
            ("RENAMENX a b", ":0"),
            ("RENAME a b", "+OK"),
            ("GET b", "$1 1"),
            ("PTTL b", ":5000"),
            ("EXISTS a", ":0"),
            ("RENAMENX b a", ":1"),
            ("PTTL a", ":5000"),
            ("DBSIZE", ":1"),
        ],
    );
}

#[test]
fn copies_and_moves() {
    let same = "-ERR source and destination objects are the same";
    let range = "-ERR DB index is out of range";
    let long = "-ERR value is out of range, value must between -2147483648 and 2147483647";
    let mut server = server();
    dialogue(
        &mut server,
        &[
            ("SET k v", "+OK"),
            ("PEXPIRE k 5000", ":1"),
            ("COPY k k", same),
            ("COPY no no", same),
            ("COPY k k DB 0", same),
            (
                "COPY k l DB x",
                "-ERR value is not an integer or out of range",
            ),
            ("COPY k l DB 16", range),
            ("COPY no l DB 16", range),
            ("COPY k l DB 99999999999", long),
            ("COPY k l DB", "-ERR syntax error"),
            ("COPY k l FOO", "-ERR syntax error"),
            ("COPY k l REPLACE REPLACE", ":1"),
            ("PTTL l", ":5000"),
            ("SET k w", "+OK"),
            ("COPY k l", ":0"),
            ("GET l", "$1 v"),
            ("COPY k l REPLACE", ":1"),
            ("GET l", "$1 w"),
            ("PTTL l", ":-1"),
            ("COPY k k DB 1", ":1"),
            ("MOVE k 0", same),
            ("MOVE no 0", same),
            ("MOVE k 16", range),
            ("MOVE k -1", range),
            ("MOVE k x", "-ERR value is not an integer or out of range"),
            ("MOVE k 99999999999", long),
            ("MOVE k 1", ":0"),
            ("MOVE no 1", ":0"),
            ("MOVE k 2", ":1"),
            ("EXISTS k", ":0"),
        ],
    );
    server.db = 2;
    assert_eq!(server.say("GET k"), "$1 w");
}

#[test]
fn large_values_are_copied_and_then_differ() {
    let mut server = server();
    let large = vec![b'x'; 300_000];
    server.run(&[b"SET", b"a", &large]);
    assert_eq!(server.say("COPY a b"), ":1");
    server.say("SETRANGE a 150000 yy");
    assert_eq!(server.say("GETRANGE a 149999 150002"), "$4 xyyx");
    assert_eq!(server.say("GETRANGE b 149999 150002"), "$4 xxxx");
    assert_eq!(server.say("RENAME b c"), "+OK");
    assert_eq!(server.say("MOVE c 1"), ":1");
    server.db = 1;
    assert_eq!(server.say("STRLEN c"), ":300000");
}

#[test]
fn databases_are_exchanged_and_emptied() {
    let mut server = server();
    dialogue(
        &mut server,
        &[
            ("SET k 0", "+OK"),
            ("SWAPDB 0 x", "-ERR invalid second DB index"),
            ("SWAPDB x 0", "-ERR invalid first DB index"),
            ("SWAPDB 0 99999999999", "-ERR invalid second DB index"),
            ("SWAPDB 0 16", "-ERR DB index is out of range"),
            ("SWAPDB -1 0", "-ERR DB index is out of range"),
            ("SWAPDB 0 0", "+OK"),
            ("GET k", "$1 0"),
            ("SWAPDB 0 3", "+OK"),
            ("DBSIZE", ":0"),
            ("SET other 1", "+OK"),
            ("FLUSHDB foo", "-ERR syntax error"),
            ("FLUSHDB SYNC ASYNC", "-ERR syntax error"),
            ("FLUSHDB sync", "+OK"),
            ("DBSIZE", ":0"),
        ],
    );
    server.db = 3;
    dialogue(
        &mut server,
        &[
            ("GET k", "$1 0"),
            ("FLUSHALL async", "+OK"),
            ("DBSIZE", ":0"),
        ],
    );
    assert_eq!(
        server.store.used_memory(),
        server.store.used_memory(),
        "no key is left to count"
    );
}

#[test]
fn how_values_are_kept() {
    let mut server = server();
    dialogue(
        &mut server,
        &[
            ("SET i 77", "+OK"),
            ("SET s hello", "+OK"),
            ("OBJECT ENCODING i", "$3 int"),
            ("OBJECT ENCODING s", "$6 embstr"),
            ("OBJECT ENCODING no", "$-1"),
            ("OBJECT REFCOUNT i", ":2147483647"),
            ("OBJECT REFCOUNT s", ":1"),
            ("OBJECT IDLETIME s", ":0"),
            ("OBJECT FREQ no", "$-1"),
            (
                "OBJECT IDLETIME",
                "-ERR wrong number of arguments for 'idletime' command",
            ),
            ("MEMORY USAGE no", "$-1"),
            (
                "MEMORY USAGE no SAMPLES x",
                "-ERR value is not an integer or out of range",
            ),
            ("MEMORY USAGE s SAMPLES -1", "-ERR syntax error"),
            ("MEMORY USAGE s SAMPLES", "-ERR syntax error"),
            ("MEMORY USAGE s FOO", "-ERR syntax error"),
        ],
    );
    assert!(
        server
            .say("OBJECT FREQ s")
            .starts_with("-ERR An LFU maxmemory policy is not selected")
    );
    assert!(
        server
            .say("OBJECT HELP")
            .starts_with("*12 +OBJECT <subcommand>")
    );
    let small: u64 = server
        .say("MEMORY USAGE s SAMPLES 0")
        .trim_start_matches(':')
        .parse()
        .expect("a size");
    assert!((12..64).contains(&small), "{small}");
    let policy = pantala_store::AccessPolicy {
        lfu: true,
        ..server.store.access_policy()
    };
    server.store.set_access_policy(policy);
    assert!(
        server
            .say("OBJECT IDLETIME s")
            .starts_with("-ERR An LFU maxmemory policy is selected")
    );
    server.say("SET t hello");
    assert_eq!(server.say("OBJECT FREQ t"), ":5");
    let payload = bulk(&server.run(&[b"DUMP", b"t"]).reply);
    server.run(&[b"RESTORE", b"u", b"0", &payload, b"FREQ", b"200"]);
    assert_eq!(server.say("OBJECT FREQ u"), ":200");
    server.now_ms += 10 * 60_000;
    assert_eq!(server.say("OBJECT FREQ u"), ":190");
}

#[test]
fn idle_time_is_set_and_grows() {
    let mut server = server();
    server.say("SET k v");
    server.now_ms += 7_000;
    assert_eq!(server.say("OBJECT IDLETIME k"), ":7");
    assert_eq!(server.say("EXISTS k"), ":1");
    assert_eq!(
        server.say("OBJECT IDLETIME k"),
        ":7",
        "to look for a key is no use of it"
    );
    assert_eq!(server.say("TOUCH k"), ":1");
    assert_eq!(server.say("OBJECT IDLETIME k"), ":0");
    let payload = bulk(&server.run(&[b"DUMP", b"k"]).reply);
    server.run(&[b"RESTORE", b"r", b"0", &payload, b"IDLETIME", b"1000"]);
    assert_eq!(server.say("OBJECT IDLETIME r"), ":1000");
}

#[test]
fn only_missing_keys_can_be_sorted_so_far() {
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    dialogue(
        &mut server(),
        &[
            ("SET k v", "+OK"),
            ("SORT k", wrong),
            ("SORT_RO k", wrong),
            ("SORT k STORE k", wrong),
            ("SORT k FOO", "-ERR syntax error"),
            ("SORT no BY w_* GET # GET o_*->f LIMIT 0 5 ALPHA DESC", "*0"),
            ("SORT_RO no STORE k", "-ERR syntax error"),
            (
                "SORT no LIMIT 0 x",
                "-ERR value is not an integer or out of range",
            ),
            ("SORT no STORE k", ":0"),
            ("EXISTS k", ":0"),
            ("SORT no STORE no", ":0"),
        ],
    );
}
