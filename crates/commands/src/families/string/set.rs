//! `SET` and the commands that are forms of it.

use super::compare::Condition;
use super::expire::{Expire, Unit};
use super::shared::{
    GROW, GROW_FAST, OW_INSERT, OW_UPDATE, RW_ACCESS_UPDATE, announce_miss, announce_put,
    reply_string, string_of,
};
use crate::effects::{Effects, EventClass};
use crate::spec::{Acl, Command, Group, KeyFlags, KeySpec, Spec};
use crate::{Ctx, Done, Error, Listening};
use pantala_protocol::Args;
use pantala_store::{Key, PutExpiry, PutMeta};
use pantala_types::string::{self, int::Decimal};

const STRING: Spec = Spec {
    group: Group::String,
    acl: Acl::STRING,
    ..Spec::BASE
};

/// `SET`
pub const SET: Command = Command::keyed(
    Spec {
        name: "set",
        summary: "Stores a string under a key, under conditions and with an expiry if wanted.",
        arity: -3,
        flags: GROW,
        keys: &[KeySpec::one(
            1,
            RW_ACCESS_UPDATE.union(KeyFlags::VARIABLE_FLAGS),
        )],
        syntax: "key value [NX|XX|IFEQ ifeq-value|IFNE ifne-value|IFDEQ ifdeq-digest|IFDNE ifdne-digest] [GET] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL]",
        ..STRING
    },
    set,
);

/// `SETNX`
pub const SETNX: Command = Command::keyed(
    Spec {
        name: "setnx",
        summary: "Stores a string under a key that does not exist.",
        arity: 3,
        flags: GROW_FAST,
        keys: &[KeySpec::one(1, OW_INSERT)],
        syntax: "key value",
        ..STRING
    },
    setnx,
);

/// `SETEX`
pub const SETEX: Command = Command::keyed(
    Spec {
        name: "setex",
        summary: "Stores a string with an expiry in seconds.",
        since: "2.0.0",
        arity: 4,
        flags: GROW,
        keys: &[KeySpec::one(1, OW_UPDATE)],
        syntax: "key seconds value",
        ..STRING
    },
    setex,
);

/// `PSETEX`
pub const PSETEX: Command = Command::keyed(
    Spec {
        name: "psetex",
        summary: "Stores a string with an expiry in milliseconds.",
        since: "2.6.0",
        arity: 4,
        flags: GROW,
        keys: &[KeySpec::one(1, OW_UPDATE)],
        syntax: "key milliseconds value",
        ..STRING
    },
    psetex,
);

/// `GETSET`
pub const GETSET: Command = Command::keyed(
    Spec {
        name: "getset",
        summary: "Stores a string and answers what was there before.",
        arity: 3,
        flags: GROW_FAST,
        keys: &[KeySpec::one(1, RW_ACCESS_UPDATE)],
        syntax: "key value",
        ..STRING
    },
    getset,
);

/// Whether the key must exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Existence {
    /// It does not matter.
    #[default]
    Any,
    /// It must not.
    Missing,
    /// It must.
    Present,
}

impl Existence {
    /// Whether a key that exists or not satisfies this.
    pub const fn holds(self, exists: bool) -> bool {
        match self {
            Self::Any => true,
            Self::Missing => !exists,
            Self::Present => exists,
        }
    }
}

/// Options of `SET`, and in part of its relatives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// `NX`, `XX`
    pub existence: Existence,
    /// `IFEQ`, `IFNE`, `IFDEQ`, `IFDNE`
    pub condition: Option<Condition<'a>>,
    /// `GET`
    pub get: bool,
    /// `KEEPTTL`
    pub keep_ttl: bool,
    /// `EX`, `PX`, `EXAT`, `PXAT`
    pub expire: Option<Expire<'a>>,
}

impl<'a> Options<'a> {
    /// Reads the options from argument `from` on. An option may be repeated (the last one counts), but not meet one that it excludes.
    /// `conditions`: whether `GET` and the comparisons are options of the command.
    pub fn parse(args: Args<'a>, from: usize, conditions: bool) -> Result<Self, Error> {
        let mut options = Self::default();
        let mut at = from;
        while let Some(word) = args.get(at) {
            let next = args.get(at + 1);
            at += 1;
            if word.eq_ignore_ascii_case(b"NX")
                && options.existence != Existence::Present
                && options.condition.is_none()
            {
                options.existence = Existence::Missing;
            } else if word.eq_ignore_ascii_case(b"XX")
                && options.existence != Existence::Missing
                && options.condition.is_none()
            {
                options.existence = Existence::Present;
            } else if word.eq_ignore_ascii_case(b"GET") && conditions {
                options.get = true;
            } else if word.eq_ignore_ascii_case(b"KEEPTTL") && options.expire.is_none() {
                options.keep_ttl = true;
            } else if let (Some(unit), Some(number)) = (Unit::of(word), next)
                && !options.keep_ttl
                && options.expire.is_none_or(|expire| expire.unit == unit)
            {
                options.expire = Some(Expire { unit, number });
                at += 1;
            } else if let (true, Some(value)) =
                (conditions && options.existence == Existence::Any, next)
                && let Some(condition) = Condition::parse(word, value)
                && options
                    .condition
                    .is_none_or(|before| before.same_word(condition))
            {
                options.condition = Some(condition);
                at += 1;
            } else {
                return Err(Error::Syntax);
            }
        }
        if let Some(condition) = options.condition {
            condition.check()?;
        }
        Ok(options)
    }
}

