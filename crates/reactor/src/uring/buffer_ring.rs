//! The provided buffers of one ring: memory that the kernel fills with what arrives, and the ring through which
//! buffers go back to it. A buffer belongs either to the kernel or, between its completion and `give_back`, to us.

use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

use crate::sys::check;

/// Size of one buffer.
pub(crate) const BUFFER_BYTES: usize = 16 * 1024;
/// Room in the ring, a power of two: the largest number of buffers, 4 MiB.
const BUFFERS_MAX: u16 = 256;
/// Buffers that a worker starts with, 512 KiB. Pages become resident when the kernel first fills them.
const BUFFERS_FIRST: u16 = 32;
/// Receives after which it is looked at whether all buffers are needed.
const WINDOW: usize = 64;
/// The group's number in its ring.
pub(crate) const GROUP: u16 = 0;

/// An anonymous private mapping. Its address stays the same until it is dropped.
struct Mapping {
    address: *mut u8,
    bytes: usize,
}

impl Mapping {
    fn new(bytes: usize) -> io::Result<Self> {
        // SAFETY: a new anonymous mapping, placed by the kernel, touches no memory that exists.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            address: address.cast(),
            bytes,
        })
    }
}

impl Mapping {
    /// Gives one buffer's memory back to the system; it reads as zeros when it is used again.
    fn release(&mut self, offset: usize) {
        assert!(offset + BUFFER_BYTES <= self.bytes);
        // SAFETY: the range lies within our own mapping, and the kernel does not have the buffer at the moment.
        let result = unsafe {
            let start = self.address.add(offset);
            libc::madvise(start.cast(), BUFFER_BYTES, libc::MADV_DONTNEED)
        };
        debug_assert!(check(result).is_ok());
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: address and length are those of our own mapping, to which nobody refers any more.
        let result = unsafe { libc::munmap(self.address.cast(), self.bytes) };
        debug_assert!(check(result).is_ok());
    }
}

/// The ring of buffers. The memory must outlive every receive that may use it: [`Uring`](super::Uring) ends them
/// all before it drops this, or leaks it.
pub(crate) struct BufferRing {
    entries: Mapping,
    memory: Mapping,
    /// Buffers that exist; the kernel has seen ids below this.
    provided: u16,
    /// Ids that are out of use, their memory given back to the system.
    spare: Vec<u16>,
    /// Receives since the last look at how many buffers are needed, and the most of them in one turn.
    window: usize,
    peak: usize,
    /// Buffers that are not needed and go out of use when they come back.
    excess: u16,
    /// Our copy of the ring's tail, published after each change.
    tail: u16,
}

impl BufferRing {
    /// Maps the memory and registers the ring with the kernel.
    pub fn new(ring: &IoUring) -> io::Result<Self> {
        let mut this = Self {
            entries: Mapping::new(usize::from(BUFFERS_MAX) * size_of::<BufRingEntry>())?,
            memory: Mapping::new(usize::from(BUFFERS_MAX) * BUFFER_BYTES)?,
            provided: 0,
            spare: Vec::new(),
            window: 0,
            peak: 0,
            excess: 0,
            tail: 0,
        };
        // SAFETY: the mapping has room for that many entries, is page-aligned, and lives as long as the ring is used.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(
                this.entries.address as u64,
                BUFFERS_MAX,
                GROUP,
                0,
            )?;
        }
        this.grow(BUFFERS_FIRST);
        Ok(this)
    }

    /// Provides up to `count` more buffers. Returns whether there were any left.
    pub fn grow(&mut self, count: u16) -> bool {
        let again = self.spare.len().min(usize::from(count));
        for id in self.spare.split_off(self.spare.len() - again) {
            self.put(id);
        }
        let fresh = count - again as u16;
        let until = self.provided.saturating_add(fresh).min(BUFFERS_MAX);
        let grew = again > 0 || until > self.provided;
        for id in self.provided..until {
            self.put(id);
        }
        self.provided = until;
        self.publish();
        grew
    }

    /// The kernel ran out of buffers: doubles their number, within the bound.
    pub fn double(&mut self) -> bool {
        self.excess = 0;
        self.window = 0;
        self.peak = 0;
        self.grow(self.in_use())
    }

    /// Notes how many receives a turn brought. When no turn of late needed a quarter of the buffers, half of them go.
    pub fn note_turn(&mut self, receives: usize) {
        self.peak = self.peak.max(receives);
        self.window += receives;
        if self.window < WINDOW {
            return;
        }
        let half = self.in_use() / 2;
        if half >= BUFFERS_FIRST && self.peak * 4 < usize::from(self.in_use()) {
            self.excess = half;
        }
        self.window = 0;
        self.peak = 0;
    }

    /// Buffers that the kernel has or fills.
    fn in_use(&self) -> u16 {
        self.provided - self.spare.len() as u16
    }

    /// What the kernel wrote into buffer `id`. The buffer is ours until `give_back`.
    pub fn filled(&self, id: u16, count: usize) -> &[u8] {
        let count = count.min(BUFFER_BYTES);
        assert!(
            id < self.provided,
            "the kernel names only buffers that it was given"
        );
        // SAFETY: the range lies within the mapping (asserted above); the kernel has handed the buffer over and does
        // not write to it until it is provided again, which needs `&mut self`.
        unsafe {
            let start = self.memory.address.add(usize::from(id) * BUFFER_BYTES);
            std::slice::from_raw_parts(start, count)
        }
    }

    /// Gives a buffer back to the kernel; or, when a burst that needed many is over, its memory to the system.
    pub fn give_back(&mut self, id: u16) {
        if self.excess > 0 {
            self.excess -= 1;
            self.memory.release(usize::from(id) * BUFFER_BYTES);
            self.spare.push(id);
            return;
        }
        self.put(id);
        self.publish();
    }

    /// Bytes of memory that the provided buffers may occupy.
    pub fn bytes(&self) -> usize {
        usize::from(self.in_use()) * BUFFER_BYTES
    }

    fn put(&mut self, id: u16) {
        debug_assert!(id < BUFFERS_MAX);
        let index = usize::from(self.tail & (BUFFERS_MAX - 1));
        // SAFETY: the index is below the number of entries. The kernel does not read entries at or behind the tail,
        // and there are at most as many buffers as entries, so this one is ours. The setters leave the word that
        // the ring's tail overlays (in entry 0) alone.
        unsafe {
            let entry = &mut *self.entries.address.cast::<BufRingEntry>().add(index);
            entry.set_addr(self.memory.address.add(usize::from(id) * BUFFER_BYTES) as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(id);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&mut self) {
        // SAFETY: the address is that of the tail word within our mapping, aligned for u16, and both the kernel and
        // we access it as one atomic word.
        unsafe {
            let tail = BufRingEntry::tail(self.entries.address.cast()).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}
