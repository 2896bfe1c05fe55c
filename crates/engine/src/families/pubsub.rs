//! `SUBSCRIBE PSUBSCRIBE SSUBSCRIBE`, their opposites, `PUBLISH SPUBLISH`, and `PUBSUB`.
//!
//! How messages travel is in [`crate::pubsub`]; here is what clients say and hear.

use super::help;
use crate::pubsub::{Kind, Subscriptions};
use crate::registry::{Entry, SessionCommand};
use crate::session::ReplyMode;
use crate::shared::Mail;
use crate::stats;
use crate::turn::{Next, Turn};
use pantala_commands::Error;
use pantala_commands::spec::{Acl, Flags, Group, KeyFlags, KeySpec, Spec};
use pantala_protocol::{Args, Reply};
use std::sync::Arc;

const PUBSUB: Spec = Spec {
    group: Group::Pubsub,
    since: "2.0.0",
    flags: Flags::PUBSUB.union(Flags::LOADING).union(Flags::STALE),
    acl: Acl::PUBSUB,
    ..Spec::BASE
};

const SUBSCRIBE: Spec = Spec {
    arity: -2,
    complexity: "O(N) where N is the number of names.",
    flags: PUBSUB.flags.union(Flags::NOSCRIPT),
    ..PUBSUB
};

const UNSUBSCRIBE: Spec = Spec {
    arity: -1,
    ..SUBSCRIBE
};

const PUBLISH: Spec = Spec {
    arity: 3,
    flags: PUBSUB.flags.union(Flags::FAST).union(Flags::MAY_REPLICATE),
    ..PUBSUB
};

const ASK: Spec = Spec {
    arity: -2,
    since: "2.8.0",
    ..PUBSUB
};

const SHARD_CHANNELS: &[KeySpec] = &[KeySpec::all_from(1, 1, KeyFlags::NOT_KEY)];

/// The family's commands.
pub const COMMANDS: &[SessionCommand] = &[
    SessionCommand::new(
        Spec {
            name: "subscribe",
            summary: "Listens for messages published to channels.",
            syntax: "channel [channel ...]",
            ..SUBSCRIBE
        },
        |turn, args| subscribe(turn, args, Kind::Channel),
    ),
    SessionCommand::new(
        Spec {
            name: "unsubscribe",
            summary: "Stops listening to messages posted to channels.",
            syntax: "[channel [channel ...]]",
            ..UNSUBSCRIBE
        },
        |turn, args| unsubscribe(turn, args, Kind::Channel),
    ),
    SessionCommand::new(
        Spec {
            name: "psubscribe",
            summary: "Listens for messages published to channels that match one or more patterns.",
            syntax: "pattern [pattern ...]",
            ..SUBSCRIBE
        },
        |turn, args| subscribe(turn, args, Kind::Pattern),
    ),
    SessionCommand::new(
        Spec {
            name: "punsubscribe",
            summary: "Stops listening to messages published to channels that match one or more patterns.",
            syntax: "[pattern [pattern ...]]",
            ..UNSUBSCRIBE
        },
        |turn, args| unsubscribe(turn, args, Kind::Pattern),
    ),
    SessionCommand::new(
        Spec {
            name: "ssubscribe",
            summary: "Listens for messages published to shard channels.",
            since: "7.0.0",
            keys: SHARD_CHANNELS,
            syntax: "shardchannel [shardchannel ...]",
            ..SUBSCRIBE
        },
        |turn, args| subscribe(turn, args, Kind::Shard),
    ),
    SessionCommand::new(
        Spec {
            name: "sunsubscribe",
            summary: "Stops listening to messages posted to shard channels.",
            since: "7.0.0",
            keys: SHARD_CHANNELS,
            syntax: "[shardchannel [shardchannel ...]]",
            ..UNSUBSCRIBE
        },
        |turn, args| unsubscribe(turn, args, Kind::Shard),
    ),
    SessionCommand::new(
        Spec {
            name: "publish",
            summary: "Posts a message to a channel.",
            complexity: "O(N+M) where N is the number of the channel's subscribers and M the number of all patterns.",
            syntax: "channel message",
            ..PUBLISH
        },
        |turn, args| publish(turn, args, Kind::Channel),
    ),
    SessionCommand::new(
        Spec {
            name: "spublish",
            summary: "Posts a message to a shard channel.",
            since: "7.0.0",
            complexity: "O(N) where N is the number of the shard channel's subscribers.",
            keys: &[KeySpec::one(1, KeyFlags::NOT_KEY)],
            syntax: "shardchannel message",
            ..PUBLISH
        },
        |turn, args| publish(turn, args, Kind::Shard),
    ),
    SessionCommand::container(
        Spec {
            name: "pubsub",
            summary: "A container for questions about publish and subscribe.",
            since: "2.8.0",
            group: Group::Pubsub,
            ..help::CONTAINER
        },
        &[
            SessionCommand::new(
                Spec {
                    name: "channels",
                    summary: "Returns the channels that have subscribers.",
                    complexity: "O(N) where N is the number of channels with subscribers.",
                    syntax: "[pattern]",
                    ..ASK
                },
                |turn, args| channels(turn, args, Kind::Channel),
            ),
            SessionCommand::new(
                Spec {
                    since: "6.2.0",
                    group: Group::Pubsub,
                    ..help::HELP
                },
                help_text,
            ),
            SessionCommand::new(
                Spec {
                    name: "numpat",
                    summary: "Returns the number of patterns that have subscribers.",
                    arity: 2,
                    ..ASK
                },
                numpat,
            ),
            SessionCommand::new(
                Spec {
                    name: "numsub",
                    summary: "Returns the number of subscribers of channels.",
                    complexity: "O(N) where N is the number of channels asked for.",
                    syntax: "[channel [channel ...]]",
                    ..ASK
                },
                |turn, args| numsub(turn, args, Kind::Channel),
            ),
            SessionCommand::new(
                Spec {
                    name: "shardchannels",
                    summary: "Returns the shard channels that have subscribers.",
                    since: "7.0.0",
                    complexity: "O(N) where N is the number of shard channels with subscribers.",
                    syntax: "[pattern]",
                    ..ASK
                },
                |turn, args| channels(turn, args, Kind::Shard),
            ),
            SessionCommand::new(
                Spec {
                    name: "shardnumsub",
                    summary: "Returns the number of subscribers of shard channels.",
                    since: "7.0.0",
                    complexity: "O(N) where N is the number of shard channels asked for.",
                    syntax: "[shardchannel [shardchannel ...]]",
                    ..ASK
                },
                |turn, args| numsub(turn, args, Kind::Shard),
            ),
        ],
    ),
];

