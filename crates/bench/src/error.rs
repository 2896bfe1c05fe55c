//! Why a run gave no result.

use std::fmt;
use std::io;

/// Why a run gave no result.
#[derive(Debug)]
pub enum BenchError {
    /// An engine could not be started.
    Start {
        /// Its label.
        engine: String,
        /// What happened, with the end of what it printed.
        reason: String,
    },
    /// The server ended in the middle of a run.
    Died {
        /// How, and the end of what it printed.
        reason: String,
    },
    /// The system refused something.
    Io {
        /// What was being done.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The server completed nothing for a long time.
    Stalled {
        /// How long.
        seconds: u64,
    },
    /// The server answered with an error where none was expected.
    ServerSaid(String),
    /// The run is void: its hit rate or its data are not what they should be.
    Void(String),
    /// The options contradict each other or the machine.
    Options(String),
}

impl BenchError {
    /// The system refused `what`.
    pub fn io(what: impl Into<String>, source: io::Error) -> Self {
        Self::Io {
            what: what.into(),
            source,
        }
    }
}

impl From<io::Error> for BenchError {
    fn from(source: io::Error) -> Self {
        Self::io("system call", source)
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start { engine, reason } => write!(f, "cannot start {engine}: {reason}"),
            Self::Died { reason } => write!(f, "the server ended: {reason}"),
            Self::Io { what, source } => write!(f, "{what}: {source}"),
            Self::Stalled { seconds } => write!(f, "no reply for {seconds} seconds"),
            Self::ServerSaid(text) => write!(f, "the server answered: {text}"),
            Self::Void(reason) => write!(f, "no number: {reason}"),
            Self::Options(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for BenchError {}
