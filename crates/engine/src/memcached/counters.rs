//! What `stats` counts: one set per worker, written by it alone, summed by whoever asks.

use super::prefixes::Prefixes;
use super::watchers::Watchers;
use crate::stats::add;
use std::sync::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of one worker.
        #[derive(Default)]
        #[repr(align(128))]
        pub(super) struct Counters {
            $($(#[$doc])* pub(super) $name: AtomicU64,)*
        }

        /// The same, summed.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(super) struct Sums {
            $($(#[$doc])* pub(super) $name: u64,)*
        }

        impl Counters {
            fn add_to(&self, sums: &mut Sums) {
                $(sums.$name += self.$name.load(Relaxed);)*
            }

            fn reset(&self) {
                $(self.$name.store(0, Relaxed);)*
            }
        }
    };
}

counters! {
    /// Clients that came.
    connections,
    /// Keys looked up by retrievals.
    cmd_get,
    /// Values received.
    cmd_set,
    /// `flush_all`.
    cmd_flush,
    /// Retrievals and commands that set the expiry.
    cmd_touch,
    /// Meta commands.
    cmd_meta,
    /// Retrievals that found their key.
    get_hits,
    /// Retrievals that did not.
    get_misses,
    /// Of these, those that found an expired value.
    get_expired,
    /// Deletions that found their key.
    delete_hits,
    /// Deletions that did not.
    delete_misses,
    /// Increments that found their key.
    incr_hits,
    /// Increments that did not.
    incr_misses,
    /// Decrements that found their key.
    decr_hits,
    /// Decrements that did not.
    decr_misses,
    /// Comparisons of CAS numbers that held.
    cas_hits,
    /// Comparisons with a key that is not there.
    cas_misses,
    /// Comparisons that did not hold.
    cas_badval,
    /// New expiry times for keys that are there.
    touch_hits,
    /// New expiry times for keys that are not.
    touch_misses,
    /// Values refused for their size.
    store_too_large,
    /// Values refused for lack of memory.
    store_no_memory,
    /// Values stored.
    total_items,
    /// Bytes of requests.
    bytes_read,
    /// Bytes of replies.
    bytes_written,
}

/// No flush is due.
const NO_FLUSH: i64 = i64::MAX;

/// What all memcached sessions of a server share.
pub struct Common {
    workers: Box<[Counters]>,
    /// When database 0 is to be emptied, in Unix milliseconds.
    flush_at_ms: AtomicI64,
    pub(super) prefixes: Prefixes,
    pub(crate) watchers: Watchers,
}

impl Common {
    /// For so many workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| Counters::default()).collect(),
            flush_at_ms: AtomicI64::new(NO_FLUSH),
            prefixes: Prefixes::default(),
            watchers: Watchers::default(),
        }
    }

    /// Counters of a worker.
    ///
    /// # Panics
    /// When there is no such worker.
    pub(super) fn counters(&self, worker: usize) -> &Counters {
        &self.workers[worker]
    }

    pub(super) fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        for counters in &self.workers {
            counters.add_to(&mut sums);
        }
        sums
    }

    /// Sets all counters to zero. A count that happens at the same moment may survive.
    pub(super) fn reset(&self) {
        for counters in &self.workers {
            counters.reset();
        }
        self.prefixes.clear();
    }

    /// Plans or, with `None`, calls off the flush; only the last word counts, as in memcached.
    pub(super) fn plan_flush(&self, at_ms: Option<i64>) {
        self.flush_at_ms.store(at_ms.unwrap_or(NO_FLUSH), Release);
    }

    /// The time of a flush that is due.
    #[inline]
    pub(super) fn due_flush(&self, now_ms: i64) -> Option<i64> {
        let at_ms = self.flush_at_ms.load(Acquire);
        (at_ms <= now_ms).then_some(at_ms)
    }

    /// Whether a flush is planned, now or later.
    pub fn flush_planned(&self) -> bool {
        self.flush_at_ms.load(Relaxed) != NO_FLUSH
    }

    /// Takes the flush that was planned for `at_ms`, so that it happens once. `false`: another has done it, or somebody planned anew.
    pub(super) fn take_flush(&self, at_ms: i64) -> bool {
        self.flush_at_ms
            .compare_exchange(at_ms, NO_FLUSH, Release, Relaxed)
            .is_ok()
    }
}

/// Counts one.
#[inline]
pub(super) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_flushes() {
        let common = Common::new(2);
        count(&common.counters(0).cmd_get);
        count(&common.counters(1).cmd_get);
        count(&common.counters(1).get_hits);
        let sums = common.sums();
        assert_eq!((sums.cmd_get, sums.get_hits), (2, 1));
        common.reset();
        assert_eq!(common.sums(), Sums::default());
        assert_eq!(common.due_flush(i64::MAX - 1), None);
        common.plan_flush(Some(50));
        assert_eq!(common.due_flush(49), None);
        assert_eq!(common.due_flush(50), Some(50));
        common.plan_flush(Some(60));
        assert!(!common.take_flush(50));
        assert!(common.flush_planned());
        assert_eq!(common.due_flush(60), Some(60));
        assert!(common.take_flush(60));
        assert_eq!(common.due_flush(60), None);
    }
}
