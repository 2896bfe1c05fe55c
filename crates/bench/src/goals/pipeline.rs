//! Server processor time per request, at three pipeline depths, against the reference on the same core.

use super::table::{Finding, Limit};
use super::{Candidate, Goals};
use crate::error::BenchError;
use crate::knobs::Knobs;
use crate::report::Cell;

pub(super) fn thirty(goals: &mut Goals<'_>, row: &'static str) -> Result<Vec<Finding>, BenchError> {
    at(goals, row, 30, 0.25)
}

pub(super) fn sixteen(
    goals: &mut Goals<'_>,
    row: &'static str,
) -> Result<Vec<Finding>, BenchError> {
    at(goals, row, 16, 0.30)
}

pub(super) fn one(goals: &mut Goals<'_>, row: &'static str) -> Result<Vec<Finding>, BenchError> {
    at(goals, row, 1, 0.80)
}

fn at(
    goals: &mut Goals<'_>,
    row: &'static str,
    pipeline: usize,
    limit: f64,
) -> Result<Vec<Finding>, BenchError> {
    let knobs = Knobs {
        pipeline,
        ..goals.common()
    };
    let finding = against_reference(goals, row, "CPU per request", knobs, limit)?;
    Ok(vec![finding])
}

/// The subject's processor time per key, as a share of the reference's with the same knobs.
pub(super) fn against_reference(
    goals: &mut Goals<'_>,
    row: &'static str,
    what: &str,
    knobs: Knobs,
    limit: f64,
) -> Result<Finding, BenchError> {
    let (subject, reference) = (goals.subject(), goals.reference());
    let cells = goals.compare(
        row,
        [
            Candidate {
                label: &subject.label,
                engine: subject,
                knobs: knobs.clone(),
            },
            Candidate {
                label: &reference.label,
                engine: reference,
                knobs,
            },
        ],
    )?;
    let [ours, theirs] = &cells;
    Ok(cpu_ratio(row, what, ours, theirs, limit))
}

/// The first cell's processor time per key as a share of the second's.
pub(super) fn cpu_ratio(
    row: &'static str,
    what: &str,
    ours: &Cell,
    theirs: &Cell,
    limit: f64,
) -> Finding {
    let cost = |cell: &Cell| cell.load(|load| load.server_cpu_us_per_key);
    let user = |cell: &Cell| {
        cell.load(|load| load.server_user_us_per_request / load.server_cpu_us_per_request) * 100.0
    };
    let ratio = cost(ours) / cost(theirs);
    Finding::new(
        row,
        format!("{what}, × {}", theirs.label),
        format!(
            "{ratio:.3} ({:.3} µs, {:.0}% user, against {:.3} µs, {:.0}% user; limit {} / {})",
            cost(ours),
            user(ours),
            cost(theirs),
            user(theirs),
            ours.bound(),
            theirs.bound(),
        ),
        ratio,
        Limit::AtMost(limit),
    )
}
