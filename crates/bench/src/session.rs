//! One call of this program: it starts servers, loads them, checks the data, measures, and keeps every result as a row.
//! It must never let a number out whose hit rate or data are wrong.

use crate::engine::{EngineSpec, Server, ServerOptions};
use crate::error::BenchError;
use crate::knobs::Knobs;
use crate::load::keys::Rng;
use crate::load::source::SweepAction;
use crate::load::values::Values;
use crate::load::{self, Clients, LoadOutcome, Pace};
use crate::measure::machine::Machine;
use crate::measure::memory::{peak_resident_bytes, resident_bytes};
use crate::row::{LoadResult, MemoryResult, Row, RowFile};
use nix::unistd::Pid;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// One call of this program.
#[derive(Debug)]
pub struct Session {
    id: String,
    machine: Machine,
    rows: RowFile,
    versions: HashMap<EngineSpec, String>,
}

/// A server that runs with the knobs of a cell.
#[derive(Debug)]
pub struct Live {
    /// The server.
    pub server: Server,
    /// What it held after its start.
    pub empty_bytes: u64,
    knobs: Knobs,
    values: Arc<Values>,
}

/// What a goal came to, as a line of the results file.
#[derive(Serialize)]
struct KeptFinding<'a, F> {
    session: &'a str,
    time_unix_ms: u64,
    finding: &'a F,
}

/// A server frees what its start and its clients needed within this time.
const SETTLE: Duration = Duration::from_millis(700);
/// Memory that still changes after this is taken as it is.
const SETTLE_MAX: Duration = Duration::from_secs(5);
/// How long a plain command may take, a count of many keys among them.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// Requests at once while keys are written, and the bytes they may have together.
const SWEEP_PIPELINE: usize = 32;
const SWEEP_BYTES: usize = 128 * 1024;
/// Keys whose values are compared byte by byte after they were written.
const SAMPLES: u64 = 500;
/// An open loop that reaches less than this of its rate gets a note.
const RATE_MIN: f64 = 0.98;
/// Other processes may use this share of the machine before a note is made of it.
const OTHERS_BUSY_MAX: f64 = 0.05;
/// A hit rate may be off by this much where it is not expected to be whole.
const HIT_RATE_SLACK: f64 = 0.005;
/// More connections than this do not make writing the keys faster.
const SWEEP_CONNECTIONS: usize = 50;

impl Session {
    /// Opens the results file and looks at the machine.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(out: &Path) -> Result<Self, BenchError> {
        Ok(Self {
            id: format!("{:x}-{:x}", now_unix_ms(), std::process::id()),
            machine: Machine::read(),
            rows: RowFile::open(out)?,
            versions: HashMap::new(),
        })
    }

    /// What all rows of this call carry.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Starts an engine with `knobs`.
    ///
    /// # Errors
    /// It does not start, or the knobs contradict each other.
    pub fn start(&self, engine: &EngineSpec, knobs: &Knobs) -> Result<Live, BenchError> {
        knobs.check()?;
        let options = ServerOptions {
            protocol: knobs.protocol,
            threads: knobs.server_threads,
            cores: knobs.server_cores.clone(),
            maxmemory_bytes: knobs.maxmemory_bytes,
            memory_bytes: self.machine.memory_bytes,
        };
        let server = Server::start(engine, &options)?;
        thread::sleep(SETTLE);
        let empty_bytes = resident_bytes(server.pid())?;
        Ok(Live {
            server,
            empty_bytes,
            knobs: knobs.clone(),
            values: knobs.values(),
        })
    }

    /// One pass of one engine: start, write all keys, check them, measure, stop; kept as a row.
    ///
    /// # Errors
    /// Something went wrong, or the result is void; the row then says why and holds no number.
    pub fn run_cell(
        &mut self,
        scenario: &str,
        pass: u32,
        engine: &EngineSpec,
        knobs: &Knobs,
    ) -> Result<Row, BenchError> {
        let mut row = self.row(scenario, pass, engine, knobs);
        let outcome = self.measure_cell(engine, knobs);
        match outcome {
            Ok((load, memory)) => {
                row.load = Some(load);
                row.memory = Some(memory);
                self.rows.append(&row)?;
                Ok(row)
            }
            Err(error) => {
                row.void = Some(error.to_string());
                self.rows.append(&row)?;
                Err(error)
            }
        }
    }

    fn measure_cell(
        &self,
        engine: &EngineSpec,
        knobs: &Knobs,
    ) -> Result<(LoadResult, MemoryResult), BenchError> {
        let live = self.start(engine, knobs)?;
        live.write_keys(0..knobs.keys)?;
        live.check_data(knobs.keys)?;
        let mut memory = live.memory(knobs.keys)?;
        let load = live.measure(knobs, self.machine.cores)?;
        memory.peak_bytes = peak_resident_bytes(live.server.pid())?;
        Ok((load, memory))
    }

    /// Keeps a row made by hand.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&mut self, row: &Row) -> Result<(), BenchError> {
        self.rows.append(row)
    }

    /// Keeps what a goal came to, beside the rows that it comes from.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep_finding(&mut self, finding: &impl Serialize) -> Result<(), BenchError> {
        self.rows.append(&KeptFinding {
            session: &self.id,
            time_unix_ms: now_unix_ms(),
            finding,
        })
    }

    /// A row without results.
    pub fn row(&mut self, scenario: &str, pass: u32, engine: &EngineSpec, knobs: &Knobs) -> Row {
        let version = self
            .versions
            .entry(engine.clone())
            .or_insert_with(|| engine.version());
        Row {
            session: self.id.clone(),
            time_unix_ms: now_unix_ms(),
            scenario: scenario.to_owned(),
            pass,
            engine: engine.clone(),
            engine_version: version.clone(),
            machine: self.machine.clone(),
            knobs: knobs.clone(),
            void: None,
            load: None,
            memory: None,
            extra: BTreeMap::new(),
        }
    }
}

