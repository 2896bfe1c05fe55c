//! The open loop: requests are due at a fixed rate whether or not the server keeps up, and each latency counts from the moment
//! when its request was due. A stall therefore shows in every request that it delayed (no coordinated omission).

use super::worker::{NAP, Phase, Worker};
use nix::poll::{PollFd, PollFlags, ppoll};
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Requests without a reply that one connection may have; beyond this they wait in the schedule, and their clock runs.
const OUTSTANDING_MAX: usize = 4096;
/// Waits shorter than this are spun: going to sleep and waking takes as long.
const SPIN: Duration = Duration::from_micros(20);

/// Runs at `rate_per_s` until the end of the measured part.
///
/// # Errors
/// A connection failed, or replies did not come.
pub fn run(worker: &mut Worker<'_>, rate_per_s: f64) -> io::Result<()> {
    // The default slack of 50 µs would be added to every wait; where the system refuses, the latencies are that much longer.
    let _ = nix::sys::prctl::set_timerslack(1);
    let schedule = Schedule {
        start: Instant::now(),
        interval_ns: 1e9 / rate_per_s,
    };
    let mut issued = 0u64;
    let mut touched = Vec::new();
    loop {
        let phase = worker.observe_phase();
        if phase == Phase::Drain {
            if !worker.still_draining()? {
                return Ok(());
            }
        } else {
            issue(worker, &schedule, &mut issued, &mut touched);
            for number in touched.drain(..) {
                worker.flush(number)?;
            }
        }
        let until_next = match phase {
            Phase::Drain => NAP,
            _ => schedule
                .due(issued)
                .saturating_duration_since(Instant::now()),
        };
        if until_next > SPIN {
            wait(worker, until_next.min(NAP))?;
        }
        worker.poll(0, |worker, number, done| {
            let now = Instant::now();
            for _ in 0..done {
                let due = worker.connections[number]
                    .intended
                    .pop_front()
                    .expect("every request of the open loop has its due time");
                if worker.measure_start.is_some_and(|start| due >= start) {
                    worker.record(now.saturating_duration_since(due), 1);
                }
            }
            Ok(())
        })?;
    }
}

struct Schedule {
    start: Instant,
    interval_ns: f64,
}

impl Schedule {
    /// When request `number` is due.
    fn due(&self, number: u64) -> Instant {
        self.start + Duration::from_nanos((number as f64 * self.interval_ns) as u64)
    }
}

/// Gives every request that is due to its connection, in turn.
fn issue(worker: &mut Worker<'_>, schedule: &Schedule, issued: &mut u64, touched: &mut Vec<usize>) {
    let now = Instant::now();
    let connections = worker.connections.len();
    loop {
        let due = schedule.due(*issued);
        let number = (*issued % connections as u64) as usize;
        if due > now || worker.connections[number].intended.len() >= OUTSTANDING_MAX {
            return;
        }
        worker.connections[number].intended.push_back(due);
        worker.enqueue(number);
        *issued += 1;
        // A second round over the connections in one turn finds them in the list already.
        if touched.len() < connections {
            touched.push(number);
        }
    }
}

/// Sleeps until replies come or `limit` has passed.
fn wait(worker: &Worker<'_>, limit: Duration) -> io::Result<()> {
    let mut fds = [PollFd::new(worker.queue().0.as_fd(), PollFlags::POLLIN)];
    match ppoll(&mut fds, Some(limit.into()), None) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
