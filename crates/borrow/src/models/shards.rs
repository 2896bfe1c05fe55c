//! Borrow, set-aside and wake: exclusion, no lost wake, no deadlock.

use super::{Model, check, check_alone, run};
use crate::{Attempt, Outcome, Parked, Party, ShardSet};

#[test]
fn one_shard_no_lost_update_no_lost_wake() {
    check(|| {
        let model = Model::new(1, 3);
        let jobs = (0..3).map(|party| {
            let model = model.clone();
            Box::new(move || {
                let party = Party::new(party);
                for _ in 0..2 {
                    let mut borrow = loop {
                        match model.shards.try_one(0) {
                            Some(borrow) => break borrow,
                            None => model.set_aside(0, party),
                        }
                    };
                    Model::count(&mut borrow);
                }
            }) as Box<dyn FnOnce() + Send>
        });
        run(jobs.collect());
        assert_eq!(model.total(), 6);
    });
}

#[test]
fn several_shards_no_deadlock() {
    check(|| {
        let model = Model::new(3, 3);
        let sets = [[0, 1], [1, 2], [2, 0]];
        let jobs = sets.into_iter().enumerate().map(|(party, set)| {
            let model = model.clone();
            Box::new(move || {
                let set: ShardSet = set.into_iter().collect();
                for _ in 0..2 {
                    let mut borrow = model.borrow(&set, Party::new(party));
                    Model::count(&mut borrow);
                }
            }) as Box<dyn FnOnce() + Send>
        });
        run(jobs.collect());
        assert_eq!(model.total(), 12);
    });
}

#[test]
fn sleeping_helpers_and_a_worker() {
    check(|| {
        let model = Model::new(2, 3);
        let jobs = (0..3).map(|party| {
            let model = model.clone();
            Box::new(move || {
                let all = ShardSet::all(2);
                let mut borrow = match party {
                    0 => model.borrow(&ShardSet::one(1), Party::new(party)),
                    _ => model.shards.borrow_blocking(&all, Party::new(party)),
                };
                Model::count(&mut borrow);
            }) as Box<dyn FnOnce() + Send>
        });
        run(jobs.collect());
        assert_eq!(model.total(), 5);
    });
}

/// A worker that sleeps on its seat (a script waits for a shard) may have a connection set aside for another shard: both calls come.
#[test]
fn parties_that_share_a_bit_are_all_woken() {
    check(|| {
        // Parties 0 and 55 have the same bit of the mask.
        let model = Model::new(1, 56);
        let jobs = [0, 55, 1].into_iter().map(|party| {
            let model = model.clone();
            Box::new(move || {
                let mut borrow = model.borrow(&ShardSet::one(0), Party::new(party));
                Model::count(&mut borrow);
            }) as Box<dyn FnOnce() + Send>
        });
        run(jobs.collect());
        assert_eq!(model.total(), 3);
    });
}

#[test]
fn all_or_nothing() {
    check_alone(|| {
        let model = Model::new(3, 2);
        let held = model.shards.try_one(2).expect("free");
        let all = ShardSet::all(3);
        let mut who = Attempt::new();
        let Outcome::Busy(busy) = model.shards.try_borrow(&all, &mut who) else {
            panic!("shard 2 is held");
        };
        assert_eq!(busy, 2);
        assert_eq!(who.failures(), 1);
        assert!(!model.shards.is_held(0) && !model.shards.is_held(1));
        assert_eq!(model.shards.park(0, Party::new(1)), Parked::FreeNow);
        assert_eq!(model.shards.park(2, Party::new(1)), Parked::Registered);
        drop(held);
        model.bells.wait(Party::new(1));
        let mut borrow = model.borrow(&all, Party::new(1));
        assert_eq!(borrow.ids(), [0, 1, 2]);
        assert!(borrow.pair_mut(0, 2).is_some());
        assert!(borrow.pair_mut(1, 1).is_none());
        assert!(borrow.get_mut(7).is_none());
    });
}
