//! The digest that `DIGEST` reports and `IFDEQ`/`IFDNE` compare: XXH3, 64 bits, seed 0, as sixteen lower-case hex digits.

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// Number of hex digits.
pub const LEN: usize = 16;

/// The digest of `value`.
pub fn of(value: &[u8]) -> [u8; LEN] {
    hex(xxh3_64(value))
}

/// The digest of a value that comes in pieces.
#[derive(Clone, Default)]
pub struct Digest(Xxh3Default);

impl Digest {
    /// Adds a piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }
    /// The digest of all pieces.
    pub fn finish(&self) -> [u8; LEN] {
        hex(self.0.digest())
    }
}

fn hex(hash: u64) -> [u8; LEN] {
    std::array::from_fn(|index| b"0123456789abcdef"[(hash >> (60 - 4 * index)) as usize & 15])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // XXH3_64bits of the empty input, from the algorithm's own test vectors.
        assert_eq!(&of(b""), b"2d06800538d394c2");
        for len in [0, 1, 16, 17, 240, 241, 5000] {
            let value: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let mut pieces = Digest::default();
            value.chunks(100).for_each(|piece| pieces.update(piece));
            assert_eq!(pieces.finish(), of(&value), "{len}");
        }
    }
}
