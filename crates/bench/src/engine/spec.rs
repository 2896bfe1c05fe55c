//! Which engine a label means, and the arguments that give each kind the same port, threads, memory and no persistence.

use super::process::ServerOptions;
use crate::load::encode::Protocol;
use serde::Serialize;
use std::env;
use std::path::{Path, PathBuf};

/// A kind of server: it decides the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// This project's server.
    Pantala,
    /// Redis, and Valkey, which takes the same arguments.
    Redis,
    /// KeyDB.
    Keydb,
    /// Dragonfly.
    Dragonfly,
    /// Memcached.
    Memcached,
}

/// The program of each kind, in the order in which they are tried.
const PROGRAMS: [(&str, EngineKind); 6] = [
    ("pantala", EngineKind::Pantala),
    ("redis-server", EngineKind::Redis),
    ("valkey-server", EngineKind::Redis),
    ("keydb-server", EngineKind::Keydb),
    ("dragonfly", EngineKind::Dragonfly),
    ("memcached", EngineKind::Memcached),
];

/// Connections that each engine is told to allow.
const CLIENTS_MAX: &str = "20000";

/// One engine to measure.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct EngineSpec {
    /// What the results call it.
    pub label: String,
    /// Its kind.
    pub kind: EngineKind,
    /// Its program.
    pub program: PathBuf,
    /// Arguments that the user added.
    pub extra_args: Vec<String>,
}

impl EngineSpec {
    /// Reads `name`, or `label=path[ args]`. The kind follows from the program's name, or else from the label's start.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (label, rest) = text.split_once('=').unwrap_or((text, ""));
        let mut words = rest.split_ascii_whitespace();
        let program = match words.next() {
            Some(path) => find_program(path),
            None if label == "pantala" => our_engine(),
            None => find_program(label),
        };
        let program = program.ok_or_else(|| {
            format!("engine {label:?}: expected a program that exists, got {text:?}")
        })?;
        let file = program.file_name().and_then(|name| name.to_str());
        let kind = kind_of(file.unwrap_or_default())
            .or_else(|| kind_of(label))
            .ok_or_else(|| {
                let names: Vec<_> = PROGRAMS.iter().map(|(name, _)| *name).collect();
                format!(
                    "engine {label:?}: expected a program or label that starts with one of {}",
                    names.join(", ")
                )
            })?;
        Ok(Self {
            label: label.to_owned(),
            kind,
            program,
            extra_args: words.map(str::to_owned).collect(),
        })
    }

    /// Whether it speaks `protocol`.
    pub fn speaks(&self, protocol: Protocol) -> bool {
        match self.kind {
            EngineKind::Pantala | EngineKind::Dragonfly => true,
            EngineKind::Redis | EngineKind::Keydb => protocol == Protocol::Resp,
            EngineKind::Memcached => protocol == Protocol::Memcached,
        }
    }

    /// The arguments for a start.
    pub fn arguments(&self, options: &ServerOptions, port: u16, dir: &Path) -> Vec<String> {
        let dir = dir.display().to_string();
        let mut args = match self.kind {
            EngineKind::Pantala => pantala_arguments(options, port, &dir),
            EngineKind::Redis | EngineKind::Keydb => {
                redis_arguments(options, port, &dir, self.kind == EngineKind::Keydb)
            }
            EngineKind::Dragonfly => dragonfly_arguments(options, port, &dir),
            EngineKind::Memcached => memcached_arguments(options, port),
        };
        args.extend(self.extra_args.iter().cloned());
        args
    }

    /// The option that makes the program print its version.
    pub fn version_argument(&self) -> &'static str {
        match self.kind {
            EngineKind::Memcached => "-V",
            _ => "--version",
        }
    }
}

fn pantala_arguments(options: &ServerOptions, port: u16, dir: &str) -> Vec<String> {
    let threads = options.threads.to_string();
    let port = port.to_string();
    let memcached = options.protocol == Protocol::Memcached;
    let mut args = words(&["--bind", "127.0.0.1", "--threads", &threads, "--io", "auto"]);
    args.extend(words(&["--save", "", "--appendonly", "no", "--dir", dir]));
    args.extend(if memcached {
        words(&["--port", "0", "--memcached-port", &port])
    } else {
        words(&["--port", &port])
    });
    args.extend(maxmemory_arguments(options));
    args
}

fn redis_arguments(options: &ServerOptions, port: u16, dir: &str, keydb: bool) -> Vec<String> {
    let threads = options.threads.to_string();
    let mut args = words(&["--bind", "127.0.0.1", "--port", &port.to_string()]);
    args.extend(words(&["--save", "", "--appendonly", "no", "--dir", dir]));
    args.extend(words(&["--maxclients", CLIENTS_MAX, "--daemonize", "no"]));
    if keydb {
        args.extend(words(&["--server-threads", &threads]));
    } else if options.threads > 1 {
        args.extend(words(&["--io-threads", &threads]));
    }
    args.extend(maxmemory_arguments(options));
    args
}

