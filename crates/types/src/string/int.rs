//! Integers as strings: the canonical decimal form and its 1, 2, 4 or 8 bytes. Only the text that [`Decimal`] would write counts
//! as an integer, so that storing one and writing it again gives the very same bytes.

/// Longest decimal text of an `i64`.
pub const MAX_DIGITS: usize = 20;

/// Parses a canonical decimal: no sign `+`, no leading zeros, no spaces, no `-0`.
#[inline]
pub fn parse(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > MAX_DIGITS {
        return None;
    }
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] => return if negative { None } else { Some(0) },
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    let mut value = 0u64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    if negative {
        (value <= 1 << 63).then(|| (value as i64).wrapping_neg())
    } else {
        i64::try_from(value).ok()
    }
}

/// A decimal text on the stack.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    buf: [u8; MAX_DIGITS],
    from: u8,
}

impl Decimal {
    /// Writes `value`.
    #[inline]
    pub const fn new(value: i64) -> Self {
        let mut buf = [0; MAX_DIGITS];
        let mut from = MAX_DIGITS;
        let mut rest = value.unsigned_abs();
        loop {
            from -= 1;
            buf[from] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if value < 0 {
            from -= 1;
            buf[from] = b'-';
        }
        Self {
            buf,
            from: from as u8,
        }
    }

    /// The text.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.buf[usize::from(self.from)..]
    }
}

/// Number of characters of `value`'s decimal.
pub const fn decimal_len(value: i64) -> usize {
    let magnitude = value.unsigned_abs();
    let digits = if magnitude == 0 {
        1
    } else {
        magnitude.ilog10() as usize + 1
    };
    digits + (value < 0) as usize
}

/// The fewest bytes of 1, 2, 4, 8 that hold `value`.
pub const fn width(value: i64) -> usize {
    if value == value as i8 as i64 {
        1
    } else if value == value as i16 as i64 {
        2
    } else if value == value as i32 as i64 {
        4
    } else {
        8
    }
}

/// Reads a payload of 1, 2, 4 or 8 bytes; any other length is no integer payload.
#[inline]
pub fn decode(payload: &[u8]) -> Option<i64> {
    Some(match *payload {
        [a] => i64::from(a as i8),
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_canonical_text_is_an_integer() {
        for text in [
            "",
            "-",
            "+1",
            "01",
            "-0",
            "-01",
            " 1",
            "1 ",
            "1.0",
            "0x1",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
        for value in [
            0,
            1,
            -1,
            9,
            10,
            i64::MAX,
            i64::MIN,
            127,
            128,
            -128,
            -129,
            32767,
            32768,
            1 << 31,
            -(1 << 31) - 1,
        ] {
            assert_eq!(parse(value.to_string().as_bytes()), Some(value));
        }
    }

    proptest! {
        #[test]
        fn text_and_bytes_round_trip(value in prop_oneof![any::<i64>(), -200_000i64..200_000, (0u32..63).prop_map(|s| 1 << s)]) {
            let text = value.to_string();
            let decimal = Decimal::new(value);
            prop_assert_eq!(decimal.as_bytes(), text.as_bytes());
            prop_assert_eq!(decimal_len(value), text.len());
            prop_assert_eq!(parse(text.as_bytes()), Some(value));
            let bytes = value.to_le_bytes();
            prop_assert_eq!(decode(&bytes[..width(value)]), Some(value));
        }
    }
}
