//! The table of one shard and database: from a key's hash to its entry.
//!
//! Everything lies in the order of the hash. The bits of the hash below the shard's select a word of the *directory*, which
//! names a *segment*; the next 20 bits are the *tag*, and a key's home line is `tag × lines / 2^20`, which keeps the order.
//! A key lies in its home line or, when that and all between are full, in a following one (round the end of the segment).
//! Nothing is ever deleted by a mark: when a word goes from a full line, a displaced one is pulled back.
//!
//! *Growing.* A segment passes 7/8 full: it takes the next of some thirty sizes (about an eighth more lines). Tags say all that
//! is needed to place the words anew, so no entry is read. At 128 cache lines it splits in two, and only then are its keys hashed again,
//! because the tags move up by one bit of the hash; the entries are brought near first. The size at which a segment splits
//! differs a little from segment to segment, so that they do not all do it at once.
//! *Shrinking.* Below half full a segment takes a smaller size; two buddies that together would be half of a
//! full one merge (the tag gets the lost bit of the prefix back, nothing is read); the directory halves when no segment needs
//! its last bit.
//!
//! *Scanning.* A cursor is a place in hash order, and means the same whatever the sizes are: keys before it were
//! returned, keys after it will be. That is SCAN's guarantee.
//!
//! *Cuts.* Before a line changes, in whatever way, `before_change` is called: while a cut is live, and the line is older, its entries
//! are handed to the cut first. Words move between lines only after both were. See `cut`.
//!
//! The table owns its entries. It must never give out an address that outlives the borrow of the table.
#![allow(
    unsafe_code,
    reason = "packed words name entries and segments by address"
)]

mod cut;
mod line;
mod resize;
mod scan;
mod seg;
mod spot;
mod sweep;

pub use cut::CutSink;
pub(crate) use spot::DetachedParts;
pub(crate) use spot::Spot;
pub(crate) use sweep::Verdict;

use crate::entry::{self, Entry};
use crate::hash::Hasher;
use crate::heap::{HeapRef, Purpose};
use crate::tree::ByteTree;
use cut::Cuts;
use line::{WORDS, bits, entry_of, tag_of};
use seg::Seg;
use std::ptr::NonNull;
use std::sync::Arc;

/// Where a key's word stands.
#[derive(Clone, Copy)]
pub(crate) struct At {
    seg: Seg,
    line: u16,
    slot: u8,
}

/// The keys of one shard in one database. What a lookup reads comes first: in database 0 it shares the cache line of the shard's
/// lock and counters.
#[repr(C)]
pub(crate) struct Table {
    /// `2^dir_bits` directory words, or null while the table is empty.
    dir: *mut u64,
    /// Segments whose local depth is `dir_bits`.
    deepest: u32,
    dir_bits: u8,
    /// The epoch of lines that are written now.
    epoch: u8,
    /// Bits at the top of a hash that selected the shard.
    shard_bits: u8,
    cuts: Option<Box<Cuts>>,
    len: u64,
    expires: u64,
    heap: HeapRef,
    hasher: Arc<Hasher>,
}

const _: () = assert!(size_of::<Table>() == 64);

// SAFETY: the table owns all that it points to; the heap is shared and Sync; sinks are Send.
unsafe impl Send for Table {}
// SAFETY: `&Table` only reads (`CutSink`s are only called through `&mut`).
unsafe impl Sync for Table {}

impl Table {
    pub(crate) fn new(heap: HeapRef, hasher: Arc<Hasher>, shard_bits: u8) -> Self {
        Self {
            dir: std::ptr::null_mut(),
            dir_bits: 0,
            epoch: 0,
            shard_bits,
            len: 0,
            expires: 0,
            cuts: None,
            deepest: 0,
            heap,
            hasher,
        }
    }

    /// How many keys there are, expired ones that still stand included.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// How many of them have an expiry.
    #[inline]
    pub(crate) fn expires(&self) -> u64 {
        self.expires
    }

    pub(crate) fn heap(&self) -> &HeapRef {
        &self.heap
    }

    /// The part of a key's hash that counts inside the shard, moved to the top.
    #[inline]
    fn inner(&self, hash: u64) -> u64 {
        hash << self.shard_bits
    }

