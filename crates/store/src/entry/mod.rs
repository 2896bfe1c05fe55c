//! One allocation per key: header, optional expiry, optional memcached section, key, payload.
//!
//! ```text
//! byte  0        type (high 4 bits) | encoding (low 4 bits)
//! byte  1        compact: 0 E M k k k k k     k = key length (0..=31)
//!                wide:    1 E M W V V F 0     W = key length takes 4 bytes (else 1), V = value length takes 1, 2 or 4 bytes
//! bytes 2, 3     access bits (see `access`)
//! compact: byte 4        F | value length (7 bits)
//! wide:    bytes 4…      key length, value length
//! then           E: expiry, 8 bytes, Unix milliseconds
//!                M: memcached section, 13 bytes: client flags 4, CAS 8, state 1
//!                key, payload
//! ```
//! E = has an expiry, M = has a memcached section, F = fetched since it was stored. The compact form makes a 15-byte key with
//! a 100-byte value 120 bytes, a size class of its own; with an expiry 128. Nothing is aligned: all reads are unaligned, from an
//! 8-aligned start. The functions here take raw addresses and must only be called by the table, which owns the entries.
#![allow(unsafe_code, reason = "reads and writes the packed layout of entries")]

mod view;

pub use view::Entry;

use crate::heap::{HeapRef, Purpose, real_size};
use crate::kind::{Encoding, Kind};
use crate::tree::{self, ByteTree};
use std::ptr::NonNull;

const WIDE: u8 = 0x80;
const EXPIRY: u8 = 0x40;
const MC: u8 = 0x20;
const COMPACT_KEY: u8 = 0x1f;
const WIDE_KEY: u8 = 0x10;
const VALUE_WIDTH_SHIFT: u8 = 2;
const WIDE_FETCHED: u8 = 0x02;
const COMPACT_FETCHED: u8 = 0x80;
const COMPACT_VALUE: u8 = 0x7f;

const HEADER_BYTES: usize = 4;
const EXPIRY_BYTES: usize = 8;
const MC_BYTES: usize = 13;

/// The longest key and the longest payload, in bytes (a longer value is a tree).
pub const LENGTH_MAX: usize = u32::MAX as usize;

/// What memcached keeps with a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct McMeta {
    /// The client's flags.
    pub flags: u32,
    /// The unique number of this version of the value.
    pub cas: u64,
    /// State bits, whose meaning belongs to the memcached commands (stale, win token sent).
    pub state: u8,
}

/// What an entry's header says, apart from its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub(crate) kind: Kind,
    pub(crate) encoding: Encoding,
    pub(crate) access: u16,
    pub(crate) fetched: bool,
    pub(crate) expiry: Option<i64>,
    pub(crate) mc: Option<McMeta>,
    pub(crate) payload_len: usize,
}

/// Where the parts lie.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) sections: usize,
    pub(crate) key: usize,
    pub(crate) key_len: usize,
    pub(crate) payload_len: usize,
}

impl Shape {
    #[inline]
    pub(crate) fn payload(self) -> usize {
        self.key + self.key_len
    }

    #[inline]
    pub(crate) fn total(self) -> usize {
        self.key + self.key_len + self.payload_len
    }

    /// The layout that `spec` gives with a key of this length.
    fn of(spec: &Spec, key_len: usize) -> Self {
        let sections = if key_len <= COMPACT_KEY as usize
            && spec.payload_len <= COMPACT_VALUE as usize
        {
            HEADER_BYTES + 1
        } else {
            HEADER_BYTES + if key_len > 255 { 4 } else { 1 } + (1 << value_width(spec.payload_len))
        };
        let key = sections
            + if spec.expiry.is_some() {
                EXPIRY_BYTES
            } else {
                0
            }
            + if spec.mc.is_some() { MC_BYTES } else { 0 };
        Self {
            sections,
            key,
            key_len,
            payload_len: spec.payload_len,
        }
    }
}

/// log2 of the bytes of the value length.
fn value_width(payload_len: usize) -> u8 {
    match payload_len {
        0..=0xff => 0,
        0x100..=0xffff => 1,
        _ => 2,
    }
}

/// Reads the layout of an entry.
///
/// # Safety
/// `at` is a live entry.
#[inline]
pub(crate) unsafe fn shape(at: NonNull<u8>) -> Shape {
    // SAFETY: every entry has at least 16 bytes (the smallest class), and wide lengths end within 12.
    unsafe {
        let head = u64::from_le(at.cast::<u64>().read());
        let flags = (head >> 8) as u8;
        let (sections, key_len, payload_len);
        if flags & WIDE == 0 {
            sections = HEADER_BYTES + 1;
            key_len = (flags & COMPACT_KEY) as usize;
            payload_len = (head >> 32) as usize & COMPACT_VALUE as usize;
        } else {
            let width = (flags >> VALUE_WIDTH_SHIFT) & 3;
            let value_at;
            if flags & WIDE_KEY == 0 {
                key_len = (head >> 32) as usize & 0xff;
                value_at = HEADER_BYTES + 1;
            } else {
                key_len = (head >> 32) as usize;
                value_at = HEADER_BYTES + 4;
            }
            sections = value_at + (1 << width);
            let raw = u32::from_le(at.add(value_at).cast::<u32>().read_unaligned());
            payload_len = match width {
                0 => raw as usize & 0xff,
                1 => raw as usize & 0xffff,
                _ => raw as usize,
            };
        }
        let extra = if flags & EXPIRY != 0 { EXPIRY_BYTES } else { 0 }
            + if flags & MC != 0 { MC_BYTES } else { 0 };
        Shape {
            sections,
            key: sections + extra,
            key_len,
            payload_len,
        }
    }
}

