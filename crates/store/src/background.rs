//! Bites of background work: expiry, ageing, freeing, compaction. A worker calls [`Store::bite`] between its turns, as often as its time
//! allows, and looks at its own clock; each call borrows one shard for at most about 50 µs.
//! Giving pages back and making huge pages take some hundred microseconds now and then, with no shard in hand.

use crate::space::Space;
use crate::store::Store;
use pantala_borrow::ShardId;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering::Relaxed};

/// Entries or leaves per bite.
const BUDGET: usize = 256;
/// Entries that one round of the expiry walk looks at.
const EXPIRE_BUDGET: usize = 128;
/// Pages that one bite gives back to the system.
const PURGE_PAGES: usize = 64;
/// How often the whole heap is searched for sparse slabs while there is none, in milliseconds.
const SEARCH_EVERY_MS: i64 = 1_000;
/// How often all access bits are aged, in milliseconds: well below the hours after which they would wrap around.
const AGE_EVERY_MS: i64 = 3_600_000;

/// Where background work is. Shared by all workers; each field is a hint, so relaxed atomics are enough.
pub(crate) struct Background {
    shard: AtomicUsize,
    bites: AtomicUsize,
    /// A shard where more waits to be freed than one bite frees, plus 1; 0: none is known.
    freeing: AtomicUsize,
    /// Shards that compaction still has to walk, after slabs were marked.
    evacuating: AtomicUsize,
    search_at_ms: AtomicI64,
    /// The last search found further sparse slabs.
    found_more: AtomicBool,
    age_at_ms: AtomicI64,
    aging: AtomicUsize,
}

/// What a bite did, for whoever paces them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BiteProgress {
    /// Keys removed because they had expired.
    pub expired: usize,
    /// There is more to do at once (freeing, compaction, many expired keys): call again soon. Otherwise once in some tens of
    /// milliseconds is enough while keys expire, and once in a second otherwise.
    pub busy: bool,
    /// The shard was held by somebody, so nothing was done.
    pub skipped: bool,
}

impl Background {
    pub(crate) fn new() -> Self {
        Self {
            shard: AtomicUsize::new(0),
            bites: AtomicUsize::new(0),
            freeing: AtomicUsize::new(0),
            evacuating: AtomicUsize::new(0),
            search_at_ms: AtomicI64::new(0),
            found_more: AtomicBool::new(false),
            age_at_ms: AtomicI64::new(0),
            aging: AtomicUsize::new(0),
        }
    }
}

