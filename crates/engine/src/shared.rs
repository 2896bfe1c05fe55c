//! What all threads of the process share.

use crate::clients::Clients;
use crate::families::latency::LatencyLog;
use crate::families::slowlog::SlowLog;
use crate::families::state::ServerState;
use crate::helpers::Helpers;
use crate::pubsub::{self, Message};
use crate::registry::Registry;
use crate::stats::Stats;
use pantala_borrow::Wake;
use pantala_config::{EvictionPolicy, Settings};
use pantala_reactor::{ConnId, Remote};
use pantala_store::{AccessPolicy, ExpiryMode, Store, StoreOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// What a worker is told by another thread.
pub enum Mail {
    /// A command that ran on a helper thread is done.
    Helped {
        /// The connection it came from.
        conn: ConnId,
        /// Its reply.
        reply: Vec<u8>,
    },
    /// Close a connection (`CLIENT KILL`).
    Close {
        /// The connection.
        conn: ConnId,
        /// Whether replies already written are sent first.
        flush: bool,
    },
    /// A message for this worker's subscribers.
    Published(Arc<Message>),
    /// A line for all of this worker's monitors.
    Monitor(Arc<[u8]>),
    /// There are lines for a client that watches (memcached's `watch`).
    Watched(ConnId),
    /// A pause began or ended: paused connections look again.
    PauseChanged,
    /// Leave the loop after sending what is queued.
    Stop,
}

/// What was true when the process started.
#[derive(Clone, Debug)]
pub struct StartFacts {
    /// Unix time in ms.
    pub started_ms: i64,
    /// 40 hex digits, new at each start.
    pub run_id: String,
    /// The binary.
    pub executable: PathBuf,
    /// The configuration file, if one was given: an absolute path, since `CONFIG REWRITE` must work after a change of `dir`.
    pub config_file: Option<PathBuf>,
    /// Number of worker threads.
    pub workers: usize,
    /// Seed of this process's randomness.
    pub seed: u64,
    /// Memory of the machine.
    pub machine_bytes: u64,
}

impl StartFacts {
    /// The facts of this process, now.
    pub fn new(workers: usize, config_file: Option<PathBuf>) -> Self {
        let secret = || RandomState::new().build_hasher().finish();
        Self {
            started_ms: crate::worker::clock::unix_ms(),
            run_id: format!("{:016x}{:016x}{:08x}", secret(), secret(), secret() as u32),
            executable: std::env::current_exe().unwrap_or_default(),
            config_file,
            workers,
            seed: secret(),
            machine_bytes: machine_bytes(),
        }
    }
}

/// Total memory from `/proc/meminfo`; 0 when it cannot be read.
fn machine_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    line.and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024)
}

/// Listener index of the Redis port.
pub const RESP_LISTENER: u16 = 0;
/// Listener index of the memcached port.
pub const MEMCACHED_LISTENER: u16 = 1;
/// Listener index of the Unix socket.
pub const UNIX_LISTENER: u16 = 2;

/// The table of all commands: those on data and the engine's own. Errors: a bad `rename-command`.
pub fn all_commands(renames: &[(String, String)]) -> Result<Registry, String> {
    Registry::new(
        pantala_commands::families::ALL,
        crate::families::ALL,
        renames,
    )
}

/// `CLIENT PAUSE`.
#[derive(Default)]
pub struct Pause {
    /// Unix ms until which commands wait; 0: no pause.
    until_ms: AtomicI64,
    all: AtomicBool,
}

impl Pause {
    /// Begins or extends a pause: of all commands or of writes only. As in Redis, a longer pause stays and `ALL` is not narrowed.
    pub fn begin(&self, until_ms: i64, all: bool, now_ms: i64) {
        let running = self.until_ms.load(Acquire) > now_ms;
        self.all
            .store(all || (running && self.all.load(Relaxed)), Relaxed);
        let until_ms = if running {
            until_ms.max(self.until_ms.load(Relaxed))
        } else {
            until_ms
        };
        self.until_ms.store(until_ms, Release);
    }
    /// Ends it.
    pub fn end(&self) {
        self.until_ms.store(0, Release);
    }
    /// End of the pause that holds for a command now, if any.
    #[inline]
    pub fn holds(&self, writes: bool, now_ms: i64) -> Option<i64> {
        let until_ms = self.until_ms.load(Relaxed);
        (until_ms > now_ms && (writes || self.all.load(Relaxed))).then_some(until_ms)
    }
}

