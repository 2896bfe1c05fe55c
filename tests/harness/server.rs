//! Starts and stops the servers under test: ours (`PANTALA_BIN`, else `target/release/pantala`), and Debian's `redis-server` and `memcached`
//! as oracles. Each has a temporary folder and free loopback ports of its own, every wait is bounded, and each is ended by its process id
//! when it is dropped. It must never touch a server that it did not start.

use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::memcache::McConn;
use crate::resp::Conn;

/// How long a server may take from its start to its first answer.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a reply may take in ordinary tests.
pub const REPLY_TIMEOUT: Duration = Duration::from_secs(20);

static NEXT_DIR: AtomicU32 = AtomicU32::new(0);

/// What kind of server to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// This project's server.
    Pantala,
    /// `redis-server`.
    Redis,
    /// `memcached`.
    Memcached,
}

/// How to start a server.
#[derive(Debug, Clone)]
pub struct Options {
    kind: Kind,
    args: Vec<String>,
    memcached_port: bool,
    open_files: Option<u32>,
}

impl Options {
    /// Defaults for `kind`: loopback only, no persistence.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            args: Vec::new(),
            memcached_port: false,
            open_files: None,
        }
    }

    /// Adds `--name value` as both houses spell it.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.args.extend([format!("--{name}"), value.to_owned()]);
        self
    }

    /// Also opens the memcached port (ours only).
    pub fn with_memcached(mut self) -> Self {
        self.memcached_port = true;
        self
    }

    /// Starts the server under a limit of open files (`ulimit -n`).
    pub fn open_files(mut self, limit: u32) -> Self {
        self.open_files = Some(limit);
        self
    }

    /// Starts it and waits until it answers. A failure here is a failure of the test, with the server's own words.
    pub fn start(&self) -> Server {
        // A free port can be taken by someone else between our look and the server's bind: try again with another.
        let mut last = String::new();
        for _ in 0..5 {
            match self.try_start() {
                Ok(server) => return server,
                Err(error) => last = error,
            }
        }
        panic!("{:?} did not start: {last}", self.kind);
    }

    fn try_start(&self) -> Result<Server, String> {
        let program = program(self.kind)?;
        let dir = temp_dir().map_err(|error| format!("temporary folder: {error}"))?;
        let port = free_port().map_err(|error| format!("free port: {error}"))?;
        let memcached_port = match (self.kind, self.memcached_port) {
            (Kind::Memcached, _) => Some(port),
            (_, true) => Some(free_port().map_err(|error| format!("free port: {error}"))?),
            (_, false) => None,
        };
        let mut command = self.shell(&program);
        match self.kind {
            Kind::Memcached => {
                command.args([
                    "-l",
                    "127.0.0.1",
                    "-U",
                    "0",
                    "-u",
                    "root",
                    "-p",
                    &port.to_string(),
                ]);
            }
            Kind::Redis | Kind::Pantala => {
                command.args([
                    "--port",
                    &port.to_string(),
                    "--bind",
                    "127.0.0.1",
                    "--save",
                    "",
                ]);
                command
                    .args(["--appendonly", "no", "--enable-debug-command", "yes"])
                    .arg("--dir")
                    .arg(&dir);
                if let (Some(port), true) = (memcached_port, self.kind == Kind::Pantala) {
                    command.args(["--memcached-port", &port.to_string()]);
                }
            }
        }
        command.args(&self.args);
        if self.kind == Kind::Pantala {
            // For example `PANTALA_ARGS="--io epoll --threads 4"`: the same suites over another driver.
            let extra = std::env::var("PANTALA_ARGS").unwrap_or_default();
            command.args(extra.split_whitespace());
        }
        without_own_variables(&mut command);
        let log = dir.join("log");
        let out = File::create(&log).map_err(|error| error.to_string())?;
        let err = out.try_clone().map_err(|error| error.to_string())?;
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .current_dir(&dir)
            .spawn();
        let child = child.map_err(|error| format!("{}: {error}", program.display()))?;
        let mut server = Server {
            child,
            port,
            memcached_port,
            dir,
            kind: self.kind,
        };
        server.wait_until_it_answers(self.args.iter().any(|arg| arg == "--requirepass"))?;
        Ok(server)
    }

    fn shell(&self, program: &Path) -> Command {
        match self.open_files {
            None => Command::new(program),
            Some(limit) => {
                let mut command = Command::new("sh");
                command
                    .arg("-c")
                    .arg(format!("ulimit -n {limit} && exec \"$0\" \"$@\""))
                    .arg(program);
                command
            }
        }
    }
}

/// A running server; ended when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Its RESP port, or the memcached port of a memcached.
    pub port: u16,
    /// Its memcached port, where it has one.
    pub memcached_port: Option<u16>,
    dir: PathBuf,
    /// What it is.
    pub kind: Kind,
}

