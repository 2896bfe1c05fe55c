//! Requests with ten keys each: processor time per key against the reference.

use super::Goals;
use super::pipeline::against_reference;
use super::table::Finding;
use crate::error::BenchError;
use crate::knobs::Knobs;

pub(super) fn mget(goals: &mut Goals<'_>, row: &'static str) -> Result<Vec<Finding>, BenchError> {
    ten(goals, row, (1, 0))
}

pub(super) fn mset(goals: &mut Goals<'_>, row: &'static str) -> Result<Vec<Finding>, BenchError> {
    ten(goals, row, (0, 1))
}

fn ten(
    goals: &mut Goals<'_>,
    row: &'static str,
    (gets, sets): (u64, u64),
) -> Result<Vec<Finding>, BenchError> {
    let knobs = Knobs {
        gets,
        sets,
        keys_per_request: 10,
        ..goals.common()
    };
    let finding = against_reference(goals, row, "CPU per key", knobs, 0.5)?;
    Ok(vec![finding])
}
