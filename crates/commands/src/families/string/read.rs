//! Commands that answer a string, and may remove it or change its expiry on the way.

use super::expire::{Expire, Unit};
use super::shared::{
    READ, READ_FAST, RO_ACCESS, RW_ACCESS, RW_ACCESS_UPDATE, WRITE_FAST, announce_miss, integer,
    reply_range, reply_string, string_of,
};
use crate::effects::EventClass;
use crate::spec::{Acl, Command, Group, KeyFlags, KeySpec, Spec};
use crate::{Ctx, Done, Error};
use pantala_protocol::Args;
use pantala_types::bitmap::range;
use pantala_types::string::int::Decimal;

const STRING: Spec = Spec {
    group: Group::String,
    acl: Acl::STRING,
    ..Spec::BASE
};

/// `GET`
pub const GET: Command = Command::keyed(
    Spec {
        name: "get",
        summary: "Answers the string stored under a key.",
        arity: 2,
        flags: READ_FAST,
        keys: &[KeySpec::one(1, RO_ACCESS)],
        syntax: "key",
        ..STRING
    },
    get,
);

/// `GETDEL`
pub const GETDEL: Command = Command::keyed(
    Spec {
        name: "getdel",
        summary: "Answers the string stored under a key and deletes the key.",
        since: "6.2.0",
        arity: 2,
        flags: WRITE_FAST,
        keys: &[KeySpec::one(1, RW_ACCESS.union(KeyFlags::DELETE))],
        syntax: "key",
        ..STRING
    },
    getdel,
);

/// `GETEX`
pub const GETEX: Command = Command::keyed(
    Spec {
        name: "getex",
        summary: "Answers the string stored under a key and sets or removes its expiry.",
        since: "6.2.0",
        arity: -2,
        flags: WRITE_FAST,
        keys: &[KeySpec::one(1, RW_ACCESS_UPDATE)],
        syntax: "key [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST]",
        ..STRING
    },
    getex,
);

/// `STRLEN`
pub const STRLEN: Command = Command::keyed(
    Spec {
        name: "strlen",
        summary: "Answers the length of a string in bytes.",
        since: "2.2.0",
        arity: 2,
        flags: READ_FAST,
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key",
        ..STRING
    },
    strlen,
);

/// `GETRANGE`
pub const GETRANGE: Command = Command::keyed(
    Spec {
        name: "getrange",
        summary: "Answers a part of a string.",
        since: "2.4.0",
        complexity: "O(N) where N is the length of the answer.",
        arity: 4,
        flags: READ,
        keys: &[KeySpec::one(1, RO_ACCESS)],
        syntax: "key start end",
        ..STRING
    },
    getrange,
);

/// `SUBSTR`
pub const SUBSTR: Command = Command::keyed(
    Spec {
        name: "substr",
        summary: "The old name of GETRANGE.",
        since: "1.0.0",
        ..GETRANGE.spec
    },
    getrange,
);

fn get(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    match string_of(db.find(&key))? {
        Some(string) => reply_string(&mut cx.reply, &string),
        None => {
            cx.reply.null();
            announce_miss(cx.fx, key.bytes);
        }
    }
    Ok(())
}

fn getdel(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot(&key);
    match string_of(slot.entry())? {
        Some(string) => reply_string(&mut cx.reply, &string),
        None => {
            cx.reply.null();
            announce_miss(cx.fx, key.bytes);
            return Ok(());
        }
    }
    slot.remove();
    cx.fx.command(&[b"DEL", key.bytes]);
    cx.fx.modified(key.bytes, EventClass::GENERIC, "del");
    Ok(())
}

/// What `GETEX` does with the expiry.
#[derive(Clone, Copy)]
enum Change<'a> {
    Keep,
    Persist,
    Set(Expire<'a>),
}

fn getex(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let change = getex_options(args)?;
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot(&key);
    let entry = slot.entry();
    let had_expiry = entry.is_some_and(|entry| entry.expiry_ms().is_some());
    let Some(string) = string_of(entry)? else {
        cx.reply.null();
        announce_miss(cx.fx, key.bytes);
        return Ok(());
    };
    // The key comes first: a missing one is answered whatever the number says.
    let at = match change {
        Change::Set(expire) => Some(expire.at_ms(cx.now_ms, "getex")?),
        Change::Keep | Change::Persist => None,
    };
    reply_string(&mut cx.reply, &string);
    match (change, at) {
        (_, Some(at)) if at <= cx.now_ms => {
            slot.remove();
            cx.fx.command(&[b"DEL", key.bytes]);
            cx.fx.modified(key.bytes, EventClass::GENERIC, "del");
        }
        (_, Some(at)) => {
            slot.set_expiry(Some(at));
            cx.fx
                .command(&[b"PEXPIREAT", key.bytes, Decimal::new(at).as_bytes()]);
            cx.fx.modified(key.bytes, EventClass::GENERIC, "expire");
        }
        (Change::Persist, None) if had_expiry => {
            slot.set_expiry(None);
            cx.fx.command(&[b"PERSIST", key.bytes]);
            cx.fx.modified(key.bytes, EventClass::GENERIC, "persist");
        }
        _ => {}
    }
    Ok(())
}

fn getex_options(args: Args<'_>) -> Result<Change<'_>, Error> {
    let mut change = Change::Keep;
    let mut at = 2;
    while let Some(word) = args.get(at) {
        let number = args.get(at + 1);
        at += 1;
        if word.eq_ignore_ascii_case(b"PERSIST") && matches!(change, Change::Keep | Change::Persist)
        {
            change = Change::Persist;
        } else if let (Some(unit), Some(number)) = (Unit::of(word), number)
            && match change {
                Change::Keep => true,
                Change::Persist => false,
                Change::Set(before) => before.unit == unit,
            }
        {
            change = Change::Set(Expire { unit, number });
            at += 1;
        } else {
            return Err(Error::Syntax);
        }
    }
    Ok(change)
}

fn strlen(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    match string_of(db.find(&key))? {
        Some(string) => cx.reply.integer(string.len() as i64),
        None => {
            cx.reply.integer(0);
            announce_miss(cx.fx, key.bytes);
        }
    }
    Ok(())
}

fn getrange(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let (start, end) = (integer(args.arg(2))?, integer(args.arg(3))?);
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let string = string_of(db.find(&key))?;
    if string.is_none() {
        announce_miss(cx.fx, key.bytes);
    }
    match string.and_then(|string| Some((string, range::inside(start, end, string.len() as u64)?)))
    {
        Some((string, (first, last))) => reply_range(
            &mut cx.reply,
            &string,
            first as usize,
            (last - first + 1) as usize,
        ),
        None => cx.reply.bulk(b""),
    }
    Ok(())
}
