//! `MEMORY DOCTOR STATS PURGE MALLOC-STATS`. (`MEMORY USAGE` is about one key and stands with the commands on keys.)

use super::help;
use super::info::human_bytes;
use super::info::memory::{MemoryUse, excess, ratio};
use crate::registry::SessionCommand;
use crate::turn::{Next, Turn};
use pantala_commands::Error;
use pantala_commands::spec::{Flags, Spec};
use pantala_protocol::{Args, Reply};
use std::fmt::Write;

const DIAGNOSTIC: Spec = Spec {
    flags: Flags::empty(),
    tips: &[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ],
    since: "4.0.0",
    ..help::ADMIN
};

/// The family's commands.
pub const COMMANDS: &[SessionCommand] = &[SessionCommand::container(
    Spec {
        name: "memory",
        summary: "A container for memory diagnostics commands.",
        since: "4.0.0",
        ..help::CONTAINER
    },
    &[
        SessionCommand::new(
            Spec {
                name: "purge",
                summary: "Asks the allocator to release memory.",
                complexity: "Depends on how much memory is allocated, could be slow",
                tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
                ..DIAGNOSTIC
            },
            purge,
        ),
        SessionCommand::new(
            Spec {
                name: "malloc-stats",
                summary: "Returns the allocator statistics.",
                complexity: "Depends on how much memory is allocated, could be slow",
                ..DIAGNOSTIC
            },
            allocator_statistics,
        ),
        SessionCommand::new(
            Spec {
                name: "doctor",
                summary: "Outputs a memory problems report.",
                ..DIAGNOSTIC
            },
            doctor,
        ),
        SessionCommand::new(
            Spec {
                name: "stats",
                summary: "Returns details about memory usage.",
                ..DIAGNOSTIC
            },
            statistics,
        ),
        SessionCommand::new(
            Spec {
                since: "4.0.0",
                ..help::HELP
            },
            help_text,
        ),
    ],
)];

/// Compaction and the return of free pages run by themselves whenever pages are free or sparse, so there is nothing that only this
/// command would do; it begins a round of both at once.
fn purge(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    /// A shard takes at most about 50 µs.
    const BITES_MAX: usize = 64;
    if turn.held.is_none() {
        let (shared, party) = (turn.shared, turn.party);
        for _ in 0..BITES_MAX.min(shared.store.shards()) {
            let progress = shared.store.bite(turn.now_ms, false, &mut |space| {
                crate::invoke::removed(shared, party, space)
            });
            if !progress.busy {
                break;
            }
        }
    }
    turn.ok()
}

fn allocator_statistics(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let memory = MemoryUse::of(turn.shared);
    let mut text = String::new();
    for (name, bytes) in [
        ("entries", memory.entries),
        ("tables", memory.tables),
        ("nodes of large values", memory.trees),
        ("in use", memory.heap_used()),
        ("held from the system", memory.heap_resident),
        ("buffers of connections", memory.buffers),
        ("resident", memory.resident),
    ] {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name}: {bytes} bytes ({})", human_bytes(bytes));
    }
    turn.reply().verbatim("txt", text.as_bytes());
    Ok(Next::Continue)
}

fn statistics(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let memory = MemoryUse::of(turn.shared);
    let store = &turn.shared.store;
    let databases: Vec<(u16, u64)> = (0..store.databases())
        .map(|db| (db, store.dbsize(db)))
        .filter(|(_, keys)| *keys != 0)
        .collect();
    reply_statistics(&mut turn.reply(), &memory, &databases);
    Ok(Next::Continue)
}

/// The tables of a database, as its share of all keys: tables are counted for all databases together.
fn table_share(memory: &MemoryUse, keys: u64) -> i64 {
    (ratio(keys, memory.keys) * memory.tables as f64) as i64
}

/// One value of the statistics.
enum Value {
    Integer(i64),
    Double(f64),
}

