//! Integers of 1 to 64 bits at any bit offset (`BITFIELD`). Bit 0 is the highest bit of the first byte.

/// Bytes that an integer of 64 bits can touch.
pub const WINDOW_LEN: usize = 9;

/// Width and sign of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldType {
    /// Whether the top bit is a sign.
    pub signed: bool,
    /// 1..=64 with sign, 1..=63 without.
    pub bits: u8,
}

impl FieldType {
    /// Parses `i16`, `u8` and so on.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (signed, digits) = match text {
            [b'i', digits @ ..] => (true, digits),
            [b'u', digits @ ..] => (false, digits),
            _ => return None,
        };
        let bits = crate::string::int::parse(digits)?;
        (bits >= 1 && bits <= if signed { 64 } else { 63 }).then_some(Self {
            signed,
            bits: bits as u8,
        })
    }

    const fn mask(self) -> u64 {
        if self.bits == 64 {
            u64::MAX
        } else {
            (1 << self.bits) - 1
        }
    }

    /// Smallest and largest value.
    const fn limits(self) -> (i128, i128) {
        if self.signed {
            (-(1i128 << (self.bits - 1)), (1i128 << (self.bits - 1)) - 1)
        } else {
            (0, (1i128 << self.bits) - 1)
        }
    }

    /// The low bits of `raw` as a value of this type.
    const fn value_of(self, raw: u64) -> i64 {
        let unused = 64 - self.bits as u32;
        if self.signed {
            ((raw << unused) as i64) >> unused
        } else {
            (raw & self.mask()) as i64
        }
    }
}

/// What happens when a value leaves the range of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Overflow {
    /// The low bits stay.
    #[default]
    Wrap,
    /// The nearest limit is taken.
    Saturate,
    /// Nothing is written.
    Fail,
}

/// Reads a field from the bytes that begin with the one of its first bit; `bit` (0..8) is its place there.
pub fn read(window: &[u8; WINDOW_LEN], bit: u32, field: FieldType) -> i64 {
    let shift = 128 - bit - u32::from(field.bits);
    field.value_of((word(window) >> shift) as u64)
}

/// Writes a field there; bits beyond the type are cut off.
pub fn write(window: &mut [u8; WINDOW_LEN], bit: u32, field: FieldType, value: i64) {
    let shift = 128 - bit - u32::from(field.bits);
    let mask = u128::from(field.mask()) << shift;
    let bits = (u128::from(value as u64) << shift) & mask;
    let bytes = ((word(window) & !mask) | bits).to_be_bytes();
    window.copy_from_slice(&bytes[..WINDOW_LEN]);
}

/// The value to write for `SET value`; `None` when it does not fit and overflow fails. Without sign, `value` counts as its 64
/// bits, so −1 is larger than any limit.
pub fn fit(value: i64, field: FieldType, overflow: Overflow) -> Option<i64> {
    let value = if field.signed {
        i128::from(value)
    } else {
        i128::from(value as u64)
    };
    bounded(value, field, overflow)
}

/// The value after `INCRBY increment`; `None` when it leaves the range and overflow fails.
pub fn add(value: i64, increment: i64, field: FieldType, overflow: Overflow) -> Option<i64> {
    bounded(i128::from(value) + i128::from(increment), field, overflow)
}

const fn bounded(value: i128, field: FieldType, overflow: Overflow) -> Option<i64> {
    let (min, max) = field.limits();
    if value >= min && value <= max {
        return Some(value as i64);
    }
    match overflow {
        Overflow::Wrap => Some(field.value_of(value as u64)),
        Overflow::Saturate => Some(if value > max { max as i64 } else { min as i64 }),
        Overflow::Fail => None,
    }
}

fn word(window: &[u8; WINDOW_LEN]) -> u128 {
    let mut bytes = [0; 16];
    bytes[..WINDOW_LEN].copy_from_slice(window);
    u128::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn u(bits: u8) -> FieldType {
        FieldType {
            signed: false,
            bits,
        }
    }
    fn i(bits: u8) -> FieldType {
        FieldType { signed: true, bits }
    }

    #[test]
    fn types() {
        assert_eq!(FieldType::parse(b"i64"), Some(i(64)));
        assert_eq!(FieldType::parse(b"u63"), Some(u(63)));
        for bad in ["u64", "i65", "i0", "u", "", "x8", "u08", "u-1", "U8"] {
            assert_eq!(FieldType::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn overflow_modes() {
        assert_eq!(add(255, 1, u(8), Overflow::Wrap), Some(0));
        assert_eq!(add(255, 1, u(8), Overflow::Saturate), Some(255));
        assert_eq!(add(255, 1, u(8), Overflow::Fail), None);
        assert_eq!(add(0, -1, u(8), Overflow::Saturate), Some(0));
        assert_eq!(add(127, 1, i(8), Overflow::Wrap), Some(-128));
        assert_eq!(add(-128, -1, i(8), Overflow::Saturate), Some(-128));
        assert_eq!(add(i64::MAX, 1, i(64), Overflow::Wrap), Some(i64::MIN));
        assert_eq!(add(i64::MAX, 1, i(64), Overflow::Saturate), Some(i64::MAX));
        assert_eq!(fit(-1, u(8), Overflow::Saturate), Some(255));
        assert_eq!(fit(-1, u(8), Overflow::Wrap), Some(255));
        assert_eq!(fit(300, i(8), Overflow::Wrap), Some(44));
    }

    proptest! {
        #[test]
        fn written_is_read_and_neighbours_stay(mut window in any::<[u8; 9]>(), bit in 0u32..8, bits in 1u8..=64, signed in any::<bool>(), value in any::<i64>()) {
            let field = FieldType { signed: signed || bits == 64, bits };
            let before = window;
            write(&mut window, bit, field, value);
            prop_assert_eq!(read(&window, bit, field), field.value_of(value as u64));
            for at in 0..72u32 {
                if at < bit || at >= bit + u32::from(bits) {
                    prop_assert_eq!(window[at as usize / 8] >> (7 - at % 8) & 1, before[at as usize / 8] >> (7 - at % 8) & 1);
                }
            }
        }
    }
}
