//! Speed of the table, in time of this thread's own: `cargo run --release -p pantala-store --example table_speed [million keys …]`.

mod common;

use common::{all, cpu_ns, key, random, store};
use pantala_store::{Encoding, Key, Kind, PutMeta, Store};

const NOW_MS: i64 = 1_800_000_000_000;
const GETS: u64 = 2_000_000;
const BATCH: usize = 16;

fn timed(what: &str, count: u64, work: impl FnOnce()) {
    let start = cpu_ns();
    work();
    println!(
        "  {what:<50} {:>7.1} ns",
        (cpu_ns() - start) as f64 / count as f64
    );
}

fn one(store: &Store, key: &Key<'_>) -> u64 {
    let mut space = store
        .try_borrow_one(store.shard_of(key.hash))
        .expect("nobody else borrows");
    let mut db = space.db(0, NOW_MS);
    u64::from(db.find(key).expect("the key is there").payload()[0])
}

fn gets(store: &Store, keys: u64, batched: bool) {
    let mut state = 5;
    let mut names = [[0; 15]; BATCH];
    let mut sum = 0;
    for _ in 0..GETS / BATCH as u64 {
        for name in &mut names {
            key(random(&mut state) % keys, name);
        }
        let batch: [Key<'_>; BATCH] = std::array::from_fn(|i| store.key(&names[i]));
        if batched {
            batch.iter().for_each(|key| store.prefetch_shard(key.hash));
            batch
                .iter()
                .for_each(|key| store.prefetch_line(key.hash, 0));
            batch
                .iter()
                .for_each(|key| store.prefetch_entry(key.hash, 0));
        }
        sum += batch.iter().map(|key| one(store, key)).sum::<u64>();
    }
    assert!(sum > 0);
}

fn main() {
    let sizes: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|word| word.parse().ok())
        .collect();
    let sizes = if sizes.is_empty() { vec![1, 20] } else { sizes };
    for millions in sizes {
        let keys = millions * 1_000_000;
        println!("{millions} M keys, 15 + 100 B");
        let store = store();
        let value = [7; 100];
        timed("insert", keys, || {
            let mut space = all(&store);
            let mut db = space.db(0, NOW_MS);
            let mut name = [0; 15];
            for i in 0..keys {
                key(i, &mut name);
                let key = db.key(&name);
                db.slot_quiet(&key)
                    .put(Kind::String, Encoding::RAW, &value, PutMeta::CLEAR);
            }
        });
        while store.bite(NOW_MS, false, &mut |_| {}).busy {}
        timed("get, borrow included, one by one", GETS, || {
            gets(&store, keys, false)
        });
        timed(
            "get, borrow included, batches of 16 prefetched",
            GETS,
            || gets(&store, keys, true),
        );
        timed("the same on 1,000 keys (warm)", GETS, || {
            gets(&store, 1000, false)
        });
        timed("overwrite, same size", GETS, || {
            let mut space = all(&store);
            let mut db = space.db(0, NOW_MS);
            let (mut name, mut state) = ([0; 15], 9);
            for _ in 0..GETS {
                key(random(&mut state) % keys, &mut name);
                let key = db.key(&name);
                db.slot(&key)
                    .put(Kind::String, Encoding::RAW, &value, PutMeta::CLEAR);
            }
        });
        timed("delete, in order of insertion", keys, || {
            let mut space = all(&store);
            let mut db = space.db(0, NOW_MS);
            let mut name = [0; 15];
            for i in 0..keys {
                key(i, &mut name);
                let key = db.key(&name);
                assert!(db.remove(&key));
            }
        });
        assert_eq!(store.used_memory(), 0);
    }
}
