//! Models under loom (`cargo test -p pantala-borrow --features loom-model --release --lib`): shuttle runs atomics in one total order, so
//! a too weak ordering is invisible to it. These tiny models run under every allowed order and read; a cell of loom's own stands
//! for the content, and two accesses that are not ordered are reported as a race.

use std::sync::Arc;

use loom::{
    cell::UnsafeCell,
    model::Builder,
    sync::{Condvar, Mutex},
    thread,
};

use crate::{Attempt, Closed, Outcome, Parked, Party, ShardSet, Shards, Wake};

/// How a model's worker sleeps and is woken.
struct Bells(Vec<(Mutex<bool>, Condvar)>);

impl Bells {
    fn new(parties: usize) -> Arc<Self> {
        let bell = |_| (Mutex::new(false), Condvar::new());
        Arc::new(Self((0..parties).map(bell).collect()))
    }

    fn wait(&self, party: usize) {
        let (rung, bell) = &self.0[party];
        let mut rung = rung.lock().expect("no model panics with a bell in hand");
        while !*rung {
            rung = bell
                .wait(rung)
                .expect("no model panics with a bell in hand");
        }
        *rung = false;
    }
}

impl Wake for Bells {
    fn wake(&self, party: usize) {
        let (rung, bell) = &self.0[party];
        *rung.lock().expect("no model panics with a bell in hand") = true;
        bell.notify_one();
    }
}

struct Cell(UnsafeCell<u32>);

impl Cell {
    #[allow(unsafe_code, reason = "loom checks that no two accesses race")]
    fn bump(&self) {
        // SAFETY: loom's cell aborts the model if anybody else has access at the same time.
        self.0.with_mut(|count| unsafe { *count += 1 });
    }
}

// Loom's cell is `Sync` for loom's own checks only through this promise.
#[allow(unsafe_code, reason = "loom checks that no two accesses race")]
// SAFETY: every access goes through loom, which reports a race instead of allowing it.
unsafe impl Sync for Cell {}

fn cell() -> Cell {
    Cell(UnsafeCell::new(0))
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Give-back releases what the next borrow acquires, also past a registration; the wake comes.
#[test]
fn borrow_park_wake() {
    check(|| {
        let bells = Bells::new(2);
        let shards: Arc<Shards<Cell>> = Arc::new(Shards::new([cell()], 2, bells.clone()));
        let work = |shards: &Shards<Cell>, bells: &Bells, me: usize| {
            loop {
                if let Some(mut borrow) = shards.try_one(0) {
                    borrow.one().bump();
                    return;
                }
                if shards.park(0, Party::new(me)) == Parked::Registered {
                    bells.wait(me);
                }
            }
        };
        let other = {
            let (shards, bells) = (shards.clone(), bells.clone());
            thread::spawn(move || work(&shards, &bells, 1))
        };
        work(&shards, &bells, 0);
        other.join().expect("no job panics");
    });
}

/// The sleeper on a seat is called: what it wrote before it registered is seen by whoever gives back.
#[test]
fn seat_is_called() {
    check(|| {
        let bells = Bells::new(2);
        let shards: Arc<Shards<Cell>> = Arc::new(Shards::new([cell()], 2, bells));
        let helper = {
            let shards = shards.clone();
            thread::spawn(move || {
                while shards.try_one(0).is_none() {
                    shards.sleep_until_given_back(0, Party::new(1));
                }
            })
        };
        if let Some(mut borrow) = shards.try_one(0) {
            borrow.one().bump();
        }
        helper.join().expect("no job panics");
    });
}

/// Write mine, fence, read yours: while the gate is closed nobody is inside, and both see what the other did.
#[test]
fn gate_excludes() {
    check(|| {
        let bells = Bells::new(2);
        let shards: Arc<Shards<u32>> = Arc::new(Shards::new([0], 2, bells.clone()));
        let world = Arc::new(cell());
        let worker = {
            let (shards, world, bells) = (shards.clone(), world.clone(), bells.clone());
            thread::spawn(move || {
                loop {
                    match shards.gate().enter(Party::new(1)) {
                        Ok(_inside) => return world.bump(),
                        Err(Closed) => bells.wait(1),
                    }
                }
            })
        };
        shards.gate().close(Party::new(0), 100, |_| world.bump());
        worker.join().expect("no job panics");
    });
}

/// Two shards each, ascending.
#[test]
fn two_shards_each() {
    check(|| {
        let bells = Bells::new(2);
        let shards: Arc<Shards<Cell>> = Arc::new(Shards::new([cell(), cell()], 2, bells));
        let work = |shards: &Shards<Cell>| {
            let set = ShardSet::all(2);
            if let Outcome::Borrowed(mut borrow) = shards.try_borrow(&set, &mut Attempt::new()) {
                borrow.iter_mut().for_each(|(_, cell)| cell.bump());
            }
        };
        let other = {
            let shards = shards.clone();
            thread::spawn(move || work(&shards))
        };
        work(&shards);
        other.join().expect("no job panics");
    });
}
