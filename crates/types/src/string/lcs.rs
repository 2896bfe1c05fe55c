//! The longest common subsequence of two byte strings, with the table that tells the path. Must never allocate beyond the
//! limit that the caller gives.
//!
//! The path is part of the answer (which of several equally long subsequences is reported), so the table is walked exactly as
//! Redis does: from the end, up when the row above is strictly longer, otherwise left.

/// Why no answer is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A string has 2³² − 2 bytes or more.
    TooLong,
    /// The table would be larger than the limit.
    BeyondLimit,
    /// The system did not give the memory.
    NoMemory,
}

/// A stretch that both strings have, with inclusive ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// First and last byte in the first string.
    pub a: (u32, u32),
    /// First and last byte in the second string.
    pub b: (u32, u32),
}

impl Match {
    /// Number of bytes.
    pub const fn len(&self) -> u32 {
        self.a.1 - self.a.0 + 1
    }
    /// A match has at least one byte.
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lcs {
    /// Length of the subsequence.
    pub len: u32,
    /// The subsequence itself; empty when only the length was asked.
    pub text: Vec<u8>,
    /// The stretches, from the last to the first; empty when only the length was asked.
    pub matches: Vec<Match>,
}

/// Computes only the length: two rows suffice, whatever the limit; the table's size is checked all the same, so that the same
/// question is answered or refused whichever form it takes.
pub fn length(a: &[u8], b: &[u8], limit_bytes: u64) -> Result<u32, Refused> {
    check(a, b, limit_bytes)?;
    let mut row = zeroes(b.len() + 1)?;
    for &x in a {
        let mut diagonal = 0;
        for (j, &y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = if x == y {
                diagonal + 1
            } else {
                above.max(row[j])
            };
            diagonal = above;
        }
    }
    Ok(row[b.len()])
}

/// Computes the subsequence and its stretches; `limit_bytes` bounds the table.
pub fn compute(a: &[u8], b: &[u8], limit_bytes: u64) -> Result<Lcs, Refused> {
    check(a, b, limit_bytes)?;
    let width = b.len() + 1;
    let mut table = zeroes((a.len() + 1) * width)?;
    for (i, &x) in a.iter().enumerate() {
        let (before, from_here) = table.split_at_mut((i + 1) * width);
        let above = &before[i * width..];
        let here = &mut from_here[..width];
        for (j, &y) in b.iter().enumerate() {
            here[j + 1] = if x == y {
                above[j] + 1
            } else {
                above[j + 1].max(here[j])
            };
        }
    }
    Ok(walk(a, b, &table))
}

fn walk(a: &[u8], b: &[u8], table: &[u32]) -> Lcs {
    let width = b.len() + 1;
    let at = |i: usize, j: usize| table[i * width + j];
    let len = at(a.len(), b.len());
    let mut text = vec![0; len as usize];
    let mut left = len as usize;
    let mut matches = Vec::new();
    let mut open: Option<Match> = None;
    let (mut i, mut j) = (a.len(), b.len());
    while i > 0 && j > 0 {
        if a[i - 1] == b[j - 1] {
            i -= 1;
            j -= 1;
            left -= 1;
            text[left] = a[i];
            let (x, y) = (i as u32, j as u32);
            // On the diagonal a stretch always continues the one before: any other step closes it.
            open = Some(match open {
                Some(found) => Match {
                    a: (x, found.a.1),
                    b: (y, found.b.1),
                },
                None => Match {
                    a: (x, x),
                    b: (y, y),
                },
            });
        } else {
            if at(i - 1, j) > at(i, j - 1) {
                i -= 1;
            } else {
                j -= 1;
            }
            matches.extend(open.take());
        }
    }
    matches.extend(open);
    Lcs { len, text, matches }
}

fn check(a: &[u8], b: &[u8], limit_bytes: u64) -> Result<(), Refused> {
    const LONGEST: u64 = u32::MAX as u64 - 1;
    let (a_len, b_len) = (a.len() as u64, b.len() as u64);
    if a_len >= LONGEST || b_len >= LONGEST {
        return Err(Refused::TooLong);
    }
    // Cannot overflow: both factors are below 2³².
    let cells = (a_len + 1) as u128 * (b_len + 1) as u128;
    if cells * size_of::<u32>() as u128 > u128::from(limit_bytes) {
        Err(Refused::BeyondLimit)
    } else {
        Ok(())
    }
}

fn zeroes(len: usize) -> Result<Vec<u32>, Refused> {
    let mut row = Vec::new();
    row.try_reserve_exact(len).map_err(|_| Refused::NoMemory)?;
    row.resize(len, 0);
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_the_documentation() {
        let found = compute(b"ohmytext", b"mynewtext", 1 << 20).expect("small");
        assert_eq!(found.text, b"mytext");
        assert_eq!(
            found.matches,
            [
                Match {
                    a: (4, 7),
                    b: (5, 8)
                },
                Match {
                    a: (2, 3),
                    b: (0, 1)
                }
            ]
        );
        assert_eq!(length(b"ohmytext", b"mynewtext", 1 << 20), Ok(6));
    }

    #[test]
    fn empty_and_refused() {
        assert_eq!(compute(b"", b"abc", 1 << 20), Ok(Lcs::default()));
        assert_eq!(
            compute(&[0; 1000], &[0; 1000], 4_000_000),
            Err(Refused::BeyondLimit)
        );
        assert_eq!(
            length(&[0; 1000], &[0; 1000], 4_000_000),
            Err(Refused::BeyondLimit)
        );
    }

    proptest! {
        #[test]
        fn a_common_subsequence_of_that_length(a in proptest::collection::vec(0u8..4, 0..60), b in proptest::collection::vec(0u8..4, 0..60)) {
            let found = compute(&a, &b, 1 << 20).expect("small");
            prop_assert_eq!(length(&a, &b, 1 << 20), Ok(found.len));
            prop_assert_eq!(found.text.len() as u32, found.len);
            let mut from_matches = Vec::new();
            for m in found.matches.iter().rev() {
                prop_assert_eq!(m.a.1 - m.a.0, m.b.1 - m.b.0);
                prop_assert_eq!(&a[m.a.0 as usize..=m.a.1 as usize], &b[m.b.0 as usize..=m.b.1 as usize]);
                from_matches.extend_from_slice(&a[m.a.0 as usize..=m.a.1 as usize]);
            }
            prop_assert_eq!(from_matches, found.text);
        }
    }
}
