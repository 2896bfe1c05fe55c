//! What the tests share: a service that reports what happens to it and runs the closures that it is mailed, and a
//! pool of such services with one listener. Nothing here waits for a fixed time; every wait has a generous limit.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use pantala_reactor::{
    Acceptor, AcceptorOptions, ConnId, Driver, Io, IoChoice, Listener, Next, Origin, Pool,
    PoolOptions, Remote, Service,
};

/// Longest wait for anything that must happen.
pub const LIMIT: Duration = Duration::from_secs(20);

/// What the service was told.
#[derive(Debug)]
pub enum Event {
    Opened(ConnId, Origin),
    Received(ConnId, Vec<u8>),
    Ended(ConnId),
    Closed(ConnId),
    Drained(ConnId),
    Timer(u64),
    Dropped,
}

/// What the service does with bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    /// Reports them.
    Report,
    /// Sends them back, with back-pressure; closes after the end.
    Echo,
    /// As `Echo`, and never lets the worker block.
    EchoAndSpin,
    /// Reports them and pauses the connection each time.
    ReportAndPause,
}

pub type Task = Box<dyn FnOnce(&mut Io) + Send>;

pub struct Puppet {
    habit: Habit,
    events: Sender<Event>,
}

impl Puppet {
    fn report(&self, event: Event) {
        // The test may be over.
        let _ = self.events.send(event);
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        self.report(Event::Dropped);
    }
}

impl Service for Puppet {
    type Mail = Task;

    fn opened(&mut self, _: &mut Io, conn: ConnId, origin: &Origin) {
        self.report(Event::Opened(conn, origin.clone()));
    }

    fn received(&mut self, io: &mut Io, conn: ConnId, bytes: &[u8]) {
        assert!(!io.is_paused(conn), "bytes for a paused connection");
        match self.habit {
            Habit::Echo | Habit::EchoAndSpin => {
                io.out(conn).extend_from_slice(bytes);
                if io.out_len(conn) > Io::OUT_HIGH {
                    io.pause(conn);
                }
            }
            Habit::Report => self.report(Event::Received(conn, bytes.to_vec())),
            Habit::ReportAndPause => {
                io.pause(conn);
                self.report(Event::Received(conn, bytes.to_vec()));
            }
        }
    }

    fn ended(&mut self, io: &mut Io, conn: ConnId) {
        self.report(Event::Ended(conn));
        if self.habit == Habit::Echo {
            io.close_after_flush(conn);
        }
    }

    fn closed(&mut self, io: &mut Io, conn: ConnId) {
        assert!(!io.is_open(conn));
        self.report(Event::Closed(conn));
    }

    fn drained(&mut self, io: &mut Io, conn: ConnId) {
        if self.habit == Habit::Echo {
            io.resume(conn);
        }
        self.report(Event::Drained(conn));
    }

    fn mail(&mut self, io: &mut Io, mail: Task) {
        mail(io);
    }

    fn timer(&mut self, _: &mut Io, token: u64) {
        self.report(Event::Timer(token));
    }

    fn turn(&mut self, _: &mut Io) -> Next {
        if self.habit == Habit::EchoAndSpin {
            Next::Again
        } else {
            Next::Wait
        }
    }
}

/// A pool of puppets behind one TCP listener (index 7).
pub struct Stage {
    pub events: Receiver<Event>,
    pub remote: Remote<Task>,
    pub address: SocketAddr,
    pub acceptor: Acceptor,
    pub pool: Pool<Task>,
}

impl Stage {
    pub fn new(io: IoChoice, habit: Habit) -> Self {
        Self::with(
            PoolOptions {
                io,
                ..PoolOptions::default()
            },
            habit,
        )
    }

