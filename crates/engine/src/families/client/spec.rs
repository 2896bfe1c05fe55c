//! What is said about `CLIENT` and its subcommands.

use super::super::help::HELP;
use crate::registry::SessionCommand;
use pantala_commands::spec::{Acl, Flags, Group, Spec};

/// What a client asks about itself.
const OWN: Spec = Spec {
    group: Group::Connection,
    arity: 2,
    acl: Acl::CONNECTION,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    ..Spec::BASE
};

/// What concerns other clients.
const ADMIN: Spec = Spec {
    flags: OWN.flags.union(Flags::ADMIN),
    ..OWN
};

/// The conditions that `LIST` and `KILL` share, in the notation of [`Spec::syntax`].
macro_rules! filters {
    () => {
        "[TYPE <NORMAL|MASTER|PRIMARY|SLAVE|REPLICA|PUBSUB>] [ID client-id [client-id ...]] [USER username] [ADDR ip:port] \
         [LADDR ip:port] [SKIPME <YES|NO>] [MAXAGE seconds] [NAME name] [IDLE seconds] [FLAGS flags] [LIB-NAME lib-name] \
         [LIB-VER lib-ver] [DB index] [CAPA capa] [IP ip] [NOT-TYPE <NORMAL|MASTER|PRIMARY|SLAVE|REPLICA|PUBSUB>] \
         [NOT-ID client-id [client-id ...]] [NOT-USER username] [NOT-ADDR ip:port] [NOT-LADDR ip:port] [NOT-NAME name] \
         [NOT-FLAGS flags] [NOT-LIB-NAME lib-name] [NOT-LIB-VER lib-ver] [NOT-DB index] [NOT-CAPA capa] [NOT-IP ip]"
    };
}

/// The family's commands.
pub const COMMANDS: &[SessionCommand] = &[SessionCommand::container(
    Spec {
        name: "client",
        summary: "A container for commands about client connections.",
        since: "2.4.0",
        group: Group::Connection,
        complexity: "Depends on subcommand.",
        arity: -2,
        ..Spec::BASE
    },
    SUBCOMMANDS,
)];

const SUBCOMMANDS: &[SessionCommand] = &[
    SessionCommand::new(
        Spec {
            name: "getname",
            summary: "Returns the connection's name.",
            since: "2.6.9",
            ..OWN
        },
        super::getname,
    ),
    SessionCommand::new(
        Spec {
            name: "getredir",
            summary: "Returns which client receives this connection's invalidation messages.",
            since: "6.0.0",
            ..OWN
        },
        super::getredir,
    ),
    SessionCommand::new(
        Spec {
            since: "5.0.0",
            group: Group::Connection,
            acl: Acl::CONNECTION,
            ..HELP
        },
        super::help,
    ),
    SessionCommand::new(
        Spec {
            name: "id",
            summary: "Returns the connection's unique identifier.",
            since: "5.0.0",
            ..OWN
        },
        super::id,
    ),
    SessionCommand::new(
        Spec {
            name: "info",
            summary: "Describes this connection.",
            since: "6.2.0",
            tips: &["nondeterministic_output"],
            ..OWN
        },
        super::info,
    ),
    SessionCommand::new(
        Spec {
            name: "kill",
            arity: -3,
            summary: "Closes connections.",
            since: "2.4.0",
            complexity: "O(N) where N is the number of client connections",
            syntax: concat!("<ip:port|", filters!(), ">"),
            ..ADMIN
        },
        super::kill,
    ),
    SessionCommand::new(
        Spec {
            name: "list",
            arity: -2,
            summary: "Describes all connections, or those that match.",
            since: "2.4.0",
            complexity: "O(N) where N is the number of client connections",
            tips: &["nondeterministic_output"],
            syntax: filters!(),
            ..ADMIN
        },
        super::list,
    ),
    SessionCommand::new(
        Spec {
            name: "no-evict",
            arity: 3,
            summary: "Protects the connection from being closed for its memory.",
            since: "7.0.0",
            syntax: "<ON|OFF>",
            ..ADMIN
        },
        super::no_evict,
    ),
    SessionCommand::new(
        Spec {
            name: "no-touch",
            arity: 3,
            summary: "Says whether this connection's commands count as uses of keys.",
            since: "7.2.0",
            syntax: "<ON|OFF>",
            ..OWN
        },
        super::no_touch,
    ),
    SessionCommand::new(
        Spec {
            name: "pause",
            arity: -3,
            summary: "Holds back the commands of all clients for a while.",
            since: "2.9.50",
            syntax: "timeout [WRITE|ALL]",
            ..ADMIN
        },
        super::pause,
    ),
    SessionCommand::new(
        Spec {
            name: "reply",
            arity: 3,
            summary: "Says whether this connection gets replies.",
            since: "3.2.0",
            syntax: "<ON|OFF|SKIP>",
            ..OWN
        },
        super::reply,
    ),
    SessionCommand::new(
        Spec {
            name: "setinfo",
            arity: 4,
            summary: "Describes the client's library.",
            since: "7.2.0",
            tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
            syntax: "<LIB-NAME libname|LIB-VER libver>",
            ..OWN
        },
        super::setinfo,
    ),
    SessionCommand::new(
        Spec {
            name: "setname",
            arity: 3,
            summary: "Names the connection.",
            since: "2.6.9",
            syntax: "connection-name",
            ..OWN
        },
        super::setname,
    ),
    SessionCommand::new(
        Spec {
            name: "trackinginfo",
            summary: "Reports on server-assisted client-side caching for this connection.",
            since: "6.2.0",
            ..OWN
        },
        super::trackinginfo,
    ),
    SessionCommand::new(
        Spec {
            name: "unblock",
            arity: -3,
            summary: "Releases a client from a blocking command.",
            since: "5.0.0",
            complexity: "O(log N) where N is the number of client connections",
            syntax: "client-id [TIMEOUT|ERROR]",
            ..ADMIN
        },
        super::unblock,
    ),
    SessionCommand::new(
        Spec {
            name: "unpause",
            summary: "Lets clients go on that were paused.",
            since: "6.2.0",
            complexity: "O(N) where N is the number of paused clients",
            ..ADMIN
        },
        super::unpause,
    ),
];
