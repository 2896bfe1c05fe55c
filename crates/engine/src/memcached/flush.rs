//! `flush_all`, now or later: empties database 0.
//!
//! Memcached flushes by the second and leaves the dead items where they are until somebody comes by; here they go at once. A flush
//! that was planned for later happens as soon as a memcached request or a worker's background work comes by after its time: what was
//! stored before that moment is gone.

use super::batch::Buffers;
use super::held::{DB, Env};
use crate::shared::Shared;
use pantala_borrow::{Attempt, ShardId, ShardSet};

/// Empties database 0. `Err`: this shard was busy, and nothing was done. The caller is inside the gate. With the time of a flush
/// that was `planned`, only if nobody has done that one yet: what was stored since would go a second time.
pub(super) fn flush(
    shared: &Shared,
    party: usize,
    buffers: &mut Buffers,
    attempt: &mut Attempt,
    planned: Option<i64>,
) -> Result<(), ShardId> {
    let store = &shared.store;
    let mut space = store.try_borrow(&ShardSet::all(store.shards()), attempt)?;
    if planned.is_some_and(|at_ms| !shared.memcached.take_flush(at_ms)) {
        return Ok(());
    }
    let keys = store.dbsize(DB);
    buffers.begin(shared, &space);
    space.flush(Some(DB));
    buffers.fx.command(&[b"FLUSHDB"]);
    // Also what finds nothing to remove is passed on: a replica may hold more.
    buffers.fx.add_changes(keys.max(1));
    buffers.publish(shared, party, &mut space);
    Ok(())
}

/// Does the flush that was planned, if its time has come. The caller is inside the gate.
#[inline]
pub(super) fn flush_if_due(
    env: Env<'_>,
    buffers: &mut Buffers,
    attempt: &mut Attempt,
) -> Result<(), ShardId> {
    match env.shared.memcached.due_flush(env.now_ms) {
        None => Ok(()),
        planned => flush(env.shared, env.party, buffers, attempt, planned),
    }
}

/// For a worker's background work, inside the gate: does the flush that was planned, if its time has come. `false`: shards are
/// busy; try again later.
pub fn bite(shared: &Shared, party: usize, now_ms: i64, buffers: &mut Buffers) -> bool {
    let planned = shared.memcached.due_flush(now_ms);
    planned.is_none() || flush(shared, party, buffers, &mut Attempt::new(), planned).is_ok()
}
