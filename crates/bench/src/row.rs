//! One result row: what ran, on what, with which knobs, and what came out. Rows are appended to a file, one JSON object a line.

use crate::engine::EngineSpec;
use crate::error::BenchError;
use crate::knobs::Knobs;
use crate::load::LoadOutcome;
use crate::measure::latency::Percentiles;
use crate::measure::machine::Machine;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Which side could do no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The server used at least 90 % of its processors.
    Server,
    /// A client thread used at least 95 % of its processor and the server less than 90 % of its own.
    Client,
    /// Client and server shared processors, so that a limit of one side cannot be told.
    Shared,
    /// Neither; what was waited for is the exchange itself.
    Neither,
}

impl Bound {
    /// How tables show it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client-bound",
            Self::Shared => "shared cores",
            Self::Neither => "-",
        }
    }

    /// Judges by how busy each side was, 0 to 1.
    pub fn judge(server_busy: f64, client_busy: f64, cores_overlap: bool) -> Self {
        if cores_overlap {
            // With common processors either side takes what the other leaves.
            Self::Shared
        } else if server_busy >= 0.90 {
            Self::Server
        } else if client_busy >= 0.95 {
            Self::Client
        } else {
            Self::Neither
        }
    }
}

/// What the measured part of a load came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadResult {
    /// Requests completed.
    pub requests: u64,
    /// Length.
    pub seconds: f64,
    /// Requests per second.
    pub requests_per_s: f64,
    /// Keys per second.
    pub keys_per_s: f64,
    /// Latencies.
    #[serde(flatten)]
    pub latency: Percentiles,
    /// Reads that found their key, with warm-up.
    pub hits: u64,
    /// Reads, with warm-up.
    pub reads: u64,
    /// Server processor time per request.
    pub server_cpu_us_per_request: f64,
    /// The part of it in user mode (sampled by the kernel in 10 ms ticks).
    pub server_user_us_per_request: f64,
    /// The part of it in the kernel.
    pub server_system_us_per_request: f64,
    /// Server processor time per key.
    pub server_cpu_us_per_key: f64,
    /// How much of its processors the server used, 0 to 1.
    pub server_busy: f64,
    /// Client processor time per request.
    pub client_cpu_us_per_request: f64,
    /// How busy the busiest client thread was, 0 to 1.
    pub client_busy: f64,
    /// The share of the whole machine that other processes used meanwhile, 0 to 1.
    pub others_busy: f64,
    /// Which side could do no more.
    pub bound: Bound,
    /// The share of the rate that an open loop reached; absent in a closed loop.
    pub rate_reached: Option<f64>,
}

/// What the server held in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct MemoryResult {
    /// After its start.
    pub empty_bytes: u64,
    /// After all keys were written.
    pub loaded_bytes: u64,
    /// (loaded − empty) / keys.
    pub bytes_per_key: f64,
    /// The most it ever held.
    pub peak_bytes: u64,
}

/// One result row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// All rows of one call of this program have the same.
    pub session: String,
    /// When the row was made, in milliseconds since 1970.
    pub time_unix_ms: u64,
    /// The name of the scenario.
    pub scenario: String,
    /// Which repetition, from 1.
    pub pass: u32,
    /// What ran.
    pub engine: EngineSpec,
    /// Its version, as it says itself.
    pub engine_version: String,
    /// Where it ran.
    pub machine: Machine,
    /// How it ran.
    pub knobs: Knobs,
    /// Why there is no number, if there is none.
    pub void: Option<String>,
    /// The load.
    pub load: Option<LoadResult>,
    /// The memory.
    pub memory: Option<MemoryResult>,
    /// Figures of one scenario alone, by name with unit.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, f64>,
}

impl LoadResult {
    /// Reads the figures off an outcome.
    pub fn of(outcome: &LoadOutcome, knobs: &Knobs, machine_cores: usize) -> Self {
        let seconds = outcome.wall.as_secs_f64();
        let requests = outcome.requests.max(1) as f64;
        let keys = requests * knobs.keys_per_request as f64;
        let per_request = |ns: f64| ns / 1e3 / requests;
        let capacity = knobs.server_capacity(machine_cores) as f64;
        let server_busy = outcome.server_cpu.total_ns / 1e9 / (seconds * capacity);
        let others_ns = outcome.machine_cpu_ns as f64
            - outcome.server_cpu.total_ns
            - outcome.client_cpu_ns as f64;
        let rate_reached = match knobs.pace {
            crate::load::Pace::Closed => None,
            crate::load::Pace::Open { rate_per_s } => Some(requests / seconds / rate_per_s),
        };
        Self {
            requests: outcome.requests,
            seconds,
            requests_per_s: requests / seconds,
            keys_per_s: keys / seconds,
            latency: Percentiles::of(&outcome.latency_ns),
            hits: outcome.hits,
            reads: outcome.reads,
            server_cpu_us_per_request: per_request(outcome.server_cpu.total_ns),
            server_user_us_per_request: per_request(outcome.server_cpu.user_ns),
            server_system_us_per_request: per_request(outcome.server_cpu.system_ns),
            server_cpu_us_per_key: outcome.server_cpu.total_ns / 1e3 / keys,
            server_busy,
            client_cpu_us_per_request: per_request(outcome.client_cpu_ns as f64),
            client_busy: outcome.client_busy,
            others_busy: (others_ns / 1e9 / (seconds * machine_cores.max(1) as f64)).max(0.0),
            bound: Bound::judge(server_busy, outcome.client_busy, overlap(knobs)),
            rate_reached,
        }
    }
}

fn overlap(knobs: &Knobs) -> bool {
    knobs.server_cores.is_empty()
        || knobs.client_cores.is_empty()
        || knobs
            .server_cores
            .iter()
            .any(|core| knobs.client_cores.contains(core))
}

/// The file that rows are appended to.
#[derive(Debug)]
pub struct RowFile {
    file: File,
}

impl RowFile {
    /// Opens `path` for appending, making its folder if need be.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn open(path: &Path) -> Result<Self, BenchError> {
        let failed = |error| BenchError::io(format!("results file {}", path.display()), error);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(failed)?;
        Ok(Self { file })
    }

    /// Appends `row` in one write.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn append(&mut self, row: &impl Serialize) -> Result<(), BenchError> {
        let mut line =
            serde_json::to_vec(row).map_err(|error| BenchError::io("results row", error.into()))?;
        line.push(b'\n');
        self.file
            .write_all(&line)
            .map_err(|error| BenchError::io("results file", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_the_limit() {
        assert_eq!(Bound::judge(0.95, 0.99, false), Bound::Server);
        assert_eq!(Bound::judge(0.89, 0.95, false), Bound::Client);
        assert_eq!(Bound::judge(0.5, 0.5, false), Bound::Neither);
        assert_eq!(Bound::judge(0.5, 0.99, true), Bound::Shared);
    }
}
