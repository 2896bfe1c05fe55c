//! How a session goes through its input: in pieces, in parts, with busy shards, closed gates, pauses, limits and flushes.

use super::*;

#[test]
fn requests_may_come_byte_by_byte() {
    let mut server = Server::new();
    let input = b"set a 3 0 4\r\nab\r\n\r\nget a\r\nmg a v\r\nset b 0 0 9999999\r\n";
    let (mut kept, mut replies) = (Vec::new(), Vec::new());
    for &byte in input {
        kept.push(byte);
        let (out, done, stop) = server.execute(&kept);
        assert_eq!(stop, Stop::NeedMore);
        kept.drain(..done);
        replies.extend(out);
    }
    let wanted = "STORED\r\nVALUE a 3 4\r\nab\r\n\r\nEND\r\nVA 4\r\nab\r\n\r\n\
        SERVER_ERROR object too large for cache\r\n";
    assert_eq!(String::from_utf8_lossy(&replies), wanted);
}

/// Data that were refused are never taken for requests, however they are cut, and even when the request behind them has to wait.
#[test]
fn refused_data_are_skipped() {
    let size = 1024 * 1024;
    let mut input = format!("set a 0 0 1\r\nx\r\nget a\r\nset a 0 0 {size}\r\n").into_bytes();
    input.extend(b"get a\r\n".iter().cycle().take(size));
    input.extend_from_slice(b"\r\nget b\r\nmn\r\n");
    let wanted = "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n\
        SERVER_ERROR object too large for cache\r\nEND\r\nMN\r\n";
    for piece in [1000, 4096, 70_001, input.len() - 8, input.len()] {
        let mut server = Server::new();
        server.say("set b 0 0 1\r\ny\r\ndelete b\r\n");
        let (mut kept, mut replies) = (Vec::new(), Vec::new());
        for bytes in input.chunks(piece) {
            kept.extend_from_slice(bytes);
            for key in ["a", "b"] {
                // Whatever needs this shard waits once, and is parsed again.
                let shared = Arc::clone(&server.shared);
                let shard = shared.store.shard_of(shared.store.hash(key.as_bytes()));
                let space = shared.store.try_borrow_one(shard);
                let (out, done, stop) = server.execute(&kept);
                assert!(matches!(stop, Stop::NeedMore | Stop::Busy(_)), "{stop:?}");
                kept.drain(..done);
                replies.extend(out);
                drop(space);
            }
            let (out, done, stop) = server.execute(&kept);
            assert_eq!(stop, Stop::NeedMore);
            kept.drain(..done);
            replies.extend(out);
        }
        assert_eq!(String::from_utf8_lossy(&replies), wanted, "{piece}");
        assert!(kept.is_empty());
    }
}

#[test]
fn a_busy_shard_stops_the_request_that_needs_it() {
    let mut server = Server::new();
    let shared = Arc::clone(&server.shared);
    let key = shared.store.hash(b"b");
    let space = shared
        .store
        .try_borrow_one(shared.store.shard_of(key))
        .expect("nobody else borrows");
    let other = (0..)
        .map(|n| format!("k{n}"))
        .find(|name| {
            shared.store.shard_of(shared.store.hash(name.as_bytes())) != shared.store.shard_of(key)
        })
        .expect("there are several shards");
    let first = format!("set {other} 0 0 1\r\nx\r\n");
    let input = format!("{first}set b 0 0 1\r\ny\r\nget {other} b\r\n");
    let (out, done, stop) = server.execute(input.as_bytes());
    assert_eq!(out, b"STORED\r\n");
    assert_eq!(done, first.len());
    assert_eq!(stop, Stop::Busy(shared.store.shard_of(key)));
    drop(space);
    let rest = server.say(&input[done..]);
    assert_eq!(
        rest,
        format!("STORED\r\nVALUE {other} 0 1\r\nx\r\nVALUE b 0 1\r\ny\r\nEND\r\n")
    );
    let all = shared
        .store
        .try_borrow(&ShardSet::all(shared.store.shards()), &mut Attempt::new())
        .expect("nobody else borrows");
    let (out, done, stop) = server.execute(b"flush_all\r\n");
    assert_eq!((out.len(), done), (0, 0));
    assert!(matches!(stop, Stop::Busy(_)));
    drop(all);
    assert_eq!(server.say("flush_all\r\nget b\r\n"), "OK\r\nEND\r\n");
}

