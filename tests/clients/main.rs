//! Real clients do real work: redis-py, pymemcache, ioredis, node-redis and redis-cli, each with its scenario. The libraries are installed by
//! `cargo xtask test` (or `cargo xtask tools`) into a private folder.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use pantala_tests::resp::{Value, encode};
use pantala_tests::server::{Kind, Options, Server, tools_dir};

fn script(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("clients")
        .join(path)
}

/// Runs a command for at most two minutes; its output must succeed and end with `ok`.
fn must_end_with_ok(program: &Path, args: &[&str], home: Option<&Path>) {
    let mut command = Command::new("timeout");
    command
        .arg("120")
        .arg(program)
        .args(args)
        .stdin(Stdio::null());
    if let Some(home) = home {
        command.env("NODE_PATH", home);
    }
    let out = command
        .output()
        .expect("timeout is part of every Debian system");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    assert!(
        out.status.success() && out.stdout.ends_with(b"ok\n"),
        "{} {args:?}: {}\n{text}",
        program.display(),
        out.status
    );
}

fn python(name: &str, args: &[&str]) {
    let program = tools_dir().join("venv/bin/python");
    assert!(
        program.exists(),
        "{} is missing: run `cargo xtask tools`",
        program.display()
    );
    let file = script("python").join(name);
    must_end_with_ok(
        &program,
        &[&[file.to_string_lossy().as_ref()], args].concat(),
        None,
    );
}

fn node(name: &str, args: &[&str]) {
    let home = tools_dir().join("node/node_modules");
    assert!(
        home.exists(),
        "{} is missing: run `cargo xtask tools`",
        home.display()
    );
    let file = script("node").join(name);
    must_end_with_ok(
        Path::new("node"),
        &[&[file.to_string_lossy().as_ref()], args].concat(),
        Some(&home),
    );
}

#[test]
fn redis_py_resp2() {
    let server = Server::pantala();
    python("redis_scenarios.py", &[&server.port.to_string(), "2"]);
}

#[test]
fn redis_py_resp3() {
    let server = Server::pantala();
    python("redis_scenarios.py", &[&server.port.to_string(), "3"]);
}

#[test]
fn pymemcache() {
    let server = Options::new(Kind::Pantala).with_memcached().start();
    let port = server.memcached_port.expect("asked for").to_string();
    python("memcached_scenarios.py", &[&port]);
}

#[test]
fn ioredis() {
    let server = Server::pantala();
    node("ioredis_scenarios.js", &[&server.port.to_string()]);
}

#[test]
fn node_redis() {
    let server = Server::pantala();
    node("node_redis_scenarios.js", &[&server.port.to_string()]);
}

/// Runs redis-cli with some input.
fn cli(server: &Server, args: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new("timeout");
    command
        .args(["60", "redis-cli", "-p", &server.port.to_string()])
        .args(args);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("redis-cli is installed");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    // Written beside the reading, so that neither side waits for the other.
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let out = child.wait_with_output().expect("redis-cli ends");
    writer.join().expect("the writer ends");
    out
}

fn cli_text(server: &Server, args: &[&str], input: &str) -> String {
    let out = cli(server, args, input.as_bytes());
    assert!(
        out.status.success(),
        "redis-cli {args:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[test]
fn redis_cli_commands_and_scripts() {
    let server = Server::pantala();
    assert_eq!(cli_text(&server, &["SET", "k", "hello"], ""), "OK\n");
    assert_eq!(cli_text(&server, &["GET", "k"], ""), "hello\n");
    assert_eq!(cli_text(&server, &["-x", "SET", "k"], "from input"), "OK\n");
    assert_eq!(
        cli_text(&server, &[], "GET k\nINCR n\nNOSUCH\nMULTI\nINCR n\nEXEC\n"),
        "from input\n1\nERR unknown command 'NOSUCH', with args beginning with: \n\nOK\nQUEUED\n2\n"
    );
    assert_eq!(
        cli_text(&server, &["-3", "HELLO"], "").lines().next(),
        Some("server redis")
    );
    assert_eq!(
        cli_text(&server, &["-n", "5", "SET", "in5", "1"], ""),
        "OK\n"
    );
    assert_eq!(cli_text(&server, &["-n", "5", "DBSIZE"], ""), "1\n");
    assert!(cli_text(&server, &["INFO", "server"], "").contains("redis_version:"));
}

#[test]
fn redis_cli_pipe_scan_and_bigkeys() {
    let server = Server::pantala();
    let mut bytes = Vec::new();
    for n in 0..20_000 {
        bytes.extend(encode(&["SET", &format!("key:{n}"), &n.to_string()]));
    }
    let out = cli(&server, &["--pipe"], &bytes);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(text.contains("errors: 0, replies: 20000"), "{text}");
    assert_eq!(server.conn().cmd("DBSIZE"), Value::Int(20_000));
    let listed = cli_text(&server, &["--scan", "--pattern", "key:1*"], "");
    let expect = (0..20_000)
        .filter(|n: &u32| n.to_string().starts_with('1'))
        .count();
    let mut keys: Vec<&str> = listed.lines().collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), expect);
    server
        .conn()
        .cmd(&format!("SET biggest {}", "x".repeat(5000)));
    let big = cli_text(&server, &["--bigkeys"], "");
    assert!(big.contains("\"biggest\"' has 5000 bytes"), "{big}");
    let memory = cli_text(&server, &["--memkeys"], "");
    assert!(memory.contains("\"biggest\"' has "), "{memory}");
    let latency = cli_text(&server, &["--latency", "-i", "1", "--raw"], "");
    assert!(!latency.is_empty());
}
