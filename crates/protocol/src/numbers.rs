//! Number syntax shared by all commands, exactly as Redis reads and writes it.
//!
//! A command must never parse a number by other means: what counts as a number is part of the protocol.

/// Reads a signed 64-bit integer in its one canonical form: no blanks, no `+`, no leading zeros, no `-0`.
/// `parse_i64(s) == Some(n)` holds exactly when `n` prints as `s`.
#[inline]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', digits @ ..] => {
            let magnitude = canonical_u64(digits)?;
            if magnitude == 0 {
                return None;
            }
            0i64.checked_sub_unsigned(magnitude)
        }
        digits => i64::try_from(canonical_u64(digits)?).ok(),
    }
}

/// Reads an unsigned 64-bit integer in its one canonical form.
#[inline]
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    canonical_u64(text)
}

#[inline]
fn canonical_u64(digits: &[u8]) -> Option<u64> {
    match digits {
        [] => return None,
        [b'0', _, ..] => return None,
        // 18446744073709551615 has 20 digits.
        _ if digits.len() > 20 => return None,
        _ => {}
    }
    let (head, tail) = digits.split_at(digits.len().min(19));
    let mut value = 0u64;
    for byte in head {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // At most 19 digits stay below 2^64.
        value = value * 10 + u64::from(digit);
    }
    for byte in tail {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// Reads a double as `strtod` does, except that nothing may stand before or after it: decimal or hexadecimal (`0x1.8p3`) digits,
/// an exponent, `inf` or `infinity` in any case. Not a number, overflow and underflow to zero are refused.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    let (negative, unsigned) = split_sign(text);
    let magnitude = if is_infinity(unsigned) {
        f64::INFINITY
    } else if let Some(hex) = strip_hex_prefix(unsigned) {
        parse_hex_f64(hex)?
    } else {
        parse_decimal_f64(unsigned)?
    };
    Some(if negative { -magnitude } else { magnitude })
}

pub(crate) fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    }
}

pub(crate) fn is_infinity(unsigned: &[u8]) -> bool {
    unsigned.eq_ignore_ascii_case(b"inf") || unsigned.eq_ignore_ascii_case(b"infinity")
}

pub(crate) fn strip_hex_prefix(unsigned: &[u8]) -> Option<&[u8]> {
    match unsigned {
        [b'0', b'x' | b'X', rest @ ..] => Some(rest),
        _ => None,
    }
}

fn parse_decimal_f64(unsigned: &[u8]) -> Option<f64> {
    let parts = Decimal::parse(unsigned)?;
    // The shape is checked, so this accepts it.
    let value: f64 = std::str::from_utf8(unsigned).ok()?.parse().ok()?;
    let out_of_range = value.is_infinite() || (value == 0.0 && !parts.is_zero());
    (!out_of_range).then_some(value)
}

/// The parts of an unsigned decimal number: `12.5e3` is the digits `12` and `5`, and the exponent 3.
pub(crate) struct Decimal<'a> {
    pub(crate) int: &'a [u8],
    pub(crate) frac: &'a [u8],
    /// Saturated: beyond ±10^9 every finite number of digits overflows or underflows anyway.
    pub(crate) exponent: i64,
}

impl<'a> Decimal<'a> {
    pub(crate) fn parse(unsigned: &'a [u8]) -> Option<Self> {
        let (int, frac, rest) = split_mantissa(unsigned, u8::is_ascii_digit)?;
        let exponent = match rest {
            [] => 0,
            [b'e' | b'E', exponent @ ..] => parse_exponent(exponent)?,
            _ => return None,
        };
        Some(Self {
            int,
            frac,
            exponent,
        })
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.int.iter().chain(self.frac).all(|&digit| digit == b'0')
    }
}

/// Splits into digits before the point, digits behind it, and the rest. At least one digit is needed.
pub(crate) fn split_mantissa(
    text: &[u8],
    is_digit: fn(&u8) -> bool,
) -> Option<(&[u8], &[u8], &[u8])> {
    let run = |text: &[u8]| text.iter().take_while(|byte| is_digit(byte)).count();
    let (int, rest) = text.split_at(run(text));
    let (frac, rest) = match rest {
        [b'.', rest @ ..] => rest.split_at(run(rest)),
        rest => (&[][..], rest),
    };
    (!int.is_empty() || !frac.is_empty()).then_some((int, frac, rest))
}

