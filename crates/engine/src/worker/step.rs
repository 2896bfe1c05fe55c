//! Decides about one command: refuse it, queue it, run it here, hand it to a helper thread, or set the session aside.

use super::batch::{Batch, Item, Named};
use super::input::Tally;
use super::texts::{unknown_command, unknown_subcommand, wrong_arity};
use super::{Core, clock};
use crate::helpers::Job;
use crate::invoke::{self, Called};
use crate::registry::{Entry, Runner};
use crate::session::{ReplyMode, Session, State};
use crate::shared::Shared;
use crate::stats;
use crate::turn::{Next, Turn};
use crate::{families, transaction};
use pantala_borrow::{Parked, Party};
use pantala_commands::{Flags, KeyAt};
use pantala_protocol::{Args, Reply};
use pantala_reactor::{ConnId, Io};
use pantala_store::Space;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What became of a command.
pub(super) enum Step {
    /// Its reply is written.
    Done,
    /// Its reply is written and is the connection's last.
    Close,
    /// Nothing was done; the session waits in this state and the command runs again later.
    Wait(State),
    /// It runs elsewhere, or waits; its reply will come by mail, and until then the session is in this state.
    Away(State),
}

/// What became of a command on the short way.
pub(super) enum Short {
    /// Its reply is written.
    Done,
    /// Nothing was done: it must go the long way.
    NotHere,
    /// Nothing was done: one of its shards is busy, and this worker will be woken.
    Aside,
}

/// Attempts to lock one busy shard before the session is set aside: about as long as a short command takes.
const SPINS: u32 = 64;

