//! `RENAME`, `RENAMENX`, `COPY`, `MOVE`: values that change their place.
//!
//! A value is moved or shared whole, with its expiry; nothing here looks into it.

use super::shared::{GENERIC, db_index};
use crate::families::string::shared::{
    GROW, OW_INSERT, OW_UPDATE, RO_ACCESS, WRITE_FAST, announce_miss, announce_new, renew_cas,
};
use crate::spec::{Command, Flags, KeyFlags, KeySpec, Spec};
use crate::{Ctx, Done, Error, EventClass};
use pantala_protocol::Args;

const TAKEN: KeyFlags = KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE);
const SAME: Error = Error::text("ERR source and destination objects are the same");

/// `RENAME`
pub const RENAME: Command = Command::keyed(
    Spec {
        name: "rename",
        summary: "Gives a value another key; what stood there goes.",
        arity: 3,
        flags: Flags::WRITE,
        keys: &[KeySpec::one(1, TAKEN), KeySpec::one(2, OW_UPDATE)],
        syntax: "key newkey",
        ..GENERIC
    },
    rename,
);

/// `RENAMENX`
pub const RENAMENX: Command = Command::keyed(
    Spec {
        name: "renamenx",
        summary: "Gives a value another key if that does not exist.",
        arity: 3,
        flags: WRITE_FAST,
        keys: &[KeySpec::one(1, TAKEN), KeySpec::one(2, OW_INSERT)],
        syntax: "key newkey",
        ..GENERIC
    },
    renamenx,
);

/// `COPY`
pub const COPY: Command = Command::keyed(
    Spec {
        name: "copy",
        summary: "Copies a value to another key.",
        since: "6.2.0",
        complexity: "O(1); large values share their memory until one is written.",
        arity: -3,
        flags: GROW,
        keys: &[KeySpec::one(1, RO_ACCESS), KeySpec::one(2, OW_UPDATE)],
        syntax: "source destination [DB destination-db] [REPLACE]",
        ..GENERIC
    },
    copy,
);

/// `MOVE`
pub const MOVE: Command = Command::keyed(
    Spec {
        name: "move",
        summary: "Moves a key to another database.",
        arity: 3,
        flags: WRITE_FAST,
        keys: &[KeySpec::one(
            1,
            KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE),
        )],
        syntax: "key db",
        ..GENERIC
    },
    move_key,
);

fn rename(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    give_key(cx, args, true)?;
    cx.reply.ok();
    Ok(())
}

fn renamenx(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let given = give_key(cx, args, false)?;
    cx.reply.integer(i64::from(given));
    Ok(())
}

/// Whether the value stands under the new key alone now.
fn give_key(cx: &mut Ctx<'_, '_>, args: Args<'_>, replace: bool) -> Result<bool, Error> {
    let (from, to) = (cx.key(args, 0), cx.key(args, 1));
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    if !db.exists(&from) {
        return Err(Error::NoSuchKey);
    }
    if from.bytes == to.bytes || (!replace && db.exists(&to)) {
        return Ok(false);
    }
    let value = db.slot_quiet(&from).take().ok_or(Error::NoSuchKey)?;
    let mut slot = db.slot_quiet(&to);
    slot.attach(value);
    renew_cas(cx.store, &mut slot);
    cx.fx.verbatim();
    // As in Redis, what stood there was removed before: the key is new in any case.
    announce_new(cx.fx, to.bytes, false);
    cx.fx
        .modified(from.bytes, EventClass::GENERIC, "rename_from");
    cx.fx.modified(to.bytes, EventClass::GENERIC, "rename_to");
    Ok(true)
}

fn copy(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let mut to_db = cx.db_index;
    let mut replace = false;
    let mut at = 3;
    while let Some(word) = args.get(at) {
        if word.eq_ignore_ascii_case(b"REPLACE") {
            replace = true;
        } else if let (true, Some(number)) = (word.eq_ignore_ascii_case(b"DB"), args.get(at + 1)) {
            to_db = db_index(cx.store, number)?;
            at += 1;
        } else {
            return Err(Error::Syntax);
        }
        at += 1;
    }
    let (from, to) = (cx.key(args, 0), cx.key(args, 1));
    if to_db == cx.db_index && from.bytes == to.bytes {
        return Err(SAME);
    }
    let Some(value) = cx.space.db(cx.db_index, cx.now_ms).slot(&from).duplicate() else {
        announce_miss(cx.fx, from.bytes);
        cx.reply.integer(0);
        return Ok(());
    };
    let mut db = cx.space.db(to_db, cx.now_ms);
    let mut slot = db.slot_quiet(&to);
    let free = replace || !slot.is_occupied();
    if free {
        slot.attach(value);
        renew_cas(cx.store, &mut slot);
        cx.fx.verbatim();
        if to_db == cx.db_index {
            announce_new(cx.fx, to.bytes, false);
        }
        cx.fx
            .modified_in(to_db, to.bytes, EventClass::GENERIC, "copy_to");
    }
    cx.reply.integer(i64::from(free));
    Ok(())
}

fn move_key(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let to_db = db_index(cx.store, args.arg(2))?;
    if to_db == cx.db_index {
        return Err(SAME);
    }
    let key = cx.key(args, 0);
    let free = !cx.space.db(to_db, cx.now_ms).exists(&key);
    let value = if free {
        cx.space.db(cx.db_index, cx.now_ms).slot_quiet(&key).take()
    } else {
        None
    };
    let moved = value.is_some();
    if let Some(value) = value {
        cx.space.db(to_db, cx.now_ms).slot_quiet(&key).attach(value);
        cx.fx.verbatim();
        cx.fx.modified(key.bytes, EventClass::GENERIC, "move_from");
        cx.fx
            .modified_in(to_db, key.bytes, EventClass::GENERIC, "move_to");
    }
    cx.reply.integer(i64::from(moved));
    Ok(())
}
