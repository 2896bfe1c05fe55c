//! Walking in hash order: SCAN, KEYS, random keys, samples.

use super::line::{TAG_BITS, WORDS, entry_of, tag_of};
use super::seg::Seg;
use super::{Table, after};
use crate::entry::Entry;

impl Table {
    /// Visits entries in hash order from `from` on, whole lines at a time, until about `budget` entries or lines were seen.
    /// Returns where to go on (a multiple of 2^24, so that 40 bits tell it), or `None` at the end.
    pub(crate) fn scan<'t>(
        &'t self,
        from: u64,
        budget: usize,
        visit: &mut dyn FnMut(Entry<'t>),
    ) -> Option<u64> {
        let mut from = from;
        let mut left = budget.max(1);
        loop {
            let seg = self.seg_of(from)?;
            let start = if seg.depth == 0 {
                0
            } else {
                from >> (64 - seg.depth) << (64 - seg.depth)
            };
            let floor = seg.tag(from);
            let mut line = seg.home(floor);
            while line < seg.lines {
                if left == 0 {
                    return Some(
                        start
                            | u64::from(seg.first_tag(line))
                                << (64 - TAG_BITS - u32::from(seg.depth)),
                    );
                }
                let seen = self.visit_home(seg, line, floor, visit);
                left = left.saturating_sub(seen.max(1));
                line += 1;
            }
            from = after(from, seg.depth)?;
            if left == 0 {
                return Some(from);
            }
        }
    }

    /// Visits all entries whose home is `home` and whose tag is at least `floor`.
    fn visit_home<'t>(
        &'t self,
        seg: Seg,
        home: u16,
        floor: u32,
        visit: &mut dyn FnMut(Entry<'t>),
    ) -> usize {
        let mut seen = 0;
        let mut number = home;
        for _ in 0..seg.lines {
            // SAFETY: the table is borrowed, so segment and entries live unchanged.
            unsafe {
                let line = seg.line(number);
                for &word in line.0.iter().filter(|&&word| word != 0) {
                    let tag = tag_of(word);
                    if tag >= floor && seg.home(tag) == home {
                        visit(Entry::new(entry_of(word)));
                        seen += 1;
                    }
                }
                // Words are displaced past full lines only.
                if line.empty_mask() != 0 {
                    break;
                }
            }
            number = seg.next(number);
        }
        seen
    }

    /// A random entry, each with the same probability: random places of an even grid are drawn until one is taken.
    pub(crate) fn random(&self, mut draw: impl FnMut() -> u64) -> Option<Entry<'_>> {
        if self.len == 0 {
            return None;
        }
        let lines = self.widest();
        for _ in 0..4096 {
            let place = draw();
            let index = (place & ((1u64 << self.dir_bits) - 1)) as usize;
            let line = (((place >> 32) * u64::from(lines)) >> 32) as u16;
            let slot = (place >> 24 & 7) as usize;
            // SAFETY: the index lies in the directory.
            let seg = Seg::decode(unsafe { self.dir.add(index).read() });
            // Of the words that name one segment only the first counts, so all segments are equally likely.
            let aliases = (1usize << (self.dir_bits - seg.depth)) - 1;
            if index & aliases == 0 && line < seg.lines {
                // SAFETY: the table is borrowed, so segment and entries live unchanged.
                unsafe {
                    let word = seg.line(line).0[slot];
                    if word != 0 {
                        return Some(Entry::new(entry_of(word)));
                    }
                }
            }
        }
        self.next_entry(draw())
    }

    /// At least the lines of each segment.
    fn widest(&self) -> u16 {
        // Wider ones come from very uneven splits only; looking for them in each call would cost more than it is worth.
        let full = super::seg::step_lines(super::seg::STEP_FULL);
        if self.dir_bits == 0 {
            self.seg_of(0).map_or(full, |seg| seg.lines)
        } else {
            full
        }
    }

    /// The first entry at or after a place in hash order, round the end.
    fn next_entry(&self, from: u64) -> Option<Entry<'_>> {
        for start in [from, 0] {
            let mut next = Some(start);
            while let Some(from) = next {
                let seg = self.seg_of(from)?;
                for number in seg.home(seg.tag(from))..seg.lines {
                    // SAFETY: the table is borrowed, so segment and entries live unchanged.
                    unsafe {
                        if let Some(&word) = seg.line(number).0.iter().find(|&&word| word != 0) {
                            return Some(Entry::new(entry_of(word)));
                        }
                    }
                }
                next = after(from, seg.depth);
            }
        }
        None
    }

    /// Visits up to `count` entries that follow a random place (for eviction's samples); looks at `8 × count` lines at most.
    pub(crate) fn sample<'t>(
        &'t self,
        random: u64,
        count: usize,
        visit: &mut dyn FnMut(Entry<'t>),
    ) {
        let mut from = random;
        let Some(mut seg) = self.seg_of(from) else {
            return;
        };
        let mut line = seg.home(seg.tag(from));
        // The place within the line is random too, or else the first words of each line would be drawn most.
        let mut slot = (random % WORDS as u64) as usize;
        let mut seen = 0;
        for _ in 0..count * WORDS {
            // SAFETY: the table is borrowed, so segment and entries live unchanged.
            unsafe {
                for &word in seg.line(line).0[slot..].iter().filter(|&&word| word != 0) {
                    visit(Entry::new(entry_of(word)));
                    seen += 1;
                    if seen == count {
                        return;
                    }
                }
            }
            slot = 0;
            line += 1;
            if line == seg.lines {
                from = after(from, seg.depth).unwrap_or(0);
                let Some(next) = self.seg_of(from) else {
                    return;
                };
                seg = next;
                line = 0;
            }
        }
    }
}
