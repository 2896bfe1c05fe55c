//! One key's place in a database, occupied or vacant: where commands read and write.

use crate::access::{AccessPolicy, lfu_of_counter, lru_of_idle};
use crate::entry::{Entry, McMeta, Spec};
use crate::kind::{Encoding, Kind};
use crate::shard::{Header, LazyFree, bump};
use crate::store::DbCount;
use crate::table::{DetachedParts, Spot};
use crate::tree::{ByteTree, ByteTreeMut, TreeRef};

/// What becomes of the expiry when a value is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PutExpiry {
    /// The old one stays.
    Keep,
    /// There is none.
    #[default]
    Clear,
    /// This one, in Unix milliseconds.
    At(i64),
}

/// What becomes of the memcached section when a value is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PutMc {
    /// The old one stays.
    Keep,
    /// There is none.
    #[default]
    Clear,
    /// This one.
    Set(McMeta),
}

/// What is stored with a value. The default clears both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PutMeta {
    /// The expiry.
    pub expiry: PutExpiry,
    /// The memcached section.
    pub mc: PutMc,
}

impl PutMeta {
    /// Keeps expiry and memcached section: for commands that change a value.
    pub const KEEP: Self = Self {
        expiry: PutExpiry::Keep,
        mc: PutMc::Keep,
    };
    /// Clears both: for commands that replace a value.
    pub const CLEAR: Self = Self {
        expiry: PutExpiry::Clear,
        mc: PutMc::Clear,
    };
}

/// A value without its key, with its expiry, access bits and memcached section. For RENAME, MOVE, COPY, RESTORE.
pub struct Detached(pub(crate) DetachedParts);

impl Detached {
    /// The type.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind()
    }

    /// The encoding.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.0.encoding()
    }

    /// The expiry, in Unix milliseconds.
    #[must_use]
    pub fn expiry_ms(&self) -> Option<i64> {
        self.0.spec.expiry
    }

    /// The memcached section.
    #[must_use]
    pub fn mc(&self) -> Option<McMeta> {
        self.0.mc()
    }

    /// Changes the expiry.
    pub fn set_expiry(&mut self, expiry_ms: Option<i64>) {
        self.0.spec.expiry = expiry_ms;
    }
}

impl std::fmt::Debug for Detached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Detached")
            .field("kind", &self.kind())
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy)]
pub(crate) struct SlotContext<'a> {
    pub(crate) count: &'a DbCount,
    pub(crate) header: &'a Header,
    pub(crate) now_ms: i64,
    pub(crate) access: AccessPolicy,
    pub(crate) random: u32,
}

/// One key's place.
pub struct Slot<'a> {
    spot: Spot<'a>,
    lazy: &'a mut LazyFree,
    context: SlotContext<'a>,
    /// An expired entry stands here but is not to be seen.
    hidden: bool,
}

impl<'a> Slot<'a> {
    #[inline]
    pub(crate) fn new(spot: Spot<'a>, lazy: &'a mut LazyFree, context: SlotContext<'a>) -> Self {
        Self {
            spot,
            lazy,
            context,
            hidden: false,
        }
    }

    #[inline]
    pub(crate) fn is_expired(&self) -> bool {
        self.spot
            .entry()
            .is_some_and(|entry| entry.is_expired(self.context.now_ms))
    }

    /// Treats the entry as missing, though it stays.
    pub(crate) fn hide(&mut self) {
        self.hidden = true;
    }

    /// Removes the entry because its time is over.
    #[cold]
    pub(crate) fn expire(&mut self) {
        let size_bytes = self.spot.entry().map_or(0, Entry::size_bytes);
        if let Some(tree) = self.spot.remove() {
            self.finish(tree);
            bump(&self.context.header.expired);
            self.spot.table().heap().heap().note_expired(size_bytes);
        }
    }

