//! Differential suite: generated command sequences go to this server and to Debian's `redis-server`; every reply must be the same, byte for
//! byte, in RESP2 and RESP3. `PANTALA_SEED=n` repeats a run, `PANTALA_ROUNDS=n` makes it longer, `PANTALA_FAMILY=name` picks one family.

use std::fs;
use std::path::{Path, PathBuf};

use pantala_tests::deviations::{self, Deviation};
use pantala_tests::differential::{Pair, Proto};
use pantala_tests::generate::{Step, sequence};
use pantala_tests::grammar::Grammar;
use pantala_tests::quote;
use pantala_tests::rng::{Rng, seed_of_run};
use pantala_tests::server::Server;
use pantala_tests::values::Pool;

/// Sequences per family and protocol version, unless `PANTALA_ROUNDS` says otherwise.
const ROUNDS: usize = 40;
/// Steps per sequence.
const STEPS: usize = 120;
/// After so many different failures a family stops: more would say the same.
const FAILURES_MAX: usize = 5;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("differential")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn grammar(family: &str) -> Grammar {
    let path = folder().join("families").join(format!("{family}.txt"));
    Grammar::parse(&read(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn table() -> Vec<Deviation> {
    deviations::parse(&read(&folder().join("deviations.txt")))
        .expect("the table of deviations is well formed")
}

fn now_s() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs() as i64)
}

fn family(name: &str) {
    if std::env::var("PANTALA_FAMILY").is_ok_and(|only| only != name) {
        return;
    }
    let rounds = std::env::var("PANTALA_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(ROUNDS);
    let (ours, theirs, deviations) = (Server::pantala(), Server::redis(), table());
    let mut pair = Pair::new(&ours, &theirs, &deviations);
    let (family, common) = (grammar(name), grammar("common"));
    let seed = seed_of_run(name);
    let mut failures: Vec<String> = Vec::new();
    for round in 0..rounds {
        for proto in [Proto::Resp2, Proto::Resp3] {
            let mut rng = Rng::new(seed.wrapping_mul(1_000_003).wrapping_add(round as u64));
            let mut pool = Pool::new(now_s());
            let mut steps = sequence(&family, &common, STEPS, &mut rng, &mut pool);
            let state = || Step::new(vec![b"@state".to_vec()]);
            steps.push(Step::new(vec![b"RESET".to_vec()]));
            steps.extend([
                state(),
                Step::new(vec![b"SELECT".to_vec(), b"1".to_vec()]),
                state(),
            ]);
            find_differences(&mut pair, steps, proto, &mut failures);
        }
        if failures.len() >= FAILURES_MAX {
            break;
        }
    }
    println!(
        "{name}: {} replies compared, {} intended differences",
        pair.compared,
        pair.deviated.iter().sum::<usize>()
    );
    assert!(
        failures.is_empty(),
        "{} differences in {name} (PANTALA_SEED={seed}):\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// The reply in a line of an explanation, without the number of the step.
fn reply_only(line: &str) -> String {
    line.split_once(": ")
        .filter(|(start, _)| start.starts_with(" step"))
        .map_or(line, |(_, reply)| reply)
        .to_owned()
}

/// Runs a sequence. A difference is shrunk and kept, then the command that showed it is left out and the rest runs again: one fault must not hide
/// the others.
fn find_differences(
    pair: &mut Pair<'_>,
    mut steps: Vec<Step>,
    proto: Proto,
    failures: &mut Vec<String>,
) {
    let name = |step: &Step| step.args.first().map(|word| word.to_ascii_uppercase());
    for _ in 0..FAILURES_MAX {
        let Some(found) = pair.run(&steps, proto) else {
            return;
        };
        println!(
            "`{}`: ours {}, redis-server {}",
            steps[found.at].line(),
            found.ours.show(),
            found.theirs.show()
        );
        // What comes after the first difference cannot matter for it.
        let text = pair.explain(&steps[..=found.at], proto);
        let replies = |text: &str| {
            text.lines()
                .filter_map(|line| line.strip_prefix('#'))
                .map(reply_only)
                .collect::<Vec<_>>()
        };
        if !failures
            .iter()
            .any(|known| replies(known) == replies(&text))
        {
            failures.push(text);
        }
        let culprit = name(&steps[found.at]);
        steps.retain(|step| name(step) != culprit);
    }
}

#[test]
fn strings() {
    family("strings");
}

#[test]
fn bitmaps() {
    family("bitmaps");
}

#[test]
fn hyperloglog() {
    family("hyperloglog");
}

#[test]
fn keys() {
    family("keys");
}

#[test]
fn transactions() {
    family("transactions");
}

#[test]
fn connection() {
    family("connection");
}

#[test]
fn errors() {
    family("errors");
}

#[test]
fn regressions() {
    let (ours, theirs, deviations) = (Server::pantala(), Server::redis(), table());
    let mut pair = Pair::new(&ours, &theirs, &deviations);
    let folder = folder().join("regressions");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the folder of regressions")
        .filter_map(|e| e.ok().map(|e| e.path()))
        .collect();
    files.sort();
    let mut failures = Vec::new();
    for file in files {
        let mut steps = Vec::new();
        for line in read(&file)
            .lines()
            .filter(|l| !l.trim().is_empty() && !l.starts_with('#'))
        {
            let args = quote::split(line)
                .unwrap_or_else(|error| panic!("{}: {error}: {line}", file.display()));
            steps.push(Step::new(args));
        }
        for proto in [Proto::Resp2, Proto::Resp3] {
            if let Some(m) = pair.run(&steps, proto) {
                failures.push(format!(
                    "{} {proto:?} `{}`: ours {}, redis-server {}",
                    file.display(),
                    steps[m.at].line(),
                    m.ours.show(),
                    m.theirs.show()
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
