//! Memory per key, from the process's own resident size: `cargo run --release -p pantala-store --example bytes_per_key`.

mod common;

use common::{all, cpu_ns, key, random, store};
use pantala_store::{Encoding, Kind, PutExpiry, PutMc, PutMeta, Space, Store};

const NOW_MS: i64 = 1_800_000_000_000;

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has statm");
    let pages: u64 = statm
        .split_whitespace()
        .nth(1)
        .and_then(|field| field.parse().ok())
        .expect("statm has numbers");
    pages * 4096
}

fn fill(
    space: &mut Space<'_>,
    range: std::ops::Range<u64>,
    length: impl Fn(u64) -> usize,
    meta: PutMeta,
) -> u64 {
    let mut db = space.db(0, NOW_MS);
    let mut name = [0; 15];
    let value = [0x5a; 512];
    let mut total = 0;
    for i in range {
        key(i, &mut name);
        let length = length(i);
        total += 15 + length as u64;
        let key = db.key(&name);
        db.slot_quiet(&key)
            .put(Kind::String, Encoding::RAW, &value[..length], meta);
    }
    total
}

fn report(what: &str, store: &Store, base: u64, keys: u64, raw: u64) {
    let resident = resident_bytes().saturating_sub(base);
    let heap = store.heap_use();
    println!(
        "{what:<34} {:>7.2} resident B/key, {:>6.2} beyond key and value (entries {:.2}, tables {:.2}, estimate {:.2}) total {:.1} MiB",
        resident as f64 / keys as f64,
        (resident as f64 - raw as f64) / keys as f64,
        heap.entries_bytes as f64 / keys as f64,
        heap.tables_bytes as f64 / keys as f64,
        heap.resident_bytes as f64 / keys as f64,
        resident as f64 / 1048576.0,
    );
}

/// Bites, as workers make them in between.
fn settle(store: &Store) {
    while store.bite(NOW_MS, false, &mut |_| {}).busy {}
}

fn growing() {
    let base = resident_bytes();
    let store = store();
    println!(
        "empty store, 128 shards, 16 databases: {} KiB resident",
        (resident_bytes() - base) / 1024
    );
    let mut space = all(&store);
    let (mut done, mut peak) = (0, 0f64);
    for keys in (50_000..=2_000_000u64).step_by(50_000) {
        fill(&mut space, done..keys, |_| 100, PutMeta::CLEAR);
        done = keys;
        drop(space);
        settle(&store);
        space = all(&store);
        let per_key = (resident_bytes() - base) as f64 / keys as f64;
        if keys >= 1_000_000 {
            peak = peak.max(per_key);
        }
        if keys.is_multiple_of(250_000) {
            report(
                &format!("{keys} keys, 15 + 100 B"),
                &store,
                base,
                keys,
                keys * 115,
            );
        }
    }
    println!("the most from 1 M to 2 M: {peak:.2} B/key");
}

fn once(what: &str, keys: u64, length: impl Fn(u64) -> usize, meta: PutMeta) {
    let base = resident_bytes();
    let store = store();
    let mut space = all(&store);
    let raw = fill(&mut space, 0..keys, length, meta);
    drop(space);
    settle(&store);
    report(what, &store, base, keys, raw);
}

fn deleting() {
    let base = resident_bytes();
    let store = store();
    let keys = 1_000_000;
    fill(&mut all(&store), 0..keys, |_| 100, PutMeta::CLEAR);
    let peak = resident_bytes() - base;
    {
        let mut space = all(&store);
        let mut db = space.db(0, NOW_MS);
        let mut name = [0; 15];
        let mut state = 3;
        for i in 0..keys {
            if !random(&mut state).is_multiple_of(10) {
                key(i, &mut name);
                let key = db.key(&name);
                db.remove(&key);
            }
        }
    }
    let before = resident_bytes() - base;
    let start = cpu_ns();
    let mut times_us = Vec::new();
    let mut now_ms = NOW_MS;
    let mut idle = 0;
    while idle < 4 * store.shards() {
        let one = std::time::Instant::now();
        let progress = store.bite(now_ms, true, &mut |_| {});
        times_us.push(one.elapsed().as_micros());
        idle = if progress.busy { 0 } else { idle + 1 };
        now_ms += 10;
    }
    let after = resident_bytes() - base;
    times_us.sort_unstable();
    println!(
        "after deleting 90 % of 1 M: {:.3} of the peak; after {} bites ({} ms of CPU, p50 {} µs, p99 {} µs): {:.3}",
        before as f64 / peak as f64,
        times_us.len(),
        (cpu_ns() - start) / 1_000_000,
        times_us[times_us.len() / 2],
        times_us[times_us.len() * 99 / 100],
        after as f64 / peak as f64,
    );
    report(
        "100,000 left",
        &store,
        base,
        store.dbsize(0),
        store.dbsize(0) * 115,
    );
}

fn main() {
    if std::env::args().any(|word| word == "--deleting") {
        return deleting();
    }
    growing();
    let expiring = PutMeta {
        expiry: PutExpiry::At(NOW_MS + 1_000_000_000),
        mc: PutMc::Clear,
    };
    once(
        "1 M keys, 15 + 100 B, expiring",
        1_000_000,
        |_| 100,
        expiring,
    );
    let mixed = |i: u64| 20 + (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % 381;
    once(
        "300 k keys, values 20 to 400 B",
        300_000,
        mixed,
        PutMeta::CLEAR,
    );
    deleting();
}
