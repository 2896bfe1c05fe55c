//! What a service sees of its worker: [`Io`]. Its methods change only the worker's tables and note what the driver
//! has to do when the turn ends; none of them calls the service or waits (only [`Io::send_now`] makes a system call).

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::buffers::Stock;
use crate::conn::{Conn, ConnId, Origin, Table, flag};
use crate::pool::Driver;
use crate::sys;
use crate::timers::{Purpose, Timers};
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};

/// What runs on a worker. One value per worker thread, made and dropped on that thread.
///
/// No callback is called while another one runs. A panic in a callback aborts the process (see the crate's text).
pub trait Service: Sized {
    /// What other threads may send to this worker.
    type Mail: Send + 'static;

    /// A connection was given to this worker. Its first bytes come later.
    fn opened(&mut self, io: &mut Io, conn: ConnId, origin: &Origin);

    /// Bytes arrived. They are valid only during the call. Never called for a paused or closing connection.
    /// After [`Io::resume`], what was kept meanwhile comes in one piece, which may be large.
    fn received(&mut self, io: &mut Io, conn: ConnId, bytes: &[u8]);

    /// Bytes that will be handed to [`received`](Self::received) in this turn, shown before any of them is, when several
    /// connections have some. Only a hint, so that a service can bring near what it will need; nothing may be done with
    /// them. Not every driver can tell.
    fn coming(&mut self, _conn: ConnId, _bytes: &[u8]) {}

    /// Everything was shown by [`coming`](Self::coming).
    fn come(&mut self) {}

    /// The peer will send no more; all its bytes have been delivered. The service decides when to close. May be
    /// called for a paused connection if no bytes wait behind the pause, so that a service can notice that the peer
    /// of a blocked connection went away.
    fn ended(&mut self, io: &mut Io, conn: ConnId);

    /// The connection is gone: error, reset, or closed by us. The last call for this id, made exactly once for each
    /// id that was opened.
    fn closed(&mut self, io: &mut Io, conn: ConnId);

    /// Output that had been above [`Io::OUT_HIGH`] bytes has been sent entirely.
    fn drained(&mut self, io: &mut Io, conn: ConnId);

    /// Mail from [`Remote::send`](crate::Remote::send).
    fn mail(&mut self, io: &mut Io, mail: Self::Mail);

    /// A timer of [`Io::set_timer`] is due.
    fn timer(&mut self, io: &mut Io, token: u64);

    /// Once per turn after all events, before output is sent. Says whether the worker may block.
    fn turn(&mut self, io: &mut Io) -> Next;
}

/// What a worker does after its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Look for events without blocking and start the next turn at once.
    Again,
    /// Block until something arrives or the next timer is due.
    Wait,
}

/// One worker's connections, buffers, timers and clock, as its service sees them. Every method ignores stale ids.
pub struct Io {
    pub(crate) table: Table,
    /// Slots that the driver must look at when the turn ends.
    pub(crate) dirty: Vec<u32>,
    /// Connections whose `closed` is to be called.
    pub(crate) closing: Vec<ConnId>,
    /// Connections whose kept input is to be delivered.
    pub(crate) resumed: Vec<ConnId>,
    /// Connections whose `drained` is to be called.
    pub(crate) drained: Vec<ConnId>,
    pub(crate) stock: Stock,
    pub(crate) timers: Timers,
    /// Where replies to connections that are gone end up.
    scratch: Vec<u8>,
    /// Capacity of the buffers that connections hold.
    conn_buffer_bytes: usize,
    /// Memory of the driver's receive buffers.
    pub(crate) driver_buffer_bytes: usize,
    /// Live connections.
    live: usize,
    worker: usize,
    driver: Driver,
    now: Instant,
    unix: Duration,
    turns: u64,
    pub(crate) stopping: bool,
}

impl Io {
    /// Output beyond this many bytes is "much": when it has been sent, [`Service::drained`] is called. A service
    /// that sees [`out_len`](Self::out_len) above it should [`pause`](Self::pause) the connection until then.
    pub const OUT_HIGH: usize = 256 * 1024;

    /// Input kept for a paused connection beyond this many bytes makes the driver stop receiving for it. What is
    /// already on its way still comes: at most the worker's receive buffers (4 MiB).
    pub const HELD_LIMIT_BYTES: usize = 64 * 1024;

    /// A connection that is closing but has output left is given up after so long without progress.
    pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

