//! Dense HyperLogLogs changed where they lie: adding an element touches two bytes of twelve thousand.

use super::{HEADER_LEN, dense, place};
use crate::string::{self, StrRef};
use pantala_store::Slot;

/// The header, with zeros for what the string does not have.
pub fn read_header(string: &StrRef<'_>) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    string.read_at(0, &mut header);
    header
}

/// Adds elements to the dense HyperLogLog in `slot`, whose header was checked; gives the number of registers that changed. When any did,
/// the stored estimate is marked as out of date.
pub fn add_dense<'e>(slot: &mut Slot<'_>, elements: impl Iterator<Item = &'e [u8]>) -> u64 {
    let mut changes = 0;
    for element in elements {
        let (index, value) = place(element);
        changes += u64::from(raise(slot, index, value));
    }
    if changes > 0 {
        let at = HEADER_LEN - 1;
        let top = slot
            .entry()
            .and_then(StrRef::of)
            .and_then(|string| string.byte_at(at))
            .unwrap_or(0);
        if top & 0x80 == 0 {
            string::write_at(slot, at, &[top | 0x80]);
        }
    }
    changes
}

fn raise(slot: &mut Slot<'_>, index: usize, value: u8) -> bool {
    let Some(stored) = slot.entry().and_then(StrRef::of) else {
        return false;
    };
    let (at, shift) = dense::place(index);
    let mut window = [0; 2];
    stored.read_at(HEADER_LEN + at, &mut window);
    let bits = u16::from_le_bytes(window);
    if (bits >> shift) as u8 & 63 >= value {
        return false;
    }
    let raised = (bits & !(63 << shift)) | (u16::from(value) << shift);
    // The last register ends with the last byte: nothing may be written behind it.
    let len = if at + 1 < dense::LEN { 2 } else { 1 };
    string::write_at(slot, HEADER_LEN + at, &raised.to_le_bytes()[..len]);
    true
}
