//! The heap by size classes for those who watch it: what memcached's `stats slabs` and `stats items` tell.
//!
//! The heap's own classes are fine (137 of them, most 8 or 16 bytes apart) and an implementation detail, so they are summed into the 39 classes of a
//! memcached with its default growth factor of 1.25: class `n` is everything larger than the chunks of class `n - 1` and not larger than its
//! own. The sums are exact for chunks, whatever they belong to; this module must never take more than one group's lock at a time.

use super::classes::{CLASSES, INFO};
use super::group::lock;
use super::{Heap, Purpose};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// How many classes there are; they count from 1.
pub(crate) const COUNT: usize = 39;
/// The largest chunk of each class, in bytes. What is larger than the last belongs to it all the same.
static CHUNK_BYTES: [u32; COUNT] = chunk_bytes();

const fn chunk_bytes() -> [u32; COUNT] {
    let mut sizes = [0; COUNT];
    let mut size = 96u32;
    let mut class = 0;
    while class < COUNT - 1 {
        sizes[class] = size;
        size = (size * 5 / 4).next_multiple_of(8);
        class += 1;
    }
    sizes[COUNT - 1] = 512 * 1024;
    sizes
}

/// The class of a size, from 1 to 39.
pub(crate) fn class_of(size_bytes: u64) -> u8 {
    let below = CHUNK_BYTES.partition_point(|&chunk| u64::from(chunk) < size_bytes);
    below.min(COUNT - 1) as u8 + 1
}

/// What the heap holds of one class of sizes. Line arrays and directories of the tables are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeClass {
    /// The number of the class, from 1.
    pub number: u8,
    /// The largest chunk of the class.
    pub chunk_bytes: u32,
    /// Slabs, of one to eight pages of the system each. A chunk above 16 KiB is a slab of its own.
    pub slabs: u64,
    /// Chunks in these slabs.
    pub chunks: u64,
    /// Chunks in use: entries and nodes of large values.
    pub used_chunks: u64,
    /// Entries among them.
    pub entries: u64,
    /// Bytes of the chunks of these entries.
    pub entries_bytes: u64,
    /// Keys removed because they had expired, by the bytes of the entry and its value.
    pub expired: u64,
    /// Keys removed to make room, likewise.
    pub evicted: u64,
}

impl SizeClass {
    /// Whether there is or was anything of this class.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chunks == 0 && self.expired == 0 && self.evicted == 0
    }
}

/// What is counted by class as it happens, because no list tells it later. All of it is rare.
pub(super) struct Tally {
    classes: [Counts; COUNT],
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            classes: std::array::from_fn(|_| Counts::default()),
        }
    }
}

#[derive(Default)]
struct Counts {
    /// Chunks from the system allocator, and the entries among them.
    big: AtomicU64,
    big_entries: AtomicU64,
    big_entries_bytes: AtomicU64,
    expired: AtomicU64,
    evicted: AtomicU64,
}

impl Tally {
    fn of(&self, size_bytes: u64) -> &Counts {
        &self.classes[usize::from(class_of(size_bytes)) - 1]
    }

    pub(super) fn big_came(&self, purpose: Purpose, size_bytes: u64) {
        if purpose != Purpose::Table {
            let counts = self.of(size_bytes);
            counts.big.fetch_add(1, Relaxed);
            if purpose == Purpose::Entry {
                counts.big_entries.fetch_add(1, Relaxed);
                counts.big_entries_bytes.fetch_add(size_bytes, Relaxed);
            }
        }
    }

    pub(super) fn big_went(&self, purpose: Purpose, size_bytes: u64) {
        if purpose != Purpose::Table {
            let counts = self.of(size_bytes);
            counts.big.fetch_sub(1, Relaxed);
            if purpose == Purpose::Entry {
                counts.big_entries.fetch_sub(1, Relaxed);
                counts.big_entries_bytes.fetch_sub(size_bytes, Relaxed);
            }
        }
    }
}

impl Heap {
    /// A key of this size was removed because it had expired.
    pub(crate) fn note_expired(&self, size_bytes: u64) {
        self.tally.of(size_bytes).expired.fetch_add(1, Relaxed);
    }

