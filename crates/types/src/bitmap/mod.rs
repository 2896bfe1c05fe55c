//! Bitmaps: strings seen as bits. Bit 0 is the highest bit of the first byte; beyond the end all bits are 0.
//!
//! Everything works piece by piece on whatever holds the string, so a bitmap of 512 MB is never copied to be counted.

pub mod count;
pub mod field;
pub mod op;
pub mod range;

use crate::string::{self, StrRef};
use field::{FieldType, WINDOW_LEN};
use pantala_store::Slot;
use std::ops::ControlFlow;

/// The bit at `index`.
pub fn get(string: &StrRef<'_>, index: u64) -> bool {
    let byte = usize::try_from(index / 8)
        .ok()
        .and_then(|at| string.byte_at(at))
        .unwrap_or(0);
    byte & mask(index) != 0
}

/// Sets the bit at `index` of the string in `slot`, or of a new one; gives what it was. The string grows so that it has the bit.
/// The slot holds a string or nothing.
pub fn set(slot: &mut Slot<'_>, index: u64, value: bool) -> bool {
    let at = (index / 8) as usize;
    let byte = slot
        .entry()
        .and_then(StrRef::of)
        .and_then(|string| string.byte_at(at))
        .unwrap_or(0);
    let new = if value {
        byte | mask(index)
    } else {
        byte & !mask(index)
    };
    string::write_at(slot, at, &[new]);
    byte & mask(index) != 0
}

const fn mask(index: u64) -> u8 {
    0x80 >> (index % 8)
}

/// Number of one bits among the bits `first..=last`, which the string has.
pub fn count_ones(string: &StrRef<'_>, first: u64, last: u64) -> u64 {
    let (first_byte, last_byte) = ((first / 8) as usize, (last / 8) as usize);
    let mut ones = 0;
    let _: ControlFlow<()> =
        string.for_each_chunk(first_byte, last_byte - first_byte + 1, |chunk| {
            ones += count::count_ones(chunk);
            ControlFlow::Continue(())
        });
    let before = string.byte_at(first_byte).unwrap_or(0) & !head_mask(first);
    let after = string.byte_at(last_byte).unwrap_or(0) & !tail_mask(last);
    ones - u64::from(before.count_ones()) - u64::from(after.count_ones())
}

/// The place of the first bit that is `bit` among the bits `first..=last`, which the string has.
pub fn position(string: &StrRef<'_>, bit: bool, first: u64, last: u64) -> Option<u64> {
    let (first_byte, last_byte) = ((first / 8) as usize, (last / 8) as usize);
    // Looking for zeros is looking for ones in the opposite.
    let flip = if bit { 0 } else { 0xff };
    let mut at = first_byte;
    let found = string.for_each_chunk(first_byte, last_byte - first_byte + 1, |chunk| {
        let mut from = 0;
        while let Some(offset) = first_other_than(&chunk[from..], flip) {
            let byte_at = at + from + offset;
            let mut byte = chunk[from + offset] ^ flip;
            if byte_at == first_byte {
                byte &= head_mask(first);
            }
            if byte_at == last_byte {
                byte &= tail_mask(last);
            }
            if byte != 0 {
                return ControlFlow::Break(byte_at as u64 * 8 + u64::from(byte.leading_zeros()));
            }
            from += offset + 1;
        }
        at += chunk.len();
        ControlFlow::Continue(())
    });
    match found {
        ControlFlow::Break(index) => Some(index),
        ControlFlow::Continue(()) => None,
    }
}

/// The bits of its byte from `index` on.
const fn head_mask(index: u64) -> u8 {
    0xff >> (index % 8)
}

/// The bits of its byte up to `index`.
const fn tail_mask(index: u64) -> u8 {
    !(0x7f >> (index % 8))
}

fn first_other_than(bytes: &[u8], skip: u8) -> Option<usize> {
    const STEP: usize = 32;
    let whole = bytes
        .chunks_exact(STEP)
        .take_while(|block| block.iter().fold(0, |any, &byte| any | (byte ^ skip)) == 0)
        .count()
        * STEP;
    bytes[whole..]
        .iter()
        .position(|&byte| byte != skip)
        .map(|at| whole + at)
}

/// Reads the integer at bit `offset`; zeros stand for what lies beyond the end. `None`: no string.
pub fn read_field(string: Option<&StrRef<'_>>, offset: u64, field: FieldType) -> i64 {
    let mut window = [0; WINDOW_LEN];
    if let (Some(string), Ok(at)) = (string, usize::try_from(offset / 8)) {
        string.read_at(at, &mut window);
    }
    field::read(&window, (offset % 8) as u32, field)
}

/// Writes the integer at bit `offset` of the string in `slot`, which has all its bits (see [`string::grow`]).
pub fn write_field(slot: &mut Slot<'_>, offset: u64, field: FieldType, value: i64) {
    let at = (offset / 8) as usize;
    let bit = (offset % 8) as u32;
    let len = (bit + u32::from(field.bits)).div_ceil(8) as usize;
    let mut window = [0; WINDOW_LEN];
    if let Some(string) = slot.entry().and_then(StrRef::of) {
        string.read_at(at, &mut window);
    }
    field::write(&mut window, bit, field, value);
    string::write_at(slot, at, &window[..len]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bit_of(bytes: &[u8], index: u64) -> bool {
        bytes[(index / 8) as usize] & mask(index) != 0
    }

    proptest! {
        #[test]
        fn as_bit_by_bit(bytes in proptest::collection::vec(prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 1..100), from in any::<u64>(), len in any::<u64>()) {
            let string = StrRef::Raw { bytes: &bytes, grown: false };
            let total = bytes.len() as u64 * 8;
            let first = from % total;
            let last = first + len % (total - first);
            let ones = (first..=last).filter(|&i| bit_of(&bytes, i)).count() as u64;
            prop_assert_eq!(count_ones(&string, first, last), ones);
            for bit in [false, true] {
                prop_assert_eq!(position(&string, bit, first, last), (first..=last).find(|&i| bit_of(&bytes, i) == bit));
            }
            prop_assert_eq!(get(&string, first), bit_of(&bytes, first));
            prop_assert!(!get(&string, total));
        }
    }
}
