//! Prints what a pair of borrow and give-back costs, in nanoseconds, on this machine: `cargo run --release --example borrow_cost`.

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Instant,
};

use pantala_borrow::{Attempt, Outcome, Party, ShardId, ShardSet, Shards, Wake};

struct NoWake;

impl Wake for NoWake {
    fn wake(&self, _party: usize) {}
}

type Counted = Shards<u64, AtomicI64>;

const PAIRS: u32 = 5_000_000;

fn main() {
    let shards: Counted = Shards::new(0..128u64, 2, Arc::new(NoWake));
    for round in 0..2 {
        let label = if round == 0 { "warm-up" } else { "measured" };
        println!("{label}:");
        report("try_one, one shard", 1, || one(&shards, |_| 7));
        report("try_one, 128 shards in turn", 1, || {
            one(&shards, |at| (at % 128) as ShardId)
        });
        for width in [1, 2, 4, 8, 16, 128] {
            report(
                &format!("try_borrow of {width}, per pair"),
                width as u32,
                || many(&shards, width),
            );
        }
        report("gate: enter and leave", 1, || batches(&shards));
        report("gate: close and open", 1, || closes(&shards));
    }
    contended(&shards);
}

fn one(shards: &Counted, id: impl Fn(u32) -> ShardId) -> u32 {
    for at in 0..PAIRS {
        let id = id(black_box(at));
        if let Some(mut borrow) = shards.try_one(id) {
            *borrow.one() += 1;
            shards.header(id).store(1, Ordering::Relaxed);
        }
    }
    PAIRS
}

fn many(shards: &Counted, width: u16) -> u32 {
    let mut set = ShardSet::new();
    let mut who = Attempt::new();
    let rounds = PAIRS / u32::from(width) / 4;
    for at in 0..rounds {
        set.clear();
        (0..width).for_each(|id| set.push((id * 7 + at as u16) % 128));
        set.seal();
        if let Outcome::Borrowed(mut borrow) = shards.try_borrow(&set, &mut who) {
            borrow.iter_mut().for_each(|(_, content)| *content += 1);
        }
    }
    rounds
}

fn batches(shards: &Counted) -> u32 {
    for _ in 0..PAIRS {
        let _ = black_box(shards.gate().enter(Party::new(0)));
    }
    PAIRS
}

fn closes(shards: &Counted) -> u32 {
    for _ in 0..PAIRS / 8 {
        shards
            .gate()
            .close(Party::new(0), 100, |world| *world.shard(3) += 1);
    }
    PAIRS / 8
}

/// Two threads on one shard: what a hot key costs.
fn contended(shards: &Counted) {
    let set = ShardSet::one(5);
    let start = Instant::now();
    let mut failures = 0;
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut who = Attempt::new();
                    let mut failures = 0u64;
                    for _ in 0..PAIRS / 4 {
                        loop {
                            if let Some(mut borrow) = shards.try_one(5) {
                                *borrow.one() += 1;
                                break;
                            }
                            if let Outcome::Borrowed(mut borrow) = shards.try_borrow(&set, &mut who)
                            {
                                *borrow.one() += 1;
                                break;
                            }
                            failures += 1;
                        }
                    }
                    failures
                })
            })
            .collect();
        for run in runs {
            failures += run.join().expect("a measuring thread does not panic");
        }
    });
    let pairs = f64::from(PAIRS / 4 * 2);
    println!(
        "two threads on one shard: {:.1} ns per pair in all, {failures} tries failed after the spin",
        start.elapsed().as_secs_f64() * 1e9 / pairs
    );
}

fn report(what: &str, pairs_each: u32, run: impl FnOnce() -> u32) {
    let start = Instant::now();
    let rounds = run();
    let ns = start.elapsed().as_secs_f64() * 1e9 / f64::from(rounds) / f64::from(pairs_each);
    println!("  {what:34} {ns:7.2} ns");
}