    /// The value, if there is one.
    #[inline]
    #[must_use]
    pub fn entry(&self) -> Option<Entry<'_>> {
        if self.hidden { None } else { self.spot.entry() }
    }

    /// The value, for as long as the database is borrowed.
    #[inline]
    #[must_use]
    pub fn into_entry(self) -> Option<Entry<'a>> {
        if self.hidden {
            None
        } else {
            self.spot.into_entry()
        }
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &'a [u8] {
        self.spot.key()
    }

    /// Whether there is a value.
    #[must_use]
    pub fn is_occupied(&self) -> bool {
        self.entry().is_some()
    }

    /// Stores a value, replacing what was there.
    ///
    /// # Panics
    /// When the encoding is a tree's (see `put_tree`).
    #[inline]
    pub fn put(&mut self, kind: Kind, encoding: Encoding, payload: &[u8], meta: PutMeta) {
        self.put_with(kind, encoding, payload.len(), meta, |room| {
            room.copy_from_slice(payload)
        });
    }

    /// Stores a value of `payload_len` bytes that `fill` writes: all of them, since they hold stale bytes before.
    ///
    /// # Panics
    /// As `put`; and when the length is not below 2^32.
    #[inline]
    pub fn put_with(
        &mut self,
        kind: Kind,
        encoding: Encoding,
        payload_len: usize,
        meta: PutMeta,
        fill: impl FnOnce(&mut [u8]),
    ) {
        let spec = self.spec_for(kind, encoding, payload_len, meta);
        let replaced = self.spot.store(&spec, fill);
        self.finish(replaced);
    }

    /// Stores a value that is a tree.
    ///
    /// # Panics
    /// When the encoding is not a tree's.
    pub fn put_tree(&mut self, kind: Kind, encoding: Encoding, tree: ByteTree, meta: PutMeta) {
        let spec = self.spec_for(kind, encoding, 0, meta);
        let replaced = self.spot.store_tree(&spec, tree);
        self.finish(replaced);
    }

    /// The payload, to change in place; `None` when there is no value, or one in a tree.
    pub fn payload_mut(&mut self) -> Option<&mut [u8]> {
        if self.hidden {
            None
        } else {
            self.spot.payload_mut()
        }
    }

    /// Makes the payload longer, with zeros, or shorter, and gives it to change in place. `None` as for `payload_mut`.
    pub fn resize_payload(&mut self, new_len: usize) -> Option<&mut [u8]> {
        let entry = self.entry()?;
        if entry.encoding().is_tree() {
            return None;
        }
        if entry.payload().len() != new_len {
            self.spot.change(&Spec {
                payload_len: new_len,
                ..entry.spec()
            });
        }
        self.spot.payload_mut()
    }

    /// The tree of the value, to read.
    #[must_use]
    pub fn tree(&self) -> Option<TreeRef<'_>> {
        self.entry()?.tree()
    }

    /// The tree of the value, to change in place.
    pub fn tree_mut(&mut self) -> Option<ByteTreeMut<'_>> {
        if self.hidden {
            None
        } else {
            self.spot.tree_mut()
        }
    }

    /// Changes the encoding of a value whose bytes stay. False when there is no value.
    ///
    /// # Panics
    /// When one of the encodings is a tree's and the other is not.
    pub fn set_encoding(&mut self, encoding: Encoding) -> bool {
        self.change(|spec| spec.encoding = encoding)
    }

    /// Sets or clears the expiry, in Unix milliseconds. False when there is no value.
    pub fn set_expiry(&mut self, expiry_ms: Option<i64>) -> bool {
        self.change(|spec| spec.expiry = expiry_ms)
    }

    /// Sets or clears the memcached section. False when there is no value.
    pub fn set_mc(&mut self, mc: Option<McMeta>) -> bool {
        self.change(|spec| spec.mc = mc)
    }

    /// Notes a use: the access bits only, no hit or miss.
    #[inline]
    pub fn touch(&mut self) {
        if let Some(entry) = self.entry() {
            let old = entry.access();
            let bits = self
                .context
                .access
                .touched(old, self.context.now_ms, self.context.random);
            // Many uses within one second write the same bits: then the line stays clean.
            if bits != old {
                self.spot.set_access(bits);
            }
        }
    }

    /// Notes that the value was fetched, for memcached's meta commands.
    pub fn set_fetched(&mut self) {
        if !self.hidden {
            self.spot.set_fetched();
        }
    }

    /// Sets the time of the last use (RESTORE … IDLETIME; OBJECT tests).
    pub fn set_idle_secs(&mut self, idle_secs: u64) {
        self.spot
            .set_access(lru_of_idle(idle_secs, self.context.now_ms));
    }

    /// Sets the use counter (RESTORE … FREQ).
    pub fn set_freq(&mut self, counter: u8) {
        self.spot
            .set_access(lfu_of_counter(counter, self.context.now_ms));
    }

    /// Removes the value; a large one is freed in bites. False when there is none.
    pub fn remove(&mut self) -> bool {
        let Some(tree) = self.spot.remove() else {
            return false;
        };
        self.finish(tree);
        !std::mem::take(&mut self.hidden)
    }

    /// Removes the value and returns it. Trees are moved, not copied.
    pub fn take(&mut self) -> Option<Detached> {
        if self.hidden {
            return None;
        }
        let parts = self.spot.take()?;
        self.finish(None);
        Some(Detached(parts))
    }

    /// A second value with the same bytes and sections. Trees share their nodes until one is written.
    #[must_use]
    pub fn duplicate(&self) -> Option<Detached> {
        if self.hidden {
            None
        } else {
            self.spot.duplicate().map(Detached)
        }
    }

    /// Stores a detached value, with what it brings along, replacing what was there.
    pub fn attach(&mut self, value: Detached) {
        let replaced = self.spot.attach(value.0);
        self.finish(replaced);
    }

    /// An empty tree, to be filled and then stored with `put_tree`.
    #[must_use]
    pub fn new_tree(&self) -> ByteTree {
        ByteTree::new(self.spot.table().heap().clone())
    }

    /// Counts a hit or miss and notes the use.
    #[inline]
    pub(crate) fn count_use(&mut self) {
        if self.is_occupied() {
            bump(&self.context.header.hits);
            self.touch();
        } else {
            bump(&self.context.header.misses);
        }
    }

    fn change(&mut self, edit: impl FnOnce(&mut Spec)) -> bool {
        let Some(entry) = self.entry() else {
            return false;
        };
        let mut spec = entry.spec();
        edit(&mut spec);
        self.spot.change(&spec);
        self.publish();
        true
    }

    #[inline]
    fn spec_for(&self, kind: Kind, encoding: Encoding, payload_len: usize, meta: PutMeta) -> Spec {
        let old = self.entry();
        let access = match old {
            // Overwriting is no new start for a counter, as in Redis.
            Some(entry) if self.context.access.lfu => entry.access(),
            _ => self.context.access.fresh(self.context.now_ms),
        };
        let expiry = match meta.expiry {
            PutExpiry::Keep => old.and_then(Entry::expiry_ms),
            PutExpiry::Clear => None,
            PutExpiry::At(at) => Some(at),
        };
        let mc = match meta.mc {
            PutMc::Keep => old.and_then(Entry::mc),
            PutMc::Clear => None,
            PutMc::Set(mc) => Some(mc),
        };
        Spec {
            kind,
            encoding,
            access,
            fetched: false,
            expiry,
            mc,
            payload_len,
        }
    }

    #[inline]
    fn finish(&mut self, replaced: Option<ByteTree>) {
        if replaced.is_some() {
            self.lazy.tree(replaced);
        }
        // Whatever stands here now, it is not the hidden one.
        self.hidden = false;
        self.publish();
    }

    #[inline]
    fn publish(&self) {
        self.context.count.publish(self.spot.table());
    }
}

impl std::fmt::Debug for Slot<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot")
            .field("entry", &self.entry())
            .finish_non_exhaustive()
    }
}
