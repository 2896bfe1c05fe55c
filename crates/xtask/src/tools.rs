//! Installs what the tests need on a Debian machine: packages only where a program is missing, and the Python and Node clients into
//! `target/test-tools`, with pinned versions. Services that Debian would start on installation are kept from starting while it runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::steps::works;

/// Programs that the suites start, and the Debian package of each.
const PROGRAMS: &[(&str, &str)] = &[
    ("redis-server", "redis-server"),
    ("redis-sentinel", "redis-sentinel"),
    ("redis-cli", "redis-tools"),
    ("memcached", "memcached"),
    ("python3", "python3"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("cc", "gcc"),
];

/// Client libraries from PyPI.
const PYTHON: &[&str] = &["redis==5.2.1", "pymemcache==4.0.0"];
/// Client libraries from npm.
const NODE: &[&str] = &["ioredis@5.4.2", "redis@4.7.0"];

/// Where Debian's packages look whether they may start a service.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// The folder of the private clients.
pub fn folder(root: &Path) -> PathBuf {
    root.join("target").join("test-tools")
}

/// Installs what is missing; quick when nothing is.
pub fn install(root: &Path) -> Result<PathBuf, String> {
    let mut missing: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, _)| !on_path(program))
        .map(|(_, package)| *package)
        .collect();
    if !on_path("python3") || !works("python3", &["-c", "import ensurepip, venv"]) {
        missing.push("python3-venv");
    }
    if !missing.is_empty() {
        debian(&missing)?;
    }
    let folder = folder(root);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    python(&folder)?;
    node(&folder)?;
    Ok(folder)
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian keeps some servers out of an ordinary user's PATH.
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|dir| dir.join(program).is_file())
}

fn debian(packages: &[&str]) -> Result<(), String> {
    println!("installing Debian packages: {}", packages.join(" "));
    if !on_path("apt-get") {
        return Err(format!(
            "this machine has no apt-get; please install: {}",
            packages.join(" ")
        ));
    }
    let policy = Policy::deny()?;
    let updated = run(&mut as_root("apt-get", &["update", "-q"]));
    let mut install = as_root(
        "apt-get",
        &["install", "-y", "-q", "--no-install-recommends"],
    );
    install.args(packages);
    let installed = run(&mut install);
    drop(policy);
    // An update that failed in part matters only if the packages could not be installed.
    installed.map_err(|error| match updated {
        Ok(()) => error,
        Err(update) => format!("{error} (and before that: {update})"),
    })
}

/// A `policy-rc.d` that forbids starting services, while it lives. One that was there before is put back.
struct Policy {
    saved: Option<PathBuf>,
}

impl Policy {
    fn deny() -> Result<Self, String> {
        let saved = if Path::new(POLICY).exists() {
            let aside = PathBuf::from(format!("{POLICY}.before-tests"));
            run(&mut as_root("mv", &[POLICY, &aside.to_string_lossy()]))?;
            Some(aside)
        } else {
            None
        };
        let policy = Self { saved };
        let script = format!("printf '#!/bin/sh\\nexit 101\\n' > {POLICY} && chmod 755 {POLICY}");
        run(&mut as_root("sh", &["-c", &script]))?;
        Ok(policy)
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        let result = match &self.saved {
            Some(aside) => run(&mut as_root("mv", &[&aside.to_string_lossy(), POLICY])),
            None => run(&mut as_root("rm", &["-f", POLICY])),
        };
        if let Err(error) = result {
            eprintln!("warning: {POLICY} could not be restored: {error}");
        }
    }
}

/// A command that runs as root: directly, or through sudo without asking for a password.
fn as_root(program: &str, args: &[&str]) -> Command {
    let root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|out| out.stdout.trim_ascii() == b"0");
    let mut command = if root {
        Command::new(program)
    } else {
        let mut command = Command::new("sudo");
        command
            .arg("-n")
            .arg("env")
            .arg("DEBIAN_FRONTEND=noninteractive")
            .arg(program);
        command
    };
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(args)
        .stdin(Stdio::null());
    command
}

fn run(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown} ended with {status}")),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

/// A private environment; made anew when the list of packages has changed.
fn python(folder: &Path) -> Result<(), String> {
    let venv = folder.join("venv");
    let stamp = folder.join("python.txt");
    if up_to_date(&stamp, PYTHON) && venv.join("bin/python").is_file() {
        return Ok(());
    }
    println!("installing for Python: {}", PYTHON.join(" "));
    run(Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(&venv)
        .stdin(Stdio::null()))?;
    let mut pip = Command::new(venv.join("bin/python"));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ])
    .args(PYTHON)
    .stdin(Stdio::null());
    run(&mut pip)?;
    write(&stamp, PYTHON)
}

fn node(folder: &Path) -> Result<(), String> {
    let home = folder.join("node");
    let stamp = folder.join("node.txt");
    if up_to_date(&stamp, NODE) && home.join("node_modules/ioredis").is_dir() {
        return Ok(());
    }
    println!("installing for Node: {}", NODE.join(" "));
    fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
    // Without a package of its own here, npm would look for one in the folders above.
    fs::write(home.join("package.json"), "{\"private\": true}\n")
        .map_err(|error| error.to_string())?;
    let mut npm = Command::new("npm");
    npm.args([
        "install",
        "--no-audit",
        "--no-fund",
        "--no-package-lock",
        "--loglevel=error",
    ])
    .args(NODE)
    .current_dir(&home)
    .stdin(Stdio::null());
    run(&mut npm)?;
    write(&stamp, NODE)
}

fn up_to_date(stamp: &Path, packages: &[&str]) -> bool {
    fs::read_to_string(stamp).is_ok_and(|text| text.trim() == packages.join(" "))
}

fn write(stamp: &Path, packages: &[&str]) -> Result<(), String> {
    fs::write(stamp, packages.join(" ")).map_err(|error| format!("{}: {error}", stamp.display()))
}