#[test]
fn a_closed_gate_stops_everything() {
    let mut server = Server::new();
    let shared = Arc::clone(&server.shared);
    // Parties enter once at a time, so the closer must be another; with one party it is the test itself, outside.
    let stopped = shared.store.gate().close(Party::new(0), 1000, |_| {
        let (out, done, stop) = server.execute(b"set a 0 0 1\r\nx\r\n");
        (out.len(), done, stop)
    });
    assert_eq!(stopped, Some((0, 0, Stop::Again)));
    assert_eq!(server.say("set a 0 0 1\r\nx\r\n"), "STORED\r\n");
}

#[test]
fn a_pause_stops_writes() {
    let mut server = Server::new();
    server.shared.pause.begin(NOW + 50, false, NOW);
    let (out, done, stop) = server.execute(b"get a\r\nmg a v\r\nset a 0 0 1\r\nx\r\n");
    assert_eq!(out, b"END\r\nEN\r\n");
    assert_eq!((done, stop), (15, Stop::Paused));
    server.now_ms += 51;
    assert_eq!(server.say("set a 0 0 1\r\nx\r\n"), "STORED\r\n");
}

#[test]
fn a_long_retrieval_is_answered_in_parts() {
    let mut server = Server::new();
    let value = "v".repeat(10_000);
    let mut wanted = String::new();
    let mut request = String::from("get");
    for n in 0..300 {
        request.push_str(&format!(" k{n} none{n}"));
        server.say(&format!("set k{n} 0 0 10000\r\n{value}\r\n"));
        wanted.push_str(&format!("VALUE k{n} 0 10000\r\n{value}\r\n"));
    }
    request.push_str("\r\n");
    wanted.push_str("END\r\n");
    let (mut got, mut parts) = (Vec::new(), 0);
    loop {
        let (out, done, stop) = server.execute(request.as_bytes());
        assert!(out.len() < 256 * 1024 + 11_000);
        got.extend(out);
        parts += 1;
        if stop == Stop::NeedMore {
            assert_eq!(done, request.len());
            break;
        }
        assert_eq!((done, stop), (0, Stop::Full));
    }
    assert!(parts > 10, "{parts}");
    assert!(got == wanted.as_bytes());
    // What follows is not mistaken for the rest of it.
    assert_eq!(server.say("get none1\r\n"), "END\r\n");
}

#[test]
fn many_replies_wait_to_be_sent() {
    let mut server = Server::new();
    let value = "v".repeat(100_000);
    server.say(&format!("set a 0 0 100000\r\n{value}\r\n"));
    let input = "mg a v\r\n".repeat(10);
    let (out, done, stop) = server.execute(input.as_bytes());
    assert_eq!((done, stop), (3 * 8, Stop::Full));
    assert_eq!(out.len(), 3 * (100_000 + 13));
}

#[test]
fn quit_and_broken_streams_close() {
    let mut server = Server::new();
    let (out, done, stop) = server.execute(b"get a\r\nquit\r\nget a\r\n");
    assert_eq!((&out[..], done, stop), (&b"END\r\n"[..], 13, Stop::Close));
    let mut server = Server::new();
    let (out, _, stop) = server.execute(&[b'x'; 3000]);
    assert_eq!((out.len(), stop), (0, Stop::Close));
    let mut server = Server::new();
    let (out, _, stop) = server.execute(b"GET / HTTP/1.1\r\nget a\r\n");
    assert_eq!((out.len(), stop), (0, Stop::Close));
}

