//! One shard of one database as a whole: scanning, random keys, and bites of background work. Budgets are numbers of entries; a
//! bite of 200 to 300 takes about 50 µs when memory is cold.

use crate::access::AccessPolicy;
use crate::entry::Entry;
use crate::shard::{Header, Shard, bump};
use crate::space::{ExpiryMode, Reason, Removed};
use crate::store::{DbCount, Position};
use crate::table::{CutSink, Verdict};

/// How eviction chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EvictPolicy {
    /// Nothing is evicted.
    #[default]
    NoEviction,
    /// The least recently used of all keys.
    AllkeysLru,
    /// The least recently used of the keys with an expiry.
    VolatileLru,
    /// The least often used of all keys.
    AllkeysLfu,
    /// The least often used of the keys with an expiry.
    VolatileLfu,
    /// Any key.
    AllkeysRandom,
    /// Any key with an expiry.
    VolatileRandom,
    /// The key that expires first.
    VolatileTtl,
}

impl EvictPolicy {
    /// Whether only keys with an expiry are evicted.
    #[must_use]
    pub fn is_volatile(self) -> bool {
        matches!(
            self,
            Self::VolatileLru | Self::VolatileLfu | Self::VolatileRandom | Self::VolatileTtl
        )
    }

    /// Whether uses are to be counted (`AccessPolicy::lfu`).
    #[must_use]
    pub fn is_lfu(self) -> bool {
        matches!(self, Self::AllkeysLfu | Self::VolatileLfu)
    }

    /// The higher, the sooner evicted.
    fn badness(self, entry: Entry<'_>, access: AccessPolicy, now_ms: i64) -> u64 {
        match self {
            Self::NoEviction | Self::AllkeysRandom | Self::VolatileRandom => 0,
            Self::AllkeysLru | Self::VolatileLru => entry.idle_secs(now_ms),
            Self::AllkeysLfu | Self::VolatileLfu => 255 - u64::from(entry.freq(access, now_ms)),
            Self::VolatileTtl => {
                u64::MAX / 2 - (entry.expiry_ms().unwrap_or(i64::MAX).max(0) as u64) / 2
            }
        }
    }
}

/// What a bite of the expiry walk did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExpireProgress {
    /// Entries that it looked at.
    pub seen: usize,
    /// Keys that it removed.
    pub removed: usize,
    /// The walk came to the end of the shard.
    pub round: bool,
}

/// One shard of a database.
pub struct ShardDb<'a> {
    pub(crate) shard: &'a mut Shard,
    pub(crate) header: &'a Header,
    pub(crate) count: &'a DbCount,
    pub(crate) removed: &'a mut Vec<Removed>,
    pub(crate) index: u16,
    pub(crate) now_ms: i64,
    pub(crate) mode: ExpiryMode,
    pub(crate) access: AccessPolicy,
}

/// How many entries an eviction looks at in each place, and in how many places.
const EVICT_SAMPLE: usize = 4;
const EVICT_PLACES: usize = 4;
/// In how many places a bite looks for something to evict before it gives up.
const EVICT_TRIES: usize = 24;
/// How many keys one bite evicts.
const EVICT_MAX: usize = 32;

/// The key that is evicted next.
struct Worst {
    key: Box<[u8]>,
    /// What that frees.
    memory_bytes: u64,
    /// What its class of sizes goes by.
    size_bytes: u64,
}

