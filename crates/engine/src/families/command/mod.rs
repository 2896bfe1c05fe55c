//! `COMMAND`: what the server knows about its commands. All of it is derived from their specifications.

pub mod categories;
mod describe;
mod docs;
mod keys;
pub mod syntax;

use super::help;
use crate::registry::{Entry, Registry, SessionCommand};
use crate::turn::{Next, Turn};
use pantala_commands::Error;
use pantala_commands::spec::{Acl, Flags, Group, Spec};
use pantala_config::glob_match;
use pantala_protocol::Args;

const COMMAND: Spec = Spec {
    group: Group::Server,
    acl: Acl::CONNECTION,
    flags: Flags::LOADING.union(Flags::STALE),
    since: "2.8.13",
    ..Spec::BASE
};

const UNORDERED: &[&str] = &["nondeterministic_output_order"];

/// The family's commands.
pub const COMMANDS: &[SessionCommand] = &[SessionCommand {
    spec: Spec {
        name: "command",
        arity: -1,
        summary: "Returns detailed information about all commands.",
        complexity: "O(N) where N is the total number of commands",
        tips: UNORDERED,
        ..COMMAND
    },
    run: Some(all),
    subcommands: &[
        SessionCommand::new(
            Spec {
                name: "docs",
                arity: -2,
                summary: "Returns documentary information about one, several or all commands.",
                since: "7.0.0",
                complexity: "O(N) where N is the number of commands to look up",
                tips: UNORDERED,
                syntax: "[command-name [command-name ...]]",
                ..COMMAND
            },
            documentation,
        ),
        SessionCommand::new(
            Spec {
                name: "info",
                arity: -2,
                summary: "Returns information about one, several or all commands.",
                complexity: "O(N) where N is the number of commands to look up",
                tips: UNORDERED,
                syntax: "[command-name [command-name ...]]",
                ..COMMAND
            },
            info,
        ),
        SessionCommand::new(
            Spec {
                since: "5.0.0",
                acl: Acl::CONNECTION,
                ..help::HELP
            },
            help_text,
        ),
        SessionCommand::new(
            Spec {
                name: "getkeysandflags",
                arity: -4,
                summary: "Extracts the key names and access flags for an arbitrary command.",
                since: "7.0.0",
                complexity: "O(N) where N is the number of arguments to the command",
                syntax: "command [arg [arg ...]]",
                ..COMMAND
            },
            keys::with_flags,
        ),
        SessionCommand::new(
            Spec {
                name: "list",
                arity: -2,
                summary: "Returns a list of command names.",
                since: "7.0.0",
                complexity: "O(N) where N is the total number of commands",
                tips: UNORDERED,
                syntax: "[FILTERBY <MODULE module-name|ACLCAT category|PATTERN pattern>]",
                ..COMMAND
            },
            list,
        ),
        SessionCommand::new(
            Spec {
                name: "count",
                arity: 2,
                summary: "Returns a count of commands.",
                ..COMMAND
            },
            count,
        ),
        SessionCommand::new(
            Spec {
                name: "getkeys",
                arity: -4,
                summary: "Extracts the key names from an arbitrary command.",
                complexity: "O(N) where N is the number of arguments to the command",
                syntax: "command [arg [arg ...]]",
                ..COMMAND
            },
            keys::names,
        ),
    ],
}];

/// Commands that can be called: those that `rename-command` took away cannot.
fn callable(registry: &Registry) -> impl Iterator<Item = &Entry> {
    registry.top_level().filter(|entry| {
        registry
            .by_full_name(entry.full_name.as_bytes())
            .is_some_and(|found| found.id == entry.id)
    })
}

fn all(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let registry = &turn.shared.registry;
    let entries: Vec<&Entry> = callable(registry).collect();
    let mut reply = turn.reply();
    reply.array(entries.len());
    for entry in entries {
        describe::reply_info(&mut reply, registry, Some(entry));
    }
    Ok(Next::Continue)
}

fn info(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    if args.len() == 2 {
        return all(turn, args);
    }
    let registry = &turn.shared.registry;
    let mut reply = turn.reply();
    reply.array(args.len() - 2);
    for name in args.slice_from(2) {
        describe::reply_info(&mut reply, registry, registry.by_full_name(name));
    }
    Ok(Next::Continue)
}

fn documentation(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let registry = &turn.shared.registry;
    let entries: Vec<&Entry> = match args.len() {
        2 => callable(registry).collect(),
        // Unknown names are left out.
        _ => args
            .slice_from(2)
            .iter()
            .filter_map(|name| registry.by_full_name(name))
            .collect(),
    };
    let mut reply = turn.reply();
    reply.map(entries.len());
    for entry in entries {
        docs::reply_docs(&mut reply, registry, entry);
    }
    Ok(Next::Continue)
}

fn count(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let count = callable(&turn.shared.registry).count();
    turn.reply().integer(count as i64);
    Ok(Next::Continue)
}

fn list(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let registry = &turn.shared.registry;
    let by_filter = args.len() == 5 && args.is(2, "FILTERBY");
    let names = match (args.len(), args.get(3), args.get(4)) {
        (2, ..) => matching(registry, |_| true),
        // There are no modules, so no command is of one.
        (_, Some(kind), Some(_)) if by_filter && kind.eq_ignore_ascii_case(b"module") => Vec::new(),
        (_, Some(kind), Some(category)) if by_filter && kind.eq_ignore_ascii_case(b"aclcat") => {
            let category = String::from_utf8_lossy(category).to_ascii_lowercase();
            matching(registry, |entry| {
                categories::contains(&entry.spec, &category)
            })
        }
        (_, Some(kind), Some(pattern)) if by_filter && kind.eq_ignore_ascii_case(b"pattern") => {
            matching(registry, |entry| {
                glob_match(pattern, entry.full_name.as_bytes(), true)
            })
        }
        _ => return Err(Error::Syntax),
    };
    let mut reply = turn.reply();
    // Redis answers a set to the plain question, and an array to one with a filter.
    if args.len() == 2 {
        reply.set(names.len());
    } else {
        reply.array(names.len());
    }
    for name in names {
        reply.bulk_str(name);
    }
    Ok(Next::Continue)
}

/// Names of the commands and subcommands that `wanted` accepts.
pub fn matching(registry: &Registry, wanted: impl Fn(&Entry) -> bool) -> Vec<&str> {
    let mut names = Vec::new();
    for entry in callable(registry) {
        let subcommands = entry.subcommands.iter().map(|&id| registry.entry(id));
        names.extend(
            std::iter::once(entry)
                .chain(subcommands)
                .filter(|entry| wanted(entry))
                .map(|entry| &*entry.full_name),
        );
    }
    names
}

fn help_text(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    help::reply(
        turn,
        args,
        &[
            "(no subcommand)",
            "    Return details about all Redis commands.",
            "COUNT",
            "    Return the total number of commands in this Redis server.",
            "LIST",
            "    Return a list of all commands in this Redis server.",
            "INFO [<command-name> ...]",
            "    Return details about multiple Redis commands.",
            "    If no command names are given, documentation details for all",
            "    commands are returned.",
            "DOCS [<command-name> ...]",
            "    Return documentation details about multiple Redis commands.",
            "    If no command names are given, documentation details for all",
            "    commands are returned.",
            "GETKEYS <full-command>",
            "    Return the keys from a full Redis command.",
            "GETKEYSANDFLAGS <full-command>",
            "    Return the keys and the access flags from a full Redis command.",
        ],
    )
}

#[cfg(test)]
mod tests;
