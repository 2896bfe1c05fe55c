//! Writing a tree.

use super::node::{self, Slot};
use super::{FAN, LEAF_BYTES, RawRoot, TREE_LEN_MAX, TreeRef, span};
use crate::heap::HeapRef;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

/// A byte sequence to write. The root may stand unaligned inside an entry, so it is read and written as a value; it is
/// whole at every moment, also when a caller's function panics in the middle.
pub struct ByteTreeMut<'a> {
    at: NonNull<RawRoot>,
    heap: &'a HeapRef,
    borrowed: PhantomData<&'a mut RawRoot>,
}

impl<'a> ByteTreeMut<'a> {
    /// # Safety
    /// `at` (unaligned) holds a root of this heap that nobody else looks at for `'a`.
    pub(crate) unsafe fn new(at: NonNull<RawRoot>, heap: &'a HeapRef) -> Self {
        Self {
            at,
            heap,
            borrowed: PhantomData,
        }
    }

    /// To read it.
    #[must_use]
    pub fn view(&self) -> TreeRef<'_> {
        // SAFETY: nobody changes it while `self` is borrowed.
        unsafe { TreeRef::new(self.root()) }
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.root().len
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes `data` at `at`; the sequence grows, with zeros in a gap, when it must.
    ///
    /// # Panics
    /// When the end lies beyond `TREE_LEN_MAX`; commands check their lengths long before.
    pub fn write(&mut self, at: u64, data: &[u8]) {
        let end = at
            .checked_add(data.len() as u64)
            .expect("commands check lengths");
        if data.is_empty() {
            return;
        }
        self.grow(end);
        let mut rest = data;
        self.for_each_mut(at..end, |_, piece| {
            let (now, later) = rest.split_at(piece.len());
            piece.copy_from_slice(now);
            rest = later;
        });
    }

    /// Writes `data` at the end.
    pub fn append(&mut self, data: &[u8]) {
        self.write(self.len(), data);
    }

    /// Makes the sequence at least `len` bytes long; new bytes are zero and cost nothing until they are written.
    ///
    /// # Panics
    /// As for `write`.
    pub fn grow(&mut self, len: u64) {
        assert!(len <= TREE_LEN_MAX, "commands check lengths");
        let old = self.root();
        if len <= old.len {
            return;
        }
        let last = old.len % LEAF_BYTES as u64;
        if last != 0 {
            let leaf_at = old.len - last;
            let want = (len - leaf_at).min(LEAF_BYTES as u64) as usize;
            if self.has_leaf(leaf_at) {
                // SAFETY: `leaf_mut` gives a leaf with `want` bytes of room; the tail may hold bytes from before a truncation.
                unsafe {
                    let leaf = self.leaf_mut(leaf_at, want);
                    node::data(leaf)
                        .add(last as usize)
                        .write_bytes(0, want - last as usize);
                }
            }
        }
        let mut root = self.root();
        while span(root.height) < len {
            if let Some(below) = root.node {
                let top = node::create(self.heap, 8);
                // SAFETY: a fresh index node with room for one child, which takes over the ownership of the old root.
                unsafe { node::child_slot(top, 0).write(Some(below)) };
                root.node = Some(top);
            }
            root.height += 1;
        }
        root.len = len;
        self.set_root(root);
    }

    /// Cuts the sequence to at most `len` bytes.
    pub fn truncate(&mut self, len: u64) {
        let root = self.root();
        if len >= root.len {
            return;
        }
        if len == 0 {
            self.set_root(RawRoot {
                node: None,
                len: 0,
                height: 0,
            });
            if let Some(node) = root.node {
                // SAFETY: the tree's ownership of its old root ends here.
                unsafe { node::release(self.heap, node, root.height) };
            }
            return;
        }
        self.set_root(RawRoot { len, ..root });
        if let Some(mut node) = root.node {
            // The root is brought to an aligned local slot for the walk.
            let mut local = Some(node);
            // SAFETY: the local slot stands for the root's, and is written back below.
            unsafe { cut(self.heap, NonNull::from(&mut local), root.height, len) };
            let mut height = root.height;
            while height > 0 && span(height - 1) >= len {
                node = match local {
                    Some(node) => node,
                    None => break,
                };
                // SAFETY: `cut` left the path of the last byte unshared, and only child 0 below this node.
                unsafe {
                    local = node::child(node, 0);
                    if let Some(child) = local {
                        node::retain(child);
                    }
                    node::release(self.heap, node, height);
                }
                height -= 1;
            }
            if local.is_none() {
                height = (0..)
                    .find(|&height| span(height) >= len)
                    .expect("spans grow without end");
            }
            self.set_root(RawRoot {
                node: local,
                len,
                height,
            });
        }
    }

