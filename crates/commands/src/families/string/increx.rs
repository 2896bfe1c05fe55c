//! `INCREX`: an increment with bounds and an expiry. The option rules are stricter than those of `SET`: nothing may be repeated.

use super::expire::{Expire, Unit};
use super::increment::long_double;
use super::set::{Existence, fresh, record};
use super::shared::{GROW_FAST, RW_ACCESS_UPDATE, announce_new, renew_cas, string_of};
use crate::effects::EventClass;
use crate::spec::{Acl, Command, Group, KeySpec, Spec};
use crate::{Ctx, Done, Error};
use pantala_protocol::Args;
use pantala_protocol::long_double::LongDouble;
use pantala_store::{PutExpiry, PutMeta, Slot};
use pantala_types::string::{self, StrRef, int::Decimal};

/// `INCREX`
pub const INCREX: Command = Command::keyed(
    Spec {
        name: "increx",
        summary: "Adds to a number within bounds and sets its expiry; a missing key counts as 0.",
        since: "8.8.0",
        group: Group::String,
        arity: -2,
        flags: GROW_FAST,
        acl: Acl::STRING,
        keys: &[KeySpec::one(1, RW_ACCESS_UPDATE)],
        syntax: "key [BYFLOAT increment|BYINT increment] [LBOUND lowerbound] [UBOUND upperbound] [SATURATE] [NX|XX] [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST] [ENX]",
        ..Spec::BASE
    },
    increx,
);

#[derive(Clone, Copy, Default)]
struct Options<'a> {
    /// `BYINT` and `BYFLOAT` (then true).
    by: Option<(bool, &'a [u8])>,
    lower: Option<&'a [u8]>,
    upper: Option<&'a [u8]>,
    saturate: bool,
    existence: Existence,
    expire: Option<Expire<'a>>,
    persist: bool,
    only_without_expiry: bool,
}

impl<'a> Options<'a> {
    fn parse(args: Args<'a>) -> Result<Self, Error> {
        let mut options = Self::default();
        let mut at = 2;
        while let Some(word) = args.get(at) {
            let taken = if let Some(value) = args.get(at + 1) {
                options.take_pair(word, value)
            } else {
                false
            };
            if taken {
                at += 2;
            } else if options.take_word(word) {
                at += 1;
            } else {
                return Err(Error::Syntax);
            }
        }
        if options.only_without_expiry && options.expire.is_none() {
            return Err(Error::text("ERR ENX flag requires an expiration"));
        }
        Ok(options)
    }

    fn take_pair(&mut self, word: &[u8], value: &'a [u8]) -> bool {
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        if (is(b"BYINT") || is(b"BYFLOAT")) && self.by.is_none() {
            self.by = Some((is(b"BYFLOAT"), value));
        } else if is(b"LBOUND") && self.lower.is_none() {
            self.lower = Some(value);
        } else if is(b"UBOUND") && self.upper.is_none() {
            self.upper = Some(value);
        } else if let Some(unit) = Unit::of(word)
            && self.expire.is_none()
            && !self.persist
        {
            self.expire = Some(Expire {
                unit,
                number: value,
            });
        } else {
            return false;
        }
        true
    }

    fn take_word(&mut self, word: &[u8]) -> bool {
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        if is(b"SATURATE") && !self.saturate {
            self.saturate = true;
        } else if is(b"PERSIST")
            && !self.persist
            && self.expire.is_none()
            && !self.only_without_expiry
        {
            self.persist = true;
        } else if is(b"ENX") && !self.only_without_expiry && !self.persist {
            self.only_without_expiry = true;
        } else if is(b"NX") && self.existence == Existence::Any {
            self.existence = Existence::Missing;
        } else if is(b"XX") && self.existence == Existence::Any {
            self.existence = Existence::Present;
        } else {
            return false;
        }
        true
    }
}

/// A sum, or the unchanged value when it is declined.
struct Outcome {
    value: Number,
    applied: Number,
    declined: bool,
}

/// A number in one of the two modes.
#[derive(Clone)]
enum Number {
    Int(i64),
    Float(Vec<u8>),
}

