//! The crate with real threads: bounded stress, and what does not need a model. All of it takes about a second.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use pantala_borrow::{
    Attempt, Borrow, Closed, Outcome, Parked, Party, ShardId, ShardSet, Shards, Wake,
};

/// Fails a test that hangs, instead of hanging with it: a wake that takes this long was lost.
const LOST_AFTER: Duration = Duration::from_secs(20);

struct Bells(Vec<(Mutex<bool>, Condvar)>);

impl Bells {
    fn new(parties: usize) -> Arc<Self> {
        let bell = |_| (Mutex::new(false), Condvar::new());
        Arc::new(Self((0..parties).map(bell).collect()))
    }

    fn wait(&self, party: Party) {
        let (rung, bell) = &self.0[party.index()];
        let rung = rung.lock().expect("no test panics with a bell in hand");
        let (mut rung, waited) = bell
            .wait_timeout_while(rung, LOST_AFTER, |rung| !*rung)
            .expect("no test panics with a bell in hand");
        assert!(!waited.timed_out(), "a wake was lost");
        *rung = false;
    }
}

impl Wake for Bells {
    fn wake(&self, party: usize) {
        let (rung, bell) = &self.0[party];
        *rung.lock().expect("no test panics with a bell in hand") = true;
        bell.notify_one();
    }
}

type Accounts = Shards<i64, AtomicI64>;

fn borrow<'s>(
    shards: &'s Accounts,
    bells: &Bells,
    set: &ShardSet,
    me: Party,
) -> Borrow<'s, i64, AtomicI64> {
    let mut who = Attempt::new();
    loop {
        match shards.try_borrow(set, &mut who) {
            Outcome::Borrowed(borrow) => return borrow,
            Outcome::Busy(id) => match shards.park(id, me) {
                Parked::Registered => bells.wait(me),
                Parked::FreeNow => {}
                Parked::Reserved => std::thread::yield_now(),
            },
        }
    }
}

/// A small generator with a fixed seed: the schedule is the machine's, the work is not.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

const SHARDS: u16 = 8;
const WORKERS: usize = 3;
const HELPERS: usize = 1;

/// Money moves between random shards; scripts move it out of order; an audit sums all shards, by borrow and under the gate.
#[test]
fn nothing_is_lost_or_seen_half_done() {
    let parties = WORKERS + HELPERS + 1;
    let bells = Bells::new(parties);
    let shards: Accounts = Shards::new(vec![1_000; usize::from(SHARDS)], parties, bells.clone());
    let end = Instant::now() + Duration::from_millis(500);
    let (audits, cuts) = (AtomicU64::new(0), AtomicU64::new(0));
    let total = i64::from(SHARDS) * 1_000;
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (shards, bells) = (&shards, &bells);
            scope.spawn(move || {
                let mut random = Random(0x9e37_79b9 + worker as u64);
                while Instant::now() < end {
                    work_one_batch(shards, bells, Party::new(worker), &mut random);
                }
            });
        }
        scope.spawn(|| {
            let all = ShardSet::all(shards.len());
            while Instant::now() < end {
                let me = Party::new(WORKERS);
                let mut borrow = shards.gate().enter_and_borrow_blocking(&all, me);
                assert_eq!(borrow.iter_mut().map(|(_, sum)| *sum).sum::<i64>(), total);
                audits.fetch_add(1, Ordering::Relaxed);
            }
        });
        scope.spawn(|| {
            while Instant::now() < end {
                let sum = shards.gate().close(Party::new(parties - 1), 200, |world| {
                    world.iter_mut().map(|(_, sum)| *sum).sum::<i64>()
                });
                if let Some(sum) = sum {
                    assert_eq!(sum, total);
                    cuts.fetch_add(1, Ordering::Relaxed);
                }
                std::thread::sleep(Duration::from_micros(300));
            }
        });
    });
    let counted: i64 = shards
        .headers()
        .map(|moved| moved.load(Ordering::Relaxed))
        .sum();
    assert_eq!(counted % 2, 0, "each move touches two headers");
    assert!(audits.into_inner() > 0, "the audit of all shards starves");
    println!("{counted} moves, {} cuts", cuts.into_inner());
}

fn work_one_batch(shards: &Accounts, bells: &Bells, me: Party, random: &mut Random) {
    let Ok(_inside) = shards.gate().enter(me).inspect_err(|Closed| bells.wait(me)) else {
        return;
    };
    for _ in 0..16 {
        let from = random.below(u64::from(SHARDS)) as ShardId;
        let to = random.below(u64::from(SHARDS)) as ShardId;
        if from == to {
            continue;
        }
        if random.below(8) == 0 {
            let Some(token) = shards.script_lock().try_lock(me) else {
                continue;
            };
            let mut held = borrow(shards, bells, &ShardSet::one(from), me);
            held.extend_under_script(&token, to);
            transfer(&mut held, from, to);
        } else {
            let set: ShardSet = [from, to].into_iter().collect();
            transfer(&mut borrow(shards, bells, &set, me), from, to);
        }
    }
}

