//! `EXPIRE` and its forms, `PERSIST`.

use super::shared::{GENERIC, record_expiry};
use crate::families::string::shared::{WRITE_FAST, integer};
use crate::spec::{Command, KeyFlags, KeySpec, Spec};
use crate::{Ctx, Done, Error, EventClass, Listening};
use pantala_protocol::Args;
use pantala_types::string::int::Decimal;

const KEY: &[KeySpec] = &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))];
const EXPIRES: Spec = Spec {
    arity: -3,
    flags: WRITE_FAST,
    keys: KEY,
    ..GENERIC
};

/// `EXPIRE`
pub const EXPIRE: Command = Command::keyed(
    Spec {
        name: "expire",
        summary: "Lets a key expire in so many seconds.",
        syntax: "key seconds [NX|XX|GT|LT]",
        ..EXPIRES
    },
    expire,
);

/// `PEXPIRE`
pub const PEXPIRE: Command = Command::keyed(
    Spec {
        name: "pexpire",
        summary: "Lets a key expire in so many milliseconds.",
        since: "2.6.0",
        syntax: "key milliseconds [NX|XX|GT|LT]",
        ..EXPIRES
    },
    pexpire,
);

/// `EXPIREAT`
pub const EXPIREAT: Command = Command::keyed(
    Spec {
        name: "expireat",
        summary: "Lets a key expire at a Unix time in seconds.",
        since: "1.2.0",
        syntax: "key unix-time-seconds [NX|XX|GT|LT]",
        ..EXPIRES
    },
    expireat,
);

/// `PEXPIREAT`
pub const PEXPIREAT: Command = Command::keyed(
    Spec {
        name: "pexpireat",
        summary: "Lets a key expire at a Unix time in milliseconds.",
        since: "2.6.0",
        syntax: "key unix-time-milliseconds [NX|XX|GT|LT]",
        ..EXPIRES
    },
    pexpireat,
);

/// `PERSIST`
pub const PERSIST: Command = Command::keyed(
    Spec {
        name: "persist",
        summary: "Takes the expiry from a key.",
        since: "2.2.0",
        arity: 2,
        flags: WRITE_FAST,
        keys: KEY,
        syntax: "key",
        ..GENERIC
    },
    persist,
);

fn expire(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    set(cx, args, "expire", 1000, cx.now_ms)
}

fn pexpire(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    set(cx, args, "pexpire", 1, cx.now_ms)
}

fn expireat(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    set(cx, args, "expireat", 1000, 0)
}

fn pexpireat(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    set(cx, args, "pexpireat", 1, 0)
}

/// When a new expiry is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Condition {
    /// `NX`: there is none.
    none: bool,
    /// `XX`: there is one.
    some: bool,
    /// `GT`: the new one is later.
    later: bool,
    /// `LT`: the new one is sooner.
    sooner: bool,
}

impl Condition {
    /// Reads the options from argument `from` on. Each may be repeated.
    fn parse(args: Args<'_>, from: usize) -> Result<Self, Error> {
        let mut condition = Self::default();
        for word in args.slice_from(from) {
            let flag = match word {
                word if word.eq_ignore_ascii_case(b"NX") => &mut condition.none,
                word if word.eq_ignore_ascii_case(b"XX") => &mut condition.some,
                word if word.eq_ignore_ascii_case(b"GT") => &mut condition.later,
                word if word.eq_ignore_ascii_case(b"LT") => &mut condition.sooner,
                word => {
                    return Err(Error::owned(format!(
                        "ERR Unsupported option {}",
                        String::from_utf8_lossy(word)
                    )));
                }
            };
            *flag = true;
        }
        if condition.none && (condition.some || condition.later || condition.sooner) {
            return Err(Error::text(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if condition.later && condition.sooner {
            return Err(Error::text(
                "ERR GT and LT options at the same time are not compatible",
            ));
        }
        Ok(condition)
    }

    /// Whether a key that expires at `old` may expire at `new` instead. A key without an expiry lives for ever: nothing is later.
    fn holds(self, old: Option<i64>, new: i64) -> bool {
        match old {
            None => !self.some && !self.later,
            Some(old) => !self.none && (!self.later || new > old) && (!self.sooner || new < old),
        }
    }
}

fn set(cx: &mut Ctx<'_, '_>, args: Args<'_>, command: &str, unit_ms: i64, base_ms: i64) -> Done {
    let condition = Condition::parse(args, 3)?;
    let at = integer(args.arg(2))?
        .checked_mul(unit_ms)
        // Below zero everything is long over; only at the upper end a sum can be wrong.
        .and_then(|ms| {
            if ms < 0 {
                Some(ms.saturating_add(base_ms))
            } else {
                ms.checked_add(base_ms)
            }
        })
        .ok_or_else(|| Error::invalid_expire(command))?;
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot_quiet(&key);
    let taken = slot
        .entry()
        .is_some_and(|entry| condition.holds(entry.expiry_ms(), at));
    if !taken {
        cx.reply.integer(0);
        return Ok(());
    }
    if at <= cx.now_ms {
        slot.remove();
        record_expiry(cx.fx, cx.settings, key.bytes);
    } else {
        slot.set_expiry(Some(at));
        if cx.fx.listening().contains(Listening::RECORD) {
            cx.fx
                .command(&[b"PEXPIREAT", key.bytes, Decimal::new(at).as_bytes()]);
        }
        cx.fx.modified(key.bytes, EventClass::GENERIC, "expire");
    }
    cx.reply.integer(1);
    Ok(())
}

fn persist(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot_quiet(&key);
    let had = slot
        .entry()
        .is_some_and(|entry| entry.expiry_ms().is_some());
    if had {
        slot.set_expiry(None);
        cx.fx.verbatim();
        cx.fx.modified(key.bytes, EventClass::GENERIC, "persist");
    }
    cx.reply.integer(i64::from(had));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pantala_protocol::OwnedArgs;

    fn parsed(words: &str) -> Result<Condition, Error> {
        let args: OwnedArgs = words.split_ascii_whitespace().collect();
        Condition::parse(args.as_args(), 0)
    }

    #[test]
    fn options() {
        assert_eq!(parsed(""), Ok(Condition::default()));
        assert_eq!(
            parsed("xx Gt GT"),
            Ok(Condition {
                some: true,
                later: true,
                ..Condition::default()
            })
        );
        assert_eq!(
            parsed("NX foo").expect_err("unknown").message(),
            "ERR Unsupported option foo"
        );
        assert!(
            parsed("GT LT NX")
                .expect_err("excluded")
                .message()
                .starts_with("ERR NX and XX")
        );
        assert!(
            parsed("GT LT")
                .expect_err("excluded")
                .message()
                .starts_with("ERR GT and LT")
        );
    }

    #[test]
    fn every_condition_on_every_state() {
        for (words, without, sooner, same, later) in [
            ("", true, true, true, true),
            ("NX", true, false, false, false),
            ("XX", false, true, true, true),
            ("GT", false, false, false, true),
            ("LT", true, true, false, false),
            ("XX GT", false, false, false, true),
            ("XX LT", false, true, false, false),
        ] {
            let condition = parsed(words).expect("options that go together");
            assert_eq!(condition.holds(None, 50), without, "{words} without expiry");
            assert_eq!(condition.holds(Some(100), 50), sooner, "{words} sooner");
            assert_eq!(condition.holds(Some(100), 100), same, "{words} same");
            assert_eq!(condition.holds(Some(100), 150), later, "{words} later");
        }
    }
}
