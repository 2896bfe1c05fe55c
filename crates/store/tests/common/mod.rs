//! What the tests of the public face share.
#![allow(dead_code, reason = "each test file uses its part")]

use pantala_store::borrow::{Attempt, ShardSet, Wake};
use pantala_store::{Space, Store, StoreOptions};
use std::sync::Arc;

/// Nobody waits in single-threaded tests.
pub struct NoWake;

impl Wake for NoWake {
    fn wake(&self, _party: usize) {}
}

/// A small store with a fixed seed.
pub fn store(databases: u16) -> Store {
    let options = StoreOptions {
        seed: Some(7),
        databases,
        shards: 8,
        span_bytes: Some(1 << 30),
        ..StoreOptions::for_threads(1, 0)
    };
    Store::new(&options, Arc::new(NoWake)).expect("address space can be reserved")
}

/// All shards; nobody else is there.
pub fn all(store: &Store) -> Space<'_> {
    store
        .try_borrow(&ShardSet::all(store.shards()), &mut Attempt::new())
        .expect("nobody else borrows")
}
