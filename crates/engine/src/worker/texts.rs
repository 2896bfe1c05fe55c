//! What a client is told when its command cannot run as it stands. Word for word what Redis says.

use crate::registry::Entry;
use pantala_protocol::Args;

pub(super) fn wrong_arity(entry: &Entry) -> String {
    format!(
        "ERR wrong number of arguments for '{}' command",
        entry.full_name
    )
}

/// Redis quotes at most 128 bytes of the name and of the arguments.
const QUOTED_MAX: usize = 128;

pub(super) fn unknown_command(args: Args<'_>) -> String {
    let quoted =
        |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(QUOTED_MAX)]).into_owned();
    let mut shown = String::new();
    for arg in args.iter().skip(1) {
        if shown.len() >= QUOTED_MAX {
            break;
        }
        let room = QUOTED_MAX - shown.len();
        shown.push_str(&format!(
            "'{}' ",
            String::from_utf8_lossy(&arg[..arg.len().min(room)])
        ));
    }
    format!(
        "ERR unknown command '{}', with args beginning with: {shown}",
        args.get(0).map(quoted).unwrap_or_default()
    )
}

pub(super) fn unknown_subcommand(container: &Entry, args: Args<'_>) -> String {
    let word = args.get(1).unwrap_or_default();
    let word = String::from_utf8_lossy(&word[..word.len().min(QUOTED_MAX)]);
    format!(
        "ERR unknown subcommand '{word}'. Try {} HELP.",
        container.full_name.to_ascii_uppercase()
    )
}

/// A command that a RESP2 subscriber may not use.
pub(super) fn only_subscribes(entry: &Entry) -> String {
    format!(
        "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
        entry.full_name
    )
}
