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
            home(
                "crates/reactor/src/io.rs",
                "the clock of a worker: read once per turn, handed on from there",
            ),
            home(
                "crates/reactor/src/acceptor.rs",
                "limits how often it complains in the log; no worker's clock runs on its thread",
            ),
            home(
                "crates/reactor/src/epoll.rs",
                "how long the kernel may wait counts from now, not from the start of the turn",
            ),
            home(
                "crates/reactor/src/uring/",
                "how long the kernel may wait counts from now; the bounds of the probe and of the end",
            ),
            home(
                "crates/borrow/src/sync.rs",
                "the one clock of spins and claims; models under loom and shuttle replace it",
            ),
            home(
                "crates/engine/src/worker/clock.rs",
                "the wall clock of the engine, for threads without a reactor",
            ),
            home(
                "crates/engine/src/helpers.rs",
                "measures a long command on a thread without a reactor",
            ),
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
        homes: &[
            home(
                "crates/store/src/hash.rs",
                "the secret of the process that keeps shards and slots unpredictable; a fixed seed repeats a run",
            ),
            home(
                "crates/engine/src/shared.rs",
                "secrets and the run id, drawn once at the start",
            ),
            home(
                "crates/engine/src/families/state.rs",
                "a replication id must differ between processes",
            ),
        ],
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
pub const UNSAFE: &[Home] = &[
    home(
        "crates/reactor/src/sys.rs",
        "system calls that have no safe wrapper",
    ),
    home("crates/reactor/src/epoll.rs", "system calls of epoll"),
    home(
        "crates/reactor/src/uring/",
        "the ring and its buffers are memory shared with the kernel",
    ),
    home(
        "crates/borrow/src/cell.rs",
        "a content is reached only through a borrow of its word",
    ),
    home(
        "crates/borrow/src/orders.rs",
        "models of the cell under loom",
    ),
    home(
        "crates/store/src/entry/",
        "one allocation per entry, laid out by hand",
    ),
    home("crates/store/src/heap/", "the slab heaps"),
    home(
        "crates/store/src/table/",
        "lines of tagged 48-bit pointers, prefetched in groups",
    ),
    home(
        "crates/store/src/tree/",
        "nodes of at most 4 KiB, shared with snapshots by epoch",
    ),
];

/// Large tables: exempt from the size limits by name.
pub const TABLES: &[Home] = &[];
