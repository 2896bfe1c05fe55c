//! Huge values, huge pipelines, huge argument lists.

use std::io::Write;
use std::time::Duration;

use pantala_tests::resp::{Conn, Value, encode};
use pantala_tests::server::{Kind, Options, Server};

use super::Bystander;

const MIB: usize = 1 << 20;

fn send_big(conn: &mut Conn, command: &str, key: &str, length: usize) {
    let header = format!(
        "*3\r\n${}\r\n{command}\r\n${}\r\n{key}\r\n${length}\r\n",
        command.len(),
        key.len()
    );
    let mut stream = conn.stream();
    stream
        .write_all(header.as_bytes())
        .expect("the server reads");
    let piece = vec![b'z'; MIB];
    let mut left = length;
    while left > 0 {
        let now = left.min(MIB);
        stream.write_all(&piece[..now]).expect("the server reads");
        left -= now;
    }
    stream.write_all(b"\r\n").expect("the server reads");
}

#[test]
fn a_value_of_512_mb() {
    let server = Server::pantala();
    let bystander = Bystander::start(&server);
    let mut conn = server.conn_with(Duration::from_secs(60));
    send_big(&mut conn, "SET", "huge", 512 * MIB);
    assert_eq!(conn.read().expect("a reply").text(), "OK");
    assert_eq!(conn.cmd("STRLEN huge").int(), Some(512 * MIB as i64));
    assert_eq!(
        conn.cmd("APPEND huge x"),
        Value::Error(b"ERR string exceeds maximum allowed size (proto-max-bulk-len)".to_vec())
    );
    assert_eq!(conn.cmd("GETRANGE huge 536870910 -1").text(), "zz");
    let whole = conn.cmd("GET huge");
    assert!(
        whole
            .bytes()
            .is_some_and(|b| b.len() == 512 * MIB && b.iter().all(|b| *b == b'z'))
    );
    drop(whole);
    assert_eq!(conn.cmd("DEL huge").int(), Some(1));
    // One byte more is refused before any of it is read.
    conn.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870913\r\n")
        .expect("the server reads");
    assert_eq!(
        conn.read().expect("a reply"),
        Value::Error(b"ERR Protocol error: invalid bulk length".to_vec())
    );
    // A copy of half a gigabyte takes its time in any server; minutes it must not take.
    assert!(bystander.stop() < Duration::from_secs(5));
}

#[test]
fn a_pipeline_of_a_million_commands() {
    let server = Server::pantala();
    let bystander = Bystander::start(&server);
    let conn = server.conn_with(Duration::from_secs(60));
    let writer = conn.stream().try_clone().expect("a second handle");
    let count = 1_000_000;
    let sender = std::thread::spawn(move || {
        let mut writer = writer;
        let batch = encode(&["INCR", "pipeline"]).repeat(1000);
        for _ in 0..count / 1000 {
            writer.write_all(&batch).expect("the server reads");
        }
    });
    let mut conn = conn;
    for n in 1..=count {
        assert_eq!(conn.read().expect("a reply").int(), Some(n));
    }
    sender.join().expect("the sender ends");
    assert!(bystander.stop() < Duration::from_secs(3));
}

#[test]
fn commands_with_very_many_arguments() {
    let server = Server::pantala();
    let mut conn = server.conn_with(Duration::from_secs(60));
    let count = 200_000;
    let mut args = vec!["MSET".to_owned()];
    for n in 0..count {
        args.extend([format!("many:{n}"), n.to_string()]);
    }
    assert_eq!(conn.call(&args).expect("a reply").text(), "OK");
    assert_eq!(conn.cmd("DBSIZE").int(), Some(count));
    let mut args = vec!["MGET".to_owned()];
    args.extend((0..count).map(|n| format!("many:{n}")));
    let Value::Array(values) = conn.call(&args).expect("a reply") else {
        panic!("MGET must answer with an array")
    };
    assert!(
        values
            .iter()
            .enumerate()
            .all(|(n, v)| v.text() == n.to_string())
    );
    args[0] = "DEL".to_owned();
    assert_eq!(conn.call(&args).expect("a reply").int(), Some(count));
}

#[test]
fn the_query_buffer_limit_closes() {
    let server = Options::new(Kind::Pantala)
        .set("client-query-buffer-limit", "1mb")
        .start();
    let bystander = Bystander::start(&server);
    let mut conn = server.conn();
    let mut closed = false;
    // A bulk of 8 MB is below proto-max-bulk-len, but above what this connection may buffer.
    if conn
        .send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$8000000\r\n")
        .is_ok()
    {
        for _ in 0..8 {
            if conn.send_raw(&vec![b'x'; 1_000_000]).is_err() {
                closed = true;
                break;
            }
        }
    }
    if !closed {
        // What matters is that no +OK comes and that the connection ends.
        let _ = conn.send_raw(b"\r\n");
        let got = conn.read_to_close();
        assert!(
            got.as_ref().map_or(true, |g| !g.starts_with(b"+OK")),
            "{got:?}"
        );
    }
    assert!(bystander.stop() < Duration::from_secs(2));
    assert!(server.conn().cmd("GET k").is_null());
}

#[test]
fn an_endless_inline_command_is_refused() {
    let server = Server::pantala();
    let mut conn = server.conn();
    // Too big inline requests: 64 KiB without an end of line.
    let _ = conn.send_raw(&vec![b'a'; 80 * 1024]);
    let got = conn.read_to_close().expect("an error, then the end");
    assert_eq!(
        String::from_utf8_lossy(&got),
        "-ERR Protocol error: too big inline request\r\n"
    );
}
