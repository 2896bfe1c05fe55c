#![allow(
    unsafe_code,
    reason = "the content of a shard is reached by whoever holds its lock word"
)]
//! The slot of a shard, and the borrow that opens it. This is the only file of the crate with `unsafe`; it rests on one rule, which
//! its private fields keep: **a `Borrow` lists exactly the slots whose lock words it took and has not given back.** Lock words are
//! taken and given back nowhere else. It knows nothing of fairness, waiting or order: that is the business of the callers.

use std::{cell::UnsafeCell, marker::PhantomData};

use crate::{
    set::{ShardId, ShardSet},
    shards::Shards,
    word::{LockWord, Parked, Take},
};

/// Lock word, the user's header and the content share the first cache line, so that a prefetch brings them together. 128 bytes:
/// two lines, because processors fetch lines in pairs.
#[repr(C, align(128))]
pub(crate) struct Slot<T, H> {
    word: LockWord,
    header: H,
    content: UnsafeCell<T>,
}

// SAFETY: the content is touched only through `&mut Borrow`/`&Borrow` (this file), and at any moment at most one `Borrow` has taken
// the word; taking acquires what giving back released. So the content moves between threads (`T: Send`) but is never shared by this
// type. The header is shared (`H: Sync`); the word is atomic.
unsafe impl<T: Send, H: Sync> Sync for Slot<T, H> {}

impl<T, H> Slot<T, H> {
    pub(crate) fn new(content: T, header: H) -> Self {
        Self {
            word: LockWord::new(),
            header,
            content: UnsafeCell::new(content),
        }
    }

    #[inline]
    pub(crate) fn header(&self) -> &H {
        &self.header
    }

    pub(crate) fn is_held(&self) -> bool {
        self.word.is_held()
    }

    #[cfg(all(test, not(feature = "loom-model")))]
    pub(crate) fn is_untouched(&self) -> bool {
        self.word.is_untouched()
    }

    pub(crate) fn park(&self, party: usize, kept: impl Fn(u8) -> bool) -> Parked {
        self.word.park(party, kept)
    }

    pub(crate) fn mark(&self, tag: u8, yields: impl Fn(u8) -> bool) {
        self.word.mark(tag, yields);
    }

    pub(crate) fn unmark(&self, tag: u8) {
        self.word.unmark(tag);
    }

    /// Asks the processor to bring the slot's first line, for writing.
    #[inline]
    pub(crate) fn prefetch(&self) {
        let line = std::ptr::from_ref(self).cast::<u8>();
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a hint that neither faults nor changes anything; the byte code is a no-op on processors without it.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
        }
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        // SAFETY: a hint that neither faults nor changes anything.
        unsafe {
            std::arch::asm!("prfm pstl1keep, [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
        }
        let _ = line;
    }
}

/// How a slot is taken.
#[derive(Clone, Copy)]
pub(crate) struct Pass {
    /// The taker's own mark, 0 for none.
    pub(crate) tag: u8,
    /// Tell others that it will take long.
    pub(crate) long: bool,
    /// Marks of others mean nothing (the gate is closed).
    pub(crate) over_marks: bool,
}

impl Pass {
    /// A newcomer without privileges.
    pub(crate) const PLAIN: Self = Self {
        tag: 0,
        long: false,
        over_marks: false,
    };
}

enum Held<'s, T, H> {
    /// The slot beside its id saves the hot path two look-ups.
    One(ShardId, &'s Slot<T, H>),
    Many(ShardSet),
}

/// Borrowed shards: exclusive use of their content until this is dropped (also while a panic unwinds), when they are given back and
/// each waiting party is woken once. A token, not a guard of a thread: it may be sent to another thread and dropped there.
#[must_use = "the shards are given back when this is dropped"]
pub struct Borrow<'s, T, H = ()> {
    shards: &'s Shards<T, H>,
    held: Held<'s, T, H>,
    /// Acts like a `&mut T`: `Send` only with `T: Send`, `Sync` only with `T: Sync`.
    content: PhantomData<&'s mut T>,
}

impl<'s, T, H> Borrow<'s, T, H> {
    /// Takes one free shard, without waiting.
    #[inline]
    pub(crate) fn of_one(shards: &'s Shards<T, H>, id: ShardId) -> Option<Self> {
        let slot = shards.slot(id);
        // The slow path gives a bool and no `Borrow`: so the fast path's stays in registers.
        if !slot.word.take_untouched() && !Self::take_marked(shards, slot, id) {
            return None;
        }
        Some(Self {
            shards,
            held: Held::One(id, slot),
            content: PhantomData,
        })
    }

    /// A free shard may bear a mark that means nothing any more; someone has to wipe it.
    #[cold]
    fn take_marked(shards: &Shards<T, H>, slot: &Slot<T, H>, id: ShardId) -> bool {
        let kept = |tag| shards.core().claims.keeps(tag, id);
        slot.word.take(0, false, kept) == Take::Taken
    }

