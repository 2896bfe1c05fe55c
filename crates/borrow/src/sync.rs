//! The atomics, the blocking primitives and the clock that this crate uses. Everything that threads share goes through this file,
//! so that the unit tests check the real code under shuttle (or loom, feature `loom-model`) and the release build uses `std`.
//! It must never be bypassed: an atomic that a model does not see is an atomic that no model tests.

#[cfg(not(test))]
pub(crate) use std::sync::{
    Condvar, Mutex,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
};

#[cfg(all(test, not(feature = "loom-model")))]
pub(crate) use shuttle::sync::{
    Condvar, Mutex,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
};

#[cfg(all(test, feature = "loom-model"))]
pub(crate) use loom::sync::{
    Condvar, Mutex,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
};

/// Monotonic time in microseconds since some moment before the first call; never 0.
#[cfg(not(test))]
pub(crate) fn now_us() -> u64 {
    use std::{sync::OnceLock, time::Instant};
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed();
    u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX >> 8) + 1
}

/// The clock of the models: each look at it takes 100 µs, so that a claim lasts ten looks. A model runs on one system thread, so a
/// thread-local keeps it repeatable.
#[cfg(test)]
pub(crate) fn now_us() -> u64 {
    use std::cell::Cell;
    thread_local!(static NOW: Cell<u64> = const { Cell::new(1_000) });
    NOW.with(|now| {
        now.set(now.get() + 100);
        now.get()
    })
}

/// One turn of a spin loop.
#[inline]
pub(crate) fn pause() {
    #[cfg(not(test))]
    std::hint::spin_loop();
    #[cfg(test)]
    give_way();
}

/// Lets another thread run first: for waits that may last longer than a spin.
pub(crate) fn give_way() {
    #[cfg(not(test))]
    std::thread::yield_now();
    #[cfg(all(test, not(feature = "loom-model")))]
    shuttle::thread::yield_now();
    #[cfg(all(test, feature = "loom-model"))]
    loom::thread::yield_now();
}

/// Rounds of pure spinning before a spin offers its processor to others in each round: some 6 µs.
const SPIN_ROUNDS: u32 = 256;

/// A bounded spin: `more()` says whether to look once more. Starts its clock at the first failure, so an uncontended path never
/// reads it.
pub(crate) struct Patience {
    limit_us: u64,
    until_us: Option<u64>,
    rounds: u32,
}

impl Patience {
    /// Spins for at most about `limit_us`.
    pub(crate) fn new(limit_us: u64) -> Self {
        Self {
            limit_us,
            until_us: None,
            rounds: 0,
        }
    }

    /// Pauses for one round; false when the time is over.
    pub(crate) fn more(&mut self) -> bool {
        // In a model a spin is a choice of schedule; two rounds show every outcome of many.
        if cfg!(test) {
            self.rounds += 1;
            pause();
            return self.rounds <= 2;
        }
        let until_us = match self.until_us {
            Some(until_us) => until_us,
            None => *self.until_us.insert(now_us() + self.limit_us),
        };
        self.rounds += 1;
        // A look at the clock costs about as much as eight pauses on some processors and one on others: look at each eighth.
        if self.rounds.is_multiple_of(8) && now_us() >= until_us {
            return false;
        }
        // A holder may have lost its processor to this very spin, when there are more threads than cores.
        if self.rounds > SPIN_ROUNDS {
            give_way();
        } else {
            pause();
        }
        true
    }
}
