//! Reads the closing lines of test runners, so that all suites can be added up. A runner that failed without saying how many tests failed (it did
//! not build, it crashed) counts as one failure: a sum must never look better than the run was.

/// How many tests passed and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed, did not build, or did not end.
    pub failed: u64,
}

impl Counts {
    /// One check that has no tests of its own.
    pub fn one(passed: bool) -> Self {
        Self {
            passed: u64::from(passed),
            failed: u64::from(!passed),
        }
    }

    /// Adds another run.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// Adds one line of a runner's output to `counts`, if it is a closing line of `cargo test` or `cargo nextest`.
pub fn read_line(line: &str, counts: &mut Counts) {
    let line = without_colours(line);
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("test result: ") {
        // test result: ok. 5 passed; 0 failed; 0 ignored; ...
        let rest = rest.split_once(". ").map_or(rest, |(_, numbers)| numbers);
        counts.passed += number_before(rest, "passed");
        counts.failed += number_before(rest, "failed");
    } else if line.starts_with("Summary [") && line.contains("run:") {
        // Summary [ 0.1s] 5 tests run: 3 passed (1 slow), 1 failed, 1 timed out, 0 skipped
        let rest = line.split_once("run:").map_or("", |(_, numbers)| numbers);
        counts.passed += number_before(rest, "passed");
        counts.failed += number_before(rest, "failed")
            + number_before(rest, "timed out")
            + number_before(rest, "exec failed");
    }
}

/// What a finished run counts as, given its exit status.
pub fn settle(counts: Counts, success: bool) -> Counts {
    if !success && counts.failed == 0 {
        Counts {
            failed: 1,
            ..counts
        }
    } else {
        counts
    }
}

fn number_before(text: &str, word: &str) -> u64 {
    text.split([';', ',', '('])
        .filter_map(|part| part.trim().strip_suffix(word))
        .find_map(|number| number.trim().parse().ok())
        .unwrap_or(0)
}

fn without_colours(line: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for ch in line.chars() {
        match ch {
            '\u{1b}' => inside = true,
            'm' if inside => inside = false,
            _ if inside => {}
            _ => out.push(ch),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> (u64, u64) {
        let mut counts = Counts::default();
        lines.iter().for_each(|line| read_line(line, &mut counts));
        (counts.passed, counts.failed)
    }

    #[test]
    fn cargo_test() {
        let lines = [
            "running 5 tests",
            "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 6 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 41.40s",
        ];
        assert_eq!(read(&lines), (11, 2));
    }

    #[test]
    fn nextest() {
        assert_eq!(
            read(&["     Summary [   0.123s] 5 tests run: 5 passed, 0 skipped"]),
            (5, 0)
        );
        assert_eq!(
            read(&[
                "     Summary [   9.1s] 9 tests run: 6 passed (1 slow), 2 failed, 1 timed out, 0 skipped"
            ]),
            (6, 3)
        );
        assert_eq!(
            read(&[
                "\u{1b}[32;1m     Summary\u{1b}[0m [   0.1s] \u{1b}[1m3\u{1b}[0m tests run: \u{1b}[1m3\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, 0 skipped"
            ]),
            (3, 0)
        );
        // 3/5 tests run: when it stopped early
        assert_eq!(
            read(&["     Summary [   0.1s] 3/5 tests run: 2 passed, 1 failed, 0 skipped"]),
            (2, 1)
        );
    }

    #[test]
    fn a_run_that_failed_without_a_failed_test_is_one_failure() {
        assert_eq!(
            settle(
                Counts {
                    passed: 3,
                    failed: 0
                },
                false
            ),
            Counts {
                passed: 3,
                failed: 1
            }
        );
        assert_eq!(
            settle(
                Counts {
                    passed: 3,
                    failed: 2
                },
                false
            ),
            Counts {
                passed: 3,
                failed: 2
            }
        );
        assert_eq!(
            settle(
                Counts {
                    passed: 3,
                    failed: 0
                },
                true
            ),
            Counts {
                passed: 3,
                failed: 0
            }
        );
    }
}
