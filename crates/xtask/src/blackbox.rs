//! Runs the black-box suites one after the other: each starts servers and measures waits, so two at a time would disturb each other.

use std::path::Path;

use crate::steps::{Summary, cargo};
use crate::tools;

/// A run of one suite of the package `pantala-tests`.
struct Run {
    suite: &'static str,
    /// What the summary calls it.
    name: &'static str,
    /// Arguments for the server, beside those of the suite.
    args: &'static str,
    /// Rounds of the generators, where not their own default.
    rounds: Option<&'static str>,
}

const fn run_of(
    suite: &'static str,
    name: &'static str,
    args: &'static str,
    rounds: Option<&'static str>,
) -> Run {
    Run {
        suite,
        name,
        args,
        rounds,
    }
}

/// With four threads even a small machine shows what happens between threads.
const EPOLL: &str = "--io epoll --threads 4";

/// In the order in which they run: first with the defaults, then with the other driver and more threads.
const RUNS: &[Run] = &[
    run_of("differential", "differential", "", None),
    run_of("newer", "newer", "", None),
    run_of("memcached", "memcached", "", None),
    run_of("linear", "linear", "", None),
    run_of("clients", "clients", "", None),
    run_of("pubsub", "pubsub", "", None),
    run_of("robustness", "robustness", "", None),
    run_of("differential", "differential (epoll)", EPOLL, Some("8")),
    run_of("memcached", "memcached (epoll)", EPOLL, Some("20")),
    run_of("linear", "linear (epoll)", EPOLL, None),
    run_of("clients", "clients (epoll)", EPOLL, None),
    run_of("pubsub", "pubsub (epoll)", EPOLL, None),
    run_of("robustness", "robustness (epoll)", EPOLL, None),
];

/// Runs the suites whose name contains `filter`.
pub fn run(root: &Path, filter: Option<&str>, summary: &mut Summary) {
    let mut harness = cargo(root, &["test", "--package", "pantala-tests", "--lib"]);
    summary.command("harness", &mut harness);
    for run in RUNS
        .iter()
        .filter(|run| filter.is_none_or(|wanted| run.name.contains(wanted)))
    {
        let mut command = cargo(
            root,
            &[
                "test",
                "--package",
                "pantala-tests",
                "--test",
                run.suite,
                "--",
                "--test-threads=2",
            ],
        );
        command.env("PANTALA_TEST_TOOLS", tools::folder(root));
        if !run.args.is_empty() {
            command.env("PANTALA_ARGS", run.args);
        }
        if let Some(rounds) = run.rounds {
            command.env("PANTALA_ROUNDS", rounds);
        }
        summary.command(run.name, &mut command);
    }
}

/// `cargo xtask blackbox`.
pub fn build_and_run(root: &Path, filter: Option<&str>) -> Result<bool, String> {
    let mut summary = Summary::default();
    if std::env::var_os("PANTALA_BIN").is_some()
        || summary.command(
            "build",
            &mut cargo(root, &["build", "--release", "--package", "pantala-server"]),
        )
    {
        run(root, filter, &mut summary);
    }
    Ok(summary.close())
}
