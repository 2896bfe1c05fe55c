//! The sections of `INFO` that are made from counters: `stats`, `commandstats`, `errorstats`, `latencystats`.

use super::View;
use super::lines::Lines;
use super::sampler::Reading;
use crate::pubsub::Kind;
use crate::registry::CommandId;
use crate::shared::Shared;
use crate::stats::{LATENCY_BUCKETS, bucket_end};
use crate::worker::clock;
use pantala_config::percentile_text;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn stats(view: &View<'_>, lines: &mut Lines) {
    let shared = view.shared;
    let commands = shared.stats.sum(|party| &party.executed);
    let read_bytes = shared.stats.sum(|party| &party.read_bytes);
    let rates = shared.server.sampler.rates(Reading {
        at: clock::now(),
        commands,
        read_bytes,
    });
    let keys = shared.store.stats();
    lines.field(
        "total_connections_received",
        shared.stats.sum(|party| &party.connections),
    );
    lines.field("total_commands_processed", commands);
    lines.field("instantaneous_ops_per_sec", rates.commands_per_s);
    lines.field("total_net_input_bytes", read_bytes);
    lines.field(
        "instantaneous_input_kbps",
        format_args!("{:.2}", rates.read_kib_per_s),
    );
    lines.field(
        "rejected_connections",
        shared.rejected_connections.load(Relaxed),
    );
    lines.field("sync_full", 0);
    lines.field("sync_partial_ok", 0);
    lines.field("sync_partial_err", 0);
    lines.field("expired_keys", keys.expired);
    lines.field("evicted_keys", keys.evicted);
    lines.field("evicted_clients", 0);
    lines.field("keyspace_hits", keys.hits);
    lines.field("keyspace_misses", keys.misses);
    for (name, kind) in [
        ("pubsub_channels", Kind::Channel),
        ("pubsub_patterns", Kind::Pattern),
        ("pubsubshard_channels", Kind::Shard),
    ] {
        lines.field(name, shared.pubsub.count(kind));
    }
    // Snapshots do not fork.
    lines.field("latest_fork_usec", 0);
    lines.field("total_forks", 0);
    lines.field("migrate_cached_sockets", 0);
    lines.field("slave_expires_tracked_keys", 0);
    lines.field("tracking_total_keys", 0);
    lines.field("tracking_total_items", 0);
    lines.field("tracking_total_prefixes", 0);
    lines.field("unexpected_error_replies", 0);
    lines.field(
        "total_error_replies",
        shared.stats.sum(|party| &party.errors),
    );
    lines.field(
        "client_query_buffer_limit_disconnections",
        shared.stats.sum(|party| &party.closed_for_query),
    );
    lines.field(
        "client_output_buffer_limit_disconnections",
        shared.stats.sum(|party| &party.closed_for_output),
    );
}

/// Sums of one command's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandSums {
    /// Executions.
    pub calls: u64,
    /// Time spent, in ns.
    pub nanos: u64,
    /// Refused before execution.
    pub rejected: u64,
    /// Answered with an error.
    pub failed: u64,
}

impl CommandSums {
    /// Over all threads.
    pub fn of(shared: &Shared, id: CommandId) -> Self {
        shared
            .stats
            .command(id)
            .fold(Self::default(), |sum, stats| Self {
                calls: sum.calls + stats.calls.load(Relaxed),
                nanos: sum.nanos + stats.nanos.load(Relaxed),
                rejected: sum.rejected + stats.rejected.load(Relaxed),
                failed: sum.failed + stats.failed.load(Relaxed),
            })
    }
}

pub(super) fn commands(view: &View<'_>, lines: &mut Lines) {
    for entry in view.shared.registry.entries() {
        let sums = CommandSums::of(view.shared, entry.id);
        if sums.calls == 0 && sums.rejected == 0 && sums.failed == 0 {
            continue;
        }
        let usec_per_call = if sums.calls == 0 {
            0.0
        } else {
            sums.nanos as f64 / 1_000.0 / sums.calls as f64
        };
        lines.field(
            format_args!("cmdstat_{}", entry.full_name),
            format_args!(
                "calls={},usec={},usec_per_call={usec_per_call:.2},rejected_calls={},failed_calls={}",
                sums.calls,
                sums.nanos / 1_000,
                sums.rejected,
                sums.failed
            ),
        );
    }
}

pub(super) fn errors(view: &View<'_>, lines: &mut Lines) {
    let codes = view
        .shared
        .error_codes
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    for (code, count) in codes.iter() {
        // A code may come from a client, and must not break the line.
        let code = code.replace(['#', ':', '\r', '\n'], "_");
        lines.field(
            format_args!("errorstat_{code}"),
            format_args!("count={count}"),
        );
    }
}

/// Executions of a command by duration, all threads together.
pub fn histogram(shared: &Shared, id: CommandId) -> Vec<u64> {
    let mut sums = vec![0; LATENCY_BUCKETS];
    for stats in shared.stats.command(id) {
        for (sum, count) in sums.iter_mut().zip(stats.latency().into_iter().flatten()) {
            *sum += u64::from(count);
        }
    }
    sums
}

/// The duration that `percentile` per cent of the executions do not exceed, in µs; the upper end of its bucket.
fn percentile_us(histogram: &[u64], percentile: f64) -> f64 {
    let all: u64 = histogram.iter().sum();
    let rank = ((percentile / 100.0 * all as f64).ceil() as u64).clamp(1, all.max(1));
    let mut seen = 0;
    let bucket = histogram.iter().position(|count| {
        seen += count;
        seen >= rank
    });
    bucket.map_or(0.0, |bucket| bucket_end(bucket) as f64 / 1_000.0)
}

pub(super) fn latencies(view: &View<'_>, lines: &mut Lines) {
    if !view.settings.latency_tracking {
        return;
    }
    for entry in view.shared.registry.entries() {
        let histogram = histogram(view.shared, entry.id);
        if histogram.iter().all(|&count| count == 0) {
            continue;
        }
        let percentiles = view.settings.latency_tracking_info_percentiles.0.iter();
        let text: Vec<String> = percentiles
            .map(|&percentile| {
                format!(
                    "p{}={:.3}",
                    percentile_text(percentile),
                    percentile_us(&histogram, percentile)
                )
            })
            .collect();
        lines.field(
            format_args!("latency_percentiles_usec_{}", entry.full_name),
            text.join(","),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::bucket_of;

    #[test]
    fn percentiles_are_ends_of_buckets() {
        let mut histogram = vec![0; LATENCY_BUCKETS];
        histogram[bucket_of(1_000)] = 98;
        histogram[bucket_of(50_000)] = 1;
        histogram[bucket_of(1_000_000)] = 1;
        let end = |nanos| bucket_end(bucket_of(nanos)) as f64 / 1_000.0;
        assert_eq!(percentile_us(&histogram, 0.0), end(1_000));
        assert_eq!(percentile_us(&histogram, 98.0), end(1_000));
        assert_eq!(percentile_us(&histogram, 99.0), end(50_000));
        assert_eq!(percentile_us(&histogram, 100.0), end(1_000_000));
        assert_eq!(percentile_us(&[0; LATENCY_BUCKETS], 50.0), 0.0);
    }
}
