//! `watch`: both servers tell the same about the same requests, but for times, numbers of their own, and the order of events of different connections.

use std::time::{Duration, Instant};

use pantala_tests::memcache::McConn;
use pantala_tests::server::{Kind, Options, Server};

/// What is done while somebody watches.
const REQUESTS: &[&str] = &[
    "set a 0 0 2\r\nhi\r\n",
    "get a b\r\n",
    "gets a\r\n",
    "add a 0 0 1\r\nx\r\n",
    "replace z%z 0 0 1\r\nx\r\n",
    "append a 0 0 1\r\nx\r\n",
    "cas a 0 0 1 9999999\r\nx\r\n",
    "incr a 1\r\n",
    "delete a\r\n",
    "touch a 10\r\n",
    "mg k v\r\n",
    "ms k,1 2 T50\r\nab\r\n",
    "mg k,1 v\r\n",
    "md k,1\r\n",
];

/// A line without what cannot be the same.
fn comparable(line: &str) -> String {
    let words = line.split_ascii_whitespace().map(|word| {
        let name = word.split('=').next().unwrap_or_default();
        match name {
            "ts" | "gid" | "cfd" | "rport" | "clsid" => format!("{name}="),
            _ => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn line(watcher: &mut McConn) -> String {
    let line = watcher.read_reply().expect("a line within the time");
    String::from_utf8_lossy(&line).into_owned()
}

/// What a watcher is told.
fn told(server: &Server) -> Vec<String> {
    let (mut watcher, mut client) = (server.mc(), server.mc());
    // Whoever is accepted later than the watcher begins would be told.
    client.call(b"version\r\n").expect("a reply");
    let watch = watcher.call(b"watch fetchers mutations connevents\r\n");
    assert_eq!(watch.expect("a reply"), b"OK\r\n");
    for request in REQUESTS {
        client.call(request.as_bytes()).expect("a reply");
    }
    let mut guest = server.mc();
    guest.call(b"version\r\n").expect("a reply");
    drop(guest);
    client.call(b"get the-end\r\n").expect("a reply");
    let mut lines = Vec::new();
    let until = Instant::now() + Duration::from_secs(10);
    while !(lines.iter().any(|l: &String| l.contains("key=the-end"))
        && lines.iter().any(|l| l.contains("type=conn_close")))
    {
        assert!(Instant::now() < until, "{lines:#?}");
        lines.push(comparable(&line(&mut watcher)));
    }
    lines.sort();
    lines
}

#[test]
fn watchers_are_told_the_same() {
    let (ours, theirs) = super::servers();
    assert_eq!(told(&ours), told(&theirs));
}

#[test]
fn a_watcher_that_does_not_read_costs_little_and_is_told_what_it_missed() {
    let server = Options::new(Kind::Pantala).with_memcached().start();
    let (mut watcher, mut client) = (server.mc(), server.mc());
    assert_eq!(watcher.call(b"watch\r\n").expect("a reply"), b"OK\r\n");
    let before = server.resident_bytes();
    // Some 20 MB of lines.
    let gets = format!("get{}\r\n", " k".repeat(1_000));
    for _ in 0..300 {
        client.call(gets.as_bytes()).expect("a reply");
    }
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < 8 << 20, "{grown} bytes");
    // Once there is room again, the next event tells what was missed: long before the last line that waits is read.
    // The first report may cover little, when there was room for a moment; all reports together cover most of what there was.
    let (mut seen, mut skipped, mut events) = (0_u64, 0_u64, 300_000_u64);
    while skipped <= 10_000 {
        if seen % 16 == 0 {
            client.call(b"get k\r\n").expect("a reply");
            events += 1;
        }
        match line(&mut watcher).trim_end().strip_prefix("skipped=") {
            Some(count) => skipped += count.parse::<u64>().expect("a number"),
            None => seen += 1,
        }
    }
    assert!(
        seen + skipped <= events,
        "{skipped} skipped, {seen} seen of {events}"
    );
}
