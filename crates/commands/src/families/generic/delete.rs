//! `DEL`, `UNLINK`, `EXISTS`, `TOUCH`, `TYPE`.
//!
//! `DEL` and `UNLINK` do the same: the store always frees large values piece by piece.

use super::shared::{GENERIC, type_name};
use crate::families::string::shared::{READ_FAST, WRITE_FAST, announce_miss};
use crate::spec::{Command, Flags, KeyFlags, KeySpec, Spec};
use crate::{Ctx, Done, EventClass};
use pantala_protocol::Args;

const REMOVED: &[KeySpec] = &[KeySpec::all_from(
    1,
    1,
    KeyFlags::RM.union(KeyFlags::DELETE),
)];
const LOOKED_AT: &[KeySpec] = &[KeySpec::all_from(1, 1, KeyFlags::RO)];
const SUM: &[&str] = &["request_policy:multi_shard", "response_policy:agg_sum"];

/// `DEL`
pub const DEL: Command = Command::keyed(
    Spec {
        name: "del",
        summary: "Removes keys.",
        complexity: "O(N) where N is the number of keys; the memory of large values is freed afterwards.",
        arity: -2,
        flags: Flags::WRITE,
        keys: REMOVED,
        tips: SUM,
        syntax: "key [key ...]",
        ..GENERIC
    },
    remove,
);

/// `UNLINK`
pub const UNLINK: Command = Command::keyed(
    Spec {
        name: "unlink",
        summary: "Removes keys; the memory of their values is freed afterwards.",
        since: "4.0.0",
        complexity: "O(1) for each key; the memory of large values is freed afterwards.",
        arity: -2,
        flags: WRITE_FAST,
        keys: REMOVED,
        tips: SUM,
        syntax: "key [key ...]",
        ..GENERIC
    },
    remove,
);

/// `EXISTS`
pub const EXISTS: Command = Command::keyed(
    Spec {
        name: "exists",
        summary: "Counts how many of the given keys exist; one that is named twice counts twice.",
        complexity: "O(N) where N is the number of keys.",
        arity: -2,
        flags: READ_FAST,
        keys: LOOKED_AT,
        tips: SUM,
        syntax: "key [key ...]",
        ..GENERIC
    },
    exists,
);

/// `TOUCH`
pub const TOUCH: Command = Command::keyed(
    Spec {
        name: "touch",
        summary: "Notes a use of keys and answers how many of them exist.",
        since: "3.2.1",
        complexity: "O(N) where N is the number of keys.",
        arity: -2,
        flags: READ_FAST,
        keys: LOOKED_AT,
        tips: SUM,
        syntax: "key [key ...]",
        ..GENERIC
    },
    touch,
);

/// `TYPE`
pub const TYPE: Command = Command::keyed(
    Spec {
        name: "type",
        summary: "Answers the type of a key's value.",
        arity: 2,
        flags: READ_FAST,
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key",
        ..GENERIC
    },
    type_of,
);

fn remove(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let mut removed = 0;
    for nth in 0..cx.keys.len() {
        let key = cx.key(args, nth);
        if cx.space.db(cx.db_index, cx.now_ms).remove(&key) {
            removed += 1;
            cx.fx.modified(key.bytes, EventClass::GENERIC, "del");
        }
    }
    cx.fx.verbatim();
    cx.reply.integer(removed);
    Ok(())
}

fn exists(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    count(cx, args, |cx, args, nth| {
        let key = cx.key(args, nth);
        cx.space.db(cx.db_index, cx.now_ms).exists(&key)
    })
}

fn touch(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    // TOUCH means what it says also under CLIENT NO-TOUCH.
    cx.space.set_no_touch(false);
    count(cx, args, |cx, args, nth| {
        let key = cx.key(args, nth);
        cx.space.db(cx.db_index, cx.now_ms).touch(&key)
    })
}

fn count(
    cx: &mut Ctx<'_, '_>,
    args: Args<'_>,
    mut is_there: impl FnMut(&mut Ctx<'_, '_>, Args<'_>, usize) -> bool,
) -> Done {
    let mut found = 0;
    for nth in 0..cx.keys.len() {
        if is_there(cx, args, nth) {
            found += 1;
        } else {
            announce_miss(cx.fx, cx.key(args, nth).bytes);
        }
    }
    cx.reply.integer(found);
    Ok(())
}

fn type_of(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let key = cx.key(args, 0);
    match cx.space.db(cx.db_index, cx.now_ms).peek(&key) {
        Some(entry) => cx.reply.simple(type_name(entry.kind())),
        None => {
            announce_miss(cx.fx, key.bytes);
            cx.reply.simple("none");
        }
    }
    Ok(())
}
