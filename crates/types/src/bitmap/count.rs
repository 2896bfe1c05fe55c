//! Counting one bits in slices. No instruction beyond the baseline is assumed, so several words are first added bit-wise
//! (carry-save), and only one word in eight is counted.

/// Number of one bits.
pub fn count_ones(bytes: &[u8]) -> u64 {
    let mut blocks = bytes.chunks_exact(64);
    let mut total = 0u64;
    let (mut ones, mut twos, mut fours) = (0u64, 0u64, 0u64);
    for block in &mut blocks {
        let mut words = [0u64; 8];
        for (word, eight) in words.iter_mut().zip(block.chunks_exact(8)) {
            *word = word_of(eight);
        }
        let [a, b, c, d, e, f, g, h] = words;
        let (twos_a, sum) = carry_save(ones, a, b);
        let (twos_b, sum) = carry_save(sum, c, d);
        let (fours_a, pairs) = carry_save(twos, twos_a, twos_b);
        let (twos_a, sum) = carry_save(sum, e, f);
        let (twos_b, sum) = carry_save(sum, g, h);
        let (fours_b, pairs) = carry_save(pairs, twos_a, twos_b);
        let (eights, quads) = carry_save(fours, fours_a, fours_b);
        (ones, twos, fours) = (sum, pairs, quads);
        total += u64::from(eights.count_ones());
    }
    total = total * 8
        + u64::from(fours.count_ones()) * 4
        + u64::from(twos.count_ones()) * 2
        + u64::from(ones.count_ones());
    let mut words = blocks.remainder().chunks_exact(8);
    for word in &mut words {
        total += u64::from(word_of(word).count_ones());
    }
    for byte in words.remainder() {
        total += u64::from(byte.count_ones());
    }
    total
}

/// Full adder of three words: (carries, sums).
const fn carry_save(a: u64, b: u64, c: u64) -> (u64, u64) {
    let half = a ^ b;
    ((a & b) | (half & c), half ^ c)
}

fn word_of(eight: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(eight);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_bit_by_bit(bytes in proptest::collection::vec(any::<u8>(), 0..700)) {
            let expected: u64 = bytes.iter().map(|b| u64::from(b.count_ones())).sum();
            prop_assert_eq!(super::count_ones(&bytes), expected);
        }
    }
}
