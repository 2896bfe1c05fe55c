//! The gate: nobody is inside while the world stands still, whoever was refused is woken, and it opens again.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use super::{Model, check, check_alone, run};
use crate::{Closed, Party, ShardSet};

#[test]
fn the_world_stands_still() {
    check(|| {
        let model = Model::new(2, 4);
        let inside = Arc::new(AtomicU32::new(0));
        let mut jobs: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
        for party in 0..2 {
            let (model, inside) = (model.clone(), inside.clone());
            jobs.push(Box::new(move || {
                let me = Party::new(party);
                for _ in 0..2 {
                    let stay = loop {
                        match model.shards.gate().enter(me) {
                            Ok(stay) => break stay,
                            Err(Closed) => model.bells.wait(me),
                        }
                    };
                    inside.fetch_add(1, Ordering::Relaxed);
                    let mut borrow = model.borrow(&ShardSet::one(party as u16), me);
                    Model::count(&mut borrow);
                    drop(borrow);
                    inside.fetch_sub(1, Ordering::Relaxed);
                    drop(stay);
                }
            }));
        }
        for party in 2..4 {
            let (model, inside) = (model.clone(), inside.clone());
            jobs.push(Box::new(move || {
                for _ in 0..2 {
                    let closed = model.shards.gate().close(Party::new(party), 100, |world| {
                        assert_eq!(inside.load(Ordering::Relaxed), 0);
                        shuttle::thread::yield_now();
                        let sum: u32 = world.iter_mut().map(|(_, count)| *count).sum();
                        assert_eq!(inside.load(Ordering::Relaxed), 0);
                        assert!(sum <= 4);
                    });
                    if closed.is_none() {
                        shuttle::thread::yield_now();
                    }
                }
            }));
        }
        run(jobs);
        assert_eq!(model.total(), 4);
    });
}

/// Helpers sleep outside, so the gate closes beside them.
#[test]
fn helpers_sleep_outside() {
    check(|| {
        let model = Model::new(1, 3);
        let mut jobs: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
        for party in 0..2 {
            let model = model.clone();
            jobs.push(Box::new(move || {
                let gate = model.shards.gate();
                let set = ShardSet::one(0);
                Model::count(&mut gate.enter_and_borrow_blocking(&set, Party::new(party)));
            }));
        }
        let closer = model.clone();
        jobs.push(Box::new(move || {
            for _ in 0..3 {
                let gate = closer.shards.gate();
                gate.close(Party::new(2), 100, |world| *world.shard(0) += 10);
            }
        }));
        run(jobs);
        assert_eq!(model.total() % 10, 2);
    });
}

/// While a helper waits for a shard that another keeps for long, the gate closes and opens.
#[test]
fn the_gate_closes_beside_a_waiting_helper() {
    let model = || {
        let model = Model::new(2, 2);
        let keeper = model.shards.try_one(0).expect("free");
        let helper = {
            let model = model.clone();
            shuttle::thread::spawn(move || {
                let set = ShardSet::all(2);
                let gate = model.shards.gate();
                Model::count(&mut gate.enter_and_borrow_blocking(&set, Party::new(1)));
            })
        };
        let gate = model.shards.gate();
        let achieved = (0..300)
            .filter_map(|_| gate.close(Party::new(0), 100, |world| *world.shard(1) += 1))
            .count();
        assert!(achieved > 100, "closed {achieved} times of 300");
        drop(keeper);
        helper.join().expect("the helper is served");
    };
    shuttle::check_random(model, 300);
}

#[test]
fn refusals() {
    check_alone(|| {
        let model = Model::new(2, 2);
        let gate = model.shards.gate();
        let (me, other) = (Party::new(0), Party::new(1));
        let stay = gate.enter(me).expect("open");
        assert!(gate.close(me, 100, |_| ()).is_none(), "inside itself");
        assert!(
            gate.close(other, 100, |_| ()).is_none(),
            "another is inside"
        );
        assert!(!gate.is_closing(), "open again");
        drop(stay);
        let done = gate.close(me, 100, |world| {
            assert_eq!(gate.enter(other).expect_err("closed"), Closed);
            assert!(gate.close(other, 100, |_| ()).is_none());
            assert!(world.pair(0, 1).is_some());
            world.borrow_all().ids().len()
        });
        assert_eq!(done, Some(2));
        model.bells.wait(other);
        assert!(gate.enter(other).is_ok());
        assert_eq!(model.total(), 0);
    });
}