    pub fn with(options: PoolOptions, habit: Habit) -> Self {
        let (sender, events) = channel();
        let pool = Pool::start(options, move |_, _| Puppet {
            habit,
            events: sender.clone(),
        })
        .expect("pool starts");
        let listener = Listener::tcp(7, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 511)
            .expect("listens")
            .with_rejection(b"full\r\n");
        let address = listener.local_addr().expect("TCP");
        let acceptor =
            Acceptor::start(pool.intake(), AcceptorOptions::default()).expect("acceptor starts");
        acceptor.add(listener);
        Self {
            events,
            remote: pool.remote(),
            address,
            acceptor,
            pool,
        }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("connects");
        stream.set_nodelay(true).expect("option");
        stream.set_read_timeout(Some(LIMIT)).expect("option");
        stream.set_write_timeout(Some(LIMIT)).expect("option");
        stream
    }

    /// Connects and learns the connection's id (no other connection may come at the same time).
    pub fn connect_known(&self) -> (TcpStream, ConnId) {
        let stream = self.connect();
        loop {
            if let Event::Opened(id, _) = self.event() {
                return (stream, id);
            }
        }
    }

    pub fn event(&self) -> Event {
        self.events.recv_timeout(LIMIT).expect("an event")
    }

    /// Bytes reported for `conn` until there are `count`; other connections' events are skipped.
    pub fn bytes(&self, conn: ConnId, count: usize) -> Vec<u8> {
        let mut got = Vec::new();
        while got.len() < count {
            if let Event::Received(id, bytes) = self.event()
                && id == conn
            {
                got.extend_from_slice(&bytes);
            }
        }
        got
    }

    /// Runs a closure on worker 0 and returns what it returns.
    pub fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Io) -> T + Send + 'static,
    ) -> T {
        self.ask_worker(0, question)
    }

    pub fn ask_worker<T: Send + 'static>(
        &self,
        worker: usize,
        question: impl FnOnce(&mut Io) -> T + Send + 'static,
    ) -> T {
        let (sender, answer) = channel();
        self.remote.send(
            worker,
            Box::new(move |io| {
                let _ = sender.send(question(io));
            }),
        );
        answer.recv_timeout(LIMIT).expect("an answer")
    }

    /// Asks until the answer is yes.
    pub fn until(&self, what: &str, mut question: impl FnMut(&Self) -> bool) {
        let start = std::time::Instant::now();
        while !question(self) {
            assert!(start.elapsed() < LIMIT, "never happened: {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Stops everything and waits for it.
    pub fn end(self) {
        self.acceptor.stop();
        self.remote.stop_all();
        self.pool.join();
    }
}

/// Runs a test with each driver that this kernel has.
pub fn both(test: impl Fn(IoChoice)) {
    test(IoChoice::Epoll);
    let pool =
        Pool::start(PoolOptions::default(), |_, _: Remote<()>| Nothing).expect("a driver works");
    let (driver, reason) = pool.driver_report();
    pool.remote().stop_all();
    pool.join();
    if driver == Driver::Uring {
        test(IoChoice::Uring);
    } else {
        eprintln!("only epoll was tested: {reason}");
    }
}

struct Nothing;

impl Service for Nothing {
    type Mail = ();
    fn opened(&mut self, _: &mut Io, _: ConnId, _: &Origin) {}
    fn received(&mut self, _: &mut Io, _: ConnId, _: &[u8]) {}
    fn ended(&mut self, _: &mut Io, _: ConnId) {}
    fn closed(&mut self, _: &mut Io, _: ConnId) {}
    fn drained(&mut self, _: &mut Io, _: ConnId) {}
    fn mail(&mut self, _: &mut Io, (): ()) {}
    fn timer(&mut self, _: &mut Io, _: u64) {}
    fn turn(&mut self, _: &mut Io) -> Next {
        Next::Wait
    }
}

/// Repeatable noise (xorshift).
pub fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}

/// Sends `bytes` and reads as many back.
pub fn round_trip(stream: &mut TcpStream, bytes: &[u8]) -> Vec<u8> {
    stream.write_all(bytes).expect("sent");
    let mut back = vec![0; bytes.len()];
    stream.read_exact(&mut back).expect("came back");
    back
}

/// Reads until the end.
pub fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("read to the end");
    all
}
