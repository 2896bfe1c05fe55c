//! The table of connected clients: what `CLIENT LIST`, `CLIENT KILL` and `INFO clients` see of each.
//!
//! Each session's worker writes its [`Card`] with relaxed stores as it executes; anyone may read. So listing clients never asks
//! another worker and never waits.

use pantala_reactor::ConnId;
use std::collections::BTreeMap;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed,
};
use std::sync::{Arc, Mutex, PoisonError};

/// What others may see of a client.
#[derive(Debug)]
pub struct Card {
    /// Unique, never reused.
    pub id: u64,
    /// Worker that owns the connection.
    pub worker: usize,
    /// The connection on that worker.
    pub conn: ConnId,
    /// Peer's address.
    pub peer: Box<str>,
    /// Our address.
    pub local: Box<str>,
    /// File descriptor number.
    pub fd: i32,
    /// Whether it is a Unix socket.
    pub unix: bool,
    /// Whether it speaks the memcached protocol.
    pub memcached: bool,
    /// Unix time in ms when it connected.
    pub since_ms: i64,
    /// Unix time in ms of its last command.
    pub active_ms: AtomicI64,
    /// Selected database.
    pub db: AtomicU16,
    /// 2 or 3.
    pub resp: AtomicU16,
    /// Registry number of the last command, `u16::MAX` before the first.
    pub last_command: AtomicU16,
    /// Commands queued in `MULTI`, -1 outside.
    pub queued: AtomicI64,
    /// Keys being watched.
    pub watched: AtomicU32,
    /// Bytes waiting to be executed.
    pub query_bytes: AtomicUsize,
    /// Bytes held by the queue of a transaction.
    pub queue_bytes: AtomicUsize,
    /// Reply bytes not yet taken by the system.
    pub output_bytes: AtomicUsize,
    /// Commands executed.
    pub commands: AtomicU64,
    /// `MONITOR` is on.
    pub monitor: AtomicBool,
    /// `CLIENT NO-EVICT`.
    pub no_evict: AtomicBool,
    /// `CLIENT NO-TOUCH`.
    pub no_touch: AtomicBool,
    /// Channels, patterns and shard channels that it is subscribed to.
    pub subscriptions: [AtomicU32; 3],
    /// Waiting for a shard, a helper thread or the end of a pause.
    pub waiting: AtomicBool,
    /// Gone, or told to close by `CLIENT KILL`, which counts as gone.
    pub killed: AtomicBool,
    /// Names that the client gave itself.
    pub names: Mutex<Names>,
}

/// Names that a client gave itself.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// `CLIENT SETNAME`.
    pub name: String,
    /// `CLIENT SETINFO LIB-NAME`.
    pub lib_name: String,
    /// `CLIENT SETINFO LIB-VER`.
    pub lib_ver: String,
    /// User it authenticated as.
    pub user: String,
}

/// Where a new client comes from.
pub struct Arrival {
    /// Worker that owns the connection.
    pub worker: usize,
    /// The connection on that worker.
    pub conn: ConnId,
    /// Peer's address.
    pub peer: String,
    /// Our address.
    pub local: String,
    /// File descriptor number.
    pub fd: i32,
    /// Whether it is a Unix socket.
    pub unix: bool,
    /// Whether it speaks the memcached protocol.
    pub memcached: bool,
    /// Unix time in ms.
    pub now_ms: i64,
}

/// All connected clients by id.
#[derive(Default)]
pub struct Clients {
    next_id: AtomicU64,
    count: AtomicUsize,
    monitors: AtomicUsize,
    cards: Mutex<BTreeMap<u64, Arc<Card>>>,
}

impl Clients {
    /// Registers a client.
    pub fn add(&self, arrival: Arrival) -> Arc<Card> {
        let id = self.next_id.fetch_add(1, Relaxed) + 1;
        let card = Arc::new(Card {
            id,
            worker: arrival.worker,
            conn: arrival.conn,
            peer: arrival.peer.into(),
            local: arrival.local.into(),
            fd: arrival.fd,
            unix: arrival.unix,
            memcached: arrival.memcached,
            since_ms: arrival.now_ms,
            active_ms: AtomicI64::new(arrival.now_ms),
            db: AtomicU16::new(0),
            resp: AtomicU16::new(2),
            last_command: AtomicU16::new(u16::MAX),
            queued: AtomicI64::new(-1),
            watched: AtomicU32::new(0),
            query_bytes: AtomicUsize::new(0),
            queue_bytes: AtomicUsize::new(0),
            output_bytes: AtomicUsize::new(0),
            commands: AtomicU64::new(0),
            monitor: AtomicBool::new(false),
            no_evict: AtomicBool::new(false),
            no_touch: AtomicBool::new(false),
            subscriptions: Default::default(),
            waiting: AtomicBool::new(false),
            killed: AtomicBool::new(false),
            names: Mutex::new(Names {
                user: "default".to_owned(),
                ..Names::default()
            }),
        });
        self.count.fetch_add(1, Relaxed);
        self.cards
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, Arc::clone(&card));
        card
    }

    /// Forgets a client whose connection is gone.
    pub fn remove(&self, card: &Card) {
        card.killed.store(true, Relaxed);
        if self
            .cards
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&card.id)
            .is_some()
        {
            self.count.fetch_sub(1, Relaxed);
        }
        self.set_monitor(card, false);
    }

    /// Notes whether a client monitors.
    pub fn set_monitor(&self, card: &Card, on: bool) {
        if card.monitor.swap(on, Relaxed) != on {
            if on {
                self.monitors.fetch_add(1, Relaxed);
            } else {
                self.monitors.fetch_sub(1, Relaxed);
            }
        }
    }

    /// Number of clients that monitor.
    pub fn monitors(&self) -> usize {
        self.monitors.load(Relaxed)
    }

    /// Number of connected clients.
    pub fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// A client by id.
    pub fn get(&self, id: u64) -> Option<Arc<Card>> {
        self.cards
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&id)
            .cloned()
    }

    /// All clients in the order of their ids.
    pub fn all(&self) -> Vec<Arc<Card>> {
        self.cards
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }
}