/// Whether the entry's key is `key`.
///
/// # Safety
/// `at` is a live entry.
#[inline]
pub(crate) unsafe fn key_is(at: NonNull<u8>, key: &[u8]) -> bool {
    // SAFETY: as promised by the caller.
    unsafe { same_key(Entry::new(at).key(), key) }
}

/// Equality of keys; those of 8 to 16 bytes, which are most, without a call and a loop.
#[inline]
fn same_key(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a.first_chunk::<8>(), b.first_chunk::<8>()) {
        (Some(first_a), Some(first_b)) if a.len() <= 16 => {
            first_a == first_b && a.last_chunk::<8>() == b.last_chunk::<8>()
        }
        _ => a == b,
    }
}

/// Makes an entry with this header and key. Its payload holds stale bytes, which the caller must overwrite.
pub(crate) fn create(heap: &HeapRef, key: &[u8], spec: &Spec) -> NonNull<u8> {
    assert!(
        key.len() <= LENGTH_MAX && spec.payload_len <= LENGTH_MAX,
        "lengths are checked by the commands"
    );
    let shape = Shape::of(spec, key.len());
    let at = heap.alloc(Purpose::Entry, shape.total());
    // SAFETY: the allocation has `total` bytes, so all parts lie inside; it is ours alone.
    unsafe {
        write_head(at, spec, shape);
        at.add(shape.key)
            .copy_from_nonoverlapping(NonNull::from(key).cast(), key.len());
    }
    at
}

/// What of an entry outlives a new header.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Key and payload; new payload bytes are zero.
    Payload,
    /// The key; the payload holds stale bytes, which the caller must overwrite.
    KeyOnly,
}

/// Gives an entry a new header, keeping its key and, when asked, the first bytes of its payload. It stays
/// where it is when its size class does, else it moves and the old place is freed.
///
/// # Safety
/// `at` is a live entry of this heap that nobody else looks at; afterwards only the returned address is valid. When the
/// entry holds a tree, `spec` must keep the payload whole and the encoding a tree's.
pub(crate) unsafe fn rebuild(
    heap: &HeapRef,
    at: NonNull<u8>,
    spec: &Spec,
    keep: Keep,
) -> NonNull<u8> {
    assert!(
        spec.payload_len <= LENGTH_MAX,
        "lengths are checked by the commands"
    );
    // SAFETY: `at` is live; both layouts lie inside their allocations, since they are sized by `total`.
    unsafe {
        let old = shape(at);
        let new = Shape::of(spec, old.key_len);
        let kept = match keep {
            Keep::Payload => old.payload_len.min(new.payload_len),
            Keep::KeyOnly => 0,
        };
        let target = if real_size(old.total()) == real_size(new.total()) {
            at
        } else {
            heap.alloc(Purpose::Entry, new.total())
        };
        if target != at || old.key != new.key {
            at.add(old.key)
                .copy_to(target.add(new.key), old.key_len + kept);
        }
        write_head(target, spec, new);
        if matches!(keep, Keep::Payload) {
            target
                .add(new.payload() + kept)
                .write_bytes(0, new.payload_len - kept);
        }
        if target != at {
            heap.free(Purpose::Entry, at, old.total());
        }
        target
    }
}

/// Copies an entry to a new place and frees the old one (compaction).
///
/// # Safety
/// As for `rebuild`.
pub(crate) unsafe fn relocate(heap: &HeapRef, at: NonNull<u8>) -> NonNull<u8> {
    // SAFETY: the copy has the same length; a tree root is moved as bytes and keeps its one owner.
    unsafe {
        let total = shape(at).total();
        let target = heap.alloc(Purpose::Entry, total);
        at.copy_to_nonoverlapping(target, total);
        heap.free(Purpose::Entry, at, total);
        target
    }
}

/// Frees an entry; a tree that it held is returned.
///
/// # Safety
/// `at` is a live entry of this heap, and no word of the table names it any more.
pub(crate) unsafe fn destroy(heap: &HeapRef, at: NonNull<u8>) -> Option<ByteTree> {
    // SAFETY: as promised by the caller; the tree's ownership passes on because the entry goes.
    unsafe {
        let tree = take_tree(heap, at);
        let total = shape(at).total();
        heap.free(Purpose::Entry, at, total);
        tree
    }
}

