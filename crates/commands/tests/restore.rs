//! `DUMP` and `RESTORE`: what they answer and what they record. The expected replies are those of redis-server 7.0.15, unless a
//! comment says otherwise.

mod common;

use common::Server;

#[test]
fn values_are_dumped_and_restored() {
    let mut server = Server::new();
    let large: Vec<u8> = (0..100_000u32).map(|n| (n / 7 % 251) as u8).collect();
    for value in [
        &b""[..],
        b"0",
        b"-1",
        b"12345678901234",
        b"hello world",
        &[0xff; 40],
        &large,
    ] {
        server.run(&[b"SET", b"k", value]);
        let payload = bulk(&server.run(&[b"DUMP", b"k"]).reply);
        assert_eq!(
            server
                .run(&[b"RESTORE", b"copy", b"0", &payload, b"REPLACE"])
                .reply,
            b"+OK\r\n"
        );
        assert_eq!(bulk(&server.run(&[b"GET", b"copy"]).reply), value);
        assert_eq!(
            server.say("OBJECT ENCODING copy"),
            server.say("OBJECT ENCODING k")
        );
    }
    assert_eq!(server.say("DUMP no"), "$-1");
}

fn bulk(reply: &[u8]) -> Vec<u8> {
    let body = reply
        .iter()
        .position(|byte| *byte == b'\n')
        .expect("a header")
        + 1;
    reply[body..reply.len() - 2].to_vec()
}

#[test]
fn what_restore_refuses() {
    let mut server = Server::new();
    server.say("SET k v");
    let good = bulk(&server.run(&[b"DUMP", b"k"]).reply);
    let list = sealed(b"\x01\x01\x01a");
    let broken = sealed(b"\x00\x05a");
    let cases: &[(&[&[u8]], &str)] = &[
        (
            &[b"k", b"0", &good],
            "-BUSYKEY Target key name already exists.",
        ),
        (
            &[b"k", b"x", &good],
            "-BUSYKEY Target key name already exists.",
        ),
        (
            &[b"l", b"x", &good],
            "-ERR value is not an integer or out of range",
        ),
        (
            &[b"l", b"-1", &good],
            "-ERR Invalid TTL value, must be >= 0",
        ),
        (
            &[b"l", b"0", b"x"],
            "-ERR DUMP payload version or checksum are wrong",
        ),
        (
            &[b"l", b"0", b""],
            "-ERR DUMP payload version or checksum are wrong",
        ),
        (&[b"l", b"0", &broken], "-ERR Bad data format"),
        (&[b"k", b"0", &broken, b"REPLACE"], "-ERR Bad data format"),
        // Redis knows lists; we say why we refuse them.
        (
            &[b"l", b"0", &list],
            "-ERR Bad data format: values of type list are not supported",
        ),
        (&[b"l", b"0", &good, b"FOO"], "-ERR syntax error"),
        (&[b"k", b"0", &good, b"FOO"], "-ERR syntax error"),
        (&[b"l", b"0", &good, b"IDLETIME"], "-ERR syntax error"),
        (
            &[b"l", b"0", &good, b"IDLETIME", b"x"],
            "-ERR value is not an integer or out of range",
        ),
        (
            &[b"l", b"0", &good, b"IDLETIME", b"-1"],
            "-ERR Invalid IDLETIME value, must be >= 0",
        ),
        (
            &[b"l", b"0", &good, b"FREQ", b"256"],
            "-ERR Invalid FREQ value, must be >= 0 and <= 255",
        ),
        (
            &[b"l", b"0", &good, b"FREQ", b"1", b"IDLETIME", b"1"],
            "-ERR syntax error",
        ),
        (
            &[b"l", b"0", &good, b"IDLETIME", b"1", b"FREQ", b"1"],
            "-ERR syntax error",
        ),
    ];
    for (arguments, reply) in cases {
        let words: Vec<&[u8]> = [&[&b"RESTORE"[..]], *arguments].concat();
        let ran = server.run(&words);
        assert_eq!(
            String::from_utf8_lossy(&ran.reply).trim_end(),
            *reply,
            "{words:?}"
        );
    }
    assert_eq!(
        server.say("GET k"),
        "$1 v",
        "what was refused changed nothing"
    );
    assert_eq!(server.say("DBSIZE"), ":1");
}

/// A payload whose frame is right.
fn sealed(body: &[u8]) -> Vec<u8> {
    let mut payload = body.to_vec();
    payload.extend_from_slice(&10u16.to_le_bytes());
    payload.extend_from_slice(&pantala_rdb::crc64::checksum(&payload).to_le_bytes());
    payload
}

#[test]
fn times_of_restore() {
    let mut server = Server::new();
    server.now_ms = 1_000_000;
    server.say("SET k v");
    let payload = bulk(&server.run(&[b"DUMP", b"k"]).reply);
    let mut restore = |options: &[&[u8]]| {
        let words: Vec<&[u8]> = [&[&b"RESTORE"[..], b"r"], options].concat();
        let ran = server.run(&words);
        (
            String::from_utf8_lossy(&ran.reply).trim_end().to_owned(),
            common::decode(&ran.record),
            ran.events,
            server.say("PTTL r"),
        )
    };
    let restored = |ttl: &str, more: &[&str]| {
        let words = [&["RESTORE", "r", ttl, "PAYLOAD", "ABSTTL"], more].concat();
        vec![
            words
                .iter()
                .map(|word| {
                    if *word == "PAYLOAD" {
                        payload.clone()
                    } else {
                        word.as_bytes().to_vec()
                    }
                })
                .collect::<Vec<_>>(),
        ]
    };
    let ok = "+OK".to_owned();
    assert_eq!(
        restore(&[b"0", &payload]),
        (
            ok.clone(),
            restored("0", &[]),
            vec!["new", "restore"],
            ":-1".to_owned()
        )
    );
    assert_eq!(
        restore(&[b"5", &payload, b"replace", b"IDLETIME", b"7"]),
        (
            ok.clone(),
            restored("1000005", &["REPLACE", "IDLETIME", "7"]),
            vec!["new", "restore"],
            ":5".to_owned()
        )
    );
    assert_eq!(
        restore(&[b"2000000", &payload, b"ABSTTL", b"REPLACE"]),
        (
            ok.clone(),
            restored("2000000", &["REPLACE"]),
            vec!["new", "restore"],
            ":1000000".to_owned()
        )
    );
    // A sum beyond the range is the end of time, where Redis's overflow makes the key vanish.
    let (reply, _, _, left) = restore(&[b"9223372036854775807", &payload, b"REPLACE"]);
    assert_eq!(
        (reply, left),
        (ok.clone(), format!(":{}", i64::MAX - 1_000_000))
    );
    // A time that is over removes what was there and stores nothing.
    let removed = vec![vec![b"DEL".to_vec(), b"r".to_vec()]];
    assert_eq!(
        restore(&[b"1", &payload, b"ABSTTL", b"REPLACE"]),
        (ok.clone(), removed, vec!["del"], ":-2".to_owned())
    );
    assert_eq!(
        restore(&[b"1", &payload, b"ABSTTL"]),
        (ok, vec![], vec![], ":-2".to_owned())
    );
}
