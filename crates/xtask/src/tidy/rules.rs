//! The rules themselves, each a function from text to findings.

use super::Finding;
use super::ratchet::Size;
use super::scan::Source;
use super::tables::{BANS, Home, TABLES, UNSAFE};

/// Soft limit for a file, in lines.
const FILE_LINES: usize = 600;
/// Soft limit for a function, in lines.
const FUNCTION_LINES: usize = 70;
/// Within how many lines a file must say what it is for.
const OPENING_LINES: usize = 12;
/// How far above an `unsafe` its `SAFETY:` comment may start.
const SAFETY_REACH: usize = 12;

/// Notes to oneself that must not be committed, put together here so that this file does not contain them.
fn notes() -> [String; 3] {
    [
        ["TO", "DO"].concat(),
        ["FIX", "ME"].concat(),
        ["XX", "X"].concat(),
    ]
}

/// Beginnings of paths that exist on one machine only.
fn machine_paths() -> [String; 4] {
    [
        ["/wo", "rk/"].concat(),
        ["/ro", "ot/"].concat(),
        ["/ho", "me/"].concat(),
        ["/Us", "ers/"].concat(),
    ]
}

/// Rules for every text file.
pub fn any_text(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (notes, paths) = (notes(), machine_paths());
    for (at, line) in text.lines().enumerate() {
        let mut found = |message: String| {
            findings.push(Finding {
                path: path.to_owned(),
                line: at + 1,
                message,
            })
        };
        for note in &notes {
            if has_word(line, note) {
                found(format!(
                    "{note} in a committed file: do it, or write an issue"
                ));
            }
        }
        for machine in &paths {
            if line.match_indices(machine.as_str()).any(|(column, _)| {
                !line[..column]
                    .ends_with(|c: char| c.is_alphanumeric() || c == '.' || c == '_' || c == '}')
            }) {
                found(format!(
                    "a path of one machine ({machine}…): others do not have it"
                ));
            }
        }
    }
    findings
}

/// Rules for Rust files.
pub fn rust(path: &str, text: &str, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Attributes and a word of licence may come first.
    if !text
        .lines()
        .take(OPENING_LINES)
        .any(|line| line.starts_with("//!"))
    {
        findings.push(Finding {
            path: path.to_owned(),
            line: 1,
            message: "a file opens with `//!`: what it is for and what it must never do".into(),
        });
    }
    bans(path, source, &mut findings);
    unsafe_code(path, source, &mut findings);
    findings
}

fn bans(path: &str, source: &Source, findings: &mut Vec<Finding>) {
    // Tests, examples and benchmarks beside the sources are not part of the server.
    let outside = ["/tests/", "/benches/", "/examples/"]
        .iter()
        .any(|part| path.contains(part))
        || path.starts_with("fuzz/");
    if outside {
        return;
    }
    for ban in BANS
        .iter()
        .filter(|ban| !ban.homes.iter().any(|home| home.covers(path)))
    {
        for (at, line) in source
            .code
            .iter()
            .enumerate()
            .filter(|(at, _)| !source.test[*at])
        {
            if let Some(word) = ban.words.iter().find(|word| starts_word(line, word)) {
                findings.push(Finding {
                    path: path.to_owned(),
                    line: at + 1,
                    message: format!("`{word}` {}", ban.message),
                });
            }
        }
    }
}

fn unsafe_code(path: &str, source: &Source, findings: &mut Vec<Finding>) {
    let allowed = UNSAFE.iter().any(|home| home.covers(path));
    for (at, line) in source.code.iter().enumerate() {
        if !has_word(line, "unsafe") {
            continue;
        }
        let mut found = |message: &str| {
            findings.push(Finding {
                path: path.to_owned(),
                line: at + 1,
                message: message.into(),
            })
        };
        if !allowed {
            found("`unsafe` outside the modules that may use it (crates/xtask/src/tidy/tables.rs)");
        }
        let near = &source.comments[at.saturating_sub(SAFETY_REACH)..=at];
        // The contract of a private `unsafe fn` may stand in the module's own words; the blocks inside it need their reasons all the same.
        let private = line.trim_start().starts_with("unsafe fn");
        if !private
            && !near
                .iter()
                .any(|comment| comment.contains("SAFETY:") || comment.contains("# Safety"))
        {
            found("`unsafe` without a `SAFETY:` reason");
        }
    }
}