    /// A borrow of nothing, to be filled by `add`, with room for `count` shards.
    pub(crate) fn empty(shards: &'s Shards<T, H>, count: usize) -> Self {
        Self {
            shards,
            held: Held::Many(ShardSet::with_capacity(count)),
            content: PhantomData,
        }
    }

    /// Takes one more shard, without waiting. `Taken` also if it was held by this borrow already.
    pub(crate) fn add(&mut self, id: ShardId, pass: Pass) -> Take {
        if self.holds(id) {
            return Take::Taken;
        }
        let shards = self.shards;
        let kept = |tag| !pass.over_marks && shards.core().claims.keeps(tag, id);
        let take = shards.slot(id).word.take(pass.tag, pass.long, kept);
        if take == Take::Taken {
            match &mut self.held {
                Held::Many(ids) => {
                    ids.push(id);
                    ids.seal();
                }
                Held::One(first, _) => {
                    self.held = Held::Many(ShardSet::from_iter([*first, id]));
                }
            }
        }
        take
    }

    pub(crate) fn shards(&self) -> &'s Shards<T, H> {
        self.shards
    }

    /// The content of the only borrowed shard.
    ///
    /// # Panics
    /// If not exactly one shard is borrowed.
    #[inline]
    pub fn one(&mut self) -> &mut T {
        let slot = match &self.held {
            Held::One(_, slot) => slot,
            Held::Many(ids) => {
                assert!(ids.len() == 1, "one() on a borrow of {} shards", ids.len());
                self.shards.slot(ids.as_slice()[0])
            }
        };
        // SAFETY: the slot is listed, so its word is ours; `&mut self` lets no second reference live.
        unsafe { &mut *slot.content.get() }
    }

    /// The content of a borrowed shard; `None` if this borrow does not hold it.
    #[inline]
    pub fn get(&self, id: ShardId) -> Option<&T> {
        if !self.holds(id) {
            return None;
        }
        // SAFETY: the word is ours; `&self` allows shared references only. Sharing `self` between threads needs `T: Sync`, because
        // `Borrow` holds a `PhantomData<&mut T>`.
        Some(unsafe { &*self.shards.slot(id).content.get() })
    }

    /// The content of a borrowed shard, to be changed; `None` if this borrow does not hold it.
    #[inline]
    pub fn get_mut(&mut self, id: ShardId) -> Option<&mut T> {
        if !self.holds(id) {
            return None;
        }
        // SAFETY: the word is ours; `&mut self` lets no second reference live.
        Some(unsafe { &mut *self.shards.slot(id).content.get() })
    }

    /// Two different shards at once; `None` if they are the same or one is not held.
    #[inline]
    pub fn pair_mut(&mut self, a: ShardId, b: ShardId) -> Option<(&mut T, &mut T)> {
        if a == b || !self.holds(a) || !self.holds(b) {
            return None;
        }
        // SAFETY: both words are ours, the slots differ, and `&mut self` lets no further reference live.
        Some(unsafe {
            (
                &mut *self.shards.slot(a).content.get(),
                &mut *self.shards.slot(b).content.get(),
            )
        })
    }

    /// All borrowed shards in ascending order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (ShardId, &mut T)> {
        let shards = self.shards;
        self.ids().iter().map(move |&id| {
            // SAFETY: the words are ours; a set lists an id once, so no two references meet; the iterator keeps `self` borrowed
            // as mutable.
            (id, unsafe { &mut *shards.slot(id).content.get() })
        })
    }

    /// The header of any shard, held or not.
    #[inline]
    pub fn header(&self, id: ShardId) -> &'s H {
        self.shards.header(id)
    }

    /// The ids of the borrowed shards in ascending order.
    #[inline]
    pub fn ids(&self) -> &[ShardId] {
        match &self.held {
            Held::One(id, _) => std::slice::from_ref(id),
            Held::Many(ids) => ids.as_slice(),
        }
    }

    /// Whether this borrow holds the shard.
    #[inline]
    pub fn holds(&self, id: ShardId) -> bool {
        match &self.held {
            Held::One(one, _) => *one == id,
            Held::Many(ids) => ids.contains(id),
        }
    }
}

impl<T, H> Drop for Borrow<'_, T, H> {
    #[inline]
    fn drop(&mut self) {
        let waiting = match &self.held {
            Held::One(_, slot) => slot.word.give_back(),
            // First everything, then the wakes, so that a party that waits for two of them is woken once and finds both free.
            Held::Many(ids) => ids.iter().fold(0, |waiting, id| {
                waiting | self.shards.slot(id).word.give_back()
            }),
        };
        self.shards.core().seats.wake_all(waiting);
    }
}

impl<T, H> std::fmt::Debug for Borrow<'_, T, H> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Borrow").field(&self.ids()).finish()
    }
}
