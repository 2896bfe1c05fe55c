//! Growing, splitting, shrinking and merging of segments. Every function leaves the table whole.

use super::Table;
use super::line::{TAG_BITS, WORDS, entry_of, tag_of, word};
use super::seg::{
    DEPTH_MAX, STEP_FULL, STEP_LAST, Seg, limit, prefetch, step_for, step_lines, step_of,
};
use crate::entry::Entry;

/// Two buddies merge when together they hold fewer entries than this: half of what a full segment holds.
const MERGE_BELOW: u16 = 440;
/// How many entries ahead a split brings near: enough to cover the latency of memory.
const AHEAD: usize = 16;

impl Table {
    /// The segment for a hash, with room for one more entry.
    pub(super) fn make_room(&mut self, inner: u64) -> Seg {
        if self.dir.is_null() {
            let seg = Seg::create(&self.heap, step_lines(0), 0, self.epoch);
            let dir = self.alloc_dir(0);
            // SAFETY: a directory of one word.
            unsafe { dir.write(seg.encode()) };
            self.dir = dir.as_ptr();
            self.dir_bits = 0;
            self.deepest = 1;
            return seg;
        }
        loop {
            let seg = self.seg_of(inner).expect("the directory is there");
            // SAFETY: the segment is ours.
            let count = unsafe { seg.count() };
            if count < limit(seg.lines) {
                return seg;
            }
            let step = step_of(seg.lines);
            if step >= self.split_step(inner, seg) && seg.depth < DEPTH_MAX {
                self.split(inner, seg);
            } else {
                // A hash that puts some 7,000 of 2^40 possible places into one would have to be broken.
                assert!(step < STEP_LAST, "the hash does not spread the keys");
                self.resize(inner, seg, step_lines(step + 1));
            }
        }
    }

    /// From which step on a segment splits: one of the last three, chosen by its prefix.
    fn split_step(&self, inner: u64, seg: Seg) -> usize {
        let prefix = if seg.depth == 0 {
            0
        } else {
            inner >> (64 - seg.depth)
        };
        STEP_FULL - (prefix.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62) as usize % 3
    }

    /// Gives the segment another number of lines.
    fn resize(&mut self, inner: u64, old: Seg, lines: u16) {
        self.save_segment(old);
        let new = Seg::create(&self.heap, lines, old.depth, self.epoch);
        // SAFETY: both segments are ours; the new one has room for all.
        unsafe {
            for number in 0..old.lines {
                for &word in old.line(number).0.iter().filter(|&&word| word != 0) {
                    new.place(word);
                }
            }
            new.set_count(old.count());
            new.set_may_expire(old.may_expire());
            self.point(inner, new);
            old.destroy(&self.heap);
        }
    }

    /// Splits the segment in two; the keys are hashed again for the bit that their tags gain.
    fn split(&mut self, inner: u64, old: Seg) {
        self.save_segment(old);
        if old.depth == self.dir_bits {
            self.double_dir();
        }
        // SAFETY: the segments and the entries are ours and live.
        unsafe {
            let top = 1u32 << (TAG_BITS - 1);
            let words: Vec<u64> = (0..old.lines)
                .flat_map(|number| old.line(number).0)
                .filter(|&word| word != 0)
                .collect();
            let low = words.iter().filter(|&&word| tag_of(word) < top).count() as u16;
            let depth = old.depth + 1;
            let left = Seg::create(&self.heap, step_lines(step_for(low)), depth, self.epoch);
            let right = Seg::create(
                &self.heap,
                step_lines(step_for(words.len() as u16 - low)),
                depth,
                self.epoch,
            );
            for (i, &old_word) in words.iter().enumerate() {
                if let Some(&ahead) = words.get(i + AHEAD) {
                    prefetch(entry_of(ahead).as_ptr());
                }
                let at = entry_of(old_word);
                let hash = self.inner(self.hasher.hash(Entry::new(at).key()));
                let half = if tag_of(old_word) < top { left } else { right };
                half.place(word(half.tag(hash), at));
            }
            left.set_count(low);
            right.set_count(words.len() as u16 - low);
            left.set_may_expire(old.may_expire());
            right.set_may_expire(old.may_expire());
            let bit = 1u64 << (63 - old.depth);
            self.point(inner & !bit, left);
            self.point(inner | bit, right);
            if depth == self.dir_bits {
                self.deepest += 2;
            }
            old.destroy(&self.heap);
        }
    }

