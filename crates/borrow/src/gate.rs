//! The gate: how the world is made to stand still. Each party says "inside" for the time of a batch of commands; whoever closes the
//! gate waits until nobody is inside, has the world for itself, and opens again. It must never stay closed: not achieved within the
//! limit, it opens with nothing done, and it opens when the closer panics.
//!
//! Entering is one relaxed store, one fence and one load of a line that is written only when the gate moves. The order matters on
//! both sides, and it is the classical one: *write mine, fence, read yours*. Either the party sees the closed gate and steps back,
//! or the closer sees the party inside and waits.

use crate::{
    cell::{Borrow, Pass},
    claim::Attempt,
    seat::Party,
    set::{ShardId, ShardSet},
    shards::{Core, Outcome, Shards},
    sync::{AtomicBool, Ordering, Patience, fence},
    word::{LockWord, Parked, Take},
};

/// How long the world waits for a borrow whose holder has left the gate already: it can only be about to give back.
const STRAY_US: u64 = 20_000;

/// A party's "inside", alone in its cache lines: it is written for each batch.
#[repr(align(128))]
struct Presence(AtomicBool);

pub(crate) struct GateState {
    /// Held while the gate is closed; its waiting mask lists who was refused.
    closed: LockWord,
    present: Box<[Presence]>,
}

impl GateState {
    pub(crate) fn new(parties: usize) -> Self {
        Self {
            closed: LockWord::new(),
            present: (0..parties)
                .map(|_| Presence(AtomicBool::new(false)))
                .collect(),
        }
    }
}

/// The gate is closed; the party will be woken when it opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed;

/// See the module's text; from [`Shards::gate`].
pub struct Gate<'s, T, H = ()> {
    shards: &'s Shards<T, H>,
}

impl<T, H> Clone for Gate<'_, T, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, H> Copy for Gate<'_, T, H> {}

impl<'s, T, H> Gate<'s, T, H> {
    pub(crate) fn new(shards: &'s Shards<T, H>) -> Self {
        Self { shards }
    }

    /// Goes inside, for a batch of commands. Borrows live within this: drop them before the token. A party enters once at a time.
    ///
    /// # Errors
    /// [`Closed`]: a wake comes when the gate opens.
    ///
    /// # Panics
    /// If the party does not exist.
    #[inline]
    pub fn enter(self, party: Party) -> Result<Inside<'s>, Closed> {
        let gate = &self.shards.core().gate;
        let present = &gate.present[party.index()].0;
        loop {
            debug_assert!(
                !present.load(Ordering::Relaxed),
                "a party enters once at a time"
            );
            present.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if !gate.closed.is_held() {
                return Ok(Inside { present });
            }
            present.store(false, Ordering::Release);
            if gate.closed.park(party.index(), |_| false) == Parked::Registered {
                return Err(Closed);
            }
        }
    }

    /// Goes inside, asleep while the gate is closed: for helper threads.
    ///
    /// # Panics
    /// If the party does not exist.
    pub fn enter_blocking(self, party: Party) -> Inside<'s> {
        loop {
            let seat = self.shards.core().seats.sit(party);
            match self.enter(party) {
                Ok(inside) => return inside,
                Err(Closed) => seat.wait(),
            }
        }
    }

    /// Goes inside and borrows, asleep between tries and *outside* meanwhile, so that a waiting helper never keeps the gate from
    /// closing.
    ///
    /// # Panics
    /// As [`Shards::borrow_blocking`].
    pub fn enter_and_borrow_blocking(self, set: &ShardSet, party: Party) -> Visit<'s, T, H> {
        let mut who = Attempt::new();
        loop {
            let inside = self.enter_blocking(party);
            match self.shards.try_borrow_for(set, &mut who, true) {
                Outcome::Borrowed(borrow) => {
                    return Visit { borrow, inside };
                }
                Outcome::Busy(id) => {
                    drop(inside);
                    self.shards.sleep_until_given_back(id, party);
                }
            }
        }
    }

    /// Closes the gate, waits until nobody is inside, calls `act` with the world, opens, and wakes whoever was refused. `None`: not
    /// achieved within `limit_us` (or another is closing it, or the caller is inside itself and has to leave first): nothing was
    /// done, try again later.
    ///
    /// # Panics
    /// If the party does not exist.
    pub fn close<R>(
        self,
        party: Party,
        limit_us: u64,
        act: impl FnOnce(&mut World<'s, T, H>) -> R,
    ) -> Option<R> {
        let core = self.shards.core();
        core.assert_exists(party);
        let mine = &core.gate.present[party.index()].0;
        if mine.load(Ordering::Relaxed) || !core.gate.closed.take_untouched() {
            return None;
        }
        let opener = Opener(core);
        fence(Ordering::SeqCst);
        let mut patience = Patience::new(limit_us);
        for present in &core.gate.present {
            while present.0.load(Ordering::Acquire) {
                if !patience.more() {
                    return None;
                }
            }
        }
        let mut world = World {
            borrow: Borrow::empty(self.shards, 0),
        };
        let result = act(&mut world);
        // The shards first, then the gate: whoever comes in finds them free.
        drop(world);
        drop(opener);
        Some(result)
    }

    /// Whether the gate is closed at this moment: a hint, for long work inside that can stop early.
    #[inline]
    pub fn is_closing(self) -> bool {
        self.shards.core().gate.closed.is_held()
    }
}

