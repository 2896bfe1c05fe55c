//! ASCII text at seven bits a byte: pure functions over slices. Must never be given a byte ≥ 0x80.
//!
//! Eight characters make one *group* of seven bytes. The first seven characters keep their places; the seven bits of the eighth
//! are spread over the top bits that ASCII leaves free:
//!
//! ```text
//! characters   c0       c1       …  c6       c7 = b6 b5 b4 b3 b2 b1 b0
//! group        b0 c0    b1 c1    …  b6 c6                (one top bit and seven bits of text in each byte)
//! ```
//!
//! So unpacking a group is two masks and one multiplication (which gathers the top bits), and no character depends on its
//! neighbour. The `len % 8` characters at the end stand as they are. Two lengths give the same number of bytes when seven
//! characters stand at the end (`8 k + 7` and `8 (k + 1)`), so the encoding says which of the two it is.

/// Shortest text that is packed: below, the heap's classes of eight bytes seldom let the entry shrink.
pub const MIN_LEN: usize = 24;

const TEXT: u64 = 0x007f_7f7f_7f7f_7f7f;
const ONES: u64 = 0x0001_0101_0101_0101;
/// Sum of 2^(7k) for k = 1..=8: `t * GATHER` has bit `8i` of `t` at bit `56 + i`, and no two of its terms meet (8i + 7k are
/// all different for i < 7), so nothing carries.
const GATHER: u64 = 0x0102_0408_1020_4080;
/// Sum of 2^(7k) for k = 0..=6: copies seven bits side by side, so that bit `i` of copy `i` falls on bit `8i`.
const SPREAD: u64 = 0x0000_0408_1020_4081;

/// Bytes that `len` characters take.
pub const fn packed_len(len: usize) -> usize {
    len - len / 8
}

/// Number of characters in `packed_len` bytes; `seven_at_end` as the encoding says.
pub const fn text_len(packed_len: usize, seven_at_end: bool) -> usize {
    if seven_at_end {
        (packed_len - 7) / 7 * 8 + 7
    } else {
        packed_len / 7 * 8 + packed_len % 7
    }
}

/// Whether `len` characters end with seven that stand as they are.
pub const fn seven_at_end(len: usize) -> bool {
    len % 8 == 7
}

/// Whether all bytes are ASCII.
#[inline]
pub fn is_ascii(text: &[u8]) -> bool {
    // Without an early end the loop becomes vector instructions; the texts are short.
    let mut words = text.chunks_exact(8);
    let mut any = 0u64;
    for word in &mut words {
        any |= load(word);
    }
    let mut rest = 0u8;
    for byte in words.remainder() {
        rest |= byte;
    }
    any & 0x8080_8080_8080_8080 == 0 && rest < 0x80
}

/// Packs `text` into `out`, which is `packed_len(text.len())` long. All bytes are ASCII.
pub fn pack(text: &[u8], out: &mut [u8]) {
    debug_assert!(is_ascii(text));
    debug_assert_eq!(out.len(), packed_len(text.len()));
    let groups = text.len() / 8;
    let (text_groups, text_end) = text.split_at(groups * 8);
    let (out_groups, out_end) = out.split_at_mut(groups * 7);
    let (text_blocks, text_rest) = text_groups.as_chunks::<32>();
    let (out_blocks, out_rest) = out_groups.split_at_mut(text_blocks.len() * 28);
    for (block, packed) in text_blocks.iter().zip(out_blocks.as_chunks_mut::<28>().0) {
        *packed = pack_block(block);
    }
    for (eight, seven) in text_rest
        .as_chunks::<8>()
        .0
        .iter()
        .zip(out_rest.as_chunks_mut::<7>().0)
    {
        seven.copy_from_slice(&pack_group(u64::from_le_bytes(*eight)).to_le_bytes()[..7]);
    }
    out_end.copy_from_slice(text_end);
}

/// Unpacks into `out`, whose length is the number of characters.
#[inline]
pub fn unpack(packed: &[u8], out: &mut [u8]) {
    let groups = out.len() / 8;
    let (in_groups, in_end) = packed.split_at(groups * 7);
    let (out_groups, out_end) = out.split_at_mut(groups * 8);
    let (out_blocks, out_rest) = out_groups.as_chunks_mut::<32>();
    let (in_blocks, in_rest) = in_groups.split_at(out_blocks.len() * 28);
    for (packed, block) in in_blocks.as_chunks::<28>().0.iter().zip(out_blocks) {
        *block = unpack_block(packed);
    }
    for (seven, eight) in in_rest
        .as_chunks::<7>()
        .0
        .iter()
        .zip(out_rest.as_chunks_mut::<8>().0)
    {
        *eight = unpack_group(load7(seven)).to_le_bytes();
    }
    out_end.copy_from_slice(in_end);
}

