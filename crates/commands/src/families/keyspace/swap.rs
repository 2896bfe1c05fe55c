//! `SWAPDB`.

use crate::families::generic::shared::{GENERIC, existing_db, int};
use crate::families::string::shared::WRITE_FAST;
use crate::spec::{Acl, Command, Group, Run, Spec};
use crate::{Ctx, Done, Error};
use pantala_protocol::Args;

/// `SWAPDB`
pub const SWAPDB: Command = Command {
    spec: Spec {
        name: "swapdb",
        summary: "Exchanges two databases.",
        since: "4.0.0",
        group: Group::Server,
        complexity: "O(N) where N is the number of watched keys in both databases.",
        arity: 3,
        flags: WRITE_FAST,
        acl: Acl::KEYSPACE.union(Acl::DANGEROUS),
        syntax: "index1 index2",
        ..GENERIC
    },
    run: Run::All(swapdb),
    cost_us: None,
    subcommands: &[],
};

fn swapdb(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let first = int(args.arg(1)).map_err(|_| Error::text("ERR invalid first DB index"))?;
    let second = int(args.arg(2)).map_err(|_| Error::text("ERR invalid second DB index"))?;
    let first = existing_db(cx.store, first)?;
    let second = existing_db(cx.store, second)?;
    cx.space.swap_databases(first, second, cx.now_ms);
    cx.fx.verbatim();
    cx.fx.add_changes(1);
    cx.reply.ok();
    Ok(())
}