#[test]
fn without_memory_nothing_is_stored_and_nothing_outdated_served() {
    let mut server = Server::new();
    server.say("set a 0 0 1\r\nx\r\nset b 0 0 1\r\nx\r\nset n 0 0 1\r\n5\r\nset c 0 0 1\r\nx\r\n");
    server.has_room = false;
    for (request, reply) in [
        (
            "set a 0 0 1\r\ny\r\n",
            "SERVER_ERROR out of memory storing object\r\n",
        ),
        ("get a\r\n", "END\r\n"),
        (
            "append b 0 0 1\r\ny\r\n",
            "SERVER_ERROR out of memory storing object\r\n",
        ),
        ("get b\r\n", "VALUE b 0 1\r\nx\r\nEND\r\n"),
        (
            "ms c 1 q\r\ny\r\n",
            "SERVER_ERROR out of memory storing object\r\n",
        ),
        ("mg c\r\n", "EN\r\n"),
        ("incr n 1\r\n", "SERVER_ERROR out of memory\r\n"),
        ("ma n\r\n", "SERVER_ERROR out of memory\r\n"),
        ("mg n v\r\n", "VA 1\r\n5\r\n"),
        ("mg new N30\r\n", "EN\r\n"),
        ("touch n 50\r\n", "TOUCHED\r\n"),
        ("delete n\r\n", "DELETED\r\n"),
    ] {
        assert_eq!(server.say(request), reply, "{request}");
    }
    let stats = server.say("stats\r\n");
    assert!(stats.contains("STAT store_no_memory 3\r\n"), "{stats}");
}

#[test]
fn items_have_a_size_limit() {
    let mut server = Server::new();
    server.settings.memcached_item_size_max_bytes = 2048;
    let whole = "x".repeat(1900);
    assert_eq!(
        server.say(&format!("set a 0 0 1900\r\n{whole}\r\n")),
        "STORED\r\n"
    );
    let more = "y".repeat(200);
    assert_eq!(
        server.say(&format!("append a 0 0 200\r\n{more}\r\n")),
        "NOT_STORED\r\n"
    );
    assert_eq!(server.say(&format!("ms a 200 MP\r\n{more}\r\n")), "NS\r\n");
    assert_eq!(server.say("mg a s\r\n"), "HD s1900\r\n");
    let large = "z".repeat(2100);
    let refused = "SERVER_ERROR object too large for cache\r\n";
    assert_eq!(
        server.say(&format!("add a 0 0 2100\r\n{large}\r\nmg a s\r\n")),
        format!("{refused}HD s1900\r\n")
    );
    assert_eq!(
        server.say(&format!("set a 0 0 2100\r\n{large}\r\nmg a s\r\n")),
        format!("{refused}EN\r\n")
    );
}

#[test]
fn values_come_back_in_every_size() {
    let mut server = Server::new();
    server.settings.memcached_item_size_max_bytes = 1 << 24;
    for len in [0, 1, 24, 127, 128, 4000, 5000, 70_000, 2_000_000] {
        let value: String = (0..len)
            .map(|n| char::from(b' ' + (n % 90) as u8))
            .collect();
        server.say(&format!(
            "set a 0 0 {len}\r\n{value}\r\nappend a 0 0 2\r\nAB\r\n"
        ));
        server.say("prepend a 0 0 2\r\nCD\r\n");
        let (mut got, mut input) = (Vec::new(), &b"get a\r\nmg a v s\r\n"[..]);
        loop {
            let (out, done, stop) = server.execute(input);
            got.extend(out);
            input = &input[done..];
            if stop == Stop::NeedMore {
                break;
            }
        }
        let all = len + 4;
        let wanted =
            format!("VALUE a 0 {all}\r\nCD{value}AB\r\nEND\r\nVA {all} s{all}\r\nCD{value}AB\r\n");
        assert!(got == wanted.as_bytes(), "{len}");
    }
}

