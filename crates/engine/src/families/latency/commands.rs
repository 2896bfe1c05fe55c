//! `LATENCY LATEST HISTORY RESET GRAPH DOCTOR HISTOGRAM HELP`.

use super::graph;
use super::{LatencyLog, Spikes};
use crate::families::help;
use crate::families::info::statistics::{CommandSums, histogram};
use crate::registry::{Entry, SessionCommand};
use crate::turn::{Next, Turn};
use pantala_commands::Error;
use pantala_commands::spec::Spec;
use pantala_protocol::{Args, Reply};
use std::fmt::Write;

const LATENCY: Spec = Spec {
    since: "2.8.13",
    tips: &[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ],
    ..help::ADMIN
};

/// The family's commands.
pub const COMMANDS: &[SessionCommand] = &[SessionCommand::container(
    Spec {
        name: "latency",
        summary: "A container for latency diagnostics commands.",
        since: "2.8.13",
        ..help::CONTAINER
    },
    &[
        SessionCommand::new(
            Spec {
                name: "reset",
                arity: -2,
                summary: "Resets the latency data for one or more events.",
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                syntax: "[event [event ...]]",
                ..LATENCY
            },
            reset,
        ),
        SessionCommand::new(
            Spec {
                name: "graph",
                arity: 3,
                summary: "Returns a latency graph for an event.",
                syntax: "event",
                ..LATENCY
            },
            graph_of,
        ),
        SessionCommand::new(
            Spec {
                name: "doctor",
                summary: "Returns a human-readable latency analysis report.",
                ..LATENCY
            },
            doctor,
        ),
        SessionCommand::new(
            Spec {
                name: "history",
                arity: 3,
                summary: "Returns timestamp-latency samples for an event.",
                syntax: "event",
                ..LATENCY
            },
            history,
        ),
        SessionCommand::new(
            Spec {
                since: "2.8.13",
                ..help::HELP
            },
            help_text,
        ),
        SessionCommand::new(
            Spec {
                name: "latest",
                summary: "Returns the latest latency samples for all events.",
                ..LATENCY
            },
            latest,
        ),
        SessionCommand::new(
            Spec {
                name: "histogram",
                arity: -2,
                summary: "Returns the cumulative distribution of latencies of a subset or all commands.",
                since: "7.0.0",
                complexity: "O(N) where N is the number of commands with latency information being retrieved.",
                syntax: "[command [command ...]]",
                ..LATENCY
            },
            histograms,
        ),
    ],
)];

fn spikes_of(log: &LatencyLog, event: &[u8]) -> Option<(&'static str, Spikes)> {
    log.all()
        .into_iter()
        .find(|(name, _)| name.as_bytes() == event)
}

fn reset(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let events: Vec<&[u8]> = args.slice_from(2).iter().collect();
    let count = turn.shared.latency.reset(&events);
    turn.reply().integer(count as i64);
    Ok(Next::Continue)
}

fn graph_of(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let event = args.arg(2);
    let Some((name, spikes)) = spikes_of(&turn.shared.latency, event) else {
        return Err(Error::owned(format!(
            "ERR No samples available for event '{}'",
            String::from_utf8_lossy(event)
        )));
    };
    let text = graph::render(name, &spikes, turn.now_ms / 1_000);
    turn.reply().verbatim("txt", text.as_bytes());
    Ok(Next::Continue)
}

fn history(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let samples = spikes_of(&turn.shared.latency, args.arg(2))
        .map(|(_, spikes)| spikes.samples)
        .unwrap_or_default();
    let mut reply = turn.reply();
    reply.array(samples.len());
    for (at_s, took_ms) in samples {
        reply.array(2);
        reply.integer(at_s);
        reply.integer(took_ms as i64);
    }
    Ok(Next::Continue)
}

fn latest(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let events = turn.shared.latency.all();
    let newest: Vec<_> = events
        .iter()
        .filter_map(|(name, spikes)| Some((name, spikes.samples.back()?, spikes.max_ms)))
        .collect();
    let mut reply = turn.reply();
    reply.array(newest.len());
    for (name, (at_s, took_ms), max_ms) in newest {
        reply.array(4);
        reply.bulk_str(name);
        reply.integer(*at_s);
        reply.integer(*took_ms as i64);
        reply.integer(max_ms as i64);
    }
    Ok(Next::Continue)
}

fn doctor(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let text = report(
        turn.shared.settings().latency_monitor_threshold_ms,
        &turn.shared.latency.all().into_iter().collect::<Vec<_>>(),
        turn.now_ms / 1_000,
    );
    turn.reply().verbatim("txt", text.as_bytes());
    Ok(Next::Continue)
}

