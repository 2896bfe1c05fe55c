//! Reading a tree.

use super::{FAN, LEAF_BYTES, NodePtr, RawRoot, node, span};
use std::marker::PhantomData;
use std::ops::Range;

static ZEROS: [u8; LEAF_BYTES] = [0; LEAF_BYTES];

/// A look at a byte sequence. A copyable reference.
#[derive(Clone, Copy)]
pub struct TreeRef<'a> {
    root: RawRoot,
    borrowed: PhantomData<&'a [u8]>,
}

impl<'a> TreeRef<'a> {
    /// # Safety
    /// The tree lives and is not changed for `'a`.
    pub(crate) unsafe fn new(root: RawRoot) -> Self {
        Self {
            root,
            borrowed: PhantomData,
        }
    }

    pub(crate) fn root(self) -> RawRoot {
        self.root
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(self) -> u64 {
        self.root.len
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.root.len == 0
    }

    /// The bytes of a range, in pieces. What lies beyond the end is left out.
    #[must_use]
    pub fn chunks(self, range: Range<u64>) -> Chunks<'a> {
        let end = range.end.min(self.root.len);
        Chunks {
            tree: self,
            next: range.start.min(end),
            end,
        }
    }

    /// Appends the bytes of a range to `out`.
    pub fn copy_to(self, range: Range<u64>, out: &mut Vec<u8>) {
        for chunk in self.chunks(range) {
            out.extend_from_slice(chunk);
        }
    }

    /// The byte at a place.
    #[must_use]
    pub fn byte(self, at: u64) -> Option<u8> {
        self.chunks(at..at.saturating_add(1))
            .next()
            .and_then(|chunk| chunk.first().copied())
    }

    /// Bytes of memory of all its nodes (shared ones count fully).
    #[must_use]
    pub fn memory_bytes(self) -> u64 {
        // SAFETY: the tree lives.
        self.root.node.map_or(0, |root| unsafe {
            node::memory_bytes(root, self.root.height)
        })
    }

    /// The leaf that holds byte `at`; `None` stands for zeros.
    fn leaf(self, at: u64) -> Option<NodePtr> {
        let mut node = self.root.node?;
        let mut within = at;
        for height in (1..=self.root.height).rev() {
            let below = span(height - 1);
            let index = (within / below) as usize;
            within %= below;
            if index >= FAN {
                return None;
            }
            // SAFETY: the tree lives, and nodes above height 0 are index nodes.
            node = unsafe { node::child(node, index) }?;
        }
        Some(node)
    }
}

impl std::fmt::Debug for TreeRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreeRef")
            .field("len", &self.root.len)
            .finish_non_exhaustive()
    }
}

/// The pieces of a range.
pub struct Chunks<'a> {
    tree: TreeRef<'a>,
    next: u64,
    end: u64,
}

impl<'a> Iterator for Chunks<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.next >= self.end {
            return None;
        }
        let leaf_at = self.next - self.next % LEAF_BYTES as u64;
        let from = (self.next - leaf_at) as usize;
        let until = (self.end - leaf_at).min(LEAF_BYTES as u64) as usize;
        self.next = leaf_at + until as u64;
        let Some(leaf) = self.tree.leaf(leaf_at) else {
            return Some(&ZEROS[from..until]);
        };
        // SAFETY: a leaf has room for all bytes of the sequence that fall into it, and lives unchanged for `'a`.
        unsafe {
            debug_assert!(until <= node::room(leaf));
            let data = std::slice::from_raw_parts(node::data(leaf).as_ptr(), until);
            Some(&data[from..])
        }
    }
}