#[test]
fn time_passes() {
    let mut server = Server::new();
    server.say("set a 0 10 1\r\nx\r\nms b 1 T100\r\ny\r\nset c 0 1800000020 1\r\nz\r\n");
    server.now_ms += 9_500;
    assert_eq!(server.say("mg a t l h\r\n"), "HD t1 l9 h0\r\n");
    assert_eq!(server.say("mg b t R90\r\n"), "HD t91\r\n");
    assert_eq!(server.say("mg b t R92\r\n"), "HD t91 W\r\n");
    server.now_ms += 501;
    assert_eq!(
        server.say("get a c\r\nmg a\r\nadd a 0 0 1\r\nn\r\n"),
        "VALUE c 0 1\r\nz\r\nEND\r\nEN\r\nSTORED\r\n"
    );
    server.now_ms += 10_000;
    assert_eq!(server.say("touch c 5\r\nmg c\r\n"), "NOT_FOUND\r\nEN\r\n");
    let stats = server.say("stats\r\n");
    assert!(stats.contains("STAT get_expired 1\r\n"), "{stats}");
}

#[test]
fn flushes_now_and_later() {
    let mut server = Server::new();
    server.on_key("other", |slot| string::store(slot, b"x", PutMeta::CLEAR));
    assert_eq!(
        server.say("set a 0 0 1\r\nx\r\nflush_all\r\nget a other\r\nset a 0 0 1\r\ny\r\nget a\r\n"),
        "STORED\r\nOK\r\nEND\r\nSTORED\r\nVALUE a 0 1\r\ny\r\nEND\r\n"
    );
    assert_eq!(
        server.say("flush_all 5\r\nflush_all 10 noreply\r\n"),
        "OK\r\n"
    );
    server.now_ms += 9_999;
    assert_eq!(
        server.say("set b 0 0 1\r\nz\r\nmg a\r\nmg b\r\n"),
        "STORED\r\nHD\r\nHD\r\n"
    );
    server.now_ms += 1;
    assert_eq!(server.say("mg a\r\nmg b\r\n"), "EN\r\nEN\r\n");
    // It happens once.
    server.say("set a 0 0 1\r\nx\r\n");
    server.now_ms += 60_000;
    assert_eq!(server.say("mg a\r\n"), "HD\r\n");
    // The background does it too, and a flush at once calls off the other.
    server.say("flush_all 10\r\n");
    let mut buffers = Buffers::default();
    assert!(super::super::flush_bite(
        &server.shared,
        0,
        server.now_ms + 9_000,
        &mut buffers
    ));
    assert_eq!(server.shared.store.dbsize(0), 1);
    assert!(super::super::flush_bite(
        &server.shared,
        0,
        server.now_ms + 10_000,
        &mut buffers
    ));
    assert_eq!(server.shared.store.dbsize(0), 0);
    server.say("flush_all 10\r\nflush_all -1\r\nset a 0 0 1\r\nx\r\n");
    server.now_ms += 20_000;
    assert_eq!(server.say("mg a\r\n"), "HD\r\n");
}

#[test]
fn statistics() {
    let mut server = Server::new();
    server.say("set a 0 0 1\r\n5\r\nget a b\r\nincr a 1\r\ndecr b 1\r\ntouch a 5\r\ntouch b 5\r\n");
    server.say(
        "gets a\r\ncas a 0 0 1 1\r\nx\r\ncas b 0 0 1 1\r\nx\r\ndelete a\r\ndelete a\r\nmn\r\n",
    );
    let stats = server.say("stats\r\n");
    for line in [
        "cmd_get 3",
        "cmd_set 3",
        "get_hits 2",
        "get_misses 1",
        "incr_hits 1",
        "incr_misses 0",
        "decr_misses 1",
        "touch_hits 1",
        "touch_misses 1",
        "cas_badval 1",
        "cas_misses 1",
        "delete_hits 1",
        "delete_misses 1",
        "cmd_meta 1",
        "curr_connections 1",
        "total_connections 1",
        "total_items 1",
        "curr_items 0",
        "threads 1",
    ] {
        assert!(
            stats.contains(&format!("STAT {line}\r\n")),
            "{line} in {stats}"
        );
    }
    assert!(stats.ends_with("END\r\n"));
    assert_eq!(server.say("stats reset\r\n"), "RESET\r\n");
    assert!(server.say("stats\r\n").contains("STAT cmd_get 0\r\n"));
    assert!(
        server
            .say("stats settings\r\n")
            .contains("STAT item_size_max 1048576\r\n")
    );
    assert!(
        server
            .say("stats conns\r\n")
            .starts_with("STAT 3:addr tcp:127.0.0.1:1\r\n")
    );
    assert!(
        server
            .say("version\r\n")
            .starts_with("VERSION 1.6.18-pantala-")
    );
    let item = server.say("set k 0 0 1\r\nx\r\nme k\r\n");
    assert!(
        item.starts_with("STORED\r\nME k exp=-1 la=0 cas=0 fetch=no cls=1 size="),
        "{item}"
    );
}

