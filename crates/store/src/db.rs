//! One database of the borrowed shards: lookups by key.

use crate::access::AccessPolicy;
use crate::entry::Entry;
use crate::hash::Key;
use crate::shard::{Header, Shard, bump};
use crate::slot::{Slot, SlotContext};
use crate::space::{ExpiryMode, Reason, Removed};
use crate::store::Store;
use crate::tree::ByteTree;
use pantala_borrow::Borrow;

/// A database, restricted to the borrowed shards.
pub struct Db<'a, 's> {
    pub(crate) store: &'s Store,
    pub(crate) borrow: &'a mut Borrow<'s, Shard, Header>,
    pub(crate) removed: &'a mut Vec<Removed>,
    pub(crate) index: u16,
    pub(crate) now_ms: i64,
    pub(crate) mode: ExpiryMode,
    pub(crate) access: AccessPolicy,
}

impl Db<'_, '_> {
    /// The number of the database.
    #[must_use]
    pub fn index(&self) -> u16 {
        self.index
    }

    /// The time of the command, in Unix milliseconds.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Store {
        self.store
    }

    /// A key with its hash.
    #[must_use]
    pub fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        self.store.key(bytes)
    }

    /// How uses are recorded.
    #[must_use]
    pub fn access_policy(&self) -> AccessPolicy {
        self.access
    }

    /// The place of a key, as a use of it: counts a hit or miss, notes the access.
    ///
    /// # Panics
    /// Here and below: when the key's shard is not borrowed.
    #[inline]
    pub fn slot<'d, 'k: 'd>(&'d mut self, key: &Key<'k>) -> Slot<'d> {
        let mut slot = self.slot_quiet(key);
        slot.count_use();
        slot
    }

    /// The place of a key, unnoticed: no hit or miss is counted, no access noted (TYPE, TTL, OBJECT, and what only writes).
    #[inline]
    pub fn slot_quiet<'d, 'k: 'd>(&'d mut self, key: &Key<'k>) -> Slot<'d> {
        let shard_id = self.store.shard_of(key.hash);
        let header = self.borrow.header(shard_id);
        let count = self.store.count(shard_id, self.index);
        let shard = self
            .borrow
            .get_mut(shard_id)
            .expect("the shards of a command's keys are borrowed");
        let random = if self.access.lfu {
            shard.draw() as u32
        } else {
            0
        };
        let (table, lazy, watches) = shard.parts(self.index);
        let context = SlotContext {
            count,
            header,
            now_ms: self.now_ms,
            access: self.access,
            random,
        };
        let mut slot = Slot::new(table.spot(key.hash.0, key.bytes), lazy, context);
        if self.mode != ExpiryMode::Ignore && slot.is_expired() {
            if self.mode == ExpiryMode::Hide {
                slot.hide();
            } else {
                slot.expire();
                if let Some(watches) = watches {
                    watches.mark(self.index, key.bytes, false);
                }
                self.removed.push(Removed {
                    db: self.index,
                    key: key.bytes.into(),
                    reason: Reason::Expired,
                });
            }
        }
        slot
    }

    /// The value of a key, as a use of it.
    #[inline]
    pub fn find<'d, 'k: 'd>(&'d mut self, key: &Key<'k>) -> Option<Entry<'d>> {
        // The short way of a plain read: no slot is made, since nothing but the access bits may change.
        let shard_id = self.store.shard_of(key.hash);
        let header = self.borrow.header(shard_id);
        let shard = self
            .borrow
            .get_mut(shard_id)
            .expect("the shards of a command's keys are borrowed");
        let found = shard
            .table(self.index)
            .and_then(|table| table.locate_key(key.hash.0, key.bytes));
        let Some(at) = found else {
            bump(&header.misses);
            return None;
        };
        let random = if self.access.lfu {
            shard.draw() as u32
        } else {
            0
        };
        let (table, _, _) = shard.parts(self.index);
        if self.mode != ExpiryMode::Ignore && table.entry(at).is_expired(self.now_ms) {
            return self.slot(key).into_entry();
        }
        bump(&header.hits);
        let old = table.entry(at).access();
        let used = self.access.touched(old, self.now_ms, random);
        if used != old {
            table.set_access(at, used);
        }
        // Looked up again for the borrow checker, which does not see that the way out above has ended.
        let shard = self.borrow.get(shard_id)?;
        Some(shard.table(self.index)?.entry(at))
    }

    /// The value of a key, unnoticed.
    #[inline]
    pub fn peek<'d, 'k: 'd>(&'d mut self, key: &Key<'k>) -> Option<Entry<'d>> {
        self.slot_quiet(key).into_entry()
    }

    /// The value of a key, unnoticed, through a shared reference: several can be looked at together. An expired one is
    /// treated as missing (unless the mode is to ignore that), but stays.
    #[must_use]
    pub fn view(&self, key: &Key<'_>) -> Option<Entry<'_>> {
        let shard = self
            .borrow
            .get(self.store.shard_of(key.hash))
            .expect("the shards of a command's keys are borrowed");
        let entry = shard.table(self.index)?.find(key.hash.0, key.bytes)?;
        if self.mode != ExpiryMode::Ignore && entry.is_expired(self.now_ms) {
            None
        } else {
            Some(entry)
        }
    }

    /// Counts a use of a key: hit or miss, access noted. With `view`, the same as `find`; removes the key when it has expired.
    pub fn touch(&mut self, key: &Key<'_>) -> bool {
        let mut slot = self.slot_quiet(key);
        slot.count_use();
        slot.entry().is_some()
    }

    /// Whether the key is there. No access is noted.
    #[must_use]
    pub fn exists(&mut self, key: &Key<'_>) -> bool {
        self.peek(key).is_some()
    }

    /// Removes a key. True when it was there.
    pub fn remove(&mut self, key: &Key<'_>) -> bool {
        self.slot_quiet(key).remove()
    }

    /// Keys in the borrowed shards, expired ones that still stand included.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.tables().map(crate::table::Table::len).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys with an expiry in the borrowed shards.
    #[must_use]
    pub fn expires_len(&self) -> u64 {
        self.tables().map(crate::table::Table::expires).sum()
    }

    /// An empty tree for a large value of this key, to be filled and then stored with `Slot::put_tree`.
    #[must_use]
    pub fn new_tree(&self, key: &Key<'_>) -> ByteTree {
        let shard = self
            .borrow
            .get(self.store.shard_of(key.hash))
            .expect("the shards of a command's keys are borrowed");
        ByteTree::new(shard.heap().clone())
    }

    fn tables(&self) -> impl Iterator<Item = &crate::table::Table> {
        self.borrow
            .ids()
            .iter()
            .filter_map(|&id| self.borrow.get(id)?.table(self.index))
    }
}

impl std::fmt::Debug for Db<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Db")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}
