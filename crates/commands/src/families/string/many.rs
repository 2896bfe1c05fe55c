//! Commands on many strings at once.

use super::set::{Existence, Options, fresh};
use super::shared::{
    GROW, OW_INSERT, OW_UPDATE, READ_FAST, RO_ACCESS, announce_miss, announce_put, integer,
    reply_string,
};
use crate::effects::EventClass;
use crate::spec::{Acl, Command, Flags, Group, KeySpec, Spec};
use crate::{Ctx, Done, Error, Listening};
use pantala_protocol::Args;
use pantala_store::{Key, PutMeta};
use pantala_types::string::{self, StrRef};

const STRING: Spec = Spec {
    group: Group::String,
    acl: Acl::STRING,
    ..Spec::BASE
};

/// `MGET`
pub const MGET: Command = Command::keyed(
    Spec {
        name: "mget",
        summary: "Answers the strings stored under several keys.",
        complexity: "O(N) where N is the number of keys.",
        arity: -2,
        flags: READ_FAST,
        keys: &[KeySpec::all_from(1, 1, RO_ACCESS)],
        tips: &["request_policy:multi_shard"],
        syntax: "key [key ...]",
        ..STRING
    },
    mget,
);

/// `MSET`
pub const MSET: Command = Command::keyed(
    Spec {
        name: "mset",
        summary: "Stores several strings at once.",
        since: "1.0.1",
        complexity: "O(N) where N is the number of keys.",
        arity: -3,
        flags: GROW,
        keys: &[KeySpec::all_from(1, 2, OW_UPDATE)],
        tips: &[
            "request_policy:multi_shard",
            "response_policy:all_succeeded",
        ],
        syntax: "key value [key value ...]",
        ..STRING
    },
    mset,
);

/// `MSETNX`
pub const MSETNX: Command = Command::keyed(
    Spec {
        name: "msetnx",
        summary: "Stores several strings at once if none of the keys exists.",
        keys: &[KeySpec::all_from(1, 2, OW_INSERT)],
        tips: &["request_policy:multi_shard", "response_policy:agg_min"],
        ..MSET.spec
    },
    msetnx,
);

/// `MSETEX`
pub const MSETEX: Command = Command::keyed(
    Spec {
        name: "msetex",
        summary: "Stores several strings at once with one expiry, if all or none of the keys exist.",
        since: "8.4.0",
        complexity: "O(N) where N is the number of keys.",
        arity: -4,
        flags: GROW.union(Flags::MOVABLEKEYS),
        keys: &[KeySpec::counted(1, 2, OW_UPDATE)],
        tips: &[
            "request_policy:multi_shard",
            "response_policy:all_succeeded",
        ],
        syntax: "numkeys key value [key value ...] [NX|XX] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]",
        ..STRING
    },
    msetex,
);

fn mget(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    cx.reply.array(cx.keys.len());
    for at in cx.keys {
        let key = Key {
            bytes: args.arg(at.arg as usize),
            hash: at.hash,
        };
        match db.find(&key) {
            Some(entry) => match StrRef::of(entry) {
                Some(string) => reply_string(&mut cx.reply, &string),
                None => cx.reply.null(),
            },
            None => {
                cx.reply.null();
                announce_miss(cx.fx, key.bytes);
            }
        }
    }
    Ok(())
}

fn mset(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    if args.len().is_multiple_of(2) {
        return Err(Error::wrong_arity("mset"));
    }
    store_all(cx, args, PutMeta::CLEAR);
    cx.fx.verbatim();
    cx.reply.ok();
    Ok(())
}

fn msetnx(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    if args.len().is_multiple_of(2) {
        return Err(Error::wrong_arity("msetnx"));
    }
    let none_exists = existence_holds(cx, args, Existence::Missing);
    if none_exists {
        store_all(cx, args, PutMeta::CLEAR);
        cx.fx.verbatim();
    }
    cx.reply.integer(i64::from(none_exists));
    Ok(())
}

fn msetex(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let count = integer(args.arg(1))
        .ok()
        .filter(|count| (1..=i64::from(i32::MAX)).contains(count));
    let count = count.ok_or(Error::text("ERR invalid numkeys value"))? as usize;
    let options_at = 2 + 2 * count;
    if args.len() < options_at {
        return Err(Error::text("ERR wrong number of key-value pairs"));
    }
    let options = Options::parse(args, options_at, false)?;
    let expire_at = options
        .expire
        .map(|expire| expire.at_ms(cx.now_ms, "msetex"))
        .transpose()?;
    if !existence_holds(cx, args, options.existence) {
        cx.reply.integer(0);
        return Ok(());
    }
    if expire_at.is_some_and(|at| at <= cx.now_ms) {
        remove_all(cx, args);
    } else {
        store_all(cx, args, fresh(expire_at, options.keep_ttl));
        for index in 0..cx.keys.len() {
            let at = cx.keys[index].arg as usize;
            super::set::record(
                cx.fx,
                args.arg(at),
                args.arg(at + 1),
                expire_at,
                options.keep_ttl,
            );
            if expire_at.is_some() {
                cx.fx.event(args.arg(at), EventClass::GENERIC, "expire");
            }
        }
    }
    cx.reply.integer(1);
    Ok(())
}

fn existence_holds(cx: &mut Ctx<'_, '_>, args: Args<'_>, existence: Existence) -> bool {
    if existence == Existence::Any {
        return true;
    }
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    cx.keys.iter().all(|at| {
        let key = Key {
            bytes: args.arg(at.arg as usize),
            hash: at.hash,
        };
        existence.holds(db.peek(&key).is_some())
    })
}

/// Stores the value that follows each key.
fn store_all(cx: &mut Ctx<'_, '_>, args: Args<'_>, meta: PutMeta) {
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    for at in cx.keys {
        let key = Key {
            bytes: args.arg(at.arg as usize),
            hash: at.hash,
        };
        let mut slot = db.slot_quiet(&key);
        let before = slot.entry().map(|entry| entry.kind());
        string::store(&mut slot, args.arg(at.arg as usize + 1), meta);
        announce_put(cx.fx, key.bytes, before);
        cx.fx.modified(key.bytes, EventClass::STRING, "set");
    }
}

fn remove_all(cx: &mut Ctx<'_, '_>, args: Args<'_>) {
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    for at in cx.keys {
        let key = Key {
            bytes: args.arg(at.arg as usize),
            hash: at.hash,
        };
        if db.remove(&key) {
            if cx.fx.listening().contains(Listening::RECORD) {
                cx.fx.command(&[b"DEL", key.bytes]);
            }
            cx.fx.modified(key.bytes, EventClass::GENERIC, "del");
        }
    }
}
