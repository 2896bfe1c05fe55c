//! Runs the black-box suites one after the other: each starts servers and measures waits, so two at a time would disturb each other.

use std::path::Path;

use crate::steps::{Summary, cargo};
use crate::tools;

/// The suites of the package `pantala-tests`, in the order in which they run.
const SUITES: &[&str] = &[
    "differential",
    "newer",
    "memcached",
    "linear",
    "clients",
    "robustness",
];

/// Runs the suites whose name contains `filter`.
pub fn run(root: &Path, filter: Option<&str>, summary: &mut Summary) {
    let mut harness = cargo(root, &["test", "--package", "pantala-tests", "--lib"]);
    summary.command("harness", &mut harness);
    for suite in SUITES
        .iter()
        .filter(|name| filter.is_none_or(|wanted| name.contains(wanted)))
    {
        let mut command = cargo(
            root,
            &[
                "test",
                "--package",
                "pantala-tests",
                "--test",
                suite,
                "--",
                "--test-threads=2",
            ],
        );
        command.env("PANTALA_TEST_TOOLS", tools::folder(root));
        summary.command(suite, &mut command);
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
