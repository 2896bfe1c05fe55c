//! Takes a connection's bytes and executes the commands in them, keeping what cannot be executed yet.

use super::batch::{BATCH_MAX, Parsing};
use super::step::{Short, Step};
use super::{Core, clock};
use crate::invoke::Caller;
use crate::session::{ReplyMode, Session, State};
use crate::shared::Shared;
use crate::stats;
use pantala_borrow::Party;
use pantala_protocol::Limits;
use pantala_protocol::Parser;
use pantala_reactor::{ConnId, Io};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A waiting session whose backlog is larger is not read from until it has been executed.
const BACKLOG_HIGH_BYTES: usize = 1024 * 1024;
/// An emptied backlog buffer above this size is given back to the system.
const BACKLOG_KEPT_BYTES: usize = 16 * 1024;
/// How long one connection's backlog may keep a worker from the others.
const TURN_SHARE: Duration = Duration::from_millis(2);

impl Core {
    /// Executes what arrived, or keeps it when the session waits.
    pub(super) fn feed(
        &mut self,
        shared: &Arc<Shared>,
        io: &mut Io,
        conn: ConnId,
        session: &mut Session,
        bytes: &[u8],
    ) {
        if session.state == State::Ready && session.backlog() == 0 {
            let used = self.execute(shared, io, conn, session, bytes);
            self.keep(shared, io, conn, session, &bytes[used..]);
            return;
        }
        self.keep(shared, io, conn, session, bytes);
        if session.state == State::Ready {
            self.carry_on(shared, io, conn, session);
        }
    }

    /// Adds bytes to the backlog, within the client's limits.
    fn keep(
        &mut self,
        shared: &Shared,
        io: &mut Io,
        conn: ConnId,
        session: &mut Session,
        bytes: &[u8],
    ) {
        if session.state == State::Closing || bytes.is_empty() {
            return;
        }
        if session.pending_at == session.pending.len() {
            session.pending.clear();
            session.pending_at = 0;
        }
        if !io.is_open(conn) {
            return;
        }
        let missing = match &session.memcached {
            None => session.parser.needs(),
            Some(client) => client.needs(),
        };
        if let Some(missing) = missing {
            // Announced by the peer: room is made for a part at most, the rest as it really comes.
            const TRUSTED_BYTES: usize = 1024 * 1024;
            session
                .pending
                .reserve(missing.min(TRUSTED_BYTES).max(bytes.len()));
        }
        session.pending.extend_from_slice(bytes);
        if session.backlog() as u64 > self.settings.client_query_buffer_limit_bytes {
            stats::add(&shared.stats.party(self.party).closed_for_query, 1);
            session.state = State::Closing;
            io.close(conn);
        } else if session.state != State::Ready && session.backlog() > BACKLOG_HIGH_BYTES {
            io.pause(conn);
        }
    }

    /// Executes the backlog of a session that waited.
    pub(super) fn carry_on(
        &mut self,
        shared: &Arc<Shared>,
        io: &mut Io,
        conn: ConnId,
        session: &mut Session,
    ) {
        session.state = State::Ready;
        let input = std::mem::take(&mut session.pending);
        let from = std::mem::take(&mut session.pending_at);
        let used = from + self.execute(shared, io, conn, session, &input[from..]);
        if used == input.len() && input.capacity() > BACKLOG_KEPT_BYTES {
            session.pending = Vec::new();
        } else {
            session.pending = input;
            session.pending_at = used;
            // What is done with is dropped only when it is the larger part, so each byte is moved a bounded number of times.
            if used > session.pending.len() / 2 {
                session.pending.drain(..used);
                session.pending_at = 0;
            }
        }
        if session.state == State::Ready && io.is_paused(conn) {
            io.resume(conn);
        }
    }

    /// Executes the commands in `input` and says how many bytes are done with.
    fn execute(
        &mut self,
        shared: &Arc<Shared>,
        io: &mut Io,
        conn: ConnId,
        session: &mut Session,
        input: &[u8],
    ) -> usize {
        if let Some(used) = self.execute_memcached(shared, io, conn, session, input) {
            return used;
        }
        let mut at = 0;
        let mut batch = std::mem::take(&mut self.batch);
        let began = self.last_end.max(io.now());
        let used = loop {
            // Before authentication the limits may change with the next command.
            let limits = Limits {
                unauthenticated: !session.authenticated,
                ..self.limits
            };
            let limit = if session.authenticated { BATCH_MAX } else { 1 };
            let parsing = batch.fill(
                shared,
                session,
                &mut self.scratch.positions,
                &limits,
                input,
                &mut at,
                limit,
            );
            if !batch.items.is_empty() {
                batch.prefetch(shared, session.db);
                if let Some(unexecuted) = self.run_batch(shared, io, conn, session, &batch, input) {
                    if unexecuted != at {
                        // What the parser knew of a command further on is void: it will see the bytes again.
                        session.parser = Parser::new();
                    }
                    break unexecuted;
                }
            }
            match parsing {
                Parsing::More => {
                    if self.last_end.saturating_duration_since(began) > TURN_SHARE {
                        // The others of this worker have their turn before it goes on.
                        session.state = State::Aside;
                        self.retry_soon = true;
                        break at;
                    }
                }
                Parsing::Exhausted => break at,
                Parsing::Broken(error) => {
                    error.write_reply(io.out(conn));
                    session.state = State::Closing;
                    break input.len();
                }
            }
        };
        self.batch = batch;
        used
    }

