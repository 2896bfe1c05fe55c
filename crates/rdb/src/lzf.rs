//! LZF, the light compression of strings in RDB.
//!
//! ```text
//! 000nnnnn  n+1 bytes                  n+1 bytes as they are (1 to 32)
//! nnnooooo  oooooooo                   n+2 bytes (3 to 8) from o+1 bytes back
//! 111ooooo  nnnnnnnn oooooooo          n+9 bytes (9 to 264) from o+1 bytes back
//! ```
//! A copy may reach into what it writes itself: offset 1 repeats one byte.

use crate::RdbError;

const LITERALS_MAX: usize = 32;
const MATCH_MIN: usize = 3;
const MATCH_MAX: usize = 264;
const OFFSET_MAX: usize = 1 << 13;
/// Three bytes yield at most 264: more than this times its size no compressed string can become.
const EXPANSION_MAX: u64 = 88;
/// After 2^this bytes without a match every second place is looked at, after twice as many every third, and so on.
const SKIP_SHIFT: usize = 6;

/// Decompresses to exactly `len` bytes, appended to `out`.
pub fn decompress(compressed: &[u8], len: u64, out: &mut Vec<u8>) -> Result<(), RdbError> {
    if len > (compressed.len() as u64).saturating_mul(EXPANSION_MAX) {
        return Err(RdbError::BadCompression);
    }
    let start = out.len();
    let end = usize::try_from(len)
        .ok()
        .and_then(|len| start.checked_add(len))
        .ok_or(RdbError::BadCompression)?;
    out.reserve(end - start);
    let mut rest = compressed;
    while let Some((&control, after)) = rest.split_first() {
        rest = after;
        let control = usize::from(control);
        if control < LITERALS_MAX {
            let (literals, after) = rest
                .split_at_checked(control + 1)
                .ok_or(RdbError::BadCompression)?;
            if out.len() + literals.len() > end {
                return Err(RdbError::BadCompression);
            }
            out.extend_from_slice(literals);
            rest = after;
            continue;
        }
        let mut count = (control >> 5) + 2;
        if count == 9 {
            let (&more, after) = rest.split_first().ok_or(RdbError::BadCompression)?;
            count += usize::from(more);
            rest = after;
        }
        let (&low, after) = rest.split_first().ok_or(RdbError::BadCompression)?;
        rest = after;
        let offset = ((control & 31) << 8 | usize::from(low)) + 1;
        if offset > out.len() - start || out.len() + count > end {
            return Err(RdbError::BadCompression);
        }
        copy_back(out, offset, count);
    }
    if out.len() == end {
        Ok(())
    } else {
        Err(RdbError::BadCompression)
    }
}

/// Appends `count` bytes from `offset` bytes back.
fn copy_back(out: &mut Vec<u8>, offset: usize, count: usize) {
    let from = out.len() - offset;
    if offset >= count {
        out.extend_from_within(from..from + count);
    } else {
        for at in from..from + count {
            out.push(out[at]);
        }
    }
}

/// Compresses `bytes`. `None` when that would not make them smaller than `limit_bytes`.
#[must_use]
pub fn compress(bytes: &[u8], limit_bytes: usize) -> Option<Vec<u8>> {
    // Places are kept in 32 bits.
    u32::try_from(bytes.len()).ok()?;
    let bits = bytes.len().max(16).ilog2().clamp(6, 14);
    // Where a group of three bytes was last seen, plus one.
    let mut seen = vec![0u32; 1 << bits];
    let mut out = Vec::with_capacity(limit_bytes.min(bytes.len()));
    let mut literals_from = 0;
    let mut at = 0;
    while let Some(group) = group_at(bytes, at) {
        let place = &mut seen[(group.wrapping_mul(0x9e37_79b1) >> (32 - bits)) as usize];
        let from = (*place as usize).wrapping_sub(1);
        *place = at as u32 + 1;
        // The comparison comes first because it rarely holds by chance, unlike the distance: a branch that can be foreseen.
        let found = group_at(bytes, from) == Some(group);
        if !found || at - from > OFFSET_MAX {
            // Where nothing was found for long, less is looked at: what does not compress costs little.
            at += 1 + ((at - literals_from) >> SKIP_SHIFT);
            continue;
        }
        let longest = MATCH_MAX.min(bytes.len() - at);
        let count = common(&bytes[from..], &bytes[at..], longest);
        put_literals(&bytes[literals_from..at], &mut out);
        put_copy(at - from - 1, count, &mut out);
        at += count;
        literals_from = at;
        if out.len() >= limit_bytes {
            return None;
        }
    }
    put_literals(&bytes[literals_from..], &mut out);
    (out.len() < limit_bytes).then_some(out)
}

