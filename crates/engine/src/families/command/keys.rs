//! `COMMAND GETKEYS` and `GETKEYSANDFLAGS`: where the keys of a full command stand and what it does with them.

use super::describe;
use crate::registry::{Entry, Lookup};
use crate::turn::{Next, Turn};
use pantala_commands::Error;
use pantala_commands::spec::{Begin, Find, Flags, KeyFlags, Spec};
use pantala_protocol::Args;

pub(super) fn names(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let inner = args.slice_from(2);
    let keys = keys_of(turn, inner)?;
    let mut reply = turn.reply();
    reply.array(keys.len());
    for (at, _) in keys {
        reply.bulk(inner.arg(at as usize));
    }
    Ok(Next::Continue)
}

pub(super) fn with_flags(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let inner = args.slice_from(2);
    let keys = keys_of(turn, inner)?;
    let mut reply = turn.reply();
    reply.array(keys.len());
    for (at, flags) in keys {
        reply.array(2);
        reply.bulk(inner.arg(at as usize));
        describe::key_flags(&mut reply, flags);
    }
    Ok(Next::Continue)
}

/// Argument positions of the keys of a full command, with what is done with them.
fn keys_of(turn: &Turn<'_, '_>, args: Args<'_>) -> Result<Vec<(u32, KeyFlags)>, Error> {
    let entry: &Entry = match turn.shared.registry.lookup(args) {
        Lookup::Found(entry) => entry,
        Lookup::Unknown | Lookup::UnknownSubcommand(_) => {
            return Err(Error::text("ERR Invalid command specified"));
        }
    };
    let spec = &entry.spec;
    if spec.find_keys.is_none() && spec.keys.is_empty() {
        return Err(Error::text("ERR The command has no key arguments"));
    }
    if !spec.arity_fits(args.len()) {
        return Err(Error::text(
            "ERR Invalid number of arguments specified for command",
        ));
    }
    let keys = positions_with_flags(spec, args);
    if keys.is_empty() && !spec.flags.contains(Flags::NO_MANDATORY_KEYS) {
        return Err(Error::text("ERR Invalid arguments specified for command"));
    }
    Ok(keys)
}

pub(super) fn positions_with_flags(spec: &Spec, args: Args<'_>) -> Vec<(u32, KeyFlags)> {
    let mut by_rule = Vec::new();
    for rule in spec.keys {
        let mut at = Vec::new();
        let one_rule = Spec {
            keys: std::slice::from_ref(rule),
            find_keys: None,
            ..*spec
        };
        pantala_commands::keys::positions(&one_rule, args, &mut at);
        let flags = flags_in_use(spec, rule.flags, args);
        by_rule.extend(at.into_iter().map(|at| (at, flags)));
    }
    let Some(find) = spec.find_keys else {
        return by_rule;
    };
    let mut at = Vec::new();
    find(args, &mut at);
    // A key that no rule finds is one of the rule that cannot say where its keys stand.
    let unknown = spec
        .keys
        .iter()
        .rfind(|rule| matches!(rule.begin, Begin::Unknown) || matches!(rule.find, Find::Unknown));
    let fallback = unknown
        .or(spec.keys.last())
        .map_or(KeyFlags::RW | KeyFlags::ACCESS | KeyFlags::UPDATE, |rule| {
            rule.flags
        });
    at.into_iter()
        .map(|at| {
            let known = by_rule
                .iter()
                .find(|(other, _)| *other == at)
                .map(|(_, flags)| *flags);
            (
                at,
                known.unwrap_or_else(|| flags_in_use(spec, fallback, args)),
            )
        })
        .collect()
}

/// What a command does with its key when that depends on its options.
fn flags_in_use(spec: &Spec, flags: KeyFlags, args: Args<'_>) -> KeyFlags {
    let plain = flags - KeyFlags::VARIABLE_FLAGS - KeyFlags::INCOMPLETE;
    if !flags.contains(KeyFlags::VARIABLE_FLAGS) {
        return plain;
    }
    match spec.name {
        // Without an option that looks at the old value, the key is only overwritten.
        "set" => {
            let looks = |arg: &[u8]| {
                ["GET", "IFEQ", "IFNE", "IFDEQ", "IFDNE"]
                    .iter()
                    .any(|word| arg.eq_ignore_ascii_case(word.as_bytes()))
            };
            if args.slice_from(3).iter().any(looks) {
                plain
            } else {
                KeyFlags::OW | KeyFlags::UPDATE
            }
        }
        "bitfield" => {
            let writes = |arg: &[u8]| {
                arg.eq_ignore_ascii_case(b"SET") || arg.eq_ignore_ascii_case(b"INCRBY")
            };
            if args.slice_from(2).iter().any(writes) {
                plain
            } else {
                KeyFlags::RO | KeyFlags::ACCESS
            }
        }
        _ => plain,
    }
}
