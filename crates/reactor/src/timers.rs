//! A worker's timers: a heap of due times with lazy cancellation. It never reads the clock itself.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Instant;

use crate::conn::ConnId;

/// What a timer is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Purpose {
    /// Set by the service.
    Service(u64),
    /// A connection (as a number) that must make progress while it sends its last output.
    Flush(u64),
}

impl Purpose {
    pub fn flush(conn: ConnId) -> Self {
        Self::Flush(conn.as_u64())
    }
}

/// The timers. Setting one replaces the earlier one of the same purpose. A cancelled or replaced entry stays in the
/// heap until it surfaces; the heap is rebuilt when more than half of it (and 64 entries) is such waste.
#[derive(Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, u64, Purpose)>>,
    /// The number of the one valid entry of each purpose.
    valid: HashMap<Purpose, u64>,
    next_number: u64,
}

impl Timers {
    pub fn set(&mut self, at: Instant, purpose: Purpose) {
        let number = self.next_number;
        self.next_number += 1;
        self.valid.insert(purpose, number);
        self.heap.push(Reverse((at, number, purpose)));
        self.drop_waste();
    }

    pub fn cancel(&mut self, purpose: Purpose) {
        self.valid.remove(&purpose);
        self.drop_waste();
    }

    /// The next due time.
    pub fn next_at(&mut self) -> Option<Instant> {
        loop {
            let Reverse((at, number, purpose)) = *self.heap.peek()?;
            if self.valid.get(&purpose) == Some(&number) {
                return Some(at);
            }
            self.heap.pop();
        }
    }

    /// Takes out the earliest timer that is due and was set before the call that returned `until` (so that a timer
    /// which sets itself again for "now" does not keep its worker in the timers for ever).
    pub fn pop_due(&mut self, now: Instant, until: u64) -> Option<Purpose> {
        loop {
            let Reverse((at, number, purpose)) = *self.heap.peek()?;
            let valid = self.valid.get(&purpose) == Some(&number);
            if valid && (at > now || number >= until) {
                return None;
            }
            self.heap.pop();
            if valid {
                self.valid.remove(&purpose);
                return Some(purpose);
            }
        }
    }

    /// Timers set from now on have this number or a larger one.
    pub fn horizon(&self) -> u64 {
        self.next_number
    }

    /// Number of timers that are set.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.valid.len()
    }

    fn drop_waste(&mut self) {
        if self.heap.len() > 2 * self.valid.len() + 64 {
            let valid = &self.valid;
            self.heap
                .retain(|Reverse((_, number, purpose))| valid.get(purpose) == Some(number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn due(timers: &mut Timers, now: Instant) -> Vec<u64> {
        let until = timers.horizon();
        std::iter::from_fn(|| timers.pop_due(now, until))
            .map(|purpose| match purpose {
                Purpose::Service(token) => token,
                Purpose::Flush(_) => u64::MAX,
            })
            .collect()
    }

    #[test]
    fn in_order_of_time_then_of_setting() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timers = Timers::default();
        timers.set(at(20), Purpose::Service(1));
        timers.set(at(10), Purpose::Service(2));
        timers.set(at(20), Purpose::Service(3));
        timers.set(at(30), Purpose::Service(4));
        assert_eq!(timers.next_at(), Some(at(10)));
        assert_eq!(due(&mut timers, at(9)), []);
        assert_eq!(due(&mut timers, at(20)), [2, 1, 3]);
        assert_eq!(timers.next_at(), Some(at(30)));
    }

    #[test]
    fn replaced_and_cancelled_timers_do_not_fire_nor_pile_up() {
        let start = Instant::now();
        let mut timers = Timers::default();
        for round in 0..10_000 {
            timers.set(
                start + Duration::from_millis(10_000 - round),
                Purpose::Service(round % 3),
            );
        }
        assert_eq!(timers.len(), 3);
        assert!(timers.heap.len() <= 70);
        timers.cancel(Purpose::Service(0));
        assert_eq!(due(&mut timers, start + Duration::from_secs(60)), [2, 1]);
        assert_eq!(timers.next_at(), None);
    }

    #[test]
    fn a_timer_that_sets_itself_again_waits_for_the_next_turn() {
        let now = Instant::now();
        let mut timers = Timers::default();
        timers.set(now, Purpose::Service(1));
        let until = timers.horizon();
        assert!(timers.pop_due(now, until).is_some());
        timers.set(now, Purpose::Service(1));
        assert!(timers.pop_due(now, until).is_none());
        assert_eq!(due(&mut timers, now), [1]);
    }
}
