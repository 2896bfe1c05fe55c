//! Dense registers: 16,384 of six bits, side by side, the lowest bits first.

use super::{Histogram, REGISTERS};

/// Bytes of all registers.
pub const LEN: usize = REGISTERS * 6 / 8;

/// The register at `index`, from the registers' bytes.
pub fn get(registers: &[u8], index: usize) -> u8 {
    let (at, shift) = place(index);
    let low = u16::from(registers[at]);
    let high = registers.get(at + 1).copied().map_or(0, u16::from);
    ((low | (high << 8)) >> shift) as u8 & 63
}

/// Sets the register at `index` to `value` (0..=63).
pub fn set(registers: &mut [u8], index: usize, value: u8) {
    let (at, shift) = place(index);
    let bits = u16::from(value) << shift;
    let mask = 63u16 << shift;
    registers[at] = (registers[at] & !(mask as u8)) | bits as u8;
    // The last register ends with the last byte, so nothing is lost where there is no next one.
    if let Some(next) = registers.get_mut(at + 1) {
        *next = (*next & !((mask >> 8) as u8)) | (bits >> 8) as u8;
    }
}

/// First byte and bit of a register.
pub const fn place(index: usize) -> (usize, u32) {
    (index * 6 / 8, (index * 6 % 8) as u32)
}

/// Calls `visit` with every register in order.
pub fn for_each(registers: &[u8], mut visit: impl FnMut(usize, u8)) {
    for (group, bytes) in registers.chunks_exact(3).enumerate() {
        let word = u32::from(bytes[0]) | u32::from(bytes[1]) << 8 | u32::from(bytes[2]) << 16;
        let first = group * 4;
        visit(first, (word & 63) as u8);
        visit(first + 1, (word >> 6 & 63) as u8);
        visit(first + 2, (word >> 12 & 63) as u8);
        visit(first + 3, (word >> 18 & 63) as u8);
    }
}

/// How often each value occurs.
pub fn histogram(registers: &[u8]) -> Histogram {
    let mut counts: Histogram = [0; 64];
    for_each(registers, |_, value| counts[usize::from(value)] += 1);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_do_not_touch_each_other() {
        let mut bytes = vec![0; LEN];
        let value = |index: usize| ((index * 31 + 7) % 64) as u8;
        for index in (0..REGISTERS).rev() {
            set(&mut bytes, index, 63);
            set(&mut bytes, index, value(index));
        }
        for index in 0..REGISTERS {
            assert_eq!(get(&bytes, index), value(index));
        }
        let mut seen = 0;
        for_each(&bytes, |index, v| {
            assert_eq!(v, value(index));
            seen += 1;
        });
        assert_eq!(seen, REGISTERS);
    }
}
