//! What those see who look at the server: the heap by classes, and what `watch` shows.

use super::*;

#[test]
fn the_heap_is_told_by_classes() {
    let mut server = Server::new();
    let large = "x".repeat(66_560);
    server.say("set a 0 0 1\r\nx\r\nset b 0 0 0\r\n\r\n");
    let slabs = server.say("stats slabs\r\n");
    for line in ["1:chunk_size 96", "1:used_chunks 2", "active_slabs 1"] {
        assert!(slabs.contains(&format!("STAT {line}\r\n")), "{slabs}");
    }
    let items = server.say("stats items\r\n");
    assert!(
        items.contains("STAT items:1:number 2\r\nSTAT items:1:mem_requested "),
        "{items}"
    );
    assert!(
        items.contains("STAT items:1:reclaimed 0\r\nEND\r\n"),
        "{items}"
    );
    server.say(&format!("set large 0 1 66560\r\n{large}\r\n"));
    server.now_ms += 2_000;
    server.say(&format!("set large 0 0 66560\r\n{large}\r\n"));
    let items = server.say("stats items\r\n");
    assert!(items.contains("STAT items:31:reclaimed 1\r\n"), "{items}");
}

#[test]
fn watchers_see_keys_and_connections() {
    let mut server = Server::new();
    let watchers = |server: &Server| {
        let all = server
            .shared
            .memcached
            .watchers
            .take(server.session.card(), true);
        let lines = String::from_utf8(all).expect("lines are ASCII");
        let what = lines.lines().map(|line| match line.split_once(" type=") {
            Some((start, what)) => {
                assert!(
                    start.starts_with("ts=") && start.contains(" gid="),
                    "{start}"
                );
                what.to_owned()
            }
            None => line.to_owned(),
        });
        what.collect::<Vec<_>>()
    };
    assert_eq!(server.say("watch nothing\r\n"), "ERROR\r\n");
    assert_eq!(
        server.say("watch evictions\r\n"),
        "CLIENT_ERROR watch commands not allowed\r\n"
    );
    assert!(
        server
            .say("version\r\nwatch\r\n")
            .ends_with("ERROR cannot pipeline other commands before watch\r\n")
    );
    // What follows the request is void.
    let watch = server.say("watch fetchers mutations connevents\r\nversion\r\n");
    assert_eq!(watch, "OK\r\n");
    assert_eq!(server.say("version\r\n"), "");
    let other = Server::session(&server.shared);
    let watcher = std::mem::replace(&mut server.session, other);
    server.say("set a,b 5 0 1\r\nx\r\nadd a,b 0 9 1\r\nx\r\nget a,b c\r\nms a,b 2 MR T7\r\nyz\r\n");
    let other = std::mem::replace(&mut server.session, watcher);
    assert_eq!(
        watchers(&server),
        [
            "item_get key=a%2Cb status=not_found clsid=0 cfd=3 size=0",
            "item_store key=a%2Cb status=stored cmd=set ttl=0 clsid=1 cfd=3 size=1",
            "item_get key=a%2Cb status=found clsid=1 cfd=3 size=1",
            "item_store key=a%2Cb status=not_stored cmd=add ttl=9 clsid=0 cfd=3 size=1",
            "item_get key=a%2Cb status=found clsid=1 cfd=3 size=1",
            "item_get key=c status=not_found clsid=0 cfd=3 size=0",
            "item_get key=a%2Cb status=found clsid=1 cfd=3 size=1",
            "item_store key=a%2Cb status=stored cmd=replace ttl=7 clsid=1 cfd=3 size=2",
        ]
    );
    let all = &server.shared.memcached.watchers;
    all.opened(&server.shared, other.card());
    all.closed(
        &server.shared,
        other.card(),
        super::super::CloseReason::Normal,
    );
    assert_eq!(
        watchers(&server),
        [
            "conn_new rip=127.0.0.1 rport=1 transport=tcp cfd=3",
            "conn_close rip=127.0.0.1 rport=1 transport=tcp reason=normal cfd=3",
        ]
    );
}

#[test]
fn watchers_that_do_not_read_miss_lines_and_are_told() {
    let mut server = Server::new();
    assert_eq!(server.say("watch\r\n"), "OK\r\n");
    let other = Server::session(&server.shared);
    let watcher = std::mem::replace(&mut server.session, other);
    let keys = format!("get {}\r\n", "k ".repeat(1_000));
    for _ in 0..10 {
        server.say(&keys);
    }
    let all = &server.shared.memcached.watchers;
    let first = all.take(watcher.card(), true);
    assert!(first.len() <= super::super::WATCHED_MAX_BYTES);
    let seen = first.split(|&byte| byte == b'\n').count() - 1;
    assert!(seen > 1_000 && seen < 10_000);
    server.say("get k\r\n");
    let all = &server.shared.memcached.watchers;
    let next = String::from_utf8(all.take(watcher.card(), true)).expect("lines are ASCII");
    assert!(
        next.starts_with(&format!("skipped={}\nts=", 10_000 - seen)),
        "{next}"
    );
    // One whose socket is full misses what waits, and what that said of misses before.
    for missed in 1..=3 {
        server.say("get k\r\n");
        let all = &server.shared.memcached.watchers;
        assert!(all.take(watcher.card(), false).is_empty(), "{missed}");
    }
    server.say("get k\r\n");
    let all = &server.shared.memcached.watchers;
    let next = String::from_utf8(all.take(watcher.card(), true)).expect("lines are ASCII");
    assert!(next.starts_with("skipped=3\nts="), "{next}");
    let crowd: Vec<_> = (0..25).map(|_| Server::session(&server.shared)).collect();
    let added = crowd
        .iter()
        .filter(|session| all.add(session.card(), 1))
        .count();
    assert_eq!(added, 19);
}
