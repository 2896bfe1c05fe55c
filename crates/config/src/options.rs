//! The table of the options that work (or are refused), and the [`Settings`] made from it: one entry is one typed
//! field, one line of help, one name everywhere.
//!
//! Add an option here and nowhere else. Options without effect stand in `inert.rs` until they get one.

use std::collections::BTreeMap;

use crate::spec::{Alias, Effect, Group, House, Kind, OptionSpec, Percent, Translation};
use crate::types::{
    BindAddresses, BusyReplyScope, EvictionPolicy, IoDriver, KeyspaceEvents, LogLevel,
    OutputBufferLimits, Percentiles, ProtectedAction, RenamedCommands, SanitizeDump, SaveRules,
    ShutdownFlags,
};
use crate::value::{MemorySize, Value};

/// Makes [`Settings`] and the table from one list of
/// `/// help` + `field: type = "name", kind, "default" [, method(arguments)]*;`.
macro_rules! settings {
    ($($group:ident { $(
        $(#[doc = $help:literal])+
        $field:ident: $type:ty = $name:literal, $kind:expr, $default:literal $(, $method:ident($($argument:expr)?))*;
    )+ })+) => {
        /// The value of every option. Made by [`crate::load`], changed by [`crate::config_set`].
        #[derive(Clone, PartialEq)]
        pub struct Settings {
            $($( $(#[doc = $help])+ pub $field: $type, )+)+
            /// Values of options without effect that differ from their default, by name.
            stored: BTreeMap<&'static str, String>,
        }

        impl Settings {
            /// Settings to which the table's defaults have yet to be applied.
            pub(crate) fn blank() -> Self {
                Settings { $($( $field: Default::default(), )+)+ stored: BTreeMap::new() }
            }
        }

        pub(crate) const OPTIONS: &[OptionSpec] = &[ $($(
            OptionSpec::new(
                $name, Group::$group, $kind, $default, concat!($($help),+),
                |settings, spec| settings.$field.text(spec),
                |settings, spec, words, occurrence| settings.$field.update(spec, words, occurrence),
            ) $(.$method($($argument)?))*,
        )+)+ ];
    };
}

impl Settings {
    /// The value of an option that has no field, unless it is the default.
    pub(crate) fn stored(&self, name: &str) -> Option<&str> {
        self.stored.get(name).map(String::as_str)
    }

    pub(crate) fn store(&mut self, spec: &OptionSpec, text: String) {
        if text == spec.default {
            self.stored.remove(spec.name);
        } else {
            self.stored.insert(spec.name, text);
        }
    }
}

impl std::fmt::Debug for Settings {
    /// What differs from the defaults, without secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let differing = crate::changed(crate::table::defaults(), self).into_iter();
        let shown = |spec: &OptionSpec| {
            if spec.sensitive {
                "***".to_owned()
            } else {
                spec.get(self)
            }
        };
        f.debug_map()
            .entries(differing.map(|spec| (spec.name, shown(spec))))
            .finish()
    }
}

impl Default for Settings {
    fn default() -> Self {
        crate::table::defaults().clone()
    }
}

const INT_MAX: i128 = i32::MAX as i128;
const UINT_MAX: i128 = u32::MAX as i128;
const LONG_MAX: u64 = i64::MAX as u64;
const PORT: Kind = int(0, 65535);
const COUNT: Kind = int(0, i64::MAX as i128);

// Stored and returned already; whoever makes the type takes this mark away from its options.
const TYPE_TO_COME: Effect = Effect::None("its type of value does not exist yet");

const fn int(min: i128, max: i128) -> Kind {
    Kind::Integer { min, max }
}

const fn memory(min: u64, max: u64) -> Kind {
    Kind::Memory {
        min,
        max,
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

const fn dragonfly(name: &'static str) -> Alias {
    Alias {
        name,
        house: House::Dragonfly,
        translation: None,
    }
}

const fn switch(
    name: &'static str,
    to_option: fn(&str) -> Result<String, String>,
    from_option: fn(&str) -> String,
) -> Alias {
    let translation = Translation {
        to_option,
        from_option,
        switch: true,
    };
    Alias {
        name,
        house: House::Dragonfly,
        translation: Some(translation),
    }
}

const fn refused(allowed: &'static [&'static str], reason: &'static str) -> Effect {
    Effect::Refused { allowed, reason }
}

/// The translation of a switch that chooses between two values of its option.
macro_rules! switch_between {
    ($name:literal, $on:literal, $off:literal) => {
        switch(
            $name,
            |text| {
                Ok(if crate::value::parse_bool(text)? {
                    $on
                } else {
                    $off
                }
                .to_owned())
            },
            |value| crate::value::yes_no(value == $on).to_owned(),
        )
    };
}

fn is_file_name(name: &str) -> Result<(), String> {
    if name.contains('/') {
        Err("dbfilename can't be a path, just a filename".to_owned())
    } else {
        Ok(())
    }
}

fn is_version(version: &str) -> Result<(), String> {
    let parts: Vec<_> = version.split('.').collect();
    let numbers = parts
        .iter()
        .all(|part| part.parse::<u8>().is_ok() && !part.starts_with('+'));
    if parts.len() == 3 && numbers {
        Ok(())
    } else {
        Err("argument must be a version of three numbers below 256, such as 7.4.2".to_owned())
    }
}

settings! {
    Network {
        /// Addresses to listen on. A leading `-` makes one optional; `*` is all of IPv4, `::*` all of IPv6; an empty
        /// list means no TCP.
        bind: BindAddresses = "bind", Kind::Words("ADDRESS..."), "127.0.0.1 -::1", mutable(), action();
        /// TCP port for the Redis protocol; 0 = none.
        port: u16 = "port", PORT, "6379", mutable(), action();
        /// TCP port for the memcached protocol; 0 = none.
        memcached_port: u16 = "memcached-port", PORT, "0",
            aliases(&[dragonfly("memcached_port"), dragonfly("memcache_port")]);
        /// Largest value that the memcached protocol may store.
        memcached_item_size_max_bytes: u64 = "memcached-item-size-max", memory(1024, 1 << 30), "1mb", mutable();
        /// TCP port for administration (metrics, health); 0 = none.
        admin_port: u16 = "admin-port", PORT, "0",
            aliases(&[dragonfly("admin_port")]),
            effect(refused(&["0"], "there is no admin port"));
        /// Path of a Unix socket to listen on; empty = none.
        unixsocket: String = "unixsocket", Kind::Text, "";
        /// Permissions of the Unix socket, in octal; 0 = as the umask says.
        unixsocketperm: u32 = "unixsocketperm", Kind::Octal { max: 0o777 }, "0";
        /// Length of the queue of connections not yet accepted.
        tcp_backlog: u32 = "tcp-backlog", int(0, INT_MAX), "511";
        /// Seconds of silence after which TCP asks whether the client is still there; 0 = never.
        tcp_keepalive_seconds: u32 = "tcp-keepalive", int(0, INT_MAX), "300", mutable();
        /// Close a client after this many idle seconds; 0 = never.
        timeout_seconds: u32 = "timeout", int(0, INT_MAX), "0", mutable();
        /// TCP port for TLS; 0 = none.
        tls_port: u16 = "tls-port", PORT, "0", mutable(), action(), effect(refused(&["0"], "there is no TLS"));
    }
    Threads {
        /// Worker threads; 0 = one per core that this process may use.
        threads: u32 = "threads", int(0, 1024), "0", aliases(&[dragonfly("proactor_threads")]);
        /// I/O driver: `auto` takes io_uring where the kernel allows it, else epoll.
        io: IoDriver = "io", Kind::Choice(IoDriver::NAMES), "auto",
            aliases(&[switch_between!("force_epoll", "epoll", "auto")]);
        /// Pin each worker thread to a core.
        pin_threads: bool = "pin-threads", Kind::Bool, "no";
    }
    Clients {
        /// Most clients at one time; one more gets an error and is closed.
        maxclients: u32 = "maxclients", int(1, UINT_MAX), "10000", mutable(), action();
        /// Close a client that does not read its replies: class (`normal`, `replica`, `pubsub`), hard limit, soft
        /// limit, seconds above the soft limit.
        client_output_buffer_limit: OutputBufferLimits = "client-output-buffer-limit",
            Kind::Words("CLASS HARD SOFT SECONDS ..."),
            "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60", mutable(), multi(),
            rewrite(|s| s.client_output_buffer_limit.lines(&crate::table::defaults().client_output_buffer_limit));
        /// Largest input that may wait for one client's commands to be complete.
        client_query_buffer_limit_bytes: u64 = "client-query-buffer-limit", memory(1 << 20, LONG_MAX), "1gb", mutable();
        /// Longest single argument.
        proto_max_bulk_len_bytes: u64 = "proto-max-bulk-len", memory(1 << 20, LONG_MAX), "512mb", mutable();
        /// Memory for all clients' buffers together; the largest clients are closed beyond it; `5%` is a share of
        /// `maxmemory`; 0 = no limit.
        maxmemory_clients: MemorySize = "maxmemory-clients",
            Kind::Memory { min: 0, max: LONG_MAX, percent: Percent::Redis }, "0", mutable(), effect(Effect::None("clients are bounded one by one, not evicted for their sum yet"));
        /// Keys that the server remembers for client-side caching.
        tracking_table_max_keys: u64 = "tracking-table-max-keys", COUNT, "1000000", mutable(), effect(Effect::None("there is no client-side caching yet"));
    }
    Security {
        /// Password of the default user; empty = none is asked for.
        requirepass: String = "requirepass", Kind::Text, "", mutable(), sensitive(), action();
        /// Without a password, accept only clients from this machine.
        protected_mode: bool = "protected-mode", Kind::Bool, "yes", mutable();
        /// Who may use DEBUG.
        enable_debug_command: ProtectedAction = "enable-debug-command", Kind::Choice(ProtectedAction::NAMES), "no";
        /// Who may change `dir` and `dbfilename` with CONFIG SET.
        enable_protected_configs: ProtectedAction = "enable-protected-configs",
            Kind::Choice(ProtectedAction::NAMES), "no";
        /// Give a command another name; an empty name takes it away.
        renamed_commands: RenamedCommands = "rename-command", Kind::Words("COMMAND NEW-NAME"), "", multi(), file_only();
        /// How deeply the payload of RESTORE is checked.
        sanitize_dump_payload: SanitizeDump = "sanitize-dump-payload", Kind::Choice(SanitizeDump::NAMES), "no",
            mutable(), effect(Effect::None("every payload is checked in full"));
        /// Entries that ACL LOG keeps.
        acllog_max_len: u64 = "acllog-max-len", COUNT, "128", mutable(),
            effect(Effect::None("there are no access-control lists"));
    }
    Memory {
        /// Most memory for data; `50%` is a share of the machine's; 0 = no limit.
        maxmemory: MemorySize = "maxmemory",
            Kind::Memory { min: 0, max: u64::MAX, percent: Percent::Ours }, "0", mutable(), action();
        /// What is evicted at `maxmemory`.
        maxmemory_policy: EvictionPolicy = "maxmemory-policy", Kind::Choice(EvictionPolicy::NAMES), "noeviction",
            mutable(), action(), aliases(&[switch_between!("cache_mode", "allkeys-lfu", "noeviction")]);
        /// Keys that are looked at for each eviction.
        maxmemory_samples: u32 = "maxmemory-samples", int(1, 64), "5", mutable(), effect(Effect::None("eviction looks at 16 keys of neighbouring table lines"));
        /// Effort for eviction, 0 to 100.
        maxmemory_eviction_tenacity: u32 = "maxmemory-eviction-tenacity", int(0, 100), "10", mutable(), effect(Effect::None("each command evicts at most 256 KiB"));
        /// How slowly the access counter of LFU grows.
        lfu_log_factor: u32 = "lfu-log-factor", int(0, INT_MAX), "10", mutable();
        /// Minutes after which the access counter of LFU falls by one; 0 = never.
        lfu_decay_time_minutes: u32 = "lfu-decay-time", int(0, INT_MAX), "1", mutable();
        /// Effort for finding expired keys in the background, 1 to 10.
        active_expire_effort: u8 = "active-expire-effort", int(1, 10), "1", mutable(), effect(Effect::None("expiry adapts to what it finds"));
        /// Free evicted values in the background.
        lazyfree_lazy_eviction: bool = "lazyfree-lazy-eviction", Kind::Bool, "no", mutable(), effect(Effect::None("large values are always freed in the background"));
        /// Free expired values in the background.
        lazyfree_lazy_expire: bool = "lazyfree-lazy-expire", Kind::Bool, "no", mutable();
        /// Free overwritten values in the background.
        lazyfree_lazy_server_del: bool = "lazyfree-lazy-server-del", Kind::Bool, "no", mutable(), effect(Effect::None("large values are always freed in the background"));
        /// DEL behaves as UNLINK.
        lazyfree_lazy_user_del: bool = "lazyfree-lazy-user-del", Kind::Bool, "no", mutable(), effect(Effect::None("large values are always freed in the background"));
        /// FLUSHALL and FLUSHDB without an argument behave as with ASYNC.
        lazyfree_lazy_user_flush: bool = "lazyfree-lazy-user-flush", Kind::Bool, "no", mutable(), effect(Effect::None("large values are always freed in the background"));
    }
    Encodings {
        /// Most fields of a hash in the packed encoding.
        hash_max_listpack_entries: u64 = "hash-max-listpack-entries", COUNT, "512", mutable(),
            aliases(&[redis("hash-max-ziplist-entries")]), effect(TYPE_TO_COME);
        /// Longest field or value of a hash in the packed encoding.
        hash_max_listpack_value_bytes: u64 = "hash-max-listpack-value", memory(0, LONG_MAX), "64", mutable(),
            aliases(&[redis("hash-max-ziplist-value")]), effect(TYPE_TO_COME);
        /// Size of a node of a list: elements if positive, -1 to -5 for 4, 8, 16, 32, 64 KiB.
        list_max_listpack_size: i32 = "list-max-listpack-size", int(i32::MIN as i128, INT_MAX), "-2", mutable(),
            aliases(&[redis("list-max-ziplist-size")]), effect(TYPE_TO_COME);
        /// Most members of a set of integers in the packed encoding.
        set_max_intset_entries: u64 = "set-max-intset-entries", COUNT, "512", mutable(), effect(TYPE_TO_COME);
        /// Most members of any other set in the packed encoding.
        set_max_listpack_entries: u64 = "set-max-listpack-entries", COUNT, "128", mutable(), effect(TYPE_TO_COME);
        /// Longest member of a set in the packed encoding.
        set_max_listpack_value_bytes: u64 = "set-max-listpack-value", COUNT, "64", mutable(), effect(TYPE_TO_COME);
        /// Most members of a sorted set in the packed encoding.
        zset_max_listpack_entries: u64 = "zset-max-listpack-entries", COUNT, "128", mutable(),
            aliases(&[redis("zset-max-ziplist-entries")]), effect(TYPE_TO_COME);
        /// Longest member of a sorted set in the packed encoding.
        zset_max_listpack_value_bytes: u64 = "zset-max-listpack-value", memory(0, LONG_MAX), "64", mutable(),
            aliases(&[redis("zset-max-ziplist-value")]), effect(TYPE_TO_COME);
        /// Largest HyperLogLog in the sparse encoding.
        hll_sparse_max_bytes: u64 = "hll-sparse-max-bytes", memory(0, LONG_MAX), "3000", mutable();
        /// Largest node of a stream; 0 = no limit.
        stream_node_max_bytes: u64 = "stream-node-max-bytes", memory(0, LONG_MAX), "4096", mutable(), effect(TYPE_TO_COME);
        /// Most entries in a node of a stream; 0 = no limit.
        stream_node_max_entries: u64 = "stream-node-max-entries", COUNT, "100", mutable(), effect(TYPE_TO_COME);
    }
    Features {
        /// Number of databases.
        databases: u32 = "databases", int(1, 65536), "16", aliases(&[dragonfly("dbnum")]);
        /// Which keyspace events are published: letters of `KEg$lshzxetdnmA`; empty = none.
        notify_keyspace_events: KeyspaceEvents = "notify-keyspace-events", Kind::Text, "", mutable(), action();
        /// Milliseconds after which a script counts as busy; 0 = never.
        busy_reply_threshold_ms: u64 = "busy-reply-threshold", COUNT, "5000", mutable(),
            aliases(&[redis("lua-time-limit")]), effect(Effect::None("there are no scripts yet"));
        /// Who gets -BUSY while a script is busy: those who need its shards, or everybody as in Redis.
        busy_reply_scope: BusyReplyScope = "busy-reply-scope", Kind::Choice(BusyReplyScope::NAMES), "shards", mutable(), effect(Effect::None("there are no scripts yet"));
    }
    Persistence {
        /// Folder for files. The server turns it into an absolute path at the start.
        dir: String = "dir", Kind::Text, ".", mutable(), protected(), action();
        /// Name of the snapshot file.
        dbfilename: String = "dbfilename", Kind::Text, "dump.rdb", mutable(), protected(), check(is_file_name), effect(Effect::None("snapshots are not written yet"));
        /// Take a snapshot after this many seconds if there were this many changes; empty = never.
        save: SaveRules = "save", Kind::Words("SECONDS CHANGES ..."), "", mutable(), multi(),
            effect(refused(&[""], "snapshots are not written yet"));
        /// When to take snapshots, in crontab style; empty = never.
        snapshot_cron: String = "snapshot-cron", Kind::Text, "", mutable(),
            aliases(&[dragonfly("snapshot_cron")]),
            effect(refused(&[""], "snapshots are not written yet"));
        /// Log every write to a file.
        appendonly: bool = "appendonly", Kind::Bool, "no", mutable(), action(),
            effect(refused(&["no"], "there is no append-only file"));
    }
    Replication {
        /// Be a replica of this server; empty or `no one` = be a primary.
        replicaof: String = "replicaof", Kind::Words("HOST PORT"), "", aliases(&[redis("slaveof")]),
            effect(refused(&["", "no one"], "there is no replication"));
        /// Refuse writes with fewer replicas than this.
        min_replicas_to_write: u32 = "min-replicas-to-write", int(0, INT_MAX), "0", mutable(),
            aliases(&[redis("min-slaves-to-write")]), effect(refused(&["0"], "there is no replication"));
    }
    Cluster {
        /// Be a node of a cluster.
        cluster_enabled: bool = "cluster-enabled", Kind::Bool, "no",
            effect(refused(&["no"], "there is no cluster mode"));
    }
    Diagnostics {
        /// How much is logged.
        loglevel: LogLevel = "loglevel", Kind::Choice(LogLevel::NAMES), "notice", mutable(), action();
        /// File for the log; empty = standard output.
        logfile: String = "logfile", Kind::Text, "";
        /// Log to standard error, whatever `logfile` says.
        log_to_stderr: bool = "log-to-stderr", Kind::Bool, "no", aliases(&[dragonfly("logtostderr")]);
        /// Microseconds from which a command is in the slow log; 0 = all, -1 = none.
        slowlog_log_slower_than_us: i64 = "slowlog-log-slower-than", int(-1, i64::MAX as i128), "10000", mutable();
        /// Entries that the slow log keeps.
        slowlog_max_len: u64 = "slowlog-max-len", COUNT, "128", mutable();
        /// Milliseconds from which an event is kept for LATENCY; 0 = none.
        latency_monitor_threshold_ms: u64 = "latency-monitor-threshold", COUNT, "0", mutable();
        /// Keep a histogram of latencies for each command.
        latency_tracking: bool = "latency-tracking", Kind::Bool, "yes", mutable();
        /// Percentiles in INFO latencystats.
        latency_tracking_info_percentiles: Percentiles = "latency-tracking-info-percentiles",
            Kind::Words("PERCENTILE..."), "50 99 99.9", mutable();
    }
    Process {
        /// Version that INFO and HELLO give to clients that look for a version of Redis.
        redis_version: String = "redis-version", Kind::Text, "7.4.2", check(is_version);
        /// File for the process number; empty = none.
        pidfile: String = "pidfile", Kind::Text, "";
        /// What SIGINT does beyond a plain shutdown.
        shutdown_on_sigint: ShutdownFlags = "shutdown-on-sigint", Kind::Words("default|save|nosave|now|force ..."),
            "default", mutable(), effect(Effect::None("there is nothing to save or to wait for yet"));
        /// What SIGTERM does beyond a plain shutdown.
        shutdown_on_sigterm: ShutdownFlags = "shutdown-on-sigterm", Kind::Words("default|save|nosave|now|force ..."),
            "default", mutable(), effect(Effect::None("there is nothing to save or to wait for yet"));
        /// Seconds that a shutdown waits for replicas to catch up.
        shutdown_timeout_seconds: u32 = "shutdown-timeout", int(0, INT_MAX), "10", mutable(), effect(Effect::None("there are no replicas yet"));
    }
}
