//! The value of each key. It follows from the key's number, so any connection can write it and any check can know it;
//! it is cut from a pool of random bytes, so that writing one costs a copy and nothing else.

use super::keys::{Rng, mix};
use serde::Serialize;

/// What the bytes of a value look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ValueKind {
    /// Any byte, 0 to 255.
    Random,
    /// Printable ASCII, space to tilde.
    Ascii,
}

/// The lengths of values: every length from `min_bytes` to `max_bytes` equally often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ValueSize {
    /// The shortest value.
    pub min_bytes: usize,
    /// The longest value; equal to the shortest where all are equal.
    pub max_bytes: usize,
}

impl ValueSize {
    /// All values of one length.
    pub fn fixed(bytes: usize) -> Self {
        Self {
            min_bytes: bytes,
            max_bytes: bytes,
        }
    }
}

/// A pool of bytes and the rule that cuts a key's value out of it.
#[derive(Debug)]
pub struct Values {
    pool: Vec<u8>,
    size: ValueSize,
}

/// Values start anywhere in this many bytes; small enough to stay in the client's cache.
const STARTS: usize = 256 * 1024;

impl Values {
    /// A pool for values of `size` and `kind`; its bytes follow from `seed`.
    pub fn new(size: ValueSize, kind: ValueKind, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let pool = (0..STARTS + size.max_bytes)
            .map(|_| match kind {
                ValueKind::Random => rng.next_u64() as u8,
                ValueKind::Ascii => b' ' + rng.below(95) as u8,
            })
            .collect();
        Self { pool, size }
    }

    /// The length of the value of key `index`.
    pub fn len_of(&self, index: u64) -> usize {
        let span = (self.size.max_bytes - self.size.min_bytes) as u64 + 1;
        if span == 1 {
            return self.size.min_bytes;
        }
        let scaled = (u128::from(mix(index ^ 0x5a5a)) * u128::from(span)) >> 64;
        self.size.min_bytes + scaled as usize
    }

    /// The value of key `index`.
    pub fn of(&self, index: u64) -> &[u8] {
        let start = mix(index) as usize % STARTS;
        &self.pool[start..start + self.len_of(index)]
    }

    /// The length all values have, or `None` where they differ.
    pub fn fixed_len(&self) -> Option<usize> {
        (self.size.min_bytes == self.size.max_bytes).then_some(self.size.min_bytes)
    }

    /// The bytes of the values of keys `0..keys` together.
    pub fn total_bytes(&self, keys: u64) -> u64 {
        match self.fixed_len() {
            Some(len) => len as u64 * keys,
            None => (0..keys).map(|index| self.len_of(index) as u64).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_follows_from_its_key() {
        let size = ValueSize {
            min_bytes: 20,
            max_bytes: 400,
        };
        let values = Values::new(size, ValueKind::Random, 9);
        let again = Values::new(size, ValueKind::Random, 9);
        for index in 0..2_000 {
            assert_eq!(values.of(index), again.of(index));
            assert!((20..=400).contains(&values.of(index).len()));
        }
        assert_ne!(values.of(1), values.of(2));
    }

    #[test]
    fn the_range_is_used_evenly_and_both_ends_occur() {
        let size = ValueSize {
            min_bytes: 20,
            max_bytes: 400,
        };
        let values = Values::new(size, ValueKind::Ascii, 1);
        let keys = 100_000;
        let mean = values.total_bytes(keys) as f64 / keys as f64;
        assert!((mean - 210.0).abs() < 2.0, "mean {mean}");
        let lens: Vec<usize> = (0..keys).map(|index| values.len_of(index)).collect();
        assert_eq!(lens.iter().min(), Some(&20));
        assert_eq!(lens.iter().max(), Some(&400));
    }

    #[test]
    fn ascii_is_printable_and_random_is_not() {
        let ascii = Values::new(ValueSize::fixed(100), ValueKind::Ascii, 1);
        assert!((0..100).all(|i| ascii.of(i).iter().all(|b| (0x20..0x7f).contains(b))));
        let random = Values::new(ValueSize::fixed(100), ValueKind::Random, 1);
        assert!((0..100).all(|i| random.of(i).iter().any(|b| *b > 0x7f)));
    }
}
