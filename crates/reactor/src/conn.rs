//! The table of a worker's connections. A slot is reused, so every name of a connection carries the generation of
//! its slot; nothing outside this table may reach a slot without comparing it.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::io::Io;

/// Names one connection of one worker. Ids are never reused (a slot's generation grows by one with each tenant), so
/// a stale id is harmless: every method of [`Io`](crate::Io) ignores it. Ids of different workers may be equal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConnId {
    slot: u32,
    generation: u32,
}

impl ConnId {
    /// A dense index, below the largest number of connections that the worker ever had at once (at most 2^28). The
    /// next tenant of the slot has the same index: compare whole ids too.
    pub fn index(self) -> usize {
        self.slot as usize
    }

    /// The id as one number, for tokens and logs.
    pub fn as_u64(self) -> u64 {
        (u64::from(self.slot) << 32) | u64::from(self.generation)
    }

    /// The inverse of [`as_u64`](Self::as_u64). A number that never was an id gives a stale one.
    pub fn from_u64(number: u64) -> Self {
        Self {
            slot: (number >> 32) as u32,
            generation: number as u32,
        }
    }
}

/// Where a connection came from. Given once, at [`Service::opened`](crate::Service::opened); the reactor keeps no copy.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The index that the listener was given.
    pub listener: u16,
    /// The peer: `127.0.0.1:1234`, `[::1]:1234`, or `/path:0` for a Unix socket.
    pub peer: String,
    /// Our own end, in the same form.
    pub local: String,
    /// The descriptor's number, for display only.
    pub fd: RawFd,
    /// Came in through a Unix socket.
    pub unix: bool,
    /// The peer is on this machine: a loopback address or a Unix socket.
    pub loopback: bool,
}

/// States of a connection, as bits of [`Conn::flags`].
pub(crate) mod flag {
    /// The service knows the connection and may use it.
    pub const OPEN: u32 = 1;
    /// Close was asked for, or the connection failed; `closed` is still to be called.
    pub const CLOSING: u32 = 1 << 1;
    /// Input is thrown away; closes when the output is sent.
    pub const FLUSHING: u32 = 1 << 2;
    /// The service does not want input now.
    pub const PAUSED: u32 = 1 << 3;
    /// The peer will send no more.
    pub const EOF: u32 = 1 << 4;
    /// The service was told so.
    pub const ENDED: u32 = 1 << 5;
    /// In the list of connections that the driver must look at when the turn ends.
    pub const DIRTY: u32 = 1 << 6;
    /// In the list of connections whose kept bytes are to be delivered.
    pub const RESUMED: u32 = 1 << 7;
    /// Output was above `OUT_HIGH` and has not been empty since.
    pub const ABOVE_HIGH: u32 = 1 << 8;
    /// uring: a multishot receive is with the kernel.
    pub const RECV_ARMED: u32 = 1 << 9;
    /// uring: and its cancellation has been asked for.
    pub const RECV_CANCELLING: u32 = 1 << 10;
    /// uring: a send is with the kernel, which reads `inflight`.
    pub const SEND_ACTIVE: u32 = 1 << 11;
    /// epoll: registered, for input, for output.
    pub const EPOLL_ADDED: u32 = 1 << 12;
    pub const EPOLL_IN: u32 = 1 << 13;
    pub const EPOLL_OUT: u32 = 1 << 14;
}

/// Bytes that one idle connection costs in the reactor.
pub const CONNECTION_BYTES: usize = size_of::<Conn>();
const _: () = assert!(CONNECTION_BYTES <= 128);

/// One connection.
#[derive(Default)]
pub(crate) struct Conn {
    pub generation: u32,
    pub flags: u32,
    /// `None`: the slot is free.
    pub fd: Option<OwnedFd>,
    /// What the service has written and the driver has not taken yet.
    pub pending: Vec<u8>,
    /// What the driver is sending; `sent` bytes of it are gone. Not touched while `SEND_ACTIVE`.
    pub inflight: Vec<u8>,
    pub sent: usize,
    /// Input that arrived while paused.
    pub held: Vec<u8>,
    /// Buffer capacity that the worker's total counts for this connection.
    pub accounted_bytes: usize,
}

