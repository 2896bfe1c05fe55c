//! The claimant: newcomers step back, it finishes, and a claim runs out.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{Model, check, check_alone, run};
use crate::{
    Attempt, CLAIM_US, FAILURES_MAX, Outcome, Parked, Party, ShardSet, sync::now_us,
    word::TAG_SCRIPT,
};

fn fail(model: &Model, set: &ShardSet, who: &mut Attempt, times: u32) {
    for _ in 0..times {
        assert!(model.shards.try_borrow(set, who).borrowed().is_none());
    }
}

fn let_claim_run_out() {
    let until_us = now_us() + CLAIM_US;
    while now_us() < until_us {}
}

#[test]
fn newcomers_step_back_until_the_claimant_is_served() {
    check_alone(|| {
        let model = Model::new(3, 3);
        let set: ShardSet = [0, 1].into_iter().collect();
        let holder = model.shards.try_one(0).expect("free");
        let mut who = Attempt::new();
        fail(&model, &set, &mut who, FAILURES_MAX - 1);
        assert!(!who.is_claimant());
        fail(&model, &set, &mut who, 1);
        assert!(who.is_claimant());
        // Shard 1 is free, but kept; shard 2 is not concerned.
        assert!(model.shards.try_one(1).is_none());
        assert_eq!(model.shards.park(1, Party::new(2)), Parked::Reserved);
        assert!(model.shards.try_one(2).is_some());
        assert_eq!(model.shards.park(0, Party::new(2)), Parked::Registered);
        drop(holder);
        model.bells.wait(Party::new(2));
        assert!(model.shards.try_one(0).is_none(), "woken, but a newcomer");
        let Outcome::Borrowed(borrow) = model.shards.try_borrow(&set, &mut who) else {
            panic!("nobody else may take its shards");
        };
        assert!(!who.is_claimant());
        // The claim ended with it: the next may claim at once.
        let mut next = Attempt::new();
        fail(&model, &set, &mut next, FAILURES_MAX);
        assert!(next.is_claimant());
        model.shards.abandon(&mut next);
        drop(borrow);
        drop(model.borrow(&set, Party::new(2)));
        assert!(model.shards.slot(0).is_untouched() && model.shards.slot(1).is_untouched());
        assert!(model.shards.try_one(0).is_some());
        assert!(model.shards.try_one(1).is_some());
    });
}

#[test]
fn no_mark_is_left_behind() {
    check_alone(|| {
        let model = Model::new(2, 2);
        let holder = model.shards.try_one(0).expect("free");
        let mut who = Attempt::new();
        fail(&model, &ShardSet::all(2), &mut who, FAILURES_MAX);
        drop(holder);
        assert!(!model.shards.slot(1).is_untouched());
        drop(model.shards.try_borrow(&ShardSet::all(2), &mut who));
        assert!(model.shards.slot(0).is_untouched() && model.shards.slot(1).is_untouched());
    });
}

/// The script holds shards while it waits, so a claimant leaves it the shard that it waits for.
#[test]
fn a_claimant_does_not_mark_over_the_script() {
    check_alone(|| {
        let model = Model::new(2, 2);
        let holder = model.shards.try_one(0).expect("free");
        let want = model.shards.core().claims.want_for_script(0);
        model.shards.slot(0).mark(TAG_SCRIPT, |_| true);
        let mut who = Attempt::new();
        fail(&model, &ShardSet::all(2), &mut who, FAILURES_MAX);
        assert!(who.is_claimant());
        drop(holder);
        fail(&model, &ShardSet::all(2), &mut who, 1);
        drop(want);
        let served = model.shards.try_borrow(&ShardSet::all(2), &mut who);
        assert!(served.borrowed().is_some());
    });
}

#[test]
fn a_claim_runs_out_behind_a_long_holder() {
    check_alone(|| {
        let model = Model::new(2, 3);
        let set = ShardSet::all(2);
        let holder = model.shards.try_one(0).expect("free");
        let mut who = Attempt::new();
        fail(&model, &set, &mut who, FAILURES_MAX);
        assert!(model.shards.try_one(1).is_none());
        let_claim_run_out();
        assert_eq!(model.shards.park(1, Party::new(2)), Parked::FreeNow);
        assert!(model.shards.try_one(1).is_some(), "a stale mark is wiped");
        // The next claimant does not mix up its marks with those left behind.
        let mut other = Attempt::new();
        fail(&model, &ShardSet::one(0), &mut other, FAILURES_MAX);
        assert!(other.is_claimant());
        assert!(model.shards.try_one(1).is_some());
        fail(&model, &set, &mut who, 1);
        assert!(!who.is_claimant());
        assert_eq!(who.failures(), 0);
        drop(holder);
        assert!(model.shards.try_one(0).is_none(), "kept for the second");
        drop(model.borrow(&ShardSet::one(1), Party::new(1)));
        model.shards.abandon(&mut other);
        assert!(model.shards.try_one(0).is_some());
    });
}

#[test]
fn one_claimant_at_a_time() {
    check_alone(|| {
        let model = Model::new(2, 2);
        let holder = model.borrow(&ShardSet::all(2), Party::new(0));
        let (mut first, mut second) = (Attempt::new(), Attempt::new());
        fail(&model, &ShardSet::one(0), &mut first, FAILURES_MAX);
        // Its tries read the clock, so the first claim runs out in the end; until then there is no second.
        while first.is_claimant()
            && model
                .shards
                .core()
                .claims
                .stands(first.claim().expect("is"))
        {
            assert!(!second.is_claimant());
            fail(&model, &ShardSet::one(1), &mut second, 1);
        }
        drop(holder);
    });
}

/// Two commands hammer one shard each; one needs both. It is served, and nobody is left asleep.
#[test]
fn served_against_a_stream_of_newcomers() {
    check(|| {
        let model = Model::new(2, 3);
        let served = Arc::new(AtomicBool::new(false));
        let mut jobs: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
        for party in 0..2 {
            let (model, served) = (model.clone(), served.clone());
            jobs.push(Box::new(move || {
                let set = ShardSet::one(party as u16);
                let mut rounds = 0;
                // Hammers until the other is served; bounded, so that unfair schedules end too.
                while !served.load(Ordering::Relaxed) && rounds < 30 {
                    let mut borrow = model.borrow(&set, Party::new(party));
                    Model::count(&mut borrow);
                    rounds += 1;
                }
            }));
        }
        let both = model.clone();
        jobs.push(Box::new(move || {
            let mut borrow = both.borrow(&ShardSet::all(2), Party::new(2));
            Model::count(&mut borrow);
            served.store(true, Ordering::Relaxed);
        }));
        run(jobs);
    });
}

/// Two commands that need both shards, each often enough to claim, against each other and a newcomer.
#[test]
fn claimants_do_not_block_each_other() {
    check(|| {
        let model = Model::new(2, 3);
        let jobs = (0..3).map(|party| {
            let model = model.clone();
            Box::new(move || {
                let set = match party {
                    0 => ShardSet::one(1),
                    _ => ShardSet::all(2),
                };
                // Begins one failure short of a claim.
                let mut who = Attempt::failed_before(FAILURES_MAX - 1);
                for _ in 0..2 {
                    let mut borrow = loop {
                        match model.shards.try_borrow(&set, &mut who) {
                            Outcome::Borrowed(borrow) => break borrow,
                            Outcome::Busy(id) => model.set_aside(id, Party::new(party)),
                        }
                    };
                    Model::count(&mut borrow);
                }
            }) as Box<dyn FnOnce() + Send>
        });
        run(jobs.collect());
        assert_eq!(model.total(), 10);
    });
}
