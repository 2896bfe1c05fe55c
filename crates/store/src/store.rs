//! The store: all shards, and what can be asked of them without a borrow.

use crate::access::AccessPolicy;
use crate::hash::{Hasher, Key, KeyHash};
use crate::heap::{Heap, HeapUse, SizeClass, default_span_bytes};
use crate::shard::{Header, LazyCounts, LazyFree, Shard};
use crate::space::Space;
use pantala_borrow::{
    Attempt, Borrow, Gate, Outcome, Parked, Party, ScriptLock, ShardId, ShardSet, Shards, Wake,
    World,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The most shards: the cursor of SCAN has 12 bits for them.
pub const SHARDS_MAX: u16 = 4096;
/// Bits of a cursor that tell the place within a shard.
const POSITION_BITS: u32 = 40;

/// How a store is made.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// How many shards; rounded up to a power of two, at most `SHARDS_MAX`.
    pub shards: u16,
    /// How many databases, at least one.
    pub databases: u16,
    /// Seed of the hash: fixed to repeat a run, `None` for a secret one.
    pub seed: Option<u64>,
    /// How many threads borrow: workers first, then helpers.
    pub parties: usize,
    /// How many groups of slabs for entries (at most 64).
    pub groups: usize,
    /// How uses are recorded at first; see `Store::set_access_policy`.
    pub access: AccessPolicy,
    /// Address space to reserve, in bytes; `None`: four times the memory of the machine, at least 64 GiB.
    pub span_bytes: Option<usize>,
}

impl StoreOptions {
    /// The defaults for so many workers and helpers: 64 shards and 4 groups per worker. Fewer groups waste less memory in partly filled
    /// slabs; with four per worker two workers meet in one so rarely that it cannot be measured.
    #[must_use]
    pub fn for_threads(workers: usize, helpers: usize) -> Self {
        Self {
            shards: (workers.max(1) * 64)
                .next_power_of_two()
                .clamp(64, SHARDS_MAX as usize) as u16,
            databases: 16,
            seed: None,
            parties: workers + helpers,
            groups: (workers * 4).clamp(4, 64),
            access: AccessPolicy::default(),
            span_bytes: None,
        }
    }
}

/// Sums of the counters of all shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Lookups that found their key.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Keys removed because they had expired.
    pub expired: u64,
    /// Keys removed to make room.
    pub evicted: u64,
    /// Entries of flushed databases and large values that wait to be freed.
    pub lazy_waiting: u64,
    /// Those that were freed.
    pub lazy_freed: u64,
}

/// Keys of one shard in one database.
#[derive(Default)]
pub(crate) struct DbCount {
    keys: AtomicU64,
    expires: AtomicU64,
}

impl DbCount {
    #[inline]
    pub(crate) fn publish(&self, table: &crate::table::Table) {
        self.keys.store(table.len(), Relaxed);
        self.expires.store(table.expires(), Relaxed);
    }

    pub(crate) fn has_expires(&self) -> bool {
        self.expires.load(Relaxed) > 0
    }
}

/// A place in the hash order of one shard; 0 is its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub struct Position(pub(crate) u64);

impl Position {
    /// The start of a shard.
    pub const START: Self = Self(0);
}

/// All data.
pub struct Store {
    shards: Shards<Shard, Header>,
    shard_bits: u8,
    databases: u16,
    hasher: Arc<Hasher>,
    heap: Arc<Heap>,
    counts: Box<[DbCount]>,
    pub(crate) lazy: Arc<LazyCounts>,
    cas: AtomicU64,
    access: AtomicU32,
    pub(crate) background: crate::background::Background,
}