impl Live {
    /// Writes each key of `range` once.
    ///
    /// # Errors
    /// A connection failed or the server refused a write.
    pub fn write_keys(&self, range: Range<u64>) -> Result<(), BenchError> {
        self.sweep(range, SweepAction::Set)
    }

    /// Deletes each key of `range` but every `stays`-th.
    ///
    /// # Errors
    /// A connection failed or the server refused.
    pub fn delete_keys(&self, range: Range<u64>, stays: u64) -> Result<(), BenchError> {
        self.sweep(range, SweepAction::DeleteExceptEvery(stays))
    }

    fn sweep(&self, range: Range<u64>, action: SweepAction) -> Result<(), BenchError> {
        let mut clients = self.clients(&self.knobs)?;
        clients.connections = self.knobs.connections.min(SWEEP_CONNECTIONS);
        let pipeline =
            (SWEEP_BYTES / (self.knobs.value_size.max_bytes + 64)).clamp(1, SWEEP_PIPELINE);
        load::sweep(&clients, range, action, pipeline)
            .map(drop)
            .map_err(|error| self.server.explain(error))
    }

    /// Compares the count of keys, and the values of a sample, with what was written.
    ///
    /// # Errors
    /// They differ, or a connection failed.
    pub fn check_data(&self, keys: u64) -> Result<(), BenchError> {
        let failed = |error| BenchError::io("check of the data", error);
        let mut client = self.server.client(COMMAND_LIMIT).map_err(failed)?;
        let count = client.key_count().map_err(failed)?;
        let whole = self.knobs.hit_rate >= 1.0;
        if whole && count != keys {
            return Err(BenchError::Void(format!(
                "{keys} keys were written, the server has {count}"
            )));
        }
        let mut rng = Rng::new(self.knobs.seed ^ 0xc0_ffee);
        for _ in 0..SAMPLES.min(keys) {
            let index = rng.below(keys);
            let value = client.get(&self.knobs.key(index)?).map_err(failed)?;
            let right = match &value {
                Some(bytes) => bytes == self.values.of(index),
                None => !whole,
            };
            if !right {
                return Err(BenchError::Void(format!(
                    "key {index} has {} where its {} bytes were expected",
                    value.map_or("no value".to_owned(), |bytes| format!(
                        "{} other bytes",
                        bytes.len()
                    )),
                    self.values.len_of(index)
                )));
            }
        }
        Ok(())
    }

