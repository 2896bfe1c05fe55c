//! One segment: an array of lines, and beside it what is known about them.
//!
//! ```text
//! lines × 64 bytes     the lines
//! 2 bytes              number of entries (13 bits) | bit 15: may hold entries with an expiry
//! lines × 1 byte       epoch of each line
//! ```
//! The whole is rounded up to cache lines. A directory word packs address / 64 (42 bits), lines (10) and local depth (5).

use super::line::{Line, TAG_BITS, WORDS};
use crate::heap::{HeapRef, Purpose};
use std::ptr::NonNull;

/// Sizes in cache lines that a segment takes, the meta data counted in. Beyond 128 it splits instead, unless its depth is at the limit.
const STEPS: [u16; 37] = [
    2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 56, 64, 72, 80, 88, 96, 104, 112,
    128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024,
];
/// The step of 128 cache lines.
pub(crate) const STEP_FULL: usize = 24;
/// Deepest local depth: with it, a position in hash order still fits the 40 bits of a cursor.
pub(crate) const DEPTH_MAX: u8 = 20;

const HAS_EXPIRY: u16 = 0x8000;
const COUNT: u16 = 0x1fff;

/// A decoded directory word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seg {
    base: NonNull<Line>,
    pub(crate) lines: u16,
    pub(crate) depth: u8,
}

/// Lines of the step that has so many cache lines in all.
const fn lines_of(total: u16) -> u16 {
    let mut lines = total - 1;
    while lines + (2 + lines).div_ceil(64) > total {
        lines -= 1;
    }
    lines
}

/// How many entries a segment of so many lines may hold before it grows: all words of a tiny one, 7/8 otherwise.
pub(crate) fn limit(lines: u16) -> u16 {
    if lines <= 2 {
        lines * WORDS as u16
    } else {
        (u32::from(lines) * WORDS as u32 * 7 / 8) as u16
    }
}

/// The smallest step that holds `count` entries and leaves room for some more.
pub(crate) fn step_for(count: u16) -> usize {
    (0..STEPS.len() - 1)
        .find(|&step| u32::from(limit(lines_of(STEPS[step]))) * 15 / 16 >= u32::from(count))
        .unwrap_or(STEPS.len() - 1)
}

/// The lines of a step.
pub(crate) fn step_lines(step: usize) -> u16 {
    lines_of(STEPS[step])
}

/// The step of a segment with so many lines.
pub(crate) fn step_of(lines: u16) -> usize {
    STEPS.partition_point(|&total| lines_of(total) < lines)
}

/// The last step of all.
pub(crate) const STEP_LAST: usize = STEPS.len() - 1;

fn total_bytes(lines: u16) -> usize {
    (lines + (2 + lines).div_ceil(64)) as usize * 64
}

impl Seg {
    /// An empty segment whose lines are of this epoch.
    pub(crate) fn create(heap: &HeapRef, lines: u16, depth: u8, epoch: u8) -> Self {
        let base = heap
            .alloc(Purpose::Table, total_bytes(lines))
            .cast::<Line>();
        let seg = Self { base, lines, depth };
        // SAFETY: freshly allocated with room for lines, count and epochs; 64-aligned because the size is a multiple of 64.
        unsafe {
            base.write_bytes(0, lines as usize);
            seg.meta().write(0);
            seg.epoch_at(0).write_bytes(epoch, lines as usize);
        }
        seg
    }

    /// Frees the segment.
    ///
    /// # Safety
    /// No directory word names it any more.
    pub(crate) unsafe fn destroy(self, heap: &HeapRef) {
        // SAFETY: allocated by `create` with the same number of lines.
        unsafe { heap.free(Purpose::Table, self.base.cast(), total_bytes(self.lines)) };
    }

    /// Copies the segment to a new place and frees the old (compaction).
    ///
    /// # Safety
    /// The caller replaces all directory words that name it.
    pub(crate) unsafe fn relocate(self, heap: &HeapRef) -> Self {
        let bytes = total_bytes(self.lines);
        let base = heap.alloc(Purpose::Table, bytes);
        // SAFETY: both allocations have `bytes` bytes.
        unsafe {
            self.base.cast::<u8>().copy_to_nonoverlapping(base, bytes);
            self.destroy(heap);
        }
        Self {
            base: base.cast(),
            ..self
        }
    }

    pub(crate) fn wants_move(self, heap: &HeapRef) -> bool {
        heap.wants_move(self.base.cast())
    }

    pub(crate) fn memory_bytes(self) -> usize {
        total_bytes(self.lines)
    }

    #[inline]
    pub(crate) fn encode(self) -> u64 {
        let address = self.base.as_ptr().expose_provenance() as u64;
        debug_assert!(address.is_multiple_of(64) && address >> 48 == 0);
        address >> 6 | u64::from(self.lines) << 42 | u64::from(self.depth) << 52
    }

    #[inline]
    pub(crate) fn decode(word: u64) -> Self {
        let address = (word & ((1 << 42) - 1)) << 6;
        Self {
            base: NonNull::new(std::ptr::with_exposed_provenance_mut(address as usize))
                .expect("a directory word holds an address"),
            lines: (word >> 42) as u16 & 0x3ff,
            depth: (word >> 52) as u8 & 0x1f,
        }
    }

    /// The tag of a hash (already without the shard's bits) in this segment.
    #[inline]
    pub(crate) fn tag(self, hash: u64) -> u32 {
        ((hash << self.depth) >> (64 - TAG_BITS)) as u32
    }

