//! One group of slabs: every size class has a list of the slabs that have room.
//!
//! All of it happens under the group's lock, which is held for some ten nanoseconds. A slab's free objects are linked through
//! their own first two bytes (offset / 8 + 1), so taking one touches only the line that is about to be written anyway, and
//! objects that were never used are not touched at all.

use super::arena::{Arena, INTERIOR, MARK, PageDesc};
use super::classes::{CLASSES, Class, INFO};
use super::pages::PagePool;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

/// How many slabs one search for sparse ones looks at, at most.
const MARK_SEARCH_MAX: u32 = 512;

#[derive(Clone, Copy, Default)]
struct ClassState {
    /// First slab with room, 0 = none.
    head: u32,
    /// Where the next search for sparse slabs goes on in the list, 0 = at its start.
    search: u32,
    slabs: u32,
    /// Slabs that are being evacuated; they are in no list.
    marked: u32,
    used: u32,
}

/// The lists of one group.
pub(crate) struct GroupLists {
    classes: [ClassState; CLASSES],
}

impl GroupLists {
    pub(crate) fn new() -> Self {
        Self {
            classes: [ClassState::default(); CLASSES],
        }
    }

    /// An object of `class`, or `None` when no page can be had.
    pub(crate) fn alloc(
        &mut self,
        arena: &Arena,
        pool: &Mutex<PagePool>,
        group: u8,
        class: Class,
    ) -> Option<NonNull<u8>> {
        let state = &mut self.classes[class.0 as usize];
        let slab = if state.head != 0 {
            state.head
        } else {
            new_slab(arena, pool, group, class, state)?
        };
        let info = INFO[class.0 as usize];
        let desc = arena.desc(slab);
        let free = desc.free_head.load(Relaxed);
        let base = arena.address(slab);
        let object;
        if free != 0 {
            // SAFETY: the link names a free object of this slab (written by `free`), inside its pages.
            unsafe {
                object = base.add((free as usize - 1) * 8);
                desc.free_head.store(object.cast::<u16>().read(), Relaxed);
            }
        } else {
            let fresh = desc.fresh.load(Relaxed);
            // SAFETY: a slab with room and an empty free list has never-used objects left, inside its pages.
            object = unsafe { base.add(fresh as usize * 8) };
            desc.fresh.store(fresh + info.size / 8, Relaxed);
        }
        let used = desc.used.load(Relaxed) + 1;
        desc.used.store(used, Relaxed);
        state.used += 1;
        if used == info.objects {
            unlink(arena, state, slab);
        }
        Some(object)
    }

    /// Takes an object back.
    ///
    /// # Safety
    /// `object` came from `alloc` of this group with the same class, is not used any more, and `slab` is its slab.
    pub(crate) unsafe fn free(
        &mut self,
        arena: &Arena,
        pool: &Mutex<PagePool>,
        slab: u32,
        object: NonNull<u8>,
        class: Class,
    ) {
        let state = &mut self.classes[class.0 as usize];
        let info = INFO[class.0 as usize];
        let desc = arena.desc(slab);
        let offset = object.as_ptr() as usize - arena.address(slab).as_ptr() as usize;
        debug_assert_eq!(desc.class.load(Relaxed), class.0);
        debug_assert_eq!(offset % info.size as usize, 0);
        // SAFETY: the object is ours again and at least 16 bytes large and 8-aligned.
        unsafe { object.cast::<u16>().write(desc.free_head.load(Relaxed)) };
        desc.free_head.store((offset / 8) as u16 + 1, Relaxed);
        let used = desc.used.load(Relaxed) - 1;
        desc.used.store(used, Relaxed);
        state.used -= 1;
        let marked = desc.group.load(Relaxed) & MARK != 0;
        if used == 0 {
            if marked {
                state.marked -= 1;
            } else if info.objects == 1 {
                // A full slab of one object is in no list.
            } else if state.head == slab && desc.next.load(Relaxed) == 0 {
                return; // The only slab with room stays, so that one object coming and going does not cost a slab each time.
            } else {
                unlink(arena, state, slab);
            }
            state.slabs -= 1;
            lock(pool).give(arena, slab, info.pages as usize);
        } else if used + 1 == info.objects && !marked {
            link(arena, state, slab);
        }
    }

