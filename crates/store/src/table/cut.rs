//! Cuts: what a snapshot needs from the table.
//!
//! Beginning a cut raises the table's epoch. Each line knows the epoch in which it was last saved or made; a line older than a
//! live cut still holds, in its eight words, entries of the state at the cut. The cut's walk hands such lines to its sink and brings
//! them to the present epoch; so does every change, just before it happens. An entry that was there at the cut stands in exactly one old
//! line until that line is saved, because words are moved only between lines that were saved first; so each is handed over exactly once.
//!
//! At most two cuts live. Epochs are bytes that wrap around: a cut ends only when its walk is through, so all lines are of the
//! last few epochs. While no cut lives, all this costs one well-predicted branch.

use super::line::entry_of;
use super::seg::Seg;
use super::{Table, after};
use crate::entry::Entry;
use crate::tree::ByteTree;

/// The most cuts that live at a time.
pub(crate) const CUTS_MAX: usize = 2;

/// Who receives the state at a cut.
pub trait CutSink: Send {
    /// One entry as it was at the cut. A large value comes as a tree of its own, which shares its nodes with the live one.
    fn save(&mut self, entry: Entry<'_>, tree: Option<ByteTree>);
}

struct Cut {
    epoch: u8,
    sink: Box<dyn CutSink>,
    /// How far its walk is; `None` when it is through.
    next: Option<u64>,
}

/// The live cuts, oldest first.
pub(crate) struct Cuts {
    live: Vec<Cut>,
}

impl Table {
    /// Begins a cut: from now on the sink gets every entry of this moment exactly once. False when two live already.
    pub(crate) fn begin_cut(&mut self, sink: Box<dyn CutSink>) -> bool {
        let cuts = self
            .cuts
            .get_or_insert_with(|| Box::new(Cuts { live: Vec::new() }));
        if cuts.live.len() == CUTS_MAX {
            return false;
        }
        self.epoch = self.epoch.wrapping_add(1);
        cuts.live.push(Cut {
            epoch: self.epoch,
            sink,
            next: Some(0),
        });
        true
    }

    /// Goes on with the walk of the oldest cut by about `budget` entries. True when no cut's walk has anything left.
    pub(crate) fn cut_bite(&mut self, budget: usize) -> bool {
        let Some(cuts) = &self.cuts else { return true };
        let Some((which, mut next)) = cuts
            .live
            .iter()
            .enumerate()
            .find_map(|(i, cut)| Some((i, cut.next?)))
        else {
            return true;
        };
        let mut left = budget.max(1);
        loop {
            let Some(seg) = self.seg_of(next) else {
                self.set_next(which, None);
                return false;
            };
            let mut line = seg.home(seg.tag(next));
            while line < seg.lines {
                if left == 0 {
                    let start = if seg.depth == 0 {
                        0
                    } else {
                        next >> (64 - seg.depth) << (64 - seg.depth)
                    };
                    self.set_next(
                        which,
                        Some(start | u64::from(seg.first_tag(line)) << (44 - seg.depth)),
                    );
                    return false;
                }
                self.save_line(seg, line);
                left = left.saturating_sub(4);
                line += 1;
            }
            match after(next, seg.depth) {
                Some(start) => next = start,
                None => {
                    self.set_next(which, None);
                    return false;
                }
            }
        }
    }

    /// Ends the oldest cut and returns its sink, once its walk is through.
    pub(crate) fn end_cut(&mut self) -> Option<Box<dyn CutSink>> {
        let cuts = self.cuts.as_mut()?;
        if cuts.live.first().is_none_or(|cut| cut.next.is_some()) {
            return None;
        }
        let cut = cuts.live.remove(0);
        if cuts.live.is_empty() {
            self.cuts = None;
        }
        Some(cut.sink)
    }

    fn set_next(&mut self, which: usize, next: Option<u64>) {
        if let Some(cuts) = &mut self.cuts {
            cuts.live[which].next = next;
        }
    }

    /// Hands the line's entries to the cuts that still need them.
    #[cold]
    pub(super) fn save_line(&mut self, seg: Seg, number: u16) {
        let Some(cuts) = &mut self.cuts else { return };
        // SAFETY: the segment and its entries are ours; nothing changes while the sink looks.
        unsafe {
            let epoch = seg.epoch(number);
            if epoch == self.epoch {
                return;
            }
            for cut in &mut cuts.live {
                // The distance in the ring of bytes; all epochs in use lie close together.
                if (epoch.wrapping_sub(cut.epoch) as i8) < 0 {
                    for &word in seg.line(number).0.iter().filter(|&&word| word != 0) {
                        let at = entry_of(word);
                        let entry = Entry::new(at);
                        let tree = entry.tree().map(|view| {
                            // The live tree keeps its ownership; the sink gets a share.
                            let live = std::mem::ManuallyDrop::new(ByteTree::from_raw(
                                view.root(),
                                self.heap.clone(),
                            ));
                            let shared = live.share();
                            std::mem::ManuallyDrop::into_inner(live).into_raw();
                            shared
                        });
                        cut.sink.save(entry, tree);
                    }
                }
            }
            seg.set_epoch(number, self.epoch);
        }
    }

    /// Hands all lines of a segment to the cuts that still need them.
    pub(super) fn save_segment(&mut self, seg: Seg) {
        if self.cuts.is_some() {
            for line in 0..seg.lines {
                self.save_line(seg, line);
            }
        }
    }
}
