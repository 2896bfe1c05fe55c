//! One node: eight bytes of header (owners, size), then data or children. All functions take raw nodes; the tree keeps the rules.

use super::{FAN, LEAF_BYTES};
use crate::heap::{HeapRef, Purpose, real_size};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) const HEADER_BYTES: usize = 8;

#[repr(C)]
pub(crate) struct Node {
    owners: AtomicU32,
    /// Bytes of the allocation.
    size_bytes: u32,
}

pub(crate) type NodePtr = NonNull<Node>;
/// Where a node's address stands: the root, or a child slot of an index node.
pub(crate) type Slot = NonNull<Option<NodePtr>>;

/// A leaf or index node with room for at least `room` bytes after the header, all zero.
pub(crate) fn create(heap: &HeapRef, room: usize) -> NodePtr {
    debug_assert!(room <= LEAF_BYTES);
    let size = real_size(HEADER_BYTES + room);
    let node = heap.alloc(Purpose::Tree, size).cast::<Node>();
    // SAFETY: freshly allocated with `size` bytes.
    unsafe {
        node.write(Node {
            owners: AtomicU32::new(1),
            size_bytes: size as u32,
        });
        data(node).write_bytes(0, size - HEADER_BYTES);
    }
    node
}

/// # Safety
/// `node` is live.
pub(crate) unsafe fn retain(node: NodePtr) {
    // SAFETY: as promised by the caller.
    let before = unsafe { node.as_ref() }
        .owners
        .fetch_add(1, Ordering::Relaxed);
    assert!(
        before < u32::MAX / 2,
        "a node has at most one owner per copy of a value"
    );
}

/// # Safety
/// `node` is live.
pub(crate) unsafe fn is_shared(node: NodePtr) -> bool {
    // SAFETY: as promised by the caller. Acquire: whoever let go of the node has finished reading it.
    unsafe { node.as_ref() }.owners.load(Ordering::Acquire) > 1
}

/// Gives up one ownership; the last one frees the node and all below it.
///
/// # Safety
/// The caller has one ownership of `node`, which lies `height` levels above the leaves, and does not use it any more.
pub(crate) unsafe fn release(heap: &HeapRef, node: NodePtr, height: u64) {
    // SAFETY: the last owner sees all writes of the others (release, acquire) and nobody else sees the node any more.
    unsafe {
        if node.as_ref().owners.fetch_sub(1, Ordering::Release) > 1 {
            return;
        }
        std::sync::atomic::fence(Ordering::Acquire);
        if height > 0 {
            for index in 0..room(node) / 8 {
                if let Some(child) = child_slot(node, index).read() {
                    release(heap, child, height - 1);
                }
            }
        }
        heap.free(
            Purpose::Tree,
            node.cast(),
            node.as_ref().size_bytes as usize,
        );
    }
}

/// Bytes after the header; never more than a full leaf's.
///
/// # Safety
/// `node` is live.
pub(crate) unsafe fn room(node: NodePtr) -> usize {
    // SAFETY: as promised by the caller.
    (unsafe { node.as_ref() }.size_bytes as usize - HEADER_BYTES).min(LEAF_BYTES)
}

/// # Safety
/// `node` is live.
pub(crate) unsafe fn data(node: NodePtr) -> NonNull<u8> {
    // SAFETY: every node has its header.
    unsafe { node.cast::<u8>().add(HEADER_BYTES) }
}

/// # Safety
/// `node` is a live index node and has room for child `index`.
pub(crate) unsafe fn child_slot(node: NodePtr, index: usize) -> Slot {
    debug_assert!(index < FAN);
    // SAFETY: as promised by the caller; the data is 8-aligned.
    unsafe { data(node).cast::<Option<NodePtr>>().add(index) }
}

/// The child, `None` also when the node has no room for it.
///
/// # Safety
/// `node` is a live index node.
pub(crate) unsafe fn child(node: NodePtr, index: usize) -> Option<NodePtr> {
    // SAFETY: read only where there is room.
    unsafe {
        if index < room(node) / 8 {
            child_slot(node, index).read()
        } else {
            None
        }
    }
}

/// The one gate of all mutation: makes the slot's node exist, with room for `want` bytes, owned by this tree alone.
///
/// # Safety
/// `slot` belongs to a tree that the caller may write, and its parent is not shared; `height` is the node's.
pub(crate) unsafe fn node_mut(heap: &HeapRef, slot: Slot, height: u64, want: usize) -> NodePtr {
    // SAFETY: the slot's node is live; the new node has at least the old one's room where its bytes are copied.
    unsafe {
        let Some(old) = slot.read() else {
            let node = create(heap, want);
            slot.write(Some(node));
            return node;
        };
        let old_room = room(old);
        let shared = is_shared(old);
        if !shared && old_room >= want {
            return old;
        }
        // An index node that must grow doubles, so that filling it up stays linear.
        let target = if old_room >= want {
            old_room
        } else if height > 0 {
            want.max(old_room * 2).min(LEAF_BYTES)
        } else {
            want
        };
        let node = create(heap, target);
        data(old).copy_to_nonoverlapping(data(node), old_room.min(room(node)));
        if shared {
            if height > 0 {
                for index in 0..old_room / 8 {
                    if let Some(child) = child_slot(node, index).read() {
                        retain(child);
                    }
                }
            }
            slot.write(Some(node));
            release(heap, old, height);
        } else {
            slot.write(Some(node));
            heap.free(Purpose::Tree, old.cast(), old.as_ref().size_bytes as usize);
        }
        node
    }
}

/// Bytes of memory of a node and all below it.
///
/// # Safety
/// `node` is live and lies `height` levels above the leaves.
pub(crate) unsafe fn memory_bytes(node: NodePtr, height: u64) -> u64 {
    // SAFETY: as promised by the caller.
    unsafe {
        let mut sum = u64::from(node.as_ref().size_bytes);
        if height > 0 {
            let mut last = None;
            for index in 0..room(node) / 8 {
                if let Some(child) = child_slot(node, index).read() {
                    // Only the last leaf may be smaller than a full one; the others need not be looked at.
                    match last.replace(child) {
                        Some(before) if height > 1 => sum += memory_bytes(before, height - 1),
                        Some(_) => sum += (HEADER_BYTES + LEAF_BYTES) as u64,
                        None => {}
                    }
                }
            }
            sum += last.map_or(0, |last| memory_bytes(last, height - 1));
        }
        sum
    }
}
