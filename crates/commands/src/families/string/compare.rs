//! Comparing a stored string with a value or a digest: the conditions of `SET`, and `DIGEST`, `DELEX`, `DELIFEQ`.

use super::shared::{READ_FAST, RO_ACCESS, WRITE_FAST, announce_miss, string_of};
use crate::effects::EventClass;
use crate::spec::{Acl, Command, Group, KeyFlags, KeySpec, Spec};
use crate::{Ctx, Done, Error};
use pantala_protocol::Args;
use pantala_types::string::{StrRef, digest};

const STRING: Spec = Spec {
    group: Group::String,
    acl: Acl::STRING,
    ..Spec::BASE
};
const RM_DELETE: KeyFlags = KeyFlags::RM.union(KeyFlags::DELETE);

/// `DIGEST`
pub const DIGEST: Command = Command::keyed(
    Spec {
        name: "digest",
        summary: "Answers the XXH3 digest of a string as sixteen hex digits.",
        since: "8.4.0",
        complexity: "O(N) where N is the length of the string.",
        arity: 2,
        flags: READ_FAST,
        keys: &[KeySpec::one(1, RO_ACCESS)],
        syntax: "key",
        ..STRING
    },
    digest_of,
);

/// `DELEX`
pub const DELEX: Command = Command::keyed(
    Spec {
        name: "delex",
        summary: "Deletes a key if its string compares as wanted.",
        since: "8.4.0",
        complexity: "O(1) for values, O(N) for digests where N is the length of the string.",
        arity: -2,
        flags: WRITE_FAST,
        keys: &[KeySpec::one(1, RM_DELETE)],
        syntax: "key [IFEQ ifeq-value|IFNE ifne-value|IFDEQ ifdeq-digest|IFDNE ifdne-digest]",
        ..STRING
    },
    delex,
);

/// `DELIFEQ`
pub const DELIFEQ: Command = Command::keyed(
    Spec {
        name: "delifeq",
        summary: "Deletes a key if its string equals a value.",
        since: "valkey 9.0.0",
        arity: 3,
        flags: WRITE_FAST,
        keys: &[KeySpec::one(1, RM_DELETE)],
        syntax: "key value",
        ..STRING
    },
    delifeq,
);

/// A comparison with what is stored.
#[derive(Clone, Copy, Debug)]
pub enum Condition<'a> {
    /// The string equals the value; a missing key does not.
    Equal(&'a [u8]),
    /// The string differs from the value; a missing key does.
    NotEqual(&'a [u8]),
    /// The string has the digest; a missing key has not.
    DigestEqual(&'a [u8]),
    /// The string has another digest; so has a missing key.
    DigestNotEqual(&'a [u8]),
}

impl<'a> Condition<'a> {
    /// The comparison that `word` names.
    pub fn parse(word: &[u8], value: &'a [u8]) -> Option<Self> {
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        if is(b"IFEQ") {
            Some(Self::Equal(value))
        } else if is(b"IFNE") {
            Some(Self::NotEqual(value))
        } else if is(b"IFDEQ") {
            Some(Self::DigestEqual(value))
        } else if is(b"IFDNE") {
            Some(Self::DigestNotEqual(value))
        } else {
            None
        }
    }

    /// Whether both are the same comparison, maybe with another value.
    pub fn same_word(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }

    /// Refuses what cannot be a digest.
    pub fn check(self) -> Result<(), Error> {
        match self {
            Self::DigestEqual(hex) | Self::DigestNotEqual(hex)
                if hex.len() != digest::LEN || !hex.iter().all(u8::is_ascii_hexdigit) =>
            {
                Err(Error::text("ERR must be exactly 16 hexadecimal characters"))
            }
            _ => Ok(()),
        }
    }

    /// Whether what is stored satisfies the comparison.
    pub fn holds(self, stored: Option<&StrRef<'_>>) -> bool {
        let has_digest =
            |hex: &[u8]| stored.is_some_and(|string| string.digest().eq_ignore_ascii_case(hex));
        match self {
            Self::Equal(value) => stored.is_some_and(|string| string.is(value)),
            Self::NotEqual(value) => !stored.is_some_and(|string| string.is(value)),
            Self::DigestEqual(hex) => has_digest(hex),
            Self::DigestNotEqual(hex) => !has_digest(hex),
        }
    }
}

fn digest_of(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    match string_of(db.find(&key))? {
        Some(string) => cx.reply.bulk(&string.digest()),
        None => {
            cx.reply.null();
            announce_miss(cx.fx, key.bytes);
        }
    }
    Ok(())
}

fn delex(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let condition = match args.len() {
        2 => None,
        4 => Some(Condition::parse(args.arg(2), args.arg(3)).ok_or(Error::Syntax)?),
        _ => return Err(Error::wrong_arity("delex")),
    };
    if let Some(condition) = condition {
        condition.check()?;
    }
    delete(cx, args, condition).map_err(|error| match error {
        Error::WrongType => {
            Error::text("ERR Key should be of string type if conditions are specified")
        }
        error => error,
    })
}

fn delifeq(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    delete(cx, args, Some(Condition::Equal(args.arg(2))))
}

/// A missing key is never deleted, whatever the condition says about it.
fn delete(cx: &mut Ctx<'_, '_>, args: Args<'_>, condition: Option<Condition<'_>>) -> Done {
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot_quiet(&key);
    let wanted = match condition {
        Some(condition) => {
            string_of(slot.entry())?.is_some_and(|string| condition.holds(Some(&string)))
        }
        None => true,
    };
    let deleted = wanted && slot.remove();
    if deleted {
        cx.fx.command(&[b"DEL", key.bytes]);
        cx.fx.modified(key.bytes, EventClass::GENERIC, "del");
    }
    cx.reply.integer(i64::from(deleted));
    Ok(())
}