impl Store {
    /// One bite on the next shard in turn. `with` is called with the shard still borrowed when keys were removed: it must log and
    /// announce `Space::take_removed`.
    pub fn bite(
        &self,
        now_ms: i64,
        expire: bool,
        with: &mut dyn FnMut(&mut Space<'_>),
    ) -> BiteProgress {
        let state = &self.background;
        self.look_around(now_ms);
        let id = self.next_shard();
        let mut progress = BiteProgress::default();
        let Some(mut space) = self.try_borrow_one(id) else {
            progress.skipped = true;
            progress.busy = state.found_more.load(Relaxed);
            return progress;
        };
        if let Some(shard) = space.borrow().get_mut(id) {
            if !shard.lazy_bite(BUDGET) {
                state.freeing.store(usize::from(id) + 1, Relaxed);
            }
            progress.busy |= self.owes_memory();
        }
        if expire {
            progress.expired = self.expire_in(&mut space, id, now_ms);
            progress.busy |= progress.expired * 4 > EXPIRE_BUDGET;
        }
        if state.evacuating.load(Relaxed) > 0 {
            progress.busy |= state.found_more.load(Relaxed);
            self.evacuate_in(&mut space, id);
        }
        if state.aging.load(Relaxed) > 0 {
            self.age_in(&mut space, id, now_ms);
        }
        if space.has_removed() {
            with(&mut space);
        }
        drop(space);
        progress.busy |= self.heap().purge(PURGE_PAGES) || self.heap().make_huge();
        progress
    }

    /// Every shard in turn; a large value waits in one shard only, so every other bite goes where the last one left some.
    fn next_shard(&self) -> ShardId {
        let state = &self.background;
        let freeing = if state.bites.fetch_add(1, Relaxed).is_multiple_of(2) {
            state.freeing.swap(0, Relaxed)
        } else {
            0
        };
        freeing
            .checked_sub(1)
            .unwrap_or_else(|| state.shard.fetch_add(1, Relaxed) % self.shards()) as ShardId
    }

    /// Bites until nothing is left to do: for tests and for whoever has nothing else to do.
    pub fn bite_all(&self, now_ms: i64, expire: bool, with: &mut dyn FnMut(&mut Space<'_>)) {
        let shards = 0..self.shards() as ShardId;
        let longest = shards
            .map(|id| {
                (0..self.databases())
                    .map(|db| self.shard_size(id, db))
                    .sum::<u64>()
            })
            .max();
        // So many bites without any work see every shard as a whole: a bite passes at least a third of its budget in keys.
        let enough =
            self.databases() as usize + 2 + 3 * longest.unwrap_or(0) as usize / EXPIRE_BUDGET;
        let mut idle = 0;
        while idle < enough {
            idle += 1;
            for _ in 0..self.shards() {
                let progress = self.bite(now_ms, expire, with);
                if progress.busy || progress.expired > 0 {
                    idle = 0;
                }
            }
        }
    }

    /// Gives free pages back to the system at once, a batch at a time, and has sparse ones compacted by the next bites (MEMORY PURGE).
    pub fn purge_memory(&self) {
        self.background.search_at_ms.store(0, Relaxed);
        for _ in 0..1_000_000 {
            if !self.heap().purge(PURGE_PAGES) {
                return;
            }
        }
    }

    /// Begins rounds of compaction and ageing when it is time.
    fn look_around(&self, now_ms: i64) {
        let state = &self.background;
        if state.evacuating.load(Relaxed) == 0 && state.search_at_ms.load(Relaxed) <= now_ms {
            state
                .search_at_ms
                .store(now_ms.saturating_add(SEARCH_EVERY_MS), Relaxed);
            self.search_sparse();
        }
        if state.aging.load(Relaxed) == 0 && state.age_at_ms.load(Relaxed) <= now_ms {
            let first = state
                .age_at_ms
                .swap(now_ms.saturating_add(AGE_EVERY_MS), Relaxed)
                == 0;
            if !first {
                state.aging.store(self.shards(), Relaxed);
            }
        }
    }

    /// Marks sparse slabs; also begins a round when one before left some behind (a shard was held when its turn came).
    fn search_sparse(&self) {
        let turns = self.heap().mark_turns();
        let marked: usize = (0..turns).map(|_| self.heap().mark_sparse()).sum();
        self.background.found_more.store(marked > 0, Relaxed);
        if marked > 0 || self.heap().marked() > 0 {
            self.background.evacuating.store(self.shards(), Relaxed);
        }
    }

    /// One database of the shard at a time, so that a bite stays a bite.
    fn expire_in(&self, space: &mut Space<'_>, id: ShardId, now_ms: i64) -> usize {
        let Some(shard) = space.borrow().get_mut(id) else {
            return 0;
        };
        let db = shard.expire_at.0;
        let progress = space.shard_db(id, db, now_ms).expire_bite(EXPIRE_BUDGET);
        if progress.round
            && let Some(shard) = space.borrow().get_mut(id)
        {
            let databases = self.databases();
            let others = (1..=databases).map(|step| (db + step) % databases);
            let next = others
                .into_iter()
                .find(|&db| self.count(id, db).has_expires());
            shard.expire_at = (next.unwrap_or(0), 0);
        }
        progress.removed
    }

    fn evacuate_in(&self, space: &mut Space<'_>, id: ShardId) {
        let state = &self.background;
        let Some(shard) = space.borrow().get_mut(id) else {
            return;
        };
        let (db, from) = shard.evacuate_at;
        let next = shard.table_mut(db).0.evacuate(from, BUDGET);
        shard.evacuate_at = match next {
            Some(next) => (db, next),
            None if db + 1 < self.databases() => (self.next_filled(id, db + 1), 0),
            None => (0, 0),
        };
        if shard.evacuate_at == (0, 0) && finished(&state.evacuating) {
            // The round is through: when it was worth it, look at once whether another is.
            if state.found_more.load(Relaxed) {
                state.search_at_ms.store(0, Relaxed);
            }
        }
    }

    fn age_in(&self, space: &mut Space<'_>, id: ShardId, now_ms: i64) {
        let Some(shard) = space.borrow().get_mut(id) else {
            return;
        };
        let db = shard.age_at.0;
        if space.shard_db(id, db, now_ms).age_bite(BUDGET) {
            let next = if db + 1 < self.databases() {
                self.next_filled(id, db + 1)
            } else {
                0
            };
            if let Some(shard) = space.borrow().get_mut(id) {
                shard.age_at = (next, 0);
            }
            if next == 0 {
                finished(&self.background.aging);
            }
        }
    }

    /// The next database from `from` on that has keys in the shard, 0 after the last.
    fn next_filled(&self, id: ShardId, from: u16) -> u16 {
        (from..self.databases())
            .find(|&db| self.shard_size(id, db) > 0)
            .unwrap_or(0)
    }
}

/// One shard of a round is done; true when it was the last.
fn finished(left: &AtomicUsize) -> bool {
    let before = left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
    before == Ok(1)
}
