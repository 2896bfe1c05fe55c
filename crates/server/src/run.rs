//! From settings to a running server, and back to nothing.

use crate::{listen, logger};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use pantala_config::{IoDriver, Loaded, Settings};
use pantala_engine::helpers::Helpers;
use pantala_engine::shared::all_commands;
use pantala_engine::{Mail, Shared, StartFacts, Worker};
use pantala_reactor::{Acceptor, AcceptorOptions, IoChoice, Pool, PoolOptions};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// File descriptors that the process needs besides those of clients.
const OWN_DESCRIPTORS: u64 = 64;

/// Runs the server until it is asked to end. Errors are for the person who started it.
pub fn run(loaded: Loaded) -> Result<(), String> {
    let mut settings = loaded.settings;
    logger::start(&settings)?;
    for warning in &loaded.warnings {
        log::warn!("{warning}");
    }
    // Before the folder changes, to which the path may be relative.
    let config_file = loaded
        .config_file
        .map(|path| std::path::absolute(&path).unwrap_or(path));
    std::env::set_current_dir(&settings.dir)
        .map_err(|error| format!("Can't chdir to '{}': {error}", settings.dir))?;
    make_room_for_clients(&mut settings);
    let pidfile = settings.pidfile.clone();
    let server = Server::start(settings, config_file)?;
    let end = ways_to_end(&server.shared)?;
    if !pidfile.is_empty() {
        std::fs::write(&pidfile, format!("{}\n", std::process::id()))
            .map_err(|error| format!("Can't write the pid file {pidfile}: {error}"))?;
    }
    log::info!("Server initialized");
    log::info!("Ready to accept connections");

    // Whoever can send is kept alive by `shared`, so this waits for the first request to end.
    let reason = end.recv().unwrap_or("its senders are gone");
    log::info!("Ending: {reason}");
    server.stop();
    if !pidfile.is_empty() {
        // It may have been removed by hand.
        let _ = std::fs::remove_file(&pidfile);
    }
    log::info!("Pantala is now ready to exit, bye bye...");
    Ok(())
}

/// All threads of a running server.
struct Server {
    shared: Arc<Shared>,
    pool: Pool<Mail>,
    helpers: Vec<JoinHandle<()>>,
    /// Taken out when the server ends; the settings' hook has a share in it.
    acceptor: Arc<Mutex<Option<Acceptor>>>,
}

impl Server {
    fn start(settings: Settings, config_file: Option<PathBuf>) -> Result<Self, String> {
        let workers = match settings.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads as usize,
        };
        log::info!(
            "Pantala {} is starting, pid {}, {workers} threads",
            env!("CARGO_PKG_VERSION"),
            std::process::id()
        );
        let registry = all_commands(&settings.renamed_commands.0)?;
        let facts = StartFacts::new(workers, config_file);
        // Few are enough: they run only what takes long, and more would take the cores from the workers.
        let helpers = workers.div_ceil(2).clamp(2, 8);
        let shared = Shared::new(settings, registry, facts, helpers)
            .map_err(|error| format!("Can't reserve address space: {error}"))?;
        let shared = Arc::new(shared);
        let max_clients = Arc::new(AtomicUsize::new(shared.settings().maxclients as usize));
        let pool = start_workers(&shared, &max_clients)?;
        let helpers = Helpers::start(&shared)
            .map_err(|error| format!("Can't start the helper threads: {error}"))?;
        let acceptor = start_listening(&shared, &pool, max_clients)?;
        Ok(Self {
            shared,
            pool,
            helpers,
            acceptor,
        })
    }

    /// Nobody new, then what is queued is sent, then the threads end.
    fn stop(self) {
        let acceptor = self
            .acceptor
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(acceptor) = acceptor {
            acceptor.stop();
        }
        self.shared.send_all(|| Mail::Stop);
        self.pool.join();
        self.shared.helpers.close();
        for thread in self.helpers {
            // A helper that panicked has said so.
            let _ = thread.join();
        }
        let socket = &self.shared.settings().unixsocket;
        if !socket.is_empty() {
            // It may have been removed by hand.
            let _ = std::fs::remove_file(socket);
        }
    }
}

fn start_workers(
    shared: &Arc<Shared>,
    max_clients: &Arc<AtomicUsize>,
) -> Result<Pool<Mail>, String> {
    let settings = shared.settings();
    let options = PoolOptions {
        workers: shared.facts.workers,
        io: match settings.io {
            IoDriver::Auto => IoChoice::Auto,
            IoDriver::Uring => IoChoice::Uring,
            IoDriver::Epoll => IoChoice::Epoll,
        },
        pin: settings.pin_threads,
        max_clients: Arc::clone(max_clients),
    };
    let for_workers = Arc::clone(shared);
    let pool = Pool::start(options, move |worker, _| {
        Worker::new(Arc::clone(&for_workers), worker)
    })
    .map_err(|error| format!("Can't start the workers: {error}"))?;
    let (driver, reason) = pool.driver_report();
    log::info!("I/O driver {}: {reason}", driver.name());
    shared.set_driver(driver.name(), &reason);
    shared.connect(pool.remote());
    Ok(pool)
}