/// Files and functions above the soft limits.
pub fn sizes(path: &str, text: &str, source: &Source) -> Vec<Size> {
    if TABLES.iter().any(|home| home.covers(path)) {
        return Vec::new();
    }
    let mut sizes = Vec::new();
    let lines = text.lines().count();
    if lines > FILE_LINES {
        sizes.push(Size {
            what: path.to_owned(),
            line: 1,
            lines,
            limit: FILE_LINES,
        });
    }
    // A test is often one long table of cases; its file keeps to the limit all the same.
    let of_tests =
        |line: usize| source.test[line] || path.contains("/tests/") || path.ends_with("/tests.rs");
    for function in source
        .functions()
        .into_iter()
        .filter(|f| !of_tests(f.first))
    {
        let lines = function.last + 1 - function.first;
        let what = format!("{path}:{}", function.name);
        if lines > FUNCTION_LINES {
            match sizes.iter_mut().find(|s: &&mut Size| s.what == what) {
                // Methods of one name in one file share an entry: the longest counts.
                Some(size) => size.lines = size.lines.max(lines),
                None => sizes.push(Size {
                    what,
                    line: function.first + 1,
                    lines,
                    limit: FUNCTION_LINES,
                }),
            }
        }
    }
    sizes
}

/// Every exception must still be needed by something that exists, and have a reason.
pub fn tables_are_used(files: &[String]) -> Vec<Finding> {
    let homes = BANS
        .iter()
        .flat_map(|ban| ban.homes)
        .chain(UNSAFE)
        .chain(TABLES);
    let stale =
        |home: &&Home| home.reason.is_empty() || !files.iter().any(|path| home.covers(path));
    let message = |home: &Home| {
        format!(
            "the exception for {} names nothing that exists, or has no reason",
            home.path
        )
    };
    homes
        .filter(stale)
        .map(|home| Finding {
            path: "crates/xtask/src/tidy/tables.rs".into(),
            line: 0,
            message: message(home),
        })
        .collect()
}

fn is_word_part(ch: Option<char>) -> bool {
    ch.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        !is_word_part(line[..at].chars().next_back())
            && !is_word_part(line[at + word.len()..].chars().next())
    })
}

fn starts_word(line: &str, word: &str) -> bool {
    line.match_indices(word)
        .any(|(at, _)| !is_word_part(line[..at].chars().next_back()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust_findings(text: &str) -> Vec<String> {
        let text = format!("//! For a test.\n{text}");
        rust("crates/store/src/a.rs", &text, &Source::new(&text))
            .into_iter()
            .map(|f| f.message)
            .collect()
    }

    #[test]
    fn notes_and_machine_paths() {
        let [note, ..] = notes();
        let [work, ..] = machine_paths();
        assert_eq!(any_text("a", &format!("// {note}: later\n")).len(), 1);
        assert_eq!(any_text("a", &format!("{note}S and MY{note}\n")).len(), 0);
        assert_eq!(any_text("a", &format!("see {work}x\n")).len(), 1);
        assert_eq!(
            any_text("a", &format!("net{work}x and {{dir}}{work}\n")).len(),
            0
        );
    }

    #[test]
    fn clocks_randomness_and_queues() {
        assert_eq!(
            rust_findings("fn f() { let t = std::time::Instant::now(); }").len(),
            1
        );
        assert_eq!(rust_findings("fn f() { rand::random() }").len(), 1);
        assert_eq!(
            rust_findings("fn f() { operand::x(); mpsc::sync_channel(1); }").len(),
            0
        );
        assert_eq!(rust_findings("// Instant::now\nconst A: &str = \"Instant::now\";\n#[cfg(test)]\nmod tests { fn f() { Instant::now(); } }").len(), 0);
    }

    #[test]
    fn unsafe_needs_a_room_and_a_reason() {
        assert_eq!(rust_findings("#![allow(unsafe_code)]").len(), 0);
        assert_eq!(rust_findings("fn f() { unsafe { g() } }").len(), 2);
        assert_eq!(
            rust_findings("// SAFETY: g is fine.\nfn f() { unsafe { g() } }").len(),
            1
        );
    }

    #[test]
    fn a_file_opens_with_what_it_is_for() {
        let text = "#![allow(x)]\n\nfn f() {}\n";
        assert_eq!(rust("a.rs", text, &Source::new(text)).len(), 1);
    }

    #[test]
    fn sizes_above_the_limits() {
        let long = format!("fn f() {{\n{}}}\n", "    g();\n".repeat(FUNCTION_LINES));
        let found = sizes("a.rs", &long, &Source::new(&long));
        assert_eq!(
            found
                .iter()
                .map(|s| (s.what.as_str(), s.lines))
                .collect::<Vec<_>>(),
            [("a.rs:f", FUNCTION_LINES + 2)]
        );
        let file = "\n".repeat(FILE_LINES + 1);
        assert_eq!(sizes("a.rs", &file, &Source::new(&file)).len(), 1);
    }
}
