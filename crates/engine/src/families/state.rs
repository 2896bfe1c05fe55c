//! What the server commands keep between calls.

use super::info::sampler::Sampler;
use super::later::Later;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Mutex, PoisonError};

/// State of the server commands, shared by all workers.
pub struct ServerState {
    /// Replies that are due later.
    pub later: Later,
    /// Rates for `INFO stats`.
    pub sampler: Sampler,
    replication_id: Mutex<String>,
}

impl Default for ServerState {
    fn default() -> Self {
        Self {
            later: Later::default(),
            sampler: Sampler::default(),
            replication_id: Mutex::new(new_replication_id()),
        }
    }
}

impl ServerState {
    /// 40 hex digits that name this history of the data.
    pub fn replication_id(&self) -> String {
        self.replication_id
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Begins a new history (`DEBUG CHANGE-REPL-ID`).
    pub fn change_replication_id(&self) {
        *self
            .replication_id
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = new_replication_id();
    }
}

fn new_replication_id() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}{:08x}", random(), random(), random() as u32)
}

/// Fills a buffer with random bytes that nobody can predict, for passwords. Errors: the system has none to give.
pub fn fill_randomly(bytes: &mut [u8]) -> Result<(), getrandom::Error> {
    getrandom::fill(bytes)
}
