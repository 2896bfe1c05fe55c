//! One running server: started on a free loopback port with its own folder, stopped by its process id.

use super::children;
use super::spec::EngineSpec;
use crate::affinity;
use crate::error::BenchError;
use crate::load::control_client::ControlClient;
use crate::load::encode::Protocol;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How a server is started; the same for every engine of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerOptions {
    /// The language it must speak.
    pub protocol: Protocol,
    /// Its threads.
    pub threads: usize,
    /// The processors it may use; empty for all.
    pub cores: Vec<usize>,
    /// Its memory limit, if it has one.
    pub maxmemory_bytes: Option<u64>,
    /// The machine's memory, for engines that need a limit in any case.
    pub memory_bytes: u64,
}

/// A running server. It is stopped, and its folder removed, when this goes.
#[derive(Debug)]
pub struct Server {
    child: Child,
    pid: Pid,
    dir: PathBuf,
    address: SocketAddr,
    protocol: Protocol,
}

const START_LIMIT: Duration = Duration::from_secs(20);
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// Another program may take the free port between our look and the server's start; then the next port is tried.
const ATTEMPTS: u32 = 3;
const POLL: Duration = Duration::from_millis(20);
/// How much of a server's output an error message shows.
const OUTPUT_BYTES: usize = 2_000;

/// Why a start failed.
enum NotStarted {
    /// The program ended; the port may have been taken, so another try makes sense.
    Ended(String),
    /// It runs without answering, or cannot be run at all.
    Silent(String),
}

impl Server {
    /// Starts `spec` and waits until it answers.
    ///
    /// # Errors
    /// It does not start or does not answer; the message holds the end of what it printed.
    pub fn start(spec: &EngineSpec, options: &ServerOptions) -> Result<Self, BenchError> {
        if !spec.speaks(options.protocol) {
            return Err(BenchError::Options(format!(
                "{} does not speak the {:?} protocol",
                spec.label, options.protocol
            )));
        }
        let mut attempt = 1;
        loop {
            match Self::try_start(spec, options) {
                Ok(server) => return Ok(server),
                Err(NotStarted::Ended(_)) if attempt < ATTEMPTS => attempt += 1,
                Err(NotStarted::Ended(reason) | NotStarted::Silent(reason)) => {
                    return Err(BenchError::Start {
                        engine: spec.label.clone(),
                        reason,
                    });
                }
            }
        }
    }

    fn try_start(spec: &EngineSpec, options: &ServerOptions) -> Result<Self, NotStarted> {
        let mut server = Self::launch(spec, options).map_err(NotStarted::Silent)?;
        let start = Instant::now();
        loop {
            if let Ok(Some(status)) = server.child.try_wait() {
                let output = server.output();
                return Err(NotStarted::Ended(format!(
                    "it ended with {status}\n{output}"
                )));
            }
            let answer = server
                .client(Duration::from_secs(1))
                .and_then(|mut client| client.ping());
            match answer {
                Ok(()) => return Ok(server),
                Err(error) if start.elapsed() > START_LIMIT => {
                    return Err(NotStarted::Silent(format!(
                        "it did not answer within {} s: {error}\n{}",
                        START_LIMIT.as_secs(),
                        server.output()
                    )));
                }
                Err(_) => thread::sleep(POLL),
            }
        }
    }

    /// Starts the program, without a look at whether it answers.
    fn launch(spec: &EngineSpec, options: &ServerOptions) -> Result<Self, String> {
        let dir = make_folder().map_err(|error| format!("folder for its files: {error}"))?;
        let port = free_port().map_err(|error| format!("free port: {error}"))?;
        let child =
            children::start(&dir, || spawn(spec, options, port, &dir)).map_err(|error| {
                let _ = fs::remove_dir_all(&dir);
                format!("{}: {error}", spec.program.display())
            })?;
        Ok(Self {
            pid: Pid::from_raw(child.id() as i32),
            child,
            dir,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            protocol: options.protocol,
        })
    }

    /// A plain client of this server.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn client(&self, timeout: Duration) -> io::Result<ControlClient> {
        ControlClient::open(self.address, self.protocol, timeout)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Adds to `error` what the server printed last, if it has ended meanwhile: that is then the cause.
    pub fn explain(&self, error: BenchError) -> BenchError {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::Pid(self.pid), flags) {
            Ok(WaitStatus::StillAlive) | Err(_) => error,
            Ok(status) => BenchError::Died {
                reason: format!("{status:?}, {error}\n{}", self.output()),
            },
        }
    }

    /// The end of what it printed.
    pub fn output(&self) -> String {
        let text = fs::read(output_path(&self.dir)).unwrap_or_default();
        String::from_utf8_lossy(&text[text.len().saturating_sub(OUTPUT_BYTES)..]).into_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        children::unregister(self.pid);
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = kill(self.pid, Signal::SIGTERM);
        }
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if start.elapsed() > STOP_LIMIT {
                let _ = self.child.kill();
                let _ = self.child.wait();
                break;
            }
            thread::sleep(POLL);
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl EngineSpec {
    /// The first line that the program prints when asked for its version.
    pub fn version(&self) -> String {
        let output = Command::new(&self.program)
            .arg(self.version_argument())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .and_then(|mut child| {
                let mut text = String::new();
                if let Some(out) = child.stdout.take() {
                    out.take(4096).read_to_string(&mut text)?;
                }
                child.wait()?;
                Ok(text)
            });
        match output.as_deref().map(|text| text.lines().next()) {
            Ok(Some(line)) => line.trim().to_owned(),
            _ => "unknown".to_owned(),
        }
    }
}

/// Starts the program on its processors: affinity is inherited, so a thread that pinned itself does the start.
fn spawn(spec: &EngineSpec, options: &ServerOptions, port: u16, dir: &Path) -> io::Result<Child> {
    let output = File::create(output_path(dir))?;
    let mut command = Command::new(&spec.program);
    command
        .args(spec.arguments(options, port, dir))
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    thread::scope(|scope| {
        scope
            .spawn(|| {
                affinity::pin_this_thread(&options.cores)?;
                command.spawn()
            })
            .join()
            .expect("starting a program does not panic")
    })
}

fn output_path(dir: &Path) -> PathBuf {
    dir.join("output.txt")
}

/// A new folder for one server's files.
fn make_folder() -> io::Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("pantala-bench-{}-{number}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    fs::create_dir(&dir)?;
    Ok(dir)
}

fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}
