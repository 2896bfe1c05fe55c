//! Project tasks: `cargo xtask test` runs every test on a fresh machine, `tidy` holds what a reviewer would otherwise repeat, `compat` writes the
//! command matrix. It must never need anything beyond a Rust toolchain to start, and never change what it did not create, except for Debian
//! packages that the tests need and that `test` says it installs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod blackbox;
mod compat;
mod counts;
mod fuzz;
mod memcached_tests;
mod steps;
mod tidy;
mod tools;

const HELP: &str = "\
cargo xtask <task>

  test               install what the tests need, build, run every test, end with `N passed, N failed`
  check              fmt, clippy and tidy only
  tools              install what the tests need and nothing else
  blackbox [FILTER]  build the server and run the black-box suites (or those whose name contains FILTER)
  fuzz [SECONDS]     run each fuzz target (needs a nightly toolchain), 20 seconds each by default
  memcached-tests DIR [FILE]
                     run memcached's own test files (DIR: its sources) against a plain memcached and this server
  tidy [--update]    check the house rules; --update lets the ratchet shrink, --accept also lets it grow
  compat [--check]   write COMPAT.md from the command table of the built server, or check that it is up to date
";

/// The folder of the whole project.
fn project_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("this crate lives two levels below the project")
        .to_path_buf()
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let root = project_dir();
    let result = match words.as_slice() {
        ["test"] => steps::test(&root),
        ["check"] => steps::check(&root),
        ["tools"] => tools::install(&root).map(|_| true),
        ["blackbox"] => blackbox::build_and_run(&root, None),
        ["blackbox", filter] => blackbox::build_and_run(&root, Some(filter)),
        ["fuzz"] => fuzz::run(&root, fuzz::SECONDS),
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds) => fuzz::run(&root, seconds),
            Err(_) => Err(format!("expected a number of seconds, got `{seconds}`")),
        },
        ["tidy"] => tidy::run(&root, tidy::Mode::Check),
        ["tidy", "--update"] => tidy::run(&root, tidy::Mode::Shrink),
        ["tidy", "--accept"] => tidy::run(&root, tidy::Mode::Accept),
        ["compat"] => compat::write(&root).map(|()| true),
        ["compat", "--check"] => compat::check(&root).map(|()| true),
        ["memcached-tests", sources] => memcached_tests::run(&root, sources, None),
        ["memcached-tests", sources, file] => memcached_tests::run(&root, sources, Some(file)),
        ["help" | "--help" | "-h"] | [] => {
            print!("{HELP}");
            Ok(true)
        }
        _ => Err(format!("unknown task `{}`\n\n{HELP}", words.join(" "))),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
