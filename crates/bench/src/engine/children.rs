//! The servers that are running now, so that an interrupt stops them and removes their folders.

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

static RUNNING: Mutex<Vec<(Pid, PathBuf)>> = Mutex::new(Vec::new());

/// Time between asking a server to end and making it end.
const GRACE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(10);

/// Starts a server by `spawn` and notes it. Nothing can come between the two: an interrupt waits for the lock or has it.
///
/// # Errors
/// Whatever `spawn` says.
pub fn start(dir: &Path, spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    let mut running = lock();
    let child = spawn()?;
    running.push((Pid::from_raw(child.id() as i32), dir.to_owned()));
    Ok(child)
}

/// Forgets a server; called before its end is awaited, since its number may belong to another process after that.
pub fn unregister(pid: Pid) {
    lock().retain(|(running, _)| *running != pid);
}

fn lock() -> std::sync::MutexGuard<'static, Vec<(Pid, PathBuf)>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on an interrupt stops the running servers and ends this program with status 130.
///
/// # Errors
/// The system refused the signal handlers or the thread.
pub fn stop_on_signal() -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            if signals.forever().next().is_some() {
                // The lock is kept to the end, so that no server is started or forgotten meanwhile.
                let running = lock();
                for (pid, _) in running.iter() {
                    let _ = kill(*pid, Signal::SIGTERM);
                }
                let end = Instant::now() + GRACE;
                for (pid, dir) in running.iter() {
                    end_by(*pid, end);
                    let _ = fs::remove_dir_all(dir);
                }
                eprintln!("interrupted; {} server(s) stopped", running.len());
                std::process::exit(130);
            }
        })?;
    Ok(())
}

/// Waits for a server that was asked to end, and makes it end when it is still there at `end`.
fn end_by(pid: Pid, end: Instant) {
    while matches!(
        waitpid(pid, Some(WaitPidFlag::WNOHANG)),
        Ok(WaitStatus::StillAlive)
    ) {
        if Instant::now() >= end {
            let _ = kill(pid, Signal::SIGKILL);
            let _ = waitpid(pid, None);
            return;
        }
        thread::sleep(POLL);
    }
}
