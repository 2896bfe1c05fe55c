//! Subscribers that do not read: closed at their own limit, to nobody else's harm.

use std::time::{Duration, Instant};

use pantala_tests::resp::Conn;
use pantala_tests::server::{Kind, Options, Server};

fn subscriber(server: &Server, name: &str) -> Conn {
    let mut conn = server.conn();
    conn.send(&["SUBSCRIBE", name]).expect("the server reads");
    conn.read().expect("a confirmation");
    conn
}

/// Publishes until the number of receivers falls, and says how many messages were sent.
fn publish_until_dropped(server: &Server, payload: &str, all: i64, limit: Duration) -> usize {
    let mut publisher = server.conn();
    let end = Instant::now() + limit;
    let mut sent = 0;
    loop {
        let receivers = publisher.call(&["PUBLISH", "x", payload]).expect("a reply");
        sent += 1;
        if receivers.int() != Some(all) {
            assert_eq!(receivers.int(), Some(all - 1));
            return sent;
        }
        assert!(Instant::now() < end, "not closed after {sent} messages");
    }
}

#[test]
fn one_stuck_subscriber_is_cut_off_and_slows_nobody() {
    let server = Options::new(Kind::Pantala)
        .set("threads", "2")
        .set("client-output-buffer-limit", "pubsub 4mb 0 0")
        .start();
    let stuck = subscriber(&server, "x");
    let mut readers: Vec<_> = (0..4).map(|_| subscriber(&server, "x")).collect();
    let payload = "p".repeat(10_000);
    let reading: Vec<_> = readers
        .drain(..)
        .map(|mut conn| {
            std::thread::spawn(move || {
                let mut count = 0;
                loop {
                    let message = conn.read().expect("a message");
                    let items = message.items().expect("an array").to_vec();
                    if items[2].text() == "end" {
                        return count;
                    }
                    assert_eq!(items[2].text().len(), 10_000);
                    count += 1;
                }
            })
        })
        .collect();
    let sent = publish_until_dropped(&server, &payload, 5, Duration::from_secs(30));
    // The limit, and what the kernel holds for the connection (at most some 10 MB), in messages of 10 kB.
    assert!((400..3_000).contains(&sent), "closed after {sent} messages");
    let mut publisher = server.conn();
    assert_eq!(publisher.cmd("PUBLISH x end").int(), Some(4));
    for reader in reading {
        assert_eq!(
            reader.join().expect("a reader ends well"),
            sent,
            "every message reaches every other subscriber"
        );
    }
    let info = publisher.cmd("INFO stats").text();
    assert!(
        info.contains("client_output_buffer_limit_disconnections:1"),
        "{info}"
    );
    drop(stuck);
}

#[test]
fn the_soft_limit_holds_for_subscribers() {
    let server = Options::new(Kind::Pantala)
        .set("client-output-buffer-limit", "pubsub 0 64kb 1")
        .start();
    let _stuck = subscriber(&server, "x");
    let mut publisher = server.conn();
    let payload = "p".repeat(100_000);
    // More than the kernel takes.
    for _ in 0..200 {
        publisher
            .call(&["PUBLISH", "x", &payload])
            .expect("a reply");
    }
    let end = Instant::now() + Duration::from_secs(10);
    while publisher.cmd("PUBSUB NUMSUB x").items().expect("pairs")[1].int() != Some(0) {
        assert!(Instant::now() < end, "not closed");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_client_that_publishes_to_itself_gets_the_reply_first() {
    let server = Server::pantala();
    let mut conn = server.conn();
    conn.cmd("HELLO 3");
    conn.send(&["SUBSCRIBE", "x"]).expect("the server reads");
    conn.read().expect("a confirmation");
    conn.cmd("MULTI");
    conn.cmd("PUBLISH x one");
    conn.cmd("PUBLISH x two");
    let reply = conn.cmd("EXEC");
    assert_eq!(reply.show(), "*[:1, :1]");
    for expected in ["one", "two"] {
        let message = conn.read().expect("a message");
        assert_eq!(message.items().expect("a push")[2].text(), expected);
    }
}

#[test]
fn all_subscribers_see_one_order() {
    let server = Options::new(Kind::Pantala).set("threads", "4").start();
    let subscribers: Vec<_> = (0..8).map(|_| subscriber(&server, "x")).collect();
    const PUBLISHERS: usize = 4;
    const EACH: usize = 500;
    let publishers: Vec<_> = (0..PUBLISHERS)
        .map(|who| {
            let mut conn = server.conn();
            std::thread::spawn(move || {
                for n in 0..EACH {
                    conn.send(&["PUBLISH", "x", &format!("{who}:{n}")])
                        .expect("the server reads");
                }
                for _ in 0..EACH {
                    assert_eq!(conn.read().expect("a reply").int(), Some(8));
                }
            })
        })
        .collect();
    let orders: Vec<Vec<String>> = subscribers
        .into_iter()
        .map(|mut conn| {
            let texts = (0..PUBLISHERS * EACH).map(|_| {
                let message = conn.read().expect("a message");
                message.items().expect("an array")[2].text()
            });
            texts.collect()
        })
        .collect();
    for publisher in publishers {
        publisher.join().expect("a publisher ends well");
    }
    for order in &orders {
        assert!(order == &orders[0], "two subscribers saw different orders");
    }
    for who in 0..PUBLISHERS {
        let own = orders[0]
            .iter()
            .filter(|text| text.starts_with(&format!("{who}:")));
        assert!(
            own.enumerate()
                .all(|(n, text)| *text == format!("{who}:{n}")),
            "a publisher's messages keep their order"
        );
    }
}

#[test]
fn who_subscribes_and_leaves_while_others_publish_gets_exactly_what_it_should() {
    let server = Options::new(Kind::Pantala).set("threads", "3").start();
    let mut publisher = server.conn();
    let mut others: Vec<_> = (0..6).map(|_| subscriber(&server, "x")).collect();
    for round in 0..300 {
        let mut late = server.conn();
        let before = format!("before{round}");
        assert_eq!(
            publisher
                .call(&["PUBLISH", "x", &before])
                .expect("a reply")
                .int(),
            Some(6)
        );
        late.cmd("SUBSCRIBE x");
        let during = format!("during{round}");
        assert_eq!(
            publisher
                .call(&["PUBLISH", "x", &during])
                .expect("a reply")
                .int(),
            Some(7)
        );
        late.send(&["UNSUBSCRIBE", "x"]).expect("the server reads");
        let first = late.read().expect("the message");
        assert_eq!(first.items().expect("an array")[2].text(), during);
        let second = late.read().expect("the confirmation");
        assert_eq!(second.items().expect("an array")[0].text(), "unsubscribe");
    }
    for conn in &mut others {
        for _ in 0..600 {
            conn.read().expect("a message");
        }
    }
}
