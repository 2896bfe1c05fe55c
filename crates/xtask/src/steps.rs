//! The order of `cargo xtask test`, and how each step is run and summed up: output goes through as it comes, with a time limit, and the closing
//! lines of the test runners are counted.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::counts::{Counts, read_line, settle};
use crate::{blackbox, compat, fuzz, tidy, tools};

/// One step's name, result and duration.
#[derive(Debug)]
struct Done {
    name: String,
    counts: Counts,
    took: Duration,
    note: String,
}

/// The steps so far.
#[derive(Debug, Default)]
pub struct Summary {
    done: Vec<Done>,
}

impl Summary {
    /// Runs a command as one step; its closing lines are counted, or it counts as one check when it has none.
    pub fn command(&mut self, name: &str, command: &mut Command) -> bool {
        println!("\n=== {name}");
        let start = Instant::now();
        let (counts, note) = match counted(command) {
            Ok((counts, success)) if counts == Counts::default() => {
                (Counts::one(success), String::new())
            }
            Ok((counts, success)) => (settle(counts, success), String::new()),
            Err(error) => (Counts::one(false), error),
        };
        self.push(name, counts, start, note)
    }

    /// Runs a function as one check.
    pub fn check(&mut self, name: &str, work: impl FnOnce() -> Result<(), String>) -> bool {
        println!("\n=== {name}");
        let start = Instant::now();
        let result = work();
        if let Err(error) = &result {
            println!("{error}");
        }
        self.push(
            name,
            Counts::one(result.is_ok()),
            start,
            result.err().unwrap_or_default(),
        )
    }

    fn push(&mut self, name: &str, counts: Counts, start: Instant, note: String) -> bool {
        let note = note.lines().next().unwrap_or_default().to_owned();
        self.done.push(Done {
            name: name.to_owned(),
            counts,
            took: start.elapsed(),
            note,
        });
        counts.failed == 0
    }

    /// Prints the table and the closing line; true if nothing failed.
    pub fn close(&self) -> bool {
        let mut all = Counts::default();
        println!("\n=== summary");
        for step in &self.done {
            all.add(step.counts);
            let mark = if step.counts.failed == 0 {
                "ok  "
            } else {
                "FAIL"
            };
            println!(
                "{mark} {:28} {:5} passed {:3} failed {:7.1} s  {}",
                step.name,
                step.counts.passed,
                step.counts.failed,
                step.took.as_secs_f64(),
                step.note
            );
        }
        println!("{} passed, {} failed", all.passed, all.failed);
        all.failed == 0
    }
}

/// A `cargo` command in the project's folder.
pub fn cargo(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).args(args);
    // This binary is itself run by cargo, whose variables describe this crate and not the one to be built.
    command
        .env_remove("CARGO_MANIFEST_DIR")
        .env_remove("CARGO_MANIFEST_PATH");
    command
}

/// Runs a command, passes its output through, and counts. True if it succeeded.
fn counted(command: &mut Command) -> Result<(Counts, bool), String> {
    // The runners write their closing line to either stream: both go through one shell pipe into ours.
    let program = command.get_program().to_owned();
    let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg("exec \"$0\" \"$@\" 2>&1")
        .arg(program)
        .args(args);
    if let Some(dir) = command.get_current_dir() {
        shell.current_dir(dir);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let mut child = shell
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start: {error}"))?;
    let mut counts = Counts::default();
    if let Some(output) = child.stdout.take() {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|got| got > 0) {
            let text = String::from_utf8_lossy(&line);
            print!("{text}");
            read_line(&text, &mut counts);
            line.clear();
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    Ok((counts, status.success()))
}

/// True if `program args` runs and succeeds; its output is dropped.
pub fn works(program: &str, args: &[&str]) -> bool {
    let status = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn lints(root: &Path, summary: &mut Summary) {
    if works("cargo", &["fmt", "--version"]) {
        summary.command("fmt", &mut cargo(root, &["fmt", "--all", "--check"]));
    } else {
        println!("fmt: no rustfmt in this toolchain, skipped");
    }
    if works("cargo", &["clippy", "--version"]) {
        summary.command(
            "clippy",
            &mut cargo(
                root,
                &[
                    "clippy",
                    "--workspace",
                    "--all-targets",
                    "--",
                    "-D",
                    "warnings",
                ],
            ),
        );
    } else {
        println!("clippy: no clippy in this toolchain, skipped");
    }
    summary.check("tidy", || {
        if tidy::run(root, tidy::Mode::Check)? {
            Ok(())
        } else {
            Err("see above".into())
        }
    });
}

/// The models of memory orderings, which need the code built with loom's atomics.
fn models(root: &Path, summary: &mut Summary) {
    let args = [
        "test",
        "--package",
        "pantala-borrow",
        "--features",
        "loom-model",
        "--lib",
    ];
    summary.command("loom models", &mut cargo(root, &args));
}

/// The crate with most of the `unsafe` rooms under a checker of memory: Miri where the toolchain has it, else AddressSanitizer.
fn memory(root: &Path, summary: &mut Summary) {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let nightly = |args: &[&str]| {
        let mut command = Command::new("rustup");
        command
            .current_dir(root)
            .args(["run", "nightly", "cargo"])
            .args(args)
            .env_remove("CARGO");
        command
    };
    if works("rustup", &["run", "nightly", "cargo", "miri", "--version"]) {
        let mut command = nightly(&["miri", "test", "--package", "pantala-store", "--lib"]);
        command.env("MIRIFLAGS", "-Zmiri-disable-isolation");
        summary.command("memory (Miri)", &mut command);
    } else if works("rustup", &["run", "nightly", "rustc", "--version"]) {
        let package = ["test", "--package", "pantala-store"];
        let what = ["--target", TARGET, "--lib", "--tests"];
        let mut command = nightly(&[&package[..], &what].concat());
        command.env("RUSTFLAGS", "-Zsanitizer=address");
        summary.command("memory (AddressSanitizer)", &mut command);
    } else {
        println!("memory: neither Miri nor a nightly toolchain with AddressSanitizer, skipped");
    }
}

/// `cargo xtask check`.
pub fn check(root: &Path) -> Result<bool, String> {
    let mut summary = Summary::default();
    lints(root, &mut summary);
    Ok(summary.close())
}

/// `cargo xtask test`.
pub fn test(root: &Path) -> Result<bool, String> {
    let mut summary = Summary::default();
    summary.check("tools", || tools::install(root).map(|_| ()));
    let built = summary.command(
        "build",
        &mut cargo(root, &["build", "--release", "--package", "pantala-server"]),
    );
    lints(root, &mut summary);
    let workspace = ["--workspace", "--exclude", "pantala-tests"];
    if works("cargo", &["nextest", "--version"]) {
        let args = [&["nextest", "run", "--no-fail-fast"][..], &workspace].concat();
        summary.command("workspace tests", &mut cargo(root, &args));
        let args = [&["test", "--doc", "--no-fail-fast"][..], &workspace].concat();
        summary.command("documentation tests", &mut cargo(root, &args));
    } else {
        let args = [&["test", "--no-fail-fast"][..], &workspace].concat();
        summary.command("workspace tests", &mut cargo(root, &args));
    }
    models(root, &mut summary);
    memory(root, &mut summary);
    if built {
        summary.check("COMPAT.md", || compat::check(root));
    }
    blackbox::run(root, None, &mut summary);
    fuzz::step(root, &mut summary);
    Ok(summary.close())
}