/// Opens the gate, also when the closer panics.
struct Opener<'s>(&'s Core);

impl Drop for Opener<'_> {
    fn drop(&mut self) {
        self.0.seats.wake_all(self.0.gate.closed.give_back());
    }
}

/// A party's stay inside the gate; it leaves on drop.
#[must_use = "the party leaves when this is dropped"]
#[derive(Debug)]
pub struct Inside<'s> {
    present: &'s AtomicBool,
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.present.store(false, Ordering::Release);
    }
}

/// A helper's stay inside together with its borrow: gives back first, then leaves. Used as the [`Borrow`] that it is.
#[must_use = "the shards are given back when this is dropped"]
pub struct Visit<'s, T, H = ()> {
    // Fields are dropped in this order.
    borrow: Borrow<'s, T, H>,
    inside: Inside<'s>,
}

impl<'s, T, H> Visit<'s, T, H> {
    /// The borrow and the stay apart, for whoever wraps the borrow. The borrow must be dropped first.
    pub fn into_parts(self) -> (Borrow<'s, T, H>, Inside<'s>) {
        (self.borrow, self.inside)
    }
}

impl<'s, T, H> std::ops::Deref for Visit<'s, T, H> {
    type Target = Borrow<'s, T, H>;

    fn deref(&self) -> &Self::Target {
        &self.borrow
    }
}

impl<T, H> std::ops::DerefMut for Visit<'_, T, H> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.borrow
    }
}

/// The world standing still: all shards, for the one who closed the gate. A shard is locked when it is first touched (a borrow that
/// was kept beyond its stay inside is thereby found, not overlooked), so an act that touches few shards costs little.
pub struct World<'s, T, H = ()> {
    borrow: Borrow<'s, T, H>,
}

impl<'s, T, H> World<'s, T, H> {
    /// Number of shards.
    pub fn len(&self) -> usize {
        self.borrow.shards().len()
    }

    /// Whether there is no shard.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The content of a shard.
    ///
    /// # Panics
    /// If there is no such shard, or somebody keeps a borrow of it long after leaving the gate: a fault of the program, and to go on would
    /// break the promise that the world stands still.
    pub fn shard(&mut self, id: ShardId) -> &mut T {
        self.take(id);
        self.borrow
            .get_mut(id)
            .expect("a shard of the world is held once it was taken")
    }

    /// Two different shards at once; `None` if they are the same.
    ///
    /// # Panics
    /// As [`World::shard`].
    pub fn pair(&mut self, a: ShardId, b: ShardId) -> Option<(&mut T, &mut T)> {
        self.take(a);
        self.take(b);
        self.borrow.pair_mut(a, b)
    }

    /// All shards in ascending order.
    ///
    /// # Panics
    /// As [`World::shard`].
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (ShardId, &mut T)> {
        let all = ShardSet::all(self.len());
        all.iter().for_each(|id| self.take(id));
        self.borrow.iter_mut()
    }

    /// The whole world as one borrow that holds every shard, for code that works on borrows.
    ///
    /// # Panics
    /// As [`World::shard`].
    pub fn borrow_all(&mut self) -> &mut Borrow<'s, T, H> {
        let all = ShardSet::all(self.len());
        all.iter().for_each(|id| self.take(id));
        &mut self.borrow
    }

    fn take(&mut self, id: ShardId) {
        let pass = Pass {
            over_marks: true,
            ..Pass::PLAIN
        };
        let mut patience = Patience::new(STRAY_US);
        while self.borrow.add(id, pass) != Take::Taken {
            assert!(
                patience.more(),
                "shard {id} is borrowed while the gate is closed"
            );
        }
    }
}
