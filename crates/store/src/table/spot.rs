//! One key's place in the table, occupied or vacant: the only way in which single entries are changed.

use super::{At, Table};
use crate::entry::{self, Entry, Keep, McMeta, Spec};
use crate::kind::{Encoding, Kind};
use crate::tree::{ByteTree, ByteTreeMut, RawRoot};

/// A value without its key.
pub(crate) struct DetachedParts {
    pub(crate) spec: Spec,
    pub(crate) value: DetachedValue,
}

/// The bytes of a value without its key.
pub(crate) enum DetachedValue {
    Bytes(Box<[u8]>),
    Tree(ByteTree),
}

impl Table {
    /// Removes a key. `None` when it is not there, else the tree that its entry held.
    pub(crate) fn remove_key(&mut self, key: &[u8]) -> Option<Option<ByteTree>> {
        let inner = self.inner(self.hasher.hash(key));
        let at = self.locate(inner, key)?;
        Some(self.remove_at(inner, at))
    }
}

/// One key's place.
pub(crate) struct Spot<'t> {
    table: &'t mut Table,
    inner: u64,
    key: &'t [u8],
    at: Option<At>,
}

impl<'t> Spot<'t> {
    pub(super) fn new(table: &'t mut Table, inner: u64, key: &'t [u8], at: Option<At>) -> Self {
        Self {
            table,
            inner,
            key,
            at,
        }
    }