/// What stands before the databases.
fn statistics_of_all(memory: &MemoryUse) -> [(&'static str, Value); 7] {
    [
        ("peak.allocated", Value::Integer(memory.peak as i64)),
        ("total.allocated", Value::Integer(memory.used as i64)),
        ("replication.backlog", Value::Integer(0)),
        ("clients.slaves", Value::Integer(0)),
        ("clients.normal", Value::Integer(memory.buffers as i64)),
        ("cluster.links", Value::Integer(0)),
        ("aof.buffer", Value::Integer(0)),
    ]
}

/// What stands behind the databases.
fn statistics_of_data(memory: &MemoryUse) -> [(&'static str, Value); 15] {
    let bytes = |bytes: u64| Value::Integer(bytes as i64);
    let beyond = |larger, smaller| Value::Integer(excess(larger, smaller));
    let times = |larger, smaller| Value::Double(ratio(larger, smaller));
    let per_cent = |part, whole| Value::Double(ratio(part, whole) * 100.0);
    let (held, used, resident) = (memory.heap_resident, memory.heap_used(), memory.resident);
    [
        ("overhead.total", bytes(memory.overhead())),
        ("keys.count", bytes(memory.keys)),
        (
            "keys.bytes-per-key",
            bytes(memory.used.checked_div(memory.keys).unwrap_or(0)),
        ),
        ("dataset.bytes", bytes(memory.dataset())),
        (
            "dataset.percentage",
            per_cent(memory.dataset(), memory.used),
        ),
        ("peak.percentage", per_cent(memory.used, memory.peak)),
        ("allocator.allocated", bytes(used)),
        ("allocator.active", bytes(held)),
        ("allocator.resident", bytes(held)),
        ("allocator-fragmentation.ratio", times(held, used)),
        ("allocator-fragmentation.bytes", beyond(held, used)),
        ("rss-overhead.ratio", times(resident, held)),
        ("rss-overhead.bytes", beyond(resident, held)),
        ("fragmentation", times(resident, memory.used)),
        ("fragmentation.bytes", beyond(resident, memory.used)),
    ]
}

fn reply_values(reply: &mut Reply<'_>, values: &[(&str, Value)]) {
    for (name, value) in values {
        reply.bulk_str(name);
        match value {
            Value::Integer(value) => reply.integer(*value),
            Value::Double(value) => reply.double(*value),
        }
    }
}

fn reply_statistics(reply: &mut Reply<'_>, memory: &MemoryUse, databases: &[(u16, u64)]) {
    let (before, behind) = (statistics_of_all(memory), statistics_of_data(memory));
    reply.map(before.len() + databases.len() + behind.len());
    reply_values(reply, &before);
    for &(db, keys) in databases {
        reply.bulk_str(&format!("db.{db}"));
        let tables = [
            (
                "overhead.hashtable.main",
                Value::Integer(table_share(memory, keys)),
            ),
            // The time of expiry stands in the entry.
            ("overhead.hashtable.expires", Value::Integer(0)),
        ];
        reply.map(tables.len());
        reply_values(reply, &tables);
    }
    reply_values(reply, &behind);
}

fn doctor(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let memory = MemoryUse::of(turn.shared);
    let limit = turn
        .settings
        .maxmemory
        .bytes(turn.shared.facts.machine_bytes);
    let report = diagnosis(&memory, limit, turn.shared.clients.count());
    turn.reply().verbatim("txt", report.as_bytes());
    Ok(Next::Continue)
}

/// What is unusual about the memory.
fn diagnosis(memory: &MemoryUse, limit: u64, clients: usize) -> String {
    /// Below this every ratio is dominated by fixed costs.
    const SMALL: u64 = 5 << 20;
    /// Buffers above this per client are unusual …
    const CLIENT_BYTES: u64 = 200 * 1_024;
    /// … but what the workers hold in stock for all clients is not.
    const BUFFERS_STOCK: u64 = 16 << 20;
    if memory.used < SMALL {
        return format!(
            "Only {} are in use: too little to look for problems.\n",
            human_bytes(memory.used)
        );
    }
    let mut findings = Vec::new();
    if ratio(memory.peak, memory.used) > 1.5 {
        findings.push(format!(
            "Peak memory: at most {} were in use, now {}. If resident memory stays high, MEMORY PURGE returns free pages sooner.",
            human_bytes(memory.peak),
            human_bytes(memory.used)
        ));
    }
    if ratio(memory.heap_resident, memory.heap_used()) > 1.4
        && excess(memory.heap_resident, memory.heap_used()) > 10 << 20
    {
        findings.push(format!(
            "Fragmentation: the store holds {} for {} of data and tables. Compaction should lower this while the server runs.",
            human_bytes(memory.heap_resident),
            human_bytes(memory.heap_used())
        ));
    }
    if memory.buffers > BUFFERS_STOCK && memory.buffers / (clients.max(1) as u64) > CLIENT_BYTES {
        findings.push(format!(
            "Client buffers: {} for {clients} clients. CLIENT LIST shows whose (qbuf, omem); client-output-buffer-limit bounds them.",
            human_bytes(memory.buffers)
        ));
    }
    if limit != 0 && memory.used > limit / 10 * 9 {
        findings.push(format!(
            "Limit: {} of {} (maxmemory) are in use; keys are evicted, or writes refused, as maxmemory-policy says.",
            human_bytes(memory.used),
            human_bytes(limit)
        ));
    }
    if findings.is_empty() {
        return "No memory problem was found.\n".to_owned();
    }
    findings
        .iter()
        .map(|finding| format!("* {finding}\n"))
        .collect()
}

fn help_text(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    help::reply(
        turn,
        args,
        &[
            "DOCTOR",
            "    Return memory problems reports.",
            "MALLOC-STATS",
            "    Return internal statistics report from the memory allocator.",
            "PURGE",
            "    Attempt to purge dirty pages for reclamation by the allocator.",
            "STATS",
            "    Return information about the memory usage of the server.",
            "USAGE <key> [SAMPLES <count>]",
            "    Return memory in bytes used by <key> and its value. Nested values are",
            "    sampled up to <count> times (default: 5, 0 means sample all).",
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use pantala_protocol::Proto;

    const MIB: u64 = 1 << 20;

    fn plain() -> MemoryUse {
        MemoryUse {
            used: 100 * MIB,
            peak: 110 * MIB,
            resident: 120 * MIB,
            tables: 10 * MIB,
            entries: 89 * MIB,
            trees: 0,
            heap_resident: 105 * MIB,
            buffers: MIB,
            keys: 1_000_000,
        }
    }

    #[test]
    fn the_report_names_what_is_unusual_and_nothing_else() {
        assert_eq!(diagnosis(&plain(), 0, 50), "No memory problem was found.\n");
        assert!(
            diagnosis(
                &MemoryUse {
                    used: MIB,
                    ..plain()
                },
                0,
                50
            )
            .contains("too little")
        );
        assert!(
            diagnosis(
                &MemoryUse {
                    peak: 300 * MIB,
                    ..plain()
                },
                0,
                50
            )
            .starts_with("* Peak memory")
        );
        assert!(
            diagnosis(
                &MemoryUse {
                    heap_resident: 200 * MIB,
                    ..plain()
                },
                0,
                50
            )
            .starts_with("* Fragmentation")
        );
        assert!(
            diagnosis(
                &MemoryUse {
                    buffers: 50 * MIB,
                    ..plain()
                },
                0,
                50
            )
            .starts_with("* Client buffers")
        );
        assert!(diagnosis(&plain(), 101 * MIB, 50).starts_with("* Limit"));
    }

    #[test]
    fn the_map_has_as_many_fields_as_it_says() {
        let mut out = Vec::new();
        reply_statistics(
            &mut Reply::new(&mut out, Proto::Resp2),
            &plain(),
            &[(0, 600_000), (3, 400_000)],
        );
        let text = String::from_utf8(out).expect("names are ASCII");
        // Names at the outer level end in a value each; the inner maps have two fields and so four elements.
        let elements = text
            .split("\r\n")
            .filter(|line| line.starts_with(['$', ':', '*']))
            .count()
            - 1;
        let doubles = [
            "dataset.percentage",
            "peak.percentage",
            "allocator-fragmentation.ratio",
            "rss-overhead.ratio",
            "fragmentation",
        ];
        assert!(doubles.iter().all(|name| text.contains(name)));
        assert_eq!(elements, 2 * 24 + 2 * 4);
        assert!(text.starts_with("*48\r\n"), "{text}");
    }
}
