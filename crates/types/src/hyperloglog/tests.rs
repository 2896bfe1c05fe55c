//! HyperLogLogs against bytes and estimates that redis-server 7.0.15 gave.

use super::*;
use proptest::prelude::*;

const LIMIT: usize = 3000;

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn of(names: impl Iterator<Item = String>) -> Vec<u8> {
    let mut bytes = empty();
    invalidate(&mut bytes);
    for name in names {
        add(&mut bytes, name.as_bytes(), LIMIT).expect("well formed");
    }
    bytes
}

/// Obtained from redis-server 7.0.15: `e0` … added in order; number, length, FNV-1a of the bytes, estimate.
const SEEN_IN_REDIS: [(usize, usize, u64, u64); 14] = [
    (0, 18, 0x524b_c36d_036c_0579, 0),
    (1, 21, 0xfffb_6fae_ff77_f7cd, 1),
    (2, 24, 0x4f94_c027_5f89_7b7d, 2),
    (5, 33, 0x4ce1_4677_8f56_6ec1, 5),
    (10, 48, 0x4afc_b65d_27f7_d346, 10),
    (100, 285, 0xb8de_76da_b4a4_065e, 100),
    (500, 1068, 0xae68_01a0_53be_0586, 506),
    (1000, 1906, 0x5935_de02_3280_6824, 1008),
    (1500, 2719, 0xd67e_e50b_81f2_a28c, 1509),
    (1900, 12304, 0xca13_86fa_3b2b_39f2, 1901),
    (2000, 12304, 0x1b55_76fa_1f6b_8092, 2000),
    (5000, 12304, 0x8052_4675_3a1c_dada, 4968),
    (20000, 12304, 0x075d_2639_6862_b2bf, 19901),
    (100_000, 12304, 0xafbf_1713_dc5b_a3c8, 100_853),
];

#[test]
fn bytes_and_estimates_are_those_of_redis() {
    for (n, len, hash, estimate) in SEEN_IN_REDIS {
        let bytes = of((0..n).map(|i| format!("e{i}")));
        assert_eq!(bytes.len(), len, "{n} elements");
        assert_eq!(fnv(&bytes), hash, "{n} elements");
        assert_eq!(count(&bytes), Ok(estimate), "{n} elements");
    }
}

#[test]
fn one_element_byte_by_byte() {
    let expected = b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x45\x25\x80\x7a\xd8";
    assert_eq!(of(["e0".to_owned()].into_iter()), expected);
}

#[test]
fn a_union_is_that_of_redis() {
    let a = of((0..800).map(|i| format!("a{i}")));
    let b = of((0..600).map(|i| format!("b{i}")));
    let mut union = Union::default();
    assert_eq!(union.merge(&a), Ok(Form::Sparse));
    assert_eq!(union.merge(&b), Ok(Form::Sparse));
    assert_eq!(union.count(), 1403);
    let mut merged = empty();
    union
        .write_to(&mut merged, false, LIMIT)
        .expect("well formed");
    assert_eq!(merged.len(), 2537);
    assert_eq!(fnv(&merged), 0x3664_d6fb_0b6b_6c23);
    assert_eq!(count(&merged), Ok(1403));
}

#[test]
fn the_stored_estimate() {
    let mut bytes = empty();
    assert_eq!(cached(&bytes), Some(0));
    invalidate(&mut bytes);
    assert_eq!(cached(&bytes), None);
    set_cached(&mut bytes, 42);
    assert_eq!(cached(&bytes), Some(42));
}

#[test]
fn what_is_none() {
    assert_eq!(form(b""), Err(Invalid::NotHll));
    assert_eq!(form(b"HYLL"), Err(Invalid::NotHll));
    assert_eq!(form(b"HYLL\0\0\0\0\0\0\0\0\0\0\0\0"), Err(Invalid::NotHll));
    assert_eq!(
        form(b"HYLL\x02\0\0\0\0\0\0\0\0\0\0\0"),
        Err(Invalid::NotHll)
    );
    let mut cut = empty();
    cut.pop();
    assert_eq!(count(&cut), Err(Invalid::Corrupted));
    assert_eq!(to_dense(&mut cut), Err(Invalid::Corrupted));
}

proptest! {
    #[test]
    fn sparse_and_dense_agree(elements in proptest::collection::vec(0u32..5000, 0..300)) {
        let mut small = empty();
        let mut large = empty();
        to_dense(&mut large).expect("well formed");
        for element in elements {
            let name = element.to_string();
            let changed = add(&mut small, name.as_bytes(), LIMIT);
            prop_assert_eq!(changed, add(&mut large, name.as_bytes(), LIMIT));
        }
        prop_assert_eq!(count(&small), count(&large));
        to_dense(&mut small).expect("well formed");
        prop_assert_eq!(small, large);
    }

    #[test]
    fn damaged_registers_never_panic(tail in proptest::collection::vec(any::<u8>(), 0..200), names in proptest::collection::vec(any::<u32>(), 1..20)) {
        let mut bytes = b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0".to_vec();
        bytes.extend_from_slice(&tail);
        let _ = count(&bytes);
        let _ = Union::default().merge(&bytes);
        for name in names {
            let _ = add(&mut bytes, &name.to_le_bytes(), LIMIT);
        }
    }
}
