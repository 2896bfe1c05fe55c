//! Models under shuttle: the real code, run under thousands of schedules. A lost wake shows as a deadlock, which shuttle reports; a
//! broken exclusion shows as a lost update, because every change of a content is a read, a switch of threads, and a write.
//! A failure prints the schedule, which `shuttle::replay` repeats.

mod claimant;
mod gate;
mod script;
mod shards;

use std::sync::Arc;

use shuttle::sync::{Condvar, Mutex};

use crate::{Attempt, Borrow, Outcome, Parked, Party, ShardId, ShardSet, Shards, Wake};

/// How a model's worker sleeps in its "reactor" and is woken there.
pub(crate) struct Bells(Vec<(Mutex<bool>, Condvar)>);

impl Bells {
    fn new(parties: usize) -> Arc<Self> {
        Arc::new(Self(
            (0..parties)
                .map(|_| (Mutex::new(false), Condvar::new()))
                .collect(),
        ))
    }

    /// Sleeps until woken since the last call.
    fn wait(&self, party: Party) {
        let (rung, bell) = &self.0[party.index()];
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

/// Shards that count, and the bells of their parties.
#[derive(Clone)]
pub(crate) struct Model {
    shards: Arc<Shards<u32>>,
    bells: Arc<Bells>,
}

impl Model {
    fn new(shards: usize, parties: usize) -> Self {
        let bells = Bells::new(parties);
        Self {
            shards: Arc::new(Shards::new(vec![0; shards], parties, bells.clone())),
            bells,
        }
    }

    /// What a worker does with a command: try, set aside, wait for the wake, try again.
    fn borrow(&self, set: &ShardSet, party: Party) -> Borrow<'_, u32> {
        let mut who = Attempt::new();
        loop {
            match self.shards.try_borrow(set, &mut who) {
                Outcome::Borrowed(borrow) => return borrow,
                Outcome::Busy(id) => self.set_aside(id, party),
            }
        }
    }

    fn set_aside(&self, id: ShardId, party: Party) {
        match self.shards.park(id, party) {
            Parked::Registered => self.bells.wait(party),
            Parked::FreeNow => {}
            Parked::Reserved => shuttle::thread::yield_now(),
        }
    }

    /// Adds one to each shard in hand, not atomically.
    fn count(borrow: &mut Borrow<'_, u32>) {
        let seen: Vec<u32> = borrow.iter_mut().map(|(_, count)| *count).collect();
        shuttle::thread::yield_now();
        for ((_, count), seen) in borrow.iter_mut().zip(seen) {
            *count = seen + 1;
        }
    }

    fn total(&self) -> u32 {
        let all = ShardSet::all(self.shards.len());
        let mut who = Attempt::new();
        let Outcome::Borrowed(mut borrow) = self.shards.try_borrow(&all, &mut who) else {
            panic!("everything was given back");
        };
        borrow.iter_mut().map(|(_, count)| *count).sum()
    }
}

/// Runs a model under random schedules and under schedules with few, well-placed switches.
pub(crate) fn check(model: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(model.clone(), 8_000);
    shuttle::check_pct(model, 8_000, 3);
}

/// Runs a model without concurrency: shuttle only lends its atomics.
pub(crate) fn check_alone(model: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(model, 1);
}

/// Starts a thread for each job and waits for all.
pub(crate) fn run(jobs: Vec<Box<dyn FnOnce() + Send>>) {
    let threads: Vec<_> = jobs.into_iter().map(shuttle::thread::spawn).collect();
    for thread in threads {
        thread.join().expect("no job panics");
    }
}