impl ShardDb<'_> {
    /// Keys in the shard, expired ones that still stand included.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shard
            .table(self.index)
            .map_or(0, crate::table::Table::len)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Visits entries in hash order from `from` on until about `budget` were seen, the expired left out. Returns where to go
    /// on, `None` at the end of the shard. An entry that is there from the first call to the last is visited at least once.
    pub fn scan<'t>(
        &'t self,
        from: Position,
        budget: usize,
        visit: &mut dyn FnMut(Entry<'t>),
    ) -> Option<Position> {
        let table = self.shard.table(self.index)?;
        let next = table.scan(from.0, budget, &mut |entry| {
            if self.mode == ExpiryMode::Ignore || !entry.is_expired(self.now_ms) {
                visit(entry);
            }
        });
        next.map(Position)
    }

    /// A random key, each with the same probability; the expired left out. `None` when there is none, or only expired ones were
    /// drawn a hundred times.
    pub fn random(&mut self) -> Option<Entry<'_>> {
        let mut state = self.shard.draw();
        for _ in 0..100 {
            let table = self.shard.table(self.index)?;
            let drawn = table.random(|| crate::shard::draw(&mut state))?;
            if self.mode == ExpiryMode::Ignore || !drawn.is_expired(self.now_ms) {
                return Some(drawn);
            }
        }
        None
    }

    /// Removes expired entries that it meets on its way round the shard. It looks at about `budget` entries, and at up to twice
    /// as many while at least every tenth has expired.
    pub fn expire_bite(&mut self, budget: usize) -> ExpireProgress {
        let mut progress = ExpireProgress::default();
        if self
            .shard
            .table(self.index)
            .is_none_or(|table| table.expires() == 0)
        {
            progress.round = true;
            return progress;
        }
        let mut from = if self.shard.expire_at.0 == self.index {
            self.shard.expire_at.1
        } else {
            0
        };
        for _ in 0..2 {
            let (seen, removed, next) = self.expire_some(from, budget);
            progress.seen += seen;
            progress.removed += removed;
            match next {
                Some(next) => from = next,
                None => {
                    progress.round = true;
                    from = 0;
                    break;
                }
            }
            if removed * 10 < seen {
                break;
            }
        }
        self.shard.expire_at = (self.index, from);
        progress
    }

    fn expire_some(&mut self, from: u64, budget: usize) -> (usize, usize, Option<u64>) {
        let (now_ms, index) = (self.now_ms, self.index);
        let mut seen = 0;
        let mut keys: Vec<Box<[u8]>> = Vec::new();
        let mut trees = Vec::new();
        let (table, lazy) = self.shard.table_mut(index);
        let heap = std::sync::Arc::clone(table.heap().heap());
        let next = table.sweep(
            from,
            budget,
            true,
            &mut |entry| {
                seen += 1;
                if entry.is_expired(now_ms) {
                    keys.push(entry.key().into());
                    heap.note_expired(entry.size_bytes());
                    Verdict::Remove
                } else {
                    Verdict::Keep
                }
            },
            &mut |tree| trees.push(tree),
        );
        self.count.publish(table);
        for tree in trees {
            lazy.tree(Some(tree));
        }
        let removed = keys.len();
        for key in keys {
            bump(&self.header.expired);
            self.shard.mark(index, &key, |_| false);
            self.removed.push(Removed {
                db: index,
                key,
                reason: Reason::Expired,
            });
        }
        (seen, removed, next)
    }

    /// Rewrites old access bits (see `access`), going round the shard. True when it came to the end.
    pub fn age_bite(&mut self, budget: usize) -> bool {
        let (now_ms, access) = (self.now_ms, self.access);
        let from = if self.shard.age_at.0 == self.index {
            self.shard.age_at.1
        } else {
            0
        };
        let (table, _) = self.shard.table_mut(self.index);
        let next = table.sweep(
            from,
            budget,
            false,
            &mut |entry| {
                let bits = access.aged(entry.access(), now_ms);
                if bits == entry.access() {
                    Verdict::Keep
                } else {
                    Verdict::Access(bits)
                }
            },
            &mut |_| {},
        );
        self.shard.age_at = (self.index, next.unwrap_or(0));
        next.is_none()
    }

    /// Removes keys by the policy until about `goal_bytes` of memory are freed, 32 at most. Each is the worst of some
    /// sampled ones. Returns the bytes that were freed: 0 when there is nothing to evict here,
    /// or the few keys that may be evicted were not found in a bounded search.
    pub fn evict_bite(&mut self, policy: EvictPolicy, goal_bytes: u64) -> u64 {
        let mut freed = 0;
        if policy == EvictPolicy::NoEviction {
            return 0;
        }
        for _ in 0..EVICT_MAX {
            if freed >= goal_bytes {
                break;
            }
            let Some(worst) = self.worst(policy) else {
                break;
            };
            freed += worst.memory_bytes;
            self.evict(worst);
        }
        freed
    }

    /// The worst of some entries at several places: neighbours alone would be used up, one run of lines after another.
    fn worst(&mut self, policy: EvictPolicy) -> Option<Worst> {
        let random = matches!(
            policy,
            EvictPolicy::AllkeysRandom | EvictPolicy::VolatileRandom
        );
        let mut state = self.shard.draw();
        let table = self.shard.table(self.index)?;
        if table.len() == 0 || policy.is_volatile() && table.expires() == 0 {
            return None;
        }
        let mut worst: Option<(u64, Entry<'_>)> = None;
        for tries in 0..EVICT_TRIES {
            if worst.is_some() && (random || tries >= EVICT_PLACES) {
                break;
            }
            // Where few keys have an expiry, the later tries look further.
            let sample = EVICT_SAMPLE * (1 + tries / EVICT_PLACES);
            table.sample(crate::shard::draw(&mut state), sample, &mut |entry| {
                let counts = !policy.is_volatile() || entry.expiry_ms().is_some();
                if counts && !(random && worst.is_some()) {
                    let badness = policy.badness(entry, self.access, self.now_ms);
                    if worst.is_none_or(|(most, _)| badness > most) {
                        worst = Some((badness, entry));
                    }
                }
            });
        }
        worst.map(|(_, entry)| Worst {
            key: entry.key().into(),
            memory_bytes: entry.memory_bytes(),
            size_bytes: entry.size_bytes(),
        })
    }

    fn evict(&mut self, worst: Worst) {
        let key = worst.key;
        let (table, lazy) = self.shard.table_mut(self.index);
        if let Some(tree) = table.remove_key(&key) {
            lazy.tree(tree);
            self.count.publish(table);
            bump(&self.header.evicted);
            table.heap().heap().note_evicted(worst.size_bytes);
            self.shard.mark(self.index, &key, |_| false);
            self.removed.push(Removed {
                db: self.index,
                key,
                reason: Reason::Evicted,
            });
        }
    }

    /// Begins a cut: the sink gets every entry of this moment exactly once, from `cut_bite` and from writes. False when two
    /// cuts live in this table already. A cut belongs to the table: it goes along with SWAPDB; after a flush it gets what it still needs
    /// while the old table is freed, and then its sink is dropped.
    pub fn begin_cut(&mut self, sink: Box<dyn CutSink>) -> bool {
        self.shard.table_mut(self.index).0.begin_cut(sink)
    }

    /// Hands about `budget` further entries to the cuts. True when nothing is left to hand over.
    pub fn cut_bite(&mut self, budget: usize) -> bool {
        self.shard.table_mut(self.index).0.cut_bite(budget)
    }

    /// Ends the oldest cut, once all was handed over, and returns its sink.
    pub fn end_cut(&mut self) -> Option<Box<dyn CutSink>> {
        self.shard.table_mut(self.index).0.end_cut()
    }

    /// Bytes of the shard's line arrays and directory.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.shard
            .table(self.index)
            .map_or(0, crate::table::Table::memory_bytes)
    }
}

impl std::fmt::Debug for ShardDb<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShardDb")
            .field("index", &self.index)
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
