//! The whole program against Debian's redis-server and memcached: rows, verdicts, refusals, and no server left behind.
//! Without redis-server on PATH these tests fail, unless PANTALA_NO_REDIS=1 says that this is known.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Whether to go on; without `program` the test fails, or is left out where the environment says so.
fn have(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
        return true;
    }
    assert!(
        std::env::var("PANTALA_NO_REDIS").is_ok_and(|value| value == "1"),
        "{program} is not on PATH: install it, or set PANTALA_NO_REDIS=1 to go without these tests"
    );
    eprintln!("left out: {program} is not on PATH and PANTALA_NO_REDIS=1");
    false
}

/// A file for rows, and a folder for the servers' files, both removed at the end.
struct Place {
    dir: PathBuf,
}

impl Place {
    fn new(name: &str) -> Self {
        let dir =
            std::env::temp_dir().join(format!("pantala-bench-test-{}-{name}", std::process::id()));
        fs::create_dir_all(dir.join("tmp")).unwrap();
        Self { dir }
    }

    fn out(&self) -> PathBuf {
        self.dir.join("rows.jsonl")
    }

    fn rows(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.out()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pantala-bench"));
        command
            .args(args.split_ascii_whitespace())
            .arg("--out")
            .arg(self.out())
            .env("TMPDIR", self.dir.join("tmp"))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &str) -> Output {
        let output = self.command(args).output().unwrap();
        assert_eq!(
            fs::read_dir(self.dir.join("tmp")).unwrap().count(),
            0,
            "a server's folder was left behind"
        );
        output
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Both sides share one core: the tests must pass on a machine that has no other.
const SMALL: &str = "--keys 2000 --seconds 0.3 --warmup 0.1 --server-cores 0 --client-cores 0";

fn number(row: &Value, path: &str) -> f64 {
    row.pointer(path)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("expected a number at {path} in {row}"))
}

#[test]
fn two_engines_in_interleaved_passes() {
    if !have("redis-server") {
        return;
    }
    let place = Place::new("interleaved");
    let output = place.run(&format!(
        "run {SMALL} --passes 2 --engine redis-a=redis-server --engine redis-b=redis-server"
    ));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(
        text.contains("redis-a") && text.contains("srv µs/req"),
        "{text}"
    );
    let rows = place.rows();
    let order: Vec<_> = rows
        .iter()
        .map(|row| row["engine"]["label"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(order, ["redis-a", "redis-b", "redis-a", "redis-b"]);
    for row in &rows {
        assert_eq!(row["void"], Value::Null);
        assert_eq!(number(row, "/load/hits"), number(row, "/load/reads"));
        assert!(number(row, "/load/requests_per_s") > 1_000.0);
        assert!(number(row, "/load/server_cpu_us_per_request") > 0.1);
        assert!(number(row, "/load/p50_us") <= number(row, "/load/p999_us"));
        assert!(number(row, "/memory/bytes_per_key") > 50.0);
        assert_eq!(number(row, "/knobs/keys"), 2_000.0);
        assert_eq!(row["session"], rows[0]["session"]);
        assert!(row["engine_version"].as_str().unwrap().contains("7."));
    }
}

#[test]
fn every_kind_of_request_gives_a_number() {
    if !have("redis-server") {
        return;
    }
    let place = Place::new("kinds");
    for kind in [
        "--pipeline 1 --ttl 600 --value-kind ascii",
        "--multi 10 --ratio 1:1",
        "--value-size 0-3000 --distribution zipf:0.99",
        "--value-size 300000 --keys 100",
        "--keys 1 --ratio 1:1",
        "--connections 200 --client-threads 2",
    ] {
        let output = place.run(&format!(
            "run {SMALL} {kind} --passes 1 --engine redis-server"
        ));
        assert!(output.status.success(), "{kind}: {output:?}");
    }
}

#[test]
fn the_open_loop_keeps_its_rate() {
    if !have("redis-server") {
        return;
    }
    let place = Place::new("open");
    let output = place.run(&format!(
        "run {SMALL} --rate 2000 --connections 4 --passes 1 --engine redis-server"
    ));
    assert!(output.status.success(), "{output:?}");
    let reached = number(&place.rows()[0], "/load/rate_reached");
    assert!((0.9..1.1).contains(&reached), "{reached} of the rate");
}

#[test]
fn memcached_speaks_its_own_protocol() {
    if !have("memcached") {
        return;
    }
    let place = Place::new("memcached");
    for kind in ["--ttl 600", "--multi 10 --ratio 1:0", "--value-size 20-400"] {
        let output = place.run(&format!(
            "run {SMALL} {kind} --protocol memcached --passes 1 --engine memcached"
        ));
        assert!(output.status.success(), "{kind}: {output:?}");
    }
}

#[test]
fn a_hit_rate_that_is_off_gives_no_number() {
    if !have("redis-server") {
        return;
    }
    let place = Place::new("off");
    // The server evicts half of the keys, so that reads miss.
    let mut command = place.command(&format!(
        "run {SMALL} --value-size 10000 --maxmemory 12mb --hit-rate 0.99 --passes 1"
    ));
    let output = command
        .arg("--engine")
        .arg("redis=redis-server --maxmemory-policy allkeys-random")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text.contains("no number") && !text.contains("redis  "),
        "{text}"
    );
    let row = &place.rows()[0];
    assert!(row["void"].as_str().unwrap().contains("hit rate"), "{row}");
    assert_eq!(row["load"], Value::Null);
}

#[test]
fn refused_writes_give_no_number() {
    if !have("redis-server") {
        return;
    }
    let place = Place::new("refused");
    let output = place.run(&format!(
        "run {SMALL} --value-size 10000 --maxmemory 5mb --passes 1 --engine redis-server"
    ));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let void = place.rows()[0]["void"].as_str().unwrap().to_owned();
    assert!(void.contains("OOM command not allowed"), "{void}");
}

#[test]
fn a_goal_row_is_judged() {
    if !have("redis-server") {
        return;
    }
    let place = Place::new("goal");
    let output = place.run(
        "goals --row empty --row growth-peak --row delete-90 --subject us=redis-server --keys 20000 --server-core 0 --client-core 0",
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.code().is_some_and(|code| code <= 1),
        "{output:?}"
    );
    assert!(text.contains("MB resident, no key, 2 threads"), "{text}");
    assert!(
        text.contains("of 3 met") && !text.contains("no number"),
        "{text}"
    );
    assert_eq!(
        place
            .rows()
            .iter()
            .filter(|row| row.get("finding").is_some())
            .count(),
        3
    );
}

#[test]
fn an_engine_that_does_not_start_says_why() {
    if !have("redis-server") {
        return;
    }
    let place = Place::new("broken");
    let mut command = place.command(&format!("run {SMALL} --passes 1"));
    let output = command
        .arg("--engine")
        .arg("redis=redis-server --no-such-option 1")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("no-such-option"), "{text}");
}

#[test]
fn a_server_that_dies_gives_no_number() {
    if !have("redis-server") {
        return;
    }
    let place = Place::new("dies");
    let child = place
        .command("run --keys 1000 --seconds 60 --server-cores 0 --client-cores 0 --passes 1 --engine redis-server")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let server = wait_for_child(child.id());
    thread::sleep(Duration::from_secs(2));
    let killed = Command::new("kill")
        .args(["-9", &server.to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("the server ended"), "{text}");
    assert_eq!(place.rows()[0]["load"], Value::Null);
}

#[test]
fn an_interrupt_stops_the_server() {
    if !have("redis-server") {
        return;
    }
    let place = Place::new("interrupt");
    let mut child = place
        .command("run --keys 1000 --seconds 60 --server-cores 0 --client-cores 0 --passes 1 --engine redis-server")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = wait_for_child(child.id());
    // Once its data are there, the load is under way.
    thread::sleep(Duration::from_secs(1));
    let killed = Command::new("kill")
        .arg(child.id().to_string())
        .status()
        .unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(
        !Path::new(&format!("/proc/{server}")).exists(),
        "the server still runs"
    );
    assert_eq!(fs::read_dir(place.dir.join("tmp")).unwrap().count(), 0);
}

/// The server that `parent` started; it starts the same program once before, to ask for its version.
fn wait_for_child(parent: u32) -> u32 {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(10) {
        for task in fs::read_dir(format!("/proc/{parent}/task"))
            .unwrap()
            .flatten()
        {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_ascii_whitespace() {
                let command = fs::read_to_string(format!("/proc/{child}/cmdline"));
                if command.is_ok_and(|text| text.contains("127.0.0.1")) {
                    return child.parse().unwrap();
                }
            }
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("no server was started");
}
