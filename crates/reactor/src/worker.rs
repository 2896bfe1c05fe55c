//! One worker's loop: the same for both drivers. It decides the order of things within a turn, and nothing else.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::bell::Bell;
use crate::conn::{ConnId, flag};
use crate::io::{Io, Next, Service};
use crate::mailbox::{Envelope, Mailbox};
use crate::timers::Purpose;

/// How long a driver may block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Patience {
    None,
    Until(Instant),
    Forever,
}

/// What a driver does for the loop.
pub(crate) trait Backend {
    /// Hands everything noted to the kernel and waits for events. Interruption is not an error.
    fn wait(&mut self, io: &mut Io, patience: Patience) -> io::Result<()>;
    /// Hands out what arrived.
    fn dispatch<S: Service>(&mut self, io: &mut Io, service: &mut S);
    /// Looks at the dirty connections: sends their output, and receives for those that want input.
    fn flush(&mut self, io: &mut Io);
    /// The service has forgotten the connection: ends what is in flight, then calls [`Io::release`], at once or when
    /// the last completion came.
    fn abandon(&mut self, io: &mut Io, slot: u32);
    /// The loop is over; nothing may be in flight when this returns.
    fn finish(&mut self, io: &mut Io);
}

/// Bytes came in for a connection.
pub(crate) fn arrived<S: Service>(io: &mut Io, service: &mut S, id: ConnId, bytes: &[u8]) {
    let Some(conn) = io.table.live(id) else {
        return;
    };
    if conn.has(flag::FLUSHING) {
        // Read and dropped: unread input would turn our close into a reset, which may destroy the last reply.
        return;
    }
    // What was kept earlier comes first.
    if conn.has(flag::PAUSED) || !conn.held.is_empty() {
        io.hold(id.slot(), bytes);
    } else {
        service.received(io, id, bytes);
    }
}

/// The peer will send no more.
pub(crate) fn reached_end<S: Service>(io: &mut Io, service: &mut S, id: ConnId) {
    let Some(conn) = io.table.live(id) else {
        return;
    };
    conn.set(flag::EOF);
    io.mark_dirty(id.slot());
    tell_end(io, service, id);
}

/// Calls `ended` once, when no bytes wait before the end.
fn tell_end<S: Service>(io: &mut Io, service: &mut S, id: ConnId) {
    let Some(conn) = io.table.live(id) else {
        return;
    };
    if conn.has(flag::EOF) && !conn.has(flag::ENDED | flag::FLUSHING) && conn.held.is_empty() {
        conn.set(flag::ENDED);
        service.ended(io, id);
    }
}

/// Everything that one worker is.
pub(crate) struct Worker<S: Service, B: Backend> {
    pub io: Io,
    pub backend: B,
    pub service: S,
    pub mailbox: Arc<[Mailbox<S::Mail>]>,
    pub bell: Arc<Bell>,
    /// Connections that the acceptor has given to this worker and that are not closed yet.
    pub load: Arc<[AtomicUsize]>,
}

impl<S: Service, B: Backend> Worker<S, B> {
    /// Runs until the service or a handle stops it. An error means that the driver is unusable.
    pub fn run(mut self) -> io::Result<()> {
        let mut letters = Vec::new();
        let mut next = Next::Again;
        while !self.io.stopping {
            self.wait(next)?;
            self.io.begin_turn();
            self.backend.dispatch(&mut self.io, &mut self.service);
            self.read_mail(&mut letters);
            self.fire_timers();
            self.deliver_resumed();
            self.tell_drained();
            self.reap();
            next = self.service.turn(&mut self.io);
            self.reap();
            self.backend.flush(&mut self.io);
        }
        self.leave();
        Ok(())
    }

    fn wait(&mut self, next: Next) -> io::Result<()> {
        if next == Next::Again || self.io.has_leftovers() || !self.bell.sleep.may_sleep() {
            return self.backend.wait(&mut self.io, Patience::None);
        }
        let patience = match self.io.timers.next_at() {
            Some(at) => Patience::Until(at),
            None => Patience::Forever,
        };
        let result = self.backend.wait(&mut self.io, patience);
        self.bell.sleep.awake();
        result
    }

    fn read_mail(&mut self, letters: &mut Vec<Envelope<S::Mail>>) {
        if !self.bell.sleep.take_signal() {
            return;
        }
        self.mailbox[self.io.worker()].take(letters);
        for envelope in letters.drain(..) {
            match envelope {
                Envelope::Mail(mail) => self.service.mail(&mut self.io, mail),
                Envelope::Stop => self.io.stop(),
                Envelope::Connection(fd, origin) => match self.io.table.insert(fd) {
                    Some(id) => {
                        self.io.opened(id);
                        self.service.opened(&mut self.io, id, &origin);
                    }
                    None => lighten(&self.load, self.io.worker()),
                },
            }
        }
    }

    fn fire_timers(&mut self) {
        let horizon = self.io.timers.horizon();
        let now = self.io.now();
        while let Some(purpose) = self.io.timers.pop_due(now, horizon) {
            match purpose {
                Purpose::Service(token) => self.service.timer(&mut self.io, token),
                // Set only for connections that are flushing, and moved on with each progress.
                Purpose::Flush(conn) => self.io.close(ConnId::from_u64(conn)),
            }
        }
    }

    /// Gives resumed connections what was kept for them. Those that are resumed meanwhile wait for the next turn.
    fn deliver_resumed(&mut self) {
        if self.io.resumed.is_empty() {
            return;
        }
        let mut resumed = std::mem::take(&mut self.io.resumed);
        for id in resumed.drain(..) {
            let Some(conn) = self.io.table.live(id) else {
                continue;
            };
            conn.clear(flag::RESUMED);
            if conn.has(flag::PAUSED | flag::FLUSHING) {
                continue;
            }
            let held = std::mem::take(&mut conn.held);
            self.service.received(&mut self.io, id, &held);
            self.io.stock.give_back(held);
            if let Some(conn) = self.io.table.tenant(id)
                && conn.is_live()
            {
                self.io.settle(id.slot());
                self.io.mark_dirty(id.slot());
                tell_end(&mut self.io, &mut self.service, id);
            }
        }
        if self.io.resumed.is_empty() {
            self.io.resumed = resumed;
        }
    }

    fn tell_drained(&mut self) {
        if self.io.drained.is_empty() {
            return;
        }
        let mut drained = std::mem::take(&mut self.io.drained);
        for id in drained.drain(..) {
            if self.io.is_open(id) {
                self.service.drained(&mut self.io, id);
            }
        }
        if self.io.drained.is_empty() {
            self.io.drained = drained;
        }
    }

    /// Finishes the connections that are closing, also those that `closed` closes.
    fn reap(&mut self) {
        while let Some(id) = self.io.closing.pop() {
            self.service.closed(&mut self.io, id);
            self.io.forget(id.slot());
            self.backend.abandon(&mut self.io, id.slot());
            lighten(&self.load, self.io.worker());
        }
    }

    /// The last steps: offer the output once more, close every connection, end what is in flight.
    fn leave(&mut self) {
        self.mailbox[self.io.worker()].close();
        for slot in 0..self.io.table.slots() {
            if self.io.table.at(slot).is_live() {
                self.io.send_direct(slot);
                self.io.fail(slot);
            }
        }
        self.reap();
        self.backend.finish(&mut self.io);
    }
}

/// One connection less on a worker.
pub(crate) fn lighten(load: &[AtomicUsize], worker: usize) {
    load[worker].fetch_sub(1, Ordering::AcqRel);
}
