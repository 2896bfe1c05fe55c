//! Start and end: clear errors at the start, an orderly end, no work when nobody talks.

use std::fs;
use std::process::Command;
use std::time::Duration;

use pantala_tests::resp::Value;
use pantala_tests::server::{Server, free_port, without_own_variables};

use super::wait_for;

#[test]
fn a_signal_ends_it_in_order() {
    for signal in ["TERM", "INT"] {
        let mut server = Server::pantala();
        let mut conn = server.conn();
        assert_eq!(conn.cmd("SET k v").text(), "OK");
        server.signal(signal);
        assert_eq!(
            server.wait_exit(Duration::from_secs(10)),
            Some(0),
            "{signal}"
        );
        assert!(conn.read_to_close().is_ok(), "the connection ends in order");
    }
}

#[test]
fn shutdown_ends_it() {
    let mut server = Server::pantala();
    let mut conn = server.conn();
    conn.send(&["SHUTDOWN", "NOSAVE"])
        .expect("the server reads");
    assert_eq!(conn.read_to_close().expect("closed without a reply"), b"");
    assert_eq!(server.wait_exit(Duration::from_secs(10)), Some(0));
}

#[test]
fn a_port_in_use_is_a_clear_error() {
    let server = Server::pantala();
    let (code, text) = run_and_read(&["--port", &server.port.to_string(), "--bind", "127.0.0.1"]);
    assert!(code.is_some_and(|c| c != 0), "it must not start: {text}");
    assert!(
        text.to_lowercase().contains("address") && text.contains(&server.port.to_string()),
        "{text}"
    );
}

#[test]
fn a_wrong_option_is_a_clear_error() {
    let port = free_port().expect("a free port").to_string();
    let (code, text) =
        run_and_read(&["--port", &port, "--bind", "127.0.0.1", "--maxmemroy", "1gb"]);
    assert!(code.is_some_and(|c| c != 0), "it must not start: {text}");
    assert!(text.contains("maxmemroy"), "{text}");
    let (code, text) = run_and_read(&[
        "--port",
        &port,
        "--bind",
        "127.0.0.1",
        "--maxmemory",
        "lots",
    ]);
    assert!(code.is_some_and(|c| c != 0), "it must not start: {text}");
    assert!(text.contains("maxmemory"), "{text}");
}

/// Runs the server where it must end by itself; its exit code and everything it printed.
fn run_and_read(args: &[&str]) -> (Option<i32>, String) {
    let binary = std::env::var("PANTALA_BIN").unwrap_or_else(|_| {
        pantala_tests::server::project_dir()
            .join("target/release/pantala")
            .to_string_lossy()
            .into_owned()
    });
    let mut command = Command::new("timeout");
    command.arg("10").arg(binary).args(args);
    without_own_variables(&mut command);
    let out = command.output().expect("timeout starts it");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    (out.status.code(), text)
}

/// Processor time used so far, in clock ticks (10 ms).
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit(") ")
        .next()
        .unwrap_or_default()
        .split(' ')
        .collect();
    let field = |at: usize| {
        fields
            .get(at)
            .and_then(|f| f.parse::<u64>().ok())
            .unwrap_or(0)
    };
    field(11) + field(12)
}

#[test]
fn nobody_talks_nothing_works() {
    let server = Server::pantala();
    let conns: Vec<_> = (0..50).map(|_| server.conn()).collect();
    std::thread::sleep(Duration::from_millis(500));
    let before = ticks(server.pid());
    std::thread::sleep(Duration::from_secs(2));
    let used = ticks(server.pid()) - before;
    // Redis's own timer takes about 0.1 to 0.3 % of a core; 20 ms in 2 s is 1 %.
    assert!(
        used <= 2,
        "{used} ticks of 10 ms in 2 s with {} idle connections",
        conns.len()
    );
}

#[test]
fn expired_keys_are_removed_without_access() {
    let server = Server::pantala();
    let mut conn = server.conn();
    for n in 0..1000 {
        conn.cmd(&format!("SET short{n} v PX {}", 50 + n % 50));
    }
    conn.cmd("SET stays v EX 1000");
    wait_for("only one key is left", || {
        conn.cmd("DBSIZE") == Value::Int(1)
    });
}

#[test]
fn monitor_shows_commands_of_others() {
    let server = Server::pantala();
    let (mut watcher, mut conn) = (server.conn(), server.conn());
    assert_eq!(watcher.cmd("MONITOR").text(), "OK");
    conn.call(&[&b"SET"[..], b"k", b"a\"b\r\n\x01"])
        .expect("a reply");
    let line = watcher.read().expect("a line").text();
    assert!(
        line.contains("[0 127.0.0.1:") && line.ends_with(r#""SET" "k" "a\"b\r\n\x01""#),
        "{line}"
    );
}

#[test]
fn replies_can_be_turned_off() {
    let server = Server::pantala();
    let mut conn = server.conn();
    conn.send(&["CLIENT", "REPLY", "OFF"])
        .expect("the server reads");
    conn.send(&["SET", "k", "1"]).expect("the server reads");
    assert_eq!(conn.cmd("CLIENT REPLY ON").text(), "OK");
    conn.send(&["CLIENT", "REPLY", "SKIP"])
        .expect("the server reads");
    conn.send(&["INCR", "k"]).expect("the server reads");
    assert_eq!(conn.cmd("GET k").text(), "2");
}

#[test]
fn clients_can_be_killed_and_paused() {
    let server = Server::pantala();
    let (mut admin, mut victim) = (server.conn(), server.conn());
    let id = victim.cmd("CLIENT ID").int().expect("a number");
    assert_eq!(admin.cmd(&format!("CLIENT KILL ID {id}")).int(), Some(1));
    assert_eq!(victim.read_to_close().expect("closed"), b"");
    let mut writer = server.conn();
    assert_eq!(admin.cmd("CLIENT PAUSE 400 WRITE").text(), "OK");
    let start = std::time::Instant::now();
    assert!(writer.cmd("GET k").is_null());
    assert!(start.elapsed() < Duration::from_millis(300), "reads go on");
    assert_eq!(writer.cmd("SET k v").text(), "OK");
    assert!(
        start.elapsed() >= Duration::from_millis(350),
        "writes wait: {:?}",
        start.elapsed()
    );
}
