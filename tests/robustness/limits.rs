//! Limits: connections, file descriptors, output buffers, memory, idle time, authentication.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pantala_tests::resp::{Conn, Value, encode};
use pantala_tests::server::{Kind, Options};

use super::{Bystander, info, wait_for};

#[test]
fn maxclients_refuses_with_the_usual_words() {
    let server = Options::new(Kind::Pantala).set("maxclients", "10").start();
    let mut first = server.conn();
    // The connections that asked whether the server is up may still be counted for a moment.
    wait_for("one client only", || {
        info(&mut first, "connected_clients") == "1"
    });
    let mut others: Vec<Conn> = (0..9).map(|_| server.conn()).collect();
    for conn in &mut others {
        assert_eq!(conn.cmd("PING").text(), "PONG");
    }
    for _ in 0..5 {
        let mut refused = server.conn();
        let got = refused.read_to_close().expect("an error, then the end");
        assert_eq!(
            String::from_utf8_lossy(&got),
            "-ERR max number of clients reached\r\n"
        );
    }
    assert_eq!(info(&mut first, "rejected_connections"), "5");
    assert_eq!(first.cmd("PING").text(), "PONG");
    others.pop();
    wait_for("a place is free again", || {
        Conn::open(server.port, Duration::from_secs(2))
            .and_then(|mut c| c.call(&["PING"]))
            .is_ok_and(|r| r.text() == "PONG")
    });
}

#[test]
fn out_of_file_descriptors() {
    let server = Options::new(Kind::Pantala).open_files(128).start();
    let bystander = Bystander::start(&server);
    let mut all = Vec::new();
    for _ in 0..300 {
        if let Ok(conn) = Conn::open(server.port, Duration::from_secs(2)) {
            all.push(conn);
        }
    }
    let mut served = 0;
    for conn in &mut all {
        if conn.send(&["PING"]).is_ok()
            && conn
                .stream()
                .set_read_timeout(Some(Duration::from_millis(if served < 20 {
                    2000
                } else {
                    50
                })))
                .is_ok()
        {
            served += usize::from(conn.read().is_ok_and(|r| r.text() == "PONG"));
        }
    }
    assert!(
        served >= 20,
        "only {served} clients were served with 128 file descriptors"
    );
    drop(all);
    assert!(bystander.stop() < Duration::from_secs(3));
    wait_for("new clients are accepted again", || {
        Conn::open(server.port, Duration::from_secs(2))
            .and_then(|mut c| c.call(&["PING"]))
            .is_ok_and(|r| r.text() == "PONG")
    });
}

#[test]
fn the_output_buffer_limit_closes() {
    let server = Options::new(Kind::Pantala).start();
    let bystander = Bystander::start(&server);
    let mut setup = server.conn();
    assert_eq!(
        setup
            .call(&[
                "CONFIG",
                "SET",
                "client-output-buffer-limit",
                "normal 1000000 0 0"
            ])
            .expect("a reply")
            .text(),
        "OK"
    );
    setup
        .call(&[b"SET".to_vec(), b"big".to_vec(), vec![b'v'; 3_000_000]])
        .expect("a reply");
    let mut greedy = server.conn();
    let _ = greedy.send_raw(&encode(&["GET", "big"]).repeat(50));
    // It does not read: beyond the limit the connection must end.
    wait_for("the greedy client is cut off", || {
        setup
            .cmd("CLIENT LIST")
            .text()
            .lines()
            .filter(|l| l.contains("cmd=get"))
            .count()
            <= 1
    });
    drop(greedy);
    assert!(bystander.stop() < Duration::from_secs(2));
}

/// Redis's "Obuf limit, KEYS stopped mid-run": the limit counts replies before the socket takes them.
#[test]
fn a_small_output_buffer_limit_closes_too() {
    let server = Options::new(Kind::Pantala).start();
    let mut setup = server.conn();
    let limit = [
        "CONFIG",
        "SET",
        "client-output-buffer-limit",
        "normal 100000 0 0",
    ];
    assert_eq!(setup.call(&limit).expect("a reply").text(), "OK");
    let big = vec![b'v'; 100_000];
    setup
        .call(&[b"SET".to_vec(), b"big".to_vec(), big])
        .expect("a reply");
    let mut greedy = server.conn_with(Duration::from_secs(5));
    greedy
        .send_raw(&encode(&["GET", "big"]))
        .expect("a request");
    assert_eq!(greedy.read_to_close().expect("closed in order"), b"");
    let mut modest = server.conn();
    assert_eq!(modest.cmd("PING").text(), "PONG");
}

#[test]
fn idle_clients_are_closed_after_the_timeout() {
    let server = Options::new(Kind::Pantala).set("timeout", "1").start();
    let mut idle = server.conn_with(Duration::from_secs(10));
    let mut busy = server.conn();
    let start = Instant::now();
    let watcher = std::thread::spawn(move || {
        let got = idle.read_to_close();
        (got, start.elapsed())
    });
    while !watcher.is_finished() {
        assert_eq!(busy.cmd("PING").text(), "PONG");
        std::thread::sleep(Duration::from_millis(100));
        assert!(start.elapsed() < Duration::from_secs(12));
    }
    let (got, took) = watcher.join().expect("the reader ends");
    assert_eq!(got.expect("closed in order"), b"");
    assert!(took >= Duration::from_millis(900), "{took:?}");
}

