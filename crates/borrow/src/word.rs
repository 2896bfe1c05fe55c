//! The lock word: one 64-bit atomic that says whether something is held, who waits for it, and for whom it is kept.
//!
//! ```text
//!  63      62     61 … 55   54 … 0
//! ┌──────┬──────┬─────────┬───────────────┐
//! │LOCKED│ LONG │   TAG   │ waiting mask  │
//! └──────┴──────┴─────────┴───────────────┘
//! ```
//!
//! - `LOCKED`: somebody holds it.
//! - `LONG`: the holder may keep it for longer than a spin is worth (a helper thread's long command).
//! - `TAG`: 0, or the mark of the one for whom it is kept when it becomes free: a claimant (1..=126) or the script (127).
//! - waiting mask: one bit per party that waits for it to be given back; parties beyond 55 share bits.
//!
//! Since all of it is one word, "is it held? then write me down" is one compare-and-swap, and so is "give back and see who
//! waits": a wake cannot be lost between them. Invariant: the mask is empty unless `LOCKED` is set. It must never be written by
//! a plain store, which would forget a waiter.

use crate::sync::{AtomicU64, Ordering};

const LOCKED: u64 = 1 << 63;
const LONG: u64 = 1 << 62;
const TAG_SHIFT: u32 = MASK_BITS;
const TAG: u64 = 0x7f << TAG_SHIFT;
const MASK: u64 = (1 << MASK_BITS) - 1;

/// Bits of the waiting mask; party `p` has bit `p % MASK_BITS`.
pub(crate) const MASK_BITS: u32 = 55;

/// The mark of the script that waits for this shard.
pub(crate) const TAG_SCRIPT: u8 = 127;

/// The largest mark of a claimant; they run from 1.
pub(crate) const TAG_CLAIM_MAX: u8 = 126;

/// What became of a try to take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Take {
    /// It is ours now.
    Taken,
    /// Somebody holds it; `long`: not worth spinning for.
    Held {
        /// The holder announced that it takes long.
        long: bool,
    },
    /// It is free, but kept for somebody else for a short time.
    Reserved,
}

/// What became of a try to wait ([`crate::Shards::park`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Parked {
    /// Written down: a wake comes when it is given back.
    Registered,
    /// It is free: try again at once. No wake will come.
    FreeNow,
    /// It is free but kept for a claimant or a script, for at most a millisecond. No wake will come: do other work, then try again
    /// (a worker: in its next turn, without blocking; a plain thread: after a yield).
    Reserved,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct LockWord(AtomicU64);

impl LockWord {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Takes it if nobody holds, waits for, or keeps it: the one instruction of the hot path.
    #[inline]
    pub(crate) fn take_untouched(&self) -> bool {
        self.0
            .compare_exchange(0, LOCKED, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Takes it if it is free. `mine` is the taker's own mark (0: none), which stays on the word; `kept` says whether another mark
    /// still means something; a mark that does not is wiped.
    pub(crate) fn take(&self, mine: u8, long: bool, kept: impl Fn(u8) -> bool) -> Take {
        // Acquire: a mark that is seen must be judged by a claim word at least as new as the mark.
        let mut seen = self.0.load(Ordering::Acquire);
        loop {
            if seen & LOCKED != 0 {
                return Take::Held {
                    long: seen & LONG != 0,
                };
            }
            let tag = tag_of(seen);
            if tag != 0 && tag != mine && kept(tag) {
                return Take::Reserved;
            }
            let tag = if tag == mine { tag } else { 0 };
            let next = LOCKED | if long { LONG } else { 0 } | tagged(tag);
            match self
                .0
                .compare_exchange_weak(seen, next, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => return Take::Taken,
                Err(now) => seen = now,
            }
        }
    }

    /// Gives it back and returns the mask of those to be woken. Only the holder may call this. A mark stays.
    #[inline]
    pub(crate) fn give_back(&self) -> u64 {
        match self
            .0
            .compare_exchange(LOCKED, 0, Ordering::Release, Ordering::Relaxed)
        {
            Ok(_) => 0,
            Err(seen) => self.give_back_marked(seen),
        }
    }

    #[cold]
    fn give_back_marked(&self, mut seen: u64) -> u64 {
        loop {
            assert!(seen & LOCKED != 0, "only what is held can be given back");
            // Acquire: what a waiter wrote before it registered (that it blocks on its seat) must be seen by the wake.
            match self.0.compare_exchange_weak(
                seen,
                seen & TAG,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return seen & MASK,
                Err(now) => seen = now,
            }
        }
    }

    /// Writes a party down as waiting if it is held.
    pub(crate) fn park(&self, party: usize, kept: impl Fn(u8) -> bool) -> Parked {
        let bit = 1 << (party % MASK_BITS as usize);
        let mut seen = self.0.load(Ordering::Acquire);
        loop {
            if seen & LOCKED == 0 {
                let tag = tag_of(seen);
                return if tag != 0 && kept(tag) {
                    Parked::Reserved
                } else {
                    Parked::FreeNow
                };
            }
            // Also when the bit is set already (it may be another party's): the release half of this write is what hands the
            // waiter's own state to the waker.
            match self.0.compare_exchange_weak(
                seen,
                seen | bit,
                Ordering::Release,
                Ordering::Acquire,
            ) {
                Ok(_) => return Parked::Registered,
                Err(now) => seen = now,
            }
        }
    }

    /// Puts a mark on it, over any mark for which `yields` is true.
    pub(crate) fn mark(&self, tag: u8, yields: impl Fn(u8) -> bool) {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let old = tag_of(seen);
            if old == tag || (old != 0 && !yields(old)) {
                return;
            }
            match self.0.compare_exchange_weak(
                seen,
                (seen & !TAG) | tagged(tag),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Removes this mark if it is there.
    pub(crate) fn unmark(&self, tag: u8) {
        let mut seen = self.0.load(Ordering::Relaxed);
        while tag_of(seen) == tag {
            match self.0.compare_exchange_weak(
                seen,
                seen & !TAG,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Whether nobody holds, waits for, or keeps it.
    #[cfg(all(test, not(feature = "loom-model")))]
    pub(crate) fn is_untouched(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }

    /// Whether somebody holds it at this moment.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.0.load(Ordering::Acquire) & LOCKED != 0
    }
}

fn tag_of(word: u64) -> u8 {
    ((word & TAG) >> TAG_SHIFT) as u8
}

fn tagged(tag: u8) -> u64 {
    u64::from(tag) << TAG_SHIFT
}
