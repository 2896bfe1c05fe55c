//! What one shard holds: a table per database, its watchers, and what waits to be freed.

use crate::hash::Hasher;
use crate::heap::HeapRef;
use crate::table::Table;
use crate::tree::{ByteTree, LEAF_BYTES};
use crate::watch::Watches;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Trees above this many leaves (64 KiB) are freed in bites.
const LAZY_ABOVE_LEAVES: u64 = 16;

/// The public counters of a shard, read by anyone without a borrow; written under it.
#[derive(Debug, Default)]
pub struct Header {
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) expired: AtomicU64,
    pub(crate) evicted: AtomicU64,
}

/// Adds to a counter that only the shard's holder writes: no locked instruction is needed.
#[inline]
pub(crate) fn bump(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

/// One shard's content. Only the store looks inside.
#[repr(C)]
pub struct Shard {
    /// Database 0, which nearly everybody uses, stands in the shard itself.
    first: Table,
    others: Box<[Option<Box<Table>>]>,
    pub(crate) watches: Option<Box<Watches>>,
    lazy: LazyFree,
    /// Where the background walks are: database and place in hash order.
    pub(crate) expire_at: (u16, u64),
    pub(crate) age_at: (u16, u64),
    pub(crate) evacuate_at: (u16, u64),
    pub(crate) random: u64,
    heap: HeapRef,
    hasher: Arc<Hasher>,
    shard_bits: u8,
}

/// Counters of what waits to be freed in all shards together: entries of flushed tables, and large values.
#[derive(Debug, Default)]
pub(crate) struct LazyCounts {
    pub(crate) waiting: AtomicU64,
    pub(crate) freed: AtomicU64,
}

impl LazyCounts {
    fn add(&self, objects: u64) {
        self.waiting.fetch_add(objects, Relaxed);
    }

    fn done(&self, objects: u64) {
        self.waiting.fetch_sub(objects, Relaxed);
        self.freed.fetch_add(objects, Relaxed);
    }
}

/// What waits to be freed, a bounded piece at a time.
pub(crate) struct LazyFree {
    counts: Arc<LazyCounts>,
    trees: Vec<ByteTree>,
    /// Tables of flushed databases, with the place up to which each is empty.
    tables: Vec<(Table, u64)>,
}

impl LazyFree {
    pub(crate) fn new(counts: Arc<LazyCounts>) -> Self {
        Self {
            counts,
            trees: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// Frees a tree: at once when it is small. A shard owes about as much as its largest values take, not more.
    pub(crate) fn tree(&mut self, tree: Option<ByteTree>) {
        let Some(tree) = tree else { return };
        let leaves = tree.len() / LEAF_BYTES as u64;
        if leaves <= LAZY_ABOVE_LEAVES {
            return;
        }
        // Bites alone may never catch up with a value that is replaced again and again, whose shard is seldom free: whoever gives up a
        // second one pays for as much of the first.
        let mut owed = leaves;
        while owed > 0
            && let Some(first) = self.trees.last_mut()
        {
            let bite = owed.min(first.len() / LEAF_BYTES as u64 + 1);
            if first.free_bite(bite) {
                self.trees.pop();
                self.counts.done(1);
            }
            owed -= bite;
        }
        self.trees.push(tree);
        self.counts.add(1);
    }

    /// Frees a table that was taken out.
    fn table(&mut self, table: Table) {
        self.counts.add(table.len());
        self.tables.push((table, 0));
    }

    fn is_empty(&self) -> bool {
        self.trees.is_empty() && self.tables.is_empty()
    }

    /// Frees about `budget` entries or leaves. True when nothing is left.
    fn bite(&mut self, budget: usize) -> bool {
        if let Some(tree) = self.trees.last_mut() {
            if tree.free_bite(budget as u64) {
                self.trees.pop();
                self.counts.done(1);
            }
        } else if let Some((mut table, from)) = self.tables.pop() {
            let (trees, counts) = (&mut self.trees, &self.counts);
            let before = table.len();
            let next = table.clear_bite(from, budget, &mut |tree| {
                trees.push(tree);
                counts.add(1);
            });
            counts.done(before.saturating_sub(table.len()));
            if let Some(next) = next {
                self.tables.push((table, next));
            }
        }
        self.is_empty()
    }
}

impl Shard {
    pub(crate) fn new(
        heap: HeapRef,
        lazy: LazyFree,
        hasher: Arc<Hasher>,
        shard_bits: u8,
        databases: u16,
        random: u64,
    ) -> Self {
        Self {
            first: Table::new(heap.clone(), Arc::clone(&hasher), shard_bits),
            others: (1..databases).map(|_| None).collect(),
            watches: None,
            lazy,
            expire_at: (0, 0),
            age_at: (0, 0),
            evacuate_at: (0, 0),
            random: random | 1,
            heap,
            hasher,
            shard_bits,
        }
    }

    #[inline]
    pub(crate) fn table(&self, db: u16) -> Option<&Table> {
        if db == 0 {
            Some(&self.first)
        } else {
            self.others.get(db as usize - 1)?.as_deref()
        }
    }

    /// The table to change, with the queue for what is replaced in it.
    #[inline]
    pub(crate) fn table_mut(&mut self, db: u16) -> (&mut Table, &mut LazyFree) {
        let (table, lazy, _) = self.parts(db);
        (table, lazy)
    }

    /// As `table_mut`, and the shard's watchers.
    #[inline]
    pub(crate) fn parts(&mut self, db: u16) -> (&mut Table, &mut LazyFree, Option<&mut Watches>) {
        let table = if db == 0 {
            &mut self.first
        } else {
            let (heap, hasher, bits) = (&self.heap, &self.hasher, self.shard_bits);
            self.others[db as usize - 1]
                .get_or_insert_with(|| Box::new(Table::new(heap.clone(), Arc::clone(hasher), bits)))
        };
        (table, &mut self.lazy, self.watches.as_deref_mut())
    }

    pub(crate) fn heap(&self) -> &HeapRef {
        &self.heap
    }

    pub(crate) fn databases(&self) -> u16 {
        self.others.len() as u16 + 1
    }

    /// Empties a database; its memory is freed in bites.
    pub(crate) fn flush(&mut self, db: u16) {
        if self.table(db).is_none_or(|table| table.len() == 0) {
            return;
        }
        let empty = Table::new(self.heap.clone(), Arc::clone(&self.hasher), self.shard_bits);
        let full = std::mem::replace(self.table_mut(db).0, empty);
        self.lazy.table(full);
    }

    /// Exchanges two databases.
    pub(crate) fn swap(&mut self, a: u16, b: u16) {
        if a == b {
            return;
        }
        let empty = Table::new(self.heap.clone(), Arc::clone(&self.hasher), self.shard_bits);
        let table_a = std::mem::replace(self.table_mut(a).0, empty);
        let table_b = std::mem::replace(self.table_mut(b).0, table_a);
        *self.table_mut(a).0 = table_b;
    }

    /// Frees a piece of what was flushed or unlinked. True when nothing is left.
    pub(crate) fn lazy_bite(&mut self, budget: usize) -> bool {
        self.lazy.is_empty() || self.lazy.bite(budget)
    }

    /// Frees everything that waits. In bites too, because a flushed table may still owe its entries to a cut.
    pub(crate) fn lazy_finish(&mut self) {
        while !self.lazy_bite(usize::MAX / 2) {}
    }

    /// Tells the watchers of a key that it was changed.
    #[inline]
    pub(crate) fn mark(&mut self, db: u16, key: &[u8], exists: impl FnOnce(&Self) -> bool) {
        if self.watches.is_some() {
            let exists = exists(self);
            if let Some(watches) = &mut self.watches {
                watches.mark(db, key, exists);
            }
        }
    }

    /// A pseudo-random number (xorshift64*): for sampling only.
    #[inline]
    pub(crate) fn draw(&mut self) -> u64 {
        draw(&mut self.random)
    }
}

/// The next number of a xorshift64* sequence.
#[inline]
pub(crate) fn draw(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}
