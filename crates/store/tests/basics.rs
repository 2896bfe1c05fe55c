//! The public face of the store, as commands use it.
#![allow(clippy::unwrap_used, reason = "tests")]

use pantala_store::borrow::{Attempt, ShardSet, Wake};
use pantala_store::*;
use std::sync::Arc;

struct NoWake;

impl Wake for NoWake {
    fn wake(&self, _party: usize) {}
}

fn store() -> Store {
    let options = StoreOptions {
        seed: Some(7),
        ..StoreOptions::for_threads(1, 0)
    };
    Store::new(&options, Arc::new(NoWake)).unwrap()
}

fn all(store: &Store) -> Space<'_> {
    store
        .try_borrow(&ShardSet::all(store.shards()), &mut Attempt::new())
        .unwrap()
}

#[test]
fn a_value_is_stored_read_changed_and_removed() {
    let store = store();
    let key = store.key(b"hello");
    let mut space = store.try_borrow_one(store.shard_of(key.hash)).unwrap();
    let mut db = space.db(0, 1000);
    assert!(db.find(&key).is_none());
    db.slot_quiet(&key)
        .put(Kind::String, Encoding::RAW, b"world", PutMeta::CLEAR);
    let entry = db.find(&key).unwrap();
    assert_eq!(
        (entry.kind(), entry.key(), entry.payload()),
        (Kind::String, &b"hello"[..], &b"world"[..])
    );
    let mut slot = db.slot_quiet(&key);
    slot.resize_payload(300).unwrap()[299] = b'!';
    assert!(slot.set_expiry(Some(2000)));
    assert_eq!(slot.entry().unwrap().payload().len(), 300);
    assert_eq!(&slot.entry().unwrap().payload()[..6], b"world\0");
    assert_eq!(db.expires_len(), 1);
    assert_eq!(db.len(), 1);
    let mut db = space.db(0, 2000);
    assert!(db.exists(&key));
    let mut db = space.db(0, 2001);
    assert!(db.view(&key).is_none());
    assert!(!db.exists(&key));
    assert_eq!(
        space.take_removed(),
        [Removed {
            db: 0,
            key: b"hello"[..].into(),
            reason: Reason::Expired
        }]
    );
    assert_eq!(store.dbsize(0), 0);
    assert_eq!(
        store.stats(),
        StoreStats {
            hits: 1,
            misses: 1,
            expired: 1,
            ..StoreStats::default()
        }
    );
    assert_eq!(store.used_memory(), 0);
}

#[test]
fn many_keys_come_and_go_and_leave_nothing() {
    let store = store();
    let mut space = all(&store);
    let mut db = space.db(3, 0);
    for i in 0..100_000u32 {
        let key = i.to_string();
        db.slot_quiet(&db.key(key.as_bytes())).put(
            Kind::String,
            Encoding::RAW,
            key.as_bytes(),
            PutMeta::CLEAR,
        );
    }
    assert_eq!(db.len(), 100_000);
    for i in 0..100_000u32 {
        let key = i.to_string();
        assert_eq!(
            db.find(&db.key(key.as_bytes())).unwrap().payload(),
            key.as_bytes()
        );
    }
    let mut seen = 0;
    for shard in 0..store.shards() as u16 {
        let shard_db = space.shard_db(shard, 3, 0);
        let mut next = Some(Position::START);
        while let Some(at) = next {
            next = shard_db.scan(at, 10, &mut |_| seen += 1);
        }
    }
    assert_eq!(seen, 100_000);
    let mut db = space.db(3, 0);
    for i in 0..100_000u32 {
        assert!(db.remove(&db.key(i.to_string().as_bytes())));
    }
    assert_eq!(store.used_memory(), 0);
}
