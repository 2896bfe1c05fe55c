//! Reading an entry.

use super::{COMPACT_FETCHED, EXPIRY, EXPIRY_BYTES, MC, McMeta, Spec, WIDE, WIDE_FETCHED, shape};
use crate::access::{AccessPolicy, lru_idle_secs};
use crate::heap::{class_of, real_size};
use crate::kind::{Encoding, Kind};
use crate::tree::{RawRoot, TreeRef};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A look at one entry: key, value and what is kept with them. A copyable reference.
#[derive(Clone, Copy)]
pub struct Entry<'b> {
    at: NonNull<u8>,
    borrowed: PhantomData<&'b [u8]>,
}

// SAFETY: an `Entry` only reads, like `&[u8]`.
unsafe impl Send for Entry<'_> {}
// SAFETY: as above.
unsafe impl Sync for Entry<'_> {}

impl<'b> Entry<'b> {
    /// # Safety
    /// `at` is an entry that lives, and that nobody changes, for `'b`.
    #[inline]
    pub(crate) unsafe fn new(at: NonNull<u8>) -> Self {
        Self {
            at,
            borrowed: PhantomData,
        }
    }

    /// The type.
    #[inline]
    #[must_use]
    pub fn kind(self) -> Kind {
        Kind::from_bits(self.byte(0) >> 4)
    }

    /// The encoding.
    #[inline]
    #[must_use]
    pub fn encoding(self) -> Encoding {
        Encoding::new(self.byte(0))
    }

    /// The key.
    #[inline]
    #[must_use]
    pub fn key(self) -> &'b [u8] {
        // SAFETY: a live entry; the key lies inside it and is not changed for `'b`.
        unsafe {
            let shape = shape(self.at);
            std::slice::from_raw_parts(self.at.add(shape.key).as_ptr(), shape.key_len)
        }
    }

    /// The payload. Of a value in a tree: the bytes of the root, of no use to anybody but the store; ask `tree`.
    #[inline]
    #[must_use]
    pub fn payload(self) -> &'b [u8] {
        // SAFETY: as for the key.
        unsafe {
            let shape = shape(self.at);
            std::slice::from_raw_parts(self.at.add(shape.payload()).as_ptr(), shape.payload_len)
        }
    }

    /// The tree, when the encoding says that the value lies in one.
    #[inline]
    #[must_use]
    pub fn tree(self) -> Option<TreeRef<'b>> {
        if !self.encoding().is_tree() {
            return None;
        }
        // SAFETY: the payload of a tree encoding is a root (the table's rule), which lives as long as the entry does.
        unsafe {
            let root = self
                .at
                .add(shape(self.at).payload())
                .cast::<RawRoot>()
                .read_unaligned();
            Some(TreeRef::new(root))
        }
    }

    /// When it expires, in Unix milliseconds.
    #[inline]
    #[must_use]
    pub fn expiry_ms(self) -> Option<i64> {
        if self.byte(1) & EXPIRY == 0 {
            return None;
        }
        // SAFETY: the flag says that the section is there.
        Some(unsafe {
            i64::from_le(
                self.at
                    .add(shape(self.at).sections)
                    .cast::<i64>()
                    .read_unaligned(),
            )
        })
    }

    /// Whether it has expired: Redis counts a key as expired from the millisecond after its expiry on.
    #[inline]
    #[must_use]
    pub fn is_expired(self, now_ms: i64) -> bool {
        self.expiry_ms().is_some_and(|expiry| now_ms > expiry)
    }

    /// The memcached section.
    #[must_use]
    pub fn mc(self) -> Option<McMeta> {
        let flags = self.byte(1);
        if flags & MC == 0 {
            return None;
        }
        // SAFETY: the flag says that the section is there.
        unsafe {
            let at = self
                .at
                .add(shape(self.at).sections + if flags & EXPIRY != 0 { EXPIRY_BYTES } else { 0 });
            Some(McMeta {
                flags: u32::from_le(at.cast::<u32>().read_unaligned()),
                cas: u64::from_le(at.add(4).cast::<u64>().read_unaligned()),
                state: at.add(12).read(),
            })
        }
    }

    /// Whether it was fetched since it was stored.
    #[must_use]
    pub fn fetched(self) -> bool {
        if self.byte(1) & WIDE == 0 {
            self.byte(4) & COMPACT_FETCHED != 0
        } else {
            self.byte(1) & WIDE_FETCHED != 0
        }
    }

    /// Seconds since the last use (meaningful unless the policy counts uses).
    #[must_use]
    pub fn idle_secs(self, now_ms: i64) -> u64 {
        lru_idle_secs(self.access(), now_ms)
    }

    /// The logarithmic use counter after decay (meaningful when the policy counts uses).
    #[must_use]
    pub fn freq(self, policy: AccessPolicy, now_ms: i64) -> u8 {
        policy.decayed(self.access(), now_ms)
    }

    /// Bytes of memory that it takes, with its tree and its word in the table.
    #[must_use]
    pub fn memory_bytes(self) -> u64 {
        self.own_bytes() + 8 + self.tree().map_or(0, |tree| tree.memory_bytes())
    }

    fn own_bytes(self) -> u64 {
        // SAFETY: a live entry.
        real_size(unsafe { shape(self.at) }.total()) as u64
    }

    /// Bytes of the entry and the length of a value that lies in a tree: what decides its class of sizes. Takes constant time.
    pub(crate) fn size_bytes(self) -> u64 {
        self.own_bytes() + self.tree().map_or(0, |tree| tree.len())
    }

    /// The class of its size in `Store::size_classes`, with a value that lies in a tree.
    #[must_use]
    pub fn size_class(self) -> u8 {
        class_of(self.size_bytes())
    }

    #[inline]
    pub(crate) fn access(self) -> u16 {
        u16::from_le_bytes([self.byte(2), self.byte(3)])
    }

    /// The header as a value, to change and write back.
    pub(crate) fn spec(self) -> Spec {
        Spec {
            kind: self.kind(),
            encoding: self.encoding(),
            access: self.access(),
            fetched: self.fetched(),
            expiry: self.expiry_ms(),
            mc: self.mc(),
            payload_len: self.payload().len(),
        }
    }

    #[inline]
    fn byte(self, index: usize) -> u8 {
        debug_assert!(index < 16);
        // SAFETY: every entry has at least 16 bytes.
        unsafe { self.at.add(index).read() }
    }
}

impl std::fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("kind", &self.kind())
            .field("encoding", &self.encoding())
            .field("key", &self.key())
            .field("payload_len", &self.payload().len())
            .field("expiry_ms", &self.expiry_ms())
            .finish_non_exhaustive()
    }
}
