//! `TIME`, `LASTSAVE`, `SHUTDOWN`.

use super::help;
use crate::registry::SessionCommand;
use crate::turn::{Next, Turn};
use crate::worker::clock;
use pantala_commands::Error;
use pantala_commands::spec::{Acl, Flags, Group, Spec};
use pantala_protocol::Args;

const QUICK: Spec = Spec {
    group: Group::Server,
    flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
    tips: &["nondeterministic_output"],
    ..Spec::BASE
};

/// The family's commands.
pub const COMMANDS: &[SessionCommand] = &[
    SessionCommand::new(
        Spec {
            name: "time",
            summary: "Returns the server time.",
            since: "2.6.0",
            ..QUICK
        },
        time,
    ),
    SessionCommand::new(
        Spec {
            name: "lastsave",
            summary: "Returns the Unix timestamp of the last successful save to disk.",
            acl: Acl::DANGEROUS,
            ..QUICK
        },
        last_save,
    ),
    SessionCommand::new(
        Spec {
            name: "shutdown",
            arity: -1,
            summary: "Shuts the server down.",
            complexity: "O(1)",
            flags: help::ADMIN
                .flags
                .union(Flags::NO_MULTI)
                .union(Flags::ALLOW_BUSY),
            syntax: "[NOSAVE|SAVE] [NOW] [FORCE] [ABORT] [SAFE]",
            ..help::ADMIN
        },
        shutdown,
    ),
];

fn time(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let now_us = clock::unix_us();
    let mut reply = turn.reply();
    reply.array(2);
    reply.bulk_integer(now_us / 1_000_000);
    reply.bulk_integer(now_us % 1_000_000);
    Ok(Next::Continue)
}

/// As in Redis, a server that has never saved counts from its start.
fn last_save(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let started_s = turn.shared.facts.started_ms / 1_000;
    turn.reply().integer(started_s);
    Ok(Next::Continue)
}

/// What `SHUTDOWN` was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Wish {
    save: bool,
    nosave: bool,
    now: bool,
    force: bool,
    abort: bool,
    safe: bool,
}

impl Wish {
    fn parse(words: Args<'_>) -> Result<Self, Error> {
        let mut wish = Self::default();
        for word in words {
            let place = match word.to_ascii_lowercase().as_slice() {
                b"save" => &mut wish.save,
                b"nosave" => &mut wish.nosave,
                b"now" => &mut wish.now,
                b"force" => &mut wish.force,
                b"abort" => &mut wish.abort,
                b"safe" => &mut wish.safe,
                _ => return Err(Error::Syntax),
            };
            *place = true;
        }
        let others = wish.save || wish.nosave || wish.now || wish.force || wish.safe;
        if (wish.save && wish.nosave) || (wish.force && wish.safe) || (wish.abort && others) {
            return Err(Error::Syntax);
        }
        Ok(wish)
    }
}

fn shutdown(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let wish = Wish::parse(args.slice_from(1))?;
    if wish.abort {
        // It would have to wait for replicas or for a file; there are neither.
        return Err(Error::text("ERR No shutdown in progress."));
    }
    if wish.save && !wish.force {
        return Err(Error::text(
            "ERR SHUTDOWN SAVE is not possible: this server does not write snapshots yet. Use SHUTDOWN NOSAVE.",
        ));
    }
    log::warn!("User requested shutdown...");
    turn.shared.request_shutdown();
    // As in Redis there is no reply: the connection closes when the process ends.
    Ok(Next::Away)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pantala_protocol::OwnedArgs;

    #[test]
    fn words_that_exclude_each_other_are_refused() {
        let parse = |words: &[&str]| Wish::parse(words.iter().collect::<OwnedArgs>().as_args());
        for refused in [
            &["foo"][..],
            &["save", "nosave"],
            &["now", "abort"],
            &["force", "safe"],
        ] {
            assert_eq!(parse(refused), Err(Error::Syntax), "{refused:?}");
        }
        assert_eq!(
            parse(&["NoSave", "now"]),
            Ok(Wish {
                nosave: true,
                now: true,
                ..Wish::default()
            })
        );
        assert_eq!(
            parse(&["abort"]),
            Ok(Wish {
                abort: true,
                ..Wish::default()
            })
        );
        assert_eq!(parse(&[]), Ok(Wish::default()));
    }
}