impl Core {
    #[expect(
        clippy::too_many_arguments,
        reason = "the pieces of a worker that a command may touch, borrowed apart"
    )]
    #[inline]
    pub(super) fn step(
        &mut self,
        shared: &Arc<Shared>,
        io: &mut Io,
        conn: ConnId,
        session: &mut Session,
        batch: &Batch,
        item: &Item,
        input: &[u8],
        tally: &mut Tally,
    ) -> Step {
        let args = batch.args(item, input);
        let entry = match item.named {
            Named::Keys(id) | Named::Command(id) => shared.registry.entry(id),
            Named::Unknown => {
                return self.refuse(shared, io, conn, session, None, &unknown_command(args));
            }
            Named::UnknownSubcommand(id) => {
                let container = shared.registry.entry(id);
                return self.refuse(
                    shared,
                    io,
                    conn,
                    session,
                    Some(container),
                    &unknown_subcommand(container, args),
                );
            }
        };
        if let Err(text) = self.admit(shared, io, session, entry, args) {
            return match text {
                Some(text) if entry.spec.name == "exec" && entry.parent.is_none() => {
                    self.abort_exec(shared, io, conn, session, entry, &text)
                }
                Some(text) => self.refuse(shared, io, conn, session, Some(entry), &text),
                None => Step::Wait(State::Paused),
            };
        }
        session.card.last_command.store(entry.id, Relaxed);
        if session.queue.is_some() && !transaction::runs_inside_multi(&shared.registry, entry) {
            return self.enqueue(shared, io, conn, session, entry, args);
        }
        let step = self.run(
            shared,
            io,
            conn,
            session,
            entry,
            args,
            batch.keys(item),
            tally,
        );
        // Afterwards, as Redis does: a command that was set aside is shown once, when it has run.
        if shared.clients.monitors() != 0 && !matches!(step, Step::Wait(_)) {
            families::monitor::feed(shared, session, entry, args);
        }
        step
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the pieces of a worker that a command may touch, borrowed apart"
    )]
    fn run(
        &mut self,
        shared: &Arc<Shared>,
        io: &mut Io,
        conn: ConnId,
        session: &mut Session,
        entry: &Entry,
        args: Args<'_>,
        keys: &[KeyAt],
        tally: &mut Tally,
    ) -> Step {
        match entry.runner {
            Runner::Keys(_) => self.run_keys(shared, io, conn, session, entry, args, keys, tally),
            Runner::All(_) => self.away(shared, conn, session, entry, args, &[]),
            Runner::Walk(_) => self.run_walk(shared, io, conn, session, entry, args, tally),
            Runner::Session(run) => {
                self.run_session(shared, io, conn, session, entry, run, args, tally)
            }
            Runner::Container => {
                self.refuse(shared, io, conn, session, Some(entry), &wrong_arity(entry))
            }
        }
    }

    /// Whether commands of this session can go the short way at the moment: nothing has to be asked about them but their keys.
    pub(super) fn is_plain(&self, shared: &Shared, session: &Session, now_ms: i64) -> bool {
        session.authenticated
            && !session.monitor
            && session.queue.is_none()
            && !session.only_subscribes()
            && session.reply_mode == ReplyMode::On
            && self.maxmemory_bytes == 0
            && shared.clients.monitors() == 0
            && shared.pause.holds(true, now_ms).is_none()
            && !self.times_each()
    }

    /// The short way: a command on keys of a session that [`is_plain`](Self::is_plain).
    #[expect(
        clippy::too_many_arguments,
        reason = "the pieces of a worker that a command may touch, borrowed apart"
    )]
    #[inline]
    pub(super) fn short_step(
        &mut self,
        shared: &Shared,
        session: &mut Session,
        batch: &Batch,
        item: &Item,
        input: &[u8],
        now_ms: i64,
        out: &mut Vec<u8>,
        tally: &mut Tally,
    ) -> Short {
        let Named::Keys(id) = item.named else {
            return Short::NotHere;
        };
        let entry = shared.registry.entry(id);
        if entry.cost_us.is_some() {
            return Short::NotHere;
        }
        let keys = batch.keys(item);
        let at_once = match keys {
            [key] => shared.store.try_borrow_one(shared.store.shard_of(key.hash)),
            _ => None,
        };
        let mut space = match at_once {
            Some(space) => space,
            None => match self.borrow(shared, session, keys) {
                Some(space) => space,
                None => return Short::Aside,
            },
        };
        let caller = Self::caller(&self.settings, self.party, session, now_ms);
        let args = batch.args(item, input);
        let scratch = &mut self.scratch;
        let called = invoke::call(
            shared, caller, scratch, &mut space, entry, args, keys, out, false,
        );
        drop(space);
        if called == Called::Failed {
            stats::add(&shared.stats.party(self.party).command(id).failed, 1);
        }
        tally.note(id);
        Short::Done
    }

    /// Writes an error reply; inside `MULTI` the transaction is spoilt.
    fn refuse(
        &mut self,
        shared: &Shared,
        io: &mut Io,
        conn: ConnId,
        session: &mut Session,
        entry: Option<&Entry>,
        text: &str,
    ) -> Step {
        if let Some(queue) = &mut session.queue {
            queue.refused = true;
        }
        let party = shared.stats.party(self.party);
        if let Some(entry) = entry {
            stats::add(&party.command(entry.id).rejected, 1);
        }
        let caller = Self::caller(&self.settings, self.party, session, io.unix_ms());
        invoke::refuse(shared, caller, text, io.out(conn));
        Step::Done
    }

    /// An `EXEC` that may not run takes its transaction with it.
    fn abort_exec(
        &mut self,
        shared: &Shared,
        io: &mut Io,
        conn: ConnId,
        session: &mut Session,
        entry: &Entry,
        text: &str,
    ) -> Step {
        transaction::discard(shared, session, None);
        // The inner text keeps its code, unless it is the general one.
        let inner = text.strip_prefix("ERR ").unwrap_or(text);
        let text = format!("EXECABORT Transaction discarded because of: {inner}");
        self.refuse(shared, io, conn, session, Some(entry), &text)
    }

    fn enqueue(
        &mut self,
        shared: &Shared,
        io: &mut Io,
        conn: ConnId,
        session: &mut Session,
        entry: &Entry,
        args: Args<'_>,
    ) -> Step {
        let keys = &mut self.scratch.keys;
        keys.clear();
        if matches!(entry.runner, Runner::Keys(_)) {
            invoke::keys_of(
                &shared.store,
                entry,
                args,
                &mut self.scratch.positions,
                keys,
            );
        }
        if let Some(queue) = &mut session.queue {
            queue.push(entry, args, keys);
            if queue.bytes as u64 > self.settings.client_query_buffer_limit_bytes {
                stats::add(&shared.stats.party(self.party).closed_for_query, 1);
                return Step::Close;
            }
            session
                .card
                .queued
                .store(queue.commands.len() as i64, Relaxed);
            session.card.queue_bytes.store(queue.bytes, Relaxed);
        }
        Reply::new(io.out(conn), session.proto).simple("QUEUED");
        Step::Done
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the pieces of a worker that a command may touch, borrowed apart"
    )]
    #[inline]
    fn run_keys(
        &mut self,
        shared: &Arc<Shared>,
        io: &mut Io,
        conn: ConnId,
        session: &mut Session,
        entry: &Entry,
        args: Args<'_>,
        keys: &[KeyAt],
        tally: &mut Tally,
    ) -> Step {
        let Some(mut space) = self.borrow(shared, session, keys) else {
            return Step::Wait(State::Aside);
        };
        let caller = Self::caller(&self.settings, self.party, session, io.unix_ms());
        let timed = self.times_each().then(clock::now);
        let called = invoke::call(
            shared,
            caller,
            &mut self.scratch,
            &mut space,
            entry,
            args,
            keys,
            io.out(conn),
            entry.cost_us.is_some(),
        );
        drop(space);
        match called {
            Called::TooLong => return self.away(shared, conn, session, entry, args, keys),
            Called::Failed => {
                stats::add(&shared.stats.party(self.party).command(entry.id).failed, 1)
            }
            Called::Done | Called::Busy(_) => {}
        }
        match timed {
            None => tally.note(entry.id),
            Some(started) => self.note_time(shared, io, session, entry, args, started, tally),
        }
        Step::Done
    }

    /// Borrows the shards of `keys`. `None`: one is busy, and this worker will be woken when it is given back.
    fn borrow<'s>(
        &mut self,
        shared: &'s Shared,
        session: &mut Session,
        keys: &[KeyAt],
    ) -> Option<Space<'s>> {
        if let [key] = keys
            && let Some(space) = shared.store.try_borrow_one(shared.store.shard_of(key.hash))
        {
            return Some(space);
        }
        let set = &mut self.scratch.set;
        set.clear();
        for key in keys {
            set.push(shared.store.shard_of(key.hash));
        }
        set.seal();
        loop {
            match shared
                .store
                .try_borrow(&self.scratch.set, &mut session.attempt)
            {
                Ok(space) => return Some(space),
                Err(shard) => {
                    if self.park(shared, shard) {
                        return None;
                    }
                }
            }
        }
    }

    /// Waits for a busy shard: the session is to be set aside. `false`: the shard is free by now, so the command can be tried again at
    /// once.
    pub(super) fn park(&mut self, shared: &Shared, shard: u16) -> bool {
        match shared.store.park(shard, Party::new(self.party)) {
            Parked::FreeNow => return false,
            Parked::Registered => {}
            // Kept for another for a moment: no wake will come.
            Parked::Reserved => self.retry_soon = true,
        }
        stats::add(&shared.stats.party(self.party).set_aside, 1);
        true
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the pieces of a worker that a command may touch, borrowed apart"
    )]
    fn run_walk(
        &mut self,
        shared: &Arc<Shared>,
        io: &mut Io,
        conn: ConnId,
        session: &mut Session,
        entry: &Entry,
        args: Args<'_>,
        tally: &mut Tally,
    ) -> Step {
        // What goes over the whole keyspace takes long when there are many keys.
        const NANOS_PER_KEY: u64 = 40;
        let whole = entry.cost_us.is_none() && !entry.spec.flags.contains(Flags::FAST);
        if whole
            && shared.store.dbsize(session.db) * NANOS_PER_KEY / 1_000 > invoke::LONG_COMMAND_US
        {
            return self.away(shared, conn, session, entry, args, &[]);
        }
        let started = clock::now();
        for _ in 0..SPINS {
            let caller = Self::caller(&self.settings, self.party, session, io.unix_ms());
            match invoke::walk(
                shared,
                caller,
                &mut self.scratch,
                entry,
                args,
                io.out(conn),
                false,
            ) {
                Called::Busy(shard) => {
                    if self.park(shared, shard) {
                        return Step::Wait(State::Aside);
                    }
                }
                called => {
                    if called == Called::Failed {
                        stats::add(&shared.stats.party(self.party).command(entry.id).failed, 1);
                    }
                    self.note_time(shared, io, session, entry, args, started, tally);
                    return Step::Done;
                }
            }
        }
        // Shards are busy again and again: a helper thread can wait for them.
        self.away(shared, conn, session, entry, args, &[])
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the pieces of a worker that a command may touch, borrowed apart"
    )]
    fn run_session(
        &mut self,
        shared: &Arc<Shared>,
        io: &mut Io,
        conn: ConnId,
        session: &mut Session,
        entry: &Entry,
        run: crate::turn::SessionHandler,
        args: Args<'_>,
        tally: &mut Tally,
    ) -> Step {
        let started = clock::now();
        let settings = Arc::clone(&self.settings);
        let mut turn = Turn {
            shared,
            now_ms: io.unix_ms(),
            io,
            conn,
            session,
            scratch: &mut self.scratch,
            local: &mut self.local,
            settings: &settings,
            held: None,
            party: self.party,
        };
        let next = match run(&mut turn, args) {
            Ok(next) => next,
            Err(error) => {
                let caller = Self::caller(&settings, self.party, session, io.unix_ms());
                invoke::refuse(shared, caller, error.message(), io.out(conn));
                stats::add(&shared.stats.party(self.party).command(entry.id).failed, 1);
                Next::Continue
            }
        };
        if session.monitor && !self.monitors.contains(&conn) {
            self.monitors.push(conn);
        }
        session.card.db.store(session.db, Relaxed);
        // What this command changed holds for the next one.
        self.notice_settings(shared);
        match next {
            Next::Continue | Next::Close => {
                self.note_time(shared, io, session, entry, args, started, tally);
                if next == Next::Close {
                    Step::Close
                } else {
                    Step::Done
                }
            }
            Next::Aside(shard) => {
                if !self.park(shared, shard) {
                    self.retry_soon = true;
                }
                Step::Wait(State::Aside)
            }
            Next::Again => {
                self.retry_soon = true;
                Step::Wait(State::Aside)
            }
            Next::Away => {
                self.note_time(shared, io, session, entry, args, started, tally);
                Step::Away(State::Blocked)
            }
        }
    }

    /// Hands a long command to a helper thread.
    fn away(
        &mut self,
        shared: &Shared,
        conn: ConnId,
        session: &Session,
        entry: &Entry,
        args: Args<'_>,
        keys: &[KeyAt],
    ) -> Step {
        stats::add(&shared.stats.party(self.party).helped, 1);
        shared.helpers.submit(Job {
            worker: self.party,
            conn,
            db: session.db,
            proto: session.proto,
            command: entry.id,
            args: args.into(),
            keys: keys.to_vec(),
            no_touch: session.no_touch,
            client: Arc::clone(&session.card),
        });
        Step::Away(State::Away)
    }
}
