//! Runs memcached's own test files, from a copy of its sources that the caller names, against a plain `memcached` and against this server. Every file
//! that the plain one passes must pass here too, but for tests that are listed here with a reason; a file that needs options of the real daemon fails for both and says nothing.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Seconds that one file may take.
const FILE_SECONDS: &str = "25";

/// Tests in files that the plain one passes which fail here on purpose: file, test, why. Nothing else in the file may fail.
const INTENDED: &[(&str, &str, &str)] = &[(
    "issue_42.t",
    "not ok 11 - Check allocated size: ",
    "it wants ten small items to take more than 500 bytes, and here they take less",
)];

/// A server that is ended when dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Errors mean that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `cargo xtask memcached-tests DIR [FILE]`.
pub fn run(root: &Path, sources: &str, only: Option<&str>) -> Result<bool, String> {
    let sources = prepare(root, Path::new(sources))?;
    let binary = std::env::var_os("PANTALA_BIN")
        .map_or_else(|| root.join("target/release/pantala"), PathBuf::from);
    let mut files: Vec<String> = fs::read_dir(sources.join("t"))
        .map_err(|error| format!("{}/t: {error}", sources.display()))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        // The proxy is another program that happens to be built into memcached.
        .filter(|name| {
            name.ends_with(".t")
                && !name.starts_with("proxy")
                && only.is_none_or(|wanted| name == wanted)
        })
        .collect();
    files.sort();
    let (mut passed, mut failed, mut neither) = (0, 0, 0);
    for file in &files {
        let (plain, plain_text) = one(&sources, file, &|port| memcached(port))?;
        if !plain {
            neither += 1;
            if only.is_some() {
                println!("{plain_text}");
            }
            continue;
        }
        let (ours, text) = one(&sources, file, &|port| pantala(&binary, port))?;
        if ours {
            passed += 1;
            println!("ok   {file}");
        } else if let Some(reason) = intended(file, &text) {
            passed += 1;
            println!("ok   {file}, but for one test: {reason}");
        } else {
            failed += 1;
            println!("FAIL {file}");
            let wrong = text
                .lines()
                .filter(|line| line.starts_with("not ok") || line.starts_with('#'))
                .take(12);
            wrong.for_each(|line| println!("       {line}"));
        }
    }
    println!(
        "{neither} files do not pass against a plain memcached either\n{passed} passed, {failed} failed"
    );
    Ok(failed == 0)
}

/// Why a file fails, when that is on purpose.
fn intended(file: &str, text: &str) -> Option<&'static str> {
    let (_, test, reason) = INTENDED.iter().find(|(name, ..)| *name == file)?;
    let mut failed = text.lines().filter(|line| line.starts_with("not ok"));
    let only = failed.next()?.starts_with(test) && failed.next().is_none();
    only.then_some(reason)
}

/// A copy of the test files beside a link that they expect: they ask a `memcached-debug` for its options, even when it is not the one tested.
fn prepare(root: &Path, sources: &Path) -> Result<PathBuf, String> {
    let folder = root.join("target").join("memcached-tests");
    let link = folder.join("memcached-debug");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let copied = Command::new("cp")
        .arg("-r")
        .arg(sources.join("t"))
        .arg(&folder)
        .status();
    if !copied.is_ok_and(|status| status.success()) {
        return Err(format!("cannot copy {}/t", sources.display()));
    }
    if !link.exists() {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let plain = std::env::split_paths(&path)
            .map(|dir| dir.join("memcached"))
            .find(|file| file.is_file());
        let plain = plain.ok_or("memcached is not on PATH: `cargo xtask tools` installs it")?;
        std::os::unix::fs::symlink(plain, &link)
            .map_err(|error| format!("{}: {error}", link.display()))?;
    }
    Ok(folder)
}

fn memcached(port: &str) -> Command {
    let mut command = Command::new("memcached");
    command.args(["-l", "127.0.0.1", "-u", "root", "-U", "0", "-p", port]);
    command
}

fn pantala(binary: &Path, port: &str) -> Command {
    let mut command = Command::new(binary);
    // Variables that begin so configure the server, but this one is ours.
    command.env_remove("PANTALA_BIN");
    command.args([
        "--port",
        "0",
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--memcached-port",
        port,
    ]);
    command
}

/// Runs one file against a fresh server: whether it passed, and what it printed.
fn one(
    sources: &Path,
    file: &str,
    start: &dyn Fn(&str) -> Command,
) -> Result<(bool, String), String> {
    let server = launch(start)?;
    let out = Command::new("timeout")
        .args([FILE_SECONDS, "perl", "-I", "t/lib", &format!("t/{file}")])
        .env("T_MEMD_USE_DAEMON", format!("127.0.0.1:{}", server.port))
        .current_dir(sources)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("perl: {error}"))?;
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    Ok((out.status.success() && text.contains("ok 1"), text))
}

fn launch(start: &dyn Fn(&str) -> Command) -> Result<Server, String> {
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|l| l.local_addr())
        .map_err(|error| error.to_string())?
        .port();
    let mut command = start(&port.to_string());
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let server = Server {
        child: child.map_err(|error| format!("{command:?}: {error}"))?,
        port,
    };
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(server);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(format!("{command:?} did not open port {port}"))
}
