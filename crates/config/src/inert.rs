//! The table of options that are recognised without effect, so that the files and commands of users who come from
//! Redis or Dragonfly go on working, and of those that are refused because ignoring them would be dangerous.
//!
//! Each says why it has no effect; the start lists those that were given. An option that would change data
//! safety, access or availability must not stand here with `Effect::None`.

use crate::Settings;
use crate::spec::{Alias, Effect, Group, House, Kind, OptionSpec, Percent};
use crate::value::{Occurrence, canonical, read_stored, write_stored};
use Group::{
    Clients, Cluster, Diagnostics, Encodings, Features, Memory, Network, Persistence, Process,
    Replication,
};
use Group::{Security, Threads};

const BOOL: Kind = Kind::Bool;
const TEXT: Kind = Kind::Text;
const PORT: Kind = int(0, 65535);
const POSITIVE: Kind = int(0, i32::MAX as i128);
const FROM_ONE: Kind = int(1, i32::MAX as i128);
const COUNT: Kind = int(0, i64::MAX as i128);

// Why options have no effect.
const NO_LOG: Effect = Effect::None("there is no append-only file");
const NO_REPLICATION: Effect = Effect::None("there is no replication");
const NO_CLUSTER: Effect = Effect::None("there is no cluster mode");
const NO_TLS: Effect = Effect::None("there is no TLS");
const NO_ACL: Effect = Effect::None("there are no access-control lists");
const NO_SNAPSHOT: Effect = Effect::None("snapshots are not written yet");
const NO_FORK: Effect = Effect::None("snapshots are taken without fork");
const NO_TICK: Effect = Effect::None("there is no periodic tick");
const OWN_HEAP: Effect = Effect::None("memory is managed and compacted by the store itself");
const OWN_THREADS: Effect = Effect::None("all work is shared by the workers of `threads`");
const OWN_LISTS: Effect = Effect::None("lists are not compressed");
const SUPERVISOR: Effect =
    Effect::None("starting in the background is left to the service manager");
const NO_SYSLOG: Effect = Effect::None("the log goes to a file or to standard output");
const NO_TITLE: Effect = Effect::None("the title of the process stays as it is");
const NO_MODULES: Effect = Effect::None("there are no modules");
const NO_ASIDE: Effect = Effect::None("nothing here depends on it");
const OWN_PIPELINE: Effect = Effect::None("pipelines are batched by themselves");
const ANY_KEY: Effect = Effect::None("scripts may use any key, atomically, without flags");

const fn int(min: i128, max: i128) -> Kind {
    Kind::Integer { min, max }
}

const fn memory(min: u64) -> Kind {
    Kind::Memory {
        min,
        max: i64::MAX as u64,
        percent: Percent::No,
    }
}

const fn redis(name: &'static str) -> Alias {
    Alias {
        name,
        house: House::Redis,
        translation: None,
    }
}

const FOREIGN: &str = "For files and scripts made for another server.";

const fn inert(
    group: Group,
    name: &'static str,
    kind: Kind,
    default: &'static str,
    effect: Effect,
) -> OptionSpec {
    OptionSpec::new(
        name,
        group,
        kind,
        default,
        FOREIGN,
        read_stored,
        write_stored,
    )
    .effect(effect)
}

const fn refused(
    group: Group,
    name: &'static str,
    kind: Kind,
    default: &'static str,
    reason: &'static str,
) -> OptionSpec {
    let allowed: &'static [&'static str] = match kind {
        Kind::Bool => &["no"],
        _ => &[""],
    };
    inert(
        group,
        name,
        kind,
        default,
        Effect::Refused { allowed, reason },
    )
}

fn is_file_name(name: &str) -> Result<(), String> {
    match name {
        "" => Err("appendfilename can't be empty".to_owned()),
        _ if name.contains('/') => {
            Err("appendfilename can't be a path, just a filename".to_owned())
        }
        _ => Ok(()),
    }
}

fn is_folder_name(name: &str) -> Result<(), String> {
    match name {
        "" => Err("appenddirname can't be empty".to_owned()),
        _ if name.contains('/') => Err("appenddirname can't be a path, just a dirname".to_owned()),
        _ => Ok(()),
    }
}

fn are_oom_scores(words: &str) -> Result<(), String> {
    let words: Vec<_> = words.split(' ').collect();
    if words.len() != 3 {
        return Err("wrong number of arguments".to_owned());
    }
    if words.iter().all(|word| {
        word.parse::<i32>()
            .is_ok_and(|score| (-2000..=2000).contains(&score))
    }) {
        Ok(())
    } else {
        Err("Invalid oom-score-adj-values, elements must be between -2000 and 2000.".to_owned())
    }
}