    /// A key of this size was removed to make room.
    pub(crate) fn note_evicted(&self, size_bytes: u64) {
        self.tally.of(size_bytes).evicted.fetch_add(1, Relaxed);
    }

    /// Forgets which keys were removed.
    pub(crate) fn forget_removed(&self) {
        for counts in &self.tally.classes {
            counts.expired.store(0, Relaxed);
            counts.evicted.store(0, Relaxed);
        }
    }

    /// All classes in order. Takes some microseconds, and each group's lock once for a moment.
    pub(crate) fn size_classes(&self) -> Vec<SizeClass> {
        let mut sums: Vec<SizeClass> = CHUNK_BYTES
            .iter()
            .zip(1..)
            .zip(&self.tally.classes)
            .map(|((&chunk_bytes, number), counts)| {
                let big = counts.big.load(Relaxed);
                SizeClass {
                    number,
                    chunk_bytes,
                    slabs: big,
                    chunks: big,
                    used_chunks: big,
                    entries: counts.big_entries.load(Relaxed),
                    entries_bytes: counts.big_entries_bytes.load(Relaxed),
                    expired: counts.expired.load(Relaxed),
                    evicted: counts.evicted.load(Relaxed),
                }
            })
            .collect();
        for (index, group) in self.groups.iter().enumerate() {
            if index == self.entry_groups {
                // The tables' own.
                continue;
            }
            let held: [(u32, u32); CLASSES] = lock(&group.lists).census();
            for (info, (slabs, used)) in INFO.iter().zip(held) {
                let sum = &mut sums[usize::from(class_of(u64::from(info.size))) - 1];
                sum.slabs += u64::from(slabs);
                sum.chunks += u64::from(slabs) * u64::from(info.objects);
                sum.used_chunks += u64::from(used);
                if index < self.entry_groups {
                    sum.entries += u64::from(used);
                    sum.entries_bytes += u64::from(used) * u64::from(info.size);
                }
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_belong_to_the_smallest_class_that_holds_them() {
        for (size, class) in [
            (0, 1),
            (96, 1),
            (97, 2),
            (120, 2),
            (121, 3),
            (1184, 12),
            (66_232, 30),
            (66_233, 31),
            (82_792, 31),
            (394_840, 38),
            (394_841, 39),
            (1 << 40, 39),
        ] {
            assert_eq!(class_of(size), class, "{size}");
        }
    }

    #[test]
    fn chunks_come_and_go() {
        let heap = Heap::new(2, 1 << 30).expect("address space");
        let of = |class: usize| heap.size_classes()[class - 1];
        let handle = heap.handle(1);
        let sizes = [
            (Purpose::Entry, 40),
            (Purpose::Entry, 90),
            (Purpose::Tree, 4096),
            (Purpose::Entry, 70_000),
            (Purpose::Table, 64),
        ];
        let chunks = sizes.map(|(purpose, size)| (purpose, size, handle.alloc(purpose, size)));
        let small = of(1);
        assert_eq!(
            (small.used_chunks, small.entries, small.entries_bytes),
            (2, 2, 40 + 96)
        );
        assert!(small.chunks >= 2 && small.slabs == 2);
        let node = of(usize::from(class_of(4096)));
        assert_eq!((node.used_chunks, node.entries), (1, 0));
        let big = of(31);
        assert_eq!((big.slabs, big.used_chunks, big.entries), (1, 1, 1));
        for (purpose, size, chunk) in chunks {
            // SAFETY: allocated above with the same purpose and size.
            unsafe { handle.free(purpose, chunk, size) };
        }
        assert!(
            heap.size_classes()
                .iter()
                .all(|class| class.used_chunks == 0 && class.entries_bytes == 0)
        );
        heap.note_expired(80_000);
        heap.note_evicted(80_000);
        assert_eq!((of(31).expired, of(31).evicted), (1, 1));
        assert!(!of(31).is_empty());
        heap.forget_removed();
        assert!(of(31).is_empty());
    }
}
