//! What keys cost in resident memory: at one count, at every count of a doubling, with a time to live, with mixed sizes,
//! under a limit, and with no key at all.

use super::Goals;
use super::table::{Finding, Limit};
use crate::engine::EngineSpec;
use crate::error::BenchError;
use crate::knobs::Knobs;
use crate::load::values::{ValueKind, ValueSize};
use crate::report::thousands;
use crate::row::MemoryResult;

/// Resident bytes per key that random values of 100 B may cost, and ASCII ones.
const RANDOM_LIMIT: f64 = 138.0;
const ASCII_LIMIT: f64 = 128.0;
/// What any other count of keys may cost on top.
const STEP_SLACK: f64 = 6.0;
/// Counts between the keys and their double.
const STEPS: u64 = 10;

pub(super) fn random(goals: &mut Goals<'_>, row: &'static str) -> Result<Vec<Finding>, BenchError> {
    beside_reference(goals, row, ValueKind::Random, RANDOM_LIMIT)
}

pub(super) fn ascii(goals: &mut Goals<'_>, row: &'static str) -> Result<Vec<Finding>, BenchError> {
    beside_reference(goals, row, ValueKind::Ascii, ASCII_LIMIT)
}

fn beside_reference(
    goals: &mut Goals<'_>,
    row: &'static str,
    value_kind: ValueKind,
    limit: f64,
) -> Result<Vec<Finding>, BenchError> {
    let knobs = Knobs {
        value_kind,
        ..goals.common()
    };
    let (subject, reference) = (goals.subject(), goals.reference());
    let ours = fill(goals, row, subject, &knobs)?.bytes_per_key;
    let theirs = fill(goals, row, reference, &knobs)?.bytes_per_key;
    Ok(vec![Finding::new(
        row,
        format!("B/key at {} keys", thousands(knobs.keys as f64)),
        format!("{ours:.1} ({}: {theirs:.1})", reference.label),
        ours,
        Limit::AtMost(limit),
    )])
}

pub(super) fn ttl(goals: &mut Goals<'_>, row: &'static str) -> Result<Vec<Finding>, BenchError> {
    let plain = goals.common();
    let timed = Knobs {
        // Long enough that no key expires while it is counted.
        ttl_s: Some(86_400),
        ..goals.common()
    };
    let subject = goals.subject();
    let without = fill(goals, row, subject, &plain)?.bytes_per_key;
    let with = fill(goals, row, subject, &timed)?.bytes_per_key;
    Ok(vec![Finding::new(
        row,
        "B/key added by a TTL",
        format!("{:.1} ({with:.1} against {without:.1})", with - without),
        with - without,
        Limit::AtMost(8.0),
    )])
}

pub(super) fn steps(goals: &mut Goals<'_>, row: &'static str) -> Result<Vec<Finding>, BenchError> {
    Ok(vec![
        stepwise(goals, row, ValueKind::Random, RANDOM_LIMIT + STEP_SLACK)?,
        stepwise(goals, row, ValueKind::Ascii, ASCII_LIMIT + STEP_SLACK)?,
    ])
}

/// Grows from the keys to their double and keeps the worst count.
fn stepwise(
    goals: &mut Goals<'_>,
    row: &'static str,
    value_kind: ValueKind,
    limit: f64,
) -> Result<Finding, BenchError> {
    let start = goals.args.keys;
    let knobs = Knobs {
        keys: 2 * start,
        value_kind,
        ..goals.common()
    };
    let subject = goals.subject();
    let live = goals.session.start(subject, &knobs)?;
    let (mut written, mut worst) = (0, (0.0, 0));
    let mut seen = Vec::new();
    for step in 0..=STEPS {
        let count = start + start * step / STEPS;
        live.write_keys(written..count)?;
        written = count;
        let memory = live.memory(count)?;
        eprintln!(
            "{row}: {} keys: {:.1} B/key",
            thousands(count as f64),
            memory.bytes_per_key
        );
        if memory.bytes_per_key > worst.0 {
            worst = (memory.bytes_per_key, count);
        }
        seen.push((format!("bytes_per_key_at_{count}"), memory.bytes_per_key));
    }
    live.check_data(written)?;
    let mut kept = goals.session.row(row, 1, subject, &knobs);
    kept.extra.extend(seen);
    goals.session.keep(&kept)?;
    Ok(Finding::new(
        row,
        format!("worst B/key, {value_kind:?} values"),
        format!("{:.1} at {} keys", worst.0, thousands(worst.1 as f64)),
        worst.0,
        Limit::AtMost(limit),
    ))
}

