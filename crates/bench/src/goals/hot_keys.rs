//! All clients on few keys, half of the requests writes: a second thread must not cost throughput.

use super::table::{Finding, Limit};
use super::{Candidate, Goals};
use crate::error::BenchError;
use crate::knobs::Knobs;
use crate::report::{Cell, thousands};

pub(super) fn one(goals: &mut Goals<'_>, row: &'static str) -> Result<Vec<Finding>, BenchError> {
    on(goals, row, 1)
}

pub(super) fn thousand(
    goals: &mut Goals<'_>,
    row: &'static str,
) -> Result<Vec<Finding>, BenchError> {
    on(goals, row, 1_000)
}

fn on(goals: &mut Goals<'_>, row: &'static str, keys: u64) -> Result<Vec<Finding>, BenchError> {
    let subject = goals.subject();
    let with = |threads| Knobs {
        keys,
        gets: 1,
        sets: 1,
        ..goals.on_both_cores(threads)
    };
    let (two, one) = (with(2), with(1));
    let [two, one] = goals.compare(
        row,
        [
            Candidate {
                label: "2 threads",
                engine: subject,
                knobs: two,
            },
            Candidate {
                label: "1 thread",
                engine: subject,
                knobs: one,
            },
        ],
    )?;
    let rate = |cell: &Cell| cell.load(|load| load.requests_per_s);
    let ratio = rate(&two) / rate(&one);
    Ok(vec![Finding::new(
        row,
        "requests/s with 2 threads, × 1 thread",
        format!(
            "{ratio:.2} ({} against {}; CPU {:.3} against {:.3} µs)",
            thousands(rate(&two)),
            thousands(rate(&one)),
            two.load(|load| load.server_cpu_us_per_request),
            one.load(|load| load.server_cpu_us_per_request),
        ),
        ratio,
        Limit::AtLeast(1.0),
    )])
}
