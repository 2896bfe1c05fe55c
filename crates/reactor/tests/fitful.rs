//! Random traffic against a service that pauses and resumes at random, on both drivers: whatever the order of
//! arming, cancelling, ends and resets, no byte is lost, doubled or out of order, and every connection closes once.

mod common;

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{LIMIT, both, noise};
use pantala_reactor::{
    Acceptor, AcceptorOptions, ConnId, Io, Listener, Next, Origin, Pool, PoolOptions, Remote,
    Service,
};

const SEED: u64 = 20_261_130;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Echoes; pauses at random and resumes by timer, by mail, or at once; ends its turns at random.
struct Fitful {
    random: Random,
    worker: usize,
    remote: Remote<ConnId>,
    open: HashSet<ConnId>,
    closed: Arc<AtomicUsize>,
}

impl Service for Fitful {
    type Mail = ConnId;

    fn opened(&mut self, io: &mut Io, conn: ConnId, _: &Origin) {
        assert!(self.open.insert(conn));
        if self.random.below(4) == 0 {
            io.pause(conn);
            io.set_timer(
                io.now() + Duration::from_millis(self.random.below(4)),
                conn.as_u64(),
            );
        }
    }

    fn received(&mut self, io: &mut Io, conn: ConnId, bytes: &[u8]) {
        assert!(self.open.contains(&conn) && !io.is_paused(conn) && !bytes.is_empty());
        io.out(conn).extend_from_slice(bytes);
        if io.out_len(conn) > Io::OUT_HIGH {
            return io.pause(conn);
        }
        match self.random.below(8) {
            0 => {
                io.pause(conn);
                io.set_timer(
                    io.now() + Duration::from_millis(self.random.below(3)),
                    conn.as_u64(),
                );
            }
            1 => {
                io.pause(conn);
                self.remote.send(self.worker, conn);
            }
            2 => {
                io.pause(conn);
                io.resume(conn);
            }
            3 => io.send_now(conn),
            _ => {}
        }
    }

    fn ended(&mut self, io: &mut Io, conn: ConnId) {
        assert!(self.open.contains(&conn));
        io.close_after_flush(conn);
    }

    fn closed(&mut self, io: &mut Io, conn: ConnId) {
        assert!(self.open.remove(&conn), "closed twice");
        assert_eq!(io.out(conn).len(), 0);
        io.cancel_timer(conn.as_u64());
        self.closed.fetch_add(1, Ordering::SeqCst);
    }

    fn drained(&mut self, io: &mut Io, conn: ConnId) {
        io.resume(conn);
    }

    fn mail(&mut self, io: &mut Io, conn: ConnId) {
        if io.out_len(conn) <= Io::OUT_HIGH {
            io.resume(conn);
        }
    }

    fn timer(&mut self, io: &mut Io, token: u64) {
        self.mail(io, ConnId::from_u64(token));
    }

    fn turn(&mut self, _: &mut Io) -> Next {
        if self.random.below(4) == 0 {
            Next::Again
        } else {
            Next::Wait
        }
    }
}

/// One connection's life: pieces of random size with their echo checked, then one of three ends.
fn client(address: SocketAddr, seed: u64) {
    let mut random = Random(seed);
    let mut stream = TcpStream::connect(address).expect("connects");
    stream.set_read_timeout(Some(LIMIT)).expect("option");
    let sizes = [1, 10, 1_000, 16 * 1024, 100_000, 1 << 20];
    let size = sizes[random.below(sizes.len() as u64) as usize] + random.below(1_000) as usize;
    let data = Arc::new(noise(seed, size));
    let reset = random.below(3) == 0;
    let mut writer = stream.try_clone().expect("clone");
    let to_send = data.clone();
    let thread = std::thread::spawn(move || {
        let mut random = Random(seed ^ 0xabcd);
        let mut rest = &to_send[..];
        while !rest.is_empty() {
            let count = (1 + random.below(60_000) as usize).min(rest.len());
            writer.write_all(&rest[..count]).expect("sent");
            rest = &rest[count..];
        }
        if !reset {
            writer.shutdown(Shutdown::Write).expect("ended");
        }
    });
    let expected = if reset {
        random.below(size as u64) as usize
    } else {
        size
    };
    let mut back = vec![0; expected];
    stream.read_exact(&mut back).expect("echo");
    assert!(back == data[..expected], "seed {seed}: bytes differ");
    thread.join().expect("writer ends");
    if reset {
        socket2::SockRef::from(&stream)
            .set_linger(Some(Duration::ZERO))
            .expect("option");
    } else {
        assert_eq!(
            stream.read(&mut [0]).expect("end"),
            0,
            "seed {seed}: more than was sent"
        );
    }
}

#[test]
fn fitful_service_loses_nothing() {
    both(|io| {
        const CLIENTS: usize = 1_500;
        println!("seed {SEED}, {io:?}");
        let closed = Arc::new(AtomicUsize::new(0));
        let counter = closed.clone();
        let options = PoolOptions {
            workers: 2,
            io,
            ..PoolOptions::default()
        };
        let pool = Pool::start(options, move |worker, remote| Fitful {
            random: Random(SEED + worker as u64),
            worker,
            remote,
            open: HashSet::new(),
            closed: counter.clone(),
        })
        .expect("pool starts");
        let listener =
            Listener::tcp(0, "127.0.0.1:0".parse().expect("address"), 511).expect("listens");
        let address = listener.local_addr().expect("TCP");
        let acceptor = Acceptor::start(pool.intake(), AcceptorOptions::default()).expect("starts");
        acceptor.add(listener);
        let seeds = Arc::new(Mutex::new(
            (0..CLIENTS as u64)
                .map(|number| SEED * 1_000 + number)
                .collect::<Vec<_>>(),
        ));
        let threads: Vec<_> = (0..24)
            .map(|_| {
                let seeds = seeds.clone();
                std::thread::spawn(move || {
                    loop {
                        let Some(seed) = seeds.lock().expect("unpoisoned").pop() else {
                            return;
                        };
                        client(address, seed);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("client ends");
        }
        let start = std::time::Instant::now();
        while closed.load(Ordering::SeqCst) < CLIENTS {
            assert!(start.elapsed() < LIMIT, "connections stay open");
            std::thread::sleep(Duration::from_millis(2));
        }
        acceptor.stop();
        pool.remote().stop_all();
        pool.join();
        assert_eq!(closed.load(Ordering::SeqCst), CLIENTS);
    });
}
