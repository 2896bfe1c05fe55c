//! Commands that change a string in place: `APPEND`, `SETRANGE`.

use super::shared::{
    GROW, GROW_FAST, RW_INSERT, announce_new, check_len, integer, renew_cas, string_of,
};
use crate::effects::EventClass;
use crate::spec::{Acl, Command, Group, KeyFlags, KeySpec, Spec};
use crate::{Ctx, Done, Error};
use pantala_protocol::Args;
use pantala_store::PutMeta;
use pantala_types::string;

const STRING: Spec = Spec {
    group: Group::String,
    acl: Acl::STRING,
    ..Spec::BASE
};

/// `APPEND`
pub const APPEND: Command = Command::keyed(
    Spec {
        name: "append",
        summary: "Appends to a string; creates it where there is none.",
        since: "2.0.0",
        complexity: "O(1) on average, where what is appended is short.",
        arity: 3,
        flags: GROW_FAST,
        keys: &[KeySpec::one(1, RW_INSERT)],
        syntax: "key value",
        ..STRING
    },
    append,
);

/// `SETRANGE`
pub const SETRANGE: Command = Command::costly(
    Spec {
        name: "setrange",
        summary: "Overwrites a part of a string, with zeros before it where the string is shorter.",
        since: "2.2.0",
        complexity: "O(1) where the new part is short, otherwise O(M) where M is its length.",
        arity: 4,
        flags: GROW,
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
        syntax: "key offset value",
        ..STRING
    },
    setrange,
    setrange_cost_us,
);

fn append(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let key = cx.key(args, 0);
    let value = args.arg(2);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot_quiet(&key);
    let before = string_of(slot.entry())?.map(|string| string.len());
    let len = match before {
        Some(len) => {
            check_len(cx.settings, len as u64, value.len() as u64)?;
            string::append(&mut slot, value)
        }
        None => {
            string::store(&mut slot, value, PutMeta::KEEP);
            value.len()
        }
    };
    renew_cas(cx.store, &mut slot);
    cx.reply.integer(len as i64);
    cx.fx.verbatim();
    announce_new(cx.fx, key.bytes, before.is_some());
    cx.fx.modified(key.bytes, EventClass::STRING, "append");
    Ok(())
}

fn setrange(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let offset = integer(args.arg(2))?;
    let Ok(offset) = u64::try_from(offset) else {
        return Err(Error::text("ERR offset is out of range"));
    };
    let key = cx.key(args, 0);
    let value = args.arg(3);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot_quiet(&key);
    let before = string_of(slot.entry())?.map(|string| string.len());
    if value.is_empty() {
        cx.reply.integer(before.unwrap_or(0) as i64);
        return Ok(());
    }
    let end = check_len(cx.settings, offset, value.len() as u64)?;
    string::write_at(&mut slot, offset as usize, value);
    renew_cas(cx.store, &mut slot);
    cx.reply.integer(before.unwrap_or(0).max(end) as i64);
    cx.fx.verbatim();
    announce_new(cx.fx, key.bytes, before.is_some());
    cx.fx.modified(key.bytes, EventClass::STRING, "setrange");
    Ok(())
}

/// Copying what is to be written is all the work there is; the gap before it costs nothing.
fn setrange_cost_us(_: &mut Ctx<'_, '_>, args: Args<'_>) -> u64 {
    args.arg(3).len() as u64 / 4_000
}
