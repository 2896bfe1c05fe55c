//! Commands and options that Debian's Redis 7.0 does not have: transcripts from the vendors' documentation, as text files that anyone can extend.
//!
//! ```text
//! # comment
//! = a new case on empty databases (and a fresh connection)
//! > COMMAND and arguments
//! the reply, as the harness shows it: +OK  :1  "bulk"  $-1  *-1  _  #true  ,1.5  *[...]  %[...]  -ERR ...; a star stands for anything
//! ```
//! A file whose name ends in `.resp3.txt` runs after `HELLO 3`.

use std::fs;
use std::path::Path;

use pantala_tests::deviations::wild;
use pantala_tests::quote;
use pantala_tests::resp::Conn;
use pantala_tests::server::Server;

fn fresh(server: &Server, resp3: bool) -> Conn {
    let mut conn = server.conn();
    conn.cmd("FLUSHALL");
    if resp3 {
        conn.cmd("HELLO 3");
    }
    conn
}

fn transcript(name: &str) {
    if std::env::var_os("PANTALA_BIN_IS_ORACLE").is_some() {
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("newer")
        .join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let server = Server::pantala();
    let resp3 = name.ends_with(".resp3.txt");
    let mut conn = fresh(&server, resp3);
    let mut failures = Vec::new();
    let mut command: Option<(usize, &str)> = None;
    let mut checked = 0;
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with('=') {
            conn = fresh(&server, resp3);
        } else if let Some(rest) = line.strip_prefix("> ") {
            assert!(
                command.is_none(),
                "{name}:{}: a command without a reply",
                number + 1
            );
            command = Some((number, rest));
        } else {
            let (at, sent) = command
                .take()
                .unwrap_or_else(|| panic!("{name}:{}: a reply without a command", number + 1));
            let args =
                quote::split(sent).unwrap_or_else(|error| panic!("{name}:{}: {error}", at + 1));
            let got = conn
                .call(&args)
                .map_or_else(|error| format!("({error})"), |value| value.show());
            checked += 1;
            if !wild(line, &got) {
                failures.push(format!(
                    "{name}:{}: {sent}\n    expected {line}\n    got      {got}",
                    at + 1
                ));
            }
        }
    }
    assert!(checked > 0, "{name} holds nothing");
    assert!(
        failures.is_empty(),
        "{} of {checked} replies differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn strings() {
    transcript("strings.txt");
}

#[test]
fn bitmaps() {
    transcript("bitmaps.txt");
}

#[test]
fn server() {
    transcript("server.txt");
}

#[test]
fn resp3() {
    transcript("types.resp3.txt");
}