/// Whether a RESP2 subscriber may run a command.
pub fn may_run(entry: &Entry) -> bool {
    entry.parent.is_none()
        && matches!(
            entry.spec.name,
            "ping"
                | "subscribe"
                | "unsubscribe"
                | "psubscribe"
                | "punsubscribe"
                | "ssubscribe"
                | "sunsubscribe"
                | "quit"
                | "reset"
        )
}

/// Whether a subscriber's command must wait for messages that were published before it and have not reached this worker yet: they
/// come before its reply. Never inside a transaction, which cannot stop half-way.
pub fn awaits_mail(turn: &mut Turn<'_, '_>) -> bool {
    let taken = turn.local.taken;
    let posted = turn.shared.pubsub.posted(turn.party);
    let awaited = &mut turn.session.mail_awaited;
    if turn.held.is_some() || taken == posted {
        *awaited = 0;
        return false;
    }
    if *awaited == 0 {
        // What is posted from now on is not waited for, so a busy publisher cannot hold it up for ever.
        *awaited = posted;
    }
    let waits = taken < *awaited;
    if !waits {
        *awaited = 0;
    }
    waits
}

/// Where confirmations go. They are messages: `CLIENT REPLY OFF` does not silence them.
fn confirmations<'t>(turn: &'t mut Turn<'_, '_>) -> Reply<'t> {
    let out = if turn.session.reply_mode == ReplyMode::On {
        turn.io.out(turn.conn)
    } else {
        &mut turn.local.to_self
    };
    Reply::new(out, turn.session.proto)
}

fn confirm(turn: &mut Turn<'_, '_>, word: &str, name: Option<&[u8]>, count: usize) {
    let mut reply = confirmations(turn);
    reply.push(3);
    reply.bulk_str(word);
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.integer(count as i64);
}

fn subscribe(turn: &mut Turn<'_, '_>, args: Args<'_>, kind: Kind) -> Result<Next, Error> {
    if kind == Kind::Shard && turn.held.is_some() {
        // A transaction needs exactly one reply per command; the other two are let through for the sake of old clients.
        return Err(Error::text(
            "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client",
        ));
    }
    let word = match kind {
        Kind::Channel => "subscribe",
        Kind::Pattern => "psubscribe",
        Kind::Shard => "ssubscribe",
    };
    let place = turn.session.place();
    let mut mine = turn.session.subscriptions.take().unwrap_or_default();
    for name in args.iter().skip(1) {
        turn.local
            .subscribe(&turn.shared.pubsub, place, &mut mine, kind, name);
        confirm(turn, word, Some(name), mine.told(kind));
    }
    keep(turn, mine);
    Ok(Next::Continue)
}