/// How uses of keys are recorded under a `maxmemory-policy`.
fn access_policy(settings: &Settings) -> AccessPolicy {
    AccessPolicy {
        lfu: matches!(
            settings.maxmemory_policy,
            EvictionPolicy::AllkeysLfu | EvictionPolicy::VolatileLfu
        ),
        lfu_log_factor: settings.lfu_log_factor,
        lfu_decay_minutes: settings.lfu_decay_time_minutes,
        no_touch: false,
    }
}

/// What all threads of the process share.
pub struct Shared {
    /// The data.
    pub store: Store,
    /// All commands.
    pub registry: Registry,
    /// Connected clients.
    pub clients: Clients,
    /// Counters.
    pub stats: Stats,
    /// Long commands.
    pub helpers: Helpers,
    /// Slow commands.
    pub slowlog: SlowLog,
    /// Latency events.
    pub latency: LatencyLog,
    /// What the server commands keep between calls.
    pub server: ServerState,
    /// What memcached's sessions share.
    pub memcached: crate::memcached::Common,
    /// Who listens to what.
    pub pubsub: pubsub::Registry,
    /// `CLIENT PAUSE`.
    pub pause: Pause,
    /// What was true at the start.
    pub facts: StartFacts,
    /// I/O driver and the reason for it, once the reactor runs.
    driver: OnceLock<(String, String)>,
    /// Expired keys are looked for (`DEBUG SET-ACTIVE-EXPIRE`).
    pub active_expire: AtomicBool,
    /// Highest `used_memory` seen.
    pub peak_bytes: AtomicU64,
    /// Connections refused because of `maxclients`; written by the acceptor.
    pub rejected_connections: Arc<AtomicU64>,
    /// Error replies by their code (`ERR`, `WRONGTYPE` …), for `INFO errorstats`.
    pub error_codes: Mutex<std::collections::BTreeMap<String, u64>>,
    /// What ends the process.
    shutdown: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// What a changed configuration asks of the server around the engine.
    on_settings: OnceLock<SettingsHook>,
    settings: RwLock<Arc<Settings>>,
    settings_version: AtomicU64,
    remote: Arc<LateRemote>,
}

/// Told of the old and the new configuration.
pub type SettingsHook = Box<dyn Fn(&Settings, &Settings) -> Result<(), String> + Send + Sync>;

/// Wakes workers once the reactor runs; before that there is nobody to wake.
#[derive(Default)]
struct LateRemote(OnceLock<Remote<Mail>>);

impl Wake for LateRemote {
    fn wake(&self, party: usize) {
        if let Some(remote) = self.0.get() {
            remote.wake(party);
        }
    }
}

impl Shared {
    /// Makes the store and everything around it. `helpers` threads are started by [`Helpers::start`]. Errors: no address space.
    pub fn new(
        settings: Settings,
        registry: Registry,
        facts: StartFacts,
        helpers: usize,
    ) -> std::io::Result<Self> {
        let remote = Arc::new(LateRemote::default());
        let parties = facts.workers + helpers;
        let options = StoreOptions {
            databases: u16::try_from(settings.databases).unwrap_or(u16::MAX),
            seed: None,
            access: access_policy(&settings),
            ..StoreOptions::for_threads(facts.workers, helpers)
        };
        let store = Store::new(&options, Arc::<LateRemote>::clone(&remote) as Arc<dyn Wake>)?;
        let stats = Stats::new(parties, registry.entries().len());
        Ok(Self {
            store,
            stats,
            helpers: Helpers::new(helpers),
            clients: Clients::default(),
            slowlog: SlowLog::default(),
            latency: LatencyLog::default(),
            server: ServerState::default(),
            memcached: crate::memcached::Common::new(facts.workers),
            pubsub: pubsub::Registry::new(
                facts.workers,
                facts.seed,
                settings.notify_keyspace_events,
            ),
            pause: Pause::default(),
            driver: OnceLock::new(),
            active_expire: AtomicBool::new(true),
            peak_bytes: AtomicU64::new(0),
            rejected_connections: Arc::default(),
            error_codes: Mutex::default(),
            shutdown: Mutex::default(),
            on_settings: OnceLock::new(),
            settings: RwLock::new(Arc::new(settings)),
            settings_version: AtomicU64::new(1),
            registry,
            facts,
            remote,
        })
    }

