//! Work between commands: expiry, compaction, freeing, eviction, in bites of at most 50 µs per turn; and the slow clock that closes
//! idle clients. A worker whose clients are silent and whose keys do not expire sets no timer at all.

use super::Core;
use crate::invoke;
use crate::session::State;
use crate::shared::Shared;
use crate::stats;
use pantala_borrow::Party;
use pantala_config::EvictionPolicy;
use pantala_reactor::{Io, Next};
use pantala_store::EvictPolicy;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Timer: bites are due.
const BITES: u64 = 1;
/// Timer: look for clients that are idle or do not read.
const CLIENTS: u64 = 2;
/// Timer: a pause may have ended.
const PAUSE: u64 = 3;

/// Between rounds of bites.
const ROUND_EVERY: Duration = Duration::from_millis(100);
/// Bites per round while they find little; a busy store goes on at once. 16 bites of at most 50 µs each 100 ms are below 1 % of a core.
const ROUND_BITES: u32 = 16;
/// Rounds after the last command before a store without expiring keys is left alone: 20 s, more than compaction needs.
const QUIET_ROUNDS: u32 = 200;
/// Between such looks.
const CLIENTS_EVERY: Duration = Duration::from_secs(1);

/// State of a worker's background work.
#[derive(Default)]
pub(super) struct Background {
    /// Bites left in this round.
    left: u32,
    /// Rounds since this worker last executed a command.
    quiet_rounds: u32,
    executed_before: u64,
    round_armed: bool,
    clients_armed: bool,
    pause_armed: bool,
}

impl Core {
    pub(super) fn background_due(&mut self, shared: &Shared, io: &mut Io, token: u64) {
        match token {
            BITES => {
                self.background.round_armed = false;
                self.begin_round(shared);
            }
            CLIENTS => {
                self.background.clients_armed = false;
                self.look_at_clients(shared, io);
            }
            PAUSE => {
                self.background.pause_armed = false;
                self.look_at_paused = true;
            }
            _ => debug_assert!(false, "unknown timer {token}"),
        }
    }

    fn begin_round(&mut self, shared: &Shared) {
        let executed = shared.stats.party(self.party).executed.load(Relaxed);
        let quiet = executed == self.background.executed_before;
        self.background.executed_before = executed;
        self.background.quiet_rounds = if quiet {
            self.background.quiet_rounds + 1
        } else {
            0
        };
        self.background.left = ROUND_BITES;
    }

    /// Does a bite of background work if one is due, and says whether the worker may sleep.
    pub(super) fn background_bites(&mut self, shared: &Arc<Shared>, io: &mut Io) -> Next {
        self.arm_pause(shared, io);
        self.arm_clients(io);
        shared
            .stats
            .party(self.party)
            .buffer_bytes
            .store(io.buffer_bytes() as u64, Relaxed);
        if self.background.left > 0
            && let Ok(_inside) = shared.store.gate().enter(Party::new(self.party))
        {
            let party = self.party;
            // During a pause the data stand still.
            let expire = shared.active_expire.load(Relaxed)
                && shared.pause.holds(true, io.unix_ms()).is_none();
            let progress = shared.store.bite(io.unix_ms(), expire, &mut |space| {
                invoke::removed(shared, party, space)
            });
            let flushed = crate::memcached::flush_bite(
                shared,
                party,
                io.unix_ms(),
                &mut self.memcached_buffers,
            );
            if !progress.busy && flushed {
                self.background.left -= 1;
            }
        }
        if self.background.left > 0 || std::mem::take(&mut self.retry_soon) {
            return Next::Again;
        }
        self.arm_round(shared, io);
        Next::Wait
    }

    fn arm_round(&mut self, shared: &Shared, io: &mut Io) {
        if self.background.round_armed {
            return;
        }
        let quiet = shared.stats.party(self.party).executed.load(Relaxed)
            == self.background.executed_before;
        if quiet
            && self.background.quiet_rounds >= QUIET_ROUNDS
            && !shared.memcached.flush_planned()
            && !(0..shared.store.databases()).any(|db| shared.store.expires_size(db) != 0)
        {
            return;
        }
        self.background.round_armed = true;
        io.set_timer(io.now() + ROUND_EVERY, BITES);
    }

