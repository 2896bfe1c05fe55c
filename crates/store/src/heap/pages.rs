//! The page pool: free runs of 1 to 8 pages, shared by all groups.
//!
//! Runs are kept by length in stacks: *dirty* ones still hold memory, *clean* ones were given back to the system or never
//! touched. Runs are never joined: address space costs nothing, only touched pages do. Dirty runs beyond a small reserve are
//! given back in batches by background bites, never on the path of a command.

use super::arena::{Arena, DESC_PAGES, INTERIOR, REGION_PAGES};
use super::classes::{PAGE_BYTES, SLAB_PAGES_MAX};
use std::sync::atomic::Ordering::Relaxed;

/// Dirty pages that are always kept: 1 MiB.
const DIRTY_KEEP_PAGES: usize = 256;

pub(crate) struct PagePool {
    dirty: [u32; SLAB_PAGES_MAX + 1],
    clean: [u32; SLAB_PAGES_MAX + 1],
    dirty_pages: usize,
    held_pages: usize,
    regions: usize,
    /// Next page of the newest region that was never handed out, and the end of that region.
    fresh: u32,
    fresh_end: u32,
    /// Regions that already gave pages back, and so were told to stay with small pages.
    broken: Vec<bool>,
}

impl PagePool {
    pub(crate) fn new() -> Self {
        Self {
            dirty: [0; SLAB_PAGES_MAX + 1],
            clean: [0; SLAB_PAGES_MAX + 1],
            dirty_pages: 0,
            held_pages: 0,
            regions: 0,
            fresh: 0,
            fresh_end: 0,
            broken: Vec::new(),
        }
    }

    /// Pages that hold memory for us: in slabs, waiting for the next slab, and the descriptors of all regions.
    pub(crate) fn resident_pages(&self) -> usize {
        self.held_pages + self.dirty_pages + self.regions * DESC_PAGES
    }

    /// A run of `pages` pages; `None` when the span is used up or the system refuses.
    pub(crate) fn take(&mut self, arena: &Arena, pages: usize) -> Option<u32> {
        debug_assert!((1..=SLAB_PAGES_MAX).contains(&pages));
        let run = self
            .take_dirty(arena, pages)
            .or_else(|| pop(arena, &mut self.clean[pages]))
            .or_else(|| self.take_fresh(arena, pages))
            .or_else(|| self.split_clean(arena, pages))?;
        self.held_pages += pages;
        Some(run)
    }

    /// Takes a run back.
    pub(crate) fn give(&mut self, arena: &Arena, run: u32, pages: usize) {
        self.held_pages -= pages;
        self.dirty_pages += pages;
        push(arena, &mut self.dirty[pages], run);
    }

    /// Gives up to about `budget_pages` dirty pages back to the system, beyond the reserve. True when more remain.
    pub(crate) fn purge(&mut self, arena: &Arena, budget_pages: usize) -> bool {
        let keep = DIRTY_KEEP_PAGES.max(self.held_pages / 64);
        // Hysteresis: a purge starts only at twice the reserve's worth, and then goes down to the reserve.
        if self.dirty_pages <= keep + 64 {
            return false;
        }
        let mut batch = Vec::with_capacity(budget_pages.min(256));
        let mut taken = 0;
        'all: for pages in (1..=SLAB_PAGES_MAX).rev() {
            while let Some(run) = pop(arena, &mut self.dirty[pages]) {
                batch.push((run, pages));
                taken += pages;
                if taken >= budget_pages || self.dirty_pages - taken <= keep {
                    break 'all;
                }
            }
        }
        self.dirty_pages -= taken;
        batch.sort_unstable();
        let mut i = 0;
        while i < batch.len() {
            let (start, mut pages) = batch[i];
            let mut j = i + 1;
            while j < batch.len()
                && batch[j].0 == start + pages as u32
                && start / REGION_PAGES as u32 == batch[j].0 / REGION_PAGES as u32
            {
                pages += batch[j].1;
                j += 1;
            }
            self.release(arena, start, pages);
            i = j;
        }
        for (run, pages) in batch {
            push(arena, &mut self.clean[pages], run);
        }
        self.dirty_pages > keep + 64
    }

    fn release(&mut self, arena: &Arena, start: u32, pages: usize) {
        let region = start as usize / REGION_PAGES;
        let first = !self.broken[region];
        self.broken[region] = true;
        arena.release(start, pages, first);
    }

    fn take_dirty(&mut self, arena: &Arena, pages: usize) -> Option<u32> {
        let found = (pages..=SLAB_PAGES_MAX).find(|&length| self.dirty[length] != 0)?;
        let run = pop(arena, &mut self.dirty[found])?;
        self.dirty_pages -= pages;
        if found > pages {
            push(arena, &mut self.dirty[found - pages], run + pages as u32);
        }
        Some(run)
    }

    fn split_clean(&mut self, arena: &Arena, pages: usize) -> Option<u32> {
        let found = (pages..=SLAB_PAGES_MAX).find(|&length| self.clean[length] != 0)?;
        let run = pop(arena, &mut self.clean[found])?;
        if found > pages {
            push(arena, &mut self.clean[found - pages], run + pages as u32);
        }
        Some(run)
    }

    fn take_fresh(&mut self, arena: &Arena, pages: usize) -> Option<u32> {
        if self.fresh + pages as u32 > self.fresh_end {
            if self.regions >= arena.regions() || arena.open_region(self.regions).is_err() {
                return None;
            }
            // What is left of the old region stays usable for shorter runs.
            let rest = (self.fresh_end - self.fresh) as usize;
            if rest > 0 {
                push(arena, &mut self.clean[rest], self.fresh);
            }
            self.fresh = (self.regions * REGION_PAGES + DESC_PAGES) as u32;
            self.fresh_end = ((self.regions + 1) * REGION_PAGES) as u32;
            self.regions += 1;
            self.broken.push(false);
        }
        let run = self.fresh;
        self.fresh += pages as u32;
        Some(run)
    }
}

// Page 0 holds descriptors and is never handed out, so 0 ends a stack.
fn push(arena: &Arena, head: &mut u32, run: u32) {
    let desc = arena.desc(run);
    desc.class.store(INTERIOR, Relaxed);
    desc.next.store(*head, Relaxed);
    *head = run;
}

fn pop(arena: &Arena, head: &mut u32) -> Option<u32> {
    if *head == 0 {
        return None;
    }
    let run = *head;
    *head = arena.desc(run).next.load(Relaxed);
    Some(run)
}

/// Bytes of so many pages.
pub(crate) fn page_bytes(pages: usize) -> u64 {
    (pages * PAGE_BYTES) as u64
}