impl Store {
    /// An empty store.
    ///
    /// # Errors
    /// When no address space can be reserved.
    pub fn new(options: &StoreOptions, wake: Arc<dyn Wake>) -> std::io::Result<Self> {
        let count = options.shards.clamp(1, SHARDS_MAX).next_power_of_two();
        let shard_bits = count.trailing_zeros() as u8;
        let databases = options.databases.max(1);
        let hasher = Arc::new(Hasher::new(options.seed));
        let heap = Heap::new(
            options.groups,
            options.span_bytes.unwrap_or_else(default_span_bytes),
        )?;
        let lazy = Arc::new(LazyCounts::default());
        let contents = (0..count).map(|id| {
            let random = hasher.hash(&id.to_le_bytes());
            Shard::new(
                heap.handle(id as usize),
                LazyFree::new(Arc::clone(&lazy)),
                Arc::clone(&hasher),
                shard_bits,
                databases,
                random,
            )
        });
        let store = Self {
            shards: Shards::new(contents, options.parties.max(1), wake),
            shard_bits,
            databases,
            counts: (0..count as usize * databases as usize)
                .map(|_| DbCount::default())
                .collect(),
            hasher,
            heap,
            lazy: Arc::clone(&lazy),
            cas: AtomicU64::new(1),
            access: AtomicU32::new(0),
            background: crate::background::Background::new(),
        };
        store.set_access_policy(options.access);
        Ok(store)
    }