    pub(crate) fn new(worker: usize, driver: Driver) -> Self {
        let mut io = Self {
            table: Table::default(),
            dirty: Vec::new(),
            closing: Vec::new(),
            resumed: Vec::new(),
            drained: Vec::new(),
            stock: Stock::default(),
            timers: Timers::default(),
            scratch: Vec::new(),
            conn_buffer_bytes: 0,
            driver_buffer_bytes: 0,
            live: 0,
            worker,
            driver,
            now: Instant::now(),
            unix: Duration::ZERO,
            turns: 0,
            stopping: false,
        };
        io.refresh_clock();
        io
    }

    /// The buffer to append replies to. It is sent when the turn ends, with everything else that was appended in
    /// this turn. It may hold earlier bytes: append only. For a stale id or a connection that was closed it is a
    /// sink whose content is thrown away.
    pub fn out(&mut self, conn: ConnId) -> &mut Vec<u8> {
        let Some(found) = self.table.live(conn) else {
            const SCRATCH_KEPT_BYTES: usize = 64 * 1024;
            self.scratch.clear();
            self.scratch.shrink_to(SCRATCH_KEPT_BYTES);
            return &mut self.scratch;
        };
        if !found.has(flag::DIRTY) {
            found.set(flag::DIRTY);
            self.dirty.push(conn.slot());
        }
        if found.pending.capacity() == 0 {
            found.pending = self.stock.lend();
        }
        &mut found.pending
    }

    /// Takes the buffer of [`out`](Self::out) for a while, to write many replies without looking the connection up for
    /// each. It must be returned by [`put_out`](Self::put_out) before the callback ends, else its bytes are lost.
    pub fn take_out(&mut self, conn: ConnId) -> Vec<u8> {
        std::mem::take(self.out(conn))
    }

    /// Returns the buffer of [`take_out`](Self::take_out).
    pub fn put_out(&mut self, conn: ConnId, out: Vec<u8>) {
        if let Some(found) = self.table.live(conn) {
            debug_assert!(found.pending.is_empty(), "taken and written at once");
            found.pending = out;
        }
    }

    /// Bytes of output that the kernel has not accepted yet (queued and in flight).
    pub fn out_len(&self, conn: ConnId) -> usize {
        self.table.live_ref(conn).map_or(0, Conn::out_len)
    }

    /// The connection is there and was not closed.
    pub fn is_open(&self, conn: ConnId) -> bool {
        self.table.live_ref(conn).is_some()
    }

    /// Closes now; output that was not sent is dropped. [`Service::closed`] is called later in this turn.
    pub fn close(&mut self, conn: ConnId) {
        if let Some(found) = self.table.live(conn) {
            found.set(flag::CLOSING);
            self.closing.push(conn);
        }
    }

    /// Takes no more input, sends what is queued, then closes. Given up after [`FLUSH_TIMEOUT`](Self::FLUSH_TIMEOUT)
    /// without progress. More output may still be appended before the turn ends.
    pub fn close_after_flush(&mut self, conn: ConnId) {
        let at = self.now + Self::FLUSH_TIMEOUT;
        if let Some(found) = self.table.live(conn)
            && !found.has(flag::FLUSHING)
        {
            found.set(flag::FLUSHING);
            let held = std::mem::take(&mut found.held);
            self.stock.give_back(held);
            self.timers.set(at, Purpose::flush(conn));
            self.mark_dirty(conn.slot());
        }
    }

    /// Stops [`Service::received`] for this connection. What arrives meanwhile is kept, up to
    /// [`HELD_LIMIT_BYTES`](Self::HELD_LIMIT_BYTES); beyond that the driver stops receiving, and the peer notices.
    ///
    /// Meant for short times and for back-pressure: once the driver has stopped receiving, it notices only by a
    /// failing send that the peer went away. For a client that blocks long, go on receiving and keep the bytes.
    pub fn pause(&mut self, conn: ConnId) {
        if let Some(found) = self.table.live(conn) {
            found.set(flag::PAUSED);
        }
    }

    /// Ends a [`pause`](Self::pause). What was kept is delivered in this turn if it is still to come to that (before
    /// [`Service::turn`]), else in the next, which then follows at once.
    pub fn resume(&mut self, conn: ConnId) {
        let Some(found) = self.table.live(conn) else {
            return;
        };
        if !found.has(flag::PAUSED) {
            return;
        }
        found.clear(flag::PAUSED);
        if !found.held.is_empty() && !found.has(flag::RESUMED) {
            found.set(flag::RESUMED);
            self.resumed.push(conn);
        }
        if !found.has(flag::DIRTY) {
            found.set(flag::DIRTY);
            self.dirty.push(conn.slot());
        }
    }

