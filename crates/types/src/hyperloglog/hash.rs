//! MurmurHash64A (Austin Appleby, public domain) with the seed that HyperLogLog keys use everywhere. The keys' bytes depend on
//! it, so it must never change.

const SEED: u64 = 0xadc8_3b19;
const M: u64 = 0xc6a4_a793_5bd1_e995;
const R: u32 = 47;

/// The hash of an element.
pub fn murmur64a(bytes: &[u8]) -> u64 {
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(M);
    let mut words = bytes.chunks_exact(8);
    for eight in &mut words {
        let mut word = [0; 8];
        word.copy_from_slice(eight);
        let mut mixed = u64::from_le_bytes(word).wrapping_mul(M);
        mixed ^= mixed >> R;
        hash = (hash ^ mixed.wrapping_mul(M)).wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(M);
    }
    hash ^= hash >> R;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> R)
}
