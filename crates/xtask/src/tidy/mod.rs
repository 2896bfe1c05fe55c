//! House rules that a reviewer would otherwise repeat, checked by plain text scanning (no compiler, no parser library, so it runs in a second):
//! see [`rules`] for each. A rule must never pass a file that it could not read.

mod layers;
mod ratchet;
mod rules;
mod scan;
mod tables;

use std::fs;
use std::path::Path;
use std::process::Command;

use ratchet::Ratchet;
use scan::Source;

/// What to do with `tidy.ratchet`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Only check.
    Check,
    /// Write smaller sizes down and drop what is no exception any more.
    Shrink,
    /// Also take new exceptions and larger sizes: a decision for a person to make.
    Accept,
}

/// A broken rule: where and what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path from the project's folder.
    pub path: String,
    /// Line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong and what to do.
    pub message: String,
}

/// Checks the whole project; false if a rule is broken.
pub fn run(root: &Path, mode: Mode) -> Result<bool, String> {
    let mut findings = Vec::new();
    let mut sizes = Vec::new();
    let files = files(root)?;
    for path in &files {
        let bytes = fs::read(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        findings.extend(rules::any_text(path, &text));
        if path.ends_with(".rs") {
            let source = Source::new(&text);
            findings.extend(rules::rust(path, &text, &source));
            sizes.extend(rules::sizes(path, &text, &source));
        }
        if path.ends_with("Cargo.toml") {
            findings.extend(layers::check(path, &text));
        }
    }
    findings.extend(rules::tables_are_used(&files));
    let file = root.join(ratchet::FILE);
    let before = Ratchet::parse(&fs::read_to_string(&file).unwrap_or_default())?;
    if mode == Mode::Check {
        findings.extend(before.check(&sizes));
    } else {
        let after = before.updated(&sizes, mode == Mode::Accept);
        fs::write(&file, after.to_text()).map_err(|error| format!("{}: {error}", ratchet::FILE))?;
        findings.extend(after.check(&sizes));
    }
    findings.sort();
    for finding in &findings {
        println!("{}:{}: {}", finding.path, finding.line, finding.message);
    }
    println!("tidy: {} files, {} findings", files.len(), findings.len());
    Ok(findings.is_empty())
}

/// The files of the project: what git has and would take (so that a new file is checked before it is committed).
fn files(root: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git ls-files: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "git ls-files: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    let names = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut names: Vec<String> = names
        .split('\0')
        .filter(|n| !n.is_empty() && root.join(n).is_file())
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        Err("git ls-files found nothing".into())
    } else {
        Ok(names)
    }
}
