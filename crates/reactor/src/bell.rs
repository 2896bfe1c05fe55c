//! How a worker goes to sleep and how others wake it, without a lost wake and with at most one system call per
//! sleep. The protocol is two flags and a fence on each side:
//!
//! ```text
//! sender                              worker
//! put the message into the queue      asleep = true
//! signal = true; if it was: done      fence
//! fence                               if signal: asleep = false, do not sleep
//! if asleep (and I am the one who     sleep until the descriptor rings
//!    clears it): ring                 asleep = false; signal = false; look into the queue
//! ```
//!
//! The fences order each side's write before its read of the other's flag, so at least one of them sees the other.
//! The flags are generic over the atomic type, so that the model checker runs this very code (see the tests).

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use crate::sys;

/// An atomic flag with the fence that belongs to it.
pub(crate) trait Flag {
    fn new(value: bool) -> Self;
    fn load(&self, order: Ordering) -> bool;
    fn store(&self, value: bool, order: Ordering);
    fn swap(&self, value: bool, order: Ordering) -> bool;
    fn full_fence();
}

impl Flag for AtomicBool {
    fn new(value: bool) -> Self {
        Self::new(value)
    }
    fn load(&self, order: Ordering) -> bool {
        self.load(order)
    }
    fn store(&self, value: bool, order: Ordering) {
        self.store(value, order);
    }
    fn swap(&self, value: bool, order: Ordering) -> bool {
        self.swap(value, order)
    }
    fn full_fence() {
        fence(Ordering::SeqCst);
    }
}

/// The two flags.
pub(crate) struct Sleep<F> {
    /// Something happened since the worker looked.
    signal: F,
    /// The worker sleeps, or is about to.
    asleep: F,
}

impl<F: Flag> Sleep<F> {
    pub fn new() -> Self {
        Self {
            signal: F::new(false),
            asleep: F::new(false),
        }
    }

    /// Any thread, after it has put its message into the queue. True: the caller must ring.
    pub fn announce(&self) -> bool {
        // If the signal was set already, the worker has yet to take it, after which it finds our message too, and
        // whoever set it sees to the ringing.
        if self.signal.swap(true, Ordering::AcqRel) {
            return false;
        }
        F::full_fence();
        self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::AcqRel)
    }

    /// The worker, before it blocks. False: something happened, do not block.
    pub fn may_sleep(&self) -> bool {
        // A swap rather than a store, so that it stands in one order with the swaps of the senders.
        self.asleep.swap(true, Ordering::AcqRel);
        F::full_fence();
        if self.signal.load(Ordering::Relaxed) {
            self.asleep.store(false, Ordering::Relaxed);
            return false;
        }
        true
    }

    /// The worker, after it blocked.
    pub fn awake(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// The worker: did something happen? Look into the queue after this, not before.
    pub fn take_signal(&self) -> bool {
        // The plain load keeps the cache line shared while nothing happens.
        self.signal.load(Ordering::Relaxed) && self.signal.swap(false, Ordering::AcqRel)
    }
}

/// The flags of one worker with the descriptor that ends its sleep.
pub(crate) struct Bell {
    pub sleep: Sleep<AtomicBool>,
    /// An eventfd. It is only ever written: both drivers watch it for edges, so nobody needs to read it.
    event: File,
}

impl Bell {
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            sleep: Sleep::new(),
            event: sys::eventfd()?.into(),
        })
    }

    pub fn raw_fd(&self) -> RawFd {
        self.event.as_raw_fd()
    }

    /// Makes the worker look into its mailbox soon.
    pub fn wake(&self) {
        if self.sleep.announce() {
            self.ring();
        }
    }

    /// Ends the worker's sleep whatever the flags say.
    pub fn ring(&self) {
        // It can fail only when the counter is full; then the descriptor is readable, and `drain` empties it.
        if (&self.event).write(&1_u64.to_ne_bytes()).is_err() {
            self.drain();
            let _ = (&self.event).write(&1_u64.to_ne_bytes());
        }
    }

    /// Empties the counter (it does not block).
    pub fn drain(&self) {
        use std::io::Read;
        let _ = (&self.event).read(&mut [0; 8]);
    }
}