fn unsubscribe(turn: &mut Turn<'_, '_>, args: Args<'_>, kind: Kind) -> Result<Next, Error> {
    if turn.session.subscriptions.is_some() && awaits_mail(turn) {
        return Ok(Next::Again);
    }
    let word = match kind {
        Kind::Channel => "unsubscribe",
        Kind::Pattern => "punsubscribe",
        Kind::Shard => "sunsubscribe",
    };
    let place = turn.session.place();
    let mut mine = turn.session.subscriptions.take().unwrap_or_default();
    let all: Vec<Arc<[u8]>> = if args.len() == 1 {
        mine.of(kind).iter().cloned().collect()
    } else {
        Vec::new()
    };
    for name in args.iter().skip(1).chain(all.iter().map(|name| &**name)) {
        turn.local
            .unsubscribe(&turn.shared.pubsub, place, &mut mine, kind, name);
        confirm(turn, word, Some(name), mine.told(kind));
    }
    if args.len() == 1 && all.is_empty() {
        confirm(turn, word, None, mine.told(kind));
    }
    keep(turn, mine);
    Ok(Next::Continue)
}

/// Puts the subscriptions back; a client without any is an ordinary one.
fn keep(turn: &mut Turn<'_, '_>, mine: Box<Subscriptions>) {
    turn.session.subscriptions = (!mine.is_empty()).then_some(mine);
    turn.session.note_subscriptions();
}

fn publish(turn: &mut Turn<'_, '_>, args: Args<'_>, kind: Kind) -> Result<Next, Error> {
    let shared = turn.shared;
    // They are woken at the end of the batch, so that a pipeline of messages costs one wake and one send to each subscriber.
    let to_wake = &mut turn.local.to_wake;
    let published = shared.pubsub.publish(
        kind,
        args.arg(1),
        args.arg(2),
        Some((turn.party, turn.local.taken)),
        |worker, message| {
            shared.send_quietly(worker, Mail::Published(message));
            if !to_wake.contains(&worker) {
                to_wake.push(worker);
            }
        },
    );
    if let Some(message) = published.own {
        let limit = turn.settings.client_output_buffer_limit.pubsub;
        let closed = turn
            .local
            .deliver(turn.io, limit, Some(turn.conn), &message);
        stats::add(&shared.stats.party(turn.party).closed_for_output, closed);
    }
    turn.reply().integer(published.receivers as i64);
    Ok(Next::Continue)
}

fn channels(turn: &mut Turn<'_, '_>, args: Args<'_>, kind: Kind) -> Result<Next, Error> {
    if args.len() > 3 {
        return Err(help::wrong_subcommand(args));
    }
    let names = turn.shared.pubsub.names(kind, args.get(2));
    let mut reply = turn.reply();
    reply.array(names.len());
    names.iter().for_each(|name| reply.bulk(name));
    Ok(Next::Continue)
}

fn numsub(turn: &mut Turn<'_, '_>, args: Args<'_>, kind: Kind) -> Result<Next, Error> {
    let shared = turn.shared;
    let mut reply = turn.reply();
    reply.array((args.len() - 2) * 2);
    for name in args.iter().skip(2) {
        reply.bulk(name);
        reply.integer(shared.pubsub.clients(kind, name) as i64);
    }
    Ok(Next::Continue)
}

fn numpat(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let count = turn.shared.pubsub.count(Kind::Pattern) as i64;
    turn.reply().integer(count);
    Ok(Next::Continue)
}

fn help_text(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    help::reply(
        turn,
        args,
        &[
            "CHANNELS [<pattern>]",
            "    Return the currently active channels matching a <pattern> (default: '*').",
            "NUMPAT",
            "    Return number of subscriptions to patterns.",
            "NUMSUB [<channel> ...]",
            "    Return the number of subscribers for the specified channels, excluding",
            "    pattern subscriptions(default: no channels).",
            "SHARDCHANNELS [<pattern>]",
            "    Return the currently active shard level channels matching a <pattern> (default: '*').",
            "SHARDNUMSUB [<shardchannel> ...]",
            "    Return the number of subscribers for the specified shard level channel(s)",
        ],
    )
}
