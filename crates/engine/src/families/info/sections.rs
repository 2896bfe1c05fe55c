//! The sections of `INFO` that are neither memory nor counters nor keys.

use super::lines::Lines;
use super::{View, process};
use crate::clients::Card;
use crate::session::Session;
use crate::worker::clock;
use std::sync::atomic::Ordering::Relaxed;

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) fn server(view: &View<'_>, lines: &mut Lines) {
    let (facts, settings) = (&view.shared.facts, view.settings);
    let uptime_s = (view.now_ms - facts.started_ms).max(0) / 1_000;
    let (driver, reason) = view.shared.driver();
    lines.field("redis_version", &settings.redis_version);
    lines.field("redis_git_sha1", "00000000");
    lines.field("redis_git_dirty", 0);
    lines.field("redis_mode", "standalone");
    lines.field("os", process::os_name());
    lines.field("arch_bits", usize::BITS);
    lines.field("monotonic_clock", "POSIX clock_gettime");
    lines.field("multiplexing_api", driver);
    lines.field("process_id", std::process::id());
    lines.field("process_supervised", "no");
    lines.field("run_id", &facts.run_id);
    lines.field("tcp_port", settings.port);
    lines.field("server_time_usec", clock::unix_us());
    lines.field("uptime_in_seconds", uptime_s);
    lines.field("uptime_in_days", uptime_s / 86_400);
    // Redis's clock of 24 bits for the idle times of keys.
    lines.field("lru_clock", (view.now_ms / 1_000) & 0xff_ffff);
    lines.field("executable", facts.executable.display());
    lines.field(
        "config_file",
        facts
            .config_file
            .as_deref()
            .map(|path| path.display().to_string())
            .unwrap_or_default(),
    );
    lines.field("pantala_version", VERSION);
    lines.field("io_driver", driver);
    lines.field("io_driver_reason", reason);
    lines.field("worker_threads", facts.workers);
}

pub(super) fn clients(view: &View<'_>, lines: &mut Lines) {
    let cards = view.shared.clients.all();
    let most = |bytes: fn(&Card) -> usize| cards.iter().map(|card| bytes(card)).max().unwrap_or(0);
    lines.field("connected_clients", cards.len());
    lines.field("cluster_connections", 0);
    lines.field("maxclients", view.settings.maxclients);
    lines.field(
        "client_recent_max_input_buffer",
        most(|card| card.query_bytes.load(Relaxed)),
    );
    lines.field(
        "client_recent_max_output_buffer",
        most(|card| card.output_bytes.load(Relaxed)),
    );
    lines.field(
        "blocked_clients",
        cards
            .iter()
            .filter(|card| card.waiting.load(Relaxed))
            .count(),
    );
    lines.field("tracking_clients", 0);
    lines.field("clients_in_timeout_table", 0);
}

pub(super) fn persistence(view: &View<'_>, lines: &mut Lines) {
    lines.field("loading", 0);
    lines.field("async_loading", 0);
    lines.field(
        "rdb_changes_since_last_save",
        view.shared.stats.sum(|party| &party.changes),
    );
    lines.field("rdb_bgsave_in_progress", 0);
    // As in Redis, a server that has never saved counts from its start.
    lines.field("rdb_last_save_time", view.shared.facts.started_ms / 1_000);
    lines.field("rdb_last_bgsave_status", "ok");
    lines.field("rdb_last_bgsave_time_sec", -1);
    lines.field("rdb_current_bgsave_time_sec", -1);
    lines.field("rdb_saves", 0);
    lines.field("aof_enabled", 0);
    lines.field("aof_rewrite_in_progress", 0);
    lines.field("aof_rewrite_scheduled", 0);
    lines.field("aof_last_rewrite_time_sec", -1);
    lines.field("aof_current_rewrite_time_sec", -1);
    lines.field("aof_last_bgrewrite_status", "ok");
    lines.field("aof_last_write_status", "ok");
}

pub(super) fn replication(view: &View<'_>, lines: &mut Lines) {
    lines.field("role", "master");
    lines.field("connected_slaves", 0);
    lines.field("master_failover_state", "no-failover");
    lines.field("master_replid", view.shared.server.replication_id());
    lines.field("master_replid2", "0".repeat(40));
    lines.field("master_repl_offset", 0);
    lines.field("second_repl_offset", -1);
    lines.field("repl_backlog_active", 0);
    lines.field("repl_backlog_first_byte_offset", 0);
    lines.field("repl_backlog_histlen", 0);
}

pub(super) fn cpu(_: &View<'_>, lines: &mut Lines) {
    let time = process::cpu_time();
    lines.field(
        "used_cpu_sys",
        format_args!("{:.6}", time.system.as_secs_f64()),
    );
    lines.field(
        "used_cpu_user",
        format_args!("{:.6}", time.user.as_secs_f64()),
    );
    // There are no child processes.
    lines.field("used_cpu_sys_children", "0.000000");
    lines.field("used_cpu_user_children", "0.000000");
}

/// What Redis has no name for.
pub(super) fn own(view: &View<'_>, lines: &mut Lines) {
    let shared = view.shared;
    let heap = shared.store.heap_use();
    lines.field("helper_threads", shared.helpers.threads());
    lines.field("shards", shared.store.shards());
    lines.field(
        "commands_set_aside",
        shared.stats.sum(|party| &party.set_aside),
    );
    lines.field("commands_helped", shared.stats.sum(|party| &party.helped));
    // What each connection costs here besides its buffers, which an idle one gives back, and besides the kernel's share.
    lines.field("connection_bytes", size_of::<Session>() + size_of::<Card>());
    lines.field(
        "buffer_bytes",
        shared.stats.sum(|party| &party.buffer_bytes),
    );
    lines.field("entries_bytes", heap.entries_bytes);
    lines.field("tables_bytes", heap.tables_bytes);
    lines.field("trees_bytes", heap.trees_bytes);
    lines.field("heap_resident_bytes", heap.resident_bytes);
}
