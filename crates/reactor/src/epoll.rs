//! The epoll driver: level-triggered, one receive per ready connection and turn into one scratch buffer, sends with
//! plain system calls when the turn ends. Watches for output only while a socket is full.
#![allow(unsafe_code, reason = "epoll through libc")]

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::bell::Bell;
use crate::conn::{ConnId, flag};
use crate::io::{Io, Service};
use crate::sys::{self, check};
use crate::worker::{Backend, Patience, arrived, reached_end};

const EVENTS_PER_TURN: usize = 512;
const SCRATCH_BYTES: usize = 64 * 1024;
/// The data word of the bell's registration; no connection has it (its slot would be above the limit).
const BELL: u64 = u64::MAX;

pub(crate) struct Epoll {
    epoll: OwnedFd,
    /// Room for events; the first `ready` are this turn's.
    events: Vec<libc::epoll_event>,
    ready: usize,
    scratch: Vec<u8>,
}

impl Epoll {
    pub fn new(bell: &Bell) -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor is new and nobody else owns it.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        let this = Self {
            epoll,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS_PER_TURN],
            ready: 0,
            scratch: vec![0; SCRATCH_BYTES],
        };
        // Edge-triggered: each ring is one event, and nobody has to read the counter.
        this.control(
            libc::EPOLL_CTL_ADD,
            bell.raw_fd(),
            (libc::EPOLLIN | libc::EPOLLET) as u32,
            BELL,
        )?;
        Ok(this)
    }

    fn control(&self, operation: i32, fd: i32, events: u32, data: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: data };
        // SAFETY: the event is live during the call.
        check(unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &mut event) })
            .map(drop)
    }

    /// Brings the registration of a slot in line with what the connection wants.
    fn register(&self, io: &mut Io, slot: u32) {
        let id = io.table.id(slot);
        let conn = io.table.at(slot);
        if conn.fd.is_none() || !conn.is_live() {
            return;
        }
        let mut wanted = 0;
        if conn.wants_input() {
            wanted |= flag::EPOLL_IN;
        }
        if conn.sent < conn.inflight.len() {
            wanted |= flag::EPOLL_OUT;
        }
        let both = flag::EPOLL_IN | flag::EPOLL_OUT;
        if conn.flags & both == wanted && conn.has(flag::EPOLL_ADDED) {
            return;
        }
        let operation = match (conn.has(flag::EPOLL_ADDED), wanted) {
            // With nothing wanted the descriptor leaves the set, because a hang-up cannot be masked and would
            // wake the worker for ever.
            (false, 0) => return,
            (true, 0) => libc::EPOLL_CTL_DEL,
            (true, _) => libc::EPOLL_CTL_MOD,
            (false, _) => libc::EPOLL_CTL_ADD,
        };
        let mut events = 0;
        if wanted & flag::EPOLL_IN != 0 {
            events |= libc::EPOLLIN as u32;
        }
        if wanted & flag::EPOLL_OUT != 0 {
            events |= libc::EPOLLOUT as u32;
        }
        conn.clear(both | flag::EPOLL_ADDED);
        conn.set(wanted | if wanted == 0 { 0 } else { flag::EPOLL_ADDED });
        let fd = conn.raw_fd();
        if self.control(operation, fd, events, id.as_u64()).is_err() {
            // Out of kernel memory or over the limit of watches: the connection would never be heard of again.
            io.fail(slot);
        }
    }

    fn receive<S: Service>(&mut self, io: &mut Io, service: &mut S, id: ConnId) {
        let Some(conn) = io.table.live(id) else {
            return;
        };
        if !conn.wants_input() {
            return;
        }
        let Some(fd) = conn.fd.as_ref() else { return };
        match sys::recv(fd.as_fd(), &mut self.scratch) {
            Ok(0) => reached_end(io, service, id),
            Ok(count) => arrived(io, service, id, &self.scratch[..count]),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => io.fail(id.slot()),
        }
    }
}

impl Backend for Epoll {
    fn wait(&mut self, _io: &mut Io, patience: Patience) -> io::Result<()> {
        let timeout_ms = match patience {
            Patience::None => 0,
            Patience::Forever => -1,
            // Rounded up, so that the timer is due when the wait ends.
            Patience::Until(at) => {
                let left =
                    at.saturating_duration_since(Instant::now()) + Duration::from_micros(999);
                i32::try_from(left.as_millis()).unwrap_or(i32::MAX)
            }
        };
        self.ready = 0;
        // SAFETY: pointer and length are those of a live vector.
        let result = check(unsafe {
            libc::epoll_wait(
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS_PER_TURN as i32,
                timeout_ms,
            )
        });
        match result {
            Ok(count) => self.ready = count as usize,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn dispatch<S: Service>(&mut self, io: &mut Io, service: &mut S) {
        for index in 0..self.ready {
            let event = self.events[index];
            let (flags, data) = (event.events, event.u64);
            if data == BELL {
                continue;
            }
            let id = ConnId::from_u64(data);
            let Some(conn) = io.table.live(id) else {
                continue;
            };
            let hung_up = flags & (libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0;
            if flags & libc::EPOLLOUT as u32 != 0 || (hung_up && conn.has(flag::EPOLL_OUT)) {
                io.mark_dirty(id.slot());
            }
            if flags & libc::EPOLLIN as u32 != 0 || hung_up {
                self.receive(io, service, id);
            }
        }
        self.ready = 0;
    }

    fn flush(&mut self, io: &mut Io) {
        let mut dirty = std::mem::take(&mut io.dirty);
        for &slot in &dirty {
            let conn = io.table.at(slot);
            conn.clear(flag::DIRTY);
            if conn.fd.is_none() || !conn.is_live() {
                continue;
            }
            io.send_direct(slot);
            self.register(io, slot);
        }
        dirty.clear();
        debug_assert!(io.dirty.is_empty());
        io.dirty = dirty;
        io.driver_buffer_bytes = self.scratch.capacity();
    }

    fn abandon(&mut self, io: &mut Io, slot: u32) {
        // Closing the descriptor takes it out of the set.
        io.release(slot);
    }

    fn finish(&mut self, _io: &mut Io) {}
}
