//! All shards, and how a command comes to borrow some: at once, after a short spin, set aside, as the claimant, or asleep. It must
//! never wait with a shard in hand for longer than a spin.

use std::sync::Arc;

use crate::{
    cell::{Borrow, Pass, Slot},
    claim::{Attempt, Claims},
    gate::{Gate, GateState},
    script::ScriptLock,
    seat::{Party, Seats, Wake},
    set::{ShardId, ShardSet},
    sync::{Patience, give_way},
    word::{LockWord, Parked, TAG_SCRIPT, Take},
};

/// How long a try spins behind short holders in all. A short command takes about 1 µs and a bite of background work up to 50, so
/// this outlasts most commands and few bites.
const SPIN_US: u64 = 4;

/// A claimant's patience is longer: nobody new takes its shards, so each wait is for one holder to finish.
const CLAIMANT_SPIN_US: u64 = 20;

/// What became of a try to borrow.
#[must_use]
pub enum Outcome<'s, T, H = ()> {
    /// All shards of the set.
    Borrowed(Borrow<'s, T, H>),
    /// Nothing is held. This shard was in the way: [`Shards::park`] on it, and try again with the same [`Attempt`] when woken.
    Busy(ShardId),
}

impl<'s, T, H> Outcome<'s, T, H> {
    /// The borrow, if it succeeded.
    pub fn borrowed(self) -> Option<Borrow<'s, T, H>> {
        match self {
            Self::Borrowed(borrow) => Some(borrow),
            Self::Busy(_) => None,
        }
    }
}

/// What does not depend on the content.
pub(crate) struct Core {
    pub(crate) seats: Seats,
    pub(crate) claims: Claims,
    pub(crate) script: LockWord,
    pub(crate) gate: GateState,
}

/// The shards: contents of type `T`, each behind its own lock word, and beside each a header `H` of the user's that anyone may read
/// at any time (counters as atomics).
pub struct Shards<T, H = ()> {
    slots: Box<[Slot<T, H>]>,
    core: Core,
}

impl<T, H: Default> Shards<T, H> {
    /// One shard for each of `contents`, used by `parties` threads (workers `0..n`, then helpers).
    ///
    /// # Panics
    /// If there are more contents than shard ids.
    pub fn new(contents: impl IntoIterator<Item = T>, parties: usize, wake: Arc<dyn Wake>) -> Self {
        let slots: Box<[_]> = contents
            .into_iter()
            .map(|content| Slot::new(content, H::default()))
            .collect();
        assert!(
            slots.len() <= usize::from(ShardId::MAX),
            "{} shards, at most {}",
            slots.len(),
            ShardId::MAX
        );
        let core = Core {
            seats: Seats::new(parties, wake),
            claims: Claims::new(),
            script: LockWord::new(),
            gate: GateState::new(parties),
        };
        Self { slots, core }
    }
}

