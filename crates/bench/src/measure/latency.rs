//! Latencies, in nanoseconds, with three significant digits up to one minute.

use serde::Serialize;
use std::time::Duration;

/// Counts by latency in nanoseconds.
pub type Histogram = hdrhistogram::Histogram<u64>;

const HIGHEST_NS: u64 = 60_000_000_000;

/// An empty histogram.
pub fn histogram() -> Histogram {
    Histogram::new_with_bounds(1, HIGHEST_NS, 3).expect("these bounds are valid")
}

/// Notes `count` replies that took `latency`; what takes longer than a minute counts as a minute.
pub fn record(histogram: &mut Histogram, latency: Duration, count: u64) {
    histogram.saturating_record_n(latency.as_nanos().min(u128::from(HIGHEST_NS)) as u64, count);
}

/// The usual percentiles, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Percentiles {
    /// Half of the replies took at most this.
    pub p50_us: f64,
    /// 99 of 100.
    pub p99_us: f64,
    /// 999 of 1,000.
    pub p999_us: f64,
    /// The slowest.
    pub max_us: f64,
    /// The mean.
    pub mean_us: f64,
}

impl Percentiles {
    /// Reads them from a histogram in nanoseconds.
    pub fn of(histogram: &Histogram) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: histogram.max() as f64 / 1e3,
            mean_us: histogram.mean() / 1e3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_exact_to_three_digits() {
        let mut histogram = histogram();
        for us in 1..=1_000 {
            record(&mut histogram, Duration::from_micros(us), 1);
        }
        let got = Percentiles::of(&histogram);
        for (got, expected) in [
            (got.p50_us, 500.0),
            (got.p99_us, 990.0),
            (got.p999_us, 999.0),
            (got.max_us, 1_000.0),
            (got.mean_us, 500.5),
        ] {
            assert!((got / expected - 1.0).abs() < 2e-3, "{got} for {expected}");
        }
    }

    #[test]
    fn very_long_latencies_are_kept_at_the_top() {
        let mut histogram = histogram();
        record(&mut histogram, Duration::from_secs(3_600), 2);
        assert_eq!(histogram.len(), 2);
        assert!(Percentiles::of(&histogram).p50_us >= 59e6);
    }
}
