//! Resident memory while the keys double, and after most of them are gone.

use super::Goals;
use super::table::{Finding, Limit};
use crate::error::BenchError;
use crate::knobs::Knobs;
use crate::measure::memory::{peak_resident_bytes, reset_peak, resident_bytes};
use crate::report::thousands;
use std::thread;
use std::time::{Duration, Instant};

/// Memory must have come back within this time after the deletions.
const RETURN_LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(250);
/// Of ten keys one stays.
const STAYS: u64 = 10;

pub(super) fn peak(goals: &mut Goals<'_>, row: &'static str) -> Result<Vec<Finding>, BenchError> {
    let start = goals.args.keys;
    let knobs = Knobs {
        keys: 2 * start,
        ..goals.common()
    };
    let subject = goals.subject();
    let live = goals.session.start(subject, &knobs)?;
    live.write_keys(0..start)?;
    live.memory(start)?;
    reset_peak(live.server.pid())?;
    live.write_keys(start..knobs.keys)?;
    let memory = live.memory(knobs.keys)?;
    live.check_data(knobs.keys)?;
    let ratio = memory.peak_bytes as f64 / memory.loaded_bytes as f64;
    let mut kept = goals.session.row(row, 1, subject, &knobs);
    kept.memory = Some(memory);
    goals.session.keep(&kept)?;
    Ok(vec![Finding::new(
        row,
        format!(
            "peak from {} to {} keys, × the end",
            thousands(start as f64),
            thousands(knobs.keys as f64)
        ),
        format!(
            "{ratio:.3} ({:.1} against {:.1} MB)",
            memory.peak_bytes as f64 / 1e6,
            memory.loaded_bytes as f64 / 1e6
        ),
        ratio,
        Limit::AtMost(1.05),
    )])
}

pub(super) fn delete(goals: &mut Goals<'_>, row: &'static str) -> Result<Vec<Finding>, BenchError> {
    let knobs = goals.common();
    let subject = goals.subject();
    let live = goals.session.start(subject, &knobs)?;
    let pid = live.server.pid();
    live.write_keys(0..knobs.keys)?;
    let loaded = live.memory(knobs.keys)?;
    live.delete_keys(0..knobs.keys, STAYS)?;
    let (end, goal_bytes) = (
        Instant::now() + RETURN_LIMIT,
        loaded.peak_bytes as f64 * 0.25,
    );
    let mut reached_s = None;
    let mut resident = resident_bytes(pid)?;
    while Instant::now() < end {
        if reached_s.is_none() && resident as f64 <= goal_bytes {
            reached_s = Some((RETURN_LIMIT - (end - Instant::now())).as_secs_f64());
        }
        thread::sleep(POLL);
        resident = resident_bytes(pid)?;
    }
    let left = live.server.client(RETURN_LIMIT)?.key_count()?;
    if left != knobs.keys.div_ceil(STAYS) {
        return Err(BenchError::Void(format!(
            "{} keys should be left, the server has {left}",
            knobs.keys.div_ceil(STAYS)
        )));
    }
    let peak_bytes = peak_resident_bytes(pid)?;
    let ratio = resident as f64 / peak_bytes as f64;
    let mut kept = goals.session.row(row, 1, subject, &knobs);
    kept.memory = Some(loaded);
    kept.extra.insert("left_bytes".to_owned(), resident as f64);
    kept.extra
        .insert("peak_bytes".to_owned(), peak_bytes as f64);
    goals.session.keep(&kept)?;
    let when = reached_s.map_or("not within 10 s".to_owned(), |s| format!("after {s:.1} s"));
    Ok(vec![Finding::new(
        row,
        "resident 10 s after deleting 90 %, × peak",
        format!(
            "{ratio:.3} ({:.1} of {:.1} MB; a quarter: {when})",
            resident as f64 / 1e6,
            peak_bytes as f64 / 1e6
        ),
        ratio,
        Limit::AtMost(0.25),
    )])
}
