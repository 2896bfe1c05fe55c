//! How the cost of a request grows with the number of keys and of connections.

use super::pipeline::cpu_ratio;
use super::table::Finding;
use super::{Candidate, Goals};
use crate::error::BenchError;
use crate::knobs::Knobs;
use crate::report::thousands;

/// A server may need this much for each key of 115 bytes; below it the large cell would swap or be killed.
const BYTES_PER_KEY: u64 = 300;

pub(super) fn keys(goals: &mut Goals<'_>, row: &'static str) -> Result<Vec<Finding>, BenchError> {
    let large_keys = goals.args.large_keys;
    let needed_bytes = large_keys.saturating_mul(BYTES_PER_KEY);
    if needed_bytes > goals.session.machine().memory_bytes {
        return Err(BenchError::Options(format!(
            "{} keys need {} MB of memory: use --large-keys",
            thousands(large_keys as f64),
            needed_bytes >> 20
        )));
    }
    let common = goals.common();
    let large = Knobs {
        keys: large_keys,
        ..goals.common()
    };
    let labels = [common.keys, large.keys].map(|keys| format!("{} keys", thousands(keys as f64)));
    growth(goals, row, [common, large], &labels, 1.3)
}

pub(super) fn connections(
    goals: &mut Goals<'_>,
    row: &'static str,
) -> Result<Vec<Finding>, BenchError> {
    let with = |connections| Knobs {
        connections,
        ..goals.common()
    };
    let knobs = [with(50), with(5_000)];
    let labels = ["50 connections".to_owned(), "5,000 connections".to_owned()];
    growth(goals, row, knobs, &labels, 1.5)
}

fn growth(
    goals: &mut Goals<'_>,
    row: &'static str,
    [small, large]: [Knobs; 2],
    [small_label, large_label]: &[String; 2],
    limit: f64,
) -> Result<Vec<Finding>, BenchError> {
    let subject = goals.subject();
    let [small, large] = goals.compare(
        row,
        [
            Candidate {
                label: small_label,
                engine: subject,
                knobs: small,
            },
            Candidate {
                label: large_label,
                engine: subject,
                knobs: large,
            },
        ],
    )?;
    let what = format!("CPU per request with {large_label}");
    Ok(vec![cpu_ratio(row, &what, &large, &small, limit)])
}