fn start_listening(
    shared: &Arc<Shared>,
    pool: &Pool<Mail>,
    max_clients: Arc<AtomicUsize>,
) -> Result<Arc<Mutex<Option<Acceptor>>>, String> {
    let settings = shared.settings();
    let keepalive_s = Arc::new(AtomicU32::new(settings.tcp_keepalive_seconds));
    let options = AcceptorOptions {
        tcp_keepalive_s: Arc::clone(&keepalive_s),
        rejected: Arc::clone(&shared.rejected_connections),
        log: Box::new(|line| log::warn!("{line}")),
    };
    let acceptor = Acceptor::start(pool.intake(), options)
        .map_err(|error| format!("Can't start the accept thread: {error}"))?;
    let listeners = listen::resp(&settings)?
        .into_iter()
        .chain(listen::memcached(&settings)?)
        .chain(listen::unix(&settings)?);
    listeners.for_each(|listener| acceptor.add(listener));
    for (port, protocol) in [
        (settings.port, "Redis"),
        (settings.memcached_port, "memcached"),
    ] {
        if port != 0 {
            log::info!("Listening on port {port} for {protocol} clients");
        }
    }
    let acceptor = Arc::new(Mutex::new(Some(acceptor)));
    follow_settings(shared, &acceptor, max_clients, keepalive_s);
    Ok(acceptor)
}

/// Changed settings reach what lives outside the engine: listeners, limits, the log.
fn follow_settings(
    shared: &Shared,
    acceptor: &Arc<Mutex<Option<Acceptor>>>,
    max_clients: Arc<AtomicUsize>,
    keepalive_s: Arc<AtomicU32>,
) {
    let acceptor = Arc::clone(acceptor);
    let hook = move |old: &Settings, new: &Settings| {
        if let Some(acceptor) = acceptor
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
        {
            listen::move_resp(acceptor, old, new)?;
        }
        if old.dir != new.dir {
            std::env::set_current_dir(&new.dir).map_err(|error| error.to_string())?;
        }
        if new.maxclients > old.maxclients
            && raise_descriptors(u64::from(new.maxclients) + OWN_DESCRIPTORS)
                < u64::from(new.maxclients) + OWN_DESCRIPTORS
        {
            return Err(format!(
                "The operating system is not able to handle the specified number of clients, try with {}",
                raise_descriptors(0).saturating_sub(OWN_DESCRIPTORS)
            ));
        }
        max_clients.store(new.maxclients as usize, Relaxed);
        keepalive_s.store(new.tcp_keepalive_seconds, Relaxed);
        logger::set_level(new.loglevel);
        Ok(())
    };
    shared.follow_settings(Box::new(hook));
}

/// SIGINT, SIGTERM and the `SHUTDOWN` command.
fn ways_to_end(shared: &Shared) -> Result<Receiver<&'static str>, String> {
    let (sender, end) = channel();
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])
        .map_err(|error| format!("Can't handle signals: {error}"))?;
    let by_signal = sender.clone();
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for (nth, signal) in signals.forever().enumerate() {
                if nth != 0 {
                    // Asked twice: the person does not want to wait.
                    std::process::exit(1);
                }
                let reason = if signal == SIGINT {
                    "received SIGINT"
                } else {
                    "received SIGTERM"
                };
                // The receiver is gone when the server is ending already.
                let _ = by_signal.send(reason);
            }
        })
        .map_err(|error| format!("Can't start the signal thread: {error}"))?;
    shared.on_shutdown(Box::new(move || {
        // The receiver is gone when the server is ending already.
        let _ = sender.send("user requested shutdown");
    }));
    Ok(end)
}

/// Raises the limit of open files for `maxclients`, or lowers `maxclients` to what the system allows.
fn make_room_for_clients(settings: &mut Settings) {
    let wanted = u64::from(settings.maxclients) + OWN_DESCRIPTORS;
    let have = raise_descriptors(wanted);
    if have < wanted {
        let clients = have.saturating_sub(OWN_DESCRIPTORS).max(1);
        log::warn!("The system allows {have} open files: maxclients has been reduced to {clients}");
        settings.maxclients = u32::try_from(clients).unwrap_or(u32::MAX);
    }
}

/// Raises the limit of open files to `wanted` as far as that is allowed, and says what it is then.
fn raise_descriptors(wanted: u64) -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return 0;
    };
    let raised = wanted.min(hard);
    if raised <= soft || setrlimit(Resource::RLIMIT_NOFILE, raised, hard).is_err() {
        return soft;
    }
    raised
}
