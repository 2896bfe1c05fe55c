//! `SCAN`, `KEYS`, `RANDOMKEY`: what goes through the keyspace while it changes and while shards are busy.

mod common;

use common::Server;
use std::collections::{BTreeMap, BTreeSet};

/// What a `SCAN` answered: the cursor and the keys.
fn scan(server: &mut Server, cursor: u64, options: &str) -> (u64, Vec<String>) {
    let reply = server.say(&format!("SCAN {cursor}{options}"));
    let mut words = reply.split(' ');
    assert_eq!(words.next(), Some("*2"), "{reply}");
    let mut bulk = || {
        words.next()?.strip_prefix('$').map(|_| ())?;
        words.next()
    };
    let next: u64 = bulk().and_then(|text| text.parse().ok()).expect("a cursor");
    assert!(next < 1 << 52, "cursors are exact in a double");
    let keys = reply.split(' ').skip(4).collect::<Vec<_>>();
    (
        next,
        keys.chunks(2).map(|pair| pair[1].to_owned()).collect(),
    )
}

/// A whole iteration; `between` runs after each call.
fn scan_all(
    server: &mut Server,
    options: &str,
    mut between: impl FnMut(&mut Server),
) -> BTreeMap<String, usize> {
    let mut seen = BTreeMap::new();
    let mut cursor = 0;
    for _ in 0..1_000_000 {
        let (next, keys) = scan(server, cursor, options);
        for key in keys {
            *seen.entry(key).or_insert(0) += 1;
        }
        if next == 0 {
            return seen;
        }
        assert!(next > cursor, "a scan goes forward");
        cursor = next;
        between(server);
    }
    panic!("a scan ends");
}

fn fill(server: &mut Server, prefix: &str, count: usize) -> BTreeSet<String> {
    (0..count)
        .map(|n| {
            let key = format!("{prefix}{n}");
            server.run(&[b"SET", key.as_bytes(), b"v"]);
            key
        })
        .collect()
}

#[test]
fn a_scan_lists_each_key_once_when_nothing_changes() {
    for held in [false, true] {
        let mut server = Server::new();
        server.held = held;
        assert_eq!(scan(&mut server, 0, ""), (0, vec![]));
        let keys = fill(&mut server, "key:", 3000);
        for count in [1, 3, 10, 500, 1_000_000] {
            let seen = scan_all(&mut server, &format!(" COUNT {count}"), |_| {});
            assert!(seen.values().all(|times| *times == 1), "COUNT {count}");
            assert!(seen.keys().eq(keys.iter()), "COUNT {count}");
        }
    }
}

#[test]
fn a_scan_lists_what_stays_while_the_rest_comes_and_goes() {
    let mut server = Server::new();
    let stay = fill(&mut server, "stay:", 400);
    for (grow_by, shrink_by) in [(300, 0), (0, 250), (200, 190)] {
        let (mut made, mut gone) = (0, 0);
        let seen = scan_all(&mut server, " COUNT 7", |server| {
            for _ in 0..grow_by {
                server.run(&[b"SET", format!("go:{made}").as_bytes(), b"v"]);
                made = (made + 1) % 20_000;
            }
            for _ in 0..shrink_by {
                server.run(&[b"DEL", format!("go:{gone}").as_bytes()]);
                gone = (gone + 1) % 20_000;
            }
        });
        let missed: Vec<_> = stay.iter().filter(|key| !seen.contains_key(*key)).collect();
        assert!(missed.is_empty(), "+{grow_by} -{shrink_by}: {missed:?}");
    }
}

#[test]
fn filters_of_scan() {
    let mut server = Server::new();
    fill(&mut server, "a:", 20);
    fill(&mut server, "b:", 20);
    server.run(&[b"SET", b"large", &[b'x'; 5000]]);
    server.say("PEXPIRE a:3 500");
    let mut list = |options: &str| {
        scan_all(&mut server, options, |_| {})
            .into_keys()
            .collect::<Vec<_>>()
    };
    assert_eq!(list(" MATCH a:?").len(), 10);
    assert_eq!(list(" MATCH *").len(), 41);
    assert_eq!(list(" TYPE STRING").len(), 41);
    assert_eq!(list(" TYPE list").len(), 0);
    assert_eq!(list(" TYPE nonsense").len(), 0);
    assert_eq!(list(" ATTR v"), ["a:3"]);
    assert_eq!(list(" ATTR p").len(), 40);
    assert_eq!(list(" MINMSZ 4000"), ["large"]);
    assert_eq!(list(" MATCH b:* COUNT 3 MATCH a:* COUNT 100").len(), 20);
    server.now_ms += 501;
    assert_eq!(server.say("KEYS a:3"), "*0");
    assert_eq!(
        scan_all(&mut server, "", |_| {}).len(),
        40,
        "the expired are not listed"
    );
}

