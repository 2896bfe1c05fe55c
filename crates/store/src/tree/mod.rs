//! Byte sequences of any length in nodes of at most 4 KiB: what large values are made of.
//!
//! A tree has leaves of 4,088 bytes and index nodes of up to 511 children; a missing child stands for zeros, so that writing
//! far beyond the end costs one path and not the gap. The last leaf and index nodes are only as large as what they hold.
//!
//! Every node counts its owners. `share` makes a second owner of the root in constant time (COPY, and the pre-image that a
//! snapshot needs); all mutation passes through one function, `node_mut`, which copies a node that has another owner before it
//! is written. So what was shared never changes, and only what is written afterwards is copied, node by node. This takes the place of an epoch per node:
//! a node that an unfinished cut still needs is exactly one that the cut co-owns.
//!
//! The invariant of a leaf: if it exists, it has room for all bytes of the sequence that fall into it.
#![allow(
    unsafe_code,
    reason = "nodes are counted, resizable and referred to from packed entries"
)]

mod edit;
mod node;
mod read;

pub use edit::ByteTreeMut;
pub use read::{Chunks, TreeRef};

use crate::heap::HeapRef;
use node::NodePtr;
use std::ptr::NonNull;

/// Bytes of a full leaf.
pub const LEAF_BYTES: usize = 4096 - node::HEADER_BYTES;
/// Children of a full index node.
pub(crate) const FAN: usize = LEAF_BYTES / 8;
/// The largest string that lies in its entry; longer ones are trees.
pub const INLINE_MAX: usize = 4096;
/// The longest sequence: far above the 512 MB of a string, and low enough that no height overflows.
pub const TREE_LEN_MAX: u64 = 1 << 40;

/// What an entry keeps of its tree.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawRoot {
    pub(crate) node: Option<NodePtr>,
    pub(crate) len: u64,
    /// Levels of index nodes above the leaves.
    pub(crate) height: u64,
}

const _: () = assert!(size_of::<RawRoot>() == 24);

/// Bytes under a node of this height.
pub(crate) fn span(height: u64) -> u64 {
    (0..height).fold(LEAF_BYTES as u64, |span, _| span.saturating_mul(FAN as u64))
}

/// A byte sequence of its own. Dropping it frees it at once; hand large ones to the shard's lazy queue instead.
pub struct ByteTree {
    root: RawRoot,
    heap: HeapRef,
}

// SAFETY: nodes are shared between trees only read-only, their owner count is atomic, and the heap is Sync.
unsafe impl Send for ByteTree {}
// SAFETY: `&ByteTree` only reads.
unsafe impl Sync for ByteTree {}

impl ByteTree {
    pub(crate) fn new(heap: HeapRef) -> Self {
        Self {
            root: RawRoot {
                node: None,
                len: 0,
                height: 0,
            },
            heap,
        }
    }

    /// # Safety
    /// The caller passes on one ownership of the root's node, which belongs to this heap.
    pub(crate) unsafe fn from_raw(root: RawRoot, heap: HeapRef) -> Self {
        Self { root, heap }
    }

    /// Passes the ownership on to the receiver of the raw root.
    pub(crate) fn into_raw(self) -> RawRoot {
        let root = self.root;
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: `this` is never used nor dropped again; the heap handle is the only other field that owns something.
        drop(unsafe { std::ptr::read(&raw const this.heap) });
        root
    }

    pub(crate) fn heap(&self) -> &HeapRef {
        &self.heap
    }

    /// To read it.
    #[must_use]
    pub fn view(&self) -> TreeRef<'_> {
        // SAFETY: the root lives as long as `self` is borrowed.
        unsafe { TreeRef::new(self.root) }
    }

    /// To write it.
    #[must_use]
    pub fn edit(&mut self) -> ByteTreeMut<'_> {
        let at = NonNull::from(&mut self.root);
        // SAFETY: the root is ours alone for as long as the borrow lasts.
        unsafe { ByteTreeMut::new(at, &self.heap) }
    }

    /// A second tree with the same bytes, in constant time; whichever is written first copies the nodes that it touches.
    #[must_use]
    pub fn share(&self) -> Self {
        if let Some(node) = self.root.node {
            // SAFETY: a live node.
            unsafe { node::retain(node) };
        }
        Self {
            root: self.root,
            heap: self.heap.clone(),
        }
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.root.len
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.len == 0
    }

    /// Frees about `budget_leaves` leaves from the end. True when nothing is left.
    pub(crate) fn free_bite(&mut self, budget_leaves: u64) -> bool {
        let len = self
            .root
            .len
            .saturating_sub(budget_leaves.saturating_mul(LEAF_BYTES as u64));
        if len == 0 || self.root.node.is_none() {
            self.edit().truncate(0);
            return true;
        }
        // SAFETY: a live node.
        let shared = self
            .root
            .node
            .is_some_and(|node| unsafe { node::is_shared(node) });
        if shared {
            // A shared root is only let go.
            self.edit().truncate(0);
            return true;
        }
        self.edit().truncate(len);
        false
    }
}

impl Drop for ByteTree {
    fn drop(&mut self) {
        if let Some(node) = self.root.node.take() {
            // SAFETY: our ownership ends here.
            unsafe { node::release(&self.heap, node, self.root.height) };
        }
    }
}

impl std::fmt::Debug for ByteTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ByteTree")
            .field("len", &self.root.len)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
