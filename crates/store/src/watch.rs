//! Watched keys: who wants to know that a key was changed (WATCH).
//!
//! A shard keeps its own watchers, under its borrow; a watcher is a flag that the session reads at EXEC while it holds the shards of
//! its watched keys. A shard without watchers pays one comparison per change.
//!
//! A session that cannot borrow the shard of a key when it forgets it leaves its flag behind. Such flags, which nobody else holds, are
//! dropped when the key is changed, and all of them when the shard's watched keys have doubled.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The mark that a session shares with the shards of its watched keys.
#[derive(Debug, Default)]
pub struct WatchFlag {
    dirty: AtomicBool,
}

impl WatchFlag {
    /// A clean flag.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Whether a watched key was changed.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        self.dirty.load(Relaxed)
    }

    /// Marks it, as a change of a watched key does.
    pub fn set_dirty(&self) {
        self.dirty.store(true, Relaxed);
    }
}

struct Watcher {
    flag: Arc<WatchFlag>,
    /// The key had expired, but still stood, when it was watched: its removal is no change.
    was_expired: bool,
}

/// How a key stands in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Not there.
    Absent,
    /// Its time is over, but it was not removed yet.
    Expired,
    /// There.
    Alive,
}

/// The watchers of one shard.
#[derive(Default)]
pub(crate) struct Watches {
    databases: HashMap<u16, HashMap<Box<[u8]>, Vec<Watcher>>>,
    /// Watchers added since those left behind were looked for, and how many stood then.
    added: usize,
    stood: usize,
}

impl Watcher {
    fn is_left_behind(&self) -> bool {
        Arc::strong_count(&self.flag) == 1
    }
}

impl Watches {
    /// Below this many additions nobody looks for what was left behind.
    const ADDED_MIN: usize = 16;

    fn drop_left_behind(&mut self) {
        let mut stood = 0;
        self.databases.retain(|_, keys| {
            keys.retain(|_, watchers| {
                watchers.retain(|watcher| !watcher.is_left_behind());
                stood += watchers.len();
                !watchers.is_empty()
            });
            !keys.is_empty()
        });
        self.stood = stood;
        self.added = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.databases.is_empty()
    }

    /// True when the flag did not watch the key yet.
    pub(crate) fn add(
        &mut self,
        db: u16,
        key: &[u8],
        flag: Arc<WatchFlag>,
        was_expired: bool,
    ) -> bool {
        self.added += 1;
        if self.added > self.stood.max(Self::ADDED_MIN) {
            self.drop_left_behind();
        }
        let watchers = self
            .databases
            .entry(db)
            .or_default()
            .entry(key.into())
            .or_default();
        if watchers
            .iter()
            .any(|watcher| Arc::ptr_eq(&watcher.flag, &flag))
        {
            return false;
        }
        watchers.push(Watcher { flag, was_expired });
        true
    }

    pub(crate) fn remove(&mut self, db: u16, key: &[u8], flag: &Arc<WatchFlag>) {
        let Some(keys) = self.databases.get_mut(&db) else {
            return;
        };
        if let Some(watchers) = keys.get_mut(key) {
            watchers.retain(|watcher| !Arc::ptr_eq(&watcher.flag, flag));
            if watchers.is_empty() {
                keys.remove(key);
            }
        }
        if keys.is_empty() {
            self.databases.remove(&db);
        }
    }

    /// A key was changed; `exists` tells whether it is there afterwards.
    pub(crate) fn mark(&mut self, db: u16, key: &[u8], exists: bool) {
        let Some(keys) = self.databases.get_mut(&db) else {
            return;
        };
        let Some(watchers) = keys.get_mut(key) else {
            return;
        };
        watchers.retain(|watcher| !watcher.is_left_behind());
        if watchers.is_empty() {
            keys.remove(key);
            if keys.is_empty() {
                self.databases.remove(&db);
            }
            return;
        }
        for watcher in watchers {
            if watcher.was_expired {
                watcher.was_expired = false;
                if !exists {
                    continue;
                }
            }
            watcher.flag.set_dirty();
        }
    }

    /// A database was exchanged with another; `standing` tells how each key stood here and how it stands there. A key that is absent or expired
    /// on both sides was not changed.
    pub(crate) fn mark_swapped(
        &mut self,
        db: u16,
        mut standing: impl FnMut(&[u8]) -> (Standing, Standing),
    ) {
        let Some(keys) = self.databases.get_mut(&db) else {
            return;
        };
        for (key, watchers) in keys {
            let (here, there) = standing(key);
            if (here, there) == (Standing::Absent, Standing::Absent) {
                continue;
            }
            for watcher in watchers {
                match (watcher.was_expired, here, there) {
                    (true, _, Standing::Absent) => watcher.was_expired = false,
                    (true, _, Standing::Expired) => {}
                    (false, Standing::Absent, Standing::Expired) => watcher.was_expired = true,
                    _ => watcher.flag.set_dirty(),
                }
            }
        }
    }

    /// All keys for which `touched` says yes are changed.
    pub(crate) fn mark_where(&mut self, db: u16, mut touched: impl FnMut(&[u8]) -> bool) {
        let Some(keys) = self.databases.get_mut(&db) else {
            return;
        };
        for (key, watchers) in keys {
            if touched(key) {
                for watcher in watchers {
                    if !std::mem::take(&mut watcher.was_expired) {
                        watcher.flag.set_dirty();
                    }
                }
            }
        }
    }

    /// Whether the key had expired already when this flag watched it.
    pub(crate) fn was_expired(&self, db: u16, key: &[u8], flag: &Arc<WatchFlag>) -> bool {
        let watchers = self.databases.get(&db).and_then(|keys| keys.get(key));
        watchers.is_some_and(|watchers| {
            watchers
                .iter()
                .any(|watcher| Arc::ptr_eq(&watcher.flag, flag) && watcher.was_expired)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_left_behind_do_not_pile_up() {
        let mut watches = Watches::default();
        let kept = WatchFlag::new();
        watches.add(0, b"kept", Arc::clone(&kept), false);
        for nth in 0..10_000 {
            watches.add(0, format!("{nth}").as_bytes(), WatchFlag::new(), false);
        }
        let count = watches.databases[&0].len();
        assert!(count < 100, "{count} keys");
        watches.mark(0, b"kept", true);
        assert!(kept.is_dirty());
    }

    #[test]
    fn a_change_drops_flags_left_behind() {
        let mut watches = Watches::default();
        watches.add(0, b"key", WatchFlag::new(), false);
        watches.mark(0, b"key", true);
        assert!(watches.is_empty());
    }
}