impl Number {
    /// Stores the number; gives the name of the event.
    fn store(&self, slot: &mut Slot<'_>, expiry: PutExpiry) -> &'static str {
        let meta = PutMeta {
            expiry,
            ..PutMeta::KEEP
        };
        match self {
            Self::Int(value) => {
                string::store_int(slot, *value, meta);
                "incrby"
            }
            Self::Float(text) => {
                string::store_plain(slot, text, meta);
                "incrbyfloat"
            }
        }
    }
}

fn increx(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let options = Options::parse(args)?;
    let rule = Rule::parse(&options)?;
    let expire_at = options
        .expire
        .map(|expire| expire.at_ms(cx.now_ms, "increx"))
        .transpose()?;
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot_quiet(&key);
    let entry = slot.entry();
    let existed = entry.is_some();
    let has_expiry = entry.is_some_and(|entry| entry.expiry_ms().is_some());
    let outcome = rule.apply(
        string_of(entry)?,
        options.saturate,
        options.existence.holds(existed),
    )?;
    cx.reply.array(2);
    for number in [&outcome.value, &outcome.applied] {
        match number {
            Number::Int(value) => cx.reply.integer(*value),
            Number::Float(text) => cx.reply.double_text(text),
        }
    }
    if outcome.declined {
        return Ok(());
    }
    let expire_at = expire_at.filter(|_| !(options.only_without_expiry && has_expiry));
    let persisted = options.persist && has_expiry;
    if expire_at.is_some_and(|at| at <= cx.now_ms) {
        if slot.remove() {
            cx.fx.command(&[b"DEL", key.bytes]);
            cx.fx.modified(key.bytes, EventClass::GENERIC, "del");
        }
        return Ok(());
    }
    let expiry = fresh(expire_at, !options.persist).expiry;
    let event = outcome.value.store(&mut slot, expiry);
    match &outcome.value {
        Number::Int(value) => {
            let text = Decimal::new(*value);
            record(
                cx.fx,
                key.bytes,
                text.as_bytes(),
                expire_at,
                !options.persist,
            );
        }
        Number::Float(text) => record(cx.fx, key.bytes, text, expire_at, !options.persist),
    }
    renew_cas(cx.store, &mut slot);
    announce_new(cx.fx, key.bytes, existed);
    cx.fx.modified(key.bytes, EventClass::STRING, event);
    if expire_at.is_some() {
        cx.fx.event(key.bytes, EventClass::GENERIC, "expire");
    } else if persisted {
        cx.fx.event(key.bytes, EventClass::GENERIC, "persist");
    }
    Ok(())
}

/// What is added, and between which bounds the sum must stay.
enum Rule {
    Int(Bounds<i64>),
    Float(Bounds<Signed>),
}

impl Rule {
    fn parse(options: &Options<'_>) -> Result<Self, Error> {
        const ORDER: Error = Error::text("ERR LBOUND can't be greater than UBOUND");
        let (float, increment) = options.by.unwrap_or((false, b"1"));
        if float {
            let number = |text: &[u8], name: &str| {
                Signed::parse(text)
                    .ok_or_else(|| Error::owned(format!("ERR {name} is not a valid float")))
            };
            let increment = number(increment, "Increment")?;
            let lower = number(options.lower.unwrap_or(LOWEST), "LBOUND")?;
            let upper = number(options.upper.unwrap_or(HIGHEST), "UBOUND")?;
            return if upper.is_less_than(&lower) {
                Err(ORDER)
            } else {
                Ok(Self::Float(Bounds {
                    increment,
                    lower,
                    upper,
                }))
            };
        }
        let number = |text: &[u8], name: &str| {
            pantala_protocol::numbers::parse_i64(text).ok_or_else(|| {
                Error::owned(format!("ERR {name} is not an integer or out of range"))
            })
        };
        let increment = number(increment, "Increment")?;
        let lower = options
            .lower
            .map_or(Ok(i64::MIN), |text| number(text, "LBOUND"))?;
        let upper = options
            .upper
            .map_or(Ok(i64::MAX), |text| number(text, "UBOUND"))?;
        if lower > upper {
            Err(ORDER)
        } else {
            Ok(Self::Int(Bounds {
                increment,
                lower,
                upper,
            }))
        }
    }

