//! `MULTI EXEC DISCARD WATCH UNWATCH`.

use crate::invoke::{self, Caller};
use crate::registry::{Entry, Runner, SessionCommand};
use crate::stats;
use crate::transaction::{Queue, Watched, discard as discard_queue, unwatch};
use crate::turn::{Next, Turn};
use crate::worker::clock;
use pantala_commands::Error;
use pantala_commands::spec::{Acl, Flags, Group, KeyFlags, KeySpec, Spec};
use pantala_protocol::Args;
use pantala_store::Space;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const TRANSACTION: Spec = Spec {
    group: Group::Transactions,
    acl: Acl::TRANSACTION,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::ALLOW_BUSY),
    ..Spec::BASE
};

/// The family's commands.
pub const COMMANDS: &[SessionCommand] = &[
    SessionCommand::new(
        Spec {
            name: "multi",
            summary: "Starts a transaction.",
            since: "1.2.0",
            ..TRANSACTION
        },
        multi,
    ),
    SessionCommand::new(
        Spec {
            name: "exec",
            summary: "Executes all commands in a transaction.",
            since: "1.2.0",
            complexity: "Depends on commands in the transaction",
            flags: Flags::NOSCRIPT
                .union(Flags::LOADING)
                .union(Flags::STALE)
                .union(Flags::SKIP_SLOWLOG),
            ..TRANSACTION
        },
        exec,
    ),
    SessionCommand::new(
        Spec {
            name: "discard",
            summary: "Discards a transaction.",
            since: "2.0.0",
            complexity: "O(N), when N is the number of queued commands",
            ..TRANSACTION
        },
        discard,
    ),
    SessionCommand::new(
        Spec {
            name: "watch",
            arity: -2,
            summary: "Monitors changes to keys to determine the execution of a transaction.",
            since: "2.2.0",
            complexity: "O(1) for every key.",
            keys: &[KeySpec::all_from(1, 1, KeyFlags::RO)],
            syntax: "key [key ...]",
            ..TRANSACTION
        },
        watch,
    ),
    SessionCommand::new(
        Spec {
            name: "unwatch",
            summary: "Forgets about watched keys of a transaction.",
            since: "2.2.0",
            ..TRANSACTION
        },
        unwatch_all,
    ),
];

fn multi(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    if turn.session.queue.is_some() {
        return Err(Error::text("ERR MULTI calls can not be nested"));
    }
    turn.session.queue = Some(Box::default());
    turn.session.card.queued.store(0, Relaxed);
    turn.ok()
}

/// Leaves the transaction: queue and watched keys are forgotten.
pub fn leave(turn: &mut Turn<'_, '_>) {
    discard_queue(turn.shared, turn.session, turn.held.as_deref_mut());
}

fn discard(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    if turn.session.queue.is_none() {
        return Err(Error::text("ERR DISCARD without MULTI"));
    }
    leave(turn);
    turn.ok()
}

fn watch(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    if turn.session.queue.is_some() {
        return Err(Error::text("ERR WATCH inside MULTI is not allowed"));
    }
    let (shared, db, now_ms) = (turn.shared, turn.session.db, turn.now_ms);
    let mut watching = turn.session.watching.take().unwrap_or_default();
    for bytes in args.iter().skip(1) {
        if watching
            .keys
            .iter()
            .any(|watched| watched.db == db && *watched.key == *bytes)
        {
            continue;
        }
        let key = shared.store.key(bytes);
        let Some(mut space) = shared.store.try_borrow_one(shared.store.shard_of(key.hash)) else {
            // What is watched already stays watched; the command runs again from the start and skips it.
            turn.session.watching = Some(watching);
            return Ok(Next::Aside(shared.store.shard_of(key.hash)));
        };
        space.watch(db, &key, &watching.flag, now_ms);
        watching.keys.push(Watched {
            db,
            key: bytes.into(),
            hash: key.hash,
        });
    }
    turn.session
        .card
        .watched
        .store(watching.keys.len() as u32, Relaxed);
    turn.session.watching = Some(watching);
    turn.ok()
}

fn unwatch_all(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    unwatch(turn.shared, turn.session, turn.held.as_deref_mut());
    turn.ok()
}

