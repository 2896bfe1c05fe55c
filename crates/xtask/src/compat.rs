//! Writes COMPAT.md from the command table of the built server, so that the matrix cannot say more than the server does. The part on intended
//! deviations is written by hand in `docs/compat-notes.md` and spliced in.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The intended deviations, written by hand.
const NOTES: &str = "docs/compat-notes.md";
/// What is written.
const FILE: &str = "COMPAT.md";

/// Writes the file.
pub fn write(root: &Path) -> Result<(), String> {
    let text = generate(root)?;
    fs::write(root.join(FILE), text).map_err(|error| format!("{FILE}: {error}"))
}

/// Fails if the file is not what would be written now.
pub fn check(root: &Path) -> Result<(), String> {
    let wanted = generate(root)?;
    let present = fs::read_to_string(root.join(FILE))
        .map_err(|error| format!("{FILE}: {error}; write it with `cargo xtask compat`"))?;
    if wanted == present {
        Ok(())
    } else {
        Err(format!("{FILE} is out of date: run `cargo xtask compat`"))
    }
}

fn generate(root: &Path) -> Result<String, String> {
    let binary = std::env::var_os("PANTALA_BIN")
        .map_or_else(|| root.join("target/release/pantala"), Into::into);
    // Variables that begin so configure the server, but the one above is ours.
    let output = Command::new(&binary)
        .arg("--dump-commands")
        .env_remove("PANTALA_BIN")
        .output();
    let output = output.map_err(|error| {
        format!(
            "{}: {error}; build it with `cargo build --release`",
            binary.display()
        )
    })?;
    if !output.status.success() {
        return Err(format!(
            "{} --dump-commands ended with {}",
            binary.display(),
            output.status
        ));
    }
    let table: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("--dump-commands: {error}"))?;
    let notes =
        fs::read_to_string(root.join(NOTES)).map_err(|error| format!("{NOTES}: {error}"))?;
    document(&table, &notes)
}

/// One command of the table, as text.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    name: String,
    since: String,
    arity: String,
    syntax: String,
    summary: String,
}

/// The whole document.
fn document(table: &Value, notes: &str) -> Result<String, String> {
    let commands = table.as_array().ok_or("expected an array of commands")?;
    let mut groups: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for command in commands {
        let text = |field: &str| {
            command
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let name = text("name");
        if name.is_empty() {
            return Err(format!("a command without a name: {command}"));
        }
        // A container answers nothing itself: its subcommands stand for it.
        if command
            .get("subcommands")
            .and_then(Value::as_array)
            .is_some_and(|subcommands| !subcommands.is_empty() && name != "command")
        {
            continue;
        }
        let group = text("group");
        let arity = command
            .get("arity")
            .map(Value::to_string)
            .unwrap_or_default();
        let syntax = text("syntax");
        groups.entry(group).or_default().push(Row {
            name: name.to_uppercase().replace('|', " "),
            since: text("since"),
            arity,
            syntax,
            summary: text("summary"),
        });
    }
    let count: usize = groups.values().map(Vec::len).sum();
    let mut out = format!(
        "# Compatibility\n\n<!-- Written by `cargo xtask compat` from the command table of the server and {NOTES}; do not edit. -->\n\n\
         Pantala answers {count} commands and subcommands. Each one in this list works as in the release of Redis or Valkey that is named under \
         *since*, with all the arguments shown; a command that is not in this list is answered with `unknown command`.\n\n"
    );
    out.push_str(notes.trim());
    out.push('\n');
    for (group, rows) in &mut groups {
        rows.sort();
        out.push_str(&format!("\n## {}\n\n| command | since | arity | arguments | what it does |\n|---|---|---|---|---|\n", if group.is_empty() { "other" } else { group }));
        for row in rows {
            out.push_str(&format!(
                "| {} | {} | {} | {} | {} |\n",
                cell(&row.name),
                cell(&row.since),
                row.arity,
                code(&row.syntax),
                cell(&row.summary)
            ));
        }
    }
    Ok(out)
}

fn code(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("`{}`", cell(text))
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_grouped_and_sorted() {
        let table = serde_json::json!([
            {"name": "set", "arity": -3, "group": "string", "since": "1.0.0", "summary": "Sets a|b.", "syntax": "key value [NX|XX]"},
            {"name": "get", "arity": 2, "group": "string", "since": "1.0.0", "syntax": "key", "summary": "Reads."},
            {"name": "ping", "arity": -1, "group": "connection", "since": "1.0.0", "summary": "Answers."},
        ]);
        let text = document(&table, "## Intended deviations\n\nNone.\n").expect("valid");
        let at = |what: &str| {
            text.find(what)
                .unwrap_or_else(|| panic!("{what} in {text}"))
        };
        assert!(at("## Intended") < at("## connection") && at("## connection") < at("## string"));
        assert!(
            at("| GET | 1.0.0 | 2 | `key` | Reads. |")
                < at("| SET | 1.0.0 | -3 | `key value [NX\\|XX]` | Sets a\\|b. |")
        );
        assert!(text.contains("answers 3 commands"));
    }

    #[test]
    fn a_broken_table_is_an_error() {
        assert!(document(&serde_json::json!({}), "").is_err());
        assert!(document(&serde_json::json!([{"arity": 1}]), "").is_err());
    }
}