impl Server {
    /// Our server with its defaults.
    pub fn pantala() -> Self {
        Options::new(Kind::Pantala).start()
    }

    /// A `redis-server` with its defaults.
    pub fn redis() -> Self {
        Options::new(Kind::Redis).start()
    }

    /// A RESP connection with the ordinary time limit.
    pub fn conn(&self) -> Conn {
        self.conn_with(REPLY_TIMEOUT)
    }

    /// A RESP connection whose reads give up after `timeout`.
    pub fn conn_with(&self, timeout: Duration) -> Conn {
        Conn::open(self.port, timeout).expect("the server accepts connections")
    }

    /// A memcached connection.
    pub fn mc(&self) -> McConn {
        McConn::open(
            self.memcached_port.expect("started with a memcached port"),
            REPLY_TIMEOUT,
        )
        .expect("the memcached port accepts connections")
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its temporary folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What it has printed so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    /// Sends it a signal by name, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.pid().to_string())
            .status();
        assert!(status.is_ok_and(|s| s.success()), "kill -{name} failed");
    }

    /// Waits for its end; its exit code, or `None` when it was ended by a signal or still runs after `timeout`.
    pub fn wait_exit(&mut self, timeout: Duration) -> Option<i32> {
        let end = Instant::now() + timeout;
        while Instant::now() < end {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }

    /// Resident memory in bytes, from the kernel.
    pub fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let line = status
            .lines()
            .find_map(|l| l.strip_prefix("VmRSS:"))
            .unwrap_or_default();
        line.split_whitespace()
            .next()
            .and_then(|n| n.parse::<u64>().ok())
            .unwrap_or(0)
            * 1024
    }

    fn wait_until_it_answers(&mut self, password: bool) -> Result<(), String> {
        let end = Instant::now() + START_TIMEOUT;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("it ended with {status}; its log:\n{}", self.log()));
            }
            let answers = match self.kind {
                Kind::Memcached => McConn::open(self.port, Duration::from_secs(1))
                    .is_ok_and(|mut c| c.call(b"version\r\n").is_ok()),
                _ => Conn::open(self.port, Duration::from_secs(1))
                    .and_then(|mut c| c.call(&["PING"]))
                    .is_ok_and(|reply| {
                        reply.bytes() == Some(b"PONG")
                            || (password && reply.text().starts_with("NOAUTH"))
                    }),
            };
            let memcached = self.memcached_port.is_none_or(|port| {
                McConn::open(port, Duration::from_secs(1))
                    .is_ok_and(|mut c| c.call(b"version\r\n").is_ok())
            });
            if answers && memcached {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(format!(
                    "no answer after {} s; its log:\n{}",
                    START_TIMEOUT.as_secs(),
                    self.log()
                ));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(20).collect();
            eprintln!("--- last lines of {:?} (port {}):", self.kind, self.port);
            tail.iter().rev().for_each(|line| eprintln!("    {line}"));
        }
        // Errors here mean that it is gone already, which is what we want.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// The suites are steered by variables that begin like those which configure the server: it must not see them.
pub fn without_own_variables(command: &mut Command) {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(|name| name.starts_with("PANTALA_")) {
        command.env_remove(name);
    }
}

/// The folder of the whole project.
pub fn project_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the suites live one level below the project")
        .to_path_buf()
}

/// The folder with the Python and Node clients that `cargo xtask test` installs.
pub fn tools_dir() -> PathBuf {
    std::env::var_os("PANTALA_TEST_TOOLS")
        .map_or_else(|| project_dir().join("target/test-tools"), PathBuf::from)
}

/// The program of each kind, or a message that says how to get it.
fn program(kind: Kind) -> Result<PathBuf, String> {
    let name = match kind {
        Kind::Redis => "redis-server",
        Kind::Memcached => "memcached",
        Kind::Pantala => {
            let path = std::env::var_os("PANTALA_BIN").map_or_else(
                || project_dir().join("target/release/pantala"),
                PathBuf::from,
            );
            return if path.is_file() {
                Ok(path)
            } else {
                Err(format!(
                    "{} does not exist: build it with `cargo build --release`, or run `cargo xtask test`",
                    path.display()
                ))
            };
        }
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
        .ok_or_else(|| {
            format!("{name} is not on PATH: `cargo xtask test` installs what the suites need")
        })
}

fn temp_dir() -> io::Result<PathBuf> {
    let number = NEXT_DIR.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("pantala-tests-{}-{number}", std::process::id()));
    fs::create_dir_all(&dir)?;
    Ok(dir)
}

/// A port that nobody listens on at this moment.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
