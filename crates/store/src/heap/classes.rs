//! Size classes: which sizes the slabs hand out and how many pages a slab of each class has.
//!
//! Sizes go in steps of 8 bytes up to 512, of 16 up to 1 KiB, and of about 6 % up to 16 KiB. Above 1 KiB the sizes are those
//! that tile a run of at most 8 pages with at most 3 % left over; all line arrays of the table (multiples of 64 bytes) are
//! among them, so that they waste nothing. This module is arithmetic only and must never allocate.

/// Bytes of a page, the unit in which slabs are cut.
pub(crate) const PAGE_BYTES: usize = 4096;
/// The most pages that a slab has.
pub(crate) const SLAB_PAGES_MAX: usize = 8;
/// The largest object that a slab holds; anything larger comes from the system allocator.
pub(crate) const SLAB_OBJECT_MAX: usize = 16 * 1024;

const LARGE: [u16; 42] = [
    1088, 1152, 1216, 1280, 1360, 1408, 1488, 1536, 1632, 1712, 1792, 1920, 2048, 2176, 2304, 2448,
    2560, 2720, 2816, 2976, 3072, 3264, 3408, 3584, 4096, 4608, 4912, 5120, 5456, 5632, 5728, 6144,
    6656, 6816, 7168, 8192, 9552, 10240, 10912, 12288, 14336, 16384,
];
const FINE: usize = 63; // 16, 24, …, 512
const MEDIUM: usize = 32; // 528, 544, …, 1024

/// How many classes there are.
pub(crate) const CLASSES: usize = FINE + MEDIUM + LARGE.len();

/// A size class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Class(pub(crate) u8);

/// What a class means.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassInfo {
    /// Bytes of each object.
    pub(crate) size: u16,
    /// Pages of each slab.
    pub(crate) pages: u8,
    /// Objects of each slab.
    pub(crate) objects: u16,
}

pub(crate) static INFO: [ClassInfo; CLASSES] = build_info();
static OF_LARGE: [u8; SLAB_OBJECT_MAX / 16 + 1] = build_large_index();

impl Class {
    /// The smallest class that holds `size` bytes; `None` above `SLAB_OBJECT_MAX`.
    #[inline]
    pub(crate) fn of(size: usize) -> Option<Self> {
        if size <= 512 {
            let size = if size < 16 { 16 } else { size };
            Some(Self((size.div_ceil(8) - 2) as u8))
        } else if size <= SLAB_OBJECT_MAX {
            Some(Self(OF_LARGE[size.div_ceil(16)]))
        } else {
            None
        }
    }

    #[inline]
    pub(crate) fn info(self) -> ClassInfo {
        INFO[self.0 as usize]
    }
}

/// The bytes that an allocation of `size` bytes really takes.
#[inline]
pub(crate) fn real_size(size: usize) -> usize {
    match Class::of(size) {
        Some(class) => class.info().size as usize,
        None => size.next_multiple_of(64),
    }
}

const fn build_info() -> [ClassInfo; CLASSES] {
    let mut info = [ClassInfo {
        size: 0,
        pages: 0,
        objects: 0,
    }; CLASSES];
    let mut i = 0;
    while i < CLASSES {
        let size = if i < FINE {
            16 + 8 * i
        } else if i < FINE + MEDIUM {
            512 + 16 * (i - FINE + 1)
        } else {
            LARGE[i - FINE - MEDIUM] as usize
        };
        let pages = pages_for(size);
        info[i] = ClassInfo {
            size: size as u16,
            pages: pages as u8,
            objects: (pages * PAGE_BYTES / size) as u16,
        };
        i += 1;
    }
    info
}

/// The fewest pages whose tail is at most 3 %.
const fn pages_for(size: usize) -> usize {
    let mut pages = size.div_ceil(PAGE_BYTES);
    while pages < SLAB_PAGES_MAX {
        let bytes = pages * PAGE_BYTES;
        if (bytes % size) * 100 <= bytes * 3 {
            return pages;
        }
        pages += 1;
    }
    SLAB_PAGES_MAX
}

const fn build_large_index() -> [u8; SLAB_OBJECT_MAX / 16 + 1] {
    let info = build_info();
    let mut index = [0u8; SLAB_OBJECT_MAX / 16 + 1];
    let mut class = 0;
    let mut i = 0;
    while i < index.len() {
        while (info[class].size as usize) < i * 16 {
            class += 1;
        }
        index[i] = class as u8;
        i += 1;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_gets_the_smallest_class_that_holds_it() {
        for size in 1..=SLAB_OBJECT_MAX {
            let class = Class::of(size).expect("within the slab sizes");
            assert!(class.info().size as usize >= size, "{size}");
            if class.0 > 0 {
                assert!((INFO[class.0 as usize - 1].size as usize) < size, "{size}");
            }
        }
        assert!(Class::of(SLAB_OBJECT_MAX + 1).is_none());
    }

    #[test]
    fn slab_tails_waste_at_most_three_per_cent() {
        for info in INFO {
            let bytes = info.pages as usize * PAGE_BYTES;
            let waste = bytes - info.size as usize * info.objects as usize;
            assert!(waste * 100 <= bytes * 3, "{info:?}");
            assert!(info.pages as usize <= SLAB_PAGES_MAX);
        }
    }
}
