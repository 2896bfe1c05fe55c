//! `--dump-commands`: the command table as JSON, for the compatibility matrix.

use pantala_engine::registry::{Entry, Registry};
use pantala_engine::shared::all_commands;
use std::fmt::Write;

/// All commands and subcommands, a JSON array with an object per command.
pub fn commands() -> Result<String, String> {
    let registry = all_commands(&[])?;
    let mut entries: Vec<&Entry> = registry.entries().iter().collect();
    entries.sort_by(|a, b| a.full_name.cmp(&b.full_name));
    let mut out = String::from("[\n");
    for (nth, entry) in entries.iter().enumerate() {
        if nth != 0 {
            out.push_str(",\n");
        }
        one(&registry, entry, &mut out);
    }
    out.push_str("\n]\n");
    Ok(out)
}

fn one(registry: &Registry, entry: &Entry, out: &mut String) {
    let flags: Vec<String> = entry
        .spec
        .flags
        .iter_names()
        .map(|(name, _)| string(&name.to_ascii_lowercase()))
        .collect();
    let subcommands: Vec<String> = entry
        .subcommands
        .iter()
        .map(|&id| string(&registry.entry(id).full_name))
        .collect();
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "{{\"name\":{},\"arity\":{},\"group\":{},\"since\":{},\"flags\":[{}],\"summary\":{},\"syntax\":{},\"subcommands\":[{}]}}",
        string(&entry.full_name),
        entry.spec.arity,
        string(&format!("{:?}", entry.spec.group).to_ascii_lowercase()),
        string(entry.spec.since),
        flags.join(","),
        string(entry.spec.summary),
        string(entry.spec.syntax),
        subcommands.join(","),
    );
}

fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
