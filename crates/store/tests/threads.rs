//! Several threads on one store: nothing is lost, counters stay exact, memory comes back, while bites run.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::NoWake;
use pantala_store::borrow::{Attempt, ShardSet};
use pantala_store::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const NOW: i64 = 1_800_000_000_000;
const THREADS: u64 = 3;
const ROUNDS: u64 = 30_000;

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Moves one unit from one key's number to another's, atomically over two shards.
fn transfer(store: &Store, from: &[u8], to: &[u8]) {
    let (from, to) = (store.key(from), store.key(to));
    let mut set = ShardSet::new();
    set.push(store.shard_of(from.hash));
    set.push(store.shard_of(to.hash));
    set.seal();
    let mut attempt = Attempt::new();
    let mut space = loop {
        match store.try_borrow(&set, &mut attempt) {
            Ok(space) => break space,
            Err(_) => std::thread::yield_now(),
        }
    };
    let mut db = space.db(0, NOW);
    for (key, change) in [(from, -1i64), (to, 1)] {
        let mut slot = db.slot(&key);
        let old = slot.entry().map_or(0, |entry| {
            i64::from_le_bytes(entry.payload()[..8].try_into().unwrap())
        });
        // The length changes, so entries move all the time.
        let mut value = vec![0; 8 + (old.unsigned_abs() as usize * 13 + key.bytes.len()) % 300];
        value[..8].copy_from_slice(&(old + change).to_le_bytes());
        slot.put(Kind::String, Encoding::RAW, &value, PutMeta::CLEAR);
    }
}

fn work(store: &Store, mut state: u64) {
    for round in 0..ROUNDS {
        let (a, b) = (random(&mut state) % 2_000, random(&mut state) % 2_000);
        transfer(
            store,
            format!("account:{a}").as_bytes(),
            format!("account:{b}").as_bytes(),
        );
        if round % 4 == 0 {
            let name = format!("other:{}", random(&mut state) % 20_000);
            let key = store.key(name.as_bytes());
            store.prefetch_shard(key.hash);
            store.prefetch_line(key.hash, 1);
            store.prefetch_entry(key.hash, 1);
            if let Some(mut space) = store.try_borrow_one(store.shard_of(key.hash)) {
                let mut db = space.db(1, NOW);
                if !db.remove(&key) {
                    db.slot_quiet(&key).put(
                        Kind::String,
                        Encoding::RAW,
                        name.as_bytes(),
                        PutMeta::CLEAR,
                    );
                }
            }
        }
    }
}

#[test]
fn transfers_between_threads_keep_the_sum() {
    let options = StoreOptions {
        seed: Some(3),
        shards: 16,
        groups: 2,
        span_bytes: Some(1 << 30),
        ..StoreOptions::for_threads(4, 0)
    };
    let store = Store::new(&options, Arc::new(NoWake)).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let bites = scope.spawn(|| {
            let mut now_ms = NOW;
            while !done.load(Ordering::Relaxed) {
                store.bite(now_ms, true, &mut |_| {});
                now_ms += 5;
                std::thread::yield_now();
            }
        });
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let store = &store;
                scope.spawn(move || work(store, thread * 7_919 + 1))
            })
            .collect();
        workers
            .into_iter()
            .for_each(|worker| worker.join().unwrap());
        done.store(true, Ordering::Relaxed);
        bites.join().unwrap();
    });
    let mut space = common::all(&store);
    let (mut sum, mut keys) = (0, 0);
    for shard in 0..store.shards() as u16 {
        let mut next = Some(Position::START);
        let view = space.shard_db(shard, 0, NOW);
        while let Some(at) = next {
            next = view.scan(at, 100, &mut |entry| {
                sum += i64::from_le_bytes(entry.payload()[..8].try_into().unwrap());
                keys += 1;
            });
        }
    }
    assert_eq!(sum, 0);
    assert_eq!(keys, store.dbsize(0));
    space.flush(None);
    drop(space);
    store.bite_all(NOW, true, &mut |_| {});
    assert_eq!(store.used_memory(), 0);
}