    /// Marks sparse slabs for evacuation where a class holds clearly more slabs than its objects need. Returns how many.
    pub(crate) fn mark_sparse(&mut self, arena: &Arena) -> usize {
        let mut found = 0;
        for class in 0..CLASSES {
            found += self.mark_sparse_class(arena, class);
        }
        found
    }

    /// Slabs that are being evacuated.
    pub(crate) fn marked(&self) -> usize {
        self.classes.iter().map(|state| state.marked as usize).sum()
    }

    /// Slabs and objects in use of each class.
    pub(crate) fn census(&self) -> [(u32, u32); CLASSES] {
        self.classes.map(|state| (state.slabs, state.used))
    }

    fn mark_sparse_class(&mut self, arena: &Arena, class: usize) -> usize {
        let state = &mut self.classes[class];
        let objects = u32::from(INFO[class].objects);
        if objects == 1 || state.slabs < 4 {
            return 0;
        }
        // One eighth and two slabs of slack: below that, moving costs more than the pages are worth. Large objects, which are
        // mostly the table's line arrays, are few and change class all the time as they grow; their slabs are kept fuller.
        let (share, spare) = if INFO[class].size > 1024 {
            (32, 1)
        } else {
            (8, 2)
        };
        let needed = (state.used + state.used / share).div_ceil(objects) + spare;
        let active = state.slabs - state.marked;
        if active <= needed {
            return 0;
        }
        let excess = active - needed;
        let average = state.used / state.slabs;
        let mut found = 0;
        if state.search == 0 {
            state.search = state.head;
        }
        for _ in 0..MARK_SEARCH_MAX {
            let slab = state.search;
            if slab == 0 || found as u32 >= excess {
                break;
            }
            let desc = arena.desc(slab);
            state.search = desc.next.load(Relaxed);
            // The first of the list is where new objects go, so also those that are moved.
            if slab != state.head && u32::from(desc.used.load(Relaxed)) <= average + 1 {
                unlink(arena, state, slab);
                desc.group.store(desc.group.load(Relaxed) | MARK, Relaxed);
                state.marked += 1;
                found += 1;
            }
        }
        found
    }
}

/// Whether the slab is being evacuated; may be asked without the lock (a stale answer only delays a move).
#[inline]
pub(crate) fn is_marked(desc: &PageDesc) -> bool {
    desc.group.load(Relaxed) & MARK != 0
}

fn new_slab(
    arena: &Arena,
    pool: &Mutex<PagePool>,
    group: u8,
    class: Class,
    state: &mut ClassState,
) -> Option<u32> {
    let info = class.info();
    let slab = lock(pool).take(arena, info.pages as usize)?;
    for back in 1..u32::from(info.pages) {
        let desc = arena.desc(slab + back);
        desc.class.store(INTERIOR, Relaxed);
        desc.free_head.store(back as u16, Relaxed);
    }
    let desc = arena.desc(slab);
    desc.free_head.store(0, Relaxed);
    desc.fresh.store(0, Relaxed);
    desc.used.store(0, Relaxed);
    desc.class.store(class.0, Relaxed);
    desc.group.store(group, Relaxed);
    state.slabs += 1;
    link(arena, state, slab);
    Some(slab)
}

fn link(arena: &Arena, state: &mut ClassState, slab: u32) {
    let desc = arena.desc(slab);
    desc.prev.store(0, Relaxed);
    desc.next.store(state.head, Relaxed);
    if state.head != 0 {
        arena.desc(state.head).prev.store(slab, Relaxed);
    }
    state.head = slab;
}

fn unlink(arena: &Arena, state: &mut ClassState, slab: u32) {
    let desc = arena.desc(slab);
    let (prev, next) = (desc.prev.load(Relaxed), desc.next.load(Relaxed));
    if state.search == slab {
        state.search = next;
    }
    if prev == 0 {
        state.head = next;
    } else {
        arena.desc(prev).next.store(next, Relaxed);
    }
    if next != 0 {
        arena.desc(next).prev.store(prev, Relaxed);
    }
}

/// A panic elsewhere never leaves these lists half-changed: they are changed by code that does not panic.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
