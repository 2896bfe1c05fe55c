//! What can be said about replication by a server that has no replicas and is none: `ROLE`, `WAIT`, `WAITAOF`, `REPLICAOF NO ONE`.

use super::later;
use crate::registry::SessionCommand;
use crate::turn::{Next, Turn};
use pantala_commands::Error;
use pantala_commands::spec::{Acl, Flags, Group, Spec};
use pantala_protocol::{Args, Reply, numbers};
use std::time::Duration;

const WAIT: Spec = Spec {
    group: Group::Generic,
    acl: Acl::CONNECTION,
    flags: Flags::NOSCRIPT,
    tips: &["request_policy:all_shards", "response_policy:agg_min"],
    ..Spec::BASE
};

const REPLICA_OF: Spec = Spec {
    arity: 3,
    summary: "Configures a server as replica of another, or promotes it to a master.",
    group: Group::Server,
    flags: Flags::ADMIN
        .union(Flags::NOSCRIPT)
        .union(Flags::STALE)
        .union(Flags::NO_ASYNC_LOADING),
    syntax: "<host port|NO ONE>",
    ..Spec::BASE
};

/// The family's commands.
pub const COMMANDS: &[SessionCommand] = &[
    SessionCommand::new(
        Spec {
            name: "role",
            summary: "Returns the replication role.",
            since: "2.8.12",
            acl: Acl::DANGEROUS,
            flags: Flags::NOSCRIPT
                .union(Flags::LOADING)
                .union(Flags::STALE)
                .union(Flags::FAST),
            group: Group::Server,
            ..Spec::BASE
        },
        role,
    ),
    SessionCommand::new(
        Spec {
            name: "wait",
            arity: 3,
            summary: "Blocks until the asynchronous replication of all preceding write commands sent by the connection is completed.",
            since: "3.0.0",
            syntax: "numreplicas timeout",
            ..WAIT
        },
        wait,
    ),
    SessionCommand::new(
        Spec {
            name: "waitaof",
            arity: 4,
            summary: "Blocks until all of the preceding write commands sent by the connection are written to the append-only file of the master and/or replicas.",
            since: "7.2.0",
            syntax: "numlocal numreplicas timeout",
            ..WAIT
        },
        wait_for_file,
    ),
    SessionCommand::new(
        Spec {
            name: "replicaof",
            since: "5.0.0",
            ..REPLICA_OF
        },
        replica_of,
    ),
    SessionCommand::new(
        Spec {
            name: "slaveof",
            since: "1.0.0",
            ..REPLICA_OF
        },
        replica_of,
    ),
];

fn role(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let mut reply = turn.reply();
    reply.array(3);
    reply.bulk_str("master");
    reply.integer(0);
    reply.array(0);
    Ok(Next::Continue)
}

/// How long to wait, `None`: for ever.
fn timeout(text: &[u8]) -> Result<Option<Duration>, Error> {
    match numbers::parse_i64(text) {
        None => Err(Error::text("ERR timeout is not an integer or out of range")),
        Some(..0) => Err(Error::text("ERR timeout is negative")),
        Some(0) => Ok(None),
        Some(ms) => Ok(Some(Duration::from_millis(ms.unsigned_abs()))),
    }
}

fn wait(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let replicas = numbers::parse_i64(args.arg(1)).ok_or(Error::NotAnInteger)?;
    let timeout = timeout(args.arg(2))?;
    // There are no replicas, so none has acknowledged anything, now and when the time is over.
    answer_later(turn, replicas <= 0, timeout, &|reply| reply.integer(0))
}

fn wait_for_file(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let range = |at: usize, max: i64| match numbers::parse_i64(args.arg(at)) {
        Some(number) if (0..=max).contains(&number) => Ok(number),
        _ => Err(Error::text("ERR value is out of range, must be positive")),
    };
    let local = range(1, 1)?;
    let replicas = range(2, i64::MAX)?;
    let timeout = timeout(args.arg(3))?;
    if local != 0 {
        return Err(Error::text(
            "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
        ));
    }
    answer_later(turn, replicas == 0, timeout, &|reply| {
        reply.array(2);
        reply.integer(0);
        reply.integer(0);
    })
}

/// Answers at once or when the time is over; never inside a transaction, which does not wait.
fn answer_later(
    turn: &mut Turn<'_, '_>,
    at_once: bool,
    timeout: Option<Duration>,
    write: &dyn Fn(&mut Reply<'_>),
) -> Result<Next, Error> {
    if at_once || turn.held.is_some() {
        write(&mut turn.reply());
        return Ok(Next::Continue);
    }
    if let Some(timeout) = timeout {
        let mut bytes = Vec::new();
        write(&mut Reply::new(&mut bytes, turn.session.proto));
        later::reply_after(turn.shared, timeout, turn.party, turn.conn, bytes)
            .map_err(|error| Error::owned(format!("ERR the server cannot wait: {error}")))?;
    }
    Ok(Next::Away)
}

fn replica_of(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    if args.is(1, "no") && args.is(2, "one") {
        return turn.ok();
    }
    if !numbers::parse_i64(args.arg(2)).is_some_and(|port| (0..=65_535).contains(&port)) {
        return Err(Error::text("ERR Invalid master port"));
    }
    Err(Error::text(
        "ERR this server cannot be a replica: there is no replication yet",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_as_redis_reads_them() {
        assert_eq!(timeout(b"0"), Ok(None));
        assert_eq!(timeout(b"1500"), Ok(Some(Duration::from_millis(1_500))));
        assert_eq!(timeout(b"-1"), Err(Error::text("ERR timeout is negative")));
        assert_eq!(
            timeout(b"x"),
            Err(Error::text("ERR timeout is not an integer or out of range"))
        );
    }
}