fn dragonfly_arguments(options: &ServerOptions, port: u16, dir: &str) -> Vec<String> {
    let port_option = match options.protocol {
        Protocol::Resp => "--port",
        Protocol::Memcached => "--memcached_port",
    };
    let threads = options.threads.to_string();
    let mut args = words(&["--bind", "127.0.0.1", port_option, &port.to_string()]);
    args.extend(words(&["--proactor_threads", &threads]));
    args.extend(words(&["--dir", dir, "--dbfilename", ""]));
    args.extend(maxmemory_arguments(options));
    args
}

/// Memcached always has a limit: where none is asked for, three quarters of the machine.
fn memcached_arguments(options: &ServerOptions, port: u16) -> Vec<String> {
    let limit_bytes = options
        .maxmemory_bytes
        .unwrap_or(options.memory_bytes / 4 * 3);
    let megabytes = (limit_bytes >> 20).max(1).to_string();
    let threads = options.threads.to_string();
    let mut args = words(&["-l", "127.0.0.1", "-p", &port.to_string(), "-U", "0"]);
    args.extend(words(&[
        "-t",
        &threads,
        "-m",
        &megabytes,
        "-c",
        CLIENTS_MAX,
    ]));
    // It refuses to run as root unless it is told so.
    if nix::unistd::geteuid().is_root() {
        args.extend(words(&["-u", "root"]));
    }
    args
}

fn maxmemory_arguments(options: &ServerOptions) -> Vec<String> {
    options.maxmemory_bytes.map_or_else(Vec::new, |bytes| {
        words(&["--maxmemory", &bytes.to_string()])
    })
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn kind_of(name: &str) -> Option<EngineKind> {
    let known = PROGRAMS.iter().copied();
    let short = [
        ("redis", EngineKind::Redis),
        ("valkey", EngineKind::Redis),
        ("keydb", EngineKind::Keydb),
    ];
    known
        .chain(short)
        .find(|(program, _)| name.starts_with(program))
        .map(|(_, kind)| kind)
}

/// Every engine on this machine that speaks `protocol`, ours first.
pub fn find_all(protocol: Protocol) -> Vec<EngineSpec> {
    PROGRAMS
        .iter()
        .filter_map(|(name, _)| EngineSpec::parse(name).ok())
        .filter(|spec| spec.speaks(protocol))
        .collect()
}

/// Our own server: beside this program, in `target/release`, or on PATH.
fn our_engine() -> Option<PathBuf> {
    let beside = env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.join("pantala")));
    beside
        .into_iter()
        .chain([PathBuf::from("target/release/pantala")])
        .find(|path| path.is_file())
        .or_else(|| find_program("pantala"))
}

/// A program by its path, or by its name on PATH.
fn find_program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        let path = PathBuf::from(name);
        return path.is_file().then_some(path);
    }
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_with_path_and_arguments() {
        let spec = EngineSpec::parse("redis-io2=/bin/sh --io-threads 2").unwrap();
        assert_eq!(spec.kind, EngineKind::Redis);
        assert_eq!(spec.program, Path::new("/bin/sh"));
        assert_eq!(spec.extra_args, ["--io-threads", "2"]);
        assert!(EngineSpec::parse("redis=/no/such/file").is_err());
        assert!(EngineSpec::parse("other=/bin/sh").is_err());
    }

    #[test]
    fn each_kind_gets_its_own_arguments() {
        let options = ServerOptions {
            protocol: Protocol::Memcached,
            threads: 2,
            cores: vec![],
            maxmemory_bytes: Some(64 << 20),
            memory_bytes: 1 << 30,
        };
        let args = |kind| {
            let spec = EngineSpec {
                label: String::new(),
                kind,
                program: PathBuf::new(),
                extra_args: vec!["last".to_owned()],
            };
            spec.arguments(&options, 1234, Path::new("/d")).join(" ")
        };
        let ours = args(EngineKind::Pantala);
        assert!(ours.contains("--port 0") && ours.contains("--memcached-port 1234"));
        assert!(ours.contains("--threads 2") && ours.contains("--maxmemory 67108864"));
        let theirs = args(EngineKind::Memcached);
        assert!(theirs.contains("-m 64") && theirs.contains("-p 1234") && theirs.ends_with("last"));
        assert!(args(EngineKind::Redis).contains("--io-threads 2"));
    }
}
