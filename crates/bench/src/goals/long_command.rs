//! Ordinary clients beside a command that takes very long: their p99, with the command repeated without end and without it.
//! The clients are an open loop, so that a stall counts for every request that was due in it.

use super::Goals;
use super::table::{Finding, Limit};
use crate::affinity;
use crate::error::BenchError;
use crate::knobs::Knobs;
use crate::load::Pace;
use crate::load::control_client::{ControlClient, Reply, append_command};
use crate::report::thousands;
use crate::row::LoadResult;
use crate::session::Live;
use crate::stats::median;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// One long command may take this long.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// Elements of the list that is sorted, and how many are pushed at once.
const LIST_ELEMENTS: u64 = 1_000_000;
const LIST_CHUNK: u64 = 500;

pub(super) fn keys(goals: &mut Goals<'_>, row: &'static str) -> Result<Vec<Finding>, BenchError> {
    beside(goals, row, "KEYS no-such-key*", |_| Ok(()))
}

pub(super) fn bitmap(goals: &mut Goals<'_>, row: &'static str) -> Result<Vec<Finding>, BenchError> {
    beside(goals, row, "BITCOUNT long:bitmap", |client| {
        // The last bit that a string may have makes it 512 MB long.
        let reply = client.command(&[b"SETBIT", b"long:bitmap", b"4294967295", b"1"])?;
        accept(&reply)
    })
}

pub(super) fn sort(goals: &mut Goals<'_>, row: &'static str) -> Result<Vec<Finding>, BenchError> {
    beside(goals, row, "SORT long:list LIMIT 0 10", |client| {
        for chunk in 0..LIST_ELEMENTS / LIST_CHUNK {
            let mut bytes = Vec::new();
            let elements: Vec<String> = (0..LIST_CHUNK)
                .map(|place| crate::load::keys::mix(chunk * LIST_CHUNK + place).to_string())
                .collect();
            let mut words: Vec<&[u8]> = vec![b"RPUSH", b"long:list"];
            words.extend(elements.iter().map(String::as_bytes));
            append_command(&mut bytes, &words);
            if let Some(text) = client.pipeline(&bytes, 1)? {
                return Err(BenchError::ServerSaid(text));
            }
        }
        Ok(())
    })
}

/// Measures the clients' p99 with and without `command`, in turn on one server.
fn beside(
    goals: &mut Goals<'_>,
    row: &'static str,
    command: &str,
    prepare: impl FnOnce(&mut ControlClient) -> Result<(), BenchError>,
) -> Result<Vec<Finding>, BenchError> {
    let knobs = Knobs {
        client_threads: 1,
        pace: Pace::Open {
            rate_per_s: goals.args.rate,
        },
        ..goals.on_both_cores(2)
    };
    let subject = goals.subject();
    let live = goals.session.start(subject, &knobs)?;
    live.write_keys(0..knobs.keys)?;
    live.check_data(knobs.keys)?;
    let mut client = live.server.client(COMMAND_LIMIT)?;
    prepare(&mut client)?;
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    accept(&client.command(&words)?)?;
    let cores = goals.session.machine().cores;
    let (mut without, mut with, mut command_ms) = (Vec::new(), Vec::new(), Vec::new());
    for pass in 1..=goals.args.passes {
        eprintln!(
            "{row}: pass {pass}/{}: without and with {command}",
            goals.args.passes
        );
        let quiet = live.measure(&knobs, cores)?;
        let (loud, mean_ms) = measure_beside(&live, &knobs, cores, &mut client, &words)?;
        keep(goals, row, pass, &knobs, &quiet, None)?;
        keep(goals, row, pass, &knobs, &loud, Some(mean_ms))?;
        without.push(quiet.latency.p99_us);
        with.push(loud.latency.p99_us);
        command_ms.push(mean_ms);
    }
    let middle = |numbers: Vec<f64>| median(numbers).unwrap_or(f64::NAN);
    let (without, with, command_ms) = (middle(without), middle(with), middle(command_ms));
    Ok(vec![Finding::new(
        row,
        format!("p99 at {} req/s, × without", thousands(goals.args.rate)),
        format!(
            "{:.2} ({with:.0} against {without:.0} µs; {command} takes {command_ms:.0} ms)",
            with / without
        ),
        with / without,
        Limit::AtMost(2.0),
    )])
}

/// Measures the clients while `words` is asked again and again, and how long that takes in the mean, in milliseconds.
fn measure_beside(
    live: &Live,
    knobs: &Knobs,
    cores: usize,
    client: &mut ControlClient,
    words: &[&[u8]],
) -> Result<(LoadResult, f64), BenchError> {
    let stop = AtomicBool::new(false);
    let (load, long) = thread::scope(|scope| {
        let long = scope.spawn(|| {
            affinity::pin_this_thread(&knobs.client_cores)?;
            let (start, mut count) = (Instant::now(), 0u32);
            while !stop.load(Ordering::Relaxed) {
                accept(&client.command(words)?)?;
                count += 1;
            }
            Ok::<f64, BenchError>(start.elapsed().as_secs_f64() * 1e3 / f64::from(count.max(1)))
        });
        let load = live.measure(knobs, cores);
        stop.store(true, Ordering::Relaxed);
        (
            load,
            long.join()
                .expect("the long command's thread does not panic"),
        )
    });
    Ok((load?, long?))
}

fn keep(
    goals: &mut Goals<'_>,
    row: &'static str,
    pass: u32,
    knobs: &Knobs,
    load: &LoadResult,
    command_ms: Option<f64>,
) -> Result<(), BenchError> {
    let subject = goals.subject();
    let with = if command_ms.is_some() {
        "with"
    } else {
        "without"
    };
    let mut kept = goals
        .session
        .row(&format!("{row}: {with}"), pass, subject, knobs);
    kept.load = Some(load.clone());
    kept.extra
        .extend(command_ms.map(|ms| ("long_command_ms".to_owned(), ms)));
    goals.session.keep(&kept)
}

fn accept(reply: &Reply) -> Result<(), BenchError> {
    match reply {
        Reply::Error(text) => Err(BenchError::ServerSaid(text.clone())),
        _ => Ok(()),
    }
}
