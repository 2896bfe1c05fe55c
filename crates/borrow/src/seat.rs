//! The parties and how each is woken. A *party* is a thread that borrows: worker or helper. A worker that finds a shard held goes
//! on with other work and is told through [`Wake`]; a thread that has nothing else to do sits down on its seat and sleeps.
//! A wake may come without need (shared mask bits, a wake that was under way); it must never be missing.

use std::sync::{Arc, PoisonError};

use crate::{
    sync::{AtomicBool, Condvar, Mutex, Ordering},
    word::MASK_BITS,
};

/// One thread that borrows: workers `0..n`, then helpers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Party(u32);

impl Party {
    /// The party of this index, which must be below the `parties` given to [`crate::Shards::new`].
    pub const fn new(index: usize) -> Self {
        Self(index as u32)
    }

    /// Its index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// How a party learns that what it waits for was given back.
pub trait Wake: Send + Sync {
    /// Called by the thread that gives back, once for each waiting party, after everything was given back. `party` may be one that
    /// does not wait (bits are shared above 55 parties) or a helper, which sleeps on its seat and needs nothing more: then this
    /// does nothing. Must not borrow, block or panic.
    fn wake(&self, party: usize);
}

/// A seat is alone in its cache lines, since its owner and those who wake it are different threads.
#[repr(align(128))]
struct Seat {
    /// The owner sleeps here, or is about to.
    taken: AtomicBool,
    called: Mutex<bool>,
    bell: Condvar,
}

pub(crate) struct Seats {
    seats: Box<[Seat]>,
    wake: Arc<dyn Wake>,
}

impl Seats {
    pub(crate) fn new(parties: usize, wake: Arc<dyn Wake>) -> Self {
        let seats = (0..parties)
            .map(|_| Seat {
                taken: AtomicBool::new(false),
                called: Mutex::new(false),
                bell: Condvar::new(),
            })
            .collect();
        Self { seats, wake }
    }

    pub(crate) fn len(&self) -> usize {
        self.seats.len()
    }

    /// Wakes every party whose bit is in the mask.
    #[inline]
    pub(crate) fn wake_all(&self, mask: u64) {
        if mask != 0 {
            self.wake_each(mask);
        }
    }

    #[cold]
    fn wake_each(&self, mut mask: u64) {
        while mask != 0 {
            let bit = mask.trailing_zeros();
            mask &= mask - 1;
            for party in (bit as usize..self.seats.len()).step_by(MASK_BITS as usize) {
                self.wake_one(party);
            }
        }
    }

    fn wake_one(&self, party: usize) {
        let seat = &self.seats[party];
        // Relaxed: the registration in the lock word carried `taken` here (release by the waiter, acquire by the waker).
        if seat.taken.load(Ordering::Relaxed) {
            *unpoisoned(seat.called.lock()) = true;
            seat.bell.notify_one();
        }
        // Also when it sits: a worker that sleeps for one shard may have set aside a connection that waits for another.
        self.wake.wake(party);
    }

    /// Takes one's seat. Must come before the registration that is to be waited for.
    pub(crate) fn sit(&self, party: Party) -> Sitting<'_> {
        let seat = &self.seats[party.index()];
        *unpoisoned(seat.called.lock()) = false;
        seat.taken.store(true, Ordering::Relaxed);
        Sitting(seat)
    }
}

/// The owner's presence on its seat; ends on drop.
pub(crate) struct Sitting<'s>(&'s Seat);

impl Sitting<'_> {
    /// Sleeps until called. Returns at once if the call has come already.
    pub(crate) fn wait(&self) {
        let mut called = unpoisoned(self.0.called.lock());
        while !*called {
            called = unpoisoned(self.0.bell.wait(called));
        }
    }
}

impl Drop for Sitting<'_> {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Relaxed);
    }
}

/// A flag cannot be left half changed, so a poisoned mutex still tells the truth.
fn unpoisoned<G>(locked: Result<G, PoisonError<G>>) -> G {
    locked.unwrap_or_else(PoisonError::into_inner)
}
