//! `RANDOMKEY`.

use super::walk;
use crate::families::generic::shared::GENERIC;
use crate::families::string::shared::READ;
use crate::spec::{Command, Spec};
use crate::{Done, Error, Walk};
use pantala_protocol::Args;
use pantala_store::{Entry, Position};

/// Draws before the keyspace is searched: they fail where a shard is busy or holds almost only expired keys.
const DRAWS: usize = 16;
/// Entries that are looked at in one piece of that search.
const SEARCH_BUDGET: usize = 64;

/// `RANDOMKEY`
pub const RANDOMKEY: Command = Command {
    // Short; it need not go to a helper thread.
    cost_us: Some(|_, _| 0),
    ..walk(
        Spec {
            name: "randomkey",
            summary: "Answers a random key.",
            arity: 1,
            flags: READ,
            tips: &["request_policy:all_shards", "nondeterministic_output"],
            ..GENERIC
        },
        randomkey,
    )
};

fn randomkey(walk: &mut Walk<'_, '_>, _: Args<'_>) -> Done {
    match draw(walk)? {
        Some(key) => walk.reply.bulk(&key),
        None => walk.reply.null(),
    }
    Ok(())
}

/// Shards are drawn in proportion to the number of their keys, so every key is equally likely.
fn draw(walk: &mut Walk<'_, '_>) -> Result<Option<Box<[u8]>>, Error> {
    let mut busy = None;
    for _ in 0..DRAWS {
        let Some(shard) = walk.store.random_shard(walk.db_index, walk.rng.next_u64()) else {
            return Ok(None);
        };
        match walk.shard(shard, |part| part.random().map(|entry| entry.key().into())) {
            Ok(Some(key)) => return Ok(Some(key)),
            Ok(None) => {}
            Err(error) => busy = Some(error),
        }
    }
    match busy {
        Some(error) => Err(error),
        None => search(walk),
    }
}

/// The first key that has not expired, from a random shard on: only where almost all have.
fn search(walk: &mut Walk<'_, '_>) -> Result<Option<Box<[u8]>>, Error> {
    let shards = walk.store.shards() as u64;
    let first = walk.rng.below(shards);
    for shard in (first..shards).chain(0..first) {
        let mut next = Some(Position::START);
        while let Some(from) = next {
            let mut found: Option<Box<[u8]>> = None;
            next = walk.shard(shard as u16, |part| {
                part.scan(from, SEARCH_BUDGET, &mut |entry: Entry<'_>| {
                    found.get_or_insert_with(|| entry.key().into());
                })
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
    }
    Ok(None)
}
