//! The load generator: threads, each with its own connections and event queue, and the coordinator that times them.
//! It must cost less per operation than the servers it measures, so nothing on its path allocates, locks or copies a value twice.

mod closed;
mod connection;
pub mod control_client;
pub mod encode;
pub mod keys;
mod open;
mod replies;
pub mod source;
pub mod values;
mod worker;

use crate::affinity;
use crate::error::BenchError;
use crate::measure::cpu::{CpuUsed, ProcessCpu, machine_cpu_ns, process_cpu};
use crate::measure::latency::{Histogram, histogram};
use connection::Connection;
use encode::{Encoder, Protocol};
use keys::{Distribution, KeyPicker};
use nix::unistd::Pid;
use replies::Tally;
use serde::Serialize;
use source::{Mix, Source, SweepAction, split};
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};
use worker::{Control, Phase, Worker, WorkerReport};

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pace {
    /// When the replies before have come.
    Closed,
    /// At a fixed rate over all connections; latency counts from the due time.
    Open {
        /// Requests per second.
        rate_per_s: f64,
    },
}

/// Where the load goes and who makes it.
#[derive(Debug, Clone)]
pub struct Clients {
    /// The server.
    pub address: SocketAddr,
    /// Its language.
    pub protocol: Protocol,
    /// Connections over all threads.
    pub connections: usize,
    /// Client threads.
    pub threads: usize,
    /// The processors that the client threads share; empty for all.
    pub cores: Vec<usize>,
    /// Writes the requests.
    pub encoder: Encoder,
}

/// An endless random load.
#[derive(Debug, Clone, Copy)]
pub struct LoadPlan {
    /// Keys drawn from.
    pub keys: u64,
    /// How they are drawn.
    pub distribution: Distribution,
    /// Reads, writes and keys per request.
    pub mix: Mix,
    /// Requests sent at once on a connection (closed loop).
    pub pipeline: usize,
    /// Closed or open loop.
    pub pace: Pace,
    /// Load before the measured part.
    pub warmup: Duration,
    /// The measured part.
    pub measure: Duration,
    /// All draws follow from it; each connection has its own seed made from it.
    pub seed: u64,
}

/// What a load came to.
#[derive(Debug)]
pub struct LoadOutcome {
    /// Requests completed in the measured part.
    pub requests: u64,
    /// Length of the measured part.
    pub wall: Duration,
    /// Latencies in the measured part, in nanoseconds.
    pub latency_ns: Histogram,
    /// Processor time of all client threads in the measured part.
    pub client_cpu_ns: u64,
    /// How busy the busiest client thread was, 0 to 1.
    pub client_busy: f64,
    /// Processor time of the server in the measured part.
    pub server_cpu: CpuUsed,
    /// Processor time of everything on this machine in the measured part.
    pub machine_cpu_ns: u64,
    /// Keys read, with warm-up.
    pub reads: u64,
    /// Values found, with warm-up.
    pub hits: u64,
    /// Bytes of the values found, with warm-up.
    pub value_bytes: u64,
    /// Error replies, with warm-up.
    pub errors: u64,
    /// The first error reply.
    pub first_error: Option<String>,
}

/// A server that completes nothing for this long is given up.
const STALL_LIMIT: Duration = Duration::from_secs(15);

/// Puts `plan` on the server, whose process is `server`.
///
/// # Errors
/// A connection failed, the server stalled, or its process cannot be watched.
pub fn run(clients: &Clients, plan: &LoadPlan, server: Pid) -> Result<LoadOutcome, BenchError> {
    let mut seeds = keys::Rng::new(plan.seed);
    let sources = (0..clients.connections)
        .map(|_| Source::Mix {
            picker: KeyPicker::new(plan.keys, plan.distribution, seeds.next_u64()),
            mix: plan.mix,
        })
        .collect();
    let threads = clients.threads.clamp(1, clients.connections.max(1));
    let drive = |worker: &mut Worker<'_>| match plan.pace {
        Pace::Closed => closed::run(worker, plan.pipeline),
        Pace::Open { rate_per_s } => {
            let share = worker.connections.len() as f64 / clients.connections as f64;
            open::run(worker, rate_per_s * share)
        }
    };
    let observe = |control: &Control| {
        rest(control, plan.warmup)?;
        let before = Sample::take(control, server)?;
        control.set_phase(Phase::Measure);
        rest(control, plan.measure)?;
        let after = Sample::take(control, server)?;
        control.set_phase(Phase::Drain);
        Ok((before, after))
    };
    let (seen, reports) = drive_threads(clients, threads, Phase::Warmup, sources, drive, observe)?;
    Ok(sum_up(reports, &seen.0, &seen.1))
}

/// The counts at one end of the measured part.
struct Sample {
    at: Instant,
    requests: u64,
    server: ProcessCpu,
    machine_ns: u64,
}

impl Sample {
    fn take(control: &Control, server: Pid) -> io::Result<Self> {
        Ok(Self {
            machine_ns: machine_cpu_ns()?,
            at: Instant::now(),
            requests: control.completed(),
            server: process_cpu(server)?,
        })
    }
}

