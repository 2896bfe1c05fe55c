//! The `HELP` subcommand of the containers, the errors that point to it, and the small parts that their specifications share.

use crate::turn::{Next, Turn};
use pantala_commands::Error;
use pantala_commands::spec::{Flags, Group, Spec};
use pantala_protocol::Args;

/// Base of a container in the server group.
pub const CONTAINER: Spec = Spec {
    group: Group::Server,
    arity: -2,
    complexity: "Depends on subcommand.",
    ..Spec::BASE
};

/// Base of what anybody may ask at any time.
pub const HELP: Spec = Spec {
    name: "help",
    summary: "Returns helpful text about the subcommands.",
    group: Group::Server,
    arity: 2,
    flags: Flags::LOADING.union(Flags::STALE),
    ..Spec::BASE
};

/// Base of an administrative command that scripts may not use.
pub const ADMIN: Spec = Spec {
    group: Group::Server,
    arity: 2,
    flags: Flags::ADMIN
        .union(Flags::NOSCRIPT)
        .union(Flags::LOADING)
        .union(Flags::STALE),
    ..Spec::BASE
};

/// Answers `HELP`: the heading, `lines`, and the line about `HELP` itself.
pub fn reply(turn: &mut Turn<'_, '_>, args: Args<'_>, lines: &[&str]) -> Result<Next, Error> {
    let name = upper(args.arg(0));
    let mut reply = turn.reply();
    reply.array(lines.len() + 3);
    reply.simple(format!(
        "{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    ));
    for line in lines {
        reply.simple(line);
    }
    reply.simple("HELP");
    reply.simple("    Prints this help.");
    Ok(Next::Continue)
}

/// The error for a subcommand that exists, but not with these arguments.
pub fn wrong_subcommand(args: Args<'_>) -> Error {
    /// Redis quotes no more of a subcommand.
    const QUOTED_MAX: usize = 128;
    let word = args.get(1).unwrap_or_default();
    let word = String::from_utf8_lossy(&word[..word.len().min(QUOTED_MAX)]);
    Error::owned(format!(
        "ERR unknown subcommand or wrong number of arguments for '{word}'. Try {} HELP.",
        upper(args.arg(0))
    ))
}

fn upper(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_ascii_uppercase()
}