/// How success and refusal are answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    /// `OK` or null.
    Status,
    /// 1 or 0.
    Number,
}

fn set(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let key = cx.key(args, 0);
    let value = args.arg(2);
    if args.len() > 3 {
        let options = Options::parse(args, 3, true)?;
        return write(cx, key, value, &options, "set", Answer::Status);
    }
    // The most frequent form by far.
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot_quiet(&key);
    let before = slot.entry().map(|entry| entry.kind());
    string::store(&mut slot, value, PutMeta::CLEAR);
    cx.fx.verbatim();
    announce_put(cx.fx, key.bytes, before);
    cx.fx.modified(key.bytes, EventClass::STRING, "set");
    cx.reply.ok();
    Ok(())
}

fn setnx(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let options = Options {
        existence: Existence::Missing,
        ..Options::default()
    };
    write(
        cx,
        cx.key(args, 0),
        args.arg(2),
        &options,
        "setnx",
        Answer::Number,
    )
}

fn setex(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let expire = Some(Expire {
        unit: Unit::Seconds,
        number: args.arg(2),
    });
    write(
        cx,
        cx.key(args, 0),
        args.arg(3),
        &Options {
            expire,
            ..Options::default()
        },
        "setex",
        Answer::Status,
    )
}

fn psetex(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let expire = Some(Expire {
        unit: Unit::Millis,
        number: args.arg(2),
    });
    write(
        cx,
        cx.key(args, 0),
        args.arg(3),
        &Options {
            expire,
            ..Options::default()
        },
        "psetex",
        Answer::Status,
    )
}

fn getset(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let options = Options {
        get: true,
        ..Options::default()
    };
    write(
        cx,
        cx.key(args, 0),
        args.arg(2),
        &options,
        "getset",
        Answer::Status,
    )
}

fn write(
    cx: &mut Ctx<'_, '_>,
    key: Key<'_>,
    value: &[u8],
    options: &Options<'_>,
    command: &str,
    answer: Answer,
) -> Done {
    let expire_at = options
        .expire
        .map(|expire| expire.at_ms(cx.now_ms, command))
        .transpose()?;
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = if options.get {
        db.slot(&key)
    } else {
        db.slot_quiet(&key)
    };
    let entry = slot.entry();
    let before = entry.map(|entry| entry.kind());
    let mut wanted = options.existence.holds(entry.is_some());
    if options.get || options.condition.is_some() {
        let string = string_of(entry)?;
        wanted &= options
            .condition
            .is_none_or(|condition| condition.holds(string.as_ref()));
        match string {
            Some(string) if options.get => reply_string(&mut cx.reply, &string),
            None if options.get => {
                cx.reply.null();
                announce_miss(cx.fx, key.bytes);
            }
            _ => {}
        }
    }
    if !options.get {
        match (answer, wanted) {
            (Answer::Status, true) => cx.reply.ok(),
            (Answer::Status, false) => cx.reply.null(),
            (Answer::Number, _) => cx.reply.integer(i64::from(wanted)),
        }
    }
    if !wanted {
        return Ok(());
    }
    if expire_at.is_some_and(|at| at <= cx.now_ms) {
        // A value that is over before it begins: only that the old one is gone can be seen.
        if slot.remove() {
            cx.fx.command(&[b"DEL", key.bytes]);
            cx.fx.modified(key.bytes, EventClass::GENERIC, "del");
        }
        return Ok(());
    }
    string::store(&mut slot, value, fresh(expire_at, options.keep_ttl));
    record(cx.fx, key.bytes, value, expire_at, options.keep_ttl);
    announce_put(cx.fx, key.bytes, before);
    cx.fx.modified(key.bytes, EventClass::STRING, "set");
    if expire_at.is_some() {
        cx.fx.event(key.bytes, EventClass::GENERIC, "expire");
    }
    Ok(())
}

/// What a new value brings along.
pub const fn fresh(expire_at: Option<i64>, keep_ttl: bool) -> PutMeta {
    let expiry = match expire_at {
        Some(at) => PutExpiry::At(at),
        None if keep_ttl => PutExpiry::Keep,
        None => PutExpiry::Clear,
    };
    PutMeta {
        expiry,
        ..PutMeta::CLEAR
    }
}

/// Records what a `SET` of any form came to.
pub fn record(fx: &mut Effects, key: &[u8], value: &[u8], expire_at: Option<i64>, keep_ttl: bool) {
    if !fx.listening().contains(Listening::RECORD) {
        return;
    }
    match expire_at {
        Some(at) => fx.command(&[b"SET", key, value, b"PXAT", Decimal::new(at).as_bytes()]),
        None if keep_ttl => fx.command(&[b"SET", key, value, b"KEEPTTL"]),
        None => fx.command(&[b"SET", key, value]),
    }
}
