//! Entries: what is written is read back, in every combination of parts and lengths.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::heap::Heap;
use proptest::prelude::*;

fn heap() -> HeapRef {
    Heap::new(1, 1 << 30).unwrap().handle(0)
}

fn check(at: NonNull<u8>, key: &[u8], payload: &[u8], spec: &Spec) {
    // SAFETY: a live entry.
    let entry = unsafe { Entry::new(at) };
    assert_eq!(entry.key(), key);
    assert_eq!(entry.payload(), payload);
    assert_eq!(entry.kind(), spec.kind);
    assert_eq!(entry.encoding(), spec.encoding);
    assert_eq!(entry.expiry_ms(), spec.expiry);
    assert_eq!(entry.mc(), spec.mc);
    assert_eq!(entry.fetched(), spec.fetched);
    assert_eq!(entry.access(), spec.access);
}

fn spec() -> impl Strategy<Value = Spec> {
    let mc = (any::<u32>(), any::<u64>(), any::<u8>()).prop_map(|(flags, cas, state)| McMeta {
        flags,
        cas,
        state,
    });
    (
        0u8..16,
        0u8..8,
        any::<u16>(),
        any::<bool>(),
        proptest::option::of(any::<i64>()),
        proptest::option::of(mc),
    )
        .prop_map(|(kind, encoding, access, fetched, expiry, mc)| Spec {
            kind: Kind::from_bits(kind),
            encoding: Encoding::new(encoding),
            access,
            fetched,
            expiry,
            mc,
            payload_len: 0,
        })
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0usize..140, 1 => 250usize..262, 1 => 65_530usize..65_540, 1 => 0usize..20_000]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: if cfg!(miri) { 8 } else { 300 }, ..ProptestConfig::default() })]

    #[test]
    fn entries_keep_what_they_are_given(
        first in spec(), later in proptest::collection::vec((spec(), length()), 1..6), key_len in length(), payload_len in length(),
    ) {
        let heap = heap();
        let key: Vec<u8> = (0..key_len).map(|i| (i * 7) as u8).collect();
        let mut payload: Vec<u8> = (0..payload_len).map(|i| (i * 13) as u8).collect();
        let mut now = Spec { payload_len, ..first };
        let mut at = create(&heap, &key, &now);
        // SAFETY: live entries of this heap that nobody else sees.
        unsafe {
            payload_mut(at).copy_from_slice(&payload);
            check(at, &key, &payload, &now);
            for (spec, length) in later {
                now = Spec { payload_len: length, ..spec };
                payload.resize(length, 0);
                at = rebuild(&heap, at, &now, Keep::Payload);
                check(at, &key, &payload, &now);
                assert!(key_is(at, &key));
                assert!(!key_is(at, b"another key"));
                set_access(at, 0xabcd);
                set_fetched(at);
                now = Spec { access: 0xabcd, fetched: true, ..now };
                check(at, &key, &payload, &now);
                at = relocate(&heap, at);
                check(at, &key, &payload, &now);
                payload.fill(3);
                at = rebuild(&heap, at, &now, Keep::KeyOnly);
                payload_mut(at).copy_from_slice(&payload);
                check(at, &key, &payload, &now);
            }
            assert!(destroy(&heap, at).is_none());
        }
        assert_eq!(heap.heap().used_bytes(), 0);
    }
}

#[test]
fn the_common_entry_takes_120_bytes_and_an_expiry_eight_more() {
    let spec = Spec {
        kind: Kind::String,
        encoding: Encoding::RAW,
        access: 0,
        fetched: false,
        expiry: None,
        mc: None,
        payload_len: 100,
    };
    assert_eq!(real_size(Shape::of(&spec, 15).total()), 120);
    let expiring = Spec {
        expiry: Some(1),
        ..spec
    };
    assert_eq!(real_size(Shape::of(&expiring, 15).total()), 128);
}