    /// The connection is paused.
    pub fn is_paused(&self, conn: ConnId) -> bool {
        self.table
            .live_ref(conn)
            .is_some_and(|found| found.has(flag::PAUSED))
    }

    /// Gives the kernel what it takes of the queued output at once, without waiting. Best effort: nothing happens
    /// while an earlier send is in flight.
    pub fn send_now(&mut self, conn: ConnId) {
        if self.table.live(conn).is_some() {
            self.mark_dirty(conn.slot());
            self.send_direct(conn.slot());
        }
    }

    /// Calls [`Service::timer`] with `token` at the given time, or soon after (a millisecond or two). An earlier
    /// timer with the same token is replaced.
    pub fn set_timer(&mut self, at: Instant, token: u64) {
        self.timers.set(at, Purpose::Service(token));
    }

    /// Forgets a timer. Unknown tokens are ignored.
    pub fn cancel_timer(&mut self, token: u64) {
        self.timers.cancel(Purpose::Service(token));
    }

    /// This worker's number, from 0.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// The driver that this worker uses.
    pub fn driver(&self) -> Driver {
        self.driver
    }

    /// Connections that are open on this worker.
    pub fn connections(&self) -> usize {
        self.live
    }

    /// Memory held by this worker's buffers, in bytes: output, kept input, stock, and receive buffers (io_uring: at
    /// least 512 KiB, of which only the pages that were ever filled are resident).
    pub fn buffer_bytes(&self) -> usize {
        self.conn_buffer_bytes
            + self.stock.bytes()
            + self.scratch.capacity()
            + self.driver_buffer_bytes
    }

    /// Memory held by this worker's tables of connections, in bytes.
    pub fn table_bytes(&self) -> usize {
        self.table.table_bytes()
    }

    /// The time when this turn began, or when [`refresh_clock`](Self::refresh_clock) was last called.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The same moment in milliseconds since 1970.
    pub fn unix_ms(&self) -> i64 {
        self.unix.as_millis() as i64
    }

    /// The same moment in microseconds since 1970.
    pub fn unix_us(&self) -> i64 {
        self.unix.as_micros() as i64
    }

    /// Reads the clock again.
    pub fn refresh_clock(&mut self) {
        self.now = Instant::now();
        // Before 1970 the clock is certainly wrong; it then reads as 1970.
        self.unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
    }

    /// Turns since the worker started. An idle worker's number stands still.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Leaves the loop after this turn: output is offered to the kernel once more, every connection is closed (with
    /// [`Service::closed`]), and the service is dropped.
    pub fn stop(&mut self) {
        self.stopping = true;
    }
}

/// What the worker's loop and the drivers need.
impl Io {
    pub(crate) fn begin_turn(&mut self) {
        self.turns += 1;
        self.refresh_clock();
    }

    /// Work is left that must not wait for an event.
    pub(crate) fn has_leftovers(&self) -> bool {
        !(self.closing.is_empty()
            && self.resumed.is_empty()
            && self.drained.is_empty()
            && self.dirty.is_empty())
    }

    pub(crate) fn opened(&mut self, conn: ConnId) {
        self.live += 1;
        self.mark_dirty(conn.slot());
    }

    /// Lets the driver look at a slot when the turn ends.
    pub(crate) fn mark_dirty(&mut self, slot: u32) {
        let conn = self.table.at(slot);
        if !conn.has(flag::DIRTY) {
            conn.set(flag::DIRTY);
            self.dirty.push(slot);
        }
    }

    /// The connection failed (reset, broken pipe): it closes without being asked.
    pub(crate) fn fail(&mut self, slot: u32) {
        let id = self.table.id(slot);
        self.close(id);
    }

    /// After `closed` was called: frees what the connection holds, except a buffer that the kernel still reads.
    pub(crate) fn forget(&mut self, slot: u32) {
        self.live -= 1;
        let id = self.table.id(slot);
        self.timers.cancel(Purpose::flush(id));
        let conn = self.table.at(slot);
        conn.clear(flag::OPEN);
        let pending = std::mem::take(&mut conn.pending);
        let held = std::mem::take(&mut conn.held);
        self.stock.give_back(pending);
        self.stock.give_back(held);
        self.settle(slot);
    }

