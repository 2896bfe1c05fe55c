//! Memory for entries, tables and tree nodes: slabs in groups, pages from one reserved span, exact counters.
//!
//! A [`HeapRef`] is what a shard holds. Entries come from the shard's own group (eight shards or so share one, each with a
//! short lock); line arrays and directories from one group for all, because they are few and large; tree nodes from groups
//! of their own, whose slabs are never evacuated, because nodes may be shared with a snapshot and so cannot move.
//! The heap knows sizes and nothing of what lies in them. It must never be asked to free what it did not give.
#![allow(
    unsafe_code,
    reason = "hands out raw memory and links free objects through it"
)]

mod arena;
mod census;
mod classes;
mod group;
mod pages;

pub use census::SizeClass;
pub(crate) use census::class_of;
pub(crate) use classes::real_size;

use arena::{Arena, INTERIOR, MARK};
use classes::{Class, SLAB_OBJECT_MAX};
use group::{GroupLists, is_marked, lock};
use pages::PagePool;
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};

/// The most groups of entries.
pub(crate) const GROUPS_MAX: usize = 64;
const TREE_GROUPS: usize = 4;
/// Alignment of what the system allocator gives: line arrays may be that large.
const BIG_ALIGN: usize = 64;

/// What memory is used for; each is counted by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// Entries: header, key, small value.
    Entry = 0,
    /// Line arrays and directories.
    Table = 1,
    /// Nodes of large values.
    Tree = 2,
}

/// Bytes in use and bytes held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapUse {
    /// Bytes of entries, by size class.
    pub entries_bytes: u64,
    /// Bytes of line arrays and directories.
    pub tables_bytes: u64,
    /// Bytes of nodes of large values.
    pub trees_bytes: u64,
    /// Bytes that the system gave us and that we did not give back.
    pub resident_bytes: u64,
}

impl HeapUse {
    /// All bytes in use.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.entries_bytes + self.tables_bytes + self.trees_bytes
    }
}

#[repr(align(128))]
struct Group {
    lists: Mutex<GroupLists>,
    used_bytes: AtomicU64,
}

/// All memory of one store.
pub(crate) struct Heap {
    arena: Arena,
    pool: Mutex<PagePool>,
    /// Entry groups, then one for tables, then the tree groups.
    groups: Box<[Group]>,
    entry_groups: usize,
    big_used: [AtomicU64; 3],
    mark_next: AtomicUsize,
    tally: census::Tally,
}

/// A shard's door to the heap.
#[derive(Clone)]
pub(crate) struct HeapRef {
    heap: Arc<Heap>,
    group: u8,
}

impl Heap {
    /// A heap with so many groups for entries. Fails when no address space can be reserved.
    pub(crate) fn new(groups: usize, span_bytes: usize) -> std::io::Result<Arc<Self>> {
        let entry_groups = groups.clamp(1, GROUPS_MAX);
        let all = entry_groups + 1 + TREE_GROUPS;
        Ok(Arc::new(Self {
            arena: Arena::reserve(span_bytes)?,
            pool: Mutex::new(PagePool::new()),
            groups: (0..all)
                .map(|_| Group {
                    lists: Mutex::new(GroupLists::new()),
                    used_bytes: AtomicU64::new(0),
                })
                .collect(),
            entry_groups,
            big_used: Default::default(),
            mark_next: AtomicUsize::new(0),
            tally: census::Tally::default(),
        }))
    }

    pub(crate) fn handle(self: &Arc<Self>, shard: usize) -> HeapRef {
        HeapRef {
            heap: Arc::clone(self),
            group: (shard % self.entry_groups) as u8,
        }
    }

