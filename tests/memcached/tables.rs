//! Single cases that a generator does not reach: flushing by the second, statistics, values at the size limit, long lines, quitting.

use pantala_tests::memcache::McConn;
use pantala_tests::quote::escape;

use super::servers;

fn text(conn: &mut McConn, request: &str) -> String {
    escape(
        &conn
            .call(request.as_bytes())
            .unwrap_or_else(|error| panic!("{request}: {error}")),
    )
}

/// Runs `test` on both servers.
fn both(test: impl Fn(&mut McConn)) {
    let pair = servers();
    for server in [&pair.1, &pair.0] {
        println!("{:?}", server.kind);
        test(&mut server.mc());
    }
}

#[test]
fn flush_all_removes_what_was_there() {
    both(|conn| {
        assert_eq!(text(conn, "set a 0 0 1\r\nx\r\n"), "STORED\\r\\n");
        // Memcached's clock has ticks of a second.
        std::thread::sleep(std::time::Duration::from_millis(2100));
        assert_eq!(text(conn, "flush_all\r\n"), "OK\\r\\n");
        assert_eq!(text(conn, "get a\r\n"), "END\\r\\n");
        assert_eq!(text(conn, "set b 0 0 1\r\nx\r\n"), "STORED\\r\\n");
        assert_eq!(text(conn, "flush_all 1000\r\n"), "OK\\r\\n");
        assert_eq!(text(conn, "get b\r\n"), "VALUE b 0 1\\r\\nx\\r\\nEND\\r\\n");
        conn.send(b"flush_all 0 noreply\r\n")
            .expect("the server reads");
        assert_eq!(
            text(conn, "flush_all x\r\n"),
            "CLIENT_ERROR invalid exptime argument\\r\\n"
        );
    });
}

#[test]
fn short_times_to_live_end() {
    both(|conn| {
        assert_eq!(text(conn, "set a 0 1 1\r\nx\r\n"), "STORED\\r\\n");
        assert_eq!(text(conn, "ms b 1 T1\r\ny\r\n"), "HD\\r\\n");
        std::thread::sleep(std::time::Duration::from_millis(2500));
        assert_eq!(text(conn, "get a b\r\n"), "END\\r\\n");
        assert_eq!(text(conn, "mg b v\r\n"), "EN\\r\\n");
    });
}

#[test]
fn statistics_have_the_usual_names() {
    both(|conn| {
        text(conn, "set a 0 0 1\r\nx\r\n");
        text(conn, "get a\r\n");
        text(conn, "get none\r\n");
        let stats = text(conn, "stats\r\n");
        for name in [
            "pid",
            "uptime",
            "time",
            "version",
            "curr_connections",
            "cmd_get",
            "cmd_set",
            "get_hits",
            "get_misses",
            "bytes",
            "curr_items",
            "limit_maxbytes",
            "threads",
            "evictions",
        ] {
            assert!(
                stats.contains(&format!("STAT {name} ")),
                "{name} in {stats}"
            );
        }
        assert!(
            stats.contains("STAT get_hits 1")
                && stats.contains("STAT get_misses 1")
                && stats.contains("STAT curr_items 1"),
            "{stats}"
        );
        assert_eq!(text(conn, "stats reset\r\n"), "RESET\\r\\n");
    });
}

#[test]
fn long_lines_and_keys() {
    both(|conn| {
        let key = "k".repeat(250);
        assert_eq!(
            text(conn, &format!("set {key} 0 0 1\r\nx\r\n")),
            "STORED\\r\\n"
        );
        assert_eq!(
            text(conn, &format!("get {key}\r\n")),
            format!("VALUE {key} 0 1\\r\\nx\\r\\nEND\\r\\n")
        );
        assert_eq!(
            text(conn, &format!("get {key}k\r\n")),
            "CLIENT_ERROR bad command line format\\r\\n"
        );
        // A get of many keys may be longer than any other line.
        let many: Vec<String> = (0..200)
            .map(|n| format!("{n}{}", "m".repeat(100)))
            .collect();
        assert_eq!(
            text(conn, &format!("get {}\r\n", many.join(" "))),
            "END\\r\\n"
        );
    });
}

#[test]
fn a_meta_no_op_ends_a_batch_of_quiet_requests() {
    both(|conn| {
        assert_eq!(text(conn, "mn\r\n"), "MN\\r\\n");
        assert_eq!(
            text(conn, "ms q 1 q\r\nx\r\nmg none v q\r\nmg q v q\r\nmn\r\n"),
            "VA 1\\r\\nx\\r\\n"
        );
        assert_eq!(escape(&conn.read_reply().expect("a reply")), "MN\\r\\n");
    });
}

#[test]
fn quit_closes() {
    both(|conn| {
        conn.send(b"get a\r\nquit\r\nget a\r\n")
            .expect("the server reads");
        assert_eq!(escape(&conn.read_to_close().expect("closed")), "END\\r\\n");
    });
}

#[test]
fn requests_in_one_write_are_answered_in_order() {
    both(|conn| {
        let mut all = String::new();
        let mut expect = String::new();
        for n in 0..2000 {
            all.push_str(&format!("set p{n} 0 0 1\r\nx\r\nget p{n}\r\n"));
            expect.push_str(&format!("STORED\r\nVALUE p{n} 0 1\r\nx\r\nEND\r\n"));
        }
        let got = conn.call_fenced(all.as_bytes()).expect("replies");
        assert!(got == expect.as_bytes(), "replies out of order");
    });
}

#[test]
fn pieces_of_a_request_may_come_late() {
    both(|conn| {
        for byte in b"set slow 3 0 4\r\nab\r\n\r\n" {
            conn.send(&[*byte]).expect("the server reads");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert_eq!(escape(&conn.read_reply().expect("a reply")), "STORED\\r\\n");
        assert_eq!(
            text(conn, "get slow\r\n"),
            "VALUE slow 3 4\\r\\nab\\r\\n\\r\\nEND\\r\\n"
        );
    });
}

/// The `E` flag came after the version that Debian has, so ours alone is asked.
#[test]
fn a_unique_number_can_be_given() {
    if std::env::var_os("PANTALA_BIN_IS_ORACLE").is_some() {
        return;
    }
    let pair = servers();
    let mut conn = pair.0.mc();
    assert_eq!(text(&mut conn, "ms e 1 E123 c\r\nx\r\n"), "HD c123\\r\\n");
    assert_eq!(text(&mut conn, "mg e c v\r\n"), "VA 1 c123\\r\\nx\\r\\n");
    assert_eq!(text(&mut conn, "ms e 1 C122\r\ny\r\n"), "EX\\r\\n");
    assert_eq!(
        text(&mut conn, "ms e 1 C123 E200 c\r\ny\r\n"),
        "HD c200\\r\\n"
    );
    assert_eq!(
        text(&mut conn, "ma counter N0 J5 E300 c v\r\n"),
        "VA 1 c300\\r\\n5\\r\\n"
    );
    assert_eq!(text(&mut conn, "md e C200 I E400\r\n"), "HD\\r\\n");
    assert_eq!(text(&mut conn, "mg e c\r\n"), "HD c400 X W\\r\\n");
}
