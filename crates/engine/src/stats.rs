//! Counters of what was done: one set per party (worker or helper thread), written by it alone, summed by whoever asks.

use crate::registry::CommandId;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Latency buckets per command: four per power of two from 1 ns on, so a percentile is right within 19 %.
pub const LATENCY_BUCKETS: usize = 40 * 4;

/// What is counted per command.
#[derive(Default)]
pub struct CommandStats {
    /// Executions.
    pub calls: AtomicU64,
    /// Time spent, in ns.
    pub nanos: AtomicU64,
    /// Refused before execution (arity, authentication, memory …).
    pub rejected: AtomicU64,
    /// Executed, and answered with an error.
    pub failed: AtomicU64,
    /// Executions by duration; made when the command first runs.
    latency: OnceLock<Box<[AtomicU32]>>,
}

impl CommandStats {
    /// Notes `calls` executions of `nanos` each.
    pub fn executed(&self, calls: u64, nanos: u64) {
        add(&self.calls, calls);
        add(&self.nanos, nanos * calls);
        let histogram = self
            .latency
            .get_or_init(|| (0..LATENCY_BUCKETS).map(|_| AtomicU32::new(0)).collect());
        let slot = &histogram[bucket_of(nanos)];
        slot.store(slot.load(Relaxed).wrapping_add(calls as u32), Relaxed);
    }

    /// Executions by bucket, if it ever ran.
    pub fn latency(&self) -> Option<impl Iterator<Item = u32>> {
        self.latency
            .get()
            .map(|histogram| histogram.iter().map(|slot| slot.load(Relaxed)))
    }

    fn reset(&self) {
        for counter in [&self.calls, &self.nanos, &self.rejected, &self.failed] {
            counter.store(0, Relaxed);
        }
        for slot in self.latency.get().into_iter().flatten() {
            slot.store(0, Relaxed);
        }
    }
}

/// Bucket of a duration in ns.
pub fn bucket_of(nanos: u64) -> usize {
    let nanos = nanos.max(1);
    let power = nanos.ilog2();
    let quarter = if power >= 2 {
        (nanos >> (power - 2)) & 3
    } else {
        0
    };
    ((power as usize) * 4 + quarter as usize).min(LATENCY_BUCKETS - 1)
}

/// Upper end of a bucket, in ns.
pub fn bucket_end(bucket: usize) -> u64 {
    let (power, quarter) = (bucket / 4, (bucket % 4) as u64);
    if power >= 2 {
        (1 << power) + ((quarter + 1) << (power - 2))
    } else {
        1 << (power + 1)
    }
}

/// Owner-only increment: a plain load and store, since no one else writes.
#[inline]
pub fn add(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
}

/// Counters of one party.
#[repr(align(128))]
pub struct PartyStats {
    commands: Box<[CommandStats]>,
    /// Commands executed.
    pub executed: AtomicU64,
    /// Connections given to this worker.
    pub connections: AtomicU64,
    /// Bytes read from clients.
    pub read_bytes: AtomicU64,
    /// Error replies.
    pub errors: AtomicU64,
    /// Times that a connection was set aside because a shard was busy.
    pub set_aside: AtomicU64,
    /// Commands handed to helper threads.
    pub helped: AtomicU64,
    /// Number of changes to the data.
    pub changes: AtomicU64,
    /// Buffer memory that this worker holds, in bytes.
    pub buffer_bytes: AtomicU64,
    /// Clients closed for exceeding a buffer limit.
    pub closed_for_output: AtomicU64,
    /// The same for the query buffer.
    pub closed_for_query: AtomicU64,
}

/// Counters of all parties.
pub struct Stats {
    parties: Box<[PartyStats]>,
}

impl Stats {
    /// Counters for so many parties and commands.
    pub fn new(parties: usize, commands: usize) -> Self {
        Self {
            parties: (0..parties)
                .map(|_| PartyStats {
                    commands: (0..commands).map(|_| CommandStats::default()).collect(),
                    executed: AtomicU64::new(0),
                    connections: AtomicU64::new(0),
                    read_bytes: AtomicU64::new(0),
                    errors: AtomicU64::new(0),
                    set_aside: AtomicU64::new(0),
                    helped: AtomicU64::new(0),
                    changes: AtomicU64::new(0),
                    buffer_bytes: AtomicU64::new(0),
                    closed_for_output: AtomicU64::new(0),
                    closed_for_query: AtomicU64::new(0),
                })
                .collect(),
        }
    }

    /// One party's counters.
    pub fn party(&self, party: usize) -> &PartyStats {
        &self.parties[party]
    }

    /// Sum of one counter over the parties.
    pub fn sum(&self, counter: impl Fn(&PartyStats) -> &AtomicU64) -> u64 {
        self.parties
            .iter()
            .map(|party| counter(party).load(Relaxed))
            .sum()
    }

    /// One command's counters, party by party.
    pub fn command(&self, id: CommandId) -> impl Iterator<Item = &CommandStats> {
        self.parties
            .iter()
            .map(move |party| &party.commands[usize::from(id)])
    }

    /// `CONFIG RESETSTAT`.
    pub fn reset(&self) {
        for party in &self.parties {
            for counter in [
                &party.executed,
                &party.connections,
                &party.read_bytes,
                &party.errors,
                &party.set_aside,
                &party.helped,
                &party.closed_for_output,
                &party.closed_for_query,
            ] {
                counter.store(0, Relaxed);
            }
            party.commands.iter().for_each(CommandStats::reset);
        }
    }
}

impl PartyStats {
    /// This party's counters of one command.
    #[inline]
    pub fn command(&self, id: CommandId) -> &CommandStats {
        &self.commands[usize::from(id)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_lies_below_the_end_of_its_bucket_and_not_below_the_one_before() {
        for nanos in (0..40).flat_map(|power| {
            [
                1_u64 << power,
                (1 << power) + (1 << power) / 3,
                (2 << power) - 1,
            ]
        }) {
            let bucket = bucket_of(nanos);
            assert!(nanos < bucket_end(bucket), "{nanos} in bucket {bucket}");
            assert!(
                bucket < 8 || nanos >= bucket_end(bucket - 1),
                "{nanos} in bucket {bucket}"
            );
        }
    }
}
