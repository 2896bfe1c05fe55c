//! The thread that accepts connections and gives each to the worker with the fewest. It must not spin when the
//! process has no descriptors left, must not block on a peer, and uses no time while nobody connects.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::bell::Bell;
use crate::listener::Listener;
use crate::pool::Intake;
use crate::sys;

/// Connections taken from one listener before the others have their turn.
const ACCEPTS_PER_ROUND: usize = 256;
/// Pause after the system refused a descriptor.
const STARVED_PAUSE_MS: i32 = 50;
/// Lines about refused descriptors are at least this far apart.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// What an acceptor may be told.
pub struct AcceptorOptions {
    /// Seconds of silence before TCP asks whether the peer is still there; 0: never. Read for each connection.
    pub tcp_keepalive_s: Arc<AtomicU32>,
    /// Counts the connections that were refused because of the limit of clients.
    pub rejected: Arc<AtomicU64>,
    /// Where lines about trouble go (no descriptors left). Called from the acceptor's thread, at most once a second.
    pub log: Box<dyn Fn(&str) + Send>,
}

impl Default for AcceptorOptions {
    fn default() -> Self {
        Self {
            tcp_keepalive_s: Arc::new(AtomicU32::new(300)),
            rejected: Arc::default(),
            log: Box::new(|_| {}),
        }
    }
}

enum Order {
    Add(Listener),
    /// The answer channel closes when the listeners are gone.
    Remove(u16, Sender<()>),
    Stop,
}

struct Counters {
    accepted: AtomicU64,
    rejected: Arc<AtomicU64>,
}

/// The accept thread. Dropping it stops and joins it; connections that were given to workers stay.
pub struct Acceptor {
    /// The lock keeps an order and its ring together for callers on several threads.
    orders: Mutex<Sender<Order>>,
    bell: Arc<Bell>,
    counters: Arc<Counters>,
    thread: Option<JoinHandle<()>>,
}

impl Acceptor {
    /// Starts the thread, with no listeners yet. Errors: no eventfd, no thread.
    pub fn start(intake: Intake, options: AcceptorOptions) -> io::Result<Self> {
        let (orders, inbox) = channel();
        let bell = Arc::new(Bell::new()?);
        let counters = Arc::new(Counters {
            accepted: AtomicU64::new(0),
            rejected: Arc::clone(&options.rejected),
        });
        let state = Thread {
            intake,
            options,
            inbox,
            bell: bell.clone(),
            counters: counters.clone(),
            listeners: Vec::new(),
            last_log: None,
        };
        let thread = std::thread::Builder::new()
            .name("accept".to_owned())
            .spawn(move || state.run())?;
        Ok(Self {
            orders: Mutex::new(orders),
            bell,
            counters,
            thread: Some(thread),
        })
    }

    /// Serves one more listener from now on.
    pub fn add(&self, listener: Listener) {
        self.order(Order::Add(listener));
    }

    /// Closes the listeners with this index. Returns when they are closed, so that the address may be bound again.
    pub fn remove(&self, index: u16) {
        let (answer, done) = channel();
        self.order(Order::Remove(index, answer));
        // An error means that the answer was dropped, which says the same.
        let _ = done.recv();
    }

    /// Connections given to workers so far.
    pub fn accepted(&self) -> u64 {
        self.counters.accepted.load(Ordering::Relaxed)
    }

    /// Connections refused so far because of the limit of clients.
    pub fn rejected(&self) -> u64 {
        self.counters.rejected.load(Ordering::Relaxed)
    }

    /// Closes all listeners and joins the thread. Dropping does the same.
    pub fn stop(self) {
        drop(self);
    }

    fn order(&self, order: Order) {
        // The thread ends only by the order to stop, and aborts the process otherwise.
        let _ = self
            .orders
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .send(order);
        self.bell.ring();
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.order(Order::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Thread {
    intake: Intake,
    options: AcceptorOptions,
    inbox: Receiver<Order>,
    bell: Arc<Bell>,
    counters: Arc<Counters>,
    listeners: Vec<Listener>,
    last_log: Option<Instant>,
}

impl Thread {
    fn run(mut self) {
        let _guard = crate::pool::AbortOnPanic;
        let mut starved = false;
        let mut fds: Vec<(RawFd, bool)> = Vec::new();
        loop {
            fds.clear();
            fds.push((self.bell.raw_fd(), false));
            // While no descriptors are to be had, the listeners are left alone for a moment: they would stay
            // readable and turn this loop into a spin.
            if !starved {
                fds.extend(
                    self.listeners
                        .iter()
                        .map(|listener| (listener.raw_fd(), false)),
                );
            }
            let timeout_ms = if starved { STARVED_PAUSE_MS } else { -1 };
            if let Err(error) = sys::poll_readable(&mut fds, timeout_ms) {
                if error.kind() != io::ErrorKind::Interrupted {
                    self.complain(&format!("Waiting for connections failed: {error}"));
                    std::thread::sleep(Duration::from_millis(STARVED_PAUSE_MS as u64));
                }
                continue;
            }
            let was_starved = std::mem::take(&mut starved);
            if fds[0].1 {
                self.bell.drain();
                if self.obey() {
                    return;
                }
                // The list of listeners may be another one now.
                starved = was_starved;
                continue;
            }
            for index in 0..self.listeners.len() {
                if was_starved || fds.get(index + 1).is_some_and(|fd| fd.1) {
                    starved |= self.accept_from(index);
                }
            }
        }
    }

    /// Carries out the orders. True: stop.
    fn obey(&mut self) -> bool {
        while let Ok(order) = self.inbox.try_recv() {
            match order {
                Order::Add(listener) => self.listeners.push(listener),
                Order::Remove(index, answer) => {
                    self.listeners.retain(|listener| listener.index() != index);
                    drop(answer);
                }
                Order::Stop => return true,
            }
        }
        false
    }

    /// Accepts what waits at one listener. True: the system has no descriptors left.
    fn accept_from(&mut self, index: usize) -> bool {
        for _ in 0..ACCEPTS_PER_ROUND {
            let keepalive_s = self.options.tcp_keepalive_s.load(Ordering::Relaxed);
            let listener = &self.listeners[index];
            match listener.accept(keepalive_s) {
                Ok((fd, origin)) => {
                    if self.intake.is_full() {
                        self.counters.rejected.fetch_add(1, Ordering::Relaxed);
                        // A fresh socket has room for a line; if not, the peer sees only the close.
                        if !listener.rejection().is_empty() {
                            let _ = sys::send(fd.as_fd(), listener.rejection());
                        }
                    } else {
                        debug_assert_eq!(fd.as_raw_fd(), origin.fd);
                        self.counters.accepted.fetch_add(1, Ordering::Relaxed);
                        self.intake.place(fd, origin);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if is_starved(&error) => {
                    self.complain(&format!("Error accepting a client connection: {error}"));
                    return true;
                }
                // This one connection failed before we took it; the next may be well.
                Err(_) => {}
            }
        }
        false
    }

    fn complain(&mut self, line: &str) {
        let now = Instant::now();
        if self
            .last_log
            .is_none_or(|last| now.duration_since(last) >= LOG_INTERVAL)
        {
            self.last_log = Some(now);
            (self.options.log)(line);
        }
    }
}

/// The system has no descriptors or no memory for another socket.
fn is_starved(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)
    )
}