#[inline]
fn group_at(bytes: &[u8], at: usize) -> Option<u32> {
    match bytes.get(at..)? {
        [a, b, c, ..] => Some(u32::from_le_bytes([*a, *b, *c, 0])),
        _ => None,
    }
}

/// How many bytes are the same at the front, at most `longest`, which both have.
fn common(a: &[u8], b: &[u8], longest: usize) -> usize {
    let (a, b) = (&a[..longest], &b[..longest]);
    let eights = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    let same = eights.take_while(|(a, b)| a == b).count() * 8;
    same + a[same..]
        .iter()
        .zip(&b[same..])
        .take_while(|(a, b)| a == b)
        .count()
}

fn put_literals(literals: &[u8], out: &mut Vec<u8>) {
    for run in literals.chunks(LITERALS_MAX) {
        out.push((run.len() - 1) as u8);
        out.extend_from_slice(run);
    }
}

fn put_copy(back: usize, count: usize, out: &mut Vec<u8>) {
    debug_assert!(back < OFFSET_MAX && (MATCH_MIN..=MATCH_MAX).contains(&count));
    let high = (back >> 8) as u8;
    if count < 9 {
        out.push(((count - 2) << 5) as u8 | high);
    } else {
        out.push(7 << 5 | high);
        out.push((count - 9) as u8);
    }
    out.push(back as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unpacked(compressed: &[u8], len: usize) -> Result<Vec<u8>, RdbError> {
        let mut out = b"before".to_vec();
        decompress(compressed, len as u64, &mut out)?;
        assert!(out.starts_with(b"before"));
        Ok(out.split_off(6))
    }

    #[test]
    fn runs_shrink() {
        for len in [25, 264, 265, 1000, 100_000] {
            let bytes = vec![b'a'; len];
            let compressed = compress(&bytes, len - 4).unwrap();
            assert!(
                compressed.len() < 12 + len / 60,
                "{len}: {}",
                compressed.len()
            );
            assert_eq!(unpacked(&compressed, len), Ok(bytes));
        }
    }

    #[test]
    fn what_does_not_shrink_is_left() {
        let mut state = 1u64;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .take(5000)
        .collect();
        assert_eq!(compress(&bytes, bytes.len() - 4), None);
        assert_eq!(compress(b"", 0), None);
    }

    #[test]
    fn broken_input_is_refused() {
        let refused = Err(RdbError::BadCompression);
        assert_eq!(unpacked(&[0], 1), refused, "a literal is missing");
        assert_eq!(
            unpacked(&[0, b'a', 0x20], 4),
            refused,
            "an offset is missing"
        );
        assert_eq!(
            unpacked(&[0, b'a', 0xe0, 1], 20),
            refused,
            "an offset is missing"
        );
        assert_eq!(
            unpacked(&[0, b'a', 0x20, 1], 4),
            refused,
            "before the beginning, where foreign bytes stand"
        );
        assert_eq!(
            unpacked(&[0, b'a', 0x20, 0], 3),
            refused,
            "more than announced"
        );
        assert_eq!(
            unpacked(&[0, b'a', 0x20, 0], 5),
            refused,
            "less than announced"
        );
        assert_eq!(unpacked(&[0, b'a', 0x20, 0], 4), Ok(b"aaaa".to_vec()));
        assert_eq!(unpacked(&[0, b'a'], usize::MAX), refused, "cannot be");
    }

    proptest! {
        #[test]
        fn round_trip(bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..600),
            prop::collection::vec(0u8..3, 0..3000),
            "[a-c]{0,40}".prop_map(|word: String| word.repeat(700).into_bytes()),
        ]) {
            if let Some(compressed) = compress(&bytes, bytes.len()) {
                prop_assert!(compressed.len() < bytes.len());
                prop_assert_eq!(unpacked(&compressed, bytes.len()), Ok(bytes));
            }
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), len in 0usize..2000) {
            if let Ok(out) = unpacked(&bytes, len) {
                prop_assert_eq!(out.len(), len);
            }
        }
    }
}
