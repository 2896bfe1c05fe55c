//! `TTL`, `PTTL`, `EXPIRETIME`, `PEXPIRETIME`: when a key expires.

use super::shared::GENERIC;
use crate::families::string::shared::{READ_FAST, RO_ACCESS, announce_miss};
use crate::spec::{Command, KeySpec, Spec};
use crate::{Ctx, Done};
use pantala_protocol::Args;

const KEY: &[KeySpec] = &[KeySpec::one(1, RO_ACCESS)];

/// `TTL`
pub const TTL: Command = Command::keyed(
    Spec {
        name: "ttl",
        summary: "Answers in how many seconds a key expires.",
        arity: 2,
        flags: READ_FAST,
        keys: KEY,
        tips: &["nondeterministic_output"],
        syntax: "key",
        ..GENERIC
    },
    ttl,
);

/// `PTTL`
pub const PTTL: Command = Command::keyed(
    Spec {
        name: "pttl",
        summary: "Answers in how many milliseconds a key expires.",
        since: "2.6.0",
        arity: 2,
        flags: READ_FAST,
        keys: KEY,
        tips: &["nondeterministic_output"],
        syntax: "key",
        ..GENERIC
    },
    pttl,
);

/// `EXPIRETIME`
pub const EXPIRETIME: Command = Command::keyed(
    Spec {
        name: "expiretime",
        summary: "Answers the Unix time in seconds at which a key expires.",
        since: "7.0.0",
        arity: 2,
        flags: READ_FAST,
        keys: KEY,
        syntax: "key",
        ..GENERIC
    },
    expiretime,
);

/// `PEXPIRETIME`
pub const PEXPIRETIME: Command = Command::keyed(
    Spec {
        name: "pexpiretime",
        summary: "Answers the Unix time in milliseconds at which a key expires.",
        since: "7.0.0",
        arity: 2,
        flags: READ_FAST,
        keys: KEY,
        syntax: "key",
        ..GENERIC
    },
    pexpiretime,
);

fn ttl(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let now_ms = cx.now_ms;
    answer(cx, args, |at| seconds(at.saturating_sub(now_ms).max(0)))
}

fn pttl(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let now_ms = cx.now_ms;
    answer(cx, args, |at| at.saturating_sub(now_ms).max(0))
}

fn expiretime(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    answer(cx, args, seconds)
}

fn pexpiretime(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    answer(cx, args, |at| at)
}

fn answer(cx: &mut Ctx<'_, '_>, args: Args<'_>, of_expiry: impl FnOnce(i64) -> i64) -> Done {
    let key = cx.key(args, 0);
    let expiry = cx
        .space
        .db(cx.db_index, cx.now_ms)
        .peek(&key)
        .map(|entry| entry.expiry_ms());
    match expiry {
        Some(Some(at)) => cx.reply.integer(of_expiry(at)),
        Some(None) => cx.reply.integer(-1),
        None => {
            announce_miss(cx.fx, key.bytes);
            cx.reply.integer(-2);
        }
    }
    Ok(())
}

/// Rounded to the nearest second, as Redis has it: a key with 499 ms left has a TTL of 0.
fn seconds(ms: i64) -> i64 {
    (ms.div_euclid(500) + 1).div_euclid(2)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn seconds_are_rounded() {
        for (ms, s) in [
            (0, 0),
            (499, 0),
            (500, 1),
            (1499, 1),
            (1500, 2),
            (i64::MAX, 9_223_372_036_854_776),
        ] {
            assert_eq!(seconds(ms), s, "{ms}");
        }
    }
}
