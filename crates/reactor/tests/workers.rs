//! Workers, mail, timers, listeners and limits, on both drivers.

mod common;

use std::io::Read;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use common::{Event, Habit, LIMIT, Stage, both, read_all, round_trip};
use pantala_reactor::{CONNECTION_BYTES, Driver, IoChoice, Listener, PoolOptions};

#[test]
fn an_idle_worker_takes_no_turns() {
    both(|io| {
        let stage = Stage::new(io, Habit::Echo);
        let mut streams: Vec<_> = (0..20).map(|_| stage.connect()).collect();
        for stream in &mut streams {
            round_trip(stream, b"hello");
        }
        // Completions of the last sends may still be under way when the first question is asked.
        stage.until("rest", |stage| {
            let before = stage.ask(|io| io.turns());
            std::thread::sleep(Duration::from_millis(300));
            // The turn of the second question itself, and a send's completion.
            stage.ask(|io| io.turns()) - before <= 2
        });
        stage.end();
    });
}

#[test]
fn idle_connections_hold_no_buffers() {
    both(|io| {
        let stage = Stage::new(io, Habit::Echo);
        let mut streams: Vec<_> = (0..2_000).map(|_| stage.connect()).collect();
        for stream in &mut streams {
            round_trip(stream, &[b'x'; 2_000]);
        }
        stage.until("output sent", |stage| {
            stage.ask(|io| io.buffer_bytes()) < 3 << 20
        });
        let table_bytes = stage.ask(|io| io.table_bytes());
        const { assert!(CONNECTION_BYTES < 300) };
        assert!(
            table_bytes / streams.len() < 300,
            "{table_bytes} bytes for {}",
            streams.len()
        );
        stage.end();
    });
}

#[test]
fn ten_thousand_connections_come_and_go() {
    both(|io| {
        let stage = Stage::with(
            PoolOptions {
                workers: 2,
                io,
                ..PoolOptions::default()
            },
            Habit::Echo,
        );
        for round in 0..5 {
            let mut streams: Vec<TcpStream> = (0..2_000).map(|_| stage.connect()).collect();
            for (number, stream) in streams.iter_mut().enumerate() {
                if number % 3 == round % 3 {
                    assert_eq!(round_trip(stream, b"ping"), b"ping");
                }
            }
            drop(streams);
            stage.until("all closed", |stage| stage.pool.intake().connections() == 0);
        }
        let (mut opened, mut closed) = (0, 0);
        stage.until("events counted", |stage| {
            while let Ok(event) = stage.events.try_recv() {
                match event {
                    Event::Opened(..) => opened += 1,
                    Event::Closed(_) => closed += 1,
                    _ => {}
                }
            }
            closed == 10_000
        });
        assert_eq!(opened, closed);
        assert_eq!(stage.acceptor.accepted(), 10_000);
        stage.end();
    });
}

#[test]
fn connections_go_to_the_worker_with_the_fewest() {
    both(|io| {
        let stage = Stage::with(
            PoolOptions {
                workers: 3,
                io,
                ..PoolOptions::default()
            },
            Habit::Echo,
        );
        let streams: Vec<_> = (0..30).map(|_| stage.connect()).collect();
        stage.until("accepted", |stage| stage.acceptor.accepted() == 30);
        for worker in 0..3 {
            assert_eq!(
                stage.ask_worker(worker, |io| (io.worker(), io.connections())),
                (worker, 10)
            );
        }
        drop(streams);
        stage.end();
    });
}

#[test]
fn mail_arrives_once_and_in_order() {
    both(|io| {
        let stage = Stage::new(io, Habit::Report);
        let (sender, got) = channel();
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let (remote, sender) = (stage.remote.clone(), sender.clone());
                std::thread::spawn(move || {
                    for number in 0..10_000 {
                        let sender = sender.clone();
                        remote.send(
                            0,
                            Box::new(move |_| sender.send((thread, number)).expect("open")),
                        );
                        if number % 1_000 == 0 {
                            // Gives the worker the chance to fall asleep.
                            std::thread::sleep(Duration::from_millis(1));
                        }
                    }
                })
            })
            .collect();
        let mut next = [0; 4];
        for _ in 0..40_000 {
            let (thread, number) = got.recv_timeout(LIMIT).expect("mail");
            assert_eq!(number, next[thread]);
            next[thread] += 1;
        }
        for thread in threads {
            thread.join().expect("sender ends");
        }
        stage
            .remote
            .send(99, Box::new(|_| panic!("no such worker")));
        stage.end();
    });
}