    /// Adds to what is stored. Out of bounds it is declined, or `saturate`d to the bound; `wanted` false declines it anyway.
    fn apply(
        self,
        stored: Option<StrRef<'_>>,
        saturate: bool,
        wanted: bool,
    ) -> Result<Outcome, Error> {
        match self {
            Self::Int(bounds) => {
                let before =
                    stored.map_or(Ok(0), |string| string.to_int().ok_or(Error::NotAnInteger))?;
                bounds.apply_int(before, saturate, wanted)
            }
            Self::Float(bounds) => {
                let before = stored.map_or(Ok(Signed::ZERO), |string| Signed::stored(&string))?;
                bounds.apply_float(before, saturate, wanted)
            }
        }
    }
}

/// What is added, and where the sum must stay.
struct Bounds<T> {
    increment: T,
    lower: T,
    upper: T,
}

impl Bounds<i64> {
    fn apply_int(self, before: i64, saturate: bool, wanted: bool) -> Result<Outcome, Error> {
        let sum = i128::from(before) + i128::from(self.increment);
        let within = sum.clamp(i128::from(self.lower), i128::from(self.upper));
        if !wanted || (within != sum && !saturate) {
            return Ok(Outcome {
                value: Number::Int(before),
                applied: Number::Int(0),
                declined: true,
            });
        }
        let value = within as i64;
        let applied = value
            .checked_sub(before)
            .ok_or(Error::text("ERR applied increment would overflow"))?;
        Ok(Outcome {
            value: Number::Int(value),
            applied: Number::Int(applied),
            declined: false,
        })
    }
}

impl Bounds<Signed> {
    fn apply_float(self, before: Signed, saturate: bool, wanted: bool) -> Result<Outcome, Error> {
        // Infinity minus infinity is no sum that could lie between bounds.
        let sum = before.plus(&self.increment).ok_or(Error::NanOrInfinity)?;
        let bound = if sum.is_less_than(&self.lower) {
            Some(self.lower)
        } else if self.upper.is_less_than(&sum) {
            Some(self.upper)
        } else {
            None
        };
        if !wanted || (bound.is_some() && !saturate) {
            return Ok(Outcome {
                value: before.text(),
                applied: Signed::ZERO.text(),
                declined: true,
            });
        }
        let (value, applied) = match bound {
            Some(bound) => (bound, bound.plus(&before.negated())),
            None => (sum, Some(self.increment)),
        };
        let infinite = Error::text("ERR applied increment would be Infinity");
        let applied = applied
            .filter(|applied| applied.value.is_finite())
            .ok_or(infinite)?;
        if !value.value.is_finite() {
            return Err(Error::NanOrInfinity);
        }
        Ok(Outcome {
            value: value.text(),
            applied: applied.text(),
            declined: false,
        })
    }
}

/// The largest finite `long double`, and its opposite.
const HIGHEST: &[u8] = b"1.18973149535723176502e+4932";
const LOWEST: &[u8] = b"-1.18973149535723176502e+4932";

/// A number with its opposite, which arithmetic that only adds needs to subtract and to compare.
#[derive(Clone, Copy)]
struct Signed {
    value: LongDouble,
    opposite: LongDouble,
}

impl Signed {
    const ZERO: Self = Self {
        value: LongDouble::ZERO,
        opposite: LongDouble::ZERO,
    };

    fn parse(text: &[u8]) -> Option<Self> {
        let value = LongDouble::parse(text)?;
        let opposite = match text {
            [b'-', rest @ ..] => LongDouble::parse(rest)?,
            [b'+', rest @ ..] => LongDouble::parse(&[b"-", rest].concat())?,
            text => LongDouble::parse(&[b"-", text].concat())?,
        };
        Some(Self { value, opposite })
    }

    fn stored(string: &StrRef<'_>) -> Result<Self, Error> {
        // Refuses what is too long before it is copied.
        long_double(string)?;
        Self::parse(string.to_bytes(&mut Vec::new())).ok_or(Error::NotAFloat)
    }

    fn plus(&self, other: &Self) -> Option<Self> {
        Some(Self {
            value: self.value.checked_add(other.value)?,
            opposite: self.opposite.checked_add(other.opposite)?,
        })
    }

    const fn negated(&self) -> Self {
        Self {
            value: self.opposite,
            opposite: self.value,
        }
    }

    /// By the sign of the difference, to the 17 decimals that are stored and shown.
    fn is_less_than(&self, other: &Self) -> bool {
        let mut text = Vec::with_capacity(32);
        if let Some(difference) = self.value.checked_add(other.opposite) {
            difference.write(&mut text);
        }
        text.starts_with(b"-")
    }

    fn text(&self) -> Number {
        let mut text = Vec::with_capacity(32);
        self.value.write(&mut text);
        Number::Float(text)
    }
}
