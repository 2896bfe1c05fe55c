//! `KEYS`: all keys that match a pattern.

use super::walk;
use crate::context::Reach;
use crate::families::generic::shared::GENERIC;
use crate::families::string::shared::READ;
use crate::spec::{Acl, Command, Spec};
use crate::{Done, Error, Walk};
use pantala_config::glob_match;
use pantala_protocol::{Args, Reply};
use pantala_store::borrow::ShardSet;
use pantala_store::{Entry, Position};

/// Entries that are looked at before the shard may be given to others.
const BUDGET: usize = 4096;

/// `KEYS`
pub const KEYS: Command = walk(
    Spec {
        name: "keys",
        summary: "Lists the keys that match a pattern.",
        complexity: "O(N) where N is the number of keys in the database; O(1) for a pattern without wildcards.",
        arity: 2,
        flags: READ,
        acl: Acl::KEYSPACE.union(Acl::DANGEROUS),
        tips: &["request_policy:all_shards", "nondeterministic_output_order"],
        syntax: "pattern",
        ..GENERIC
    },
    keys,
);

fn keys(walk: &mut Walk<'_, '_>, args: Args<'_>) -> Done {
    let pattern = args.arg(1);
    if !pattern
        .iter()
        .any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\'))
    {
        return one(walk, pattern);
    }
    let all = pattern == b"*";
    let mut found = 0;
    let mut listed = Vec::new();
    let mut list = Reply::new(&mut listed, walk.reply.proto());
    for shard in 0..walk.store.shards() as u16 {
        // Most shards of a small database are empty; to see that needs no borrow.
        if walk.store.shard_size(shard, walk.db_index) == 0 {
            continue;
        }
        let mut next = Some(Position::START);
        while let Some(from) = next {
            next = walk.shard(shard, |part| {
                part.scan(from, BUDGET, &mut |entry: Entry<'_>| {
                    if all || glob_match(pattern, entry.key(), false) {
                        list.bulk(entry.key());
                        found += 1;
                    }
                })
            })?;
        }
    }
    walk.reply.array(found);
    walk.reply.raw(&listed);
    Ok(())
}

/// A pattern that only its own text matches.
fn one(walk: &mut Walk<'_, '_>, name: &[u8]) -> Done {
    let key = walk.store.key(name);
    let shard = walk.store.shard_of(key.hash);
    let (db, now_ms) = (walk.db_index, walk.now_ms);
    let is_there = match &mut walk.reach {
        Reach::Held(space) => space.db(db, now_ms).view(&key).is_some(),
        Reach::Each { party: None } => {
            let mut space = walk.store.try_borrow_one(shard).ok_or(Error::Busy(shard))?;
            space.db(db, now_ms).view(&key).is_some()
        }
        Reach::Each { party: Some(party) } => {
            let (borrow, _inside) = walk
                .store
                .gate()
                .enter_and_borrow_blocking(&ShardSet::one(shard), *party)
                .into_parts();
            walk.store.space(borrow).db(db, now_ms).view(&key).is_some()
        }
    };
    walk.reply.array(usize::from(is_there));
    if is_there {
        walk.reply.bulk(name);
    }
    Ok(())
}
