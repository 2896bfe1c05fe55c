//! The shared table: for each name the workers that have subscribers to it.
//!
//! Locks, outermost first: the bucket of a channel, the table of patterns, a worker's mailbox. Whoever subscribes to a pattern takes
//! the table of patterns alone.

use super::{Kind, Message};
use pantala_config::{KeyspaceEvents, glob_match};

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
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
    seed: u64,
    count: AtomicUsize,
}

impl Channels {
    fn new(seed: u64) -> Self {
        Self {
            buckets: (0..BUCKETS).map(|_| Mutex::default()).collect(),
            seed,
            count: AtomicUsize::new(0),
        }
    }

    fn bucket(&self, name: &[u8]) -> MutexGuard<'_, Names> {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.seed);
        hasher.write(name);
        let at = hasher.finish() as usize % BUCKETS;
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

/// `notify-keyspace-events`, as bits. Every command reads it, so it stands apart from what each message writes.
#[repr(align(64))]
struct Events(AtomicU16);

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
    /// `notify-keyspace-events`.
    events: Events,
}

impl Registry {
    /// Nobody listens yet. `seed`: a secret of the process, so that nobody can choose names that meet in one lock.
    pub fn new(workers: usize, seed: u64, events: KeyspaceEvents) -> Self {
        Self {
            channels: Channels::new(seed),
            shard_channels: Channels::new(seed),
            patterns: RwLock::default(),
            pattern_count: AtomicUsize::new(0),
            last_ticket: AtomicU64::new(0),
            posted: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            under_way_bytes: AtomicUsize::new(0),
            events: Events(AtomicU16::new(events.bits())),
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
        KeyspaceEvents::from_bits(self.events.0.load(Relaxed))
    }

    /// Puts a changed `notify-keyspace-events` in force.
    pub fn set_events(&self, events: KeyspaceEvents) {
        self.events.0.store(events.bits(), Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn registry(workers: usize) -> Registry {
        Registry::new(workers, 7, KeyspaceEvents::default())
    }

    /// Workers that got mail, the number of receivers, and whether the own worker delivers.
    fn publish(
        registry: &Registry,
        kind: Kind,
        channel: &str,
        origin: Option<(usize, u64)>,
    ) -> (Vec<usize>, usize, bool) {
        let mut posted = Vec::new();
        let published =
            registry.publish(kind, channel.as_bytes(), b"m", origin, |worker, message| {
                assert_eq!(message.channel(), channel.as_bytes());
                posted.push(worker);
            });
        posted.sort_unstable();
        (posted, published.receivers, published.own.is_some())
    }

    #[test]
    fn each_worker_gets_one_message_and_each_client_counts() {
        let registry = registry(4);
        for worker in [0, 2, 2, 2] {
            registry.subscribe(Kind::Channel, b"news", worker);
        }
        registry.subscribe(Kind::Pattern, b"n*", 2);
        registry.subscribe(Kind::Pattern, b"n?ws", 3);
        registry.subscribe(Kind::Pattern, b"other", 1);
        registry.subscribe(Kind::Shard, b"news", 1);
        assert_eq!(
            publish(&registry, Kind::Channel, "news", None),
            (vec![0, 2, 3], 6, false)
        );
        assert_eq!(
            publish(&registry, Kind::Shard, "news", None),
            (vec![1], 1, false)
        );
        assert_eq!(
            publish(&registry, Kind::Channel, "xyz", None),
            (vec![], 0, false)
        );
        assert_eq!(registry.clients(Kind::Channel, b"news"), 4);
        assert_eq!(registry.clients(Kind::Shard, b"news"), 1);
        assert_eq!(
            [Kind::Channel, Kind::Pattern, Kind::Shard].map(|kind| registry.count(kind)),
            [1, 3, 1]
        );
    }

    #[test]
    fn names_without_subscribers_are_forgotten() {
        let registry = registry(2);
        for kind in [Kind::Channel, Kind::Pattern, Kind::Shard] {
            registry.subscribe(kind, b"x", 0);
            registry.subscribe(kind, b"x", 1);
            registry.unsubscribe(kind, b"x", 0);
            assert_eq!(registry.count(kind), 1);
            registry.unsubscribe(kind, b"x", 1);
            registry.unsubscribe(kind, b"x", 1);
            registry.unsubscribe(kind, b"never", 1);
            assert_eq!(registry.count(kind), 0);
            assert!(registry.names(kind, None).is_empty());
        }
        assert!(!registry.has_listeners());
    }

    #[test]
    fn names_are_listed_by_pattern() {
        let registry = registry(1);
        for name in ["a1", "a2", "b1"] {
            registry.subscribe(Kind::Channel, name.as_bytes(), 0);
        }
        let mut found = registry.names(Kind::Channel, Some(b"a*"));
        found.sort();
        assert_eq!(found, [Arc::from(*b"a1"), Arc::from(*b"a2")]);
        assert_eq!(registry.names(Kind::Channel, None).len(), 3);
        assert!(registry.names(Kind::Shard, None).is_empty());
    }

    #[test]
    fn the_own_worker_delivers_unless_earlier_mail_is_under_way() {
        let registry = registry(2);
        registry.subscribe(Kind::Channel, b"x", 0);
        assert_eq!(
            publish(&registry, Kind::Channel, "x", Some((0, 0))),
            (vec![], 1, true)
        );
        // Another worker's message is on its way to worker 0 ...
        assert_eq!(
            publish(&registry, Kind::Channel, "x", Some((1, 0))),
            (vec![0], 1, false)
        );
        // ... so the next one of worker 0 goes behind it ...
        assert_eq!(
            publish(&registry, Kind::Channel, "x", Some((0, 0))),
            (vec![0], 1, false)
        );
        // ... until worker 0 has taken both.
        assert_eq!(registry.posted(0), 2);
        assert_eq!(
            publish(&registry, Kind::Channel, "x", Some((0, 2))),
            (vec![], 1, true)
        );
    }

    #[test]
    fn tickets_tell_what_came_before_a_subscription() {
        let registry = registry(2);
        registry.subscribe(Kind::Channel, b"x", 0);
        let mut tickets = Vec::new();
        let mut publish = |registry: &Registry| {
            registry.publish(Kind::Channel, b"x", b"", None, |_, message| {
                tickets.push(message.ticket);
            });
        };
        publish(&registry);
        let (_, since) = registry.subscribe(Kind::Channel, b"x", 0);
        let (_, pattern_since) = registry.subscribe(Kind::Pattern, b"*", 0);
        publish(&registry);
        assert!(tickets[0] <= since && since < tickets[1]);
        assert!(tickets[0] <= pattern_since && pattern_since < tickets[1]);
    }

    #[test]
    fn a_flood_is_noticed() {
        let registry = registry(1);
        registry.subscribe(Kind::Channel, b"x", 0);
        let payload = vec![0; UNDER_WAY_MAX_BYTES + 1];
        let mut letters = Vec::new();
        registry.publish(Kind::Channel, b"x", &payload, None, |_, message| {
            letters.push(message);
        });
        assert!(registry.is_crowded());
        letters.iter().for_each(|message| registry.taken(message));
        assert!(!registry.is_crowded());
    }

    /// Pattern subscriptions race with messages: whoever was counted gets the message by its ticket, and nobody else.
    #[test]
    fn what_is_counted_is_delivered() {
        const MESSAGES: usize = 20_000;
        let registry = registry(2);
        registry.subscribe(Kind::Channel, b"x", 0);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let publisher = scope.spawn(|| {
                let mut seen = Vec::with_capacity(MESSAGES);
                for _ in 0..MESSAGES {
                    let mut ticket = 0;
                    let published =
                        registry.publish(Kind::Channel, b"x", b"", None, |_, message| {
                            ticket = message.ticket;
                        });
                    seen.push((ticket, published.receivers));
                }
                ended.store(true, SeqCst);
                seen
            });
            let mut spans = Vec::new();
            while !ended.load(SeqCst) {
                let (name, since) = registry.subscribe(Kind::Pattern, b"*", 1);
                registry.unsubscribe(Kind::Pattern, &name, 1);
                // A message drawn later stands behind the end of the subscription.
                spans.push((since, registry.last_ticket.load(SeqCst)));
            }
            let seen = publisher.join().expect("the publisher ends");
            for (ticket, receivers) in seen {
                assert!(receivers == 1 || receivers == 2);
                let inside = spans
                    .iter()
                    .any(|&(since, end)| since < ticket && ticket <= end);
                assert!(
                    receivers == 1 || inside,
                    "counted, but its ticket is from before the subscription"
                );
            }
        });
    }
}
