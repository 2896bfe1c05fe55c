//! Out of file descriptors: in a process of its own, because it takes them all.

mod common;

use std::fs::File;
use std::sync::mpsc::channel;
use std::sync::{Arc, atomic::AtomicU32};
use std::time::Duration;

use common::{Habit, Stage, both, round_trip};
use pantala_reactor::{Acceptor, AcceptorOptions, Listener};

#[test]
fn without_descriptors_the_acceptor_waits_and_says_so() {
    both(|io| {
        let stage = Stage::new(io, Habit::Echo);
        let (log, lines) = channel();
        let listener =
            Listener::tcp(1, "127.0.0.1:0".parse().expect("address"), 64).expect("listens");
        let address = listener.local_addr().expect("TCP");
        let acceptor = Acceptor::start(
            stage.pool.intake(),
            AcceptorOptions {
                rejected: Arc::default(),
                tcp_keepalive_s: Arc::new(AtomicU32::new(0)),
                log: Box::new(move |line| log.send(line.to_owned()).expect("open")),
            },
        )
        .expect("starts");
        acceptor.add(listener);
        let mut old = stage.connect();
        round_trip(&mut old, b"before");

        let mut hoard: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        // One descriptor for the client's end; the server's end finds none.
        hoard.pop();
        let mut stream = std::net::TcpStream::connect(address).expect("the system queues it");
        let line = lines.recv_timeout(common::LIMIT).expect("a line");
        assert!(
            line.starts_with("Error accepting a client connection: "),
            "{line}"
        );
        round_trip(&mut old, b"meanwhile");
        // It neither spins nor floods the log: a second line comes after about a second, not before.
        assert!(lines.recv_timeout(Duration::from_millis(500)).is_err());
        assert!(lines.recv_timeout(common::LIMIT).is_ok());
        drop(hoard);
        round_trip(&mut stream, b"after");
        acceptor.stop();
        stage.end();
    });
}