    pub(crate) fn usage(&self) -> HeapUse {
        let sum = |groups: &[Group]| {
            groups
                .iter()
                .map(|group| group.used_bytes.load(Relaxed))
                .sum::<u64>()
        };
        let big: Vec<u64> = self
            .big_used
            .iter()
            .map(|used| used.load(Relaxed))
            .collect();
        let pages = lock(&self.pool).resident_pages();
        HeapUse {
            entries_bytes: sum(&self.groups[..self.entry_groups]) + big[0],
            tables_bytes: sum(&self.groups[self.entry_groups..=self.entry_groups]) + big[1],
            trees_bytes: sum(&self.groups[self.entry_groups + 1..]) + big[2],
            resident_bytes: pages::page_bytes(pages) + big.iter().sum::<u64>(),
        }
    }

    /// All bytes in use, without a lock.
    pub(crate) fn used_bytes(&self) -> u64 {
        let groups = self
            .groups
            .iter()
            .map(|group| group.used_bytes.load(Relaxed))
            .sum::<u64>();
        groups
            + self
                .big_used
                .iter()
                .map(|used| used.load(Relaxed))
                .sum::<u64>()
    }

    /// Gives free pages beyond a reserve back to the system. True when more remain.
    pub(crate) fn purge(&self, budget_pages: usize) -> bool {
        let purge = lock(&self.pool).start_purge(&self.arena, budget_pages);
        if purge.is_empty() {
            return false;
        }
        purge.release(&self.arena);
        lock(&self.pool).purged(&self.arena, purge)
    }

    /// Makes one region that is in full use a huge page, so that far fewer address translations miss. Regions are filled with small pages
    /// first: they are zeroed when they are needed, not 2 MiB at a time, and nothing is resident before it is used. True when there
    /// was one. Takes some hundred microseconds.
    pub(crate) fn make_huge(&self) -> bool {
        let region = lock(&self.pool).next_full();
        if let Some(region) = region {
            self.arena.make_huge(region);
        }
        region.is_some()
    }

    /// Looks for sparse slabs in the next group, in turn. Returns how many slabs are now to be evacuated in addition.
    pub(crate) fn mark_sparse(&self) -> usize {
        let turn = self.mark_next.fetch_add(1, Relaxed) % (self.entry_groups + 1);
        lock(&self.groups[turn].lists).mark_sparse(&self.arena)
    }

    /// Slabs that are being evacuated.
    pub(crate) fn marked(&self) -> usize {
        self.groups
            .iter()
            .map(|group| lock(&group.lists).marked())
            .sum()
    }

    /// How many turns of `mark_sparse` see each group once.
    pub(crate) fn mark_turns(&self) -> usize {
        self.entry_groups + 1
    }
}

impl HeapRef {
    fn group_for(&self, purpose: Purpose) -> usize {
        match purpose {
            Purpose::Entry => self.group as usize,
            Purpose::Table => self.heap.entry_groups,
            Purpose::Tree => self.heap.entry_groups + 1 + self.group as usize % TREE_GROUPS,
        }
    }

    /// Memory for `size_bytes`, 8-aligned (64-aligned when its size class is a multiple of 64). Its bytes are initialised to something.
    /// Ends the process when the system has no memory left.
    #[inline]
    pub(crate) fn alloc(&self, purpose: Purpose, size_bytes: usize) -> NonNull<u8> {
        let Some(class) = Class::of(size_bytes) else {
            return self.alloc_big(purpose, size_bytes);
        };
        let index = self.group_for(purpose);
        let group = &self.heap.groups[index];
        let mut lists = lock(&group.lists);
        let Some(object) = lists.alloc(&self.heap.arena, &self.heap.pool, index as u8, class)
        else {
            out_of_memory(size_bytes);
        };
        add(&group.used_bytes, u64::from(class.info().size));
        object
    }

    /// Gives memory back.
    ///
    /// # Safety
    /// `object` came from `alloc` of a handle of the same heap, for the same purpose and a size of the same class, and is not used any more.
    #[inline]
    pub(crate) unsafe fn free(&self, purpose: Purpose, object: NonNull<u8>, size_bytes: usize) {
        let Some(class) = Class::of(size_bytes) else {
            // SAFETY: as promised by the caller.
            unsafe { self.free_big(purpose, object, size_bytes) };
            return;
        };
        let heap = &*self.heap;
        let (slab, owner) = heap.slab_of(object);
        let group = &heap.groups[owner];
        let mut lists = lock(&group.lists);
        // SAFETY: the object's own slab, group and class.
        unsafe { lists.free(&heap.arena, &heap.pool, slab, object, class) };
        sub(&group.used_bytes, u64::from(class.info().size));
    }

