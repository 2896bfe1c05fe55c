//! Storing and changing strings. Limits on the length are the caller's to check; these only do it.

use super::int;
use super::{GROWN, INT, PACKED, PACKED_7, RAW, StrRef, TREE, packed7};
use pantala_store::{ByteTree, INLINE_MAX, Kind, PutMeta, Slot};

/// Stores `bytes` in the encoding that suits them best.
#[inline]
pub fn store(slot: &mut Slot<'_>, bytes: &[u8], meta: PutMeta) {
    let len = bytes.len();
    if len <= int::MAX_DIGITS
        && let Some(value) = int::parse(bytes)
    {
        store_int(slot, value, meta);
    } else if !(packed7::MIN_LEN..=INLINE_MAX).contains(&len) || !packed7::is_ascii(bytes) {
        store_plain(slot, bytes, meta);
    } else {
        let encoding = if packed7::seven_at_end(len) {
            PACKED_7
        } else {
            PACKED
        };
        slot.put_with(
            Kind::String,
            encoding,
            packed7::packed_len(len),
            meta,
            |payload| packed7::pack(bytes, payload),
        );
    }
}

/// Stores an integer.
pub fn store_int(slot: &mut Slot<'_>, value: i64, meta: PutMeta) {
    slot.put(
        Kind::String,
        INT,
        &value.to_le_bytes()[..int::width(value)],
        meta,
    );
}

/// Stores `bytes` as they are.
pub fn store_plain(slot: &mut Slot<'_>, bytes: &[u8], meta: PutMeta) {
    if bytes.len() <= INLINE_MAX {
        slot.put(Kind::String, RAW, bytes, meta);
    } else {
        let tree = tree_of(slot, bytes, bytes.len());
        slot.put_tree(Kind::String, TREE, tree, meta);
    }
}

/// Marks the string as one that was changed in place. Without effect on trees, which are never taken for anything else.
pub fn set_grown(slot: &mut Slot<'_>) {
    if slot.entry().is_some_and(|entry| entry.encoding() == RAW) {
        slot.set_encoding(GROWN);
    }
}

/// Makes the string in `slot` at least `len` bytes long, with zeros at the end, and such that its bytes can be changed in place. A
/// vacant slot becomes a string of zeros. The expiry stays.
pub fn grow(slot: &mut Slot<'_>, len: usize) {
    let meta = PutMeta::KEEP;
    let Some(string) = slot.entry().and_then(StrRef::of) else {
        if len <= INLINE_MAX {
            slot.put_with(Kind::String, GROWN, len, meta, |payload| payload.fill(0));
        } else {
            let tree = tree_of(slot, &[], len);
            slot.put_tree(Kind::String, TREE, tree, meta);
        }
        return;
    };
    let len = string.len().max(len);
    match string {
        StrRef::Tree(_) => {
            if let Some(mut tree) = slot.tree_mut() {
                tree.grow(len as u64);
            }
        }
        StrRef::Raw { .. } if len <= INLINE_MAX => {
            slot.resize_payload(len);
            slot.set_encoding(GROWN);
        }
        string => {
            let mut bytes = Vec::with_capacity(string.len());
            string.append_to(&mut bytes);
            if len <= INLINE_MAX {
                slot.put_with(Kind::String, GROWN, len, meta, |payload| {
                    let (text, zeros) = payload.split_at_mut(bytes.len());
                    text.copy_from_slice(&bytes);
                    zeros.fill(0);
                });
            } else {
                let tree = tree_of(slot, &bytes, len);
                slot.put_tree(Kind::String, TREE, tree, meta);
            }
        }
    }
}

/// A tree of `bytes` and then zeros, `len` bytes in all.
fn tree_of(slot: &Slot<'_>, bytes: &[u8], len: usize) -> ByteTree {
    let mut tree = slot.new_tree();
    let mut edit = tree.edit();
    edit.append(bytes);
    edit.grow(len as u64);
    tree
}

/// Appends `bytes`; gives the new length.
pub fn append(slot: &mut Slot<'_>, bytes: &[u8]) -> usize {
    let at = slot
        .entry()
        .and_then(StrRef::of)
        .map_or(0, |string| string.len());
    write_at(slot, at, bytes);
    at + bytes.len()
}

/// Overwrites from `at` on, with zeros between the end and `at`; the string grows as far as needed. The expiry stays.
pub fn write_at(slot: &mut Slot<'_>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    let len = slot
        .entry()
        .and_then(StrRef::of)
        .map_or(0, |string| string.len());
    if let Some(mut tree) = slot.tree_mut() {
        tree.write(at as u64, bytes);
        return;
    }
    // A string that becomes a tree now grows only up to what is written, so that no zeros are laid out first.
    grow(
        slot,
        if end > INLINE_MAX {
            len.max(INLINE_MAX + 1)
        } else {
            end
        },
    );
    if let Some(mut tree) = slot.tree_mut() {
        tree.write(at as u64, bytes);
    } else if let Some(payload) = slot.payload_mut() {
        payload[at..end].copy_from_slice(bytes);
    }
}