    /// Calls `f` with the place and the bytes of each piece of a range, to change them. What lies beyond the end is left out.
    pub fn for_each_mut(&mut self, range: Range<u64>, mut f: impl FnMut(u64, &mut [u8])) {
        let len = self.len();
        let end = range.end.min(len);
        let mut next = range.start.min(end);
        while next < end {
            let leaf_at = next - next % LEAF_BYTES as u64;
            let until = (end - leaf_at).min(LEAF_BYTES as u64) as usize;
            let from = (next - leaf_at) as usize;
            let want = (len - leaf_at).min(LEAF_BYTES as u64) as usize;
            // SAFETY: the leaf has `want >= until` bytes of room and is ours alone while `self` is borrowed mutably.
            let bytes = unsafe {
                let leaf = self.leaf_mut(leaf_at, want);
                std::slice::from_raw_parts_mut(node::data(leaf).as_ptr(), until)
            };
            f(next, &mut bytes[from..]);
            next = leaf_at + until as u64;
        }
    }

    fn root(&self) -> RawRoot {
        // SAFETY: `at` holds a root (see `new`).
        unsafe { self.at.read_unaligned() }
    }

    fn set_root(&mut self, root: RawRoot) {
        // SAFETY: `at` holds a root, ours to write.
        unsafe { self.at.write_unaligned(root) };
    }

    fn has_leaf(&self, at: u64) -> bool {
        let mut root = self.root();
        let mut within = at;
        while root.height > 0 {
            let Some(node) = root.node else { return false };
            let below = span(root.height - 1);
            // SAFETY: a live index node.
            root.node = unsafe { node::child(node, (within / below) as usize) };
            within %= below;
            root.height -= 1;
        }
        root.node.is_some()
    }

    /// The leaf that holds byte `at`, to write, with room for `want` bytes. Makes what is missing, copies what is shared.
    ///
    /// # Safety
    /// The height of the tree spans `at`.
    unsafe fn leaf_mut(&mut self, at: u64, want: usize) -> node::NodePtr {
        let root = self.root();
        let mut within = at;
        let mut local = root.node;
        let mut slot = NonNull::from(&mut local);
        let mut height = root.height;
        // SAFETY: each slot belongs to a node that `node_mut` made ours; the root's is a local copy that is written back at
        // once when it changed, before anything else can fail.
        unsafe {
            loop {
                let below = if height > 0 { span(height - 1) } else { 1 };
                let index = (within / below) as usize;
                debug_assert!(height == 0 || index < FAN);
                let room = if height > 0 { (index + 1) * 8 } else { want };
                let node = node::node_mut(self.heap, slot, height, room);
                if height == root.height && root.node != Some(node) {
                    self.set_root(RawRoot {
                        node: Some(node),
                        ..root
                    });
                }
                if height == 0 {
                    return node;
                }
                slot = node::child_slot(node, index);
                within %= below;
                height -= 1;
            }
        }
    }
}

/// Lets go of everything below a node that lies at or beyond byte `len` (> 0) of it.
///
/// # Safety
/// `slot` belongs to a tree that the caller may write; `height` is its node's.
unsafe fn cut(heap: &HeapRef, slot: Slot, height: u64, len: u64) {
    // SAFETY: `node_mut` makes each node of the path ours before its children are written.
    unsafe {
        if height == 0 || slot.read().is_none() {
            return;
        }
        let below = span(height - 1);
        let last = ((len - 1) / below) as usize;
        let node = node::node_mut(heap, slot, height, (last + 1) * 8);
        for index in last + 1..node::room(node) / 8 {
            let child = node::child_slot(node, index);
            if let Some(gone) = child.read() {
                child.write(None);
                node::release(heap, gone, height - 1);
            }
        }
        cut(
            heap,
            node::child_slot(node, last),
            height - 1,
            len - last as u64 * below,
        );
    }
}