/// Wakes workers, without knowing what mail they take. Cheap to clone.
#[derive(Clone)]
pub struct WakeHandle {
    pub(crate) bells: Arc<[Arc<Bell>]>,
}

impl WakeHandle {
    /// Makes a worker start a turn soon (its [`turn`](crate::Service::turn) runs). Many wakes of a sleeping worker
    /// cost one system call; a wake of a busy one costs none. An unknown worker is ignored.
    pub fn wake(&self, worker: usize) {
        if let Some(bell) = self.bells.get(worker) {
            bell.wake();
        }
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.bells.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loom::sync::atomic::AtomicBool as LoomBool;
    use loom::sync::{Arc, Condvar, Mutex};

    impl Flag for LoomBool {
        fn new(value: bool) -> Self {
            Self::new(value)
        }
        fn load(&self, order: Ordering) -> bool {
            self.load(order)
        }
        fn store(&self, value: bool, order: Ordering) {
            self.store(value, order);
        }
        fn swap(&self, value: bool, order: Ordering) -> bool {
            self.swap(value, order)
        }
        fn full_fence() {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }

    /// The descriptor: a count of rings, and those who wait for it.
    struct Model {
        sleep: Sleep<LoomBool>,
        queue: Mutex<Vec<u32>>,
        rings: Mutex<u32>,
        rang: Condvar,
    }

    impl Model {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                sleep: Sleep::new(),
                queue: Mutex::new(Vec::new()),
                rings: Mutex::new(0),
                rang: Condvar::new(),
            })
        }

        fn send(&self, message: u32) {
            self.queue.lock().expect("unpoisoned").push(message);
            if self.sleep.announce() {
                *self.rings.lock().expect("unpoisoned") += 1;
                self.rang.notify_one();
            }
        }

        /// Returns (messages, rings used); the model checker reports a deadlock if a wake is lost.
        fn receive(&self, expected: usize) -> (Vec<u32>, u32) {
            let mut got = Vec::new();
            let mut sleeps = 0;
            while got.len() < expected {
                if self.sleep.take_signal() {
                    got.append(&mut self.queue.lock().expect("unpoisoned"));
                } else if self.sleep.may_sleep() {
                    let mut rings = self.rings.lock().expect("unpoisoned");
                    while *rings == 0 {
                        rings = self.rang.wait(rings).expect("unpoisoned");
                    }
                    *rings -= 1;
                    sleeps += 1;
                    drop(rings);
                    self.sleep.awake();
                }
            }
            (got, sleeps)
        }
    }

    /// All interleavings with at most three preemptions (each test ends within seconds; with no bound, minutes).
    fn explore(model: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(3));
        builder.check(model);
    }

    #[test]
    fn no_wake_is_lost_with_two_senders() {
        explore(|| {
            let model = Model::new();
            let senders: Vec<_> = (0..2)
                .map(|number| {
                    let model = model.clone();
                    loom::thread::spawn(move || model.send(number))
                })
                .collect();
            let (mut got, _) = model.receive(2);
            got.sort_unstable();
            assert_eq!(got, [0, 1]);
            for sender in senders {
                sender.join().expect("sender ends");
            }
        });
    }

    #[test]
    fn no_wake_is_lost_when_one_sender_sends_twice() {
        explore(|| {
            let model = Model::new();
            let other = model.clone();
            let sender = loom::thread::spawn(move || {
                other.send(1);
                other.send(2);
            });
            let (got, sleeps) = model.receive(2);
            assert_eq!(got, [1, 2]);
            assert!(sleeps <= 2);
            sender.join().expect("sender ends");
        });
    }

    #[test]
    fn wakes_of_an_awake_worker_cost_nothing_and_those_of_a_sleeping_one_cost_one() {
        let sleep = Sleep::<AtomicBool>::new();
        assert!(!sleep.announce());
        assert!(!sleep.may_sleep());
        assert!(sleep.take_signal());
        assert!(!sleep.take_signal());
        assert!(sleep.may_sleep());
        assert!(sleep.announce());
        assert!(!sleep.announce());
    }
}