impl<T, H> Shards<T, H> {
    /// Borrows one shard if it is free at this moment: one compare-and-swap, no spin. `None`: held, or kept for a claimant; go on
    /// with [`Shards::try_borrow`].
    #[inline]
    pub fn try_one(&self, id: ShardId) -> Option<Borrow<'_, T, H>> {
        Borrow::of_one(self, id)
    }

    /// Borrows all shards of a sealed set or none, in ascending order. Spins for a few µs behind short holders. A command that fails
    /// eight times may become the claimant, for whom newcomers to its shards are refused for at most a millisecond.
    ///
    /// # Panics
    /// If the set is not sealed or has an id that does not exist.
    pub fn try_borrow(&self, set: &ShardSet, who: &mut Attempt) -> Outcome<'_, T, H> {
        self.try_borrow_for(set, who, false)
    }

    /// Borrows all shards of the set, asleep between tries: for helper threads, whose commands take long; spinners do not wait for
    /// them. The party must not be inside the gate (else the gate cannot close while this sleeps): see
    /// [`Gate::enter_and_borrow_blocking`].
    ///
    /// # Panics
    /// As [`Shards::try_borrow`], and if the party does not exist.
    pub fn borrow_blocking(&self, set: &ShardSet, party: Party) -> Borrow<'_, T, H> {
        let mut who = Attempt::new();
        loop {
            match self.try_borrow_for(set, &mut who, true) {
                Outcome::Borrowed(borrow) => return borrow,
                Outcome::Busy(id) => self.sleep_until_given_back(id, party),
            }
        }
    }

    /// Asks for a wake when the shard is given back. See [`Parked`] for what to do otherwise.
    ///
    /// # Panics
    /// If the shard or the party does not exist.
    pub fn park(&self, id: ShardId, party: Party) -> Parked {
        self.core.assert_exists(party);
        self.slot(id)
            .park(party.index(), |tag| self.core.claims.keeps(tag, id))
    }

    /// Gives up a command that was set aside (its client left). Without this its claim, if it had one, runs out by itself.
    pub fn abandon(&self, who: &mut Attempt) {
        if let Some(claim) = who.take_claim() {
            self.core.claims.end(claim);
        }
    }

    /// The lock that orders scripts which may touch any key.
    pub fn script_lock(&self) -> ScriptLock<'_> {
        ScriptLock::new(&self.core)
    }

    /// The gate, for what needs the world to stand still.
    pub fn gate(&self) -> Gate<'_, T, H> {
        Gate::new(self)
    }

    /// Brings the shard's lock word and header into the cache, for writing. A hint: no effect otherwise.
    #[inline]
    pub fn prefetch(&self, id: ShardId) {
        if let Some(slot) = self.slots.get(usize::from(id)) {
            slot.prefetch();
        }
    }

    /// The user's header of a shard, readable by anyone at any time.
    ///
    /// # Panics
    /// If the shard does not exist.
    #[inline]
    pub fn header(&self, id: ShardId) -> &H {
        self.slot(id).header()
    }

    /// All headers, in the order of the ids.
    pub fn headers(&self) -> impl ExactSizeIterator<Item = &H> {
        self.slots.iter().map(Slot::header)
    }

    /// Number of shards.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no shard.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Number of parties.
    pub fn parties(&self) -> usize {
        self.core.seats.len()
    }

    /// Whether somebody holds the shard at this moment: for statistics only.
    pub fn is_held(&self, id: ShardId) -> bool {
        self.slot(id).is_held()
    }

    #[inline]
    pub(crate) fn slot(&self, id: ShardId) -> &Slot<T, H> {
        &self.slots[usize::from(id)]
    }

    #[inline]
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    pub(crate) fn try_borrow_for(
        &self,
        set: &ShardSet,
        who: &mut Attempt,
        long: bool,
    ) -> Outcome<'_, T, H> {
        assert!(set.is_sealed(), "a set is sealed before it is borrowed");
        if let (&[id], false, None) = (set.as_slice(), long, who.claim())
            && let Some(borrow) = self.try_one(id)
        {
            who.take_claim();
            return Outcome::Borrowed(borrow);
        }
        let tag = match who.claim() {
            Some(claim) if self.core.claims.stands(claim) => claim.tag(),
            _ => 0,
        };
        let mut tried = self.take_all(set, tag, long);
        if tried.is_err() && self.core.claims.failed(who) {
            let tag = self.mark_all(set, who);
            tried = self.take_all(set, tag, long);
        }
        match tried {
            Ok(borrow) => {
                if let Some(claim) = who.take_claim() {
                    // Marks go before the claim ends: until then nobody else's can be among them.
                    set.iter().for_each(|id| self.slot(id).unmark(claim.tag()));
                    self.core.claims.end(claim);
                }
                Outcome::Borrowed(borrow)
            }
            Err(id) => Outcome::Busy(id),
        }
    }

    /// Sleeps until the shard is given back, or returns soon if it is free already.
    pub(crate) fn sleep_until_given_back(&self, id: ShardId, party: Party) {
        self.core.assert_exists(party);
        let seat = self.core.seats.sit(party);
        match self.park(id, party) {
            Parked::Registered => seat.wait(),
            Parked::FreeNow => {}
            Parked::Reserved => give_way(),
        }
    }

    /// Ascending, so that two commands never hold what the other spins for; whoever spins too long gives everything back (on drop).
    fn take_all(&self, set: &ShardSet, tag: u8, long: bool) -> Result<Borrow<'_, T, H>, ShardId> {
        let pass = Pass {
            tag,
            long,
            ..Pass::PLAIN
        };
        let mut patience = Patience::new(if tag == 0 { SPIN_US } else { CLAIMANT_SPIN_US });
        let mut borrow = Borrow::empty(self, set.len());
        for id in set {
            loop {
                match borrow.add(id, pass) {
                    Take::Taken => break,
                    Take::Held { long: true } | Take::Reserved => return Err(id),
                    Take::Held { long: false } => {}
                }
                let script_wants = self.core.claims.script_wants();
                if script_wants.is_some_and(|wanted| borrow.holds(wanted)) || !patience.more() {
                    return Err(id);
                }
            }
        }
        Ok(borrow)
    }

    fn mark_all(&self, set: &ShardSet, who: &Attempt) -> u8 {
        let tag = who.claim().map_or(0, |claim| claim.tag());
        for id in set {
            // Over marks that mean nothing any more, and never over the script's: it holds shards while it waits.
            let claims = &self.core.claims;
            let yields = |old| old != TAG_SCRIPT || !claims.keeps(old, id);
            self.slot(id).mark(tag, yields);
        }
        tag
    }
}

impl Core {
    /// A party that does not exist would never be woken.
    pub(crate) fn assert_exists(&self, party: Party) {
        let parties = self.seats.len();
        assert!(
            party.index() < parties,
            "{party:?} of {parties} parties borrows"
        );
    }
}
