//! The address space of one heap: reserved once, given access to in regions of 2 MiB, cut into pages of 4 KiB.
//!
//! Reserving costs nothing until pages are touched. The first two pages of each region hold the descriptors of its 512 pages
//! (16 bytes each, 0.4 %), so an object finds the descriptor of its slab by address arithmetic and never by a search. This
//! module gives out addresses; it must never decide who owns them.

use super::classes::PAGE_BYTES;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32};

/// Bytes of a region.
pub(crate) const REGION_BYTES: usize = 2 << 20;
/// Pages of a region.
pub(crate) const REGION_PAGES: usize = REGION_BYTES / PAGE_BYTES;
/// Pages at the start of each region that hold its descriptors.
pub(crate) const DESC_PAGES: usize = REGION_PAGES * size_of::<PageDesc>() / PAGE_BYTES;
/// What is known about one page. All fields are written under the lock of the group that owns the slab (or of the page
/// pool, while no group does); they are relaxed atomics because the group number and the mark are read without it.
#[repr(C)]
pub(crate) struct PageDesc {
    pub(crate) next: AtomicU32,
    pub(crate) prev: AtomicU32,
    /// Offset / 8 + 1 of the first free object that was used before, 0 = none. In a page that is not the first of its slab: how many pages back the first is.
    pub(crate) free_head: AtomicU16,
    /// Offset / 8 of the first object that was never used.
    pub(crate) fresh: AtomicU16,
    /// Objects in use.
    pub(crate) used: AtomicU16,
    pub(crate) class: AtomicU8,
    /// Group, and `MARK` when the slab is being evacuated.
    pub(crate) group: AtomicU8,
}

const _: () = assert!(size_of::<PageDesc>() == 16);

/// In `PageDesc::class`: this page is not the first of its slab.
pub(crate) const INTERIOR: u8 = u8::MAX;
/// In `PageDesc::group`: the slab is being evacuated, nothing is allocated from it.
pub(crate) const MARK: u8 = 0x80;

/// The reserved span.
pub(crate) struct Arena {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the arena is an address range; all access to what lies in it is synchronised by the page pool and the groups.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    pub(crate) fn regions(&self) -> usize {
        self.bytes / REGION_BYTES
    }

    #[inline]
    pub(crate) fn address(&self, page: u32) -> NonNull<u8> {
        debug_assert!((page as usize) < self.bytes / PAGE_BYTES);
        // SAFETY: page numbers come from the page pool, which hands out pages inside the span only.
        unsafe { self.base.add(page as usize * PAGE_BYTES) }
    }

    /// The page that holds `at`, which must lie in the span.
    #[inline]
    pub(crate) fn page_of(&self, at: NonNull<u8>) -> u32 {
        let offset = at.as_ptr() as usize - self.base.as_ptr() as usize;
        debug_assert!(offset < self.bytes);
        (offset / PAGE_BYTES) as u32
    }

    #[inline]
    pub(crate) fn contains(&self, at: NonNull<u8>) -> bool {
        (at.as_ptr() as usize).wrapping_sub(self.base.as_ptr() as usize) < self.bytes
    }

    /// The descriptor of a page of an opened region.
    #[inline]
    pub(crate) fn desc(&self, page: u32) -> &PageDesc {
        let region = page as usize / REGION_PAGES;
        let within = page as usize % REGION_PAGES;
        // SAFETY: only pages of opened regions are named (page pool invariant); descriptors lie at the region's start, were
        // zeroed by the system (all-zero is a valid PageDesc) and consist of atomics.
        unsafe {
            self.base
                .add(region * REGION_BYTES)
                .cast::<PageDesc>()
                .add(within)
                .as_ref()
        }
    }
}

#[cfg(not(miri))]
mod source {
    use super::{Arena, PAGE_BYTES, REGION_BYTES};
    use std::ptr::NonNull;

    impl Arena {
        /// Reserves address space for `wanted_bytes`, or less (never below 64 MiB) where the system refuses so much.
        pub(crate) fn reserve(wanted_bytes: usize) -> std::io::Result<Self> {
            let mut bytes = wanted_bytes.next_multiple_of(REGION_BYTES);
            loop {
                match reserve_aligned(bytes) {
                    Ok(base) => return Ok(Self { base, bytes }),
                    Err(error) if bytes <= 64 << 20 => return Err(error),
                    Err(_) => bytes = (bytes / 2).next_multiple_of(REGION_BYTES),
                }
            }
        }

