//! The borrowed shards, as a command sees them.

use crate::access::AccessPolicy;
use crate::db::Db;
use crate::hash::Key;
use crate::shard::{Header, Shard};
use crate::store::Store;
use crate::walk::ShardDb;
use crate::watch::{Standing, WatchFlag, Watches};
use pantala_borrow::{Borrow, ShardId};
use std::sync::Arc;

/// Why the store itself removed a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Its time was over.
    Expired,
    /// Room was needed.
    Evicted,
}

/// A key that the store removed by itself; whoever holds the shards must log and announce it before giving them back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Removed {
    /// The database.
    pub db: u16,
    /// The key.
    pub key: Box<[u8]>,
    /// Why.
    pub reason: Reason,
}

/// What is done with an expired key that is met.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ExpiryMode {
    /// It is removed and reported.
    #[default]
    Remove,
    /// It is treated as missing but stays (a replica waits for the primary's DEL).
    Hide,
    /// It is treated as any other (applying the primary's stream, loading).
    Ignore,
}

/// Borrowed shards. Dropping it gives them back.
pub struct Space<'s> {
    store: &'s Store,
    borrow: Borrow<'s, Shard, Header>,
    removed: Vec<Removed>,
    mode: ExpiryMode,
    access: AccessPolicy,
}

impl<'s> Space<'s> {
    #[inline]
    pub(crate) fn new(store: &'s Store, borrow: Borrow<'s, Shard, Header>) -> Self {
        Self {
            store,
            borrow,
            removed: Vec::new(),
            mode: ExpiryMode::Remove,
            access: store.access_policy(),
        }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &'s Store {
        self.store
    }

    /// From now on uses of keys through these shards leave no trace, or do again (`CLIENT NO-TOUCH`).
    pub fn set_no_touch(&mut self, no_touch: bool) {
        self.access.no_touch = no_touch;
    }

    /// What is done with expired keys from now on.
    pub fn set_expiry_mode(&mut self, mode: ExpiryMode) {
        self.mode = mode;
    }

    /// The borrow itself, for what the store does not wrap (extending it under the script lock).
    pub fn borrowed(&mut self) -> &mut Borrow<'s, Shard, Header> {
        &mut self.borrow
    }

    /// Ends the look and keeps the borrow.
    pub fn into_borrow(self) -> Borrow<'s, Shard, Header> {
        self.borrow
    }

    /// Whether a shard is borrowed.
    #[must_use]
    pub fn holds(&self, shard: ShardId) -> bool {
        self.borrow.holds(shard)
    }

    /// A database, restricted to the borrowed shards.
    ///
    /// # Panics
    /// When there is no such database; sessions check their number at SELECT.
    #[inline]
    pub fn db(&mut self, index: u16, now_ms: i64) -> Db<'_, 's> {
        assert!(
            index < self.store.databases(),
            "sessions check their database"
        );
        Db {
            store: self.store,
            borrow: &mut self.borrow,
            removed: &mut self.removed,
            index,
            now_ms,
            mode: self.mode,
            access: self.access,
        }
    }

    /// One shard of a database, to walk over.
    ///
    /// # Panics
    /// When the shard is not borrowed, or there is no such database.
    pub fn shard_db(&mut self, shard: ShardId, index: u16, now_ms: i64) -> ShardDb<'_> {
        assert!(
            index < self.store.databases(),
            "sessions check their database"
        );
        ShardDb {
            header: self.borrow.header(shard),
            count: self.store.count(shard, index),
            shard: self.borrow.get_mut(shard).expect("the shard is borrowed"),
            removed: &mut self.removed,
            index,
            now_ms,
            mode: self.mode,
            access: self.access,
        }
    }

    /// The keys that were removed by the store itself since the last call; normally none.
    #[must_use]
    pub fn take_removed(&mut self) -> Vec<Removed> {
        std::mem::take(&mut self.removed)
    }

    /// Whether `take_removed` would return any.
    #[inline]
    #[must_use]
    pub fn has_removed(&self) -> bool {
        !self.removed.is_empty()
    }

    /// From now on `flag` hears of changes of the key. Its shard must be borrowed.
    pub fn watch(&mut self, db: u16, key: &Key<'_>, flag: &Arc<WatchFlag>, now_ms: i64) {
        let shard = self.shard_mut(key);
        let was_expired = shard
            .table(db)
            .and_then(|table| table.find(key.hash.0, key.bytes))
            .is_some_and(|entry| entry.is_expired(now_ms));
        shard
            .watches
            .get_or_insert_with(|| Box::new(Watches::default()))
            .add(db, key.bytes, Arc::clone(flag), was_expired);
    }

    /// `flag` hears no more of the key. Its shard must be borrowed.
    pub fn unwatch(&mut self, db: u16, key: &Key<'_>, flag: &Arc<WatchFlag>) {
        let shard = self.shard_mut(key);
        if let Some(watches) = &mut shard.watches {
            watches.remove(db, key.bytes, flag);
            if watches.is_empty() {
                shard.watches = None;
            }
        }
    }

    /// Whether a watched key has expired since it was watched: at EXEC this counts as a change.
    #[must_use]
    pub fn watched_expired(
        &mut self,
        db: u16,
        key: &Key<'_>,
        flag: &Arc<WatchFlag>,
        now_ms: i64,
    ) -> bool {
        let shard = self.shard_mut(key);
        let expired = shard
            .table(db)
            .and_then(|table| table.find(key.hash.0, key.bytes))
            .is_some_and(|entry| entry.is_expired(now_ms));
        expired
            && !shard
                .watches
                .as_ref()
                .is_some_and(|watches| watches.was_expired(db, key.bytes, flag))
    }

    /// A key was changed: its watchers hear of it. Cheap when the shard has none.
    #[inline]
    pub fn mark(&mut self, db: u16, key: &Key<'_>) {
        let key = *key;
        self.shard_mut(&key).mark(db, key.bytes, |shard| {
            shard
                .table(db)
                .is_some_and(|table| table.find(key.hash.0, key.bytes).is_some())
        });
    }

    /// Whether any borrowed shard has watchers.
    #[must_use]
    pub fn has_watches(&self) -> bool {
        self.borrow.ids().iter().any(|&id| {
            self.borrow
                .get(id)
                .is_some_and(|shard| shard.watches.is_some())
        })
    }

    /// Empties a database, or all, in the borrowed shards; watchers of keys that stood there hear of it. The memory is freed in bites.
    pub fn flush(&mut self, db: Option<u16>) {
        for id in self.borrow.ids().to_vec() {
            if let Some(shard) = self.borrow.get_mut(id) {
                flush_in(self.store, id, shard, db);
            }
        }
    }

    /// Exchanges two databases in the borrowed shards; watchers of keys that stand in either hear of it, unless they have expired in both.
    pub fn swap_databases(&mut self, a: u16, b: u16, now_ms: i64) {
        for id in self.borrow.ids().to_vec() {
            if let Some(shard) = self.borrow.get_mut(id) {
                swap_in(self.store, id, shard, (a, b), now_ms);
            }
        }
    }

    /// Frees at once what waits to be freed in the borrowed shards (FLUSHALL SYNC).
    pub fn free_now(&mut self) {
        for (_, shard) in self.borrow.iter_mut() {
            shard.lazy_finish();
        }
    }

    pub(crate) fn borrow(&mut self) -> &mut Borrow<'s, Shard, Header> {
        &mut self.borrow
    }

    fn shard_mut(&mut self, key: &Key<'_>) -> &mut Shard {
        self.borrow
            .get_mut(self.store.shard_of(key.hash))
            .expect("the shards of a command's keys are borrowed")
    }
}

