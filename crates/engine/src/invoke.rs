//! Calls a data command's handler while its shards are borrowed, and hands its effects on before they are given back.

use crate::pubsub;
use crate::registry::{Entry, Runner};
use crate::shared::Shared;
use crate::stats;
use pantala_borrow::{Party, ShardSet};
use pantala_commands::context::Reach;
use pantala_commands::{Ctx, Effects, Error, EventClass, KeyAt, Listening, Modified, Rng, Walk};
use pantala_config::Settings;
use pantala_protocol::{Args, Proto, Reply};
use pantala_store::{Reason, Space, Store};

/// Above this estimate a command runs on a helper thread, so that it delays only those who need its shards.
pub const LONG_COMMAND_US: u64 = 200;

/// For whom a command runs.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// Selected database.
    pub db: u16,
    /// Protocol of the reply.
    pub proto: Proto,
    /// Unix time in ms.
    pub now_ms: i64,
    /// Party of the running thread.
    pub party: usize,
    /// Configuration in force.
    pub settings: &'a Settings,
    /// Uses of keys leave no trace (`CLIENT NO-TOUCH`).
    pub no_touch: bool,
}

/// Buffers that are used again for each command.
pub struct Scratch {
    /// Effects of the command at hand.
    pub fx: Effects,
    /// Pseudo-randomness of this thread.
    pub rng: Rng,
    /// Shards of the command at hand.
    pub set: ShardSet,
    /// Keys of the command at hand.
    pub keys: Vec<KeyAt>,
    /// Argument positions of keys.
    pub positions: Vec<u32>,
}

impl Scratch {
    /// Fresh buffers; `seed` differs from thread to thread.
    pub fn new(seed: u64) -> Self {
        Self {
            fx: Effects::default(),
            rng: Rng::new(seed),
            set: ShardSet::default(),
            keys: Vec::new(),
            positions: Vec::new(),
        }
    }
}

/// Appends the keys of a command, with their hashes, to `keys`.
#[inline]
pub fn keys_of(
    store: &Store,
    entry: &Entry,
    args: Args<'_>,
    positions: &mut Vec<u32>,
    keys: &mut Vec<KeyAt>,
) {
    if let Some(arg) = entry.only_key {
        if let Some(key) = args.get(usize::from(arg)) {
            keys.push(KeyAt {
                arg: u32::from(arg),
                hash: store.hash(key),
            });
        }
        return;
    }
    positions.clear();
    pantala_commands::keys::positions(&entry.spec, args, positions);
    keys.extend(positions.iter().map(|&arg| KeyAt {
        arg,
        hash: store.hash(args.arg(arg as usize)),
    }));
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Called {
    /// The reply is written.
    Done,
    /// An error is written.
    Failed,
    /// Nothing was done: by its estimate it belongs on a helper thread.
    TooLong,
    /// Nothing was done: this shard was busy (walks only).
    Busy(u16),
}

/// Runs a data command whose shards are in `space`, writes its reply to `out` and hands its effects on.
/// With `may_decline` a command that is estimated to be long is not run.
#[expect(
    clippy::too_many_arguments,
    reason = "one call that everything passes through; a struct would be built for each command"
)]
#[inline]
pub fn call<'s>(
    shared: &'s Shared,
    caller: Caller<'_>,
    scratch: &mut Scratch,
    space: &mut Space<'s>,
    entry: &Entry,
    args: Args<'_>,
    keys: &[KeyAt],
    out: &mut Vec<u8>,
    may_decline: bool,
) -> Called {
    let start = out.len();
    space.set_no_touch(caller.no_touch);
    space.set_expiry_mode(shared.expiry_mode(caller.now_ms));
    let listening = listening(shared, space);
    scratch.fx.begin(listening, caller.db);
    let result = match entry.runner {
        Runner::Keys(run) | Runner::All(run) => {
            let mut cx = Ctx {
                store: &shared.store,
                space,
                db_index: caller.db,
                keys,
                now_ms: caller.now_ms,
                reply: Reply::new(out, caller.proto),
                fx: &mut scratch.fx,
                settings: caller.settings,
                rng: &mut scratch.rng,
            };
            if may_decline
                && entry
                    .cost_us
                    .is_some_and(|cost_us| cost_us(&mut cx, args) > LONG_COMMAND_US)
            {
                return Called::TooLong;
            }
            run(&mut cx, args)
        }
        Runner::Walk(run) => run(
            &mut Walk {
                store: &shared.store,
                reach: Reach::Held(space),
                db_index: caller.db,
                now_ms: caller.now_ms,
                reply: Reply::new(out, caller.proto),
                fx: &mut scratch.fx,
                settings: caller.settings,
                rng: &mut scratch.rng,
            },
            args,
        ),
        Runner::Session(_) | Runner::Container => {
            unreachable!("only data commands are called with shards")
        }
    };
    publish(shared, caller.party, &scratch.fx, space);
    settle(shared, caller, result, start, out)
}

