//! `FLUSHDB` and `FLUSHALL`.
//!
//! The tables are taken away at once and their memory is freed piece by piece afterwards, because the whole keyspace is held
//! here; only who asks for `SYNC` waits for the memory.

use crate::families::generic::shared::GENERIC;
use crate::spec::{Acl, Command, Flags, Group, Run, Spec};
use crate::{Ctx, Done, Error};
use pantala_protocol::Args;

const FLUSHES: Spec = Spec {
    group: Group::Server,
    arity: -1,
    flags: Flags::WRITE,
    acl: Acl::KEYSPACE.union(Acl::DANGEROUS),
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    syntax: "[ASYNC|SYNC]",
    ..GENERIC
};

/// `FLUSHDB`
pub const FLUSHDB: Command = Command {
    spec: Spec {
        name: "flushdb",
        summary: "Removes all keys of the selected database.",
        complexity: "O(1); the memory is freed afterwards unless SYNC is asked for.",
        ..FLUSHES
    },
    run: Run::All(flushdb),
    cost_us: None,
    subcommands: &[],
};

/// `FLUSHALL`
pub const FLUSHALL: Command = Command {
    spec: Spec {
        name: "flushall",
        summary: "Removes all keys of all databases.",
        complexity: "O(N) where N is the number of databases; the memory is freed afterwards unless SYNC is asked for.",
        ..FLUSHES
    },
    run: Run::All(flushall),
    cost_us: None,
    subcommands: &[],
};

fn flushdb(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let keys = cx.store.dbsize(cx.db_index);
    flush(cx, args, Some(cx.db_index), keys)
}

fn flushall(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let keys = (0..cx.store.databases())
        .map(|db| cx.store.dbsize(db))
        .sum();
    flush(cx, args, None, keys)
}

fn flush(cx: &mut Ctx<'_, '_>, args: Args<'_>, db: Option<u16>, keys: u64) -> Done {
    if args.len() > 2 || (args.len() == 2 && !args.is(1, "ASYNC") && !args.is(1, "SYNC")) {
        return Err(Error::Syntax);
    }
    cx.space.flush(db);
    if args.is(1, "SYNC") {
        cx.space.free_now();
    }
    cx.fx.verbatim();
    // Also what finds nothing to remove is passed on: a replica may hold more.
    cx.fx.add_changes(keys.max(1));
    cx.reply.ok();
    Ok(())
}