pub(crate) fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = split_sign(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let magnitude = digits.iter().fold(0i64, |value, digit| {
        (value * 10 + i64::from(digit - b'0')).min(1_000_000_000)
    });
    Some(if negative { -magnitude } else { magnitude })
}

/// An unsigned hexadecimal number as `mantissa × 2^exponent`, with the bits that did not fit folded into the lowest bit, which
/// therefore must only decide a rounding. The mantissa has at least 100 bits when bits were folded.
pub(crate) fn parse_hex_parts(hex: &[u8]) -> Option<(u128, i64)> {
    let (int, frac, rest) = split_mantissa(hex, u8::is_ascii_hexdigit)?;
    let exponent = match rest {
        [] => 0,
        [b'p' | b'P', exponent @ ..] => parse_exponent(exponent)?,
        _ => return None,
    };
    let mut mantissa = 0u128;
    let mut dropped_digits = 0i64;
    for &digit in int.iter().chain(frac) {
        let value = u128::from(
            (digit as char)
                .to_digit(16)
                .expect("only hex digits were taken"),
        );
        if mantissa >> 120 == 0 {
            mantissa = mantissa << 4 | value;
        } else {
            mantissa |= u128::from(value != 0);
            dropped_digits += 1;
        }
    }
    let scale = 4 * (dropped_digits - i64::try_from(frac.len()).ok()?);
    Some((mantissa, exponent + scale))
}

fn parse_hex_f64(hex: &[u8]) -> Option<f64> {
    let (mantissa, exponent) = parse_hex_parts(hex)?;
    if mantissa == 0 {
        return Some(0.0);
    }
    let top = 127 - i64::from(mantissa.leading_zeros()) + exponent;
    // The lowest bit that is kept: 53 bits, fewer for subnormal numbers.
    let lowest = (top - 52).max(-1074);
    let significand = round_shift(mantissa, lowest - exponent)?;
    if significand == 0 || top > 1023 {
        return None;
    }
    // Exact: at most 53 bits, and two steps so that the factor itself is in range.
    let half = lowest / 2;
    let power = |e: i64| 2f64.powi(i32::try_from(e).expect("exponents were bounded above"));
    let value = significand as f64 * power(half) * power(lowest - half);
    value.is_finite().then_some(value)
}

/// `mantissa / 2^shift` rounded half to even (`shift` may be negative); `None` when bits would be lost at the top.
pub(crate) fn round_shift(mantissa: u128, shift: i64) -> Option<u128> {
    if shift <= 0 {
        let left = u32::try_from(-shift).ok()?;
        return (left <= mantissa.leading_zeros())
            .then(|| mantissa.checked_shl(left))
            .flatten();
    }
    if shift > 128 {
        return Some(0);
    }
    let whole = if shift == 128 { 0 } else { mantissa >> shift };
    let half = 1u128 << (shift - 1);
    let below = mantissa & (half - 1);
    let tie = mantissa & half != 0;
    Some(whole + u128::from(tie && (below != 0 || whole & 1 == 1)))
}

/// Appends a double as `printf("%.17g")` does, which is what Redis 7.0 sends and stores; infinities as `inf` and `-inf`.
pub fn write_f64(out: &mut Vec<u8>, value: f64) {
    // From 10^17 on, `%.17g` switches to an exponent; well below that, whole numbers need no rounding.
    if value.abs() < 1e15 && write_whole(out, value) {
        return;
    }
    if !write_special(out, value) {
        write_general(out, &Scientific::new(&format!("{value:.16e}")), 17);
    }
}

/// Appends a double as Redis 7.0 keeps it inside values (`d2string`): whole numbers up to 2^62 in full, all else as [`write_f64`].
pub fn write_f64_stored(out: &mut Vec<u8>, value: f64) {
    if !write_whole(out, value) {
        write_f64(out, value);
    }
}