/// Runs a walk outside a transaction, shard by shard. `waits`: on a helper thread.
pub fn walk(
    shared: &Shared,
    caller: Caller<'_>,
    scratch: &mut Scratch,
    entry: &Entry,
    args: Args<'_>,
    out: &mut Vec<u8>,
    waits: bool,
) -> Called {
    let Runner::Walk(run) = entry.runner else {
        unreachable!("only walks walk")
    };
    let start = out.len();
    scratch.fx.begin(Listening::empty(), caller.db);
    let result = run(
        &mut Walk {
            store: &shared.store,
            reach: Reach::Each {
                party: waits.then_some(Party::new(caller.party)),
            },
            db_index: caller.db,
            now_ms: caller.now_ms,
            reply: Reply::new(out, caller.proto),
            fx: &mut scratch.fx,
            settings: caller.settings,
            rng: &mut scratch.rng,
        },
        args,
    );
    settle(shared, caller, result, start, out)
}

#[inline]
fn settle(
    shared: &Shared,
    caller: Caller<'_>,
    result: Result<(), Error>,
    start: usize,
    out: &mut Vec<u8>,
) -> Called {
    match result {
        Ok(()) => Called::Done,
        Err(error) => failed(shared, caller, &error, start, out),
    }
}

#[cold]
fn failed(
    shared: &Shared,
    caller: Caller<'_>,
    error: &Error,
    start: usize,
    out: &mut Vec<u8>,
) -> Called {
    out.truncate(start);
    if let Error::Busy(shard) = error {
        return Called::Busy(*shard);
    }
    refuse(shared, caller, error.message(), out);
    Called::Failed
}

/// Writes an error reply and counts it.
pub fn refuse(shared: &Shared, caller: Caller<'_>, message: &str, out: &mut Vec<u8>) {
    stats::add(&shared.stats.party(caller.party).errors, 1);
    shared.count_error(message);
    Reply::new(out, caller.proto).error(message);
}

/// Who will want the effects of a command whose shards are in `space`.
#[inline]
pub fn listening(shared: &Shared, space: &Space<'_>) -> Listening {
    if space.has_watches() || shared.pubsub.events().is_on() {
        Listening::KEYS
    } else {
        Listening::empty()
    }
}

/// Hands the effects of a command to those who listen, while its shards are still held.
#[inline]
pub fn publish(shared: &Shared, party: usize, fx: &Effects, space: &mut Space<'_>) {
    // What had expired went before the command did anything.
    if space.has_removed() {
        removed(shared, party, space);
    }
    if fx.changes() != 0 {
        stats::add(&shared.stats.party(party).changes, fx.changes());
        // A key that was only looked for is not changed.
        let changed = |modified: &&Modified| modified.class != EventClass::KEY_MISS;
        for modified in fx.keys().iter().filter(changed) {
            space.mark(modified.db, &shared.store.key(&modified.key));
        }
    }
    if !fx.listening().is_empty() {
        announce(shared, fx);
    }
}

/// Keys that the store removed by itself, because they had expired or room was needed. Their watchers know already; each is a
/// change as if a client had deleted it.
pub fn removed(shared: &Shared, party: usize, space: &mut Space<'_>) {
    let removed = space.take_removed();
    stats::add(&shared.stats.party(party).changes, removed.len() as u64);
    if shared.pubsub.events().is_on() {
        for key in &removed {
            let (class, event) = match key.reason {
                Reason::Expired => (EventClass::EXPIRED, "expired"),
                Reason::Evicted => (EventClass::EVICTED, "evicted"),
            };
            pubsub::notify(shared, key.db, &key.key, class, event);
        }
    }
}

#[cold]
fn announce(shared: &Shared, fx: &Effects) {
    for modified in fx.keys() {
        pubsub::notify(
            shared,
            modified.db,
            &modified.key,
            modified.class,
            modified.event,
        );
    }
}
