//! One line of the table: eight words in 64 bytes, one cache line.
//!
//! A word is 20 bits of tag and 44 bits of address / 8; zero is empty. Comparing a tag with all eight words is the inner loop
//! of every lookup: on x86-64 with SSE2 (part of the baseline), elsewhere in a form that compilers vectorise.

use std::ptr::NonNull;

pub(crate) const WORDS: usize = 8;
pub(crate) const TAG_BITS: u32 = 20;
const ADDRESS_BITS: u32 = 64 - TAG_BITS;

/// A line of the table.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u64; WORDS]);

const _: () = assert!(size_of::<Line>() == 64);

/// A word for an entry.
#[inline]
pub(crate) fn word(tag: u32, at: NonNull<u8>) -> u64 {
    let address = at.as_ptr().expose_provenance() as u64;
    debug_assert!(
        address.is_multiple_of(8) && address >> (ADDRESS_BITS + 3) == 0 && tag >> TAG_BITS == 0
    );
    u64::from(tag) << ADDRESS_BITS | address >> 3
}

#[inline]
pub(crate) fn tag_of(word: u64) -> u32 {
    (word >> ADDRESS_BITS) as u32
}

/// The entry of a word that is not empty.
#[inline]
pub(crate) fn entry_of(word: u64) -> NonNull<u8> {
    let address = (word & ((1 << ADDRESS_BITS) - 1)) << 3;
    NonNull::new(std::ptr::with_exposed_provenance_mut(address as usize))
        .expect("a word that is not empty holds an address")
}

impl Line {
    /// Bit i is set when word i is not empty and has this tag; and bit i of the second when word i is empty.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline]
    pub(crate) fn compare(&self, tag: u32) -> (u8, u8) {
        use std::arch::x86_64::*;
        // SAFETY: SSE2 is part of x86-64; the line is 64 bytes, aligned to 64.
        unsafe {
            let at = self.0.as_ptr().cast::<__m128i>();
            let (a, b) = (_mm_load_si128(at), _mm_load_si128(at.add(1)));
            let (c, d) = (_mm_load_si128(at.add(2)), _mm_load_si128(at.add(3)));
            let high = |x, y| {
                _mm_castps_si128(_mm_shuffle_ps::<0b11_01_11_01>(
                    _mm_castsi128_ps(x),
                    _mm_castsi128_ps(y),
                ))
            };
            let low = |x, y| {
                _mm_castps_si128(_mm_shuffle_ps::<0b10_00_10_00>(
                    _mm_castsi128_ps(x),
                    _mm_castsi128_ps(y),
                ))
            };
            let (high_1, high_2) = (high(a, b), high(c, d));
            let wanted = _mm_set1_epi32(tag as i32);
            let same_1 = _mm_cmpeq_epi32(_mm_srli_epi32::<12>(high_1), wanted);
            let same_2 = _mm_cmpeq_epi32(_mm_srli_epi32::<12>(high_2), wanted);
            let zero = _mm_setzero_si128();
            let empty_1 = _mm_cmpeq_epi32(_mm_or_si128(high_1, low(a, b)), zero);
            let empty_2 = _mm_cmpeq_epi32(_mm_or_si128(high_2, low(c, d)), zero);
            let same = _mm_packs_epi32(same_1, same_2);
            let empty = _mm_packs_epi32(empty_1, empty_2);
            let mask = _mm_movemask_epi8(_mm_packs_epi16(same, empty)) as u32;
            let (same, empty) = (mask as u8, (mask >> 8) as u8);
            (same & !empty, empty)
        }
    }

    /// Bit i is set when word i is not empty and has this tag; and bit i of the second when word i is empty.
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    #[inline]
    pub(crate) fn compare(&self, tag: u32) -> (u8, u8) {
        let (mut same, mut empty) = (0u8, 0u8);
        for (i, &word) in self.0.iter().enumerate() {
            same |= u8::from(tag_of(word) == tag) << i;
            empty |= u8::from(word == 0) << i;
        }
        (same & !empty, empty)
    }

    #[inline]
    pub(crate) fn empty_mask(&self) -> u8 {
        self.compare(0).1
    }
}

/// The positions of the set bits, lowest first.
#[inline]
pub(crate) fn bits(mut mask: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let bit = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compare_finds_tags_and_holes() {
        let mut seed = 7u64;
        for _ in 0..2000 {
            let mut line = Line([0; WORDS]);
            for slot in &mut line.0 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *slot = match seed >> 61 {
                    0 => 0,
                    1 => 1,
                    2 => 1 << 32,
                    n => n << ADDRESS_BITS | seed >> 40 & 0xffff_fffe | 1,
                };
            }
            for tag in 0..8 {
                let (same, empty) = line.compare(tag);
                for (i, &word) in line.0.iter().enumerate() {
                    assert_eq!(
                        same >> i & 1 == 1,
                        word != 0 && tag_of(word) == tag,
                        "{word:x}"
                    );
                    assert_eq!(empty >> i & 1 == 1, word == 0, "{word:x}");
                }
            }
        }
    }
}