    fn arm_pause(&mut self, shared: &Shared, io: &mut Io) {
        if self.background.pause_armed || self.paused.is_empty() {
            return;
        }
        /// A pause may be as long as numbers go; a later look is soon enough.
        const WAIT_MAX_MS: i64 = 60_000;
        // A pause that has ended meanwhile is noticed at once.
        let until_ms = shared.pause.holds(true, io.unix_ms()).unwrap_or(0);
        let wait_ms = (until_ms.saturating_sub(io.unix_ms())).clamp(1, WAIT_MAX_MS);
        self.background.pause_armed = true;
        io.set_timer(
            io.now() + Duration::from_millis(wait_ms.unsigned_abs()),
            PAUSE,
        );
    }

    /// Clients are looked at only while there are some and a limit asks for it.
    fn arm_clients(&mut self, io: &mut Io) {
        let limited = self.settings.timeout_seconds != 0
            || self
                .settings
                .client_output_buffer_limit
                .normal
                .soft_limit_bytes
                != 0
            || self.local.flooded;
        if limited && !self.background.clients_armed && io.connections() != 0 {
            self.background.clients_armed = true;
            io.set_timer(io.now() + CLIENTS_EVERY, CLIENTS);
        }
    }

    /// Closes clients that have been idle for too long, or above the soft limit of unsent replies for too long.
    fn look_at_clients(&mut self, shared: &Shared, io: &mut Io) {
        let now_ms = io.unix_ms();
        let timeout_ms = i64::from(self.settings.timeout_seconds) * 1_000;
        self.local.flooded = false;
        for (conn, session) in self.sessions.0.iter_mut().flatten() {
            let unsent = io.out_len(*conn);
            if session.card.output_bytes.swap(unsent, Relaxed) != unsent {
                // It reads.
                session.card.active_ms.store(now_ms, Relaxed);
            }
            // Whoever waits for an answer is not idle.
            let idle_ms = now_ms - session.card.active_ms.load(Relaxed);
            let listens = session.subscriptions.is_some();
            let limit = session.output_limit(&self.settings);
            let patience_ms = i64::from(limit.soft_limit_seconds) * 1_000;
            let ready =
                matches!(session.state, State::Ready | State::Full) && !session.monitor && !listens;
            if timeout_ms != 0
                && ready
                && idle_ms > timeout_ms
                && !shared.memcached.watchers.has(&session.card)
            {
                io.close(*conn);
                continue;
            }
            let above = limit.soft_limit_bytes != 0 && unsent as u64 > limit.soft_limit_bytes;
            if !above {
                session.flooded_since_ms = 0;
                continue;
            }
            // Looked at again, also when only messages make it so.
            self.local.flooded |= listens;
            if session.flooded_since_ms == 0 {
                session.flooded_since_ms = now_ms;
            } else if now_ms - session.flooded_since_ms >= patience_ms {
                stats::add(&shared.stats.party(self.party).closed_for_output, 1);
                io.close(*conn);
            }
        }
    }

    /// Whether there is room for a command that needs memory, after evicting what the policy allows.
    pub(super) fn make_room(&mut self, shared: &Shared, now_ms: i64) -> bool {
        let limit = self.maxmemory_bytes;
        let used = shared.used_memory();
        if used <= limit {
            return true;
        }
        if self.collect_debts(shared, now_ms, limit) {
            return true;
        }
        let policy = evict_policy(self.settings.maxmemory_policy);
        // Another may have made room since, and others take it: something is evicted in any case, so that this command has its own.
        let goal_bytes = shared.used_memory().saturating_sub(limit).max(1);
        let freed = self.evict(shared, now_ms, policy, goal_bytes);
        // As in Redis, a command is refused only when nothing could be evicted: what is still too much goes with the next commands.
        freed > 0 || shared.used_memory() <= limit
    }

