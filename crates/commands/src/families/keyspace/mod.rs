//! Commands about the keyspace as a whole: going through it, counting, emptying, exchanging databases.
//!
//! What goes through the keyspace holds one shard at a time and gives it back before it takes the next.

mod flush;
mod keys;
mod random;
mod scan;
mod swap;

use crate::spec::{Command, Run, Spec, WalkHandler};
use crate::{Done, Walk};
use pantala_protocol::Args;

/// All of them.
pub const COMMANDS: &[Command] = &[
    keys::KEYS,
    scan::SCAN,
    random::RANDOMKEY,
    DBSIZE,
    flush::FLUSHDB,
    flush::FLUSHALL,
    swap::SWAPDB,
];

/// A command that goes from shard to shard.
const fn walk(spec: Spec, run: WalkHandler) -> Command {
    Command {
        spec,
        run: Run::Walk(run),
        cost_us: None,
        subcommands: &[],
    }
}

/// `DBSIZE`
const DBSIZE: Command = walk(
    Spec {
        name: "dbsize",
        summary: "Counts the keys of the selected database.",
        group: crate::Group::Server,
        arity: 1,
        flags: super::string::shared::READ_FAST,
        tips: &["request_policy:all_shards", "response_policy:agg_sum"],
        ..super::generic::shared::GENERIC
    },
    dbsize,
);

fn dbsize(walk: &mut Walk<'_, '_>, _: Args<'_>) -> Done {
    let keys = walk.store.dbsize(walk.db_index);
    walk.reply.integer(i64::try_from(keys).unwrap_or(i64::MAX));
    Ok(())
}