impl std::fmt::Debug for Space<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Space")
            .field("shards", &self.borrow.ids())
            .finish_non_exhaustive()
    }
}

pub(crate) fn flush_in(store: &Store, id: ShardId, shard: &mut Shard, db: Option<u16>) {
    let all = 0..shard.databases();
    for index in db.map_or(all, |db| db..db + 1) {
        mark_standing(store, shard, index);
        shard.flush(index);
        publish(store, id, shard, index);
    }
}

pub(crate) fn swap_in(
    store: &Store,
    id: ShardId,
    shard: &mut Shard,
    (a, b): (u16, u16),
    now_ms: i64,
) {
    if a == b {
        return;
    }
    mark_swapped(store, shard, (a, b), now_ms);
    mark_swapped(store, shard, (b, a), now_ms);
    shard.swap(a, b);
    publish(store, id, shard, a);
    publish(store, id, shard, b);
}

/// Marks the watchers of `db` whose key stands there.
fn mark_standing(store: &Store, shard: &mut Shard, db: u16) {
    if let Some(mut watches) = shard.watches.take() {
        watches.mark_where(db, |key| {
            let hash = store.hash(key);
            shard
                .table(db)
                .is_some_and(|table| table.find(hash.0, key).is_some())
        });
        shard.watches = Some(watches);
    }
}

/// Marks the watchers of `db` whose key changes when it is exchanged with `other`.
fn mark_swapped(store: &Store, shard: &mut Shard, (db, other): (u16, u16), now_ms: i64) {
    if let Some(mut watches) = shard.watches.take() {
        watches.mark_swapped(db, |key| {
            let hash = store.hash(key);
            let standing = |db| match shard.table(db).and_then(|table| table.find(hash.0, key)) {
                None => Standing::Absent,
                Some(entry) if entry.is_expired(now_ms) => Standing::Expired,
                Some(_) => Standing::Alive,
            };
            (standing(db), standing(other))
        });
        shard.watches = Some(watches);
    }
}

fn publish(store: &Store, id: ShardId, shard: &mut Shard, db: u16) {
    store.count(id, db).publish(shard.table_mut(db).0);
}