    #[inline]
    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        self.at.map(|at| self.table.entry(at))
    }

    #[inline]
    pub(crate) fn into_entry(self) -> Option<Entry<'t>> {
        let at = self.at?;
        Some(self.table.entry(at))
    }

    pub(crate) fn key(&self) -> &'t [u8] {
        self.key
    }

    pub(crate) fn table(&self) -> &Table {
        self.table
    }

    /// Writes the access bits. They are no part of the state that a cut keeps.
    #[inline]
    pub(crate) fn set_access(&mut self, bits: u16) {
        if let Some(at) = self.at {
            self.table.set_access(at, bits);
        }
    }

    /// Notes that the entry was fetched.
    #[inline]
    pub(crate) fn set_fetched(&mut self) {
        if let Some(at) = self.at {
            // SAFETY: as above.
            unsafe { entry::set_fetched(self.table.address(at)) };
        }
    }

    /// Stores a value that lies in its entry; `fill` must write the whole payload. Returns the tree that was replaced.
    ///
    /// # Panics
    /// When the encoding is a tree's: a root cannot be written as bytes.
    pub(crate) fn store(&mut self, spec: &Spec, fill: impl FnOnce(&mut [u8])) -> Option<ByteTree> {
        assert!(!spec.encoding.is_tree(), "trees are stored by `store_tree`");
        let replaced = self.shape_for(spec);
        let address = self.table.address(self.at.expect("the entry was made"));
        // SAFETY: a live entry of a table that we hold alone, with a plain payload.
        fill(unsafe { entry::payload_mut(address) });
        replaced
    }

    /// Stores a value that is a tree. Returns the tree that was replaced.
    ///
    /// # Panics
    /// When the encoding is not a tree's.
    pub(crate) fn store_tree(&mut self, spec: &Spec, tree: ByteTree) -> Option<ByteTree> {
        assert!(
            spec.encoding.is_tree(),
            "the encoding must say that the payload is a root"
        );
        assert!(
            std::sync::Arc::ptr_eq(tree.heap().heap(), self.table.heap.heap()),
            "a tree stays in its store"
        );
        let spec = Spec {
            payload_len: size_of::<RawRoot>(),
            ..*spec
        };
        let replaced = self.shape_for(&spec);
        let address = self.table.address(self.at.expect("the entry was made"));
        // SAFETY: the payload has the length of a root, its encoding is a tree's, and the old tree was taken out.
        unsafe { entry::put_root(address, tree) };
        replaced
    }

    /// Brings an entry with this header into being, its payload stale.
    fn shape_for(&mut self, spec: &Spec) -> Option<ByteTree> {
        match self.at {
            Some(at) => {
                self.table.before_change(at.seg, at.line);
                let old = self.table.address(at);
                // SAFETY: a live entry of a table that we hold alone; the tree is taken out before its root is overwritten,
                // and nothing between can panic.
                unsafe {
                    let replaced = entry::take_tree(&self.table.heap, old);
                    self.swap_address(at, spec, Keep::KeyOnly);
                    replaced
                }
            }
            None => {
                let entry = entry::create(&self.table.heap, self.key, spec);
                // SAFETY: a new entry with this key, which is not in the table.
                self.at = Some(unsafe { self.table.insert(self.inner, entry) });
                None
            }
        }
    }

    /// Changes the header (expiry, memcached section, kind, encoding) and keeps the payload.
    ///
    /// # Panics
    /// When the encoding changes between a tree's and a plain one.
    pub(crate) fn change(&mut self, spec: &Spec) {
        let Some(at) = self.at else { return };
        let now = self.table.entry(at).encoding();
        assert!(
            now.is_tree() == spec.encoding.is_tree(),
            "a tree is stored by `store_tree`, a plain value by `store`"
        );
        debug_assert!(!now.is_tree() || spec.payload_len == size_of::<RawRoot>());
        self.table.before_change(at.seg, at.line);
        // SAFETY: a live entry of a table that we hold alone; a tree's root is kept as it is.
        unsafe { self.swap_address(at, spec, Keep::Payload) };
    }

    /// # Safety
    /// As for `entry::rebuild`.
    unsafe fn swap_address(&mut self, at: At, spec: &Spec, keep: Keep) {
        let old = self.table.address(at);
        let had = self.table.entry(at).expiry_ms().is_some();
        // SAFETY: as promised by the caller.
        let new = unsafe { entry::rebuild(&self.table.heap, old, spec, keep) };
        if new != old {
            self.table.set_address(at, new);
        }
        match (had, spec.expiry.is_some()) {
            (false, true) => {
                self.table.expires += 1;
                // SAFETY: the segment is ours.
                unsafe { at.seg.set_may_expire(true) };
            }
            (true, false) => self.table.expires -= 1,
            _ => {}
        }
    }

    /// The payload, to change in place; `None` when there is none, or a tree.
    pub(crate) fn payload_mut(&mut self) -> Option<&mut [u8]> {
        let at = self.at?;
        if self.table.entry(at).encoding().is_tree() {
            return None;
        }
        self.table.before_change(at.seg, at.line);
        // SAFETY: a live entry of a table that we hold alone for as long as `self` is borrowed.
        Some(unsafe { entry::payload_mut(self.table.address(at)) })
    }

    /// The tree, to change in place.
    pub(crate) fn tree_mut(&mut self) -> Option<ByteTreeMut<'_>> {
        let at = self.at?;
        if !self.table.entry(at).encoding().is_tree() {
            return None;
        }
        // A cut gets a share of the tree here, so that the nodes that are written next are copied.
        self.table.before_change(at.seg, at.line);
        // SAFETY: the root of a live entry of a table that we hold alone for as long as `self` is borrowed.
        Some(unsafe {
            ByteTreeMut::new(entry::root_place(self.table.address(at)), &self.table.heap)
        })
    }

    /// Removes the entry. `None` when there is none, else the tree that it held.
    pub(crate) fn remove(&mut self) -> Option<Option<ByteTree>> {
        let at = self.at.take()?;
        Some(self.table.remove_at(self.inner, at))
    }

    /// Removes the entry and returns its value.
    pub(crate) fn take(&mut self) -> Option<DetachedParts> {
        let spec = self.entry()?.spec();
        let bytes = if spec.encoding.is_tree() {
            None
        } else {
            self.entry().map(|entry| Box::from(entry.payload()))
        };
        let tree = self.remove()?;
        let value = match (tree, bytes) {
            (Some(tree), _) => DetachedValue::Tree(tree),
            (None, bytes) => DetachedValue::Bytes(bytes.unwrap_or_default()),
        };
        Some(DetachedParts { spec, value })
    }

    /// A second value with the same bytes; a tree is shared, not copied.
    pub(crate) fn duplicate(&self) -> Option<DetachedParts> {
        let at = self.at?;
        let entry = self.table.entry(at);
        let spec = entry.spec();
        let value = if spec.encoding.is_tree() {
            // SAFETY: a live entry; the taken ownership is given back below, and a share is kept.
            let live = unsafe { entry::take_tree(&self.table.heap, self.table.address(at)) }?;
            let share = live.share();
            live.into_raw();
            DetachedValue::Tree(share)
        } else {
            DetachedValue::Bytes(Box::from(entry.payload()))
        };
        Some(DetachedParts { spec, value })
    }

    /// Stores a detached value. Returns the tree that was replaced.
    pub(crate) fn attach(&mut self, parts: DetachedParts) -> Option<ByteTree> {
        match parts.value {
            DetachedValue::Bytes(bytes) => {
                self.store(&parts.spec, |payload| payload.copy_from_slice(&bytes))
            }
            DetachedValue::Tree(tree) => self.store_tree(&parts.spec, tree),
        }
    }
}

impl DetachedParts {
    pub(crate) fn kind(&self) -> Kind {
        self.spec.kind
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.spec.encoding
    }

    pub(crate) fn mc(&self) -> Option<McMeta> {
        self.spec.mc
    }
}