pub(super) fn mixed_sizes(
    goals: &mut Goals<'_>,
    row: &'static str,
) -> Result<Vec<Finding>, BenchError> {
    let knobs = Knobs {
        keys: 300_000,
        value_size: ValueSize {
            min_bytes: 20,
            max_bytes: 400,
        },
        ..goals.common()
    };
    let payload =
        knobs.values().total_bytes(knobs.keys) as f64 / knobs.keys as f64 + knobs.key_bytes as f64;
    let (subject, reference) = (goals.subject(), goals.reference());
    let ours = fill(goals, row, subject, &knobs)?.bytes_per_key - payload;
    let theirs = fill(goals, row, reference, &knobs)?.bytes_per_key - payload;
    Ok(vec![Finding::new(
        row,
        "B/key beyond key and value, 20-400 B",
        format!("{ours:.1} ({}: {theirs:.1})", reference.label),
        ours,
        Limit::AtMost(36.0),
    )])
}

pub(super) fn small_limit(
    goals: &mut Goals<'_>,
    row: &'static str,
) -> Result<Vec<Finding>, BenchError> {
    let knobs = Knobs {
        keys: 250_000,
        maxmemory_bytes: Some(64 << 20),
        ..goals.common()
    };
    let subject = goals.subject();
    // Writes beyond the limit are refused, keys that were evicted are missed: either gives no number.
    let served = goals.session.run_cell(row, 1, subject, &knobs)?;
    let resident_bytes = served
        .memory
        .map_or(f64::NAN, |memory| memory.loaded_bytes as f64);
    Ok(vec![Finding::new(
        row,
        "keys served, all of them hits",
        format!(
            "{} keys in {:.1} MB resident",
            thousands(knobs.keys as f64),
            resident_bytes / 1e6
        ),
        knobs.keys as f64,
        Limit::AtLeast(250_000.0),
    )])
}

pub(super) fn empty(goals: &mut Goals<'_>, row: &'static str) -> Result<Vec<Finding>, BenchError> {
    let knobs = goals.on_both_cores(2);
    let (subject, reference) = (goals.subject(), goals.reference());
    let mut megabytes = [0.0; 2];
    for (place, engine) in megabytes.iter_mut().zip([subject, reference]) {
        let live = goals.session.start(engine, &knobs)?;
        *place = live.empty_bytes as f64 / 1e6;
        let mut kept = goals.session.row(row, 1, engine, &knobs);
        kept.extra
            .insert("empty_bytes".to_owned(), live.empty_bytes as f64);
        goals.session.keep(&kept)?;
    }
    let [ours, theirs] = megabytes;
    Ok(vec![Finding::new(
        row,
        "MB resident, no key, 2 threads",
        format!("{ours:.1} ({}: {theirs:.1})", reference.label),
        ours,
        Limit::AtMost(12.0),
    )])
}

/// Starts an engine, writes all keys, checks them, and keeps what they cost as a row.
fn fill(
    goals: &mut Goals<'_>,
    row: &'static str,
    engine: &EngineSpec,
    knobs: &Knobs,
) -> Result<MemoryResult, BenchError> {
    eprintln!("{row}: {}", engine.label);
    let live = goals.session.start(engine, knobs)?;
    live.write_keys(0..knobs.keys)?;
    let memory = live.memory(knobs.keys)?;
    live.check_data(knobs.keys)?;
    let mut kept = goals.session.row(row, 1, engine, knobs);
    kept.memory = Some(memory);
    goals.session.keep(&kept)?;
    Ok(memory)
}
