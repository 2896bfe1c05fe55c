//! Numbers as memcached reads them: like `strtol` and `strtoul` of C, with its blanks, signs and silent truncation.

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Sign, magnitude, and whether the digits were followed by nothing or by a blank. `None` without digits or beyond 64 bits.
fn scan(text: &[u8]) -> Option<(bool, u64)> {
    let skipped = text.iter().take_while(|&&byte| is_space(byte)).count();
    let (negative, digits) = crate::numbers::split_sign(&text[skipped..]);
    let count = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if count == 0 || digits.get(count).is_some_and(|&byte| !is_space(byte)) {
        return None;
    }
    let magnitude = digits[..count].iter().try_fold(0u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })?;
    Some((negative, magnitude))
}

/// A signed number, cut to 32 bits as in C.
pub(super) fn parse_i32(text: &[u8]) -> Option<i32> {
    let (negative, magnitude) = scan(text)?;
    let value = if negative {
        0i64.checked_sub_unsigned(magnitude)?
    } else {
        i64::try_from(magnitude).ok()?
    };
    Some(value as i32)
}

/// An unsigned number. A negative one wraps as in C, and is refused only where the result looks negative.
pub(super) fn parse_u64(text: &[u8]) -> Option<u64> {
    let (negative, magnitude) = scan(text)?;
    let value = if negative {
        magnitude.wrapping_neg()
    } else {
        magnitude
    };
    let refused = value > i64::MAX as u64 && text.contains(&b'-');
    (!refused).then_some(value)
}

/// An unsigned number, cut to 32 bits as in C.
pub(super) fn parse_u32(text: &[u8]) -> Option<u32> {
    parse_u64(text).map(|value| value as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_in_c() {
        for (text, want) in [
            (&b"0"[..], Some(0)),
            (b"-1", Some(-1)),
            (b"+5", Some(5)),
            (b"007", Some(7)),
            (b"0\t1", Some(0)),
            (b"4294967297", Some(1)),
            (b"9223372036854775808", None),
            (b"-9223372036854775808", Some(0)),
            (b"", None),
            (b"-", None),
            (b"1x", None),
            (b"x", None),
        ] {
            assert_eq!(parse_i32(text), want, "{}", text.escape_ascii());
        }
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_u64(b"18446744073709551616"), None);
        assert_eq!(parse_u64(b"-1"), None);
        assert_eq!(parse_u64(b"-18446744073709551615"), Some(1));
        assert_eq!(parse_u64(b"-0"), Some(0));
        assert_eq!(parse_u32(b"4294967296"), Some(0));
    }
}
