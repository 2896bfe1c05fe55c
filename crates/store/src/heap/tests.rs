//! The heap against a model: no overlap, contents survive, counters are exact, memory goes back.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use std::collections::BTreeMap;

const SPAN: usize = 1 << 30;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn size(random: &mut Random) -> usize {
    match random.below(20) {
        0 => 1 + random.below(40_000) as usize,
        1..=3 => 1 + random.below(5_000) as usize,
        _ => 1 + random.below(600) as usize,
    }
}

struct Model {
    /// Address → size, fill byte, purpose.
    live: BTreeMap<usize, (usize, u8, Purpose)>,
    used: [u64; 3],
}

impl Model {
    fn alloc(&mut self, heap: &HeapRef, size: usize, purpose: Purpose, fill: u8) {
        let object = heap.alloc(purpose, size);
        let at = object.as_ptr() as usize;
        assert_eq!(
            at % if real_size(size).is_multiple_of(64) {
                64
            } else {
                8
            },
            0
        );
        let before = self.live.range(..=at).next_back();
        assert!(
            before.is_none_or(|(&start, &(length, ..))| start + length <= at),
            "overlaps the one before"
        );
        assert!(
            self.live
                .range(at..)
                .next()
                .is_none_or(|(&start, _)| at + size <= start),
            "overlaps the one after"
        );
        // SAFETY: the heap gave `size` bytes.
        unsafe { object.write_bytes(fill, size) };
        self.live.insert(at, (size, fill, purpose));
        self.used[purpose as usize] += real_size(size) as u64;
    }

    fn free(&mut self, heap: &HeapRef, at: usize) {
        let (size, fill, purpose) = self.live.remove(&at).unwrap();
        let object = NonNull::new(std::ptr::with_exposed_provenance_mut::<u8>(at)).unwrap();
        // SAFETY: a live object of this heap.
        unsafe {
            let bytes = std::slice::from_raw_parts(object.as_ptr(), size);
            assert!(
                bytes.iter().all(|&byte| byte == fill),
                "somebody wrote into it"
            );
            heap.free(purpose, object, size);
        }
        self.used[purpose as usize] -= real_size(size) as u64;
    }

    fn some(&self, random: &mut Random) -> usize {
        let first = *self.live.keys().next().unwrap();
        let last = *self.live.keys().next_back().unwrap();
        let at = first + random.below((last - first) as u64 + 1) as usize;
        *self.live.range(at..).next().unwrap().0
    }
}

#[test]
fn objects_never_overlap_and_counters_are_exact() {
    let rounds = if cfg!(miri) { 300 } else { 40_000 };
    let heap = Heap::new(3, SPAN).unwrap();
    let handles: Vec<HeapRef> = (0..7).map(|shard| heap.handle(shard)).collect();
    let mut random = Random(0x1234_5678);
    let mut model = Model {
        live: BTreeMap::new(),
        used: [0; 3],
    };
    for round in 0..rounds {
        let handle = &handles[random.below(7) as usize];
        let growing = round % 8_000 < 5_000;
        if model.live.is_empty() || random.below(10) < if growing { 7 } else { 2 } {
            let purpose = [Purpose::Entry, Purpose::Table, Purpose::Tree][random.below(3) as usize];
            let size = size(&mut random);
            model.alloc(handle, size, purpose, round as u8);
        } else {
            let at = model.some(&mut random);
            model.free(handle, at);
        }
        if round % 1_000 == 0 {
            heap.mark_sparse();
            heap.purge(100);
            let usage = heap.usage();
            assert_eq!(
                [usage.entries_bytes, usage.tables_bytes, usage.trees_bytes],
                model.used
            );
            assert_eq!(usage.used_bytes(), heap.used_bytes());
            assert!(usage.resident_bytes >= usage.used_bytes());
        }
    }
    while let Some(&at) = model.live.keys().next() {
        model.free(&handles[0], at);
    }
    assert_eq!(heap.usage().used_bytes(), 0);
}

#[test]
fn freed_memory_goes_back_to_the_system() {
    let heap = Heap::new(1, SPAN).unwrap();
    let handle = heap.handle(0);
    let count = if cfg!(miri) { 2_000 } else { 200_000 };
    let objects: Vec<NonNull<u8>> = (0..count)
        .map(|_| handle.alloc(Purpose::Entry, 120))
        .collect();
    let peak = heap.usage().resident_bytes;
    for object in objects {
        // SAFETY: a live object of this heap.
        unsafe { handle.free(Purpose::Entry, object, 120) };
    }
    while heap.purge(64) {}
    let left = heap.usage().resident_bytes;
    assert!(left < 2 << 20 || cfg!(miri), "{left} of {peak}");
}

#[test]
fn pages_that_went_back_come_again_as_zeros_and_are_usable() {
    let heap = Heap::new(1, SPAN).unwrap();
    let handle = heap.handle(0);
    let count = if cfg!(miri) { 100 } else { 20_000 };
    for round in 0..3u8 {
        let mut objects: Vec<NonNull<u8>> = (0..count)
            .map(|i| handle.alloc(Purpose::Entry, 16 + i % 1_000))
            .collect();
        for (i, object) in objects.iter().enumerate() {
            // SAFETY: a live object of this size.
            unsafe { object.write_bytes(round, 16 + i % 1_000) };
        }
        for (i, object) in objects.drain(..).enumerate() {
            // SAFETY: a live object of this heap and size.
            unsafe {
                assert_eq!(object.read(), round);
                handle.free(Purpose::Entry, object, 16 + i % 1_000);
            }
        }
        while heap.purge(64) {}
    }
    assert_eq!(heap.used_bytes(), 0);
}

#[test]
fn sparse_slabs_are_marked_and_emptied_by_moving() {
    let heap = Heap::new(1, SPAN).unwrap();
    let handle = heap.handle(0);
    let count = if cfg!(miri) { 2_000 } else { 100_000 };
    let mut objects: Vec<NonNull<u8>> = (0..count)
        .map(|_| handle.alloc(Purpose::Entry, 120))
        .collect();
    let peak = heap.usage().resident_bytes;
    let mut random = Random(99);
    objects.retain(|&object| {
        let keep = random.below(10) == 0;
        if !keep {
            // SAFETY: a live object of this heap.
            unsafe { handle.free(Purpose::Entry, object, 120) };
        }
        keep
    });
    for _ in 0..200 {
        heap.mark_sparse();
        for object in &mut objects {
            if handle.wants_move(*object) {
                let moved = handle.alloc(Purpose::Entry, 120);
                // SAFETY: a live object of this heap.
                unsafe { handle.free(Purpose::Entry, *object, 120) };
                *object = moved;
            }
        }
        while heap.purge(64) {}
    }
    let left = heap.usage().resident_bytes;
    assert!(left * 4 < peak || cfg!(miri), "{left} of {peak}");
}
