//! What a handler sees: the borrowed keys, the reply, the effects, the time. No socket, no thread, no lock.

use crate::Error;
use crate::effects::Effects;
use crate::rng::Rng;
use pantala_config::Settings;
use pantala_protocol::{Args, Reply};
use pantala_store::borrow::{Party, ShardId, ShardSet};
use pantala_store::{Db, Key, KeyHash, ShardDb, Space, Store};

/// One key of the command: where it stands among the arguments, and its hash.
#[derive(Clone, Copy, Debug)]
pub struct KeyAt {
    /// Argument position.
    pub arg: u32,
    /// Hash, computed once before the borrow.
    pub hash: KeyHash,
}

/// The context of a command whose shards are borrowed.
pub struct Ctx<'c, 's> {
    /// The store, for hashing and counters; data are reached through the borrowed shards only.
    pub store: &'s Store,
    /// The borrowed shards.
    pub space: &'c mut Space<'s>,
    /// Selected database.
    pub db_index: u16,
    /// Keys of the command, in the order of the specification.
    pub keys: &'c [KeyAt],
    /// Unix time in ms, one reading per batch.
    pub now_ms: i64,
    /// Where the reply goes.
    pub reply: Reply<'c>,
    /// Where the effects go.
    pub fx: &'c mut Effects,
    /// Configuration in force.
    pub settings: &'c Settings,
    /// Pseudo-randomness.
    pub rng: &'c mut Rng,
}

impl<'s> Ctx<'_, 's> {
    /// The selected database, over the borrowed shards.
    #[inline]
    pub fn db(&mut self) -> Db<'_, 's> {
        self.space.db(self.db_index, self.now_ms)
    }

    /// Another database over the same shards (a key has the same shard in each).
    #[inline]
    pub fn db_at(&mut self, index: u16) -> Db<'_, 's> {
        self.space.db(index, self.now_ms)
    }

    /// The command's `nth` key. Panics when the specification promises no such key: a defect of the specification.
    #[inline]
    pub fn key<'a>(&self, args: Args<'a>, nth: usize) -> Key<'a> {
        let at = &self.keys[nth];
        Key {
            bytes: args.arg(at.arg as usize),
            hash: at.hash,
        }
    }
}

/// How a walk reaches the shards.
pub enum Reach<'c, 's> {
    /// One after another: each is borrowed for a moment and given back. `may_wait`: on a helper thread, which waits for a busy
    /// shard; a worker does not.
    Each {
        /// Party that waits, on helper threads; `None` on workers.
        party: Option<Party>,
    },
    /// All are held already (inside a transaction).
    Held(&'c mut Space<'s>),
}

/// The context of a command that goes through the keyspace shard by shard.
pub struct Walk<'c, 's> {
    /// The store.
    pub store: &'s Store,
    /// How shards are reached.
    pub reach: Reach<'c, 's>,
    /// Selected database.
    pub db_index: u16,
    /// Unix time in ms.
    pub now_ms: i64,
    /// Where the reply goes.
    pub reply: Reply<'c>,
    /// Where the effects go.
    pub fx: &'c mut Effects,
    /// Configuration in force.
    pub settings: &'c Settings,
    /// Pseudo-randomness.
    pub rng: &'c mut Rng,
}

impl Walk<'_, '_> {
    /// Runs `f` on the selected database's part in `shard`. `Err(Busy)` when a worker would have to wait: nothing was done.
    pub fn shard<R>(
        &mut self,
        shard: ShardId,
        f: impl FnOnce(&mut ShardDb<'_>) -> R,
    ) -> Result<R, Error> {
        let (db, now_ms) = (self.db_index, self.now_ms);
        match &mut self.reach {
            Reach::Held(space) => Ok(f(&mut space.shard_db(shard, db, now_ms))),
            Reach::Each { party: Some(party) } => {
                // Each shard within the gate for itself, so that a long walk does not keep the gate from closing.
                let (borrow, _inside) = self
                    .store
                    .gate()
                    .enter_and_borrow_blocking(&ShardSet::one(shard), *party)
                    .into_parts();
                let mut space = self.store.space(borrow);
                Ok(f(&mut space.shard_db(shard, db, now_ms)))
            }
            Reach::Each { party: None } => match self.store.try_borrow_one(shard) {
                Some(mut space) => Ok(f(&mut space.shard_db(shard, db, now_ms))),
                None => Err(Error::Busy(shard)),
            },
        }
    }
}