fn exec(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let Some(queue) = turn.session.queue.take() else {
        return Err(Error::text("ERR EXEC without MULTI"));
    };
    if queue.refused {
        leave(turn);
        return Err(Error::text(
            "EXECABORT Transaction discarded because of previous errors.",
        ));
    }
    let shared = turn.shared;
    let mut set = std::mem::take(&mut turn.scratch.set);
    queue.shards(shared, turn.session.watching.as_deref(), &mut set);
    let borrowed = shared.store.try_borrow(&set, &mut turn.session.attempt);
    turn.scratch.set = set;
    let mut space = match borrowed {
        Ok(space) => space,
        Err(shard) => {
            turn.session.queue = Some(queue);
            return Ok(Next::Aside(shard));
        }
    };
    let clean = watched_are_clean(turn, &mut space);
    unwatch(shared, turn.session, Some(&mut space));
    turn.session.card.queued.store(-1, Relaxed);
    turn.session.card.queue_bytes.store(0, Relaxed);
    if !clean {
        turn.reply().null_array();
        return Ok(Next::Continue);
    }
    turn.reply().array(queue.commands.len());
    run_queue(turn, &queue, &mut space)
}

/// Whether no watched key was modified; keys that have expired since count as modified.
fn watched_are_clean(turn: &mut Turn<'_, '_>, space: &mut Space<'_>) -> bool {
    let Some(watching) = turn.session.watching.as_deref() else {
        return true;
    };
    let expired = watching.keys.iter().any(|watched| {
        space.watched_expired(watched.db, &watched.key(), &watching.flag, turn.now_ms)
    });
    !expired && !watching.is_dirty()
}

fn run_queue<'s>(
    turn: &mut Turn<'_, 's>,
    queue: &Queue,
    space: &mut Space<'s>,
) -> Result<Next, Error> {
    let shared = turn.shared;
    let mut last = Next::Continue;
    let mut started = clock::now();
    for queued in &queue.commands {
        close_if_flooded(turn);
        let entry = shared.registry.entry(queued.command);
        let args = queued.args.as_args();
        if shared.clients.monitors() != 0 {
            super::monitor::feed(shared, turn.session, entry, args);
        }
        let caller = Caller {
            db: turn.session.db,
            proto: turn.session.proto,
            now_ms: turn.now_ms,
            party: turn.party,
            settings: turn.settings,
            no_touch: turn.session.no_touch,
        };
        let stats = shared.stats.party(turn.party).command(entry.id);
        if let Runner::Session(run) = entry.runner {
            let mut inner = Turn {
                shared,
                io: turn.io,
                conn: turn.conn,
                session: turn.session,
                scratch: turn.scratch,
                local: turn.local,
                settings: turn.settings,
                held: Some(space),
                now_ms: turn.now_ms,
                party: turn.party,
            };
            match run(&mut inner, args) {
                Ok(Next::Close) => last = Next::Close,
                Ok(_) => {}
                Err(error) => {
                    invoke::refuse(shared, caller, error.message(), turn.io.out(turn.conn));
                    stats::add(&stats.failed, 1);
                }
            }
        } else {
            let keys = &queue.keys[queued.keys.start as usize..queued.keys.end as usize];
            let called = invoke::call(
                shared,
                caller,
                turn.scratch,
                space,
                entry,
                args,
                keys,
                turn.io.out(turn.conn),
                false,
            );
            if called == invoke::Called::Failed {
                stats::add(&stats.failed, 1);
            }
        }
        // One reading is the end of this command and the start of the next.
        let ended = clock::now();
        note_time(turn, entry, args, ended.saturating_duration_since(started));
        started = ended;
    }
    Ok(last)
}

/// The transaction runs to its end, but when nobody will read its replies they are not gathered any more.
fn close_if_flooded(turn: &mut Turn<'_, '_>) {
    let limit_bytes = turn.session.output_limit(turn.settings).hard_limit_bytes;
    if limit_bytes != 0 && turn.io.out_len(turn.conn) as u64 > limit_bytes {
        stats::add(&turn.shared.stats.party(turn.party).closed_for_output, 1);
        turn.io.close(turn.conn);
    }
}

/// The slow log and the statistics tell of the commands of a transaction, not of `EXEC`.
fn note_time(turn: &Turn<'_, '_>, entry: &Entry, args: Args<'_>, took: Duration) {
    let shared = turn.shared;
    let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    shared
        .stats
        .party(turn.party)
        .command(entry.id)
        .executed(1, nanos);
    if !entry.spec.flags.contains(Flags::SKIP_SLOWLOG) {
        let card = &turn.session.card;
        let micros = nanos / 1_000;
        shared
            .slowlog
            .note(turn.settings, card, entry, args, turn.now_ms, micros);
    }
    let event = if entry.spec.flags.contains(Flags::FAST) {
        "fast-command"
    } else {
        "command"
    };
    shared
        .latency
        .note(turn.settings, event, turn.now_ms, nanos / 1_000_000);
}
