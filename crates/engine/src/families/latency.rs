//! Latency events: the spikes that `latency-monitor-threshold` asks for, by kind.

mod commands;
mod graph;

pub use commands::COMMANDS;

use pantala_config::Settings;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Samples kept per event, as in Redis.
pub const SAMPLES_MAX: usize = 160;

/// The spikes of one kind of event.
#[derive(Clone, Debug, Default)]
pub struct Spikes {
    /// (Unix time in s, duration in ms), oldest first; at most one per second, the highest.
    pub samples: VecDeque<(i64, u64)>,
    /// Highest duration ever, in ms.
    pub max_ms: u64,
}

/// All spikes.
#[derive(Default)]
pub struct LatencyLog(Mutex<BTreeMap<&'static str, Spikes>>);

impl LatencyLog {
    /// Notes an event if it took at least the configured time.
    pub fn note(&self, settings: &Settings, event: &'static str, now_ms: i64, took_ms: u64) {
        let threshold_ms = settings.latency_monitor_threshold_ms;
        if threshold_ms == 0 || took_ms < threshold_ms {
            return;
        }
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let spikes = log.entry(event).or_default();
        spikes.max_ms = spikes.max_ms.max(took_ms);
        let at_s = now_ms / 1_000;
        match spikes.samples.back_mut() {
            Some((last_s, last_ms)) if *last_s == at_s => *last_ms = (*last_ms).max(took_ms),
            _ => {
                if spikes.samples.len() == SAMPLES_MAX {
                    spikes.samples.pop_front();
                }
                spikes.samples.push_back((at_s, took_ms));
            }
        }
    }

    /// All spikes by event.
    pub fn all(&self) -> BTreeMap<&'static str, Spikes> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Forgets the named events, all when none is named; says how many there were.
    pub fn reset(&self, events: &[&[u8]]) -> usize {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = log.len();
        log.retain(|name, _| {
            !events.is_empty()
                && !events
                    .iter()
                    .any(|event| event.eq_ignore_ascii_case(name.as_bytes()))
        });
        before - log.len()
    }
}
