//! The exceptions of the house rules, each with its reason. A path ends in `/` for a folder.

/// An exception.
#[derive(Debug, Clone, Copy)]
pub struct Home {
    /// A file, or a folder with `/` at its end.
    pub path: &'static str,
    /// Why it may.
    pub reason: &'static str,
}

impl Home {
    /// True if `path` is this file or lies in this folder.
    pub fn covers(&self, path: &str) -> bool {
        if self.path.ends_with('/') {
            path.starts_with(self.path)
        } else {
            path == self.path
        }
    }
}

const fn home(path: &'static str, reason: &'static str) -> Home {
    Home { path, reason }
}

/// A call that belongs to a few places only.
#[derive(Debug)]
pub struct Ban {
    /// The words of the call, as they stand in code.
    pub words: &'static [&'static str],
    /// What is wrong elsewhere.
    pub message: &'static str,
    /// Where it may stand.
    pub homes: &'static [Home],
}

/// Calls with one home.
pub const BANS: &[Ban] = &[
    Ban {
        words: &["Instant::now", "SystemTime::now"],
        message: "reads a clock: take the time from the caller (one reading per batch, and tests that one seed repeats)",
        homes: &[
            home("crates/bench/", "measures time: that is what it is for"),
            home("crates/xtask/", "times its steps"),
            home("tests/", "bounds its waits from outside the server"),
        ],
    },
    Ban {
        words: &[
            "rand::",
            "thread_rng",
            "getrandom",
            "RandomState",
            "fastrand",
        ],
        message: "draws randomness: take a seed from the caller",
        homes: &[],
    },
    Ban {
        words: &[
            "mpsc::channel",
            "unbounded_channel",
            "unbounded()",
            "SegQueue",
        ],
        message: "makes a queue without a bound: bound it, or give it a home in the tidy tables with the reason why it stays small",
        homes: &[],
    },
];

/// Modules that may use `unsafe`.
pub const UNSAFE: &[Home] = &[];

/// Large tables: exempt from the size limits by name.
pub const TABLES: &[Home] = &[];
