//! The ACL categories of a command: what its flags and its group imply, and what its specification adds.

use pantala_commands::spec::{Acl, Flags, Group, Spec};

/// All categories in the order in which Redis lists them.
pub const ALL: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// Redis puts these into `@admin` though they lack the flag.
const ADMIN_WITHOUT_FLAG: [&str; 2] = ["lastsave", "role"];

/// The category that all commands of a group are in, if there is one.
fn of_group(group: Group) -> Acl {
    match group {
        Group::String => Acl::STRING,
        Group::List => Acl::LIST,
        Group::Set => Acl::SET,
        Group::SortedSet => Acl::SORTEDSET,
        Group::Hash => Acl::HASH,
        Group::Pubsub => Acl::PUBSUB,
        Group::Transactions => Acl::TRANSACTION,
        Group::Connection => Acl::CONNECTION,
        Group::Scripting => Acl::SCRIPTING,
        Group::Hyperloglog => Acl::HYPERLOGLOG,
        Group::Geo => Acl::GEO,
        Group::Stream => Acl::STREAM,
        Group::Bitmap => Acl::BITMAP,
        Group::Generic | Group::Server | Group::Cluster => Acl::empty(),
    }
}

/// Whether a command is in a category (without the `@`).
pub fn contains(spec: &Spec, category: &str) -> bool {
    let has = |flags: Flags| spec.flags.intersects(flags);
    let acl = spec.acl
        | if is_container(spec) {
            Acl::empty()
        } else {
            of_group(spec.group)
        };
    match category {
        "keyspace" => acl.contains(Acl::KEYSPACE),
        // Scripts may read, but whether one does is not known from its command.
        "read" => has(Flags::READONLY) && !acl.contains(Acl::SCRIPTING),
        "write" => has(Flags::WRITE),
        "set" => acl.contains(Acl::SET),
        "sortedset" => acl.contains(Acl::SORTEDSET),
        "list" => acl.contains(Acl::LIST),
        "hash" => acl.contains(Acl::HASH),
        "string" => acl.contains(Acl::STRING),
        "bitmap" => acl.contains(Acl::BITMAP),
        "hyperloglog" => acl.contains(Acl::HYPERLOGLOG),
        "geo" => acl.contains(Acl::GEO),
        "stream" => acl.contains(Acl::STREAM),
        "pubsub" => has(Flags::PUBSUB) || acl.contains(Acl::PUBSUB),
        "admin" => has(Flags::ADMIN) || ADMIN_WITHOUT_FLAG.contains(&spec.name),
        "fast" => has(Flags::FAST),
        "slow" => !has(Flags::FAST),
        "blocking" => has(Flags::BLOCKING),
        "dangerous" => has(Flags::ADMIN) || acl.contains(Acl::DANGEROUS),
        "connection" => acl.contains(Acl::CONNECTION),
        "transaction" => acl.contains(Acl::TRANSACTION),
        "scripting" => acl.contains(Acl::SCRIPTING),
        _ => false,
    }
}

/// Redis's containers have no category of their group: `CLIENT` is only slow, `CLIENT ID` is a matter of the connection.
fn is_container(spec: &Spec) -> bool {
    spec.flags.is_empty()
        && spec.acl.is_empty()
        && spec.complexity.starts_with("Depends on subcommand")
}

/// A command's categories in Redis's order.
pub fn of(spec: &Spec) -> impl Iterator<Item = &'static str> {
    ALL.into_iter()
        .filter(move |category| contains(spec, category))
}