    /// Frees some of what was deleted or flushed already, and says whether there is room now, or will be: no key has to go then.
    fn collect_debts(&self, shared: &Shared, now_ms: i64, limit: u64) -> bool {
        /// The most that one command waits for, about 1 ms; more than one turn of all shards in most stores.
        const BITES: usize = 512;
        let party = self.party;
        for _ in 0..BITES {
            if !shared.store.owes_memory() {
                return shared.used_memory() <= limit;
            }
            shared.store.bite(now_ms, false, &mut |space| {
                invoke::removed(shared, party, space);
            });
            if shared.used_memory() <= limit {
                return true;
            }
        }
        shared.store.owes_memory()
    }

    /// Evicts about `goal_bytes`, at most 256 KiB, and says how much. Bounded: a command evicts more than it needs itself, so an
    /// excess shrinks command by command instead of in one mass eviction.
    fn evict(&mut self, shared: &Shared, now_ms: i64, policy: EvictPolicy, goal_bytes: u64) -> u64 {
        const GOAL_MAX_BYTES: u64 = 256 * 1024;
        if policy == EvictPolicy::NoEviction {
            return 0;
        }
        let goal_bytes = goal_bytes.min(GOAL_MAX_BYTES);
        let store = &shared.store;
        let volatile = policy.is_volatile();
        // Counted once for all tries: each sum reads every shard's counters.
        self.database_sizes.clear();
        self.database_sizes
            .extend((0..store.databases()).map(|db| match volatile {
                true => store.expires_size(db),
                false => store.dbsize(db),
            }));
        let total = self.database_sizes.iter().sum();
        if total == 0 {
            return 0;
        }
        let shards = store.shards() as u64;
        let mut freed = 0;
        // Shards are chosen by their number of keys at first; should that find nothing (only a few keys expire, say), each has
        // its turn.
        for nth in 0..2 * shards {
            if freed >= goal_bytes || (nth >= shards && freed > 0) {
                break;
            }
            let db = self.random_database(total);
            let random = self.scratch.rng.next_u64();
            let shard = match nth.checked_sub(shards) {
                Some(each) => Some(each as u16),
                None if volatile => store.random_shard_of_expiring(db, random),
                None => store.random_shard(db, random),
            };
            let Some(shard) = shard else { continue };
            let Some(mut space) = store.try_borrow_one(shard) else {
                continue;
            };
            freed += space
                .shard_db(shard, db, now_ms)
                .evict_bite(policy, goal_bytes - freed);
            invoke::removed(shared, self.party, &mut space);
        }
        freed
    }

    /// A database, chosen by its number of keys that may go.
    fn random_database(&mut self, total: u64) -> u16 {
        let mut nth = self.scratch.rng.below(total);
        for (db, &size) in self.database_sizes.iter().enumerate() {
            if nth < size {
                return db as u16;
            }
            nth -= size;
        }
        0
    }
}

/// The store's name for a configured policy. The least recently *modified* variants fall back on recency of use.
fn evict_policy(policy: EvictionPolicy) -> EvictPolicy {
    match policy {
        EvictionPolicy::NoEviction => EvictPolicy::NoEviction,
        EvictionPolicy::AllkeysLru | EvictionPolicy::AllkeysLrm => EvictPolicy::AllkeysLru,
        EvictionPolicy::VolatileLru | EvictionPolicy::VolatileLrm => EvictPolicy::VolatileLru,
        EvictionPolicy::AllkeysLfu => EvictPolicy::AllkeysLfu,
        EvictionPolicy::VolatileLfu => EvictPolicy::VolatileLfu,
        EvictionPolicy::AllkeysRandom => EvictPolicy::AllkeysRandom,
        EvictionPolicy::VolatileRandom => EvictPolicy::VolatileRandom,
        EvictionPolicy::VolatileTtl => EvictPolicy::VolatileTtl,
    }
}
