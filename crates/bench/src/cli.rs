//! The options of the program, and the knobs that they make.

use crate::affinity::parse_cores;
use crate::engine::EngineSpec;
use crate::knobs::Knobs;
use crate::load::Pace;
use crate::load::encode::Protocol;
use crate::load::keys::Distribution;
use crate::load::values::{ValueKind, ValueSize};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Load generator and side-by-side measurements for in-memory data stores.
#[derive(Debug, Parser)]
#[command(name = "pantala-bench", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure one cell on each engine, in interleaved passes
    Run(Box<RunArgs>),
    /// Measure the rows of the goal table and say which goals are met
    Goals(Box<GoalArgs>),
    /// List the engines found on this machine and the rows of the goal table
    List,
}

/// Options of `run`; an option that is given again replaces the earlier one.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct RunArgs {
    /// Engine to measure: NAME on PATH, or LABEL=PATH[ ARGS]; may be repeated [default: all that are found]
    #[arg(long = "engine", value_parser = EngineSpec::parse)]
    pub engines: Vec<EngineSpec>,
    /// Passes of each engine, interleaved (A B A B …); the table shows medians
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub passes: u32,
    /// File to which each pass is appended as one line of JSON
    #[arg(long, default_value = "bench-results/runs.jsonl")]
    pub out: PathBuf,
    /// Name that the rows carry
    #[arg(long, default_value = "run")]
    pub scenario: String,

    /// Protocol to speak
    #[arg(long, value_enum, default_value_t = Protocol::Resp)]
    protocol: Protocol,
    /// Processors of the server, such as 0 or 0,2-3
    #[arg(long, default_value = "0")]
    server_cores: String,
    /// Threads of the server [default: one for each of its processors]
    #[arg(long)]
    server_threads: Option<usize>,
    /// Memory limit of the server, such as 64mb
    #[arg(long, value_parser = parse_bytes)]
    maxmemory: Option<u64>,
    /// Processors of the client
    #[arg(long, default_value = "1")]
    client_cores: String,
    /// Threads of the client [default: one for each of its processors]
    #[arg(long)]
    client_threads: Option<usize>,

    /// Connections over all client threads
    #[arg(long, default_value_t = 50)]
    connections: usize,
    /// Requests sent at once on each connection; all their replies are awaited before the next
    #[arg(long, default_value_t = 16)]
    pipeline: usize,
    /// Open loop: requests per second over all connections; latency counts from when each was due
    #[arg(long)]
    rate: Option<f64>,
    /// Keys, all written before the measured part (1 and 1000 make hot sets)
    #[arg(long, default_value_t = 1_000_000)]
    keys: u64,
    /// Bytes of each key
    #[arg(long, default_value_t = 15)]
    key_size: usize,
    /// Bytes of each value: a number, or a range such as 20-400
    #[arg(long, default_value = "100", value_parser = parse_value_size)]
    value_size: ValueSize,
    /// Bytes that values consist of
    #[arg(long, value_enum, default_value_t = ValueKind::Random)]
    value_kind: ValueKind,
    /// Reads to writes
    #[arg(long, default_value = "10:1", value_parser = parse_ratio)]
    ratio: (u64, u64),
    /// Keys in each request: above 1, MGET and MSET take the place of GET and SET
    #[arg(long, default_value_t = 1)]
    multi: usize,
    /// Time to live of each key, in seconds
    #[arg(long)]
    ttl: Option<u64>,
    /// How keys are drawn: uniform, or zipf:THETA
    #[arg(long, default_value = "uniform", value_parser = parse_distribution)]
    distribution: Distribution,
    /// Seed of all draws; each connection has its own seed made from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seconds of load before the measured part
    #[arg(long, default_value_t = 1.0, value_parser = parse_seconds)]
    warmup: f64,
    /// Seconds of the measured part
    #[arg(long, default_value_t = 5.0, value_parser = parse_seconds)]
    seconds: f64,
    /// Share of reads that must find their key; a run that is off gives no number
    #[arg(long, default_value_t = 1.0)]
    hit_rate: f64,
}

/// Options of `goals`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct GoalArgs {
    /// Row to measure, by name; may be repeated [default: all]
    #[arg(long = "row")]
    pub rows: Vec<String>,
    /// The engine whose goals these are: NAME, or LABEL=PATH[ ARGS]
    #[arg(long, default_value = "pantala", value_parser = EngineSpec::parse)]
    pub subject: EngineSpec,
    /// The engine it is compared with
    #[arg(long, default_value = "redis-server", value_parser = EngineSpec::parse)]
    pub reference: EngineSpec,
    /// Keys of the common cell
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub keys: u64,
    /// Seconds of each measured part
    #[arg(long, default_value_t = 5.0, value_parser = parse_seconds)]
    pub seconds: f64,
    /// Seconds of load before each measured part
    #[arg(long, default_value_t = 1.0, value_parser = parse_seconds)]
    pub warmup: f64,
    /// Passes of each cell
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub passes: u32,
    /// Keys of the large cell
    #[arg(long, default_value_t = 20_000_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub large_keys: u64,
    /// Requests per second of the open loop beside a long command
    #[arg(long, default_value_t = 10_000.0)]
    pub rate: f64,
    /// Processor of the server where one is used
    #[arg(long, default_value_t = 0)]
    pub server_core: usize,
    /// Processor of the client where one is used
    #[arg(long, default_value_t = 1)]
    pub client_core: usize,
    /// File to which each pass is appended as one line of JSON
    #[arg(long, default_value = "bench-results/goals.jsonl")]
    pub out: PathBuf,
}