/// Takes the tree out of an entry, which must then get another payload or be freed.
///
/// # Safety
/// `at` is a live entry of this heap.
pub(crate) unsafe fn take_tree(heap: &HeapRef, at: NonNull<u8>) -> Option<ByteTree> {
    // SAFETY: an entry whose encoding is a tree's has a root as payload, written by `put_root` (the table's rule).
    unsafe {
        if !Entry::new(at).encoding().is_tree() {
            return None;
        }
        let root = at
            .add(shape(at).payload())
            .cast::<tree::RawRoot>()
            .read_unaligned();
        Some(ByteTree::from_raw(root, heap.clone()))
    }
}

/// Writes a tree root as the payload of an entry.
///
/// # Safety
/// `at` is a live entry whose payload has the length of a root and whose encoding is a tree's; it owns no other tree.
pub(crate) unsafe fn put_root(at: NonNull<u8>, tree: ByteTree) {
    // SAFETY: as promised by the caller.
    unsafe { root_place(at).write_unaligned(tree.into_raw()) };
}

/// Where the tree root of an entry stands (unaligned).
///
/// # Safety
/// `at` is a live entry whose payload is a root.
pub(crate) unsafe fn root_place(at: NonNull<u8>) -> NonNull<tree::RawRoot> {
    // SAFETY: as promised by the caller.
    unsafe {
        let shape = shape(at);
        debug_assert_eq!(shape.payload_len, size_of::<tree::RawRoot>());
        at.add(shape.payload()).cast()
    }
}

/// The payload, to write.
///
/// # Safety
/// `at` is a live entry that nobody else looks at for `'a`, and holds no tree.
pub(crate) unsafe fn payload_mut<'a>(at: NonNull<u8>) -> &'a mut [u8] {
    // SAFETY: the payload lies inside the entry and is initialised (heap memory always is).
    unsafe {
        let shape = shape(at);
        std::slice::from_raw_parts_mut(at.add(shape.payload()).as_ptr(), shape.payload_len)
    }
}

/// Writes the access bits in place.
///
/// # Safety
/// `at` is a live entry that nobody else looks at.
#[inline]
pub(crate) unsafe fn set_access(at: NonNull<u8>, bits: u16) {
    // SAFETY: bytes 2 and 3 of every entry.
    unsafe { at.add(2).cast::<u16>().write(bits.to_le()) };
}

/// Notes that the entry was fetched.
///
/// # Safety
/// `at` is a live entry that nobody else looks at.
#[inline]
pub(crate) unsafe fn set_fetched(at: NonNull<u8>) {
    // SAFETY: bytes 1 and 4 of every entry.
    unsafe {
        let flags = at.add(1);
        if flags.read() & WIDE == 0 {
            let length = at.add(4);
            length.write(length.read() | COMPACT_FETCHED);
        } else {
            flags.write(flags.read() | WIDE_FETCHED);
        }
    }
}

/// Writes header, lengths and sections.
///
/// # Safety
/// `at` has room for `shape`, which is `Shape::of(spec, key_len)`.
unsafe fn write_head(at: NonNull<u8>, spec: &Spec, shape: Shape) {
    let mut head = [0u8; HEADER_BYTES + 8];
    head[0] = (spec.kind as u8) << 4 | spec.encoding.number();
    head[2..4].copy_from_slice(&spec.access.to_le_bytes());
    let mut flags =
        if spec.expiry.is_some() { EXPIRY } else { 0 } | if spec.mc.is_some() { MC } else { 0 };
    if shape.sections == HEADER_BYTES + 1 {
        flags |= shape.key_len as u8;
        head[4] = shape.payload_len as u8 | if spec.fetched { COMPACT_FETCHED } else { 0 };
    } else {
        let width = value_width(shape.payload_len);
        flags |= WIDE | width << VALUE_WIDTH_SHIFT | if spec.fetched { WIDE_FETCHED } else { 0 };
        let mut value_at = HEADER_BYTES + 1;
        if shape.key_len > 255 {
            flags |= WIDE_KEY;
            value_at = HEADER_BYTES + 4;
            head[4..8].copy_from_slice(&(shape.key_len as u32).to_le_bytes());
        } else {
            head[4] = shape.key_len as u8;
        }
        let length = (shape.payload_len as u32).to_le_bytes();
        head[value_at..value_at + (1 << width)].copy_from_slice(&length[..1 << width]);
    }
    head[1] = flags;
    // SAFETY: `at` has room for the shape, and the sections lie between the lengths and the key.
    unsafe {
        at.copy_from_nonoverlapping(NonNull::from(&head).cast(), shape.sections);
        let mut next = at.add(shape.sections);
        if let Some(expiry) = spec.expiry {
            next.cast::<i64>().write_unaligned(expiry.to_le());
            next = next.add(EXPIRY_BYTES);
        }
        if let Some(mc) = spec.mc {
            next.cast::<u32>().write_unaligned(mc.flags.to_le());
            next.add(4).cast::<u64>().write_unaligned(mc.cas.to_le());
            next.add(12).write(mc.state);
        }
    }
}

#[cfg(test)]
mod tests;