#[test]
fn maxmemory_refuses_writes_and_serves_reads() {
    let server = Options::new(Kind::Pantala)
        .set("maxmemory", "20mb")
        .set("maxmemory-policy", "noeviction")
        .start();
    let mut conn = server.conn();
    conn.cmd("SET small 1");
    let value = "v".repeat(100_000);
    let mut refused = None;
    for n in 0..1000 {
        let reply = conn
            .call(&["SET", &format!("fill{n}"), &value])
            .expect("a reply");
        if reply.is_error() {
            refused = Some((n, reply));
            break;
        }
    }
    let (count, error) = refused.expect("the limit is reached within 100 MB");
    assert_eq!(
        error.text(),
        "OOM command not allowed when used memory > 'maxmemory'."
    );
    assert!(
        count > 50,
        "only {count} values of 100 kB fitted into 20 MB"
    );
    assert_eq!(conn.cmd("GET small").text(), "1");
    for n in 0..count {
        conn.cmd(&format!("DEL fill{n}"));
    }
    wait_for("writes work again", || {
        conn.cmd("SET again 1").text() == "OK"
    });
}

#[test]
fn an_eviction_policy_keeps_writes_going() {
    let server = Options::new(Kind::Pantala)
        .set("maxmemory", "20mb")
        .set("maxmemory-policy", "allkeys-lru")
        .start();
    let mut conn = server.conn();
    let value = "v".repeat(10_000);
    for n in 0..5000 {
        let reply = conn
            .call(&["SET", &format!("fill{n}"), &value])
            .expect("a reply")
            .text();
        assert_eq!(
            reply,
            "OK",
            "after {n} values; {} evicted",
            info(&mut conn, "evicted_keys")
        );
    }
    let left = conn.cmd("DBSIZE").int().unwrap_or(0);
    assert!((300..2200).contains(&left), "{left} keys of 10 kB in 20 MB");
    assert!(
        info(&mut conn, "evicted_keys")
            .parse::<i64>()
            .is_ok_and(|n| n > 2000)
    );
}

#[test]
fn a_password_is_needed_for_everything_else() {
    let server = Options::new(Kind::Pantala)
        .set("requirepass", "secret")
        .start();
    let mut conn = server.conn();
    for command in ["GET k", "SET k v", "INFO", "MULTI", "FLUSHALL"] {
        assert_eq!(
            conn.cmd(command),
            Value::Error(b"NOAUTH Authentication required.".to_vec()),
            "{command}"
        );
    }
    assert!(
        conn.cmd("HELLO 3")
            .text()
            .starts_with("NOAUTH HELLO must be called with the client already authenticated")
    );
    assert_eq!(
        conn.cmd("AUTH wrong"),
        Value::Error(b"WRONGPASS invalid username-password pair or user is disabled.".to_vec())
    );
    // Before a password, large requests are refused at once.
    let mut stranger = server.conn();
    stranger.send_raw(b"*11\r\n").expect("the server reads");
    assert_eq!(
        stranger.read().expect("a reply").text(),
        "ERR Protocol error: unauthenticated multibulk length"
    );
    let mut stranger = server.conn();
    stranger
        .send_raw(b"*2\r\n$16385\r\n")
        .expect("the server reads");
    assert_eq!(
        stranger.read().expect("a reply").text(),
        "ERR Protocol error: unauthenticated bulk length"
    );
    assert_eq!(conn.cmd("AUTH secret").text(), "OK");
    assert_eq!(conn.cmd("SET k v").text(), "OK");
    let mut hello = server.conn();
    assert!(matches!(
        hello.cmd("HELLO 3 AUTH default secret"),
        Value::Map(_)
    ));
    assert_eq!(hello.cmd("GET k").text(), "v");
}

#[test]
fn ten_thousand_idle_connections() {
    const COUNT: u64 = 9_900;
    let server = Options::new(Kind::Pantala)
        .set("maxclients", "10000")
        .start();
    let bystander = Bystander::start(&server);
    let mut conn = server.conn();
    let before = server.resident_bytes();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("robustness/idle_connections.py");
    let mut child = Command::new("python3")
        .arg(script)
        .args([server.port.to_string(), COUNT.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is installed");
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert_eq!(line, "open\n");
    assert_eq!(
        info(&mut conn, "connected_clients"),
        (COUNT + 2).to_string()
    );
    let each = server.resident_bytes().saturating_sub(before) / COUNT;
    println!("{each} bytes for each idle connection");
    assert!(each < 25_000, "{each} bytes for each idle connection");
    drop(child.stdin.take());
    line.clear();
    output.read_line(&mut line).expect("a line");
    assert_eq!(line, "ok\n");
    assert!(child.wait().is_ok_and(|status| status.success()));
    wait_for("all are gone", || {
        info(&mut conn, "connected_clients") == "2"
    });
    assert!(bystander.stop() < Duration::from_secs(3));
}
