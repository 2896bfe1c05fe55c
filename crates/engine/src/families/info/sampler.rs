//! Rates per second for `INFO`, from two readings of the counters. It costs nothing while nobody asks: a rate covers the time since
//! an earlier `INFO`, at least a tenth of a second and, for those who ask often, about a second.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One reading.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// When.
    pub at: Instant,
    /// Commands executed so far.
    pub commands: u64,
    /// Bytes read so far.
    pub read_bytes: u64,
}

/// Rates over a stretch of time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Rates {
    /// Commands per second.
    pub commands_per_s: u64,
    /// KiB read per second.
    pub read_kib_per_s: f64,
}

#[derive(Default)]
struct Readings {
    before: Option<Reading>,
    last: Option<Reading>,
}

/// The last readings.
#[derive(Default)]
pub struct Sampler(Mutex<Readings>);

/// Below this the counters have moved too little to tell a rate.
const SPAN_MIN: Duration = Duration::from_millis(100);
/// Readings are replaced when they are older than this.
const SPAN_LONG: Duration = Duration::from_secs(1);

impl Sampler {
    /// The rates up to `now`.
    pub fn rates(&self, now: Reading) -> Rates {
        let mut readings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let old_enough =
            |reading: &Reading| now.at.saturating_duration_since(reading.at) >= SPAN_MIN;
        let base = readings
            .last
            .filter(old_enough)
            .or(readings.before.filter(old_enough));
        if readings
            .last
            .is_none_or(|last| now.at.saturating_duration_since(last.at) >= SPAN_LONG)
        {
            readings.before = readings.last;
            readings.last = Some(now);
        }
        base.map_or_else(Rates::default, |base| rates_between(base, now))
    }

    /// Forgets the readings, because the counters begin anew.
    pub fn reset(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Readings::default();
    }
}

fn rates_between(base: Reading, now: Reading) -> Rates {
    let seconds = now.at.saturating_duration_since(base.at).as_secs_f64();
    let per_second = |before: u64, after: u64| after.saturating_sub(before) as f64 / seconds;
    Rates {
        commands_per_s: per_second(base.commands, now.commands).round() as u64,
        read_kib_per_s: per_second(base.read_bytes, now.read_bytes) / 1_024.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_covers_the_time_since_the_last_reading() {
        let start = Instant::now();
        let reading = |ms: u64, commands: u64| Reading {
            at: start + Duration::from_millis(ms),
            commands,
            read_bytes: commands * 1_024,
        };
        let sampler = Sampler::default();
        assert_eq!(
            sampler.rates(reading(0, 100)),
            Rates::default(),
            "one reading is no rate"
        );
        assert_eq!(
            sampler.rates(reading(50, 150)),
            Rates::default(),
            "too short"
        );
        assert_eq!(sampler.rates(reading(500, 600)).commands_per_s, 1_000);
        let rates = sampler.rates(reading(2_000, 4_100));
        assert_eq!(
            rates,
            Rates {
                commands_per_s: 2_000,
                read_kib_per_s: 2_000.0
            }
        );
        // The reading at 2,000 ms is too young, so the one before it serves.
        assert_eq!(sampler.rates(reading(2_050, 4_200)).commands_per_s, 2_000);
        sampler.reset();
        assert_eq!(sampler.rates(reading(3_000, 0)), Rates::default());
    }
}