    /// Runs the commands of a batch in order. `Some(offset)`: execution stopped, and the bytes from there on are not done with.
    fn run_batch(
        &mut self,
        shared: &Arc<Shared>,
        io: &mut Io,
        conn: ConnId,
        session: &mut Session,
        batch: &super::Batch,
        input: &[u8],
    ) -> Option<usize> {
        if shared.pubsub.is_crowded() {
            // Subscribers' workers do not keep up: whoever may publish waits, so that what is under way stays bounded.
            self.retry_soon = true;
            session.state = State::Aside;
            return batch.items.first().map(|item| item.start);
        }
        let Ok(_inside) = shared.store.gate().enter(Party::new(self.party)) else {
            session.state = State::Aside;
            return batch.items.first().map(|item| item.start);
        };
        let mut stopped = None;
        let mut tally = Tally::default();
        let started = self.last_end.max(io.now());
        let mut nth = 0;
        while let Some(item) = batch.items.get(nth) {
            if self.is_plain(shared, session, io.unix_ms()) {
                let ran = self.run_plain(
                    shared,
                    io,
                    conn,
                    session,
                    &batch.items[nth..],
                    batch,
                    input,
                    &mut tally,
                );
                nth += ran;
                if session.state != State::Ready {
                    stopped = Some(batch.items.get(nth).map_or(batch.end, |next| next.start));
                    break;
                }
                if ran != 0 {
                    continue;
                }
            }
            nth += 1;
            let before = io.out_len(conn);
            let step = self.step(shared, io, conn, session, batch, item, input, &mut tally);
            // What has not run yet keeps its claim to silence until it has.
            if session.reply_mode != ReplyMode::On && matches!(step, Step::Done | Step::Close) {
                silence(io, conn, session, before);
            }
            self.flush_to_self(io, conn);
            let after = batch.items.get(nth).map_or(batch.end, |next| next.start);
            stopped = stop_after(session, &step, item.start, after, input.len());
            if stopped.is_some() {
                break;
            }
            if io.out_len(conn) > self.flood_bytes && self.is_flooded(shared, io, conn, session) {
                stopped = Some(after);
                break;
            }
        }
        self.settle_batch(shared, io, session, &tally, started);
        self.wake_mailed(shared);
        stopped
    }