/// Characters that [`for_each_piece`] unpacks at a time.
const PIECE_LEN: usize = 128;

/// Unpacks a text of `len` characters piece by piece: the way of `GET`, which needs no place of its own for the whole.
#[inline]
pub fn for_each_piece(packed: &[u8], len: usize, mut visit: impl FnMut(&[u8])) {
    let mut buf = [0; PIECE_LEN];
    let (mut packed, mut left) = (packed, len);
    while left > PIECE_LEN {
        let (now, later) = packed.split_at(packed_len(PIECE_LEN));
        unpack(now, &mut buf);
        visit(&buf);
        packed = later;
        left -= PIECE_LEN;
    }
    unpack(packed, &mut buf[..left]);
    visit(&buf[..left]);
}

/// The character at `index` of a text of `len` characters.
pub fn char_at(packed: &[u8], len: usize, index: usize) -> u8 {
    debug_assert!(index < len);
    let groups = len / 8;
    if index >= groups * 8 {
        return packed[groups * 7 + (index - groups * 8)];
    }
    let group = load7(&packed[index / 8 * 7..index / 8 * 7 + 7]);
    unpack_group(group).to_le_bytes()[index % 8]
}

#[inline]
const fn unpack_group(group: u64) -> u64 {
    (group & TEXT) | (((group >> 7) & ONES).wrapping_mul(GATHER) & 0xff00_0000_0000_0000)
}

#[inline]
const fn pack_group(text: u64) -> u64 {
    (text & TEXT) | ((((text >> 56) * SPREAD) & ONES) << 7)
}

/// Four groups at once: whole words are read, each beginning with its group (the last ends with it), which needs no checks.
#[inline]
fn unpack_block(packed: &[u8; 28]) -> [u8; 32] {
    let mut out = [0; 32];
    let (words, _) = out.as_chunks_mut::<8>();
    for (group, word) in words.iter_mut().enumerate() {
        let at = (group * 7).min(20);
        *word = unpack_group(load(&packed[at..at + 8]) >> ((group * 7 - at) * 8)).to_le_bytes();
    }
    out
}

#[inline]
fn pack_block(text: &[u8; 32]) -> [u8; 28] {
    let mut groups = [0; 4];
    for (group, eight) in groups.iter_mut().zip(text.as_chunks::<8>().0) {
        *group = pack_group(u64::from_le_bytes(*eight));
    }
    let [a, b, c, d] = groups;
    let mut out = [0; 28];
    out[..8].copy_from_slice(&(a | b << 56).to_le_bytes());
    out[8..16].copy_from_slice(&(b >> 8 | c << 48).to_le_bytes());
    out[16..24].copy_from_slice(&(c >> 16 | d << 40).to_le_bytes());
    out[24..].copy_from_slice(&((d >> 24) as u32).to_le_bytes());
    out
}

#[inline]
fn load(eight: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(eight);
    u64::from_le_bytes(bytes)
}

/// Seven bytes as a word, from two overlapping loads of four.
#[inline]
fn load7(seven: &[u8]) -> u64 {
    let (mut low, mut high) = ([0; 4], [0; 4]);
    low.copy_from_slice(&seven[..4]);
    high.copy_from_slice(&seven[3..7]);
    u64::from(u32::from_le_bytes(low)) | (u64::from(u32::from_le_bytes(high)) << 24)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(text: &[u8]) {
        let mut packed = vec![0xaa; packed_len(text.len())];
        pack(text, &mut packed);
        assert_eq!(text_len(packed.len(), seven_at_end(text.len())), text.len());
        let mut back = vec![0x55; text.len()];
        unpack(&packed, &mut back);
        assert_eq!(back, text);
        let mut pieces = Vec::new();
        for_each_piece(&packed, text.len(), |piece| pieces.extend_from_slice(piece));
        assert_eq!(pieces, text);
        for (index, &byte) in text.iter().enumerate() {
            assert_eq!(char_at(&packed, text.len(), index), byte);
        }
    }

    #[test]
    fn every_length_and_every_character() {
        for len in 0..200 {
            let text: Vec<u8> = (0..len).map(|i| ((i * 37 + len) % 128) as u8).collect();
            round_trip(&text);
        }
        for byte in 0..128 {
            round_trip(&[byte; 16]);
        }
        assert!(packed_len(100) == 88);
    }

    proptest! {
        #[test]
        fn any_ascii(text in proptest::collection::vec(0u8..128, 0..300)) {
            prop_assert!(is_ascii(&text));
            round_trip(&text);
        }

        #[test]
        fn ascii_is_told_apart(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(is_ascii(&text), text.is_ascii());
        }
    }
}