    /// Gives back what a segment has too much: merges it with its buddy, or takes a smaller size.
    #[cold]
    pub(super) fn shrink(&mut self, inner: u64) {
        loop {
            let seg = self.seg_of(inner).expect("shrinking starts from a segment");
            // SAFETY: the segment is ours.
            let count = unsafe { seg.count() };
            if seg.depth == 0 {
                if self.len == 0 {
                    self.save_segment(seg);
                    // SAFETY: nothing is left in the only segment, and the directory goes with it.
                    unsafe { seg.destroy(&self.heap) };
                    self.free_dir();
                    self.dir_bits = 0;
                    self.deepest = 0;
                    return;
                }
            } else {
                let buddy = self
                    .seg_of(inner ^ 1u64 << (64 - seg.depth))
                    .expect("the directory is full");
                // SAFETY: the segment is ours.
                if buddy.depth == seg.depth && count + unsafe { buddy.count() } < MERGE_BELOW {
                    self.merge(inner, seg, buddy);
                    continue;
                }
            }
            let lines = step_lines(step_for(count));
            if lines < seg.lines {
                self.resize(inner, seg, lines);
            }
            return;
        }
    }

    /// Merges two buddies; tags take the lost bit of the prefix back.
    fn merge(&mut self, inner: u64, seg: Seg, buddy: Seg) {
        self.save_segment(seg);
        self.save_segment(buddy);
        let bit = 1u64 << (64 - seg.depth);
        let (left, right) = if inner & bit == 0 {
            (seg, buddy)
        } else {
            (buddy, seg)
        };
        // SAFETY: the segments are ours; the new one has room for all.
        unsafe {
            let count = left.count() + right.count();
            let new = Seg::create(
                &self.heap,
                step_lines(step_for(count)),
                seg.depth - 1,
                self.epoch,
            );
            for (half, old) in [left, right].into_iter().enumerate() {
                for number in 0..old.lines {
                    for &old_word in old.line(number).0.iter().filter(|&&word| word != 0) {
                        let tag = (half as u32) << (TAG_BITS - 1) | tag_of(old_word) >> 1;
                        new.place(word(tag, entry_of(old_word)));
                    }
                }
            }
            new.set_count(count);
            new.set_may_expire(left.may_expire() || right.may_expire());
            self.point(inner & !bit, new);
            left.destroy(&self.heap);
            right.destroy(&self.heap);
        }
        if seg.depth == self.dir_bits {
            self.deepest -= 2;
            while self.deepest == 0 && self.dir_bits > 0 {
                self.halve_dir();
            }
        }
    }

    /// Lets all directory words of the segment's prefix name it.
    fn point(&mut self, inner: u64, seg: Seg) {
        let copies = 1usize << (self.dir_bits - seg.depth);
        let first = self.dir_index(inner) & !(copies - 1);
        for index in first..first + copies {
            // SAFETY: the range of a prefix lies inside the directory.
            unsafe { self.dir.add(index).write(seg.encode()) };
        }
    }

    fn double_dir(&mut self) {
        let new = self.alloc_dir(self.dir_bits + 1);
        // SAFETY: the new directory has twice the words.
        unsafe {
            for index in 0..1usize << self.dir_bits {
                let word = self.dir.add(index).read();
                new.add(2 * index).write(word);
                new.add(2 * index + 1).write(word);
            }
        }
        self.free_dir();
        self.dir = new.as_ptr();
        self.dir_bits += 1;
        self.deepest = 0;
    }

    fn halve_dir(&mut self) {
        let bits = self.dir_bits - 1;
        let new = self.alloc_dir(bits);
        let mut deepest = 0;
        // SAFETY: no segment needs the last bit, so words come in equal pairs.
        unsafe {
            for index in 0..1usize << bits {
                let word = self.dir.add(2 * index).read();
                debug_assert_eq!(word, self.dir.add(2 * index + 1).read());
                deepest += u32::from(Seg::decode(word).depth == bits);
                new.add(index).write(word);
            }
        }
        self.free_dir();
        self.dir = new.as_ptr();
        self.dir_bits = bits;
        self.deepest = deepest;
    }

    /// Replaces segments that lie in slabs which are being evacuated. For the walk of compaction.
    pub(super) fn relocate_segment(&mut self, inner: u64, seg: Seg) -> Seg {
        // SAFETY: all directory words that name the segment are replaced.
        let new = unsafe { seg.relocate(&self.heap) };
        self.point(inner, new);
        new
    }

    /// Moves the directory when it lies in a slab that is being evacuated.
    pub(super) fn relocate_dir(&mut self) {
        let Some(old) = std::ptr::NonNull::new(self.dir) else {
            return;
        };
        if self.heap.wants_move(old.cast()) {
            let new = self.alloc_dir(self.dir_bits);
            // SAFETY: both have `2^dir_bits` words.
            unsafe { old.copy_to_nonoverlapping(new, 1usize << self.dir_bits) };
            self.free_dir();
            self.dir = new.as_ptr();
        }
    }
}

const _: () = assert!(WORDS == 8);