/// Does `action` to each key of `range` once, by all connections together, and returns the requests made.
///
/// # Errors
/// A connection failed, the server stalled, or it answered with an error.
pub fn sweep(
    clients: &Clients,
    range: Range<u64>,
    action: SweepAction,
    pipeline: usize,
) -> Result<u64, BenchError> {
    let parts = clients
        .connections
        .min(usize::try_from(range.end - range.start).unwrap_or(usize::MAX))
        .max(1);
    let sources = split(range, parts as u64)
        .map(|range| Source::Sweep { range, action })
        .collect();
    let threads = clients.threads.clamp(1, parts);
    let (_, reports) = drive_threads(
        clients,
        threads,
        Phase::Warmup,
        sources,
        |worker| closed::sweep(worker, pipeline),
        |_| Ok(()),
    )?;
    let mut tally = Tally::default();
    for report in &reports {
        tally.add(&report.tally);
    }
    match tally.first_error {
        Some(text) => Err(BenchError::ServerSaid(format!(
            "{text} ({} of {} writes)",
            tally.errors, tally.replies
        ))),
        None => Ok(tally.replies),
    }
}

/// Opens the connections, runs `drive` on each thread and `observe` here, and collects what they counted.
fn drive_threads<T>(
    clients: &Clients,
    threads: usize,
    phase: Phase,
    sources: Vec<Source>,
    drive: impl Fn(&mut Worker<'_>) -> io::Result<()> + Sync,
    observe: impl FnOnce(&Control) -> Result<T, BenchError>,
) -> Result<(T, Vec<WorkerReport>), BenchError> {
    let control = Control::new(threads, phase);
    let barrier = Barrier::new(threads + 1);
    let mut shares: Vec<Vec<Source>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, source) in sources.into_iter().enumerate() {
        shares[number % threads].push(source);
    }
    thread::scope(|scope| {
        let (control, barrier, drive) = (&control, &barrier, &drive);
        let handles: Vec<_> = shares
            .into_iter()
            .zip(&control.progress)
            .map(|(share, progress)| {
                scope.spawn(move || {
                    let opened = open_all(clients, share).and_then(|all| {
                        Worker::new(all, clients.encoder.clone(), control, progress)
                    });
                    // Reached with or without connections, so that nobody waits for a thread that failed.
                    barrier.wait();
                    let result = opened.and_then(|mut worker| {
                        drive(&mut worker)?;
                        Ok(worker.finish())
                    });
                    if result.is_err() {
                        control.failed.store(true, Ordering::Release);
                    }
                    result
                })
            })
            .collect();
        barrier.wait();
        let watched = thread::scope(|inner| {
            let watch = inner
                .spawn(|| watch_for_stall(control, || handles.iter().all(|h| h.is_finished())));
            let seen = observe(control);
            if seen.is_err() {
                control.set_phase(Phase::Drain);
            }
            let stalled = watch.join().expect("the watch does not panic");
            (seen, stalled)
        });
        let mut reports = Vec::with_capacity(threads);
        let mut failure = None;
        for handle in handles {
            match handle.join().expect("a client thread does not panic") {
                Ok(report) => reports.push(report),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        if watched.1 {
            return Err(BenchError::Stalled {
                seconds: STALL_LIMIT.as_secs(),
            });
        }
        if let Some(error) = failure {
            return Err(BenchError::io("client connection", error));
        }
        Ok((watched.0?, reports))
    })
}

fn open_all(clients: &Clients, sources: Vec<Source>) -> io::Result<Vec<Connection>> {
    affinity::pin_this_thread(&clients.cores)?;
    sources
        .into_iter()
        .map(|source| Connection::open(clients.address, clients.protocol, source))
        .collect()
}

/// Sleeps for `time`, unless a thread fails before.
fn rest(control: &Control, time: Duration) -> Result<(), BenchError> {
    let end = Instant::now() + time;
    loop {
        if control.failed.load(Ordering::Acquire) {
            // The thread's own error says more and takes precedence over this one.
            return Err(BenchError::Stalled { seconds: 0 });
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(Duration::from_millis(100)));
    }
}

/// Waits for the threads to end; `true` when they had to be told to because nothing was completed for too long.
fn watch_for_stall(control: &Control, finished: impl Fn() -> bool) -> bool {
    let mut last = (control.completed(), Instant::now());
    while !finished() {
        thread::sleep(Duration::from_millis(20));
        let requests = control.completed();
        if requests != last.0 {
            last = (requests, Instant::now());
        } else if last.1.elapsed() > STALL_LIMIT {
            control.failed.store(true, Ordering::Release);
            control.set_phase(Phase::Drain);
            return true;
        }
        if control.failed.load(Ordering::Acquire) {
            control.set_phase(Phase::Drain);
        }
    }
    false
}

fn sum_up(reports: Vec<WorkerReport>, before: &Sample, after: &Sample) -> LoadOutcome {
    let mut tally = Tally::default();
    let mut latency_ns = histogram();
    let (mut reads, mut client_cpu_ns, mut client_busy) = (0, 0, 0f64);
    for report in reports {
        tally.add(&report.tally);
        latency_ns
            .add(&report.latency_ns)
            .expect("all histograms have the same bounds");
        reads += report.reads;
        client_cpu_ns += report.cpu_ns;
        client_busy = client_busy.max(report.cpu_ns as f64 / report.wall_ns.max(1) as f64);
    }
    LoadOutcome {
        requests: after.requests - before.requests,
        wall: after.at - before.at,
        latency_ns,
        client_cpu_ns,
        client_busy,
        server_cpu: after.server.since(&before.server),
        machine_cpu_ns: after.machine_ns.saturating_sub(before.machine_ns),
        reads,
        hits: tally.hits,
        value_bytes: tally.value_bytes,
        errors: tally.errors,
        first_error: tally.first_error,
    }
}