/// Appends a double as Redis 7.2 and later send it: whole numbers up to 2^62 in full, all else with the fewest digits that read back
/// as the same number.
pub fn write_f64_shortest(out: &mut Vec<u8>, value: f64) {
    if !write_whole(out, value) && !write_special(out, value) {
        write_short(out, &Scientific::new(&format!("{value:e}")));
    }
}

fn write_whole(out: &mut Vec<u8>, value: f64) -> bool {
    const LIMIT: f64 = (1u64 << 62) as f64;
    let negative_zero = value == 0.0 && value.is_sign_negative();
    let whole = value.abs() <= LIMIT && value.trunc() == value && !negative_zero;
    if whole {
        out.extend_from_slice(itoa::Buffer::new().format(value as i64).as_bytes());
    }
    whole
}

/// [`write_f64`] as a text.
pub fn format_f64(value: f64) -> String {
    let mut out = Vec::with_capacity(24);
    write_f64(&mut out, value);
    String::from_utf8(out).expect("numbers are ASCII")
}

fn write_special(out: &mut Vec<u8>, value: f64) -> bool {
    let text: &[u8] = if value.is_nan() {
        b"nan"
    } else if value == f64::INFINITY {
        b"inf"
    } else if value == f64::NEG_INFINITY {
        b"-inf"
    } else {
        return false;
    };
    out.extend_from_slice(text);
    true
}

/// A decimal number taken apart: `-1.50e-7` has the digits `15` and the exponent −7.
struct Scientific {
    negative: bool,
    /// At least one, without zeros at the end.
    digits: Vec<u8>,
    exponent: i32,
}

impl Scientific {
    /// From Rust's scientific notation.
    fn new(text: &str) -> Self {
        let (mantissa, exponent) = text
            .split_once('e')
            .expect("scientific notation has an exponent");
        let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
        while digits.len() > 1 && digits.last() == Some(&b'0') {
            digits.pop();
        }
        Self {
            negative: mantissa.starts_with('-'),
            digits,
            exponent: exponent.parse().expect("the exponent is a number"),
        }
    }

    fn write_sign(&self, out: &mut Vec<u8>) {
        if self.negative {
            out.push(b'-');
        }
    }

    fn write_mantissa(&self, out: &mut Vec<u8>) {
        let (first, rest) = self.digits.split_at(1);
        out.extend_from_slice(first);
        if !rest.is_empty() {
            out.push(b'.');
            out.extend_from_slice(rest);
        }
    }
}

/// The layout of `%.<precision>g`.
fn write_general(out: &mut Vec<u8>, number: &Scientific, precision: i32) {
    number.write_sign(out);
    let exponent = number.exponent;
    if (-4..precision).contains(&exponent) {
        write_fixed(out, &number.digits, exponent);
    } else {
        number.write_mantissa(out);
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("e{sign}{:02}", exponent.abs()).as_bytes());
    }
}

/// The layout of Redis 7.2 and later, which decides by the exponent of the last digit.
fn write_short(out: &mut Vec<u8>, number: &Scientific) {
    number.write_sign(out);
    let count = i32::try_from(number.digits.len()).expect("a double has at most 17 digits");
    let exponent = number.exponent;
    let last = exponent - (count - 1);
    let whole = last >= 0 && exponent < count + 7;
    if whole || (last < 0 && (last > -7 || exponent.abs() < 4)) {
        write_fixed(out, &number.digits, exponent);
    } else {
        number.write_mantissa(out);
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("e{sign}{}", exponent.abs()).as_bytes());
    }
}

/// Writes `d.ddd × 10^exponent` without an exponent.
fn write_fixed(out: &mut Vec<u8>, digits: &[u8], exponent: i32) {
    let before_point = usize::try_from(exponent + 1).unwrap_or(0);
    if before_point == 0 {
        out.extend_from_slice(b"0.");
        write_zeros(out, (exponent + 1).unsigned_abs() as usize);
        out.extend_from_slice(digits);
    } else if digits.len() <= before_point {
        out.extend_from_slice(digits);
        write_zeros(out, before_point - digits.len());
    } else {
        out.extend_from_slice(&digits[..before_point]);
        out.push(b'.');
        out.extend_from_slice(&digits[before_point..]);
    }
}

fn write_zeros(out: &mut Vec<u8>, count: usize) {
    out.resize(out.len() + count, b'0');
}