#[test]
fn what_scan_refuses() {
    let mut server = Server::new();
    fill(&mut server, "k", 5);
    for (line, reply) in [
        ("SCAN x", "-ERR invalid cursor"),
        ("SCAN x FOO", "-ERR invalid cursor"),
        ("SCAN -1", "-ERR invalid cursor"),
        ("SCAN 0x1", "-ERR invalid cursor"),
        ("SCAN 18446744073709551616", "-ERR invalid cursor"),
        ("SCAN 0 COUNT", "-ERR syntax error"),
        ("SCAN 0 COUNT 0", "-ERR syntax error"),
        ("SCAN 0 COUNT -5", "-ERR syntax error"),
        (
            "SCAN 0 COUNT x",
            "-ERR value is not an integer or out of range",
        ),
        ("SCAN 0 MATCH", "-ERR syntax error"),
        ("SCAN 0 NOVALUES", "-ERR syntax error"),
        ("SCAN 0 ATTR z", "-ERR syntax error"),
        // Dragonfly's `a` and `u` need a mark that only memcached's clients set here.
        ("SCAN 0 ATTR a", "-ERR syntax error"),
        // Any number is a cursor; one that none of our calls gave ends the scan.
        ("SCAN 18446744073709551615", "*2 $1 0 *0"),
        ("SCAN 9007199254740993", "*2 $1 0 *0"),
    ] {
        assert_eq!(server.say(line), reply, "{line}");
    }
}

#[test]
fn one_call_on_a_worker_is_bounded() {
    let mut server = Server::new();
    fill(&mut server, "k", 40_000);
    let (next, keys) = scan(&mut server, 0, " COUNT 1000000000");
    assert!(
        next != 0 && (16_000..20_000).contains(&keys.len()),
        "{}",
        keys.len()
    );
    server.held = true;
    assert_eq!(
        scan(&mut server, 0, " COUNT 1000000000").1.len(),
        40_000,
        "where all is held anyway, as asked"
    );
}

#[test]
fn a_busy_shard_ends_a_call_early_or_is_reported() {
    let server = &mut Server::new();
    fill(server, "k", 1000);
    let shards = server.store.shards() as u16;
    assert!(shards > 2);
    let busy = "-BUSY try again";
    // The harness keeps the store; the borrow must outlive single calls, so each command runs beside one.
    let beside = |server: &mut Server, shard: u16, line: &str| server.say_while_busy(shard, line);
    assert_eq!(beside(server, 0, "SCAN 0 COUNT 100000"), busy);
    assert_eq!(beside(server, 1, "KEYS *"), busy);
    assert_eq!(beside(server, 3, "DBSIZE"), ":1000");
    let reply = beside(server, 2, "SCAN 0 COUNT 100000");
    let cursor = server.store.encode_cursor(1, None);
    assert!(
        reply.starts_with(&format!("*2 ${} {cursor} ", cursor.to_string().len())),
        "{}",
        &reply[..40]
    );
    let first = reply.split(' ').skip(4).count() / 2;
    let (next, rest) = scan(server, cursor, " COUNT 100000");
    assert_eq!((next, first + rest.len()), (0, 1000));
    for _ in 0..20 {
        assert!(
            beside(server, 2, "RANDOMKEY").starts_with('$'),
            "another shard is drawn"
        );
    }
}

#[test]
fn patterns_of_keys() {
    for held in [false, true] {
        let mut server = Server::new();
        server.held = held;
        for key in ["one", "two", "three", "t*o", "[x]"] {
            server.run(&[b"SET", key.as_bytes(), b"v"]);
        }
        let list = |server: &mut Server, pattern: &str| {
            let reply = server.say(&format!("KEYS {pattern}"));
            let keys: BTreeSet<String> = reply
                .split(' ')
                .skip(1)
                .filter(|word| !word.starts_with('$'))
                .map(str::to_owned)
                .collect();
            keys.into_iter().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(list(&mut server, "*"), "[x] one t*o three two");
        assert_eq!(list(&mut server, "t?o"), "t*o two");
        assert_eq!(list(&mut server, "t\\*o"), "t*o");
        assert_eq!(list(&mut server, "[ot]*e"), "one three");
        assert_eq!(list(&mut server, "two"), "two");
        assert_eq!(list(&mut server, "four"), "");
        server.say("PEXPIRE two 5");
        server.now_ms += 6;
        assert_eq!(list(&mut server, "two"), "");
        assert_eq!(list(&mut server, "tw*"), "");
    }
}

#[test]
fn random_keys_are_even() {
    let mut server = Server::new();
    assert_eq!(server.say("RANDOMKEY"), "$-1");
    fill(&mut server, "k", 64);
    let mut drawn: BTreeMap<String, u32> = BTreeMap::new();
    const DRAWS: u32 = 64 * 200;
    for _ in 0..DRAWS {
        *drawn.entry(server.say("RANDOMKEY")).or_default() += 1;
    }
    assert_eq!(drawn.len(), 64);
    // Chi-square with 63 degrees of freedom: above 120 about once in 50,000 runs, and the seed is fixed.
    let chi: f64 = drawn
        .values()
        .map(|count| (f64::from(*count) - 200.0).powi(2) / 200.0)
        .sum();
    assert!(chi < 120.0, "{chi}");
}

#[test]
fn random_keys_have_not_expired() {
    let mut server = Server::new();
    fill(&mut server, "gone", 3000);
    for n in 0..3000 {
        server.say(&format!("PEXPIRE gone{n} 5"));
    }
    server.now_ms += 6;
    assert_eq!(server.say("RANDOMKEY"), "$-1");
    server.say("SET live v");
    for _ in 0..5 {
        assert_eq!(
            server.say("RANDOMKEY"),
            "$4 live",
            "the only one, however many have expired"
        );
    }
}