    /// The entry of a key, to read.
    #[inline]
    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Option<Entry<'_>> {
        self.locate(self.inner(hash), key).map(|at| self.entry(at))
    }

    /// Where a key stands.
    #[inline]
    pub(crate) fn locate_key(&self, hash: u64, key: &[u8]) -> Option<At> {
        self.locate(self.inner(hash), key)
    }

    /// Writes the access bits of an entry. They are no part of the state that a cut keeps.
    #[inline]
    pub(crate) fn set_access(&mut self, at: At, bits: u16) {
        // SAFETY: a live entry of a table that we hold alone.
        unsafe { entry::set_access(self.address(at), bits) };
    }

    /// The place of a key, to read and write.
    #[inline]
    pub(crate) fn spot<'t>(&'t mut self, hash: u64, key: &'t [u8]) -> Spot<'t> {
        let inner = self.inner(hash);
        let at = self.locate(inner, key);
        Spot::new(self, inner, key, at)
    }

    /// Asks the processor to bring the home line of a hash near.
    #[inline]
    pub(crate) fn prefetch_line(&self, hash: u64) {
        if let Some(seg) = self.seg_of(self.inner(hash)) {
            seg.prefetch(seg.home(seg.tag(self.inner(hash))));
        }
    }

    /// Asks the processor to bring the entries near that could be the key's. Reads the home line.
    #[inline]
    pub(crate) fn prefetch_entry(&self, hash: u64) {
        let inner = self.inner(hash);
        let Some(seg) = self.seg_of(inner) else {
            return;
        };
        let tag = seg.tag(inner);
        let home = seg.home(tag);
        // SAFETY: the table is borrowed, so the segment lives unchanged.
        let line = unsafe { seg.line(home) };
        let (same, empty) = line.compare(tag);
        for slot in bits(same) {
            let at = entry_of(line.0[slot]).as_ptr();
            seg::prefetch(at);
            // An entry of 15 + 100 bytes starts anywhere in its first line and so ends in the third: measured, the third line
            // saves a quarter of the user time of a batch.
            seg::prefetch(at.wrapping_add(64));
            seg::prefetch(at.wrapping_add(128));
        }
        if same == 0 && empty == 0 {
            seg.prefetch(seg.next(home));
        }
    }

    #[inline]
    fn seg_of(&self, inner: u64) -> Option<Seg> {
        if self.dir.is_null() {
            return None;
        }
        // SAFETY: the index has `dir_bits` bits.
        Some(Seg::decode(unsafe {
            self.dir.add(self.dir_index(inner)).read()
        }))
    }

    #[inline]
    fn dir_index(&self, inner: u64) -> usize {
        // Two shifts, because one by 64 (an empty prefix) is no shift.
        (inner >> 1 >> (63 - self.dir_bits)) as usize
    }

    #[inline]
    fn locate(&self, inner: u64, key: &[u8]) -> Option<At> {
        let seg = self.seg_of(inner)?;
        let tag = seg.tag(inner);
        let mut number = seg.home(tag);
        for _ in 0..seg.lines {
            // SAFETY: the table is borrowed, so segment and entries live unchanged.
            unsafe {
                let line = seg.line(number);
                let (same, empty) = line.compare(tag);
                for slot in bits(same) {
                    if entry::key_is(entry_of(line.0[slot]), key) {
                        return Some(At {
                            seg,
                            line: number,
                            slot: slot as u8,
                        });
                    }
                }
                if empty != 0 {
                    return None;
                }
            }
            number = seg.next(number);
        }
        None
    }

    /// The address of the entry at a place.
    #[inline]
    fn address(&self, at: At) -> NonNull<u8> {
        // SAFETY: places are made by `locate` and `insert` and used before the table changes in another way.
        entry_of(unsafe { at.seg.line(at.line).0[at.slot as usize] })
    }

    #[inline]
    pub(crate) fn entry(&self, at: At) -> Entry<'_> {
        // SAFETY: the entry lives and is unchanged while the table is borrowed.
        unsafe { Entry::new(self.address(at)) }
    }

    /// Puts an entry whose key is not there into the table.
    ///
    /// # Safety
    /// `entry` is a live entry of this heap with the key of this hash; its ownership passes to the table.
    unsafe fn insert(&mut self, inner: u64, entry: NonNull<u8>) -> At {
        // SAFETY: the entry is live; segments are ours.
        unsafe {
            let expires = Entry::new(entry).expiry_ms().is_some();
            let seg = self.make_room(inner);
            let word = line::word(seg.tag(inner), entry);
            // The line is known only when a hole is found, so the hook comes before the word is written.
            let at = self.hole(seg, seg.home(seg.tag(inner)));
            self.before_change(seg, at.line);
            seg.set(at.line, at.slot, word);
            seg.set_count(seg.count() + 1);
            self.len += 1;
            if expires {
                self.expires += 1;
                seg.set_may_expire(true);
            }
            at
        }
    }

    fn hole(&self, seg: Seg, home: u16) -> At {
        let mut line = home;
        loop {
            // SAFETY: the segment is ours and has an empty word (`make_room`).
            let empty = unsafe { seg.line(line).empty_mask() };
            if empty != 0 {
                return At {
                    seg,
                    line,
                    slot: empty.trailing_zeros() as u8,
                };
            }
            line = seg.next(line);
        }
    }

    /// Replaces the address of an entry that moved.
    fn set_address(&mut self, at: At, entry: NonNull<u8>) {
        // SAFETY: a place of this table; only the address part changes.
        unsafe {
            let tag = tag_of(at.seg.line(at.line).0[at.slot as usize]);
            at.seg.set(at.line, at.slot, line::word(tag, entry));
        }
    }

    /// Takes the word at a place out of the table; the entry is the caller's to free. Places are void afterwards.
    fn take(&mut self, at: At) -> NonNull<u8> {
        let At { seg, line, slot } = at;
        self.before_change(seg, line);
        let entry = self.address(at);
        // SAFETY: the segment is ours; the entry is live until the caller frees it.
        unsafe {
            self.len -= 1;
            if Entry::new(entry).expiry_ms().is_some() {
                self.expires -= 1;
            }
            let was_full = seg.line(line).empty_mask() == 0;
            seg.set(line, slot, 0);
            seg.set_count(seg.count() - 1);
            if was_full {
                self.pull_back(seg, line, slot);
            }
            entry
        }
    }

    /// Fills a hole in a line that was full with a word that was displaced past it, and so on from there.
    unsafe fn pull_back(&mut self, seg: Seg, hole_line: u16, hole_slot: u8) {
        let (mut hole_line, mut hole_slot) = (hole_line, hole_slot);
        let mut line = seg.next(hole_line);
        // SAFETY: the segment is ours.
        unsafe {
            for _ in 1..seg.lines {
                let words = *seg.line(line);
                let full = words.empty_mask() == 0;
                let distance = round(line, hole_line, seg.lines);
                let displaced = (0..WORDS).find(|&i| {
                    let word = words.0[i];
                    word != 0 && round(line, seg.home(tag_of(word)), seg.lines) >= distance
                });
                if let Some(slot) = displaced {
                    self.before_change(seg, hole_line);
                    self.before_change(seg, line);
                    seg.set(hole_line, hole_slot, words.0[slot]);
                    seg.set(line, slot as u8, 0);
                    if !full {
                        return;
                    }
                    (hole_line, hole_slot) = (line, slot as u8);
                } else if !full {
                    return;
                }
                line = seg.next(line);
            }
        }
    }

    /// Called after keys were taken: gives memory back where it is due.
    #[inline]
    fn settle(&mut self, inner: u64) {
        if let Some(seg) = self.seg_of(inner) {
            // SAFETY: the segment is ours.
            let count = unsafe { seg.count() };
            if count < seg::limit(seg.lines) / 2 {
                self.shrink(inner);
            }
        }
    }

    /// Removes the entry at a place and returns the tree that it held.
    fn remove_at(&mut self, inner: u64, at: At) -> Option<ByteTree> {
        let entry = self.take(at);
        self.settle(inner);
        // SAFETY: no word names the entry any more.
        unsafe { entry::destroy(&self.heap, entry) }
    }

    /// The distinct segments in hash order, each with the start of its range.
    fn segments(&self) -> impl Iterator<Item = (u64, Seg)> + '_ {
        let mut next = if self.dir.is_null() { None } else { Some(0u64) };
        std::iter::from_fn(move || {
            let start = next?;
            let seg = self.seg_of(start)?;
            next = after(start, seg.depth);
            Some((start, seg))
        })
    }

    /// Bytes of line arrays and directory.
    pub(crate) fn memory_bytes(&self) -> usize {
        if self.dir.is_null() {
            return 0;
        }
        self.segments()
            .map(|(_, seg)| seg.memory_bytes())
            .sum::<usize>()
            + dir_bytes(self.dir_bits)
    }

    /// Whether any cut is live.
    #[inline]
    fn before_change(&mut self, seg: Seg, line: u16) {
        if self.cuts.is_some() {
            self.save_line(seg, line);
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if self.dir.is_null() {
            return;
        }
        let segments: Vec<Seg> = self.segments().map(|(_, seg)| seg).collect();
        for seg in segments {
            for number in 0..seg.lines {
                // SAFETY: the table goes; each entry is named by exactly one word, each segment by one run of directory words.
                unsafe {
                    for &word in seg.line(number).0.iter().filter(|&&word| word != 0) {
                        drop(entry::destroy(&self.heap, entry_of(word)));
                    }
                }
            }
            // SAFETY: as above.
            unsafe { seg.destroy(&self.heap) };
        }
        self.free_dir();
    }
}

/// How many lines `to` lies behind `from`, going round.
#[inline]
fn round(to: u16, from: u16, lines: u16) -> u16 {
    if to >= from {
        to - from
    } else {
        to + lines - from
    }
}

/// The start of the range after that of depth `depth` which holds `start`; `None` at the end.
#[inline]
fn after(start: u64, depth: u8) -> Option<u64> {
    if depth == 0 {
        return None;
    }
    let step = 1u64 << (64 - depth);
    (start & !(step - 1)).checked_add(step)
}

fn dir_bytes(bits: u8) -> usize {
    8usize << bits
}

impl Table {
    fn alloc_dir(&self, bits: u8) -> NonNull<u64> {
        self.heap.alloc(Purpose::Table, dir_bytes(bits)).cast()
    }

    fn free_dir(&mut self) {
        if let Some(dir) = NonNull::new(self.dir) {
            // SAFETY: allocated by `alloc_dir` with the same number of bits.
            unsafe {
                self.heap
                    .free(Purpose::Table, dir.cast(), dir_bytes(self.dir_bits))
            };
            self.dir = std::ptr::null_mut();
        }
    }
}

#[cfg(test)]
mod tests;
