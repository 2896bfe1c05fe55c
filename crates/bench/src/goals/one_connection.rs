//! One connection that waits for each reply: the shortest way through the server, against the reference.

use super::table::{Finding, Limit};
use super::{Candidate, Goals};
use crate::error::BenchError;
use crate::knobs::Knobs;
use crate::report::Cell;

pub(super) fn measure(
    goals: &mut Goals<'_>,
    row: &'static str,
) -> Result<Vec<Finding>, BenchError> {
    let (subject, reference) = (goals.subject(), goals.reference());
    let knobs = Knobs {
        connections: 1,
        pipeline: 1,
        ..goals.common()
    };
    let [ours, theirs] = goals.compare(
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
    let p50 = |cell: &Cell| cell.load(|load| load.latency.p50_us);
    let ratio = p50(&ours) / p50(&theirs);
    Ok(vec![Finding::new(
        row,
        format!("p50, × {}", theirs.label),
        format!(
            "{ratio:.2} ({:.1} against {:.1} µs)",
            p50(&ours),
            p50(&theirs)
        ),
        ratio,
        Limit::AtMost(1.0),
    )])
}
