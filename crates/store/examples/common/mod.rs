//! What both examples need: a store as the server makes it, and key number i.
#![allow(dead_code, reason = "each example uses its part")]

use pantala_store::borrow::{Attempt, ShardSet, Wake};
use pantala_store::{Space, Store, StoreOptions};
use std::sync::Arc;

struct NoWake;

impl Wake for NoWake {
    fn wake(&self, _party: usize) {}
}

/// An empty store as for two workers.
pub fn store() -> Store {
    Store::new(&StoreOptions::for_threads(2, 0), Arc::new(NoWake))
        .expect("address space can be reserved")
}

/// All shards; nobody else is there.
pub fn all(store: &Store) -> Space<'_> {
    store
        .try_borrow(&ShardSet::all(store.shards()), &mut Attempt::new())
        .expect("nobody else borrows")
}

/// A key of 15 bytes.
pub fn key(i: u64, out: &mut [u8; 15]) {
    out[..3].copy_from_slice(b"key");
    let mut rest = i;
    for digit in out[3..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

/// The next number of a simple pseudo-random sequence.
pub fn random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    let mixed = (*state ^ *state >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ mixed >> 33
}

/// Nanoseconds that the main thread has run so far. Unlike the wall clock it does not count the time of others.
pub fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_whitespace()
        .next()
        .and_then(|field| field.parse().ok())
        .unwrap_or(0)
}
