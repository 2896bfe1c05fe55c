//! `COMMAND INFO`: what the table says about one command, in the layout of Redis.

use super::categories;
use crate::registry::{Entry, Registry};
use pantala_commands::spec::{Begin, Find, Flags, KeyFlags, KeySpec, Spec};
use pantala_protocol::Reply;

/// Flags in Redis's order. Those that Redis keeps to itself are missing.
const FLAG_NAMES: [(Flags, &str); 18] = [
    (Flags::WRITE, "write"),
    (Flags::READONLY, "readonly"),
    (Flags::DENYOOM, "denyoom"),
    (Flags::ADMIN, "admin"),
    (Flags::PUBSUB, "pubsub"),
    (Flags::NOSCRIPT, "noscript"),
    (Flags::BLOCKING, "blocking"),
    (Flags::LOADING, "loading"),
    (Flags::STALE, "stale"),
    (Flags::SKIP_MONITOR, "skip_monitor"),
    (Flags::SKIP_SLOWLOG, "skip_slowlog"),
    (Flags::FAST, "fast"),
    (Flags::NO_AUTH, "no_auth"),
    (Flags::NO_MANDATORY_KEYS, "no_mandatory_keys"),
    (Flags::NO_ASYNC_LOADING, "no_async_loading"),
    (Flags::NO_MULTI, "no_multi"),
    (Flags::MOVABLEKEYS, "movablekeys"),
    (Flags::ALLOW_BUSY, "allow_busy"),
];

const KEY_FLAG_NAMES: [(KeyFlags, &str); 11] = [
    (KeyFlags::RO, "RO"),
    (KeyFlags::RW, "RW"),
    (KeyFlags::OW, "OW"),
    (KeyFlags::RM, "RM"),
    (KeyFlags::ACCESS, "access"),
    (KeyFlags::UPDATE, "update"),
    (KeyFlags::INSERT, "insert"),
    (KeyFlags::DELETE, "delete"),
    (KeyFlags::NOT_KEY, "not_key"),
    (KeyFlags::INCOMPLETE, "incomplete"),
    (KeyFlags::VARIABLE_FLAGS, "variable_flags"),
];

/// First key, last key and step as they were told before there were key specifications, and whether those do not tell all.
pub struct LegacyRange {
    /// Argument of the first key, 0: none.
    pub first: i64,
    /// Argument of the last key, negative from the end.
    pub last: i64,
    /// Distance between keys.
    pub step: i64,
    /// Other rules are needed to find all keys.
    pub movable: bool,
}

/// The range that covers as many of the key specifications as one range can.
pub fn legacy_range(specs: &[KeySpec]) -> LegacyRange {
    let mut range = LegacyRange {
        first: 0,
        last: 0,
        step: 0,
        movable: false,
    };
    for spec in specs {
        range.movable |= spec.flags.contains(KeyFlags::INCOMPLETE);
        let (Begin::Index(first), Find::Range { last, step, .. }) = (spec.begin, spec.find) else {
            range.movable = true;
            continue;
        };
        let (first, step) = (i64::from(first), i64::from(step));
        let last = if last >= 0 {
            first + i64::from(last)
        } else {
            i64::from(last)
        };
        let alone = specs.len() == 1;
        // Several rules make one range only where each goes on at the next argument.
        if !alone && (step != 1 || (range.last != 0 && range.last != first - 1)) {
            range.movable = true;
            continue;
        }
        if range.first == 0 {
            range.first = first;
        }
        range.step = if alone { step } else { 1 };
        range.last = last;
    }
    range
}

/// Writes one command, or nothing that was found.
pub fn reply_info(reply: &mut Reply<'_>, registry: &Registry, entry: Option<&Entry>) {
    let Some(entry) = entry else {
        reply.null();
        return;
    };
    let spec = &entry.spec;
    let range = legacy_range(spec.keys);
    reply.array(10);
    reply.bulk_str(&entry.full_name);
    reply.integer(i64::from(spec.arity));
    flags(reply, spec, range.movable);
    reply.integer(range.first);
    reply.integer(range.last);
    reply.integer(range.step);
    let names: Vec<&str> = categories::of(spec).collect();
    reply.set(names.len());
    for name in names {
        reply.simple(format!("@{name}"));
    }
    reply.set(spec.tips.len());
    for tip in spec.tips {
        reply.bulk_str(tip);
    }
    reply.set(spec.keys.len());
    for rule in spec.keys {
        key_spec(reply, rule);
    }
    // Without subcommands Redis writes an empty set, with some an array.
    if entry.subcommands.is_empty() {
        reply.set(0);
    } else {
        reply.array(entry.subcommands.len());
    }
    for &id in &entry.subcommands {
        reply_info(reply, registry, Some(registry.entry(id)));
    }
}

fn flags(reply: &mut Reply<'_>, spec: &Spec, movable: bool) {
    let mut flags = spec.flags;
    flags.set(
        Flags::MOVABLEKEYS,
        movable || flags.contains(Flags::MOVABLEKEYS),
    );
    let names: Vec<&str> = FLAG_NAMES
        .iter()
        .filter(|(flag, _)| flags.contains(*flag))
        .map(|(_, name)| *name)
        .collect();
    reply.set(names.len());
    for name in names {
        reply.simple(name);
    }
}

/// Writes the flags of a key.
pub fn key_flags(reply: &mut Reply<'_>, flags: KeyFlags) {
    let names: Vec<&str> = KEY_FLAG_NAMES
        .iter()
        .filter(|(flag, _)| flags.contains(*flag))
        .map(|(_, name)| *name)
        .collect();
    reply.set(names.len());
    for name in names {
        reply.simple(name);
    }
}

fn key_spec(reply: &mut Reply<'_>, rule: &KeySpec) {
    reply.map(3);
    reply.bulk_str("flags");
    key_flags(reply, rule.flags);
    reply.bulk_str("begin_search");
    reply.map(2);
    reply.bulk_str("type");
    match rule.begin {
        Begin::Index(at) => spec_of(reply, "index", &[("index", Value::Number(i64::from(at)))]),
        Begin::Keyword(word, from) => {
            spec_of(
                reply,
                "keyword",
                &[
                    ("keyword", Value::Text(word)),
                    ("startfrom", Value::Number(i64::from(from))),
                ],
            );
        }
        Begin::Unknown => spec_of(reply, "unknown", &[]),
    }
    reply.bulk_str("find_keys");
    reply.map(2);
    reply.bulk_str("type");
    match rule.find {
        Find::Range { last, step, limit } => spec_of(
            reply,
            "range",
            &[
                ("lastkey", Value::Number(i64::from(last))),
                ("keystep", Value::Number(i64::from(step))),
                ("limit", Value::Number(i64::from(limit))),
            ],
        ),
        Find::KeyNum {
            count_at,
            first,
            step,
        } => spec_of(
            reply,
            "keynum",
            &[
                ("keynumidx", Value::Number(i64::from(count_at))),
                ("firstkey", Value::Number(i64::from(first))),
                ("keystep", Value::Number(i64::from(step))),
            ],
        ),
        Find::Unknown => spec_of(reply, "unknown", &[]),
    }
}

enum Value {
    Number(i64),
    Text(&'static str),
}

fn spec_of(reply: &mut Reply<'_>, kind: &str, values: &[(&str, Value)]) {
    reply.bulk_str(kind);
    reply.bulk_str("spec");
    reply.map(values.len());
    for (name, value) in values {
        reply.bulk_str(name);
        match value {
            Value::Number(number) => reply.integer(*number),
            Value::Text(text) => reply.bulk_str(text),
        }
    }
}
