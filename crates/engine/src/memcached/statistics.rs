//! `stats`: what is really counted, under memcached's names. What has no counterpart here (background threads of memcached,
//! its segments of the list of items) is left out rather than shown as zero.

use super::counters::Sums;
use super::held::{DB, Env};
use nix::sys::resource::{UsageWho, getrusage};
use pantala_config::{EvictionPolicy, Settings};
use pantala_protocol::memcached::{Tokens, write_line, write_stat};
use std::fmt::Display;
use std::sync::atomic::Ordering::Relaxed;

/// The version that clients see. They read it as a memcached version to know what the server understands.
pub(super) const VERSION: &str = concat!("1.6.18-pantala-", env!("CARGO_PKG_VERSION"));

/// `stats`, with what follows it.
pub(super) fn answer(env: Env<'_>, settings: &Settings, mut words: Tokens<'_>, out: &mut Vec<u8>) {
    let topic = words.next();
    let first = words.next();
    match (topic, first) {
        (None, _) => general(env, settings, out),
        (Some(b"reset"), _) => {
            env.shared.memcached.reset();
            return write_line(out, "RESET");
        }
        (Some(b"settings"), _) => show_settings(env, settings, out),
        (Some(b"items"), _) => items(env, out),
        (Some(b"slabs"), _) => slabs(env, out),
        (Some(b"sizes"), _) => write_stat(out, "sizes_status", "disabled"),
        (Some(b"conns"), _) => connections(env, out),
        (Some(b"cachedump"), None) => return write_line(out, "CLIENT_ERROR bad command line"),
        (Some(b"cachedump"), Some(_)) if words.next().is_none() => {
            return write_line(out, "CLIENT_ERROR bad command line");
        }
        (Some(b"cachedump"), Some(_)) => {
            return write_line(out, "CLIENT_ERROR stats cachedump not allowed");
        }
        (Some(b"detail"), Some(word @ (b"on" | b"off"))) => {
            env.shared.memcached.prefixes.turn(word == b"on");
            return write_line(out, "OK");
        }
        (Some(b"detail"), Some(b"dump")) => env.shared.memcached.prefixes.write(out),
        (Some(b"detail"), _) => {
            return write_line(out, "CLIENT_ERROR usage: stats detail on|off|dump");
        }
        _ => return write_line(out, "ERROR"),
    }
    write_line(out, "END");
}

/// The memory limit in bytes; 0 for none.
fn limit_bytes(env: Env<'_>, settings: &Settings) -> u64 {
    settings.maxmemory.bytes(env.shared.facts.machine_bytes)
}

fn general(env: Env<'_>, settings: &Settings, out: &mut Vec<u8>) {
    let shared = env.shared;
    let sums: Sums = shared.memcached.sums();
    let totals = shared.store.stats();
    let clients = shared.clients.all();
    let connected = clients.iter().filter(|card| card.memcached).count();
    let started_s = shared.facts.started_ms / 1000;
    let mut put = |name: &str, value: &dyn Display| write_stat(out, name, value);
    put("pid", &std::process::id());
    put("uptime", &(env.now_ms / 1000 - started_s).max(0));
    put("time", &(env.now_ms / 1000));
    put("version", &VERSION);
    put("pointer_size", &usize::BITS);
    if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
        let user = usage.user_time();
        let system = usage.system_time();
        let text = |s: i64, us: i64| format!("{s}.{us:06}");
        put("rusage_user", &text(user.tv_sec(), user.tv_usec()));
        put("rusage_system", &text(system.tv_sec(), system.tv_usec()));
    }
    put("max_connections", &settings.maxclients);
    put("curr_connections", &connected);
    put("total_connections", &sums.connections);
    put(
        "rejected_connections",
        &shared.rejected_connections.load(Relaxed),
    );
    counted(&sums, &mut put);
    put("limit_maxbytes", &limit_bytes(env, settings));
    put("accepting_conns", &1);
    put("threads", &shared.facts.workers);
    put("bytes", &shared.used_memory());
    put("curr_items", &shared.store.dbsize(DB));
    put("total_items", &sums.total_items);
    put("evictions", &totals.evicted);
    put("reclaimed", &totals.expired);
}

