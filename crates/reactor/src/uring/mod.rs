//! The io_uring driver: one ring per worker, multishot receives into provided buffers, one send per connection and
//! turn, one system call per turn. While a send is in flight the kernel reads the connection's `inflight` buffer:
//! that buffer must not be touched, and its slot must not be freed, before the completion is seen.
#![allow(unsafe_code, reason = "submission of operations that refer to memory")]

mod buffer_ring;
mod probe;

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue};

use crate::bell::Bell;
use crate::conn::{Conn, ConnId, flag};
use crate::io::{Io, Service};
use crate::worker::{Backend, Patience, arrived, reached_end};
use buffer_ring::{BufferRing, GROUP};
pub(crate) use probe::probe;

const SUBMISSIONS: u32 = 512;
const COMPLETIONS: u32 = 4096;
/// Completions handled per turn; the rest waits for the next.
const BATCH: usize = 1024;
/// One send's length; the kernel cuts off at 2 GiB, and the length field has 32 bits.
const SEND_MAX_BYTES: usize = 1 << 30;
/// When so few connections have output, plain calls are cheaper than submissions with their completions.
const DIRECT_SENDS_MAX: usize = 2;
/// How long the last operations may take to end when the worker stops.
const FINISH_TIMEOUT: Duration = Duration::from_secs(2);

/// What a completion belongs to: the upper four bits of its user data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Bell = 1,
    Receive = 2,
    Send = 3,
    Cancel = 4,
}

/// User data: operation (4 bits), slot (28 bits), generation (32 bits).
fn tag(operation: Operation, conn: ConnId) -> u64 {
    ((operation as u64) << 60) | conn.as_u64()
}

fn untag(data: u64) -> (Option<Operation>, ConnId) {
    let operation = match data >> 60 {
        1 => Some(Operation::Bell),
        2 => Some(Operation::Receive),
        3 => Some(Operation::Send),
        4 => Some(Operation::Cancel),
        _ => None,
    };
    (operation, ConnId::from_u64(data & ((1 << 60) - 1)))
}

/// Makes a ring with the best flags that this kernel takes.
fn make_ring() -> io::Result<IoUring> {
    // The flag that says "completions wait in the kernel" is needed for polling without a system call.
    let best = IoUring::builder()
        .setup_cqsize(COMPLETIONS)
        .setup_clamp()
        .setup_submit_all()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .build(SUBMISSIONS);
    match best {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
        other => return other,
    }
    IoUring::builder()
        .setup_cqsize(COMPLETIONS)
        .setup_clamp()
        .setup_submit_all()
        .setup_coop_taskrun()
        .setup_taskrun_flag()
        .build(SUBMISSIONS)
}

/// A completion, copied out of the ring.
#[derive(Clone, Copy)]
struct Done {
    data: u64,
    result: i32,
    flags: u32,
}

pub(crate) struct Uring {
    /// Dropped before the buffers.
    ring: IoUring,
    /// Where the kernel can, waiting for a peer is not accounted as waiting for a disk: an idle server looks idle.
    wait_flags: EnterFlags,
    /// `None` only after `finish` gave them up.
    buffers: Option<BufferRing>,
    bell: Arc<Bell>,
    batch: Vec<Done>,
    /// Operations that the kernel still holds, without those of the bell.
    outstanding: usize,
}

impl Uring {
    pub fn new(bell: Arc<Bell>) -> io::Result<Self> {
        let ring = make_ring()?;
        let buffers = BufferRing::new(&ring)?;
        let wait_flags = if ring.params().is_feature_no_iowait() {
            EnterFlags::NO_IOWAIT
        } else {
            EnterFlags::empty()
        };
        let mut this = Self {
            ring,
            wait_flags,
            buffers: Some(buffers),
            bell,
            batch: Vec::with_capacity(BATCH),
            outstanding: 0,
        };
        this.watch_bell()?;
        Ok(this)
    }