/// Redis takes any number here, and brings it into these limits.
fn write_hz(
    settings: &mut Settings,
    spec: &OptionSpec,
    words: &[String],
    _: Occurrence,
) -> Result<(), String> {
    let hz: u32 = canonical(spec, words)?.parse().unwrap_or(u32::MAX);
    settings.store(spec, hz.clamp(1, 500).to_string());
    Ok(())
}

fn never(_: &str) -> Result<(), String> {
    Err("not supported yet: this server has nothing that it could mean".to_owned())
}

// One option a line, whatever its length: this is a table to look things up in.
#[rustfmt::skip]
pub(crate) const INERT: &[OptionSpec] = &[
    // Network
    inert(Network, "bind-source-addr", TEXT, "", NO_REPLICATION).mutable(),
    inert(Network, "socket-mark-id", int(0, u32::MAX as i128), "0", NO_ASIDE),
    inert(Network, "max-new-connections-per-cycle", int(1, 1000), "10", NO_TICK).mutable(),
    inert(Network, "max-new-tls-connections-per-cycle", int(1, 1000), "1", NO_TICK).mutable(),
    inert(Network, "tls-cert-file", TEXT, "", NO_TLS).mutable(),
    inert(Network, "tls-key-file", TEXT, "", NO_TLS).mutable(),
    inert(Network, "tls-key-file-pass", TEXT, "", NO_TLS).mutable().sensitive(),
    inert(Network, "tls-client-cert-file", TEXT, "", NO_TLS).mutable(),
    inert(Network, "tls-client-key-file", TEXT, "", NO_TLS).mutable(),
    inert(Network, "tls-client-key-file-pass", TEXT, "", NO_TLS).mutable().sensitive(),
    inert(Network, "tls-dh-params-file", TEXT, "", NO_TLS).mutable(),
    inert(Network, "tls-ca-cert-file", TEXT, "", NO_TLS).mutable(),
    inert(Network, "tls-ca-cert-dir", TEXT, "", NO_TLS).mutable(),
    inert(Network, "tls-auth-clients", Kind::Choice(&["no", "yes", "optional"]), "yes", NO_TLS).mutable(),
    inert(Network, "tls-protocols", TEXT, "", NO_TLS).mutable(),
    inert(Network, "tls-ciphers", TEXT, "", NO_TLS).mutable(),
    inert(Network, "tls-ciphersuites", TEXT, "", NO_TLS).mutable(),
    inert(Network, "tls-prefer-server-ciphers", BOOL, "no", NO_TLS).mutable(),
    inert(Network, "tls-session-caching", BOOL, "yes", NO_TLS).mutable(),
    inert(Network, "tls-session-cache-size", POSITIVE, "20480", NO_TLS).mutable(),
    inert(Network, "tls-session-cache-timeout", POSITIVE, "300", NO_TLS).mutable(),
    refused(Network, "tls-cluster", BOOL, "no", "there is no TLS").mutable(),
    refused(Network, "tls-replication", BOOL, "no", "there is no TLS").mutable(),
    refused(Network, "tls", BOOL, "no", "there is no TLS").hidden(),
    refused(Network, "no-tls-on-admin-port", BOOL, "no", "there is no TLS").hidden(),
    refused(Network, "admin-bind", TEXT, "", "there is no admin port").hidden(),
    refused(Network, "admin-nopass", BOOL, "no", "there is no admin port").hidden(),
    inert(Network, "primary-port-http-enabled", BOOL, "yes", Effect::None("there is no HTTP console")).hidden(),
    inert(Network, "tcp-nodelay", BOOL, "yes", Effect::None("it is always on")).hidden(),
    // Threads
    inert(Threads, "io-threads", int(1, 128), "1", OWN_THREADS),
    inert(Threads, "io-threads-do-reads", BOOL, "no", OWN_THREADS),
    inert(Threads, "server-cpulist", TEXT, "", Effect::None("see `pin-threads`")).aliases(&[redis("server_cpulist")]),
    inert(Threads, "bio-cpulist", TEXT, "", OWN_THREADS).aliases(&[redis("bio_cpulist")]),
    inert(Threads, "aof-rewrite-cpulist", TEXT, "", NO_FORK).aliases(&[redis("aof_rewrite_cpulist")]),
    inert(Threads, "bgsave-cpulist", TEXT, "", NO_FORK).aliases(&[redis("bgsave_cpulist")]),
    inert(Threads, "conn-io-threads", POSITIVE, "0", OWN_THREADS).hidden(),
    inert(Threads, "conn-io-thread-start", POSITIVE, "0", OWN_THREADS).hidden(),
    inert(Threads, "conn-use-incoming-cpu", BOOL, "no", OWN_THREADS).hidden(),
    inert(Threads, "migrate-connections", BOOL, "yes", Effect::None("the data comes to the thread")).hidden(),
    inert(Threads, "num-shards", POSITIVE, "0", Effect::None("the number of shards follows `threads`")).hidden(),
    inert(Threads, "proactor-affinity-mode", Kind::Choice(&["on", "off", "auto"]), "auto", Effect::None("see `pin-threads`")).hidden(),
    inert(Threads, "proactor-register-fd", BOOL, "no", NO_ASIDE).hidden(),
    inert(Threads, "epoll-file-threads", POSITIVE, "0", OWN_THREADS).hidden(),
    inert(Threads, "interpreter-per-thread", POSITIVE, "10", OWN_THREADS).hidden(),
    inert(Threads, "lock-on-hashtags", BOOL, "no", Effect::None("commands may use any keys, without hash tags")).hidden(),
    // Clients
    inert(Clients, "client-default-resp", int(2, 3), "2", Effect::None("HELLO chooses")).hidden(),
    inert(Clients, "pipeline-squash", POSITIVE, "10", OWN_PIPELINE).hidden(),
    inert(Clients, "multi-exec-squash", BOOL, "yes", OWN_PIPELINE).hidden(),
    inert(Clients, "multi-eval-squash-buffer", POSITIVE, "4096", OWN_PIPELINE).hidden(),
    inert(Clients, "request-cache-limit", COUNT, "67108864", NO_ASIDE).hidden(),
    inert(Clients, "singlehop-blocking", BOOL, "yes", NO_ASIDE).hidden(),
    // Security
    refused(Security, "aclfile", TEXT, "", "there are no access-control lists"),
    refused(Security, "user", Kind::Words("NAME RULE..."), "", "there are no access-control lists").multi().file_only().check(never),
    refused(Security, "loadmodule", Kind::Words("PATH ARGUMENT..."), "", "there are no modules").multi().file_only().check(never),
    refused(Security, "sentinel", Kind::Words("..."), "", "there is no Sentinel mode").multi().file_only().check(never),
    inert(Security, "acl-pubsub-default", Kind::Choice(&["allchannels", "resetchannels"]), "resetchannels", NO_ACL).mutable(),
    inert(Security, "enable-module-command", Kind::Choice(&["no", "yes", "local"]), "no", NO_MODULES),
    inert(Security, "hide-user-data-from-log", BOOL, "no", Effect::None("user data is never logged")).mutable(),
    // Memory
    inert(Memory, "activerehashing", BOOL, "yes", OWN_HEAP).mutable(),
    inert(Memory, "jemalloc-bg-thread", BOOL, "yes", OWN_HEAP).mutable(),
    inert(Memory, "activedefrag", BOOL, "no", OWN_HEAP).mutable(),
    inert(Memory, "active-defrag-cycle-min", int(1, 99), "1", OWN_HEAP).mutable(),
    inert(Memory, "active-defrag-cycle-max", int(1, 99), "25", OWN_HEAP).mutable(),
    inert(Memory, "active-defrag-threshold-lower", int(0, 1000), "10", OWN_HEAP).mutable(),
    inert(Memory, "active-defrag-threshold-upper", int(0, 1000), "100", OWN_HEAP).mutable(),
    inert(Memory, "active-defrag-max-scan-fields", int(1, i64::MAX as i128), "1000", OWN_HEAP).mutable(),
    inert(Memory, "active-defrag-ignore-bytes", memory(1), "104857600", OWN_HEAP).mutable(),
    inert(Memory, "disable-thp", BOOL, "yes", OWN_HEAP),
    inert(Memory, "mem-defrag-threshold", TEXT, "0.7", OWN_HEAP).hidden(),
    inert(Memory, "mem-defrag-waste-threshold", TEXT, "0.2", OWN_HEAP).hidden(),
    inert(Memory, "mem-defrag-page-utilization-threshold", TEXT, "0.8", OWN_HEAP).hidden(),
    inert(Memory, "enable-heartbeat-eviction", BOOL, "yes", NO_TICK).hidden(),
    inert(Memory, "max-eviction-per-heartbeat", POSITIVE, "100", NO_TICK).hidden(),
    inert(Memory, "max-segment-to-consider", POSITIVE, "4", NO_ASIDE).hidden(),
    // Encodings
    inert(Encodings, "list-compress-depth", POSITIVE, "0", OWN_LISTS).mutable(),
    inert(Encodings, "list-max-ziplist-entries", POSITIVE, "512", Effect::None("see `list-max-listpack-size`")).file_only(),
    inert(Encodings, "list-max-ziplist-value", memory(0), "64", Effect::None("see `list-max-listpack-size`")).file_only(),
    inert(Encodings, "use-set2", BOOL, "yes", NO_ASIDE).hidden(),
    inert(Encodings, "use-zset-tree", BOOL, "yes", NO_ASIDE).hidden(),
    // Features
    inert(Features, "lua-replicate-commands", BOOL, "yes", Effect::None("effects are always replicated")).file_only(),
    inert(Features, "default-lua-flags", TEXT, "", ANY_KEY).hidden(),
    inert(Features, "lua-auto-async", BOOL, "no", ANY_KEY).hidden(),
    inert(Features, "locale-collate", TEXT, "", Effect::None("SORT ALPHA compares bytes")).mutable(),
    // Persistence
    inert(Persistence, "stop-writes-on-bgsave-error", BOOL, "yes", NO_SNAPSHOT).mutable(),
    inert(Persistence, "rdbcompression", BOOL, "yes", NO_SNAPSHOT).mutable(),
    inert(Persistence, "rdbchecksum", BOOL, "yes", NO_SNAPSHOT),
    inert(Persistence, "rdb-save-incremental-fsync", BOOL, "yes", NO_SNAPSHOT).mutable(),
    inert(Persistence, "appendfilename", TEXT, "appendonly.aof", NO_LOG).check(is_file_name),
    inert(Persistence, "appenddirname", TEXT, "appendonlydir", NO_LOG).check(is_folder_name),
    inert(Persistence, "appendfsync", Kind::Choice(&["everysec", "always", "no"]), "everysec", NO_LOG).mutable(),
    inert(Persistence, "no-appendfsync-on-rewrite", BOOL, "no", NO_LOG).mutable(),
    inert(Persistence, "auto-aof-rewrite-percentage", POSITIVE, "100", NO_LOG).mutable(),
    inert(Persistence, "auto-aof-rewrite-min-size", memory(0), "67108864", NO_LOG).mutable(),
    inert(Persistence, "aof-load-truncated", BOOL, "yes", NO_LOG).mutable(),
    inert(Persistence, "aof-use-rdb-preamble", BOOL, "yes", NO_LOG).mutable(),
    inert(Persistence, "aof-timestamp-enabled", BOOL, "no", NO_LOG).mutable(),
    inert(Persistence, "aof-rewrite-incremental-fsync", BOOL, "yes", NO_LOG).mutable(),
    inert(Persistence, "aof-disable-auto-gc", BOOL, "no", NO_LOG).mutable(),
    inert(Persistence, "rdb-key-save-delay", int(i32::MIN as i128, i32::MAX as i128), "0", NO_SNAPSHOT).mutable().hidden(),
    inert(Persistence, "key-load-delay", int(i32::MIN as i128, i32::MAX as i128), "0", NO_SNAPSHOT).mutable().hidden(),
    inert(Persistence, "loading-process-events-interval-bytes", int(1024, i32::MAX as i128), "2097152", NO_SNAPSHOT).mutable().hidden(),
    refused(Persistence, "df-snapshot-format", BOOL, "no", "files are in Redis's format only").hidden(),
    inert(Persistence, "compression-mode", int(0, 3), "3", NO_SNAPSHOT).hidden(),
    inert(Persistence, "compression-level", POSITIVE, "2", NO_SNAPSHOT).hidden(),
    refused(Persistence, "spill-file-prefix", TEXT, "", "values are not kept on disk").hidden(),
    // Replication
    inert(Replication, "masterauth", TEXT, "", NO_REPLICATION).mutable().sensitive(),
    inert(Replication, "masteruser", TEXT, "", NO_REPLICATION).mutable().sensitive(),
    inert(Replication, "replica-serve-stale-data", BOOL, "yes", NO_REPLICATION).mutable().aliases(&[redis("slave-serve-stale-data")]),
    inert(Replication, "replica-read-only", BOOL, "yes", NO_REPLICATION).mutable().aliases(&[redis("slave-read-only")]),
    inert(Replication, "replica-lazy-flush", BOOL, "no", NO_REPLICATION).mutable().aliases(&[redis("slave-lazy-flush")]),
    inert(Replication, "replica-ignore-maxmemory", BOOL, "yes", NO_REPLICATION).mutable().aliases(&[redis("slave-ignore-maxmemory")]),
    inert(Replication, "replica-ignore-disk-write-errors", BOOL, "no", NO_REPLICATION).mutable(),
    inert(Replication, "replica-announced", BOOL, "yes", NO_REPLICATION).mutable(),
    inert(Replication, "replica-announce-ip", TEXT, "", NO_REPLICATION).mutable().aliases(&[redis("slave-announce-ip")]),
    inert(Replication, "replica-announce-port", PORT, "0", NO_REPLICATION).mutable().aliases(&[redis("slave-announce-port")]),
    inert(Replication, "replica-priority", POSITIVE, "100", NO_REPLICATION).mutable().aliases(&[redis("slave-priority")]),
    inert(Replication, "repl-diskless-sync", BOOL, "yes", NO_REPLICATION).mutable(),
    inert(Replication, "repl-diskless-sync-delay", POSITIVE, "5", NO_REPLICATION).mutable(),
    inert(Replication, "repl-diskless-sync-max-replicas", POSITIVE, "0", NO_REPLICATION).mutable(),
    inert(Replication, "repl-diskless-load", Kind::Choice(&["disabled", "on-empty-db", "swapdb"]), "disabled", NO_REPLICATION).mutable(),
    inert(Replication, "repl-disable-tcp-nodelay", BOOL, "no", NO_REPLICATION).mutable(),
    inert(Replication, "repl-ping-replica-period", FROM_ONE, "10", NO_REPLICATION).mutable().aliases(&[redis("repl-ping-slave-period")]),
    inert(Replication, "repl-timeout", FROM_ONE, "60", NO_REPLICATION).mutable(),
    inert(Replication, "repl-backlog-size", memory(1), "1048576", NO_REPLICATION).mutable(),
    inert(Replication, "repl-backlog-ttl", COUNT, "3600", NO_REPLICATION).mutable(),
    inert(Replication, "min-replicas-max-lag", POSITIVE, "10", NO_REPLICATION).mutable().aliases(&[redis("min-slaves-max-lag")]),
    inert(Replication, "rdb-del-sync-files", BOOL, "no", NO_REPLICATION).mutable(),
    inert(Replication, "propagation-error-behavior", Kind::Choice(&["ignore", "panic", "panic-on-replicas"]), "ignore", NO_REPLICATION).mutable(),
    inert(Replication, "replica-partial-sync", BOOL, "yes", NO_REPLICATION).hidden(),
    inert(Replication, "shard-repl-backlog-len", POSITIVE, "1024", NO_REPLICATION).hidden(),
    inert(Replication, "master-connect-timeout-ms", POSITIVE, "20000", NO_REPLICATION).hidden(),
    inert(Replication, "master-reconnect-timeout-ms", POSITIVE, "1000", NO_REPLICATION).hidden(),
    inert(Replication, "replication-acks-interval", POSITIVE, "3000", NO_REPLICATION).hidden(),
    inert(Replication, "enable-multi-shard-sync", BOOL, "no", NO_REPLICATION).hidden(),
    // Cluster
    refused(Cluster, "cluster-mode", TEXT, "", "there is no cluster mode").hidden(),
    inert(Cluster, "cluster-config-file", TEXT, "nodes.conf", NO_CLUSTER),
    inert(Cluster, "cluster-port", PORT, "0", NO_CLUSTER),
    inert(Cluster, "cluster-node-timeout", COUNT, "15000", NO_CLUSTER).mutable(),
    inert(Cluster, "cluster-ping-interval", COUNT, "0", NO_CLUSTER).mutable().hidden(),
    inert(Cluster, "cluster-replica-validity-factor", POSITIVE, "10", NO_CLUSTER).mutable().aliases(&[redis("cluster-slave-validity-factor")]),
    inert(Cluster, "cluster-replica-no-failover", BOOL, "no", NO_CLUSTER).mutable().aliases(&[redis("cluster-slave-no-failover")]),
    inert(Cluster, "cluster-migration-barrier", POSITIVE, "1", NO_CLUSTER).mutable(),
    inert(Cluster, "cluster-allow-replica-migration", BOOL, "yes", NO_CLUSTER).mutable(),
    inert(Cluster, "cluster-require-full-coverage", BOOL, "yes", NO_CLUSTER).mutable(),
    inert(Cluster, "cluster-allow-reads-when-down", BOOL, "no", NO_CLUSTER).mutable(),
    inert(Cluster, "cluster-allow-pubsubshard-when-down", BOOL, "yes", NO_CLUSTER).mutable(),
    inert(Cluster, "cluster-link-sendbuf-limit", memory(0), "0", NO_CLUSTER).mutable(),
    inert(Cluster, "cluster-announce-ip", TEXT, "", NO_CLUSTER).mutable(),
    inert(Cluster, "cluster-announce-port", PORT, "0", NO_CLUSTER).mutable(),
    inert(Cluster, "cluster-announce-tls-port", PORT, "0", NO_CLUSTER).mutable(),
    inert(Cluster, "cluster-announce-bus-port", PORT, "0", NO_CLUSTER).mutable(),
    inert(Cluster, "cluster-announce-hostname", TEXT, "", NO_CLUSTER).mutable(),
    inert(Cluster, "cluster-announce-human-nodename", TEXT, "", NO_CLUSTER).mutable(),
    inert(Cluster, "cluster-preferred-endpoint-type", Kind::Choice(&["ip", "hostname", "unknown-endpoint"]), "ip", NO_CLUSTER).mutable(),
    // Diagnostics
    inert(Diagnostics, "syslog-enabled", BOOL, "no", NO_SYSLOG),
    inert(Diagnostics, "syslog-ident", TEXT, "redis", NO_SYSLOG),
    inert(Diagnostics, "syslog-facility", Kind::Choice(&["user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"]), "local0", NO_SYSLOG),
    inert(Diagnostics, "crash-log-enabled", BOOL, "yes", NO_ASIDE).mutable(),
    inert(Diagnostics, "crash-memcheck-enabled", BOOL, "yes", NO_ASIDE).mutable(),
    inert(Diagnostics, "use-exit-on-panic", BOOL, "no", NO_ASIDE).mutable().hidden(),
    inert(Diagnostics, "watchdog-period", POSITIVE, "0", NO_ASIDE).mutable().hidden(),
    inert(Diagnostics, "ignore-warnings", TEXT, "", Effect::None("there is no such warning")).mutable(),
    inert(Diagnostics, "alsologtostderr", BOOL, "no", Effect::None("see `log-to-stderr`")).hidden(),
    inert(Diagnostics, "logtostdout", BOOL, "yes", Effect::None("that is the default; see `logfile`")).hidden(),
    inert(Diagnostics, "log-dir", TEXT, "", Effect::None("see `logfile`")).hidden(),
    inert(Diagnostics, "max-log-size", POSITIVE, "1800", Effect::None("rotating the log is left to the system")).hidden(),
    inert(Diagnostics, "minloglevel", POSITIVE, "0", Effect::None("see `loglevel`")).hidden(),
    inert(Diagnostics, "stderrthreshold", POSITIVE, "2", Effect::None("see `log-to-stderr`")).hidden(),
    inert(Diagnostics, "version-check", BOOL, "yes", Effect::None("no server is ever asked for news")).hidden(),
    inert(Diagnostics, "enable-top-keys-tracking", BOOL, "no", NO_ASIDE).hidden(),
    // Process
    inert(Process, "daemonize", BOOL, "no", SUPERVISOR),
    inert(Process, "supervised", Kind::Choice(&["upstart", "systemd", "auto", "no"]), "no", SUPERVISOR),
    OptionSpec::new("hz", Process, POSITIVE, "10", FOREIGN, read_stored, write_hz).effect(NO_TICK).mutable(),
    inert(Process, "dynamic-hz", BOOL, "yes", NO_TICK).mutable(),
    inert(Process, "always-show-logo", BOOL, "no", Effect::None("there is no logo")),
    inert(Process, "set-proc-title", BOOL, "yes", NO_TITLE),
    inert(Process, "proc-title-template", TEXT, "{title} {listen-addr} {server-mode}", NO_TITLE).mutable(),
    inert(Process, "oom-score-adj", Kind::Choice(&["no", "yes", "relative", "absolute"]), "no", SUPERVISOR).mutable(),
    inert(Process, "oom-score-adj-values", Kind::Words("PRIMARY REPLICA CHILD"), "0 200 800", SUPERVISOR).mutable().check(are_oom_scores),
];