/// What the spikes say.
fn report(threshold_ms: u64, events: &[(&str, Spikes)], now_s: i64) -> String {
    if threshold_ms == 0 && events.is_empty() {
        return "Latency monitoring is off. \"CONFIG SET latency-monitor-threshold <milliseconds>\" turns it on; commands that take at least \
                that long are then recorded.\n"
            .to_owned();
    }
    if events.is_empty() {
        return format!("No latency spike of {threshold_ms} ms or more was observed.\n");
    }
    let mut text = String::new();
    for (nth, (name, spikes)) in events.iter().enumerate() {
        let count = spikes.samples.len().max(1) as u64;
        let mean_ms = spikes
            .samples
            .iter()
            .map(|(_, took_ms)| took_ms)
            .sum::<u64>()
            / count;
        let since_s = spikes
            .samples
            .front()
            .map_or(0, |(at_s, _)| (now_s - at_s).max(0));
        let last = spikes.samples.back().map_or(0, |(at_s, _)| now_s - at_s);
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{}. {name}: {} latency spikes (average {mean_ms} ms) within {since_s} seconds, the last {} ago. Worst all time event {} ms.",
            nth + 1,
            spikes.samples.len(),
            graph::age(last),
            spikes.max_ms
        );
    }
    text.push_str("\nAdvice:\n");
    if events.iter().any(|(name, _)| *name == "command") {
        text.push_str("- SLOWLOG GET shows which commands were slow. Long commands run on helper threads and delay only those who need the same keys.\n");
    }
    if events.iter().any(|(name, _)| *name == "fast-command") {
        text.push_str("- Commands that should be fast were slow: look for a busy or overcommitted machine, swapping, or a stopped process.\n");
    }
    text
}

fn histograms(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let shared = turn.shared;
    let registry = &shared.registry;
    let mut wanted: Vec<&Entry> = Vec::new();
    if args.len() == 2 {
        wanted.extend(registry.entries());
    }
    for name in args.slice_from(2) {
        let Some(entry) = registry.by_full_name(name) else {
            continue;
        };
        wanted.push(entry);
        // A container stands for its subcommands.
        wanted.extend(entry.subcommands.iter().map(|&id| registry.entry(id)));
    }
    let mut reply = turn.reply();
    let map = reply.map_deferred();
    let mut len = 0;
    for entry in wanted {
        let counts = histogram(shared, entry.id);
        if counts.iter().all(|&count| count == 0) {
            continue;
        }
        reply.bulk_str(&entry.full_name);
        reply.map(2);
        reply.bulk_str("calls");
        reply.integer(CommandSums::of(shared, entry.id).calls as i64);
        reply.bulk_str("histogram_usec");
        reply_distribution(&mut reply, &counts);
        len += 1;
    }
    reply.set_map_len(map, len);
    Ok(Next::Continue)
}

/// (Upper end in µs, executions up to there), at the powers of two from 1,024 ns on where the count grows, as Redis shows it.
fn distribution(counts: &[u64]) -> Vec<(u64, u64)> {
    let all: u64 = counts.iter().sum();
    let mut steps = Vec::new();
    let mut shown = 0;
    for power in 10.. {
        let below: u64 = counts.iter().take(power * 4).sum();
        if below > shown {
            // The upper end of the slot of Redis's histogram (two significant digits) that holds the power of two.
            let end_ns = (1_u64 << power) + (1 << (power - 7)) - 1;
            steps.push((end_ns / 1_000, below));
            shown = below;
        }
        if below == all {
            break;
        }
    }
    steps
}

fn reply_distribution(reply: &mut Reply<'_>, counts: &[u64]) {
    let steps = distribution(counts);
    reply.map(steps.len());
    for (end_us, count) in steps {
        reply.integer(end_us as i64);
        reply.integer(count as i64);
    }
}

fn help_text(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    help::reply(
        turn,
        args,
        &[
            "DOCTOR",
            "    Return a human readable latency analysis report.",
            "GRAPH <event>",
            "    Return an ASCII latency graph for the <event> class.",
            "HISTORY <event>",
            "    Return time-latency samples for the <event> class.",
            "LATEST",
            "    Return the latest latency samples for all events.",
            "RESET [<event> ...]",
            "    Reset latency data of one or more <event> classes.",
            "    (default: reset all data for all event classes)",
            "HISTOGRAM [COMMAND ...]",
            "    Return a cumulative distribution of latencies in the format of a histogram for the specified command names.",
            "    If no commands are specified then all histograms are replied.",
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{LATENCY_BUCKETS, bucket_of};

    #[test]
    fn distributions_have_the_ends_that_redis_shows() {
        let mut counts = vec![0; LATENCY_BUCKETS];
        counts[bucket_of(500)] = 2;
        counts[bucket_of(1_500)] = 3;
        counts[bucket_of(43_000)] = 1;
        counts[bucket_of(1_000_000)] = 1;
        assert_eq!(distribution(&counts), [(1, 2), (2, 5), (66, 6), (1_056, 7)]);
        assert_eq!(distribution(&[0; LATENCY_BUCKETS]), []);
        let mut last = vec![0; LATENCY_BUCKETS];
        last[LATENCY_BUCKETS - 1] = 1;
        assert_eq!(distribution(&last).len(), 1);
    }

    #[test]
    fn the_report_says_what_was_seen() {
        assert!(report(0, &[], 100).contains("is off"));
        assert!(report(50, &[], 100).contains("50 ms"));
        let spikes = Spikes {
            samples: [(40, 10), (90, 30)].into_iter().collect(),
            max_ms: 200,
        };
        let text = report(5, &[("command", spikes)], 100);
        assert!(text.starts_with("1. command: 2 latency spikes (average 20 ms) within 60 seconds, the last 10s ago. Worst all time event 200 ms.\n"));
        assert!(text.contains("SLOWLOG GET"));
    }
}
