//! The 80-bit floating-point arithmetic behind `INCRBYFLOAT` and `HINCRBYFLOAT`.
//!
//! Redis adds in the C type `long double`, which on x86-64 has a 64-bit significand, and prints with 17 decimals. Rust has no
//! such type, and neither doubles nor exact decimals give the same digits, so this does the same arithmetic in integers: nearest, ties to
//! even, in reading, adding and printing. The results are the same on every machine.

use std::fmt;

use crate::numbers::{
    Decimal, is_infinity, parse_hex_parts, round_shift, split_sign, strip_hex_prefix,
};

/// Exponent of the lowest bit of the smallest number.
const LOWEST_EXPONENT: i64 = -16445;
/// Exponent of the highest bit of the largest number.
const HIGHEST_EXPONENT: i64 = 16383;
/// Redis reads a number through a buffer of this size, so longer texts are no numbers.
const TEXT_BYTES: usize = 5 * 1024;

/// A number as x86-64's `long double` holds it. Never "not a number": what would be one cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongDouble {
    negative: bool,
    magnitude: Magnitude,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Magnitude {
    /// `significand × 2^exponent`. Not zero only with the top bit set, or at [`LOWEST_EXPONENT`].
    Finite {
        significand: u64,
        exponent: i64,
    },
    Infinite,
}

impl LongDouble {
    /// Zero.
    pub const ZERO: Self = Self {
        negative: false,
        magnitude: Magnitude::Finite {
            significand: 0,
            exponent: LOWEST_EXPONENT,
        },
    };

    /// Reads a number as Redis does: like [`crate::numbers::parse_f64`], with the wider range, and at most 5119 bytes of text.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() >= TEXT_BYTES {
            return None;
        }
        let (negative, unsigned) = split_sign(text);
        let magnitude = if is_infinity(unsigned) {
            Magnitude::Infinite
        } else if let Some(hex) = strip_hex_prefix(unsigned) {
            let (mantissa, exponent) = parse_hex_parts(hex)?;
            in_range(round(mantissa, exponent), mantissa == 0)?
        } else {
            let decimal = Decimal::parse(unsigned)?;
            in_range(from_decimal(&decimal), decimal.is_zero())?
        };
        Some(Self {
            negative,
            magnitude,
        })
    }

    /// An integer, exactly.
    pub fn from_i64(value: i64) -> Self {
        Self {
            negative: value < 0,
            magnitude: round(u128::from(value.unsigned_abs()), 0),
        }
    }

    /// A double, exactly. Not a number becomes infinite.
    pub fn from_f64(value: f64) -> Self {
        let bits = value.to_bits();
        let fraction = bits & ((1 << 52) - 1);
        let magnitude = match (bits >> 52) & 0x7ff {
            0x7ff => Magnitude::Infinite,
            0 => round(u128::from(fraction), -1074),
            exponent => round(u128::from(fraction | 1 << 52), exponent as i64 - 1075),
        };
        Self {
            negative: value.is_sign_negative(),
            magnitude,
        }
    }

    /// Whether this is neither infinity.
    pub fn is_finite(self) -> bool {
        self.magnitude != Magnitude::Infinite
    }

    /// The rounded sum. `None` for infinity minus infinity, which is not a number.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        match (self.magnitude, other.magnitude) {
            (Magnitude::Infinite, Magnitude::Infinite) => {
                (self.negative == other.negative).then_some(self)
            }
            (Magnitude::Infinite, _) => Some(self),
            (_, Magnitude::Infinite) => Some(other),
            (
                Magnitude::Finite {
                    significand: a,
                    exponent: e,
                },
                Magnitude::Finite {
                    significand: b,
                    exponent: f,
                },
            ) => Some(if (e, a) >= (f, b) {
                add_finite(self.negative, (a, e), other.negative, (b, f))
            } else {
                add_finite(other.negative, (b, f), self.negative, (a, e))
            }),
        }
    }

    /// Appends the number with 17 decimals, zeros at the end taken off: never an exponent, `inf` and `-inf` for infinities.
    pub fn write(self, out: &mut Vec<u8>) {
        let start = out.len();
        if self.negative {
            out.push(b'-');
        }
        match self.magnitude {
            Magnitude::Infinite => return out.extend_from_slice(b"inf"),
            Magnitude::Finite {
                significand,
                exponent,
            } if exponent >= 0 => {
                let mut whole = Big::from(significand);
                whole.shift_left(exponent.unsigned_abs() as usize);
                whole.write_decimal(out);
            }
            Magnitude::Finite {
                significand,
                exponent,
            } => write_fraction(out, significand, -exponent),
        }
        if out[start..] == *b"-0" {
            out.remove(start);
        }
    }
}

