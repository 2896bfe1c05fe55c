//! `DEBUG`: what tests need. Refused unless `enable-debug-command` allows it.
//!
//! Nothing here crashes the process or corrupts data: Redis's subcommands that do (`SEGFAULT`, `PANIC`, `OOM`, `ASSERT`) and those that
//! look into structures which do not exist here are missing.

mod digest;
mod keyspace;
mod protocol;

use super::config::is_local;
use super::help;
use crate::registry::SessionCommand;
use crate::turn::{Next, Turn};
use pantala_commands::Error;
use pantala_commands::spec::Spec;
use pantala_protocol::{Args, numbers};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The family's commands.
pub const COMMANDS: &[SessionCommand] = &[SessionCommand::new(
    Spec {
        name: "debug",
        arity: -2,
        summary: "A container for debugging commands.",
        complexity: "Depends on subcommand.",
        syntax: "subcommand [arg [arg ...]]",
        ..help::ADMIN
    },
    debug,
)];

const NOT_ALLOWED: &str = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local \
                           connection, otherwise you need to set this option in the configuration file, and then restart the server.";

fn debug(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    if !turn
        .settings
        .enable_debug_command
        .allows(is_local(turn.session))
    {
        return Err(Error::text(NOT_ALLOWED));
    }
    let word = args.arg(1).to_ascii_lowercase();
    match (word.as_slice(), args.len()) {
        (b"help", 2) => help_text(turn, args),
        (b"sleep", 3) => sleep(turn, args.arg(2)),
        (b"error", 3) => Err(Error::owned(
            String::from_utf8_lossy(args.arg(2)).into_owned(),
        )),
        (b"log", 3) => {
            log::warn!("DEBUG LOG: {}", String::from_utf8_lossy(args.arg(2)));
            turn.ok()
        }
        (b"protocol", 3) => {
            protocol::reply(&mut turn.reply(), args.arg(2)).map(|()| Next::Continue)
        }
        (b"set-active-expire", 3) => {
            turn.shared
                .active_expire
                .store(leading_number(args.arg(2)) != 0.0, Relaxed);
            turn.ok()
        }
        (b"change-repl-id", 2) => {
            turn.shared.server.change_replication_id();
            turn.ok()
        }
        (b"stringmatch-len", 4) => {
            let matches = pantala_config::glob_match(args.arg(2), args.arg(3), false);
            turn.reply().integer(i64::from(matches));
            Ok(Next::Continue)
        }
        (b"digest", 2) => keyspace::digest_all(turn),
        (b"digest-value", 2..) => keyspace::digest_values(turn, args.slice_from(2)),
        (b"object", 3) => keyspace::object(turn, args.arg(2)),
        // Since Redis 7.2; nothing here takes long that could be left out.
        (b"object", 4) if args.is(3, "fast") => keyspace::object(turn, args.arg(2)),
        (b"htstats", 3 | 4) => keyspace::table_statistics(turn, args.arg(2)),
        (b"populate", 3..=5) => keyspace::populate(turn, args.slice_from(2)),
        (b"reload" | b"loadaof", _) => Err(Error::text(
            "ERR this server does not write its data to files yet",
        )),
        _ => Err(help::wrong_subcommand(args)),
    }
}

/// The worker sleeps, with all its clients, and with the shards of a transaction in hand: tests want a server that does not answer for a
/// while. Redis sleeps as a whole; here other workers go on.
fn sleep(turn: &mut Turn<'_, '_>, seconds: &[u8]) -> Result<Next, Error> {
    // What does not fit 64 bits of microseconds wraps to a negative time in Redis, which ends at once.
    const SECONDS_MAX: f64 = 9.2e12;
    let seconds = leading_number(seconds);
    if seconds > 0.0 && seconds < SECONDS_MAX {
        std::thread::sleep(Duration::from_secs_f64(seconds));
    }
    turn.ok()
}

/// The number at the start of a text, 0 when there is none, as C's `strtod` has it.
fn leading_number(text: &[u8]) -> f64 {
    let longest = text.len().min(64);
    (1..=longest)
        .rev()
        .find_map(|len| numbers::parse_f64(&text[..len]))
        .filter(|number| number.is_finite())
        .unwrap_or(0.0)
}

fn help_text(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    help::reply(
        turn,
        args,
        &[
            "CHANGE-REPL-ID",
            "    Change the replication IDs of the instance.",
            "    Dangerous: should be used only for testing the replication subsystem.",
            "DIGEST",
            "    Output a hex signature representing the current DB content.",
            "DIGEST-VALUE <key> [<key> ...]",
            "    Output a hex signature of the values of all the specified keys.",
            "ERROR <string>",
            "    Return a Redis protocol error with <string> as message. Useful for clients",
            "    unit tests to simulate Redis errors.",
            "LOG <message>",
            "    Write <message> to the server log.",
            "HTSTATS <dbid>",
            "    Return statistics of the tables of the specified database.",
            "OBJECT <key>",
            "    Show low level info about `key` and associated value.",
            "POPULATE <count> [<prefix>] [<size>]",
            "    Create <count> string keys named key:<num>. If <prefix> is specified then",
            "    it is used instead of the 'key' prefix.",
            "PROTOCOL <type>",
            "    Reply with a test value of the specified type. <type> can be: string,",
            "    integer, double, bignum, null, array, set, map, attrib, push, verbatim,",
            "    true, false.",
            "SET-ACTIVE-EXPIRE <0|1>",
            "    Setting it to 0 disables expiring keys in background when they are not",
            "    accessed (otherwise the Redis behavior). Setting it to 1 reenables back the",
            "    default.",
            "SLEEP <seconds>",
            "    Let the worker of this client sleep for <seconds>. Decimals allowed. Clients of",
            "    other workers are served.",
            "STRINGMATCH-LEN <pattern> <string>",
            "    Tell whether the glob-style <pattern> matches <string>.",
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_the_start() {
        let table = [
            (&b"0.5"[..], 0.5),
            (b"2s", 2.0),
            (b"x", 0.0),
            (b"", 0.0),
            (b"1e2", 100.0),
            (b"inf", 0.0),
            (b"-3", -3.0),
        ];
        for (text, number) in table {
            assert_eq!(leading_number(text), number, "{}", text.escape_ascii());
        }
    }
}