    /// Runs commands on the short way, as many as can go it, and says how many. Stops with the session's state changed when it must wait.
    #[expect(
        clippy::too_many_arguments,
        reason = "the pieces of a worker that a command may touch, borrowed apart"
    )]
    fn run_plain(
        &mut self,
        shared: &Arc<Shared>,
        io: &mut Io,
        conn: ConnId,
        session: &mut Session,
        items: &[super::batch::Item],
        batch: &super::Batch,
        input: &[u8],
        tally: &mut Tally,
    ) -> usize {
        let now_ms = io.unix_ms();
        let waiting = io.out_len(conn);
        // Taken out once for all: each look-up of the connection costs as much as a short command's bookkeeping.
        let mut out = io.take_out(conn);
        let full = (out.len() + self.flood_bytes).saturating_sub(waiting);
        let mut ran = 0;
        for item in items {
            match self.short_step(shared, session, batch, item, input, now_ms, &mut out, tally) {
                Short::Done => ran += 1,
                Short::NotHere => break,
                Short::Aside => {
                    session.state = State::Aside;
                    break;
                }
            }
            if out.len() > full {
                break;
            }
        }
        io.put_out(conn, out);
        if ran != 0
            && let super::batch::Named::Keys(id) = items[ran - 1].named
        {
            session.card.last_command.store(id, Relaxed);
        }
        if io.out_len(conn) > self.flood_bytes && session.state == State::Ready {
            // A changed state tells that the client does not read its replies.
            self.is_flooded(shared, io, conn, session);
        }
        ran
    }

    /// Whether a client does not read its replies: it gets no more of them for now, or none at all beyond its limit.
    pub(super) fn is_flooded(
        &mut self,
        shared: &Shared,
        io: &mut Io,
        conn: ConnId,
        session: &mut Session,
    ) -> bool {
        let hard = session.output_limit(&self.settings).hard_limit_bytes;
        // As in Redis, replies count before anything of them is offered to the socket.
        if hard != 0 && io.out_len(conn) as u64 > hard {
            stats::add(&shared.stats.party(self.party).closed_for_output, 1);
            session.state = State::Closing;
            io.close(conn);
            return true;
        }
        io.send_now(conn);
        let above = io.out_len(conn) > Io::OUT_HIGH;
        if above {
            session.state = State::Full;
            io.pause(conn);
        }
        above
    }

    /// One clock reading for the whole batch: each command is counted with its share.
    fn settle_batch(
        &mut self,
        shared: &Shared,
        io: &Io,
        session: &Session,
        tally: &Tally,
        started: std::time::Instant,
    ) {
        if tally.executed == 0 {
            return;
        }
        let end = clock::now();
        self.last_end = end;
        let party = shared.stats.party(self.party);
        let shared_out = (end.saturating_duration_since(started).as_nanos() as u64)
            .saturating_sub(tally.timed_nanos);
        let share = shared_out / tally.untimed().max(1);
        for &(id, calls) in &tally.runs[..tally.run_count] {
            party.command(id).executed(calls, share);
        }
        stats::add(&party.executed, tally.executed);
        session.card.commands.store(
            session.card.commands.load(Relaxed) + tally.executed,
            Relaxed,
        );
        session.card.active_ms.store(io.unix_ms(), Relaxed);
    }

    /// The reply of a command that ran on a helper thread.
    pub(super) fn helped(
        &mut self,
        shared: &Arc<Shared>,
        io: &mut Io,
        conn: ConnId,
        session: &mut Session,
        reply: &[u8],
    ) {
        let before = io.out_len(conn);
        io.out(conn).extend_from_slice(reply);
        if session.reply_mode != ReplyMode::On {
            silence(io, conn, session, before);
        }
        session.card.active_ms.store(io.unix_ms(), Relaxed);
        if !matches!(session.state, State::Away | State::Blocked) {
            return;
        }
        if io.out_len(conn) > self.flood_bytes && self.is_flooded(shared, io, conn, session) {
            return;
        }
        self.carry_on(shared, io, conn, session);
    }

    /// For whom commands of this session run.
    pub(super) fn caller<'a>(
        settings: &'a pantala_config::Settings,
        party: usize,
        session: &Session,
        now_ms: i64,
    ) -> Caller<'a> {
        Caller {
            db: session.db,
            proto: session.proto,
            now_ms,
            party,
            settings,
            no_touch: session.no_touch,
        }
    }
}

/// Puts a session into the state that its command leads to. `Some(offset)`: it does not go on, and the bytes from there on are not done
/// with; the command itself lies at `start..after` of an input of `len` bytes.
fn stop_after(
    session: &mut Session,
    step: &Step,
    start: usize,
    after: usize,
    len: usize,
) -> Option<usize> {
    let (state, stopped) = match *step {
        Step::Done => return None,
        Step::Close => (State::Closing, len),
        Step::Wait(state) => (state, start),
        // The command itself is on its way; what follows it waits.
        Step::Away(state) => (state, after),
    };
    session.state = state;
    Some(stopped)
}

/// Takes back the reply of a command whose client wants none (`CLIENT REPLY OFF|SKIP`).
fn silence(io: &mut Io, conn: ConnId, session: &mut Session, before: usize) {
    // Nothing is left of the output when the command closed its connection.
    let surplus = io.out_len(conn).saturating_sub(before);
    let out = io.out(conn);
    out.truncate(out.len() - surplus.min(out.len()));
    session.reply_mode = match session.reply_mode {
        ReplyMode::SkipNow => ReplyMode::SkipNext,
        ReplyMode::SkipNext => ReplyMode::On,
        mode => mode,
    };
}

/// Commands executed in a batch, to be counted when its end is known.
pub(super) struct Tally {
    /// Runs of the same command that were not timed one by one.
    runs: [(crate::registry::CommandId, u64); BATCH_MAX],
    run_count: usize,
    executed: u64,
    timed: u64,
    timed_nanos: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            runs: [(0, 0); BATCH_MAX],
            run_count: 0,
            executed: 0,
            timed: 0,
            timed_nanos: 0,
        }
    }
}

impl Tally {
    /// A command whose time is its share of the batch.
    #[inline]
    pub(super) fn note(&mut self, id: crate::registry::CommandId) {
        self.executed += 1;
        if let Some((last, calls)) = self.runs[..self.run_count].last_mut()
            && *last == id
        {
            *calls += 1;
        } else {
            // At most one run per item, and a batch has at most `BATCH_MAX` items.
            self.runs[self.run_count] = (id, 1);
            self.run_count += 1;
        }
    }

    /// A command that was timed by itself.
    pub(super) fn note_timed(&mut self, nanos: u64) {
        self.executed += 1;
        self.timed += 1;
        self.timed_nanos += nanos;
    }

    fn untimed(&self) -> u64 {
        self.executed - self.timed
    }
}
