//! The slow log: commands that took longer than `slowlog-log-slower-than` to execute.

mod commands;

pub use commands::COMMANDS;

use crate::clients::Card;
use crate::registry::Entry;
use pantala_config::Settings;
use pantala_protocol::Args;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Arguments shown per entry and bytes shown per argument, as in Redis.
const ARGS_MAX: usize = 32;
const ARG_BYTES_MAX: usize = 128;

/// One slow command.
#[derive(Clone, Debug)]
pub struct SlowEntry {
    /// Grows by one with each entry while the process runs.
    pub id: u64,
    /// Unix time in seconds.
    pub at_s: i64,
    /// Run time in µs.
    pub took_us: u64,
    /// The command, shortened.
    pub args: Vec<Vec<u8>>,
    /// The client's address.
    pub peer: String,
    /// The client's name.
    pub name: String,
}

/// The log, newest first.
#[derive(Default)]
pub struct SlowLog(Mutex<(u64, VecDeque<SlowEntry>)>);

impl SlowLog {
    /// Notes a command if it was slow.
    pub fn note(
        &self,
        settings: &Settings,
        client: &Card,
        entry: &Entry,
        args: Args<'_>,
        now_ms: i64,
        took_us: u64,
    ) {
        let threshold_us = settings.slowlog_log_slower_than_us;
        if threshold_us < 0
            || took_us < threshold_us.unsigned_abs()
            || entry
                .spec
                .flags
                .contains(pantala_commands::Flags::SKIP_SLOWLOG)
        {
            return;
        }
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = log.0;
        log.0 += 1;
        let name = client
            .names
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .name
            .clone();
        log.1.push_front(SlowEntry {
            id,
            at_s: now_ms / 1_000,
            took_us,
            args: shortened(args),
            peer: client.peer.to_string(),
            name,
        });
        log.1.truncate(settings.slowlog_max_len as usize);
    }

    /// The newest entries, at most `count`.
    pub fn newest(&self, count: usize) -> Vec<SlowEntry> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .1
            .iter()
            .take(count)
            .cloned()
            .collect()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .1
            .len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets all entries.
    pub fn reset(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .1
            .clear();
    }
}

fn shortened(args: Args<'_>) -> Vec<Vec<u8>> {
    let shown = if args.len() > ARGS_MAX {
        ARGS_MAX - 1
    } else {
        args.len()
    };
    let mut list: Vec<Vec<u8>> = args
        .iter()
        .take(shown)
        .map(|arg| {
            if arg.len() > ARG_BYTES_MAX {
                let mut short = arg[..ARG_BYTES_MAX].to_vec();
                short.extend_from_slice(
                    format!("... ({} more bytes)", arg.len() - ARG_BYTES_MAX).as_bytes(),
                );
                short
            } else {
                arg.to_vec()
            }
        })
        .collect();
    if args.len() > shown {
        list.push(format!("... ({} more arguments)", args.len() - shown).into_bytes());
    }
    list
}