impl fmt::Display for LongDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::with_capacity(24);
        self.write(&mut out);
        f.write_str(std::str::from_utf8(&out).expect("numbers are ASCII"))
    }
}

/// Refuses what the C library reports as out of range: infinite, or zero from a number that is not.
fn in_range(magnitude: Magnitude, is_zero: bool) -> Option<Magnitude> {
    match magnitude {
        Magnitude::Infinite => None,
        Magnitude::Finite { significand: 0, .. } if !is_zero => None,
        finite => Some(finite),
    }
}

/// Rounds `mantissa × 2^exponent` to 64 bits, or to fewer for the smallest numbers.
fn round(mantissa: u128, exponent: i64) -> Magnitude {
    if mantissa == 0 {
        return Magnitude::Finite {
            significand: 0,
            exponent: LOWEST_EXPONENT,
        };
    }
    let top = 127 - i64::from(mantissa.leading_zeros()) + exponent;
    let lowest = (top - 63).max(LOWEST_EXPONENT);
    let rounded = round_shift(mantissa, lowest - exponent).expect("64 bits fit into 128");
    // Rounding up may carry into a 65th bit; it is then a power of two.
    let (significand, lowest) = match u64::try_from(rounded) {
        Ok(significand) => (significand, lowest),
        Err(_) => (1 << 63, lowest + 1),
    };
    let top = lowest + 63 - i64::from(significand.leading_zeros());
    if significand != 0 && top > HIGHEST_EXPONENT {
        return Magnitude::Infinite;
    }
    Magnitude::Finite {
        significand,
        exponent: lowest,
    }
}

/// Adds two finite numbers, the one with the larger magnitude first.
fn add_finite(
    negative: bool,
    (a, a_exponent): (u64, i64),
    other_negative: bool,
    (b, b_exponent): (u64, i64),
) -> LongDouble {
    // 62 bits of room below. What is shifted out of them only decides a rounding, so one sticky bit stands for it.
    const ROOM: u32 = 62;
    let large = u128::from(a) << ROOM;
    let distance = a_exponent - b_exponent;
    let small = u128::from(b) << ROOM;
    let small = match u32::try_from(distance) {
        Ok(distance) if distance < 128 => {
            let kept = small >> distance;
            kept | u128::from(kept << distance != small)
        }
        _ => u128::from(b != 0),
    };
    let sum = if negative == other_negative {
        large + small
    } else {
        large - small
    };
    LongDouble {
        // Opposite numbers add up to plain zero; two negative zeros stay negative.
        negative: negative && (sum != 0 || other_negative),
        magnitude: round(sum, a_exponent - i64::from(ROOM)),
    }
}

fn from_decimal(decimal: &Decimal<'_>) -> Magnitude {
    let digits: Vec<u8> = decimal
        .int
        .iter()
        .chain(decimal.frac)
        .copied()
        .skip_while(|&digit| digit == b'0')
        .collect();
    let exponent = decimal.exponent - decimal.frac.len() as i64;
    // The position of the first digit: the range ends at 1.2e4932 and at 3.6e-4951.
    let first = exponent + digits.len() as i64;
    if digits.is_empty() || first < -4960 {
        return round(0, 0);
    }
    if first > 4940 {
        return Magnitude::Infinite;
    }
    let mut numerator = Big::from(0);
    for chunk in digits.chunks(9) {
        let value = chunk
            .iter()
            .fold(0u32, |value, digit| value * 10 + u32::from(digit - b'0'));
        numerator.multiply_add(10u32.pow(chunk.len() as u32), value);
    }
    let power = exponent.unsigned_abs() as usize;
    if exponent >= 0 {
        numerator.multiply_power_of_ten(power);
        let (mantissa, shift) = numerator.top_bits();
        return round(mantissa, shift);
    }
    let mut denominator = Big::from(1);
    denominator.multiply_power_of_ten(power);
    // So that the quotient has 66 or 67 bits.
    let shift = 66 - (numerator.bits() as i64 - denominator.bits() as i64);
    match usize::try_from(shift) {
        Ok(shift) => numerator.shift_left(shift),
        Err(_) => denominator.shift_left(shift.unsigned_abs() as usize),
    }
    round(quotient(numerator, denominator), -shift)
}

/// `numerator / denominator` below 2^67, with a remainder folded into the lowest bit of twice the quotient and that halved again: the
/// quotient is returned shifted by nothing, its lowest bit sticky.
fn quotient(mut numerator: Big, mut denominator: Big) -> u128 {
    const BITS: usize = 67;
    denominator.shift_left(BITS);
    let mut quotient = 0u128;
    for _ in 0..=BITS {
        quotient <<= 1;
        if numerator.subtract_if_not_less(&denominator) {
            quotient |= 1;
        }
        denominator.halve();
    }
    quotient | u128::from(!numerator.is_zero())
}

