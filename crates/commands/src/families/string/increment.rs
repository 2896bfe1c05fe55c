//! Commands that count: `INCR` and its relatives.

use super::shared::{GROW_FAST, RW_ACCESS_UPDATE, announce_new, integer, renew_cas, string_of};
use crate::effects::EventClass;
use crate::spec::{Acl, Command, Group, KeySpec, Spec};
use crate::{Ctx, Done, Error};
use pantala_protocol::Args;
use pantala_protocol::long_double::LongDouble;
use pantala_store::PutMeta;
use pantala_types::string::{self, StrRef};

const COUNTER: Spec = Spec {
    group: Group::String,
    acl: Acl::STRING,
    flags: GROW_FAST,
    keys: &[KeySpec::one(1, RW_ACCESS_UPDATE)],
    ..Spec::BASE
};

/// `INCR`
pub const INCR: Command = Command::keyed(
    Spec {
        name: "incr",
        summary: "Adds one to an integer; a missing key counts as 0.",
        arity: 2,
        syntax: "key",
        ..COUNTER
    },
    |cx, args| add(cx, args, 1),
);

/// `DECR`
pub const DECR: Command = Command::keyed(
    Spec {
        name: "decr",
        summary: "Takes one from an integer; a missing key counts as 0.",
        arity: 2,
        syntax: "key",
        ..COUNTER
    },
    |cx, args| add(cx, args, -1),
);

/// `INCRBY`
pub const INCRBY: Command = Command::keyed(
    Spec {
        name: "incrby",
        summary: "Adds to an integer; a missing key counts as 0.",
        arity: 3,
        syntax: "key increment",
        ..COUNTER
    },
    |cx, args| add(cx, args, integer(args.arg(2))?),
);

/// `DECRBY`
pub const DECRBY: Command = Command::keyed(
    Spec {
        name: "decrby",
        summary: "Takes from an integer; a missing key counts as 0.",
        arity: 3,
        syntax: "key decrement",
        ..COUNTER
    },
    |cx, args| {
        let increment = integer(args.arg(2))?
            .checked_neg()
            .ok_or(Error::text("ERR decrement would overflow"))?;
        add(cx, args, increment)
    },
);

/// `INCRBYFLOAT`
pub const INCRBYFLOAT: Command = Command::keyed(
    Spec {
        name: "incrbyfloat",
        summary: "Adds to a floating-point number; a missing key counts as 0.",
        since: "2.6.0",
        arity: 3,
        syntax: "key increment",
        ..COUNTER
    },
    incrbyfloat,
);

fn add(cx: &mut Ctx<'_, '_>, args: Args<'_>, increment: i64) -> Done {
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot_quiet(&key);
    let before = string_of(slot.entry())?;
    let existed = before.is_some();
    let value = match before {
        Some(string) => string.to_int().ok_or(Error::NotAnInteger)?,
        None => 0,
    };
    let value = value.checked_add(increment).ok_or(Error::Overflow)?;
    string::store_int(&mut slot, value, PutMeta::KEEP);
    renew_cas(cx.store, &mut slot);
    cx.reply.integer(value);
    cx.fx.verbatim();
    announce_new(cx.fx, key.bytes, existed);
    cx.fx.modified(key.bytes, EventClass::STRING, "incrby");
    Ok(())
}

fn incrbyfloat(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot_quiet(&key);
    let before = string_of(slot.entry())?;
    let existed = before.is_some();
    let value = match before {
        Some(string) => long_double(&string)?,
        None => LongDouble::ZERO,
    };
    let increment = LongDouble::parse(args.arg(2)).ok_or(Error::NotAFloat)?;
    let sum = value
        .checked_add(increment)
        .filter(|sum| sum.is_finite())
        .ok_or(Error::NanOrInfinity)?;
    let mut text = Vec::with_capacity(32);
    sum.write(&mut text);
    string::store_plain(&mut slot, &text, PutMeta::KEEP);
    renew_cas(cx.store, &mut slot);
    cx.reply.bulk(&text);
    cx.fx.command(&[b"SET", key.bytes, &text, b"KEEPTTL"]);
    announce_new(cx.fx, key.bytes, existed);
    cx.fx.modified(key.bytes, EventClass::STRING, "incrbyfloat");
    Ok(())
}

/// The largest `long double` has 4,933 digits and may have decimals behind them.
const LONGEST_NUMBER: usize = 5 * 1024;

/// A stored string as a floating-point number.
pub fn long_double(string: &StrRef<'_>) -> Result<LongDouble, Error> {
    match string {
        StrRef::Int(value) => Ok(LongDouble::from_i64(*value)),
        // Longer texts are no numbers, so nothing large is copied here.
        string if string.len() > LONGEST_NUMBER => Err(Error::NotAFloat),
        string => LongDouble::parse(string.to_bytes(&mut Vec::new())).ok_or(Error::NotAFloat),
    }
}