    /// Whether `object` (of `size_bytes`) lies in a slab that is being evacuated.
    #[inline]
    pub(crate) fn wants_move(&self, object: NonNull<u8>) -> bool {
        let heap = &*self.heap;
        heap.arena.contains(object) && is_marked(heap.arena.desc(heap.slab_of(object).0))
    }

    pub(crate) fn heap(&self) -> &Arc<Heap> {
        &self.heap
    }

    #[cold]
    fn alloc_big(&self, purpose: Purpose, size_bytes: usize) -> NonNull<u8> {
        let layout = big_layout(size_bytes);
        // SAFETY: the layout is larger than SLAB_OBJECT_MAX, so not empty. Zeroed, because payloads are handed out as `&mut [u8]`.
        let Some(object) = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }) else {
            out_of_memory(size_bytes);
        };
        self.heap.big_used[purpose as usize].fetch_add(layout.size() as u64, Relaxed);
        self.heap.tally.big_came(purpose, layout.size() as u64);
        object
    }

    #[cold]
    unsafe fn free_big(&self, purpose: Purpose, object: NonNull<u8>, size_bytes: usize) {
        let layout = big_layout(size_bytes);
        self.heap.big_used[purpose as usize].fetch_sub(layout.size() as u64, Relaxed);
        self.heap.tally.big_went(purpose, layout.size() as u64);
        // SAFETY: allocated by `alloc_big` with the layout of the same size.
        unsafe { std::alloc::dealloc(object.as_ptr(), layout) };
    }
}

impl Heap {
    /// The slab of an object, and the group that owns the slab (stable while the object lives).
    #[inline]
    fn slab_of(&self, object: NonNull<u8>) -> (u32, usize) {
        let mut page = self.arena.page_of(object);
        let mut desc = self.arena.desc(page);
        if desc.class.load(Relaxed) == INTERIOR {
            page -= u32::from(desc.free_head.load(Relaxed));
            desc = self.arena.desc(page);
        }
        (page, (desc.group.load(Relaxed) & !MARK) as usize)
    }
}

/// Address space for a store on this machine: four times its memory, at least 64 GiB, at most what page numbers can name (16 TiB).
pub(crate) fn default_span_bytes() -> usize {
    #[cfg(not(miri))]
    // SAFETY: a plain question to the C library.
    let (pages, page) = unsafe {
        (
            libc::sysconf(libc::_SC_PHYS_PAGES),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    #[cfg(miri)]
    let (pages, page) = (0i64, 0i64);
    let memory = (pages.max(0) as usize).saturating_mul(page.max(0) as usize);
    memory.saturating_mul(4).clamp(64 << 30, 8 << 40)
}

fn big_layout(size_bytes: usize) -> Layout {
    debug_assert!(size_bytes > SLAB_OBJECT_MAX);
    Layout::from_size_align(real_size(size_bytes), BIG_ALIGN)
        .expect("lengths are below 2^40 by the entry's limits")
}

// Only written under the group's lock, so a plain load and store is enough and cheaper than a locked add.
fn add(counter: &AtomicU64, bytes: u64) {
    counter.store(counter.load(Relaxed) + bytes, Relaxed);
}

fn sub(counter: &AtomicU64, bytes: u64) {
    counter.store(counter.load(Relaxed) - bytes, Relaxed);
}

#[cold]
fn out_of_memory(size_bytes: usize) -> ! {
    std::alloc::handle_alloc_error(
        Layout::from_size_align(size_bytes, 8)
            .expect("lengths are below 2^40 by the entry's limits"),
    )
}

#[cfg(test)]
mod tests;