#[test]
fn a_wake_makes_a_turn() {
    both(|io| {
        let stage = Stage::new(io, Habit::Report);
        let wake = stage.remote.wake_handle();
        assert_eq!(wake.workers(), 1);
        wake.wake(5);
        // `turns` can only be read by mail, which makes turns itself; so watch for more than that.
        let turns = |stage: &Stage| stage.ask(|io| io.turns());
        let before = turns(&stage);
        for _ in 0..10 {
            wake.wake(0);
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(turns(&stage) - before > 5);
        stage.end();
    });
}

#[test]
fn timers_fire_in_order_and_not_early() {
    both(|io| {
        let stage = Stage::new(io, Habit::Report);
        let start = Instant::now();
        stage.ask(move |io| {
            io.set_timer(start + Duration::from_millis(60), 1);
            io.set_timer(start + Duration::from_millis(30), 2);
            io.set_timer(start + Duration::from_millis(10), 3);
            io.set_timer(start + Duration::from_millis(20), 4);
            io.cancel_timer(3);
            io.cancel_timer(77);
            io.set_timer(start + Duration::from_millis(90), 4);
            assert!(
                io.now() >= start
                    && io.unix_ms() > 1_600_000_000_000
                    && io.unix_us() / 1000 == io.unix_ms()
            );
        });
        for (token, at_ms) in [(2, 30), (1, 60), (4, 90)] {
            assert!(matches!(stage.event(), Event::Timer(fired) if fired == token));
            assert!(start.elapsed() >= Duration::from_millis(at_ms));
        }
        stage.end();
    });
}

#[test]
fn above_the_limit_of_clients_a_connection_is_told_so() {
    both(|io| {
        let max_clients = Arc::new(AtomicUsize::new(2));
        let stage = Stage::with(
            PoolOptions {
                io,
                max_clients: max_clients.clone(),
                ..PoolOptions::default()
            },
            Habit::Echo,
        );
        let (mut first, mut second) = (stage.connect(), stage.connect());
        round_trip(&mut first, b"1");
        round_trip(&mut second, b"2");
        assert_eq!(read_all(&mut stage.connect()), b"full\r\n");
        assert_eq!(stage.acceptor.rejected(), 1);
        drop(first);
        stage.until("room", |stage| !stage.pool.intake().is_full());
        round_trip(&mut stage.connect(), b"3");
        max_clients.store(10, Ordering::Relaxed);
        round_trip(&mut stage.connect(), b"4");
        stage.end();
    });
}

#[test]
fn listeners_come_and_go() {
    both(|io| {
        let stage = Stage::new(io, Habit::Echo);
        let address = stage.address;
        let mut old = stage.connect();
        round_trip(&mut old, b"served");
        stage.acceptor.remove(7);
        assert!(TcpStream::connect(address).is_err());
        round_trip(&mut old, b"still served");
        // The same address again, at once.
        stage
            .acceptor
            .add(Listener::tcp(8, address, 16).expect("address is free"));
        let mut stream = stage.connect();
        round_trip(&mut stream, b"again");
        let origins: Vec<_> = std::iter::from_fn(|| stage.events.try_recv().ok())
            .filter_map(|event| match event {
                Event::Opened(_, origin) => Some(origin),
                _ => None,
            })
            .collect();
        let local = stream.local_addr().expect("address").to_string();
        let origin = origins
            .iter()
            .find(|origin| origin.peer == local)
            .expect("reported");
        assert_eq!(
            (origin.listener, origin.local.as_str()),
            (8, address.to_string().as_str())
        );
        assert!(origin.loopback && !origin.unix && origin.fd > 2);
        stage.end();
    });
}

#[test]
fn ipv6_is_served_where_the_machine_has_it() {
    both(|io| {
        let stage = Stage::new(io, Habit::Echo);
        match Listener::tcp(9, "[::1]:0".parse().expect("address"), 16) {
            Ok(listener) => {
                let address: SocketAddr = listener.local_addr().expect("TCP");
                stage.acceptor.add(listener);
                round_trip(&mut TcpStream::connect(address).expect("connects"), b"six");
                let Event::Opened(_, origin) = stage.event() else {
                    panic!("opened comes first")
                };
                assert!(origin.peer.starts_with("[::1]:") && origin.loopback);
            }
            Err(error) => eprintln!("no IPv6 here: {error}"),
        }
        stage.end();
    });
}

#[test]
fn unix_sockets_replace_stale_files_only() {
    both(|io| {
        let folder =
            std::env::temp_dir().join(format!("pantala-reactor-{}-{io:?}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("folder");
        let path = folder.join("socket");
        let stage = Stage::new(io, Habit::Echo);
        // A stale file, as a crash leaves it.
        drop(std::os::unix::net::UnixListener::bind(&path).expect("binds"));
        assert!(path.exists());
        stage
            .acceptor
            .add(Listener::unix(3, &path, Some(0o700), 16).expect("replaces"));
        let mode = std::fs::metadata(&path).expect("file").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let mut stream = UnixStream::connect(&path).expect("connects");
        stream.write_all(b"local").expect("sent");
        let mut back = [0; 5];
        stream.read_exact(&mut back).expect("came back");
        let Event::Opened(_, origin) = stage.event() else {
            panic!("opened comes first")
        };
        assert_eq!(origin.peer, format!("{}:0", path.display()));
        assert!(origin.unix && origin.loopback && origin.listener == 3);
        stage.acceptor.remove(3);
        assert!(!path.exists(), "the file goes with its listener");
        std::fs::write(&path, b"precious").expect("file");
        assert!(Listener::unix(3, &path, None, 16).is_err());
        assert_eq!(std::fs::read(&path).expect("file"), b"precious");
        stage.end();
        std::fs::remove_dir_all(&folder).expect("folder goes");
    });
}

#[test]
fn stopping_closes_everything() {
    both(|io| {
        let stage = Stage::new(io, Habit::Report);
        let (mut first, id) = stage.connect_known();
        let (mut second, second_id) = stage.connect_known();
        stage.ask(move |io| {
            io.out(id).extend_from_slice(b"goodbye");
            io.out(second_id).resize(16 << 20, b'x');
            io.stop();
        });
        assert_eq!(read_all(&mut first), b"goodbye");
        // Cut off, by an end or a reset.
        let _ = second.read_to_end(&mut Vec::new());
        let mut closed = 0;
        loop {
            match stage.event() {
                Event::Closed(_) => closed += 1,
                Event::Dropped => break,
                _ => {}
            }
        }
        assert_eq!(closed, 2);
        // Mail for a stopped worker is dropped.
        stage
            .remote
            .send(0, Box::new(|_| panic!("nobody is there")));
        stage.end();
    });
}

#[test]
fn the_driver_is_reported() {
    both(|io| {
        let stage = Stage::with(
            PoolOptions {
                io,
                pin: true,
                ..PoolOptions::default()
            },
            Habit::Echo,
        );
        let expected = if io == IoChoice::Uring {
            Driver::Uring
        } else {
            Driver::Epoll
        };
        let (driver, reason) = stage.pool.driver_report();
        assert_eq!(driver, expected);
        assert!(reason.starts_with(driver.name()), "{reason}");
        assert_eq!(stage.ask(|io| io.driver()), expected);
        stage.end();
    });
}

#[test]
fn a_service_that_never_rests_hears_of_everything() {
    both(|io| {
        let stage = Stage::new(io, Habit::EchoAndSpin);
        let mut stream = stage.connect();
        for _ in 0..100 {
            assert_eq!(round_trip(&mut stream, b"ping"), b"ping");
        }
        let before = stage.ask(|io| {
            io.set_timer(io.now() + Duration::from_millis(5), 1);
            io.turns()
        });
        while !matches!(stage.event(), Event::Timer(1)) {}
        assert!(stage.ask(|io| io.turns()) > before);
        let mut second = stage.connect();
        assert_eq!(round_trip(&mut second, b"ping"), b"ping");
        stage.end();
    });
}
