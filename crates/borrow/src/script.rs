//! The script lock: one holder, who may borrow further shards while it holds some, in any order, and wait for them. So it may touch
//! keys that nobody declared.
//!
//! Why this cannot deadlock: everyone else takes shards in ascending order and gives all back when a spin ends, so nobody but the
//! holder of the script lock ever waits with a shard in hand; and it is one. Nobody waits for the script lock with a shard in hand:
//! [`ScriptLock::try_lock`] never waits, and after [`ScriptLock::park`] the command is set aside, holding nothing.

use crate::{
    cell::{Borrow, Pass},
    seat::Party,
    set::ShardId,
    shards::Core,
    sync::Patience,
    word::{Parked, TAG_SCRIPT, Take},
};

/// How long a script spins for a further shard before it sleeps. Longer than others: it holds shards that others want.
const SCRIPT_SPIN_US: u64 = 20;

/// See the module's text; from [`crate::Shards::script_lock`].
#[derive(Clone, Copy)]
pub struct ScriptLock<'s> {
    core: &'s Core,
}

impl<'s> ScriptLock<'s> {
    pub(crate) fn new(core: &'s Core) -> Self {
        Self { core }
    }

    /// Takes the lock if it is free at this moment. `party` is the thread that will run the script.
    ///
    /// # Panics
    /// If the party does not exist.
    pub fn try_lock(self, party: Party) -> Option<ScriptToken<'s>> {
        self.core.assert_exists(party);
        // Nobody marks this word, so it is untouched whenever it is free.
        // A closure, not a value: a token that is made and dropped would give back what another holds.
        self.core.script.take_untouched().then(|| ScriptToken {
            core: self.core,
            party,
        })
    }

    /// Asks for a wake when the lock is given back. The caller must hold no shard from here until it is woken.
    ///
    /// # Panics
    /// If the party does not exist.
    pub fn park(self, party: Party) -> Parked {
        self.core.assert_exists(party);
        self.core.script.park(party.index(), |_| false)
    }

    /// Takes the lock, asleep until it is free: for helper threads. The caller must hold no shard and be outside the gate.
    ///
    /// # Panics
    /// If the party does not exist.
    pub fn lock_blocking(self, party: Party) -> ScriptToken<'s> {
        loop {
            if let Some(token) = self.try_lock(party) {
                return token;
            }
            let seat = self.core.seats.sit(party);
            if self.park(party) == Parked::Registered {
                seat.wait();
            }
        }
    }
}

/// The script lock, held; given back on drop. Drop the shards first.
#[must_use = "the lock is given back when this is dropped"]
pub struct ScriptToken<'s> {
    core: &'s Core,
    party: Party,
}

impl Drop for ScriptToken<'_> {
    fn drop(&mut self) {
        self.core.seats.wake_all(self.core.script.give_back());
    }
}

impl<T, H> Borrow<'_, T, H> {
    /// Borrows one more shard, out of order if need be, and waits for it: spins, then sleeps on the seat of the token's party.
    /// Newcomers to that shard are refused meanwhile, and whoever spins with it in hand gives it back. Its holder must not depend on
    /// this thread to finish.
    ///
    /// # Panics
    /// If the token belongs to other shards, or there is no such shard.
    pub fn extend_under_script(&mut self, token: &ScriptToken<'_>, id: ShardId) {
        while !self.extend_by_spinning(token, id, SCRIPT_SPIN_US, true) {}
    }

    /// As [`Borrow::extend_under_script`], but gives up after about `limit_us`: for a script that has had no effect yet and can
    /// start again with a larger set. True if the shard is held now.
    ///
    /// # Panics
    /// As [`Borrow::extend_under_script`].
    pub fn extend_within(&mut self, token: &ScriptToken<'_>, id: ShardId, limit_us: u64) -> bool {
        self.extend_by_spinning(token, id, limit_us, false)
    }

    fn extend_by_spinning(
        &mut self,
        token: &ScriptToken<'_>,
        id: ShardId,
        limit_us: u64,
        then_sleep: bool,
    ) -> bool {
        let shards = self.shards();
        assert!(
            std::ptr::eq(token.core, shards.core()),
            "the script lock of these very shards"
        );
        if self.add(id, Pass::PLAIN) == Take::Taken {
            return true;
        }
        let pass = Pass {
            tag: TAG_SCRIPT,
            ..Pass::PLAIN
        };
        let want = token.core.claims.want_for_script(id);
        shards.slot(id).mark(TAG_SCRIPT, |_| true);
        let mut patience = Patience::new(limit_us);
        let taken = loop {
            if self.add(id, pass) == Take::Taken {
                break true;
            }
            if !patience.more() {
                if then_sleep {
                    shards.sleep_until_given_back(id, token.party);
                }
                break then_sleep && self.add(id, pass) == Take::Taken;
            }
        };
        shards.slot(id).unmark(TAG_SCRIPT);
        drop(want);
        taken
    }
}
