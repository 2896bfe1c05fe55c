//! Runs what arrived on a memcached connection. The protocol and its semantics are in [`crate::memcached`]; here is only what the
//! worker lends and what it does when the session stops.

use super::Core;
use crate::memcached::{Context, Stop};
use crate::session::{Session, State};
use crate::shared::Shared;
use pantala_reactor::{ConnId, Io};
use std::sync::Arc;

impl Core {
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
