//! What both loops share: one thread's connections, its event queue, and what it counted.

use super::connection::{Connection, Scratch};
use super::encode::Encoder;
use super::replies::Tally;
use crate::measure::cpu::thread_cpu_ns;
use crate::measure::latency::{self, Histogram};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What all threads of a run are doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
pub enum Phase {
    /// Load without recording.
    Warmup = 0,
    /// Load with recording.
    Measure = 1,
    /// No new requests; replies under way are awaited.
    Drain = 2,
}

/// One thread's progress, alone on its cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Progress {
    /// Requests completed.
    pub requests: AtomicU64,
}

/// What the coordinator and the threads tell each other.
#[derive(Debug)]
pub struct Control {
    phase: AtomicU8,
    /// A thread has failed, the others should end.
    pub failed: AtomicBool,
    /// One for each thread.
    pub progress: Vec<Progress>,
}

impl Control {
    /// For `threads` threads, in the phase `phase`.
    pub fn new(threads: usize, phase: Phase) -> Self {
        Self {
            phase: AtomicU8::new(phase as u8),
            failed: AtomicBool::new(false),
            progress: (0..threads).map(|_| Progress::default()).collect(),
        }
    }

    /// The phase now.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Warmup,
            1 => Phase::Measure,
            _ => Phase::Drain,
        }
    }

    /// Starts a phase.
    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// Requests completed, over all threads.
    pub fn completed(&self) -> u64 {
        let counts = self.progress.iter();
        counts.map(|one| one.requests.load(Ordering::Relaxed)).sum()
    }
}

/// What one thread counted.
#[derive(Debug)]
pub struct WorkerReport {
    /// Replies, over the whole run with warm-up.
    pub tally: Tally,
    /// Keys read, over the whole run.
    pub reads: u64,
    /// Latencies in the measured part, in nanoseconds.
    pub latency_ns: Histogram,
    /// Processor time in the measured part.
    pub cpu_ns: u64,
    /// Length of the measured part as this thread saw it.
    pub wall_ns: u64,
}

/// One thread's connections and counts.
pub struct Worker<'a> {
    /// The connections, by number.
    pub connections: Vec<Connection>,
    encoder: Encoder,
    epoll: Epoll,
    events: Vec<EpollEvent>,
    scratch: Scratch,
    control: &'a Control,
    progress: &'a Progress,
    phase: Phase,
    /// When the measured part began.
    pub measure_start: Option<Instant>,
    mark: (Instant, u64),
    report: WorkerReport,
}

/// How long the thread sleeps at most before it looks at the phase again.
pub const NAP: Duration = Duration::from_millis(20);
/// Replies that take longer than this after the end of a run are given up.
const DRAIN_LIMIT: Duration = Duration::from_secs(20);
const EVENTS: usize = 256;

impl<'a> Worker<'a> {
    /// A thread's half of a run, with connections that are open already.
    ///
    /// # Errors
    /// Whatever the system says about the event queue.
    pub fn new(
        connections: Vec<Connection>,
        encoder: Encoder,
        control: &'a Control,
        progress: &'a Progress,
    ) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for (number, connection) in connections.iter().enumerate() {
            epoll.add(
                connection,
                EpollEvent::new(EpollFlags::EPOLLIN, number as u64),
            )?;
        }
        let mut worker = Self {
            connections,
            encoder,
            epoll,
            events: vec![EpollEvent::empty(); EVENTS],
            scratch: Scratch::new(),
            control,
            progress,
            phase: Phase::Warmup,
            measure_start: None,
            mark: (Instant::now(), 0),
            report: WorkerReport {
                tally: Tally::default(),
                reads: 0,
                latency_ns: latency::histogram(),
                cpu_ns: 0,
                wall_ns: 0,
            },
        };
        worker.observe_phase();
        Ok(worker)
    }

    /// Looks at the phase, and takes the thread's clocks where the measured part begins and ends.
    pub fn observe_phase(&mut self) -> Phase {
        let phase = self.control.phase();
        if phase != self.phase {
            let now = (Instant::now(), thread_cpu_ns());
            if phase == Phase::Measure {
                self.measure_start = Some(now.0);
                self.mark = now;
            } else if self.phase == Phase::Measure {
                self.report.wall_ns = (now.0 - self.mark.0).as_nanos() as u64;
                self.report.cpu_ns = now.1 - self.mark.1;
                self.mark = now;
            }
            self.phase = phase;
        }
        phase
    }

    /// Whether replies are still awaited after the end.
    ///
    /// # Errors
    /// When they are overdue.
    pub fn still_draining(&self) -> io::Result<bool> {
        if self.connections.iter().all(|one| one.outstanding == 0) {
            return Ok(false);
        }
        if self.control.failed.load(Ordering::Relaxed) || self.mark.0.elapsed() > DRAIN_LIMIT {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "replies did not come after the end of the run",
            ));
        }
        Ok(true)
    }

    /// Puts one more request of connection `number` into its buffer; `false` at the end of a sweep.
    pub fn enqueue(&mut self, number: usize) -> bool {
        let Some(asked) = self.connections[number].enqueue(&self.encoder) else {
            return false;
        };
        self.report.reads += asked.reads;
        true
    }

    /// Sends what connection `number` has to send, as far as its socket takes it.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn flush(&mut self, number: usize) -> io::Result<()> {
        let connection = &mut self.connections[number];
        let blocked = !connection.flush()?;
        if blocked != connection.watches_write {
            connection.watches_write = blocked;
            let mut flags = EpollFlags::EPOLLIN;
            flags.set(EpollFlags::EPOLLOUT, blocked);
            let mut event = EpollEvent::new(flags, number as u64);
            self.epoll.modify(&*connection, &mut event)?;
        }
        Ok(())
    }

    /// Waits up to `timeout_ms` and calls `completed(worker, connection, replies)` for each connection that got some.
    ///
    /// # Errors
    /// Whatever the system or the callback says.
    pub fn poll(
        &mut self,
        timeout_ms: u8,
        mut completed: impl FnMut(&mut Self, usize, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let count = match self.epoll.wait(&mut self.events, timeout_ms) {
            Ok(count) => count,
            Err(nix::errno::Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        for slot in 0..count {
            let event = self.events[slot];
            let number = event.data() as usize;
            if event.events().contains(EpollFlags::EPOLLOUT) {
                self.flush(number)?;
            }
            if !event.events().difference(EpollFlags::EPOLLOUT).is_empty() {
                let done =
                    self.connections[number].receive(&mut self.scratch, &mut self.report.tally)?;
                if done > 0 {
                    bump(&self.progress.requests, done);
                    completed(self, number, done)?;
                }
            }
        }
        Ok(())
    }

    /// The event queue, to wait on with a finer clock.
    pub fn queue(&self) -> &Epoll {
        &self.epoll
    }

    /// Notes `count` replies that took `latency`, if the measured part has begun.
    pub fn record(&mut self, latency: Duration, count: u64) {
        if self.phase != Phase::Warmup {
            latency::record(&mut self.report.latency_ns, latency, count);
        }
    }

    /// Ends the thread's half.
    pub fn finish(self) -> WorkerReport {
        self.report
    }
}

/// Adds to a counter that only this thread writes, without a locked instruction.
fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}