fn transfer(held: &mut Borrow<'_, i64, AtomicI64>, from: ShardId, to: ShardId) {
    let (a, b) = held.pair_mut(from, to).expect("both are held");
    *a -= 1;
    *b += 1;
    held.header(from).fetch_add(1, Ordering::Relaxed);
    held.header(to).fetch_add(1, Ordering::Relaxed);
}

/// Three threads never let go of two shards for longer than a moment; a fourth needs both, again and again.
#[test]
fn a_command_for_many_shards_is_served_among_many_for_one() {
    let bells = Bells::new(4);
    let shards: Accounts = Shards::new([0, 0], 4, bells.clone());
    let served = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for worker in 0..3 {
            let (shards, bells, served) = (&shards, &bells, &served);
            scope.spawn(move || {
                let set = ShardSet::one((worker % 2) as ShardId);
                while served.load(Ordering::Relaxed) < 200 {
                    let mut held = borrow(shards, bells, &set, Party::new(worker));
                    let until = Instant::now() + Duration::from_micros(3);
                    while Instant::now() < until {
                        *held.one() += 1;
                    }
                }
            });
        }
        let start = Instant::now();
        let both = ShardSet::all(2);
        while served.load(Ordering::Relaxed) < 200 {
            drop(borrow(&shards, &bells, &both, Party::new(3)));
            served.fetch_add(1, Ordering::Relaxed);
            assert!(start.elapsed() < LOST_AFTER, "starved");
        }
    });
}

#[test]
fn a_panic_gives_back_and_opens() {
    let bells = Bells::new(2);
    let shards: Accounts = Shards::new([0, 0], 2, bells.clone());
    let me = Party::new(0);
    let died = catch_unwind(AssertUnwindSafe(|| {
        let _inside = shards.gate().enter(me);
        let _borrow = shards.borrow_blocking(&ShardSet::all(2), me);
        assert_eq!(shards.park(1, Party::new(1)), Parked::Registered);
        panic!("a handler's fault");
    }));
    assert!(died.is_err());
    bells.wait(Party::new(1));
    assert!(shards.try_one(0).is_some() && shards.try_one(1).is_some());
    let died = catch_unwind(AssertUnwindSafe(|| {
        shards.gate().close(me, 100, |world| {
            *world.shard(1) += 1;
            panic!("an act's fault");
        })
    }));
    assert!(died.is_err());
    assert!(shards.gate().enter(me).is_ok());
    assert_eq!(shards.try_one(1).as_mut().map(|held| *held.one()), Some(1));
}

#[test]
fn a_borrow_kept_beyond_the_gate_is_found() {
    let shards: Accounts = Shards::new([0, 0], 2, Bells::new(2));
    let _kept = shards.try_one(1);
    let died = catch_unwind(AssertUnwindSafe(|| {
        shards
            .gate()
            .close(Party::new(0), 100, |world| world.iter_mut().count())
    }));
    assert!(died.is_err());
}

#[test]
fn a_borrow_is_a_token_that_travels() {
    let shards: Accounts = Shards::new([0, 0], 1, Bells::new(1));
    let mut held = shards.try_one(1).expect("free");
    std::thread::scope(|scope| {
        scope.spawn(move || *held.one() = 7);
    });
    assert_eq!(shards.try_one(1).expect("given back").get(1), Some(&7));
}

#[test]
fn a_slot_takes_whole_cache_lines() {
    let shards: Shards<[u8; 100], AtomicI64> = Shards::new([[0; 100]; 2], 1, Bells::new(1));
    let at = |id| std::ptr::from_ref(shards.header(id)).addr();
    assert_eq!(at(1) - at(0), 128);
    shards.prefetch(0);
    shards.prefetch(9);
}

#[test]
fn sets_agree_with_a_sorted_vector() {
    let mut random = Random(0x5eed);
    let mut set = ShardSet::new();
    for round in 0..5_000 {
        let count = random.below(if round % 4 == 0 { 40 } else { 12 });
        let ids: Vec<ShardId> = (0..count).map(|_| random.below(20) as ShardId).collect();
        set.clear();
        ids.iter().for_each(|&id| set.push(id));
        set.seal();
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(
            set.as_slice(),
            sorted,
            "seed 0x5eed, round {round}: {ids:?}"
        );
        assert_eq!(set.len(), sorted.len());
        assert!((0..20).all(|id| set.contains(id) == sorted.contains(&id)));
        assert!(set.insert(21));
        assert!(!set.insert(21));
        assert_eq!(set.as_slice().last(), Some(&21));
        assert_eq!(set.clone(), set);
    }
    assert_eq!(ShardSet::all(300).len(), 300);
    assert_eq!(ShardSet::one(4).as_slice(), [4]);
    assert!(ShardSet::all(0).is_empty());
}
