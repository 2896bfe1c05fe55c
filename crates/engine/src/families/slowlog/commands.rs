//! `SLOWLOG GET LEN RESET HELP`.

use crate::families::help;
use crate::registry::SessionCommand;
use crate::turn::{Next, Turn};
use pantala_commands::Error;
use pantala_commands::spec::{Flags, Spec};
use pantala_protocol::{Args, numbers};

const LOG: Spec = Spec {
    flags: Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE),
    since: "2.2.12",
    ..help::ADMIN
};

/// The family's commands.
pub const COMMANDS: &[SessionCommand] = &[SessionCommand::container(
    Spec {
        name: "slowlog",
        summary: "A container for slow log commands.",
        since: "2.2.12",
        ..help::CONTAINER
    },
    &[
        SessionCommand::new(
            Spec {
                name: "reset",
                summary: "Clears all entries from the slow log.",
                complexity: "O(N) where N is the number of entries in the slowlog",
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                ..LOG
            },
            reset,
        ),
        SessionCommand::new(
            Spec {
                since: "6.2.0",
                ..help::HELP
            },
            help_text,
        ),
        SessionCommand::new(
            Spec {
                name: "len",
                summary: "Returns the number of entries in the slow log.",
                tips: &[
                    "request_policy:all_nodes",
                    "response_policy:agg_sum",
                    "nondeterministic_output",
                ],
                ..LOG
            },
            len,
        ),
        SessionCommand::new(
            Spec {
                name: "get",
                arity: -2,
                summary: "Returns the slow log's entries.",
                complexity: "O(N) where N is the number of entries returned",
                tips: &["request_policy:all_nodes", "nondeterministic_output"],
                syntax: "[count]",
                ..LOG
            },
            get,
        ),
    ],
)];

fn reset(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    turn.shared.slowlog.reset();
    turn.ok()
}

fn len(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let len = turn.shared.slowlog.len();
    turn.reply().integer(len as i64);
    Ok(Next::Continue)
}

fn get(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    const DEFAULT_COUNT: usize = 10;
    let count = match (args.len(), args.get(2)) {
        (2, _) => DEFAULT_COUNT,
        (3, Some(count)) => match numbers::parse_i64(count) {
            Some(-1) => usize::MAX,
            Some(count @ 0..) => usize::try_from(count).unwrap_or(usize::MAX),
            _ => {
                return Err(Error::text(
                    "ERR count should be greater than or equal to -1",
                ));
            }
        },
        _ => return Err(help::wrong_subcommand(args)),
    };
    let entries = turn.shared.slowlog.newest(count);
    let mut reply = turn.reply();
    reply.array(entries.len());
    for entry in entries {
        reply.array(6);
        reply.integer(entry.id as i64);
        reply.integer(entry.at_s);
        reply.integer(entry.took_us as i64);
        reply.array(entry.args.len());
        for arg in &entry.args {
            reply.bulk(arg);
        }
        reply.bulk_str(&entry.peer);
        reply.bulk_str(&entry.name);
    }
    Ok(Next::Continue)
}

fn help_text(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    help::reply(
        turn,
        args,
        &[
            "GET [<count>]",
            "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
            "    Entries are made of:",
            "    id, timestamp, time in microseconds, arguments array, client IP and port,",
            "    client name",
            "LEN",
            "    Return the length of the slowlog.",
            "RESET",
            "    Reset the slowlog.",
        ],
    )
}
