//! The script lock: the holder borrows out of order and waits with shards in hand; nobody else does, so nothing locks up.

use super::{Model, check, check_alone, run};
use crate::{Attempt, Outcome, Parked, Party, ShardSet};

/// A script holds shard 1 and wants 0, while others spin for 0 and 1 in order, and helpers keep them long.
#[test]
fn script_waits_out_of_order_beside_spinners() {
    check(|| {
        let model = Model::new(2, 3);
        let mut jobs: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
        let script = model.clone();
        jobs.push(Box::new(move || {
            let me = Party::new(0);
            let token = script.shards.script_lock().lock_blocking(me);
            let mut borrow = script.borrow(&ShardSet::one(1), me);
            borrow.extend_under_script(&token, 0);
            assert_eq!(borrow.ids(), [0, 1]);
            Model::count(&mut borrow);
        }));
        let spinner = model.clone();
        jobs.push(Box::new(move || {
            for _ in 0..2 {
                let mut borrow = spinner.borrow(&ShardSet::all(2), Party::new(1));
                Model::count(&mut borrow);
            }
        }));
        let helper = model.clone();
        jobs.push(Box::new(move || {
            let mut borrow = helper
                .shards
                .borrow_blocking(&ShardSet::all(2), Party::new(2));
            Model::count(&mut borrow);
        }));
        run(jobs);
        assert_eq!(model.total(), 8);
    });
}

/// Two scripts want each other's shards in opposite order; the lock orders them. One waits as a worker does: set aside, then woken.
#[test]
fn two_scripts_in_opposite_order() {
    check(|| {
        let model = Model::new(2, 3);
        let jobs = (0..2).map(|party| {
            let model = model.clone();
            Box::new(move || {
                let (me, first) = (Party::new(party), party as u16);
                let lock = model.shards.script_lock();
                let token = loop {
                    match lock.try_lock(me) {
                        Some(token) => break token,
                        None if lock.park(me) == Parked::Registered => model.bells.wait(me),
                        None => {}
                    }
                };
                let mut borrow = model.borrow(&ShardSet::one(first), me);
                borrow.extend_under_script(&token, 1 - first);
                Model::count(&mut borrow);
                drop(borrow);
                drop(token);
            }) as Box<dyn FnOnce() + Send>
        });
        let mut jobs: Vec<_> = jobs.collect();
        let other = model.clone();
        jobs.push(Box::new(move || {
            Model::count(&mut other.borrow(&ShardSet::all(2), Party::new(2)));
        }));
        run(jobs);
        assert_eq!(model.total(), 6);
    });
}

/// A claimant, and a script that wants one of its shards.
#[test]
fn script_beside_a_claimant() {
    check(|| {
        let model = Model::new(3, 3);
        let mut jobs: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
        let script = model.clone();
        jobs.push(Box::new(move || {
            let me = Party::new(0);
            let token = script.shards.script_lock().lock_blocking(me);
            let mut borrow = script.borrow(&ShardSet::one(2), me);
            borrow.extend_under_script(&token, 0);
            borrow.extend_under_script(&token, 1);
            Model::count(&mut borrow);
        }));
        for party in 1..3 {
            let model = model.clone();
            jobs.push(Box::new(move || {
                let mut who = Attempt::failed_before(crate::FAILURES_MAX - 1);
                let mut borrow = loop {
                    match model.shards.try_borrow(&ShardSet::all(3), &mut who) {
                        Outcome::Borrowed(borrow) => break borrow,
                        Outcome::Busy(id) => model.set_aside(id, Party::new(party)),
                    }
                };
                Model::count(&mut borrow);
            }));
        }
        run(jobs);
        assert_eq!(model.total(), 9);
    });
}

#[test]
fn extension_gives_up_when_told_and_leaves_no_mark() {
    check_alone(|| {
        let model = Model::new(3, 2);
        let me = Party::new(0);
        let holder = model.shards.try_one(0).expect("free");
        let token = model.shards.script_lock().try_lock(me).expect("free");
        assert!(model.shards.script_lock().try_lock(Party::new(1)).is_none());
        let mut borrow = model.shards.try_one(1).expect("free");
        assert!(borrow.extend_within(&token, 2, 10));
        assert!(borrow.extend_within(&token, 1, 10), "held already");
        assert!(!borrow.extend_within(&token, 0, 10));
        assert_eq!(borrow.ids(), [1, 2]);
        drop(holder);
        assert!(model.shards.slot(0).is_untouched());
        assert!(borrow.extend_within(&token, 0, 10));
        assert_eq!(borrow.ids(), [0, 1, 2]);
    });
}