    /// Queues an operation; when the queue is full the kernel takes it over first.
    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: the callers pass operations whose descriptors and memory live until the completion: receives
            // use the provided buffers, sends an `inflight` buffer marked SEND_ACTIVE, the others no memory.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            match self.ring.submit() {
                Ok(_) => {}
                Err(error) if is_transient(&error) => {
                    std::thread::sleep(Duration::from_micros(100))
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn watch_bell(&mut self) -> io::Result<()> {
        let entry = opcode::PollAdd::new(Fd(self.bell.raw_fd()), libc::POLLIN as u32)
            .multi(true)
            .build()
            .user_data(tag(Operation::Bell, ConnId::new(0, 0)));
        self.push(&entry)
    }

    fn receive(&mut self, io: &mut Io, slot: u32) -> io::Result<()> {
        let id = io.table.id(slot);
        let conn = io.table.at(slot);
        let entry = opcode::RecvMulti::new(Fd(conn.raw_fd()), GROUP)
            .build()
            .user_data(tag(Operation::Receive, id));
        conn.set(flag::RECV_ARMED);
        self.outstanding += 1;
        self.push(&entry)
    }

    fn cancel_receive(&mut self, io: &mut Io, slot: u32) -> io::Result<()> {
        let id = io.table.id(slot);
        io.table.at(slot).set(flag::RECV_CANCELLING);
        let entry = opcode::AsyncCancel::new(tag(Operation::Receive, id))
            .build()
            .user_data(tag(Operation::Cancel, id));
        self.outstanding += 1;
        self.push(&entry)
    }

    fn send(&mut self, io: &mut Io, slot: u32) -> io::Result<()> {
        let id = io.table.id(slot);
        let conn = io.table.at(slot);
        let rest = &conn.inflight[conn.sent..];
        let length = rest.len().min(SEND_MAX_BYTES) as u32;
        let entry = opcode::Send::new(Fd(conn.raw_fd()), rest.as_ptr(), length)
            .flags(libc::MSG_NOSIGNAL)
            .build()
            .user_data(tag(Operation::Send, id));
        conn.set(flag::SEND_ACTIVE);
        self.outstanding += 1;
        self.push(&entry)
    }

    /// Receives for those who want it, and not for the others.
    fn arrange_receive(&mut self, io: &mut Io, slot: u32) -> io::Result<()> {
        let conn = io.table.at(slot);
        if !conn.is_live() {
            return Ok(());
        }
        let wanted = conn.wants_input();
        if wanted && !conn.has(flag::RECV_ARMED) {
            self.receive(io, slot)
        } else if !wanted && conn.has(flag::RECV_ARMED) && !conn.has(flag::RECV_CANCELLING) {
            self.cancel_receive(io, slot)
        } else {
            Ok(())
        }
    }

    /// Shows the service what several connections will be given.
    fn announce<S: Service>(&self, service: &mut S, batch: &[Done]) {
        let Some(buffers) = &self.buffers else {
            return;
        };
        let pieces = || {
            batch.iter().filter_map(|done| match untag(done.data) {
                (Some(Operation::Receive), id) if done.result > 0 => {
                    let buffer = cqueue::buffer_select(done.flags)?;
                    Some((id, buffers.filled(buffer, done.result as usize)))
                }
                _ => None,
            })
        };
        if pieces().nth(1).is_some() {
            pieces().for_each(|(id, bytes)| service.coming(id, bytes));
            service.come();
        }
    }

    /// A receive's completion: bytes, the end, an error, or the news that it must be armed again.
    fn received<S: Service>(&mut self, io: &mut Io, service: &mut S, id: ConnId, done: Done) {
        let more = cqueue::more(done.flags);
        if !more {
            self.outstanding -= 1;
        }
        let buffer = cqueue::buffer_select(done.flags);
        let Some(conn) = io.table.tenant(id) else {
            // Cannot be: the slot is kept until its operations ended. The buffer must go back in any case.
            debug_assert!(false, "completion for a freed slot");
            self.return_buffer(buffer);
            return;
        };
        if !more {
            conn.clear(flag::RECV_ARMED | flag::RECV_CANCELLING);
        }
        match done.result {
            count if count > 0 => {
                if let (Some(buffer), Some(buffers)) = (buffer, &self.buffers) {
                    arrived(io, service, id, buffers.filled(buffer, count as usize));
                }
            }
            0 => reached_end(io, service, id),
            error if error == -libc::ENOBUFS => {
                // Every buffer was in use. They are ours again by now; more of them if that is allowed. The receive
                // is armed again below.
                if let Some(buffers) = &mut self.buffers {
                    buffers.double();
                }
            }
            error
                if [-libc::ECANCELED, -libc::EAGAIN, -libc::EINTR, -libc::ENOMEM]
                    .contains(&error) => {}
            _ => io.fail(id.slot()),
        }
        self.return_buffer(buffer);
        if !more {
            io.mark_dirty(id.slot());
            self.release_if_idle(io, id);
        }
    }

    fn return_buffer(&mut self, buffer: Option<u16>) {
        if let (Some(buffer), Some(buffers)) = (buffer, &mut self.buffers) {
            buffers.give_back(buffer);
        }
    }

    /// A send's completion.
    fn sent(&mut self, io: &mut Io, id: ConnId, result: i32) {
        self.outstanding -= 1;
        let slot = id.slot();
        let Some(conn) = io.table.tenant(id) else {
            debug_assert!(false, "completion for a freed slot");
            return;
        };
        conn.clear(flag::SEND_ACTIVE);
        if !conn.has(flag::OPEN) {
            self.release_if_idle(io, id);
            return;
        }
        match result {
            count if count >= 0 => {
                io.took(slot, count as usize);
                let conn = io.table.at(slot);
                if conn.out_len() > 0 {
                    io.mark_dirty(slot);
                } else {
                    // Frees the buffer.
                    io.load_output(slot);
                    io.output_empty(slot);
                }
            }
            error if [-libc::EAGAIN, -libc::EINTR, -libc::ENOMEM].contains(&error) => {
                io.mark_dirty(slot)
            }
            _ => io.fail(slot),
        }
    }

    /// A slot whose connection the service has forgotten is freed when the kernel holds nothing of it any more.
    fn release_if_idle(&mut self, io: &mut Io, id: ConnId) {
        if let Some(conn) = io.table.tenant(id)
            && is_released(conn)
        {
            io.release(id.slot());
        }
    }

    /// Moves completions from the ring into the batch.
    fn collect(&mut self) {
        self.batch.clear();
        let completions = self.ring.completion();
        self.batch.extend(completions.take(BATCH).map(|entry| Done {
            data: entry.user_data(),
            result: entry.result(),
            flags: entry.flags(),
        }));
    }

    fn submit_and_wait(&mut self, patience: Patience) -> io::Result<()> {
        let result = match patience {
            Patience::None => {
                let submissions = self.ring.submission();
                // Nothing to hand over and nothing waiting in the kernel: no system call.
                if submissions.is_empty() && !submissions.taskrun() && !submissions.cq_overflow() {
                    return Ok(());
                }
                drop(submissions);
                self.ring.submit()
            }
            Patience::Forever => {
                let arguments = SubmitArgs::new();
                self.ring
                    .submitter()
                    .submit_with_args_and_flags(1, &arguments, self.wait_flags)
            }
            Patience::Until(at) => {
                let timeout = Timespec::from(at.saturating_duration_since(Instant::now()));
                let arguments = SubmitArgs::new().timespec(&timeout);
                self.ring
                    .submitter()
                    .submit_with_args_and_flags(1, &arguments, self.wait_flags)
            }
        };
        match result {
            Ok(_) => Ok(()),
            Err(error) if is_transient(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn flush_slots(&mut self, io: &mut Io, dirty: &[u32]) -> io::Result<()> {
        let direct = dirty.len() <= DIRECT_SENDS_MAX;
        for &slot in dirty {
            let conn = io.table.at(slot);
            conn.clear(flag::DIRTY);
            if conn.fd.is_none() || !conn.is_live() {
                continue;
            }
            conn.note_output();
            if !conn.has(flag::SEND_ACTIVE) {
                if direct {
                    io.send_direct(slot);
                }
                if io.table.at(slot).is_live() {
                    if io.load_output(slot) {
                        self.send(io, slot)?;
                    } else if !direct {
                        io.output_empty(slot);
                    }
                }
            }
            self.arrange_receive(io, slot)?;
        }
        Ok(())
    }
}

impl Backend for Uring {
    fn wait(&mut self, _io: &mut Io, patience: Patience) -> io::Result<()> {
        // A batch that was cut off leaves completions in the ring: they are events too.
        let patience = if self.ring.completion().is_empty() {
            patience
        } else {
            Patience::None
        };
        self.submit_and_wait(patience)?;
        self.collect();
        Ok(())
    }

    fn dispatch<S: Service>(&mut self, io: &mut Io, service: &mut S) {
        let mut batch = std::mem::take(&mut self.batch);
        self.announce(service, &batch);
        for &done in &batch {
            let (operation, id) = untag(done.data);
            match operation {
                Some(Operation::Receive) => self.received(io, service, id, done),
                Some(Operation::Send) => self.sent(io, id, done.result),
                Some(Operation::Cancel) => self.outstanding -= 1,
                Some(Operation::Bell) if !cqueue::more(done.flags) => {
                    self.bell.drain();
                    self.watch_bell().expect("the ring takes operations");
                }
                _ => {}
            }
        }
        let receives = batch
            .iter()
            .filter(|done| matches!(untag(done.data).0, Some(Operation::Receive)))
            .count();
        if let Some(buffers) = &mut self.buffers {
            buffers.note_turn(receives);
        }
        batch.clear();
        self.batch = batch;
    }

    fn flush(&mut self, io: &mut Io) {
        let mut dirty = std::mem::take(&mut io.dirty);
        self.flush_slots(io, &dirty)
            .expect("the ring takes operations");
        dirty.clear();
        debug_assert!(io.dirty.is_empty());
        io.dirty = dirty;
        io.driver_buffer_bytes = self.buffers.as_ref().map_or(0, BufferRing::bytes);
    }

    fn abandon(&mut self, io: &mut Io, slot: u32) {
        let id = io.table.id(slot);
        let conn = io.table.at(slot);
        if is_released(conn) {
            io.release(slot);
            return;
        }
        // The descriptor stays open until both completions came, so the number cannot be reused meanwhile.
        let entry = opcode::AsyncCancel2::new(CancelBuilder::fd(Fd(conn.raw_fd())).all())
            .build()
            .user_data(tag(Operation::Cancel, id));
        self.outstanding += 1;
        self.push(&entry).expect("the ring takes operations");
    }

    fn finish(&mut self, io: &mut Io) {
        let deadline = Instant::now() + FINISH_TIMEOUT;
        while self.outstanding > 0 && Instant::now() < deadline {
            if self.submit_and_wait(Patience::Until(deadline)).is_err() {
                break;
            }
            self.collect();
            let batch = std::mem::take(&mut self.batch);
            for &done in &batch {
                let (operation, id) = untag(done.data);
                match operation {
                    Some(Operation::Receive) => {
                        self.return_buffer(cqueue::buffer_select(done.flags));
                        if !cqueue::more(done.flags) {
                            self.outstanding -= 1;
                            if let Some(conn) = io.table.tenant(id) {
                                conn.clear(flag::RECV_ARMED | flag::RECV_CANCELLING);
                            }
                            self.release_if_idle(io, id);
                        }
                    }
                    Some(Operation::Send) => self.sent(io, id, done.result),
                    Some(Operation::Cancel) => self.outstanding -= 1,
                    Some(Operation::Bell) | None => {}
                }
            }
            self.batch = batch;
        }
        if self.outstanding > 0 {
            // The kernel may still read or write this memory: better leaked than freed.
            std::mem::forget(self.buffers.take());
            std::mem::forget(std::mem::take(&mut io.table));
        }
    }
}

/// The service has forgotten the connection and the kernel holds nothing of it.
fn is_released(conn: &Conn) -> bool {
    !conn.has(flag::OPEN | flag::RECV_ARMED | flag::SEND_ACTIVE)
}

/// Errors of the wait itself after which the next turn simply tries again.
fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)
    ) || error.kind() == ErrorKind::OutOfMemory
}
