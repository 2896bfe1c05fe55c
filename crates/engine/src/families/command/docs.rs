//! `COMMAND DOCS`: the documentation of a command, its arguments as a tree made from its syntax line.

use super::syntax::{self, Arg, Kind};
use crate::registry::{Entry, Registry};
use pantala_commands::spec::{Group, Spec};
use pantala_protocol::Reply;

/// Commands that Redis advises against: name, since when, what to use instead.
const DEPRECATED: [(&str, &str, &str); 7] = [
    ("getset", "6.2.0", "`SET` with the `GET` argument"),
    ("psetex", "2.6.12", "`SET` with the `PX` argument"),
    ("quit", "7.2.0", "just closing the connection"),
    ("setex", "2.6.12", "`SET` with the `EX` argument"),
    ("setnx", "2.6.12", "`SET` with the `NX` argument"),
    ("slaveof", "5.0.0", "`REPLICAOF`"),
    ("substr", "2.0.0", "`GETRANGE`"),
];

/// Writes a command's name and its documentation.
pub fn reply_docs(reply: &mut Reply<'_>, registry: &Registry, entry: &Entry) {
    let spec = &entry.spec;
    reply.bulk_str(&entry.full_name);
    let deprecated = DEPRECATED
        .iter()
        .find(|(name, ..)| *name == &*entry.full_name);
    let args = arguments_of(spec);
    let map = reply.map_deferred();
    let mut len = 2;
    text(reply, "summary", spec.summary);
    text(reply, "since", spec.since);
    text(reply, "group", group_name(spec.group));
    len += 1;
    if !spec.complexity.is_empty() {
        text(reply, "complexity", spec.complexity);
        len += 1;
    }
    if let Some((_, since, instead)) = deprecated {
        reply.bulk_str("doc_flags");
        reply.set(1);
        reply.simple("deprecated");
        text(reply, "deprecated_since", since);
        text(reply, "replaced_by", instead);
        len += 3;
    }
    if !args.is_empty() {
        reply.bulk_str("arguments");
        arguments(reply, &args);
        len += 1;
    }
    if !entry.subcommands.is_empty() {
        reply.bulk_str("subcommands");
        reply.map(entry.subcommands.len());
        for &id in &entry.subcommands {
            reply_docs(reply, registry, registry.entry(id));
        }
        len += 1;
    }
    reply.set_map_len(map, len);
}

/// The argument tree of a command. Its syntax line names an increment without saying that it may have a fraction.
fn arguments_of(spec: &Spec) -> Vec<Arg> {
    let mut args = syntax::parse(spec.syntax, spec.keys.len()).unwrap_or_default();
    if spec.name.ends_with("float") {
        for arg in args.iter_mut().filter(|arg| arg.name == "increment") {
            arg.kind = Kind::Double;
        }
    }
    args
}

fn text(reply: &mut Reply<'_>, name: &str, value: &str) {
    reply.bulk_str(name);
    reply.bulk_str(value);
}

fn arguments(reply: &mut Reply<'_>, args: &[Arg]) {
    reply.array(args.len());
    for arg in args {
        let nested = matches!(arg.kind, Kind::OneOf | Kind::Block);
        let flags: Vec<&str> = [
            (arg.optional, "optional"),
            (arg.multiple, "multiple"),
            (arg.multiple_token, "multiple_token"),
        ]
        .into_iter()
        .filter(|(set, _)| *set)
        .map(|(_, name)| name)
        .collect();
        // Name and type, and either how it is shown or what it consists of.
        let parts = 3
            + usize::from(arg.key_spec.is_some())
            + usize::from(arg.token.is_some())
            + usize::from(!flags.is_empty());
        reply.map(parts);
        text(reply, "name", &arg.name);
        text(reply, "type", arg.kind.name());
        if !nested {
            text(reply, "display_text", &arg.name);
        }
        if let Some(index) = arg.key_spec {
            reply.bulk_str("key_spec_index");
            reply.integer(index as i64);
        }
        if let Some(token) = &arg.token {
            text(reply, "token", token);
        }
        if !flags.is_empty() {
            reply.bulk_str("flags");
            reply.set(flags.len());
            for flag in flags {
                reply.simple(flag);
            }
        }
        if nested {
            reply.bulk_str("arguments");
            arguments(reply, &arg.args);
        }
    }
}

/// As the documentation names it.
pub const fn group_name(group: Group) -> &'static str {
    match group {
        Group::Generic => "generic",
        Group::String => "string",
        Group::List => "list",
        Group::Set => "set",
        Group::SortedSet => "sorted-set",
        Group::Hash => "hash",
        Group::Pubsub => "pubsub",
        Group::Transactions => "transactions",
        Group::Connection => "connection",
        Group::Server => "server",
        Group::Scripting => "scripting",
        Group::Hyperloglog => "hyperloglog",
        Group::Cluster => "cluster",
        Group::Geo => "geo",
        Group::Stream => "stream",
        Group::Bitmap => "bitmap",
    }
}