impl Conn {
    pub fn has(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    pub fn set(&mut self, flags: u32) {
        self.flags |= flags;
    }

    pub fn clear(&mut self, flags: u32) {
        self.flags &= !flags;
    }

    /// The service may use it.
    pub fn is_live(&self) -> bool {
        self.flags & (flag::OPEN | flag::CLOSING) == flag::OPEN
    }

    /// Bytes that the kernel has not accepted yet.
    pub fn out_len(&self) -> usize {
        self.pending.len() + self.inflight.len() - self.sent
    }

    /// Remembers that there is much output. Called whenever the service may have looked and before bytes leave, so
    /// that `drained` follows for certain once `out_len` was above the mark.
    pub fn note_output(&mut self) {
        if self.out_len() > Io::OUT_HIGH {
            self.set(flag::ABOVE_HIGH);
        }
    }

    /// The driver should be receiving for it.
    pub fn wants_input(&self) -> bool {
        self.is_live()
            && !self.has(flag::EOF)
            && !(self.has(flag::PAUSED) && self.held.len() >= Io::HELD_LIMIT_BYTES)
    }

    /// The descriptor's number, or -1 in a free slot.
    pub fn raw_fd(&self) -> RawFd {
        self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

/// Largest number of slots: a slot's number shares a word of 64 bits with its generation and 4 bits of operation.
pub(crate) const SLOTS_MAX: usize = 1 << 28;

/// The connections of one worker.
#[derive(Default)]
pub(crate) struct Table {
    slots: Vec<Conn>,
    free: Vec<u32>,
}

impl Table {
    /// Takes a slot for a new connection; `None` (and the descriptor closes) when there are [`SLOTS_MAX`].
    pub fn insert(&mut self, fd: OwnedFd) -> Option<ConnId> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < SLOTS_MAX => {
                self.slots.push(Conn::default());
                (self.slots.len() - 1) as u32
            }
            None => return None,
        };
        let conn = self.at(slot);
        conn.fd = Some(fd);
        conn.flags = flag::OPEN;
        let generation = conn.generation;
        Some(ConnId { slot, generation })
    }

    /// Frees a slot. The descriptor closes here; all ids of the tenant are stale from now on.
    pub fn remove(&mut self, slot: u32) -> Conn {
        let conn = self.at(slot);
        let generation = conn.generation.wrapping_add(1);
        let old = std::mem::take(conn);
        conn.generation = generation;
        self.free.push(slot);
        old
    }

    /// The connection in an occupied slot that the reactor itself noted. Free slots give an empty value.
    pub fn at(&mut self, slot: u32) -> &mut Conn {
        &mut self.slots[slot as usize]
    }

    /// The id of a slot's present tenant.
    pub fn id(&self, slot: u32) -> ConnId {
        ConnId {
            slot,
            generation: self.slots[slot as usize].generation,
        }
    }

    /// The tenant that `id` names, if it is still there (perhaps closing).
    pub fn tenant(&mut self, id: ConnId) -> Option<&mut Conn> {
        let conn = self.slots.get_mut(id.slot as usize)?;
        (conn.generation == id.generation && conn.fd.is_some()).then_some(conn)
    }

    /// The connection that `id` names, if the service may use it.
    pub fn live(&mut self, id: ConnId) -> Option<&mut Conn> {
        self.tenant(id).filter(|conn| conn.is_live())
    }

    /// As [`live`](Self::live), to look at.
    pub fn live_ref(&self, id: ConnId) -> Option<&Conn> {
        let conn = self.slots.get(id.slot as usize)?;
        (conn.generation == id.generation && conn.is_live()).then_some(conn)
    }

    /// Number of slots, occupied or not.
    pub fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Bytes of the table itself.
    pub fn table_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Conn>() + self.free.capacity() * size_of::<u32>()
    }
}

impl ConnId {
    pub(crate) fn new(slot: u32, generation: u32) -> Self {
        Self { slot, generation }
    }

    pub(crate) fn slot(self) -> u32 {
        self.slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor() -> OwnedFd {
        std::fs::File::open("/dev/null")
            .expect("null device")
            .into()
    }

    #[test]
    fn a_stale_id_does_not_reach_the_next_tenant() {
        let mut table = Table::default();
        let first = table.insert(descriptor()).expect("room");
        assert!(table.live(first).is_some());
        table.remove(first.slot());
        assert!(table.tenant(first).is_none());
        let second = table.insert(descriptor()).expect("room");
        assert_eq!(first.index(), second.index());
        assert_ne!(first, second);
        assert!(table.live(first).is_none());
        assert!(table.live_ref(second).is_some());
        assert_eq!(ConnId::from_u64(second.as_u64()), second);
        assert!(table.live(ConnId::from_u64(u64::MAX)).is_none());
    }
}
