//! The shared table: for each name the workers that have subscribers to it.
//!
//! Locks, outermost first: the bucket of a channel, the table of patterns, a worker's mailbox. Whoever subscribes to a pattern takes
//! the table of patterns alone.

use super::{Kind, Message};
use pantala_config::{KeyspaceEvents, glob_match};

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{
    AtomicU16, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Locks per kind of channel: enough that publishers on different channels rarely meet.
const BUCKETS: usize = 64;

/// Most bytes of messages under way between workers before publishers wait.
const UNDER_WAY_MAX_BYTES: usize = 64 * 1024 * 1024;

/// Who listens to one name: workers with the number of their subscribers, never zero.
#[derive(Default)]
struct Audience(Vec<(usize, usize)>);

impl Audience {
    fn add(&mut self, worker: usize) {
        match self.0.iter_mut().find(|(known, _)| *known == worker) {
            Some((_, clients)) => *clients += 1,
            None => self.0.push((worker, 1)),
        }
    }

    fn remove(&mut self, worker: usize) {
        if let Some(at) = self.0.iter().position(|(known, _)| *known == worker) {
            self.0[at].1 -= 1;
            if self.0[at].1 == 0 {
                self.0.swap_remove(at);
            }
        }
    }

    fn clients(&self) -> usize {
        self.0.iter().map(|(_, clients)| clients).sum()
    }
}

type Names = HashMap<Arc<[u8]>, Audience>;

/// Names of one kind of channel.
struct Channels {
    buckets: Box<[Mutex<Names>]>,
    hasher: RandomState,
    count: AtomicUsize,
}

impl Default for Channels {
    fn default() -> Self {
        Self {
            buckets: (0..BUCKETS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            count: AtomicUsize::new(0),
        }
    }
}

impl Channels {
    fn bucket(&self, name: &[u8]) -> MutexGuard<'_, Names> {
        let at = self.hasher.hash_one(name) as usize % BUCKETS;
        lock(&self.buckets[at])
    }
}

/// Every change of a table is complete when its lock is given back, also by a panic.
fn lock(names: &Mutex<Names>) -> MutexGuard<'_, Names> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

fn join(names: &mut Names, name: &[u8], worker: usize) -> Arc<[u8]> {
    let name = match names.get_key_value(name) {
        Some((known, _)) => Arc::clone(known),
        None => name.into(),
    };
    names.entry(Arc::clone(&name)).or_default().add(worker);
    name
}

/// True: nobody is left.
fn leave(names: &mut Names, name: &[u8], worker: usize) -> bool {
    let Some(audience) = names.get_mut(name) else {
        return false;
    };
    audience.remove(worker);
    let empty = audience.0.is_empty();
    if empty {
        names.remove(name);
    }
    empty
}

/// What became of a message.
pub struct Published {
    /// Clients that get it; one with several matching subscriptions counts for each.
    pub receivers: usize,
    /// The message, if the publisher's own worker is to deliver it now.
    pub own: Option<Arc<Message>>,
}

/// Who listens to what, on which worker.
pub struct Registry {
    channels: Channels,
    shard_channels: Channels,
    patterns: RwLock<Names>,
    pattern_count: AtomicUsize,
    /// The last ticket drawn.
    last_ticket: AtomicU64,
    /// Messages ever posted to each worker.
    posted: Box<[AtomicU64]>,
    under_way_bytes: AtomicUsize,
    /// `notify-keyspace-events`, as bits.
    events: AtomicU16,
}

impl Registry {
    /// Nobody listens yet.
    pub fn new(workers: usize, events: KeyspaceEvents) -> Self {
        Self {
            channels: Channels::default(),
            shard_channels: Channels::default(),
            patterns: RwLock::default(),
            pattern_count: AtomicUsize::new(0),
            last_ticket: AtomicU64::new(0),
            posted: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            under_way_bytes: AtomicUsize::new(0),
            events: AtomicU16::new(events.bits()),
        }
    }

    /// Adds a subscriber of `worker`. Returns the name, shared by all tables, and the last ticket before the subscription.
    pub fn subscribe(&self, kind: Kind, name: &[u8], worker: usize) -> (Arc<[u8]>, u64) {
        match kind {
            Kind::Pattern => {
                let mut patterns = self
                    .patterns
                    .write()
                    .unwrap_or_else(PoisonError::into_inner);
                let name = join(&mut patterns, name, worker);
                // Visible before the ticket is read: see `publish`.
                self.pattern_count.store(patterns.len(), SeqCst);
                (name, self.last_ticket.load(SeqCst))
            }
            Kind::Channel | Kind::Shard => {
                let channels = self.channels_of(kind);
                let mut bucket = channels.bucket(name);
                let before = bucket.len();
                let name = join(&mut bucket, name, worker);
                channels.count.fetch_add(bucket.len() - before, Relaxed);
                (name, self.last_ticket.load(SeqCst))
            }
        }
    }

    /// Takes a subscriber of `worker` away.
    pub fn unsubscribe(&self, kind: Kind, name: &[u8], worker: usize) {
        match kind {
            Kind::Pattern => {
                let mut patterns = self
                    .patterns
                    .write()
                    .unwrap_or_else(PoisonError::into_inner);
                leave(&mut patterns, name, worker);
                self.pattern_count.store(patterns.len(), SeqCst);
            }
            Kind::Channel | Kind::Shard => {
                let channels = self.channels_of(kind);
                if leave(&mut channels.bucket(name), name, worker) {
                    channels.count.fetch_sub(1, Relaxed);
                }
            }
        }
    }

    /// Publishes on a channel or shard channel: posts the message to each worker with subscribers, through `post`.
    ///
    /// `origin`: the worker that publishes and how many posted messages it has taken. If it has taken all of them, its own part is
    /// returned instead of posted, and must be delivered before it does anything else.
    pub fn publish(
        &self,
        kind: Kind,
        channel: &[u8],
        payload: &[u8],
        origin: Option<(usize, u64)>,
        mut post: impl FnMut(usize, Arc<Message>),
    ) -> Published {
        let mut published = Published {
            receivers: 0,
            own: None,
        };
        let channels = self.channels_of(kind);
        // Posting happens under this lock too: it is what orders the messages of a channel.
        let bucket = channels.bucket(channel);
        let audience = bucket.get(channel);
        let mut ticket = match audience {
            Some(_) => self.draw(),
            None => 0,
        };
        // No lock while there are no patterns. Whoever adds the first one makes it visible before it reads the last ticket: if it is
        // not seen here, our ticket was drawn before, and the new subscriber will not take the message.
        let patterns = (kind == Kind::Channel && self.pattern_count.load(SeqCst) != 0)
            .then(|| self.patterns.read().unwrap_or_else(PoisonError::into_inner));
        let mut workers: Vec<usize> = Vec::new();
        let mut matched: Vec<Arc<[u8]>> = Vec::new();
        if let Some(audience) = audience {
            published.receivers += audience.clients();
            workers.extend(audience.0.iter().map(|(worker, _)| *worker));
        }
        for (pattern, audience) in patterns.iter().flat_map(|patterns| patterns.iter()) {
            if glob_match(pattern, channel, false) {
                published.receivers += audience.clients();
                matched.push(Arc::clone(pattern));
                for &(worker, _) in &audience.0 {
                    if !workers.contains(&worker) {
                        workers.push(worker);
                    }
                }
            }
        }
        if workers.is_empty() {
            return published;
        }
        if patterns.is_some() {
            // Under the lock of the patterns, so that it stands in one order with their subscriptions.
            ticket = self.draw();
        }
        let message = Arc::new(Message::new(kind, ticket, matched.into(), channel, payload));
        for worker in workers {
            let posted = &self.posted[worker];
            if origin.is_some_and(|(own, taken)| own == worker && posted.load(SeqCst) == taken) {
                published.own = Some(Arc::clone(&message));
                continue;
            }
            posted.fetch_add(1, SeqCst);
            self.under_way_bytes.fetch_add(message.bytes(), Relaxed);
            post(worker, Arc::clone(&message));
        }
        published
    }

    /// A posted message has reached its worker.
    pub fn taken(&self, message: &Message) {
        self.under_way_bytes.fetch_sub(message.bytes(), Relaxed);
    }

    /// Messages ever posted to a worker.
    pub fn posted(&self, worker: usize) -> u64 {
        self.posted[worker].load(SeqCst)
    }

    /// So much is under way that whoever publishes should wait a moment.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        self.under_way_bytes.load(Relaxed) > UNDER_WAY_MAX_BYTES
    }

    /// Number of names with subscribers.
    pub fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::Pattern => self.pattern_count.load(Relaxed),
            Kind::Channel | Kind::Shard => self.channels_of(kind).count.load(Relaxed),
        }
    }

    /// Number of subscribers of a channel or shard channel, patterns not counted.
    pub fn clients(&self, kind: Kind, channel: &[u8]) -> usize {
        self.channels_of(kind)
            .bucket(channel)
            .get(channel)
            .map_or(0, Audience::clients)
    }

    /// Channels or shard channels with subscribers, those that match `pattern`.
    pub fn names(&self, kind: Kind, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>> {
        let mut found = Vec::new();
        for bucket in &self.channels_of(kind).buckets {
            let bucket = lock(bucket);
            let wanted =
                |name: &&Arc<[u8]>| pattern.is_none_or(|pattern| glob_match(pattern, name, false));
            found.extend(bucket.keys().filter(wanted).cloned());
        }
        found
    }

    /// `notify-keyspace-events`, as it is now.
    #[inline]
    pub fn events(&self) -> KeyspaceEvents {
        KeyspaceEvents::from_bits(self.events.load(Relaxed))
    }

    /// Puts a changed `notify-keyspace-events` in force.
    pub fn set_events(&self, events: KeyspaceEvents) {
        self.events.store(events.bits(), Relaxed);
    }

    /// Whether anybody could get a message on an ordinary channel.
    pub fn has_listeners(&self) -> bool {
        self.channels.count.load(Relaxed) != 0 || self.pattern_count.load(Relaxed) != 0
    }

    fn draw(&self) -> u64 {
        self.last_ticket.fetch_add(1, SeqCst) + 1
    }

    fn channels_of(&self, kind: Kind) -> &Channels {
        match kind {
            Kind::Shard => &self.shard_channels,
            Kind::Channel | Kind::Pattern => &self.channels,
        }
    }
}
