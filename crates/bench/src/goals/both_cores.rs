//! Two server threads on both cores, which they share with the client: what several threads cost.

use super::pipeline::cpu_ratio;
use super::table::Finding;
use super::{Candidate, Goals};
use crate::error::BenchError;

pub(super) fn measure(
    goals: &mut Goals<'_>,
    row: &'static str,
) -> Result<Vec<Finding>, BenchError> {
    let (subject, reference) = (goals.subject(), goals.reference());
    let (two, one) = (goals.on_both_cores(2), goals.on_both_cores(1));
    let [ours, own_one, theirs] = goals.compare(
        row,
        [
            Candidate {
                label: &format!("{} with 2 threads", subject.label),
                engine: subject,
                knobs: two.clone(),
            },
            Candidate {
                label: &format!("{} with 1 thread", subject.label),
                engine: subject,
                knobs: one,
            },
            Candidate {
                label: &format!("{} with 2 threads", reference.label),
                engine: reference,
                knobs: two,
            },
        ],
    )?;
    Ok(vec![
        cpu_ratio(row, "CPU per request", &ours, &theirs, 0.20),
        cpu_ratio(row, "CPU per request", &ours, &own_one, 1.15),
    ])
}