    /// Connects the store's wake-ups and the mail to the running workers. Called once.
    pub fn connect(&self, remote: Remote<Mail>) {
        // A second call has nothing to connect: all workers share one remote.
        let _ = self.remote.0.set(remote);
    }

    /// Sends mail to a worker; without a running reactor nobody reads it.
    pub fn send(&self, worker: usize, mail: Mail) {
        if let Some(remote) = self.remote.0.get() {
            remote.send(worker, mail);
        }
    }

    /// Sends mail to a worker that is to be woken later, by [`wake`](Self::wake).
    pub fn send_quietly(&self, worker: usize, mail: Mail) {
        if let Some(remote) = self.remote.0.get() {
            remote.send_quietly(worker, mail);
        }
    }

    /// Makes a worker look for its mail.
    pub fn wake(&self, worker: usize) {
        self.remote.wake(worker);
    }

    /// Sends mail to every worker.
    pub fn send_all(&self, mail: impl Fn() -> Mail) {
        for worker in 0..self.facts.workers {
            self.send(worker, mail());
        }
    }

    /// What commands do with expired keys: during a pause the data stand still, so those stay, though nobody sees them.
    #[inline]
    pub fn expiry_mode(&self, now_ms: i64) -> ExpiryMode {
        match self.pause.holds(true, now_ms) {
            Some(_) => ExpiryMode::Hide,
            None => ExpiryMode::Remove,
        }
    }

    /// The configuration in force.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes with each new configuration, so that workers notice with one load.
    #[inline]
    pub fn settings_version(&self) -> u64 {
        self.settings_version.load(Acquire)
    }

    /// Puts a changed configuration in force, after the server has done what it asks for.
    /// `change` sees the present configuration under the lock, so two changes at once do not undo each other.
    pub fn change_settings(
        &self,
        change: impl FnOnce(&Settings) -> Result<Settings, String>,
    ) -> Result<(), String> {
        let mut place = self
            .settings
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let new = change(&place)?;
        if let Some(hook) = self.on_settings.get() {
            hook(&place, &new)?;
        }
        self.store.set_access_policy(access_policy(&new));
        self.pubsub.set_events(new.notify_keyspace_events);
        *place = Arc::new(new);
        self.settings_version.fetch_add(1, Release);
        Ok(())
    }

    /// Counts an error reply by its code.
    pub fn count_error(&self, message: &str) {
        /// Redis stops counting codes when a client invents them (scripts may); 128 is its limit too.
        const CODES_MAX: usize = 128;
        let code = message.split(' ').next().unwrap_or_default();
        let mut codes = self
            .error_codes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = codes.get_mut(code) {
            *count += 1;
        } else if codes.len() < CODES_MAX {
            codes.insert(code.to_owned(), 1);
        }
    }

    /// Notes the I/O driver and why it was chosen.
    pub fn set_driver(&self, name: &str, reason: &str) {
        // The reactor starts once.
        let _ = self.driver.set((name.to_owned(), reason.to_owned()));
    }

    /// I/O driver and the reason for it; empty before the reactor runs.
    pub fn driver(&self) -> (&str, &str) {
        self.driver
            .get()
            .map_or(("", ""), |(name, reason)| (name, reason))
    }

    /// What is called, under the settings' lock, before a changed configuration is in force; an error keeps the old one.
    pub fn follow_settings(&self, hook: SettingsHook) {
        // The server starts once.
        let _ = self.on_settings.set(hook);
    }

    /// What ends the process.
    pub fn on_shutdown(&self, action: Box<dyn FnOnce() + Send>) {
        *self.shutdown.lock().unwrap_or_else(PoisonError::into_inner) = Some(action);
    }

    /// Bytes in use: data, tables, and the buffers of connections.
    pub fn used_memory(&self) -> u64 {
        let used = self.store.used_memory() + self.stats.sum(|party| &party.buffer_bytes);
        self.peak_bytes.fetch_max(used, Relaxed);
        used
    }

    /// Asks the process to end. The first call counts.
    pub fn request_shutdown(&self) {
        let action = self
            .shutdown
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(action) = action {
            action();
        }
    }
}