/// Executes what is kept, with replies sent in between.
fn go_on(server: &mut Server, kept: &mut Vec<u8>, replies: &mut Vec<u8>) -> Stop {
    loop {
        let (out, done, stop) = server.execute(kept);
        kept.drain(..done);
        replies.extend(out);
        match stop {
            Stop::Full => {}
            Stop::NeedMore | Stop::Close => return stop,
            other => panic!("{other:?}"),
        }
    }
}

/// Whatever is sent, and however it is cut: no panic, and the same replies.
#[test]
fn cuts_do_not_matter() {
    let words = [
        "get",
        "gets",
        "gat",
        "set",
        "add",
        "cas",
        "append",
        "incr",
        "decr",
        "touch",
        "delete",
        "mg",
        "ms",
        "md",
        "ma",
        "me",
        "mn",
        "verbosity",
        "flush_all",
        "version",
        "stats",
        "k",
        "k",
        "k2",
        "0",
        "1",
        "2",
        "-1",
        "10",
        "noreply",
        "v",
        "t",
        "q",
        "I",
        "x",
        "b",
        "k",
        "N30",
        "T5",
        "C1",
        "MA",
        "ME",
        "MD",
        "F7",
        "E50",
        "O1",
        "D3",
        "Zm9v",
        "18446744073709551615",
        "99999999999",
        "\u{e9}\0",
    ];
    let mut seed = 7u64;
    let mut draw = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    for _ in 0..100 {
        let mut input = Vec::new();
        for _ in 0..60 {
            match draw(4) {
                0 => {
                    let len = draw(8);
                    let name = ["set", "append", "add"][draw(3)];
                    input.extend_from_slice(format!("{name} k 0 0 {len}\r\n").as_bytes());
                    input.extend((0..len + 2 - draw(2)).map(|n| b"12\r\n3 4\r\n"[n % 9]));
                }
                1 => {
                    let len = 1_048_600 + draw(3);
                    input.extend_from_slice(format!("ms k {len} T1\r\n").as_bytes());
                    // A part of the data only: what follows is skipped with it.
                    input.extend(b"zz\r\n".iter().cycle().take(draw(2) * 2000));
                }
                _ => {
                    for _ in 0..=draw(6) {
                        input.extend_from_slice(words[draw(words.len())].as_bytes());
                        input.push(b' ');
                    }
                    input.extend_from_slice(b"\r\n");
                }
            }
            if draw(30) == 0 {
                input.extend(b"yy\r\n".iter().cycle().take(1_048_610));
                input.extend_from_slice(b"\r\nmn\r\n");
            }
        }
        let mut whole = Server::new();
        let (mut kept, mut wanted) = (input.clone(), Vec::new());
        go_on(&mut whole, &mut kept, &mut wanted);
        let mut cut = Server::new();
        let (mut kept, mut replies) = (Vec::new(), Vec::new());
        let mut rest = &input[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(1 + draw(5000)));
            rest = after;
            kept.extend_from_slice(piece);
            if go_on(&mut cut, &mut kept, &mut replies) == Stop::Close {
                break;
            }
        }
        // Sizes in memory and counts of calls may differ, nothing else.
        let plain = |replies: &[u8]| {
            String::from_utf8_lossy(replies)
                .lines()
                .filter(|line| !line.starts_with("STAT"))
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(plain(&replies), plain(&wanted));
    }
}