    /// The driver has nothing in flight for the slot any more: the descriptor closes.
    pub(crate) fn release(&mut self, slot: u32) {
        let conn = self.table.remove(slot);
        self.conn_buffer_bytes -= conn.accounted_bytes;
        self.stock.give_back(conn.inflight);
    }

    /// Brings the count of buffer memory up to date for one connection.
    pub(crate) fn settle(&mut self, slot: u32) {
        let conn = self.table.at(slot);
        let bytes = conn.pending.capacity() + conn.inflight.capacity() + conn.held.capacity();
        self.conn_buffer_bytes = self.conn_buffer_bytes + bytes - conn.accounted_bytes;
        conn.accounted_bytes = bytes;
    }

    /// Keeps input that a paused connection cannot take now.
    pub(crate) fn hold(&mut self, slot: u32, bytes: &[u8]) {
        let conn = self.table.at(slot);
        if conn.held.capacity() == 0 {
            conn.held = self.stock.lend();
        }
        conn.held.extend_from_slice(bytes);
        self.settle(slot);
        // The driver decides then whether to go on receiving.
        self.mark_dirty(slot);
    }

    /// Makes `inflight` hold the next bytes to send. False: there are none. Must not be called while the kernel
    /// reads `inflight`.
    pub(crate) fn load_output(&mut self, slot: u32) -> bool {
        let conn = self.table.at(slot);
        debug_assert!(!conn.has(flag::SEND_ACTIVE));
        conn.note_output();
        if conn.sent < conn.inflight.len() {
            return true;
        }
        let done = std::mem::take(&mut conn.inflight);
        conn.sent = 0;
        conn.inflight = std::mem::take(&mut conn.pending);
        let more = !conn.inflight.is_empty();
        self.stock.give_back(done);
        if !more {
            let unused = std::mem::take(&mut self.table.at(slot).inflight);
            self.stock.give_back(unused);
        }
        self.settle(slot);
        more
    }

    /// The kernel took `count` bytes of `inflight`.
    pub(crate) fn took(&mut self, slot: u32, count: usize) {
        let deadline = self.now + Self::FLUSH_TIMEOUT;
        let conn = self.table.at(slot);
        // The service may have seen this much in this very turn and count on `drained`.
        conn.note_output();
        conn.sent = (conn.sent + count).min(conn.inflight.len());
        if conn.has(flag::FLUSHING) && conn.out_len() > 0 {
            let id = self.table.id(slot);
            self.timers.set(deadline, Purpose::flush(id));
        }
    }

    /// All output is sent: what follows from it.
    pub(crate) fn output_empty(&mut self, slot: u32) {
        let id = self.table.id(slot);
        let conn = self.table.at(slot);
        if !conn.is_live() {
            return;
        }
        if conn.has(flag::FLUSHING) {
            if let Some(fd) = conn.fd.as_ref() {
                discard_input(fd.as_fd());
            }
            conn.set(flag::CLOSING);
            self.closing.push(id);
        } else if conn.has(flag::ABOVE_HIGH) {
            conn.clear(flag::ABOVE_HIGH);
            self.drained.push(id);
        }
    }

    /// Sends with plain system calls until all is gone or the socket is full. Does nothing while a send is in
    /// flight. A failed connection is marked for closing.
    pub(crate) fn send_direct(&mut self, slot: u32) {
        if self.table.at(slot).has(flag::SEND_ACTIVE) {
            return;
        }
        while self.load_output(slot) {
            let conn = self.table.at(slot);
            let Some(fd) = conn.fd.as_ref() else { return };
            match sys::send(fd.as_fd(), &conn.inflight[conn.sent..]) {
                Ok(count) => self.took(slot, count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.fail(slot),
            }
        }
        self.output_empty(slot);
    }
}

/// Reads what has arrived and throws it away: a socket that is closed with unread bytes answers with a reset, and a reset makes
/// the peer lose what it has not read yet of our last words. Bounded, since a peer that goes on sending is its own fault.
fn discard_input(fd: BorrowedFd<'_>) {
    const PIECES_MAX: usize = 64;
    let mut piece = [0; 4096];
    for _ in 0..PIECES_MAX {
        if !matches!(sys::recv(fd, &mut piece), Ok(count) if count > 0) {
            return;
        }
    }
}
