//! Clients that wait: for a helper thread, for the end of a pause, for what never comes. Their replies keep their order, and those who go
//! while they wait leave nothing behind.

use std::net::Shutdown;
use std::time::{Duration, Instant};

use pantala_tests::resp::{Value, encode};
use pantala_tests::server::{Kind, Options, Server};

use super::wait_for;

/// So many keys make `KEYS` a matter for a helper thread.
const MANY_KEYS: &str = "DEBUG POPULATE 20000";

fn pipeline(commands: &[&[&str]]) -> Vec<u8> {
    commands
        .iter()
        .flat_map(|command| encode(command))
        .collect()
}

#[test]
fn silence_holds_for_commands_of_helper_threads() {
    let server = Server::pantala();
    let mut conn = server.conn();
    assert_eq!(conn.cmd(MANY_KEYS).text(), "OK");
    for command in [&["KEYS", "nothing"][..], &["FLUSHALL"], &["GET", "key:1"]] {
        conn.send_raw(&pipeline(&[
            &["CLIENT", "REPLY", "SKIP"],
            command,
            &["PING"],
        ]))
        .expect("the server reads");
        let reply = conn.read().expect("a reply");
        assert_eq!(reply, Value::Simple(b"PONG".to_vec()), "{command:?}");
    }
}

#[test]
fn silence_holds_for_a_command_that_was_paused() {
    let server = Server::pantala();
    let (mut admin, mut conn) = (server.conn(), server.conn());
    assert_eq!(admin.cmd("CLIENT PAUSE 200 WRITE").text(), "OK");
    conn.send_raw(&pipeline(&[
        &["CLIENT", "REPLY", "SKIP"],
        &["SET", "k", "v"],
        &["GET", "k"],
    ]))
    .expect("the server reads");
    assert_eq!(conn.read().expect("a reply").text(), "v");
}

#[test]
fn who_waits_for_ever_and_leaves_is_closed() {
    let server = Server::pantala();
    let mut conn = server.conn_with(Duration::from_secs(5));
    conn.send(&["WAIT", "1", "0"]).expect("the server reads");
    std::thread::sleep(Duration::from_millis(100));
    conn.stream()
        .shutdown(Shutdown::Write)
        .expect("half a socket closes");
    assert_eq!(conn.read_to_close().expect("closed"), b"");
}

#[test]
fn half_closed_clients_get_the_reply_of_a_helper_thread() {
    let server = Server::pantala();
    let mut conn = server.conn();
    assert_eq!(conn.cmd(MANY_KEYS).text(), "OK");
    conn.send(&["KEYS", "nothing"]).expect("the server reads");
    conn.stream()
        .shutdown(Shutdown::Write)
        .expect("half a socket closes");
    assert_eq!(conn.read_to_close().expect("a reply"), b"*0\r\n");
}

#[test]
fn paused_commands_of_clients_that_are_gone_do_not_run() {
    let server = Server::pantala();
    let (mut admin, mut gone, mut killed) = (server.conn(), server.conn(), server.conn());
    let id = killed.cmd("CLIENT ID").int().expect("a number");
    assert_eq!(admin.cmd("CLIENT PAUSE 60000 WRITE").text(), "OK");
    gone.send(&["SET", "gone", "v"]).expect("the server reads");
    killed
        .send(&["SET", "killed", "v"])
        .expect("the server reads");
    std::thread::sleep(Duration::from_millis(100));
    drop(gone);
    assert_eq!(admin.cmd(&format!("CLIENT KILL ID {id}")).int(), Some(1));
    wait_for("both are gone", || {
        admin.cmd("CLIENT LIST").text().trim().lines().count() == 1
    });
    assert_eq!(admin.cmd("CLIENT UNPAUSE").text(), "OK");
    std::thread::sleep(Duration::from_millis(100));
    assert!(admin.cmd("GET gone").is_null());
    assert!(admin.cmd("GET killed").is_null());
}

/// A long backlog is a client's own affair: others have their turn in between.
#[test]
fn a_long_backlog_keeps_nobody_waiting() {
    let server = Options::new(Kind::Pantala).set("threads", "1").start();
    let mut setup = server.conn();
    let value = vec![b'v'; 500_000];
    setup
        .call(&[b"SET".to_vec(), b"large".to_vec(), value])
        .expect("a reply");
    assert_eq!(setup.cmd("CLIENT PAUSE 300 ALL").text(), "OK");
    let mut greedy = server.conn();
    // Each takes some 50 µs and stays below what a helper thread is asked for; all of them take a second and more.
    let backlog = encode(&["BITCOUNT", "large"]).repeat(20_000);
    greedy.send_raw(&backlog).expect("the server reads");
    std::thread::sleep(Duration::from_millis(400));
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        let start = Instant::now();
        assert_eq!(setup.cmd("PING").text(), "PONG");
        slowest = slowest.max(start.elapsed());
    }
    assert!(slowest < Duration::from_millis(150), "{slowest:?}");
    for _ in 0..20_000 {
        assert_eq!(greedy.read().expect("a reply").int(), Some(5 * 500_000));
    }
}

/// The memory of what was deleted counts until it is freed, but nothing else may suffer for it.
#[test]
fn a_flush_makes_room_at_once() {
    let server = Options::new(Kind::Pantala)
        .set("maxmemory", "30mb")
        .set("maxmemory-policy", "noeviction")
        .start();
    let mut conn = server.conn();
    let full = (0..).find(|n| conn.cmd(&format!("SETRANGE k{n} 99999 x")).is_error());
    assert!(full.is_some());
    assert_eq!(conn.cmd("FLUSHALL").text(), "OK");
    assert_eq!(conn.cmd("SET k v").text(), "OK");
}

#[test]
fn refusals_of_volatile_policies_are_quick() {
    let server = Options::new(Kind::Pantala)
        .set("maxmemory", "10mb")
        .set("maxmemory-policy", "volatile-lru")
        .start();
    let mut conn = server.conn();
    let mut n = 0;
    while !conn.cmd(&format!("SETRANGE k{n} 99 x")).is_error() {
        n += 1;
    }
    let start = Instant::now();
    for n in 0..1_000 {
        assert!(conn.cmd(&format!("SET other{n} v")).is_error());
    }
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(conn.cmd("DEL k1").int(), Some(1));
}

#[test]
fn questions_of_clients_that_are_gone_are_not_answered() {
    let server = Server::pantala();
    let mut conn = server.conn();
    assert_eq!(conn.cmd("DEBUG POPULATE 100000").text(), "OK");
    // Every star goes back over the whole name.
    const SLOW: &str = "*k*e*y*:*1*2*3*4*5*6*7*8*9*0*z";
    let start = Instant::now();
    assert_eq!(
        conn.cmd(&format!("KEYS {SLOW}")).items().map(<[_]>::len),
        Some(0)
    );
    let one = start.elapsed();
    let askers: Vec<_> = (0..200)
        .map(|_| {
            let mut asker = server.conn();
            assert_eq!(asker.cmd("PING").text(), "PONG");
            asker.send(&["KEYS", SLOW]).expect("the server reads");
            asker
        })
        .collect();
    assert_eq!(conn.cmd("CLIENT KILL TYPE normal").int(), Some(200));
    drop(askers);
    let start = Instant::now();
    assert_eq!(
        conn.cmd(&format!("KEYS {SLOW}")).items().map(<[_]>::len),
        Some(0)
    );
    let waited = start.elapsed();
    assert!(waited < one * 40, "{waited:?}, alone {one:?}");
}