        /// Makes a region readable and writable. Its bytes are zero.
        pub(crate) fn open_region(&self, region: usize) -> std::io::Result<()> {
            assert!(region < self.regions());
            // SAFETY: the region lies inside our own reserved span.
            unsafe {
                let at = self
                    .base
                    .add(region * REGION_BYTES)
                    .as_ptr()
                    .cast::<libc::c_void>();
                if libc::mprotect(at, REGION_BYTES, libc::PROT_READ | libc::PROT_WRITE) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        }

        /// Gives pages back to the system; they read as zero afterwards.
        pub(crate) fn release(&self, page: u32, pages: usize) {
            let at = self.address(page);
            // SAFETY: the caller (page pool) owns these pages, nobody else holds an address inside them.
            unsafe {
                libc::madvise(at.as_ptr().cast(), pages * PAGE_BYTES, libc::MADV_DONTNEED);
            }
        }

        /// Asks the kernel to make one huge page of a region that is in full use. A refusal only means small pages.
        pub(crate) fn make_huge(&self, region: usize) {
            /// Linux 6.1 and later; older ones answer EINVAL, and their background thread does it some day.
            const MADV_COLLAPSE: libc::c_int = 25;
            assert!(region < self.regions());
            // SAFETY: the region lies inside our own span; the advice changes no contents.
            unsafe {
                let start = self.base.add(region * REGION_BYTES).as_ptr();
                libc::madvise(start.cast(), REGION_BYTES, libc::MADV_HUGEPAGE);
                libc::madvise(start.cast(), REGION_BYTES, MADV_COLLAPSE);
            }
        }

        /// Asks the kernel not to fill the region's holes up again by making huge pages behind our back.
        pub(crate) fn keep_small(&self, region: usize) {
            assert!(region < self.regions());
            // SAFETY: the region lies inside our own span; the advice changes no contents.
            unsafe {
                let start = self.base.add(region * REGION_BYTES).as_ptr();
                libc::madvise(start.cast(), REGION_BYTES, libc::MADV_NOHUGEPAGE);
            }
        }
    }

    impl Drop for Arena {
        fn drop(&mut self) {
            // SAFETY: the span was mapped by `reserve`, and whoever held addresses in it holds the heap, which is gone.
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
        }
    }

    fn reserve_aligned(bytes: usize) -> std::io::Result<NonNull<u8>> {
        let padded = bytes + REGION_BYTES;
        // SAFETY: a fresh anonymous mapping; the unaligned ends are unmapped again before anybody sees them.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let at = libc::mmap(std::ptr::null_mut(), padded, libc::PROT_NONE, flags, -1, 0);
            if at == libc::MAP_FAILED {
                return Err(std::io::Error::last_os_error());
            }
            let start = at as usize;
            let aligned = start.next_multiple_of(REGION_BYTES);
            let head = aligned - start;
            if head > 0 {
                libc::munmap(at, head);
            }
            let tail = padded - head - bytes;
            if tail > 0 {
                libc::munmap(at.cast::<u8>().add(head + bytes).cast(), tail);
            }
            NonNull::new(at.cast::<u8>().add(head))
                .ok_or_else(|| std::io::Error::other("mmap gave the null page"))
        }
    }
}

#[cfg(miri)]
mod source {
    use super::{Arena, REGION_BYTES};
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::ptr::NonNull;

    const MODEL_BYTES: usize = 8 * REGION_BYTES;

    impl Arena {
        pub(crate) fn reserve(_wanted_bytes: usize) -> std::io::Result<Self> {
            let layout =
                Layout::from_size_align(MODEL_BYTES, REGION_BYTES).expect("constant layout");
            // SAFETY: the layout is not empty.
            let base = NonNull::new(unsafe { alloc_zeroed(layout) })
                .ok_or(std::io::ErrorKind::OutOfMemory)?;
            Ok(Self {
                base,
                bytes: MODEL_BYTES,
            })
        }

        pub(crate) fn open_region(&self, _region: usize) -> std::io::Result<()> {
            Ok(())
        }

        pub(crate) fn release(&self, _page: u32, _pages: usize) {}

        pub(crate) fn keep_small(&self, _region: usize) {}

        pub(crate) fn make_huge(&self, _region: usize) {}
    }

    impl Drop for Arena {
        fn drop(&mut self) {
            let layout =
                Layout::from_size_align(MODEL_BYTES, REGION_BYTES).expect("constant layout");
            // SAFETY: allocated by `reserve` with this layout.
            unsafe { dealloc(self.base.as_ptr(), layout) };
        }
    }
}
