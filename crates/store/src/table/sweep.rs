//! Background walks that change what they meet: expiry, ageing of access bits, compaction. They go over lines as they stand, in
//! hash order, a bounded number of entries at a time.

use super::line::{WORDS, entry_of};
use super::seg::Seg;
use super::{At, Table, after};
use crate::entry::{self, Entry};
use crate::tree::ByteTree;

/// What becomes of an entry that a walk met.
pub(crate) enum Verdict {
    Keep,
    /// Keep it with these access bits.
    Access(u16),
    Remove,
}

impl Table {
    /// Shows entries to `judge` from `from` on, until about `budget` were seen; does what it says. Segments without expiring
    /// entries are passed over when `only_expiring`. Trees of removed entries go to `trees`. Returns where to go on.
    pub(crate) fn sweep(
        &mut self,
        from: u64,
        budget: usize,
        only_expiring: bool,
        judge: &mut dyn FnMut(Entry<'_>) -> Verdict,
        trees: &mut dyn FnMut(ByteTree),
    ) -> Option<u64> {
        let mut from = from;
        let mut left = budget.max(1);
        loop {
            let seg = self.seg_of(from)?;
            // SAFETY: the segment is ours.
            if only_expiring && !unsafe { seg.may_expire() } {
                left = left.saturating_sub(1);
            } else {
                let first = seg.home(seg.tag(from));
                let mut any_expiry = first != 0;
                let mut removed = false;
                for number in first..seg.lines {
                    if left == 0 {
                        if removed {
                            self.settle(from);
                        }
                        return Some(position(from, seg, number));
                    }
                    any_expiry |= self.sweep_line(seg, number, judge, trees, &mut removed);
                    left = left.saturating_sub(WORDS);
                }
                if !any_expiry && !removed {
                    // SAFETY: the segment is ours; all of its lines were seen, and none expires.
                    unsafe { seg.set_may_expire(false) };
                }
                if removed {
                    let next = after(from, seg.depth);
                    self.settle(from);
                    match next {
                        Some(next) => from = next,
                        None => return None,
                    }
                    if left == 0 {
                        return Some(from);
                    }
                    continue;
                }
            }
            from = after(from, seg.depth)?;
            if left == 0 {
                return Some(from);
            }
        }
    }

    /// One line; true when it holds entries with an expiry.
    fn sweep_line(
        &mut self,
        seg: Seg,
        line: u16,
        judge: &mut dyn FnMut(Entry<'_>) -> Verdict,
        trees: &mut dyn FnMut(ByteTree),
        removed: &mut bool,
    ) -> bool {
        let mut any_expiry = false;
        for slot in 0..WORDS as u8 {
            let at = At { seg, line, slot };
            // A removal may pull another word into the place, so the place is looked at again.
            loop {
                // SAFETY: the segment is ours and lives: nothing here resizes it.
                let word = unsafe { seg.line(line).0[slot as usize] };
                if word == 0 {
                    break;
                }
                let entry = self.entry(at);
                let expires = entry.expiry_ms().is_some();
                match judge(entry) {
                    Verdict::Keep => {}
                    // SAFETY: a live entry of a table that we hold alone.
                    Verdict::Access(bits) => unsafe { entry::set_access(entry_of(word), bits) },
                    Verdict::Remove => {
                        let taken = self.take(at);
                        // SAFETY: no word names the entry any more.
                        if let Some(tree) = unsafe { entry::destroy(&self.heap, taken) } {
                            trees(tree);
                        }
                        *removed = true;
                        continue;
                    }
                }
                any_expiry |= expires;
                break;
            }
        }
        any_expiry
    }

    /// Moves entries, segments and the directory out of slabs that are being evacuated, from `from` on, until about `budget`
    /// entries were looked at. Returns where to go on.
    pub(crate) fn evacuate(&mut self, from: u64, budget: usize) -> Option<u64> {
        let mut from = from;
        let mut left = budget.max(1);
        if from == 0 {
            self.relocate_dir();
        }
        loop {
            let mut seg = self.seg_of(from)?;
            if seg.wants_move(&self.heap) {
                seg = self.relocate_segment(from, seg);
            }
            for number in seg.home(seg.tag(from))..seg.lines {
                if left == 0 {
                    return Some(position(from, seg, number));
                }
                left = left.saturating_sub(WORDS);
                for slot in 0..WORDS as u8 {
                    // SAFETY: the segment is ours.
                    let word = unsafe { seg.line(number).0[slot as usize] };
                    if word != 0 && self.heap.wants_move(entry_of(word)) {
                        left = left.saturating_sub(WORDS);
                        // SAFETY: the entry is ours alone, and its word is replaced at once. A cut keeps no addresses,
                        // so this is no change that it must see.
                        let moved = unsafe { entry::relocate(&self.heap, entry_of(word)) };
                        self.set_address(
                            At {
                                seg,
                                line: number,
                                slot,
                            },
                            moved,
                        );
                    }
                }
            }
            from = after(from, seg.depth)?;
            if left == 0 {
                return Some(from);
            }
        }
    }

    /// Removes everything from `from` on, about `budget` entries. Returns where to go on, `None` when the table is empty.
    pub(crate) fn clear_bite(
        &mut self,
        from: u64,
        budget: usize,
        trees: &mut dyn FnMut(ByteTree),
    ) -> Option<u64> {
        let next = self.sweep(from, budget, false, &mut |_| Verdict::Remove, trees);
        // Words that were pulled back into lines already passed are met in another round.
        if self.len() == 0 {
            None
        } else {
            Some(next.unwrap_or(0))
        }
    }
}

/// The place in hash order of a line.
fn position(from: u64, seg: Seg, line: u16) -> u64 {
    let start = if seg.depth == 0 {
        0
    } else {
        from >> (64 - seg.depth) << (64 - seg.depth)
    };
    start | u64::from(seg.first_tag(line)) << (44 - u32::from(seg.depth))
}
