//! `CL.THROTTLE`: a rate limit by the generic cell rate algorithm.
//!
//! The key holds one number: the time at which the next request would come if all came at the even pace that the rate allows
//! (the *theoretical arrival time*). Each request moves it on by its share of the period; a request is let through as long as it does
//! not run ahead of the clock by more than the burst. The key expires when the number lies in the past, where it means nothing.

use super::set::record;
use super::shared::{GROW_FAST, RW_ACCESS_UPDATE, announce_put, integer, string_of};
use crate::effects::EventClass;
use crate::spec::{Acl, Command, Group, KeySpec, Spec};
use crate::{Ctx, Done, Error};
use pantala_protocol::Args;
use pantala_store::{PutExpiry, PutMeta};
use pantala_types::string::{self, int::Decimal};

/// `CL.THROTTLE`
pub const CL_THROTTLE: Command = Command::keyed(
    Spec {
        name: "cl.throttle",
        summary: "Counts a request against a rate limit and says whether it is over it.",
        since: "7.0.0",
        group: Group::String,
        arity: -5,
        flags: GROW_FAST,
        acl: Acl::STRING,
        keys: &[KeySpec::one(1, RW_ACCESS_UPDATE)],
        syntax: "key max-burst count-per-period period-seconds [quantity]",
        ..Spec::BASE
    },
    throttle,
);

/// A rate: times in µs.
struct Rate {
    /// Requests that may come at once.
    limit: i64,
    /// Time between two requests at the even pace.
    interval_us: i64,
    /// How far requests may run ahead of the clock.
    tolerance_us: i64,
    /// What this request costs.
    increment_us: i64,
}

/// What the limit says about a request: times in µs.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    limited: bool,
    remaining: i64,
    retry_after_us: Option<i64>,
    reset_after_us: i64,
    /// The theoretical arrival time to store, if the request was let through.
    store: Option<i64>,
}

impl Rate {
    fn parse(args: Args<'_>) -> Result<Self, Error> {
        if args.len() > 6 {
            return Err(Error::wrong_arity("cl.throttle"));
        }
        let at_least = |at: usize, least: i64| {
            integer(args.arg(at)).and_then(|n| {
                if n >= least {
                    Ok(n)
                } else {
                    Err(Error::NotAnInteger)
                }
            })
        };
        let (burst, count, period_s) = (at_least(2, 0)?, at_least(3, 1)?, at_least(4, 1)?);
        let quantity = if args.len() == 6 { at_least(5, 0)? } else { 1 };
        let limit = burst.checked_add(1).ok_or(Error::NotAnInteger)?;
        let interval_us = period_s.checked_mul(1_000_000).ok_or(Error::NotAnInteger)? / count;
        if interval_us == 0 {
            return Err(Error::text("ERR zero rates are not supported"));
        }
        let times = |n: i64| interval_us.checked_mul(n).ok_or(Error::NotAnInteger);
        Ok(Self {
            limit,
            interval_us,
            tolerance_us: times(limit)?,
            increment_us: times(quantity)?,
        })
    }

    fn judge(&self, now_us: i64, stored: Option<i64>) -> Result<Verdict, Error> {
        let arrival = stored.unwrap_or(now_us);
        let next = arrival
            .max(now_us)
            .checked_add(self.increment_us)
            .ok_or(Error::NotAnInteger)?;
        let ahead = next
            .saturating_sub(self.tolerance_us)
            .saturating_sub(now_us);
        let limited = ahead > 0;
        let reset_after_us = (if limited {
            arrival.saturating_sub(now_us)
        } else {
            next - now_us
        })
        .max(0);
        let room_us = self.tolerance_us.saturating_sub(reset_after_us);
        Ok(Verdict {
            limited,
            remaining: (room_us / self.interval_us).max(0),
            retry_after_us: (limited && self.increment_us <= self.tolerance_us).then_some(ahead),
            reset_after_us,
            store: (!limited).then_some(next),
        })
    }
}

fn throttle(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let rate = Rate::parse(args)?;
    let key = cx.key(args, 0);
    let now_us = cx.now_ms.saturating_mul(1000);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot_quiet(&key);
    let entry = slot.entry();
    let before = entry.map(|entry| entry.kind());
    let stored = string_of(entry)?
        .map(|string| string.to_int().ok_or(Error::NotAnInteger))
        .transpose()?;
    let verdict = rate.judge(now_us, stored)?;
    // A new key that lets the request through; nothing changes for a request of quantity 0.
    if let Some(arrival) = verdict.store.filter(|arrival| *arrival > now_us) {
        let expire_at = arrival / 1000 + 1;
        string::store_int(
            &mut slot,
            arrival,
            PutMeta {
                expiry: PutExpiry::At(expire_at),
                ..PutMeta::CLEAR
            },
        );
        record(
            cx.fx,
            key.bytes,
            Decimal::new(arrival).as_bytes(),
            Some(expire_at),
            false,
        );
        announce_put(cx.fx, key.bytes, before);
        cx.fx.modified(key.bytes, EventClass::STRING, "set");
        cx.fx.event(key.bytes, EventClass::GENERIC, "expire");
    }
    cx.reply.array(5);
    cx.reply.integer(i64::from(verdict.limited));
    cx.reply.integer(rate.limit);
    cx.reply.integer(verdict.remaining);
    cx.reply
        .integer(verdict.retry_after_us.map_or(-1, whole_seconds));
    cx.reply.integer(whole_seconds(verdict.reset_after_us));
    Ok(())
}

/// Rounded up: after so many seconds the limit has really been lifted.
const fn whole_seconds(us: i64) -> i64 {
    us / 1_000_000 + (us % 1_000_000 > 0) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_even_pace() {
        // Three at once, then one per second.
        let rate = Rate {
            limit: 3,
            interval_us: 1_000_000,
            tolerance_us: 3_000_000,
            increment_us: 1_000_000,
        };
        let mut stored = None;
        for remaining in [2, 1, 0] {
            let verdict = rate.judge(50_000_000, stored).expect("in range");
            assert!(!verdict.limited);
            assert_eq!(verdict.remaining, remaining);
            stored = verdict.store;
        }
        let verdict = rate.judge(50_000_000, stored).expect("in range");
        assert!(verdict.limited);
        assert_eq!(
            (verdict.retry_after_us, verdict.reset_after_us),
            (Some(1_000_000), 3_000_000)
        );
        assert!(!rate.judge(51_000_000, stored).expect("in range").limited);
    }

    #[test]
    fn more_than_the_burst_can_never_pass() {
        let rate = Rate {
            limit: 3,
            interval_us: 1_000_000,
            tolerance_us: 3_000_000,
            increment_us: 4_000_000,
        };
        let verdict = rate.judge(50_000_000, None).expect("in range");
        assert!(verdict.limited);
        assert_eq!(verdict.retry_after_us, None);
    }
}