    /// The home line of a tag.
    #[inline]
    pub(crate) fn home(self, tag: u32) -> u16 {
        ((u64::from(tag) * u64::from(self.lines)) >> TAG_BITS) as u16
    }

    /// The first tag whose home is `line`.
    pub(crate) fn first_tag(self, line: u16) -> u32 {
        (u32::from(line) << TAG_BITS).div_ceil(u32::from(self.lines))
    }

    /// The line after `line`, round the end.
    #[inline]
    pub(crate) fn next(self, line: u16) -> u16 {
        if line + 1 == self.lines { 0 } else { line + 1 }
    }

    /// # Safety
    /// The segment lives; nobody writes the line meanwhile; `line < lines`.
    #[inline]
    pub(crate) unsafe fn line<'a>(self, line: u16) -> &'a Line {
        debug_assert!(line < self.lines);
        // SAFETY: as promised by the caller.
        unsafe { self.base.add(line as usize).as_ref() }
    }

    /// Writes one word.
    ///
    /// # Safety
    /// The segment lives and is ours to write; `line < lines`, `slot < WORDS`.
    #[inline]
    pub(crate) unsafe fn set(self, line: u16, slot: u8, word: u64) {
        debug_assert!(line < self.lines && (slot as usize) < WORDS);
        // SAFETY: as promised by the caller.
        unsafe {
            self.base
                .add(line as usize)
                .cast::<u64>()
                .add(slot as usize)
                .write(word)
        };
    }

    /// # Safety
    /// The segment lives.
    #[inline]
    pub(crate) unsafe fn count(self) -> u16 {
        // SAFETY: as promised by the caller.
        unsafe { self.meta().read() & COUNT }
    }

    /// # Safety
    /// The segment lives and is ours to write.
    pub(crate) unsafe fn set_count(self, count: u16) {
        debug_assert!(count <= COUNT);
        // SAFETY: as promised by the caller.
        unsafe { self.meta().write(self.meta().read() & !COUNT | count) };
    }

    /// # Safety
    /// The segment lives.
    pub(crate) unsafe fn may_expire(self) -> bool {
        // SAFETY: as promised by the caller.
        unsafe { self.meta().read() & HAS_EXPIRY != 0 }
    }

    /// # Safety
    /// The segment lives and is ours to write.
    pub(crate) unsafe fn set_may_expire(self, may: bool) {
        // SAFETY: as promised by the caller.
        unsafe {
            let meta = self.meta().read();
            self.meta().write(if may {
                meta | HAS_EXPIRY
            } else {
                meta & !HAS_EXPIRY
            });
        }
    }

    /// # Safety
    /// The segment lives; `line < lines`.
    pub(crate) unsafe fn epoch(self, line: u16) -> u8 {
        debug_assert!(line < self.lines);
        // SAFETY: as promised by the caller.
        unsafe { self.epoch_at(line).read() }
    }

    /// # Safety
    /// The segment lives and is ours to write; `line < lines`.
    pub(crate) unsafe fn set_epoch(self, line: u16, epoch: u8) {
        debug_assert!(line < self.lines);
        // SAFETY: as promised by the caller.
        unsafe { self.epoch_at(line).write(epoch) };
    }

    /// Puts a word into its home line or the first following line with room; returns where. The count is the caller's.
    ///
    /// # Safety
    /// The segment lives, is ours to write, and has an empty word.
    pub(crate) unsafe fn place(self, word: u64) -> (u16, u8) {
        let mut line = self.home(super::line::tag_of(word));
        loop {
            // SAFETY: as promised by the caller.
            unsafe {
                let empty = self.line(line).empty_mask();
                if empty != 0 {
                    let slot = empty.trailing_zeros() as u8;
                    self.set(line, slot, word);
                    return (line, slot);
                }
            }
            line = self.next(line);
        }
    }

    /// Asks the processor to bring a line near.
    #[inline]
    pub(crate) fn prefetch(self, line: u16) {
        prefetch(self.base.as_ptr().wrapping_add(line as usize).cast());
    }

    #[inline]
    unsafe fn meta(self) -> NonNull<u16> {
        // SAFETY: the meta data follow the lines.
        unsafe { self.base.add(self.lines as usize).cast() }
    }

    unsafe fn epoch_at(self, line: u16) -> NonNull<u8> {
        // SAFETY: the epochs follow the count.
        unsafe { self.meta().cast::<u8>().add(2 + line as usize) }
    }
}

/// Asks the processor to bring the cache line at an address near. A hint: any address will do.
#[inline]
pub(crate) fn prefetch(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch never faults; SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: a prefetch never faults and changes no register that the compiler knows of.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::real_size;

    #[test]
    fn steps_hold_their_lines_and_come_back() {
        for (step, &total) in STEPS.iter().enumerate() {
            let lines = step_lines(step);
            assert!(total_bytes(lines) <= total as usize * 64 && lines >= 1);
            assert_eq!(step_of(lines), step);
            // Only then is the array aligned to cache lines.
            assert_eq!(real_size(total_bytes(lines)) % 64, 0);
        }
        assert_eq!(STEPS[STEP_FULL], 128);
        assert!(limit(step_lines(STEP_LAST)) < COUNT);
    }

    #[test]
    fn first_tag_is_the_first_of_its_line() {
        for lines in [1u16, 2, 3, 7, 62, 110, 126, 1000] {
            let seg = Seg {
                base: NonNull::dangling(),
                lines,
                depth: 0,
            };
            for line in 0..lines {
                let tag = seg.first_tag(line);
                assert_eq!(seg.home(tag), line);
                assert!(tag == 0 || seg.home(tag - 1) < line);
            }
        }
    }
}
