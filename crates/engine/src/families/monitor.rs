//! `MONITOR`: a copy of every command for those who watch.

use crate::registry::Entry;
use crate::session::Session;
use crate::shared::{Mail, Shared};
use crate::worker::clock;
use pantala_commands::Flags;
use pantala_protocol::Args;
use std::sync::Arc;

/// Sends a command that is about to run to all monitors.
pub fn feed(shared: &Shared, session: &Session, entry: &Entry, args: Args<'_>) {
    if entry
        .spec
        .flags
        .intersects(Flags::SKIP_MONITOR | Flags::ADMIN)
    {
        return;
    }
    let micros = clock::unix_us();
    let mut line = format!(
        "+{}.{:06} [{} {}]",
        micros / 1_000_000,
        micros % 1_000_000,
        session.db,
        session.card.peer
    )
    .into_bytes();
    for arg in args.iter() {
        line.extend_from_slice(b" \"");
        quote(arg, &mut line);
        line.push(b'"');
    }
    line.extend_from_slice(b"\r\n");
    let line: Arc<[u8]> = line.into();
    shared.send_all(|| Mail::Monitor(Arc::clone(&line)));
}

/// Appends bytes as Redis shows them: printable ASCII as it is, the rest escaped.
pub fn quote(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x07 => out.extend_from_slice(b"\\a"),
            0x08 => out.extend_from_slice(b"\\b"),
            b' '..=b'~' => out.push(byte),
            _ => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
}
