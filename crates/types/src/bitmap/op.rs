//! The bit-wise combinations of several strings, block by block, so that the memory needed does not depend on their number.

/// What `BITOP` computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOp {
    /// Bits set in all sources.
    And,
    /// Bits set in any source.
    Or,
    /// Bits set in an odd number of sources.
    Xor,
    /// Bits not set in the only source.
    Not,
    /// Bits set in the first source and in none of the others.
    Diff,
    /// Bits set in any of the others and not in the first source.
    Diff1,
    /// Bits set in the first source and in any of the others.
    AndOr,
    /// Bits set in exactly one source.
    One,
}

impl BitOp {
    /// The operation by its name, in any case.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        const NAMES: [(&str, BitOp); 8] = [
            ("and", BitOp::And),
            ("or", BitOp::Or),
            ("xor", BitOp::Xor),
            ("not", BitOp::Not),
            ("diff", BitOp::Diff),
            ("diff1", BitOp::Diff1),
            ("andor", BitOp::AndOr),
            ("one", BitOp::One),
        ];
        NAMES
            .iter()
            .find(|(word, _)| name.eq_ignore_ascii_case(word.as_bytes()))
            .map(|(_, op)| *op)
    }
}

/// Bytes that one step combines.
pub const BLOCK_LEN: usize = 8 * 1024;

/// Combines one block: `read(source, buf)` fills `buf` with the source's bytes of this block, zero where it has none. The
/// result is left in `out`; `other` and `more` are scratch of the same length.
pub fn combine(
    op: BitOp,
    sources: usize,
    out: &mut [u8],
    other: &mut [u8],
    more: &mut [u8],
    mut read: impl FnMut(usize, &mut [u8]),
) {
    read(0, out);
    match op {
        BitOp::Not => out.iter_mut().for_each(|byte| *byte = !*byte),
        BitOp::And => each_other(sources, out, other, read, |a, b| a & b),
        BitOp::Or => each_other(sources, out, other, read, |a, b| a | b),
        BitOp::Xor => each_other(sources, out, other, read, |a, b| a ^ b),
        BitOp::Diff | BitOp::Diff1 | BitOp::AndOr => {
            more.fill(0);
            each_other(sources, more, other, read, |a, b| a | b);
            match op {
                BitOp::Diff => zip(out, more, |first, any| first & !any),
                BitOp::Diff1 => zip(out, more, |first, any| any & !first),
                _ => zip(out, more, |first, any| first & any),
            }
        }
        BitOp::One => {
            // `out`: seen at least once; `more`: seen at least twice.
            more.fill(0);
            for source in 1..sources {
                read(source, other);
                for ((once, twice), &byte) in out.iter_mut().zip(more.iter_mut()).zip(other.iter())
                {
                    *twice |= *once & byte;
                    *once |= byte;
                }
            }
            zip(out, more, |once, twice| once & !twice);
        }
    }
}

fn each_other(
    sources: usize,
    into: &mut [u8],
    other: &mut [u8],
    mut read: impl FnMut(usize, &mut [u8]),
    f: impl Fn(u8, u8) -> u8,
) {
    for source in 1..sources {
        read(source, other);
        zip(into, other, &f);
    }
}

fn zip(into: &mut [u8], other: &[u8], f: impl Fn(u8, u8) -> u8) {
    for (a, &b) in into.iter_mut().zip(other) {
        *a = f(*a, b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn model(op: BitOp, bits: &[bool]) -> bool {
        let others = bits[1..].iter().any(|&b| b);
        match op {
            BitOp::And => bits.iter().all(|&b| b),
            BitOp::Or => bits.iter().any(|&b| b),
            BitOp::Xor => bits.iter().filter(|&&b| b).count() % 2 == 1,
            BitOp::Not => !bits[0],
            BitOp::Diff => bits[0] && !others,
            BitOp::Diff1 => !bits[0] && others,
            BitOp::AndOr => bits[0] && others,
            BitOp::One => bits.iter().filter(|&&b| b).count() == 1,
        }
    }

    proptest! {
        #[test]
        fn as_bit_by_bit(sources in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 20), 1..6)) {
            for name in ["and", "OR", "xor", "not", "diff", "Diff1", "andor", "one"] {
                let op = BitOp::from_name(name.as_bytes()).expect("a name");
                let (mut out, mut other, mut more) = ([0; 20], [0; 20], [0; 20]);
                combine(op, sources.len(), &mut out, &mut other, &mut more, |source, buf| buf.copy_from_slice(&sources[source]));
                for bit in 0..160 {
                    let bits: Vec<bool> = sources.iter().map(|s| s[bit / 8] >> (bit % 8) & 1 == 1).collect();
                    prop_assert_eq!(out[bit / 8] >> (bit % 8) & 1 == 1, model(op, &bits), "{:?}", op);
                }
            }
        }
    }
}