    /// What the server holds with `keys` keys, after it had time to settle.
    ///
    /// # Errors
    /// The process is gone.
    pub fn memory(&self, keys: u64) -> io::Result<MemoryResult> {
        let pid = self.server.pid();
        let loaded_bytes = settled_bytes(pid)?;
        Ok(MemoryResult {
            empty_bytes: self.empty_bytes,
            loaded_bytes,
            bytes_per_key: (loaded_bytes as f64 - self.empty_bytes as f64) / keys as f64,
            peak_bytes: peak_resident_bytes(pid)?,
        })
    }

    /// Measures the load of `knobs`, which may differ from the start's in all that the server does not know of.
    ///
    /// # Errors
    /// A connection failed, or the result is void.
    pub fn measure(&self, knobs: &Knobs, machine_cores: usize) -> Result<LoadResult, BenchError> {
        let outcome = load::run(&self.clients(knobs)?, &knobs.plan(), self.server.pid())
            .map_err(|error| self.server.explain(error))?;
        judge(&outcome, knobs, &self.values)?;
        let result = LoadResult::of(&outcome, knobs, machine_cores);
        if let Some(share) = result.rate_reached
            && share < RATE_MIN
        {
            eprintln!(
                "note: {:.1} % of the rate was reached; the latencies hold the backlog",
                share * 100.0
            );
        }
        if result.others_busy > OTHERS_BUSY_MAX {
            eprintln!(
                "note: other processes used {:.0} % of this machine meanwhile; the figures suffer",
                result.others_busy * 100.0
            );
        }
        Ok(result)
    }

    fn clients(&self, knobs: &Knobs) -> Result<Clients, BenchError> {
        Ok(Clients {
            address: self.server.address(),
            protocol: knobs.protocol,
            connections: knobs.connections,
            threads: knobs.client_threads,
            cores: knobs.client_cores.clone(),
            encoder: knobs.encoder(Arc::clone(&self.values))?,
        })
    }
}

/// What a process holds once that no longer changes, or after a few seconds in any case.
fn settled_bytes(pid: Pid) -> io::Result<u64> {
    let end = Instant::now() + SETTLE_MAX;
    let mut bytes = resident_bytes(pid)?;
    loop {
        thread::sleep(SETTLE);
        let now = resident_bytes(pid)?;
        // Half a per mille: less than any goal can tell apart.
        if now.abs_diff(bytes) * 2_000 <= now || Instant::now() >= end {
            return Ok(now);
        }
        bytes = now;
    }
}

/// Refuses an outcome whose replies are not what was asked for.
fn judge(outcome: &LoadOutcome, knobs: &Knobs, values: &Values) -> Result<(), BenchError> {
    let void = |text: String| Err(BenchError::Void(text));
    if outcome.errors > 0 {
        let text = outcome.first_error.as_deref().unwrap_or_default();
        return void(format!(
            "{} error replies, the first: {text}",
            outcome.errors
        ));
    }
    if outcome.requests == 0 {
        return void("nothing was completed".to_owned());
    }
    if outcome.hits > outcome.reads {
        return void(format!(
            "{} values came for {} reads",
            outcome.hits, outcome.reads
        ));
    }
    if let Some(len) = values.fixed_len()
        && outcome.value_bytes != outcome.hits * len as u64
    {
        return void(format!(
            "{} values of {len} bytes came as {} bytes",
            outcome.hits, outcome.value_bytes
        ));
    }
    if outcome.reads > 0 {
        let rate = outcome.hits as f64 / outcome.reads as f64;
        let slack = if knobs.hit_rate >= 1.0 {
            0.0
        } else {
            HIT_RATE_SLACK
        };
        if (rate - knobs.hit_rate).abs() > slack {
            return void(format!(
                "hit rate {rate:.4} where {:.4} was expected",
                knobs.hit_rate
            ));
        }
    }
    if let Pace::Open { rate_per_s } = knobs.pace
        && outcome.requests as f64 / outcome.wall.as_secs_f64() > rate_per_s * 1.5
    {
        return void("more replies came than the open loop asked for".to_owned());
    }
    Ok(())
}

fn now_unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_millis() as u64)
}
