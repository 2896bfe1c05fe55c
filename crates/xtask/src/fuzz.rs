//! Runs each fuzz target for a short bounded time. cargo-fuzz needs a nightly toolchain; where there is none the step says so and is left out,
//! since the project itself builds on stable.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::steps::{Summary, cargo, works};
use crate::tools;

/// Seconds per target in `cargo xtask test`.
pub const SECONDS: u32 = 20;

/// The version that is installed into the private tools folder when there is none.
const CARGO_FUZZ: &str = "0.13.1";

/// `cargo xtask fuzz`.
pub fn run(root: &Path, seconds: u32) -> Result<bool, String> {
    let mut summary = Summary::default();
    targets(root, seconds, &mut summary)?;
    Ok(summary.close())
}

/// The step of `cargo xtask test`.
pub fn step(root: &Path, summary: &mut Summary) {
    if let Err(reason) = targets(root, SECONDS, summary) {
        println!("\n=== fuzz: left out: {reason}");
    }
}

/// Runs every target; an error is a reason why none can run here.
fn targets(root: &Path, seconds: u32, summary: &mut Summary) -> Result<(), String> {
    let folder = root.join("fuzz").join("fuzz_targets");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .map_err(|_| "there are no fuzz targets".to_owned())?
        .filter_map(|entry| {
            entry
                .ok()?
                .file_name()
                .into_string()
                .ok()?
                .strip_suffix(".rs")
                .map(str::to_owned)
        })
        .collect();
    names.sort();
    if !works("rustup", &["run", "nightly", "rustc", "--version"]) {
        return Err("no nightly toolchain".into());
    }
    let home = tools::folder(root).join("cargo");
    let binary = home.join("bin").join("cargo-fuzz");
    if !binary.is_file() {
        let mut install = cargo(
            root,
            &[
                "install",
                "cargo-fuzz",
                "--version",
                CARGO_FUZZ,
                "--locked",
                "--root",
            ],
        );
        install.arg(&home);
        if !summary.command("cargo-fuzz", &mut install) {
            return Ok(());
        }
    }
    for name in names {
        let mut command = Command::new("rustup");
        command
            .args(["run", "nightly"])
            .arg(&binary)
            .args(["fuzz", "run", &name, "--"]);
        command.arg(format!("-max_total_time={seconds}")).args([
            "-rss_limit_mb=2048",
            "-timeout=10",
            "-print_final_stats=0",
        ]);
        // This task runs under cargo, which names its own toolchain to everything below it.
        command
            .current_dir(root)
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("CARGO")
            .env_remove("CARGO_TARGET_DIR");
        summary.command(&format!("fuzz {name}"), &mut command);
    }
    Ok(())
}
