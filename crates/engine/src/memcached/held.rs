//! What a command sees while the shards of its keys are borrowed.

use super::counters::Counters;
use super::expiry::Expiry;
use super::item;
use super::prefixes::Event;
use crate::shared::Shared;
use pantala_commands::Effects;
use pantala_protocol::memcached::write_line;
use pantala_store::{Key, Slot, Space, Store};

/// Memcached's clients see this database.
pub(super) const DB: u16 = 0;

/// What stays the same during one call of the session.
#[derive(Clone, Copy)]
pub(super) struct Env<'a> {
    pub(super) shared: &'a Shared,
    pub(super) counters: &'a Counters,
    pub(super) party: usize,
    pub(super) now_ms: i64,
    /// The client's file descriptor, by which watchers know it.
    pub(super) fd: i32,
    /// Largest item, as memcached counts it.
    pub(super) item_bytes_max: usize,
}

impl<'a> Env<'a> {
    pub(super) fn store(&self) -> &'a Store {
        &self.shared.store
    }

    /// Notes what happens to a key, if statistics by prefix are kept.
    #[inline]
    pub(super) fn note(&self, key: &[u8], event: Event) {
        self.shared.memcached.prefixes.note(key, event);
    }

    /// When a client's number says that an item is over.
    pub(super) fn expiry(&self, exptime_s: i32) -> Expiry {
        Expiry::from_client(exptime_s, self.now_ms)
    }
}

/// Borrowed shards, with all that a command needs beside them.
pub(super) struct Held<'c, 's> {
    pub(super) env: Env<'s>,
    pub(super) space: &'c mut Space<'s>,
    pub(super) fx: &'c mut Effects,
    pub(super) out: &'c mut Vec<u8>,
    /// Whether there is memory for what the command stores.
    pub(super) has_room: bool,
}

impl Held<'_, '_> {
    /// Answers a line.
    pub(super) fn line(&mut self, text: &str) {
        write_line(self.out, text);
    }

    /// Removes a key. True when it was there.
    pub(super) fn remove(&mut self, key: &Key<'_>) -> bool {
        let removed = self.space.db(DB, self.env.now_ms).remove(key);
        if removed {
            super::announce::removed(self.fx, key.bytes);
        }
        removed
    }
}

/// Gives the item in `slot` this expiry; one that is over is removed.
pub(super) fn set_expiry(fx: &mut Effects, slot: &mut Slot<'_>, expiry: Expiry) {
    let Some(entry) = slot.entry() else {
        return;
    };
    if expiry == Expiry::Past {
        let key = slot.key();
        slot.remove();
        super::announce::removed(fx, key);
    } else if entry.expiry_ms() != expiry.at_ms() {
        slot.set_expiry(expiry.at_ms());
        super::announce::expiry(fx, slot.key(), expiry.at_ms());
    }
}

/// Sets the flags, CAS number and state of the item in `slot`, if they are others.
pub(super) fn set_meta(slot: &mut Slot<'_>, mc: pantala_store::McMeta) {
    let wanted = item::section(mc);
    if slot.entry().is_some_and(|entry| entry.mc() != wanted) {
        slot.set_mc(wanted);
    }
}