/// Writes `significand / 2^shift` with 17 decimals, zeros at the end taken off.
fn write_fraction(out: &mut Vec<u8>, significand: u64, shift: i64) {
    const SCALE: u64 = 100_000_000_000_000_000;
    let (mut whole, fraction) = match u32::try_from(shift) {
        Ok(shift) if shift < 64 => (significand >> shift, significand & ((1 << shift) - 1)),
        _ => (0, significand),
    };
    // Below 2^121.
    let scaled = u128::from(fraction) * u128::from(SCALE);
    let mut decimals =
        round_shift(scaled, shift).expect("shifting right loses nothing at the top") as u64;
    if decimals >= SCALE {
        decimals -= SCALE;
        whole += 1;
    }
    out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes());
    if decimals != 0 {
        let text = format!(".{decimals:017}");
        out.extend_from_slice(text.trim_end_matches('0').as_bytes());
    }
}

/// An unsigned integer of any size, lowest digit first, without leading zeros. At most about 33,000 bits occur here.
struct Big(Vec<u32>);

impl From<u64> for Big {
    fn from(value: u64) -> Self {
        let mut big = Self(vec![value as u32, (value >> 32) as u32]);
        big.trim();
        big
    }
}

impl Big {
    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    fn bits(&self) -> usize {
        self.0
            .last()
            .map_or(0, |top| self.0.len() * 32 - top.leading_zeros() as usize)
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn multiply_add(&mut self, factor: u32, addend: u32) {
        let mut carry = u64::from(addend);
        for digit in &mut self.0 {
            carry += u64::from(*digit) * u64::from(factor);
            *digit = carry as u32;
            carry >>= 32;
        }
        if carry != 0 {
            self.0.push(carry as u32);
        }
    }

    fn multiply_power_of_ten(&mut self, power: usize) {
        for _ in 0..power / 9 {
            self.multiply_add(1_000_000_000, 0);
        }
        self.multiply_add(10u32.pow((power % 9) as u32), 0);
    }

    fn shift_left(&mut self, bits: usize) {
        if self.is_zero() {
            return;
        }
        self.multiply_add(1 << (bits % 32), 0);
        self.0.splice(0..0, std::iter::repeat_n(0, bits / 32));
    }

    fn halve(&mut self) {
        let mut carry = 0;
        for digit in self.0.iter_mut().rev() {
            let low = *digit & 1;
            *digit = *digit >> 1 | carry << 31;
            carry = low;
        }
        self.trim();
    }

    /// Subtracts `other` unless it is larger; says whether it did.
    fn subtract_if_not_less(&mut self, other: &Self) -> bool {
        let order = self
            .0
            .len()
            .cmp(&other.0.len())
            .then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()));
        if order.is_lt() {
            return false;
        }
        let mut borrow = false;
        for (i, digit) in self.0.iter_mut().enumerate() {
            let (value, first) = digit.overflowing_sub(other.0.get(i).copied().unwrap_or(0));
            let (value, second) = value.overflowing_sub(u32::from(borrow));
            *digit = value;
            borrow = first || second;
        }
        self.trim();
        true
    }

    /// The top 96 to 128 bits and the exponent of their lowest, into which all lower bits are folded.
    fn top_bits(&self) -> (u128, i64) {
        let skipped = self.0.len().saturating_sub(4);
        let top = self.0[skipped..]
            .iter()
            .rev()
            .fold(0u128, |bits, &digit| bits << 32 | u128::from(digit));
        let sticky = self.0[..skipped].iter().any(|&digit| digit != 0);
        (top | u128::from(sticky), skipped as i64 * 32)
    }

    fn write_decimal(mut self, out: &mut Vec<u8>) {
        let mut groups = Vec::new();
        while !self.is_zero() {
            let mut remainder = 0u64;
            for digit in self.0.iter_mut().rev() {
                let value = remainder << 32 | u64::from(*digit);
                *digit = (value / 1_000_000_000) as u32;
                remainder = value % 1_000_000_000;
            }
            self.trim();
            groups.push(remainder);
        }
        let mut groups = groups.into_iter().rev();
        let first = groups.next().unwrap_or(0);
        out.extend_from_slice(itoa::Buffer::new().format(first).as_bytes());
        for group in groups {
            out.extend_from_slice(format!("{group:09}").as_bytes());
        }
    }
}
