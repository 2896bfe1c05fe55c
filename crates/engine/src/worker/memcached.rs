//! Runs what arrived on a memcached connection. The protocol and its semantics are in [`crate::memcached`]; here is only what the
//! worker lends and what it does when the session stops.

use super::Core;
use crate::memcached::{CloseReason, Context, Stop, WATCHED_MAX_BYTES};
use crate::session::{Session, State};
use crate::shared::Shared;
use pantala_reactor::{ConnId, Io};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Core {
    /// Hands a watcher the lines that wait for it.
    pub(super) fn show_watched(&mut self, shared: &Shared, io: &mut Io, conn: ConnId) {
        if let Some(session) = self.sessions.get(conn) {
            let room = io.out_len(conn) <= WATCHED_MAX_BYTES;
            let lines = shared.memcached.watchers.take(&session.card, room);
            io.out(conn).extend_from_slice(&lines);
        }
    }

    /// Tells watchers that a memcached client is gone.
    pub(super) fn tell_closed(&self, shared: &Shared, io: &Io, session: &Session) {
        let card = &session.card;
        let idle_ms = io.unix_ms() - card.active_ms.load(Relaxed);
        let timeout_ms = i64::from(self.settings.timeout_seconds) * 1_000;
        let reason = if session.ended || session.state == State::Closing {
            CloseReason::Normal
        } else if timeout_ms != 0 && idle_ms > timeout_ms {
            CloseReason::Idle
        } else {
            CloseReason::Error
        };
        shared.memcached.watchers.closed(shared, card, reason);
    }

    /// Executes the requests in `input` and says how many bytes are done with. `None`: the connection does not speak memcached.
    pub(super) fn execute_memcached(
        &mut self,
        shared: &Arc<Shared>,
        io: &mut Io,
        conn: ConnId,
        session: &mut Session,
        input: &[u8],
    ) -> Option<usize> {
        let mut client = session.memcached.take()?;
        let mut buffers = std::mem::take(&mut self.memcached_buffers);
        let settings = Arc::clone(&self.settings);
        let (party, now_ms) = (self.party, io.unix_ms());
        let mut used = 0;
        session.state = State::Ready;
        loop {
            let mut out = io.take_out(conn);
            let (done, stop) = client.execute(
                Context {
                    shared,
                    settings: &settings,
                    party,
                    now_ms,
                    buffers: &mut buffers,
                    out: &mut out,
                    may_grow: &mut || self.maxmemory_bytes == 0 || self.make_room(shared, now_ms),
                },
                &input[used..],
            );
            io.put_out(conn, out);
            used += done;
            match stop {
                Stop::NeedMore => {}
                Stop::Close => {
                    session.state = State::Closing;
                    used = input.len();
                }
                Stop::Busy(shard) => {
                    if !self.park(shared, shard) {
                        continue;
                    }
                    session.state = State::Aside;
                }
                Stop::Again => session.state = State::Aside,
                Stop::Paused => session.state = State::Paused,
                Stop::Full => {
                    if !self.is_flooded(shared, io, conn, session) {
                        continue;
                    }
                }
            }
            break;
        }
        self.memcached_buffers = buffers;
        session.memcached = Some(client);
        Some(used)
    }
}
