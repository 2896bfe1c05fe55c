//! `MONITOR`: a copy of every command for those who watch.
//!
//! Passwords never appear in it.

use super::connection::{self, HIDDEN};
use crate::registry::{Entry, SessionCommand};
use crate::session::Session;
use crate::shared::{Mail, Shared};
use crate::turn::{Next, Turn};
use crate::worker::clock;
use pantala_commands::spec::{Group, Spec};
use pantala_commands::{Error, Flags};
use pantala_protocol::Args;
use std::sync::Arc;

/// The family's commands.
pub const COMMANDS: &[SessionCommand] = &[SessionCommand::new(
    Spec {
        name: "monitor",
        summary: "Shows every command that the server executes.",
        group: Group::Server,
        complexity: "",
        flags: Flags::ADMIN
            .union(Flags::NOSCRIPT)
            .union(Flags::LOADING)
            .union(Flags::STALE),
        ..Spec::BASE
    },
    monitor,
)];

fn monitor(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    if turn.held.is_some() {
        // A transaction needs exactly one reply per command.
        return Err(Error::text(
            "ERR MONITOR isn't allowed for DENY BLOCKING client",
        ));
    }
    if turn.session.monitor {
        // As in Redis, who monitors already gets no reply, which would be taken for a line.
        return Ok(Next::Continue);
    }
    turn.session.monitor = true;
    turn.shared.clients.set_monitor(&turn.session.card, true);
    turn.ok()
}

/// Sends a command that is about to run to all monitors.
pub fn feed(shared: &Shared, session: &Session, entry: &Entry, args: Args<'_>) {
    if entry
        .spec
        .flags
        .intersects(Flags::SKIP_MONITOR | Flags::ADMIN)
    {
        return;
    }
    let card = &session.card;
    let client = if card.unix {
        format!(
            "unix:{}",
            card.peer.strip_suffix(":0").unwrap_or(&card.peer)
        )
    } else {
        card.peer.to_string()
    };
    let hidden = connection::secrets(entry, args);
    let line: Arc<[u8]> = line(clock::unix_us(), session.db, &client, args, &hidden).into();
    shared.send_all(|| Mail::Monitor(Arc::clone(&line)));
}

/// One line of a monitor; `hidden` holds the positions of secret arguments in ascending order.
fn line(unix_us: i64, db: u16, client: &str, args: Args<'_>, hidden: &[usize]) -> Vec<u8> {
    let (seconds, micros) = (unix_us / 1_000_000, unix_us % 1_000_000);
    let mut line = format!("+{seconds}.{micros:06} [{db} {client}]").into_bytes();
    for (at, arg) in args.iter().enumerate() {
        let arg = if hidden.binary_search(&at).is_ok() {
            HIDDEN
        } else {
            arg
        };
        line.extend_from_slice(b" \"");
        quote(arg, &mut line);
        line.push(b'"');
    }
    line.extend_from_slice(b"\r\n");
    line
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

#[cfg(test)]
mod tests {
    use super::*;
    use pantala_protocol::OwnedArgs;

    #[test]
    fn a_line_quotes_and_hides() {
        let mut args = OwnedArgs::new();
        [&b"auth"[..], b"a\"\\\r\n\x01\xff", b"secret"]
            .iter()
            .for_each(|arg| args.push(arg));
        assert_eq!(
            line(1_700_000_000_000_042, 3, "127.0.0.1:5", args.as_args(), &[2]),
            b"+1700000000.000042 [3 127.0.0.1:5] \"auth\" \"a\\\"\\\\\\r\\n\\x01\\xff\" \"(redacted)\"\r\n"
        );
    }
}
