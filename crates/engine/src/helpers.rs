//! Helper threads: long commands run here, so that a worker is never busy for longer than its connections would notice.
//!
//! A helper waits for busy shards (it has no connections to serve), so a long command cannot starve. The queue is bounded by the
//! number of connections, since a connection waits for its answer before it sends the next command here; what a client that is gone
//! wanted to know is passed over.

use crate::invoke::{self, Caller, Scratch};
use crate::registry::{CommandId, Runner};
use crate::shared::{Mail, Shared};
use pantala_borrow::Party;
use pantala_commands::{Flags, KeyAt};
use pantala_protocol::{OwnedArgs, Proto};
use pantala_reactor::ConnId;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// A long command on its way.
pub struct Job {
    /// Worker to answer.
    pub worker: usize,
    /// Connection to answer.
    pub conn: ConnId,
    /// Selected database.
    pub db: u16,
    /// Protocol of the reply.
    pub proto: Proto,
    /// Which command.
    pub command: CommandId,
    /// Its arguments.
    pub args: OwnedArgs,
    /// Its keys.
    pub keys: Vec<KeyAt>,
    /// Uses of keys leave no trace.
    pub no_touch: bool,
    /// Client, for the slow log.
    pub client: Arc<crate::clients::Card>,
}

#[derive(Default)]
struct Line {
    jobs: VecDeque<Job>,
    closed: bool,
}

/// The helper threads' common queue.
pub struct Helpers {
    line: Mutex<Line>,
    arrived: Condvar,
    threads: usize,
}

impl Helpers {
    /// A queue for so many threads, which [`start`](Self::start) makes.
    pub fn new(threads: usize) -> Self {
        Self {
            line: Mutex::default(),
            arrived: Condvar::new(),
            threads,
        }
    }

    /// Number of threads.
    pub const fn threads(&self) -> usize {
        self.threads
    }

    /// Starts the threads. They end when [`close`](Self::close) is called.
    pub fn start(shared: &Arc<Shared>) -> std::io::Result<Vec<JoinHandle<()>>> {
        (0..shared.helpers.threads)
            .map(|index| {
                let shared = Arc::clone(shared);
                std::thread::Builder::new()
                    .name(format!("helper-{index}"))
                    .spawn(move || run(&shared, shared.facts.workers + index))
            })
            .collect()
    }

    /// Hands a command over.
    pub fn submit(&self, job: Job) {
        self.line
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .jobs
            .push_back(job);
        self.arrived.notify_one();
    }

    /// Lets the threads end after the command at hand.
    pub fn close(&self) {
        self.line
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .closed = true;
        self.arrived.notify_all();
    }

    fn next(&self) -> Option<Job> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if line.closed {
                return None;
            }
            if let Some(job) = line.jobs.pop_front() {
                return Some(job);
            }
            line = self
                .arrived
                .wait(line)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn run(shared: &Arc<Shared>, party: usize) {
    let mut scratch =
        Scratch::new(shared.facts.seed ^ (party as u64).wrapping_mul(0xd6e8_feb8_6659_fd93));
    while let Some(job) = shared.helpers.next() {
        let command = shared.registry.entry(job.command);
        if job.client.killed.load(Relaxed) && !command.spec.flags.contains(Flags::WRITE) {
            // Nobody waits for the answer: clients that come, ask and go must not fill the queue.
            continue;
        }
        let reply = execute(shared, party, &mut scratch, &job);
        shared.send(
            job.worker,
            Mail::Helped {
                conn: job.conn,
                reply,
            },
        );
    }
}

fn execute(shared: &Shared, party: usize, scratch: &mut Scratch, job: &Job) -> Vec<u8> {
    let entry = shared.registry.entry(job.command);
    let args = job.args.as_args();
    let settings = shared.settings();
    let mut reply = Vec::new();
    let started = Instant::now();
    let now_ms = crate::worker::clock::unix_ms();
    let caller = Caller {
        db: job.db,
        proto: job.proto,
        now_ms,
        party,
        settings: &settings,
        no_touch: job.no_touch,
    };
    let called = if let Runner::Walk(_) = entry.runner {
        invoke::walk(shared, caller, scratch, entry, args, &mut reply, true)
    } else {
        let mut set = std::mem::take(&mut scratch.set);
        set.clear();
        if matches!(entry.runner, Runner::All(_)) {
            (0..shared.store.shards() as u16).for_each(|shard| set.push(shard));
        }
        for key in &job.keys {
            set.push(shared.store.shard_of(key.hash));
        }
        set.seal();
        let (borrow, _inside) = shared
            .store
            .gate()
            .enter_and_borrow_blocking(&set, Party::new(party))
            .into_parts();
        scratch.set = set;
        let mut space = shared.store.space(borrow);
        invoke::call(
            shared, caller, scratch, &mut space, entry, args, &job.keys, &mut reply, false,
        )
    };
    let nanos = started.elapsed().as_nanos() as u64;
    let stats = shared.stats.party(party).command(entry.id);
    stats.executed(1, nanos);
    if called == invoke::Called::Failed {
        crate::stats::add(&stats.failed, 1);
    }
    crate::stats::add(&shared.stats.party(party).executed, 1);
    job.client.commands.fetch_add(1, Relaxed);
    shared
        .slowlog
        .note(&settings, &job.client, entry, args, now_ms, nanos / 1_000);
    shared
        .latency
        .note(&settings, "command", now_ms, nanos / 1_000_000);
    reply
}