impl RunArgs {
    /// The knobs of the cell.
    ///
    /// # Errors
    /// Says what was expected of an option.
    pub fn knobs(&self) -> Result<Knobs, String> {
        let server_cores = parse_cores(&self.server_cores)?;
        let client_cores = parse_cores(&self.client_cores)?;
        if self
            .rate
            .is_some_and(|rate| !rate.is_finite() || rate <= 0.0)
        {
            return Err("--rate: expected a number of requests per second above 0".to_owned());
        }
        if !(0.0..=1.0).contains(&self.hit_rate) {
            return Err("--hit-rate: expected a share from 0 to 1".to_owned());
        }
        Ok(Knobs {
            protocol: self.protocol,
            server_threads: self.server_threads.unwrap_or(server_cores.len()),
            server_cores,
            maxmemory_bytes: self.maxmemory,
            client_threads: self.client_threads.unwrap_or(client_cores.len()),
            client_cores,
            connections: self.connections,
            pipeline: self.pipeline,
            pace: self
                .rate
                .map_or(Pace::Closed, |rate_per_s| Pace::Open { rate_per_s }),
            keys: self.keys,
            key_bytes: self.key_size,
            value_size: self.value_size,
            value_kind: self.value_kind,
            gets: self.ratio.0,
            sets: self.ratio.1,
            keys_per_request: self.multi,
            ttl_s: self.ttl,
            distribution: self.distribution,
            seed: self.seed,
            warmup_s: self.warmup,
            seconds: self.seconds,
            hit_rate: self.hit_rate,
        })
    }
}

/// Values above this are refused: the generator keeps one in memory, and servers take no longer ones.
const VALUE_BYTES_MAX: usize = 512 << 20;

fn parse_value_size(text: &str) -> Result<ValueSize, String> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (low.parse(), high.parse()) {
        (Ok(min_bytes), Ok(max_bytes))
            if min_bytes <= max_bytes && max_bytes <= VALUE_BYTES_MAX =>
        {
            Ok(ValueSize {
                min_bytes,
                max_bytes,
            })
        }
        _ => Err(format!(
            "expected bytes such as 100 or 20-400, got {text:?}"
        )),
    }
}

fn parse_ratio(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once(':');
    parts
        .and_then(|(gets, sets)| Some((gets.parse::<u32>().ok()?, sets.parse::<u32>().ok()?)))
        .map(|(gets, sets)| (u64::from(gets), u64::from(sets)))
        .ok_or_else(|| format!("expected reads:writes such as 10:1, got {text:?}"))
}

fn parse_distribution(text: &str) -> Result<Distribution, String> {
    if text == "uniform" {
        return Ok(Distribution::Uniform);
    }
    let theta = text
        .strip_prefix("zipf")
        .map(|rest| match rest.strip_prefix(':') {
            Some(number) => number.parse().unwrap_or(f64::NAN),
            None if rest.is_empty() => 0.99,
            None => f64::NAN,
        });
    match theta {
        Some(theta) if theta > 0.0 && theta <= 10.0 => Ok(Distribution::Zipf { theta }),
        _ => Err(format!("expected uniform or zipf:THETA, got {text:?}")),
    }
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err(format!("expected seconds, got {text:?}")),
    }
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &lower[digits.len()..] {
        "" | "b" => 0,
        "kb" | "k" => 10,
        "mb" | "m" => 20,
        "gb" | "g" => 30,
        _ => 64,
    };
    let number = digits.parse::<u64>().ok();
    number
        .and_then(|number| number.checked_mul(1u64.checked_shl(shift)?))
        .ok_or_else(|| format!("expected bytes such as 64mb, got {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_options_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_ratios_and_distributions() {
        assert_eq!(parse_bytes("64mb"), Ok(64 << 20));
        assert_eq!(parse_bytes("5"), Ok(5));
        assert!(parse_bytes("5x").is_err() && parse_bytes("mb").is_err());
        assert_eq!(parse_ratio("10:1"), Ok((10, 1)));
        assert!(parse_ratio("10").is_err() && parse_ratio("-1:1").is_err());
        assert_eq!(parse_value_size("7"), Ok(ValueSize::fixed(7)));
        assert!(parse_value_size("9-7").is_err() && parse_value_size("").is_err());
        assert_eq!(
            parse_distribution("zipf:1.1"),
            Ok(Distribution::Zipf { theta: 1.1 })
        );
        assert_eq!(
            parse_distribution("zipf"),
            Ok(Distribution::Zipf { theta: 0.99 })
        );
        assert!(parse_distribution("zipf:x").is_err() && parse_distribution("zipfy").is_err());
    }

    #[test]
    fn defaults_are_the_common_cell() {
        let cli = Cli::parse_from(["pantala-bench", "run"]);
        let Command::Run(args) = cli.command else {
            panic!("expected run");
        };
        assert_eq!(args.knobs().unwrap(), Knobs::default());
    }
}