    /// The hash of a key.
    #[inline]
    #[must_use]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        KeyHash(self.hasher.hash(key))
    }

    /// A key with its hash.
    #[inline]
    #[must_use]
    pub fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        Key {
            bytes,
            hash: self.hash(bytes),
        }
    }

    /// The shard of a hash.
    #[inline]
    #[must_use]
    pub fn shard_of(&self, hash: KeyHash) -> ShardId {
        // Two shifts, because a shift by 64 is none.
        (hash.0 >> 1 >> (63 - self.shard_bits)) as ShardId
    }

    /// How many shards there are.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// How many databases there are.
    #[must_use]
    pub fn databases(&self) -> u16 {
        self.databases
    }

    /// The lock words of the shards, for what the store does not wrap (script lock, parking, claims).
    #[must_use]
    pub fn locks(&self) -> &Shards<Shard, Header> {
        &self.shards
    }

    /// The gate: makes the world stand still.
    #[must_use]
    pub fn gate(&self) -> Gate<'_, Shard, Header> {
        self.shards.gate()
    }

    /// The lock of scripts that may touch any key.
    #[must_use]
    pub fn script_lock(&self) -> ScriptLock<'_> {
        self.shards.script_lock()
    }

    /// Borrows one shard, if it is free.
    #[inline]
    #[must_use]
    pub fn try_borrow_one(&self, shard: ShardId) -> Option<Space<'_>> {
        self.shards
            .try_one(shard)
            .map(|borrow| Space::new(self, borrow))
    }

    /// Borrows all shards of a set, or none.
    ///
    /// # Errors
    /// The shard that was in the way: park there.
    pub fn try_borrow(&self, set: &ShardSet, attempt: &mut Attempt) -> Result<Space<'_>, ShardId> {
        match self.shards.try_borrow(set, attempt) {
            Outcome::Borrowed(borrow) => Ok(Space::new(self, borrow)),
            Outcome::Busy(shard) => Err(shard),
        }
    }

    /// Borrows all shards of a set, asleep meanwhile. For helper threads.
    #[must_use]
    pub fn borrow_blocking(&self, set: &ShardSet, party: Party) -> Space<'_> {
        Space::new(self, self.shards.borrow_blocking(set, party))
    }

    /// Waits for a shard without a thread: the party is woken when it is given back.
    pub fn park(&self, shard: ShardId, party: Party) -> Parked {
        self.shards.park(shard, party)
    }

    /// Wraps a borrow that was made through `locks`.
    #[must_use]
    pub fn space<'s>(&'s self, borrow: Borrow<'s, Shard, Header>) -> Space<'s> {
        Space::new(self, borrow)
    }

    /// Keys of a database, expired ones that still stand included. Exact when nobody writes.
    #[must_use]
    pub fn dbsize(&self, db: u16) -> u64 {
        self.counts_of(db)
            .map(|count| count.keys.load(Relaxed))
            .sum()
    }

    /// Keys of a database that have an expiry.
    #[must_use]
    pub fn expires_size(&self, db: u16) -> u64 {
        self.counts_of(db)
            .map(|count| count.expires.load(Relaxed))
            .sum()
    }

    /// Keys of one shard in a database.
    #[must_use]
    pub fn shard_size(&self, shard: ShardId, db: u16) -> u64 {
        self.count(shard, db).keys.load(Relaxed)
    }

    /// A shard drawn with the probability of its share of the database's keys; `None` when there are no keys.
    #[must_use]
    pub fn random_shard(&self, db: u16, random: u64) -> Option<ShardId> {
        self.draw_shard(db, random, |count| &count.keys)
    }

    /// The same by its share of the keys that have an expiry.
    #[must_use]
    pub fn random_shard_of_expiring(&self, db: u16, random: u64) -> Option<ShardId> {
        self.draw_shard(db, random, |count| &count.expires)
    }

    fn draw_shard(
        &self,
        db: u16,
        random: u64,
        by: impl Fn(&DbCount) -> &AtomicU64,
    ) -> Option<ShardId> {
        let all: u64 = self
            .counts_of(db)
            .map(|count| by(count).load(Relaxed))
            .sum();
        let mut rest = ((u128::from(random) * u128::from(all)) >> 64) as u64;
        let mut last = None;
        for (shard, count) in self.counts_of(db).enumerate() {
            let keys = by(count).load(Relaxed);
            if keys > 0 {
                last = Some(shard as ShardId);
            }
            if rest < keys {
                return last;
            }
            rest -= keys;
        }
        last
    }

    /// Whether something that was deleted or flushed waits to be freed by bites.
    #[must_use]
    pub fn owes_memory(&self) -> bool {
        self.lazy.waiting.load(Relaxed) > 0
    }

    /// Bytes in use: entries, tables, nodes of large values.
    #[must_use]
    pub fn used_memory(&self) -> u64 {
        self.heap.used_bytes()
    }

    /// Bytes that the system gave to the store and that were not given back.
    #[must_use]
    pub fn resident_estimate(&self) -> u64 {
        self.heap.usage().resident_bytes
    }

    /// Bytes in use by purpose.
    #[must_use]
    pub fn heap_use(&self) -> HeapUse {
        self.heap.usage()
    }

    /// The heap by classes of sizes, in order. Takes some microseconds.
    #[must_use]
    pub fn size_classes(&self) -> Vec<SizeClass> {
        self.heap.size_classes()
    }

    /// Sums of the counters of all shards.
    #[must_use]
    pub fn stats(&self) -> StoreStats {
        let lazy = StoreStats {
            lazy_waiting: self.lazy.waiting.load(Relaxed),
            lazy_freed: self.lazy.freed.load(Relaxed),
            ..StoreStats::default()
        };
        self.shards.headers().fold(lazy, |sum, header| StoreStats {
            hits: sum.hits + header.hits.load(Relaxed),
            misses: sum.misses + header.misses.load(Relaxed),
            expired: sum.expired + header.expired.load(Relaxed),
            evicted: sum.evicted + header.evicted.load(Relaxed),
            ..sum
        })
    }

    /// Sets the counters of `stats` to zero (CONFIG RESETSTAT). Counts that happen at the same moment may survive.
    pub fn reset_stats(&self) {
        self.lazy.freed.store(0, Relaxed);
        self.heap.forget_removed();
        for header in self.shards.headers() {
            for counter in [
                &header.hits,
                &header.misses,
                &header.expired,
                &header.evicted,
            ] {
                counter.store(0, Relaxed);
            }
        }
    }

    /// How uses are recorded.
    #[must_use]
    pub fn access_policy(&self) -> AccessPolicy {
        let bits = self.access.load(Relaxed);
        AccessPolicy {
            lfu: bits & 1 != 0,
            lfu_log_factor: bits >> 1 & 0x7fff,
            lfu_decay_minutes: bits >> 16,
            no_touch: false,
        }
    }

    /// Changes how uses are recorded from now on. Factor and time are held below 2^15 and 2^16.
    pub fn set_access_policy(&self, policy: AccessPolicy) {
        let bits = u32::from(policy.lfu)
            | policy.lfu_log_factor.min(0x7fff) << 1
            | policy.lfu_decay_minutes.min(0xffff) << 16;
        self.access.store(bits, Relaxed);
    }

    /// A number for memcached's CAS that was never given before.
    pub fn next_cas(&self) -> u64 {
        self.cas.fetch_add(1, Relaxed)
    }

    /// First stage of a batch's prefetch: the shard's lock and directory.
    #[inline]
    pub fn prefetch_shard(&self, hash: KeyHash) {
        self.shards.prefetch(self.shard_of(hash));
    }

    /// Second stage: the key's line. Skipped when the shard is busy.
    #[inline]
    pub fn prefetch_line(&self, hash: KeyHash, db: u16) {
        if let Some(mut borrow) = self.shards.try_one(self.shard_of(hash))
            && let Some(table) = borrow.one().table(db)
        {
            table.prefetch_line(hash.0);
        }
    }

    /// Third stage: the key's entry. Skipped when the shard is busy.
    #[inline]
    pub fn prefetch_entry(&self, hash: KeyHash, db: u16) {
        if let Some(mut borrow) = self.shards.try_one(self.shard_of(hash))
            && let Some(table) = borrow.one().table(db)
        {
            table.prefetch_entry(hash.0);
        }
    }

    /// What a SCAN cursor means: shard and position. `None` for a number that is no cursor of this store: the scan is over.
    #[must_use]
    pub fn decode_cursor(&self, cursor: u64) -> Option<(ShardId, Position)> {
        let shard = cursor >> POSITION_BITS;
        if shard >= self.shards.len() as u64 {
            return None;
        }
        Some((shard as ShardId, Position(cursor << (64 - POSITION_BITS))))
    }

    /// The cursor to go on with after `ShardDb::scan` of a shard returned `next`; 0 when the scan is over. At most 52 bits.
    #[must_use]
    pub fn encode_cursor(&self, shard: ShardId, next: Option<Position>) -> u64 {
        match next {
            Some(position) => {
                u64::from(shard) << POSITION_BITS | position.0 >> (64 - POSITION_BITS)
            }
            None if (shard as usize) + 1 < self.shards.len() => {
                (u64::from(shard) + 1) << POSITION_BITS
            }
            None => 0,
        }
    }

    /// Exchanges two databases while the world stands still.
    pub fn swap_databases(
        &self,
        world: &mut World<'_, Shard, Header>,
        (a, b): (u16, u16),
        now_ms: i64,
    ) {
        for id in 0..self.shards.len() as ShardId {
            crate::space::swap_in(self, id, world.shard(id), (a, b), now_ms);
        }
    }

    /// Empties a database, or all, while the world stands still. The memory is freed in bites.
    pub fn flush(&self, world: &mut World<'_, Shard, Header>, db: Option<u16>) {
        for id in 0..self.shards.len() as ShardId {
            crate::space::flush_in(self, id, world.shard(id), db);
        }
    }

    #[inline]
    pub(crate) fn count(&self, shard: ShardId, db: u16) -> &DbCount {
        &self.counts[shard as usize * self.databases as usize + db as usize]
    }

    fn counts_of(&self, db: u16) -> impl Iterator<Item = &DbCount> {
        let known = db < self.databases;
        self.counts
            .iter()
            .skip(db as usize)
            .step_by(self.databases as usize)
            .take(if known { self.shards.len() } else { 0 })
    }

    pub(crate) fn heap(&self) -> &Arc<Heap> {
        &self.heap
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("shards", &self.shards.len())
            .field("databases", &self.databases)
            .finish_non_exhaustive()
    }
}
