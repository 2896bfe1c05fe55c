//! Commands on single bits and on the number and place of bits.

use super::super::string::shared::{
    GROW, READ, READ_FAST, RO_ACCESS, RW_ACCESS_UPDATE, announce_miss, announce_new, integer,
    renew_cas, string_of,
};
use super::bit_offset;
use crate::effects::EventClass;
use crate::spec::{Acl, Command, Group, KeySpec, Spec};
use crate::{Ctx, Done, Error};
use pantala_protocol::{Args, numbers};
use pantala_types::bitmap::{self, range};
use pantala_types::string::StrRef;

const BITMAP: Spec = Spec {
    group: Group::Bitmap,
    acl: Acl::BITMAP,
    ..Spec::BASE
};

/// `SETBIT`
pub const SETBIT: Command = Command::keyed(
    Spec {
        name: "setbit",
        summary: "Sets or clears one bit of a string; answers what it was.",
        since: "2.2.0",
        arity: 4,
        flags: GROW,
        keys: &[KeySpec::one(1, RW_ACCESS_UPDATE)],
        syntax: "key offset value",
        ..BITMAP
    },
    setbit,
);

/// `GETBIT`
pub const GETBIT: Command = Command::keyed(
    Spec {
        name: "getbit",
        summary: "Answers one bit of a string.",
        since: "2.2.0",
        arity: 3,
        flags: READ_FAST,
        keys: &[KeySpec::one(1, RO_ACCESS)],
        syntax: "key offset",
        ..BITMAP
    },
    getbit,
);

/// `BITCOUNT`
pub const BITCOUNT: Command = Command::costly(
    Spec {
        name: "bitcount",
        summary: "Counts the bits of a string that are set.",
        since: "2.6.0",
        complexity: "O(N)",
        arity: -2,
        flags: READ,
        keys: &[KeySpec::one(1, RO_ACCESS)],
        syntax: "key [start end [BYTE|BIT]]",
        ..BITMAP
    },
    bitcount,
    length_cost_us,
);

/// `BITPOS`
pub const BITPOS: Command = Command::costly(
    Spec {
        name: "bitpos",
        summary: "Finds the first bit of a string that is set, or clear.",
        since: "2.8.7",
        complexity: "O(N)",
        arity: -3,
        flags: READ,
        keys: &[KeySpec::one(1, RO_ACCESS)],
        syntax: "key bit [start [end [BYTE|BIT]]]",
        ..BITMAP
    },
    bitpos,
    length_cost_us,
);

fn setbit(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let offset = bit_offset(args.arg(2), cx.settings)?;
    let value = match numbers::parse_i64(args.arg(3)) {
        Some(0) => false,
        Some(1) => true,
        _ => return Err(Error::text("ERR bit is not an integer or out of range")),
    };
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot_quiet(&key);
    let len = string_of(slot.entry())?.map(|string| string.len() as u64);
    let before = bitmap::set(&mut slot, offset, value);
    renew_cas(cx.store, &mut slot);
    cx.reply.integer(i64::from(before));
    if before != value || len.is_none_or(|len| len <= offset / 8) {
        cx.fx.verbatim();
        announce_new(cx.fx, key.bytes, len.is_some());
        cx.fx.modified(key.bytes, EventClass::STRING, "setbit");
    }
    Ok(())
}

fn getbit(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let offset = bit_offset(args.arg(2), cx.settings)?;
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    match string_of(db.find(&key))? {
        Some(string) => cx.reply.integer(i64::from(bitmap::get(&string, offset))),
        None => {
            cx.reply.integer(0);
            announce_miss(cx.fx, key.bytes);
        }
    }
    Ok(())
}

/// Whether the argument at `at` counts in bits; bytes where it is left out.
fn in_bits(args: Args<'_>, at: usize) -> Result<bool, Error> {
    match args.get(at) {
        None => Ok(false),
        Some(_) if args.is(at, "BIT") => Ok(true),
        Some(_) if args.is(at, "BYTE") => Ok(false),
        Some(_) => Err(Error::Syntax),
    }
}

/// How a start and an end become positions inside a sequence of some length.
type Resolve = fn(i64, i64, u64) -> Option<(u64, u64)>;

/// The bits of `start..=end`, which counts bits or bytes; `None` when it is empty.
fn bit_range(
    resolve: Resolve,
    start: i64,
    end: i64,
    in_bits: bool,
    string: &StrRef<'_>,
) -> Option<(u64, u64)> {
    let bytes = string.len() as u64;
    if in_bits {
        resolve(start, end, bytes * 8)
    } else {
        resolve(start, end, bytes).map(|(first, last)| (first * 8, last * 8 + 7))
    }
}

fn bitcount(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    // The key comes first: a missing one has no bits, whatever the arguments say.
    let Some(string) = string_of(db.find(&key))? else {
        cx.reply.integer(0);
        announce_miss(cx.fx, key.bytes);
        return Ok(());
    };
    let bits = match args.len() {
        2 => bit_range(range::inside, 0, -1, false, &string),
        4 | 5 => {
            let (start, end) = (integer(args.arg(2))?, integer(args.arg(3))?);
            // The wrong order is found before a wrong unit, as in Redis 7.0.
            if start < 0 && end < 0 && start > end {
                None
            } else {
                bit_range(range::inside, start, end, in_bits(args, 4)?, &string)
            }
        }
        _ => return Err(Error::Syntax),
    };
    let ones = bits.map_or(0, |(first, last)| bitmap::count_ones(&string, first, last));
    cx.reply.integer(ones as i64);
    Ok(())
}

fn bitpos(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let bit = match integer(args.arg(2))? {
        0 => false,
        1 => true,
        _ => return Err(Error::text("ERR The bit argument must be 1 or 0.")),
    };
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let Some(string) = string_of(db.find(&key))? else {
        // A missing key is an endless row of zeros.
        cx.reply.integer(if bit { -1 } else { 0 });
        announce_miss(cx.fx, key.bytes);
        return Ok(());
    };
    let bits = match args.len() {
        3 => bit_range(range::clamped, 0, -1, false, &string),
        4 => bit_range(range::clamped, integer(args.arg(3))?, -1, false, &string),
        5 | 6 => {
            let start = integer(args.arg(3))?;
            let in_bits = in_bits(args, 5)?;
            let end = integer(args.arg(4))?;
            bit_range(range::clamped, start, end, in_bits, &string)
        }
        _ => return Err(Error::Syntax),
    };
    let Some((first, last)) = bits else {
        cx.reply.integer(-1);
        return Ok(());
    };
    let place = match bitmap::position(&string, bit, first, last) {
        Some(place) => place as i64,
        // Without an end the zeros behind the string count.
        None if !bit && args.len() < 5 => (last + 1) as i64,
        None => -1,
    };
    cx.reply.integer(place);
    Ok(())
}

/// About ten bytes a nanosecond; only long strings matter.
fn length_cost_us(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> u64 {
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    db.peek(&key)
        .and_then(StrRef::of)
        .map_or(0, |string| string.len() as u64 / 10_000)
}