/// Commands by kind and outcome.
fn counted(sums: &Sums, put: &mut dyn FnMut(&str, &dyn Display)) {
    for (name, value) in [
        ("cmd_get", sums.cmd_get),
        ("cmd_set", sums.cmd_set),
        ("cmd_flush", sums.cmd_flush),
        ("cmd_touch", sums.cmd_touch),
        ("cmd_meta", sums.cmd_meta),
        ("get_hits", sums.get_hits),
        ("get_misses", sums.get_misses),
        ("get_expired", sums.get_expired),
        // A flush removes everything at once, so no retrieval ever meets a flushed item.
        ("get_flushed", 0),
        ("delete_misses", sums.delete_misses),
        ("delete_hits", sums.delete_hits),
        ("incr_misses", sums.incr_misses),
        ("incr_hits", sums.incr_hits),
        ("decr_misses", sums.decr_misses),
        ("decr_hits", sums.decr_hits),
        ("cas_misses", sums.cas_misses),
        ("cas_hits", sums.cas_hits),
        ("cas_badval", sums.cas_badval),
        ("touch_hits", sums.touch_hits),
        ("touch_misses", sums.touch_misses),
        ("store_too_large", sums.store_too_large),
        ("store_no_memory", sums.store_no_memory),
        ("bytes_read", sums.bytes_read),
        ("bytes_written", sums.bytes_written),
    ] {
        put(name, &value);
    }
}

fn show_settings(env: Env<'_>, settings: &Settings, out: &mut Vec<u8>) {
    let yes_no = |on: bool| if on { "yes" } else { "no" };
    let evicts = settings.maxmemory_policy != EvictionPolicy::NoEviction;
    let socket = if settings.unixsocket.is_empty() {
        "NULL"
    } else {
        &settings.unixsocket
    };
    let mut put = |name: &str, value: &dyn Display| write_stat(out, name, value);
    put("maxbytes", &limit_bytes(env, settings));
    put("maxconns", &settings.maxclients);
    put("tcpport", &settings.memcached_port);
    put("udpport", &0);
    put("evictions", &if evicts { "on" } else { "off" });
    put("domain_socket", &socket);
    put("num_threads", &env.shared.facts.workers);
    put("cas_enabled", &yes_no(true));
    put("tcp_backlog", &settings.tcp_backlog);
    put("binding_protocol", &"ascii");
    put("auth_enabled_sasl", &yes_no(false));
    put("auth_enabled_ascii", &yes_no(false));
    put("item_size_max", &settings.memcached_item_size_max_bytes);
    put("flush_enabled", &yes_no(true));
    put("dump_enabled", &yes_no(false));
    put("shutdown_command", &yes_no(false));
    put(
        "detail_enabled",
        &yes_no(env.shared.memcached.prefixes.is_on()),
    );
    put("idle_timeout", &settings.timeout_seconds);
}

/// The heap by classes of sizes. A class here is a range of the heap's own, finer classes (`chunk_size` is its largest), and a page
/// is a slab of one to eight pages of the system, so the chunks per page are an average. The heap holds the keys of both protocols and
/// of all databases. A value above 4 KiB stands in several chunks, as one above 512 KiB does in memcached.
fn slabs(env: Env<'_>, out: &mut Vec<u8>) {
    let store = env.store();
    let mut active = 0;
    for class in store.size_classes() {
        if class.chunks == 0 {
            continue;
        }
        active += 1;
        let mut put = |name: &str, value: u64| {
            write_stat(out, &format!("{}:{name}", class.number), value);
        };
        put("chunk_size", u64::from(class.chunk_bytes));
        put("chunks_per_page", class.chunks / class.slabs.max(1));
        put("total_pages", class.slabs);
        put("total_chunks", class.chunks);
        put("used_chunks", class.used_chunks);
        put(
            "free_chunks",
            class.chunks.saturating_sub(class.used_chunks),
        );
    }
    write_stat(out, "active_slabs", active);
    write_stat(out, "total_malloced", store.resident_estimate());
}

/// What the classes hold. A key whose value stands in several chunks counts (`number`, `mem_requested`) where its head stands, and
/// in the class of its whole size once it is gone (`evicted`, `reclaimed`).
fn items(env: Env<'_>, out: &mut Vec<u8>) {
    for class in env.store().size_classes() {
        if class.entries == 0 && class.evicted == 0 && class.expired == 0 {
            continue;
        }
        for (name, value) in [
            ("number", class.entries),
            ("mem_requested", class.entries_bytes),
            ("evicted", class.evicted),
            ("reclaimed", class.expired),
        ] {
            write_stat(out, &format!("items:{}:{name}", class.number), value);
        }
    }
}

/// One group of lines per client of this protocol.
fn connections(env: Env<'_>, out: &mut Vec<u8>) {
    for card in env.shared.clients.all() {
        if !card.memcached {
            continue;
        }
        let idle_s = (env.now_ms - card.active_ms.load(Relaxed)).max(0) / 1000;
        write_stat(
            out,
            &format!("{}:addr", card.fd),
            format_args!("tcp:{}", card.peer),
        );
        write_stat(
            out,
            &format!("{}:listen_addr", card.fd),
            format_args!("tcp:{}", card.local),
        );
        write_stat(out, &format!("{}:secs_since_last_cmd", card.fd), idle_s);
    }
}
