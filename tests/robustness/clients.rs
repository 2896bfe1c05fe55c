//! Clients that are slow, half gone, silent, or send nonsense.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use pantala_tests::quote::escape;
use pantala_tests::resp::{Value, encode};
use pantala_tests::rng::{Rng, seed_of_run};
use pantala_tests::server::Server;

use super::{Bystander, wait_for};

#[test]
fn one_byte_at_a_time() {
    let server = Server::pantala();
    let bystander = Bystander::start(&server);
    let mut conn = server.conn();
    for byte in encode(&["SET", "slow", "va\r\nlue"])
        .iter()
        .chain(b"GET slow\r\n")
    {
        conn.send_raw(&[*byte]).expect("the server reads");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(conn.read().expect("a reply").text(), "OK");
    assert_eq!(conn.read().expect("a reply").text(), "va\r\nlue");
    assert!(bystander.stop() < Duration::from_secs(2));
}

#[test]
fn many_clients_that_stop_in_the_middle_of_a_command() {
    let server = Server::pantala();
    let bystander = Bystander::start(&server);
    let halves: Vec<_> = (0..200)
        .map(|_| {
            let mut conn = server.conn();
            conn.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100\r\nabc")
                .expect("the server reads");
            conn
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    drop(halves);
    let mut conn = server.conn();
    assert!(conn.cmd("GET k").is_null(), "half a command must not run");
    assert!(bystander.stop() < Duration::from_secs(2));
}

#[test]
fn half_closed_sockets_still_get_their_replies() {
    let server = Server::pantala();
    let mut conn = server.conn();
    let mut bytes = Vec::new();
    for n in 0..100 {
        bytes.extend(encode(&["SET", &format!("half{n}"), "x"]));
    }
    bytes.extend(encode(&["GET", "half99"]));
    conn.send_raw(&bytes).expect("the server reads");
    conn.stream()
        .shutdown(Shutdown::Write)
        .expect("half a socket closes");
    let got = conn.read_to_close().expect("replies, then the end");
    // Redis closes as soon as it sees the end, so replies may be missing; what comes must be whole replies in order.
    let expect = [b"+OK\r\n".repeat(100), b"$1\r\nx\r\n".to_vec()].concat();
    assert!(expect.starts_with(&got), "{}", escape(&got));
    let mut other = server.conn();
    assert_eq!(other.cmd("GET half99").text(), "x");
}

#[test]
fn a_client_that_closes_without_reading_harms_nobody() {
    let server = Server::pantala();
    let bystander = Bystander::start(&server);
    let mut setup = server.conn();
    setup
        .call(&[b"SET".to_vec(), b"big".to_vec(), vec![b'v'; 200_000]])
        .expect("a reply");
    for _ in 0..50 {
        let mut conn = server.conn();
        conn.send_raw(&encode(&["GET", "big"]).repeat(20))
            .expect("the server reads");
        drop(conn);
    }
    assert!(bystander.stop() < Duration::from_secs(2));
    wait_for("the connections are gone", || {
        setup
            .cmd("CLIENT LIST")
            .text()
            .lines()
            .filter(|l| !l.is_empty())
            .count()
            <= 2
    });
}

#[test]
fn a_client_that_never_reads_stops_being_read() {
    let server = Server::pantala();
    let bystander = Bystander::start(&server);
    let mut setup = server.conn();
    setup
        .call(&[b"SET".to_vec(), b"big".to_vec(), vec![b'v'; 100_000]])
        .expect("a reply");
    let before = server.resident_bytes();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("accepted");
    stream
        .set_write_timeout(Some(Duration::from_millis(500)))
        .expect("a valid timeout");
    // 10,000 replies of 100 kB would be 1 GB.
    let batch = encode(&["GET", "big"]).repeat(100);
    let mut sent = 0;
    for _ in 0..100 {
        if stream.write_all(&batch).is_err() {
            break;
        }
        sent += 100;
    }
    std::thread::sleep(Duration::from_millis(300));
    let grown = server.resident_bytes().saturating_sub(before);
    // A plain Redis has no limit for ordinary clients and keeps all of it; that is its documented behaviour, ours is back-pressure.
    let oracle = std::env::var_os("PANTALA_BIN_IS_ORACLE").is_some();
    assert!(
        oracle || grown < 100 << 20,
        "{sent} requests were taken, memory grew by {grown} bytes"
    );
    // It gets everything when it reads at last.
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("a valid timeout");
    let mut first = [0; 16];
    stream.read_exact(&mut first).expect("the first reply");
    assert_eq!(&first, b"$100000\r\nvvvvvvv");
    drop(stream);
    assert!(bystander.stop() < Duration::from_secs(3));
}

#[test]
fn nonsense_gets_an_error_or_is_closed() {
    let server = Server::pantala();
    let bystander = Bystander::start(&server);
    for (bytes, expect) in [
        (&b"*-5\r\nPING\r\n"[..], "+PONG\r\n"),
        (
            b"*x\r\n",
            "-ERR Protocol error: invalid multibulk length\r\n",
        ),
        (
            b"*99999999999\r\n",
            "-ERR Protocol error: invalid multibulk length\r\n",
        ),
        (
            b"*1\r\nPING\r\n",
            "-ERR Protocol error: expected '$', got 'P'\r\n",
        ),
        (
            b"*1\r\n$-1\r\n",
            "-ERR Protocol error: invalid bulk length\r\n",
        ),
        (
            b"*1\r\n$99999999999\r\n",
            "-ERR Protocol error: invalid bulk length\r\n",
        ),
        (
            b"SET k \"open\r\n",
            "-ERR Protocol error: unbalanced quotes in request\r\n",
        ),
        (b"\r\n\r\nPING\r\n", "+PONG\r\n"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", ""),
        (b"POST / HTTP/1.1\r\n", ""),
    ] {
        let mut conn = server.conn_with(Duration::from_secs(5));
        conn.send_raw(bytes).expect("the server reads");
        conn.stream()
            .shutdown(Shutdown::Write)
            .expect("half a socket closes");
        let got = conn
            .read_to_close()
            .unwrap_or_else(|error| panic!("{}: {error}", escape(bytes)));
        // `GET /` is a command with an odd key before it is a request of a browser.
        if !expect.is_empty() {
            assert_eq!(escape(&got), escape(expect.as_bytes()), "{}", escape(bytes));
        }
    }
    let mut rng = Rng::new(seed_of_run("nonsense"));
    for _ in 0..300 {
        let mut conn = server.conn_with(Duration::from_secs(5));
        let bytes: Vec<u8> = (0..rng.below(400))
            .map(|_| *rng.pick(b"*$:+-0123456789\r\n\r\n\r\nPINGSET \"'\x00\xff"))
            .collect();
        // The server may close at the first wrong byte.
        let _ = conn.send_raw(&bytes);
        let _ = conn.stream().shutdown(Shutdown::Write);
        let _ = conn.read_to_close();
    }
    assert!(bystander.stop() < Duration::from_secs(2));
}

#[test]
fn many_connections_come_and_go() {
    let server = Server::pantala();
    let bystander = Bystander::start(&server);
    for _ in 0..20 {
        let mut all: Vec<_> = (0..100).map(|_| server.conn()).collect();
        for conn in &mut all {
            conn.send(&["PING"]).expect("the server reads");
        }
        for conn in &mut all {
            assert_eq!(
                conn.read().expect("a reply"),
                Value::Simple(b"PONG".to_vec())
            );
        }
    }
    assert!(bystander.stop() < Duration::from_secs(2));
}

/// A HyperLogLog is a string that anyone can write to: what is broken gets an error or an estimate, and the server goes on.
#[test]
fn broken_hyperloglogs_do_no_harm() {
    let server = Server::pantala();
    let mut rng = Rng::new(seed_of_run("broken hyperloglogs"));
    let mut conn = server.conn();
    for round in 0..2000 {
        let mut add = vec!["PFADD".to_owned(), "h".to_owned()];
        // Few elements keep it sparse, many make it dense.
        let count = if round % 10 == 0 { 3000 } else { rng.below(30) };
        add.extend((0..count).map(|n| format!("{round}:{n}")));
        conn.call(&add).expect("a reply");
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(60).to_string().into_bytes();
            let bytes: Vec<u8> = (0..1 + rng.below(8))
                .map(|_| rng.next_u64() as u8)
                .collect();
            let spoil = match rng.below(3) {
                0 => vec![b"APPEND".to_vec(), b"h".to_vec(), bytes],
                1 => vec![b"SETRANGE".to_vec(), b"h".to_vec(), at, bytes],
                _ => vec![b"SETBIT".to_vec(), b"h".to_vec(), at, b"1".to_vec()],
            };
            conn.call(&spoil).expect("a reply");
        }
        for command in [
            "PFCOUNT h",
            "PFADD h x",
            "PFMERGE m h",
            "PFCOUNT h m",
            "PFDEBUG GETREG h",
            "GET h",
            "DEL h m",
        ] {
            let reply = conn.cmd(command);
            let right = reply.int().is_some()
                || reply.is_error()
                || reply.bytes().is_some()
                || reply.items().is_some();
            assert!(right, "{command}: {}", reply.show());
        }
    }
}
