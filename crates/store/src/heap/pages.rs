//! The page pool: free runs of 1 to 8 pages, shared by all groups.
//!
//! Runs are kept by length in stacks: *dirty* ones still hold memory, *clean* ones were given back to the system or never
//! touched. Runs are never joined: address space costs nothing, only touched pages do. Dirty runs beyond a small reserve are
//! given back in batches by background bites, never on the path of a command.

use super::arena::{Arena, DESC_PAGES, INTERIOR, REGION_PAGES};
use super::classes::{PAGE_BYTES, SLAB_PAGES_MAX};
use std::sync::atomic::Ordering::Relaxed;

/// Dirty pages that are always kept, 256 KiB: enough for the next slabs, and 0.25 bytes a key at a million keys.
const DIRTY_KEEP_PAGES: usize = 64;

/// The first regions stay with small pages: in a small store the few pages that are not touched yet would count.
const SMALL_REGIONS: usize = 8;
/// How many pages beyond the reserve a purge is worth.
const PURGE_AT_LEAST: usize = 64;

/// Runs on their way back to the system.
#[derive(Default)]
pub(crate) struct Purge {
    runs: Vec<(u32, usize)>,
    /// Regions that lose pages for the first time.
    newly_broken: Vec<usize>,
}

impl Purge {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The system calls: neighbouring runs of a region in one.
    pub(crate) fn release(&self, arena: &Arena) {
        for &region in &self.newly_broken {
            arena.keep_small(region);
        }
        let mut rest = &self.runs[..];
        while let Some((&(start, mut pages), mut later)) = rest.split_first() {
            while let Some((&(next, more), behind)) = later.split_first() {
                if next != start + pages as u32 || next % REGION_PAGES as u32 == 0 {
                    break;
                }
                pages += more;
                later = behind;
            }
            arena.release(start, pages);
            rest = later;
        }
    }
}

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
    /// Regions whose last page was handed out, and that are to become huge pages.
    full: Vec<usize>,
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
            full: Vec::new(),
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

    /// Takes up to about `budget_pages` dirty pages, beyond the reserve, out of the pool, to be released and then handed to
    /// `purged`. Empty when there is nothing to give back. Releasing happens without the pool's lock, since it takes system calls.
    pub(crate) fn start_purge(&mut self, arena: &Arena, budget_pages: usize) -> Purge {
        let keep = DIRTY_KEEP_PAGES.max(self.held_pages / 64);
        let mut purge = Purge::default();
        if self.dirty_pages <= keep + PURGE_AT_LEAST {
            return purge;
        }
        let most = budget_pages.min(self.dirty_pages - keep);
        let mut taken = 0;
        'all: for pages in (1..=SLAB_PAGES_MAX).rev() {
            while let Some(run) = pop(arena, &mut self.dirty[pages]) {
                purge.runs.push((run, pages));
                taken += pages;
                if taken >= most {
                    break 'all;
                }
            }
        }
        self.dirty_pages -= taken.min(self.dirty_pages);
        purge.runs.sort_unstable();
        for &(run, _) in &purge.runs {
            let region = run as usize / REGION_PAGES;
            if !std::mem::replace(&mut self.broken[region], true) {
                purge.newly_broken.push(region);
            }
        }
        purge
    }

    /// A region that is in full use, to be made a huge page.
    pub(crate) fn next_full(&mut self) -> Option<usize> {
        while let Some(region) = self.full.pop() {
            if !self.broken[region] {
                return Some(region);
            }
        }
        None
    }

    /// Takes released runs back. True when there is more to purge.
    pub(crate) fn purged(&mut self, arena: &Arena, purge: Purge) -> bool {
        for (run, pages) in purge.runs {
            push(arena, &mut self.clean[pages], run);
        }
        self.dirty_pages > DIRTY_KEEP_PAGES.max(self.held_pages / 64) + PURGE_AT_LEAST
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
            if self.regions > SMALL_REGIONS {
                self.full.push(self.regions - 1);
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
