//! `DUMP` and `RESTORE`: values as bytes that any Redis understands.

use super::shared::GENERIC;
use crate::families::string::shared::{
    GROW, OW_UPDATE, READ, RO_ACCESS, announce_miss, announce_new, integer,
};
use crate::spec::{Acl, Command, KeySpec, Spec};
use crate::{Ctx, Done, Error, EventClass, Listening};
use pantala_protocol::Args;
use pantala_rdb::{RdbError, Restored, Text};
use pantala_store::{PutExpiry, PutMeta, Slot};
use pantala_types::string::{self, StrRef, int::Decimal};

/// Bytes that are compressed, decompressed or summed up in a µs, at least.
const BYTES_PER_US: u64 = 100;

/// `DUMP`
pub const DUMP: Command = Command::costly(
    Spec {
        name: "dump",
        summary: "Answers a value as bytes, to be given to RESTORE.",
        since: "2.6.0",
        complexity: "O(N) where N is the size of the value.",
        arity: 2,
        flags: READ,
        keys: &[KeySpec::one(1, RO_ACCESS)],
        tips: &["nondeterministic_output"],
        syntax: "key",
        ..GENERIC
    },
    dump,
    dump_cost_us,
);

/// `RESTORE`
pub const RESTORE: Command = Command::costly(
    Spec {
        name: "restore",
        summary: "Stores a value from the bytes that DUMP answered.",
        since: "2.6.0",
        complexity: "O(N) where N is the size of the value.",
        arity: -4,
        flags: GROW,
        acl: Acl::KEYSPACE.union(Acl::DANGEROUS),
        keys: &[KeySpec::one(1, OW_UPDATE)],
        syntax: "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
        ..GENERIC
    },
    restore,
    restore_cost_us,
);

fn dump_cost_us(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> u64 {
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    db.peek(&key)
        .and_then(StrRef::of)
        .map_or(0, |string| string.len() as u64 / BYTES_PER_US)
}

fn restore_cost_us(_: &mut Ctx<'_, '_>, args: Args<'_>) -> u64 {
    args.arg(3).len() as u64 / BYTES_PER_US
}

fn dump(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let Some(entry) = db.find(&key) else {
        announce_miss(cx.fx, key.bytes);
        cx.reply.null();
        return Ok(());
    };
    let payload = match StrRef::of(entry).ok_or(Error::WrongType)? {
        StrRef::Int(value) => pantala_rdb::dump_integer(value),
        string => pantala_rdb::dump_string(string.to_bytes(&mut Vec::new()), true),
    };
    cx.reply.bulk(&payload);
    Ok(())
}

/// How the use of a restored key is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// `IDLETIME`
    IdleSecs(u64),
    /// `FREQ`
    Freq(u8),
}

/// Options of `RESTORE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Options {
    replace: bool,
    absolute: bool,
    access: Option<Access>,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Self, Error> {
        let mut options = Self::default();
        let mut at = 4;
        while let Some(word) = args.get(at) {
            let next = args.get(at + 1);
            if word.eq_ignore_ascii_case(b"REPLACE") {
                options.replace = true;
            } else if word.eq_ignore_ascii_case(b"ABSTTL") {
                options.absolute = true;
            } else if let (true, Some(number)) = (word.eq_ignore_ascii_case(b"IDLETIME"), next)
                && !matches!(options.access, Some(Access::Freq(_)))
            {
                let secs = u64::try_from(integer(number)?)
                    .map_err(|_| Error::text("ERR Invalid IDLETIME value, must be >= 0"))?;
                options.access = Some(Access::IdleSecs(secs));
                at += 1;
            } else if let (true, Some(number)) = (word.eq_ignore_ascii_case(b"FREQ"), next)
                && !matches!(options.access, Some(Access::IdleSecs(_)))
            {
                let counter = u8::try_from(integer(number)?)
                    .map_err(|_| Error::text("ERR Invalid FREQ value, must be >= 0 and <= 255"))?;
                options.access = Some(Access::Freq(counter));
                at += 1;
            } else {
                return Err(Error::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }
}

fn restore(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let options = Options::parse(args)?;
    let key = cx.key(args, 0);
    let lfu = cx.store.access_policy().lfu;
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot_quiet(&key);
    let existed = slot.is_occupied();
    if existed && !options.replace {
        return Err(Error::text("BUSYKEY Target key name already exists."));
    }
    let ttl = integer(args.arg(2))?;
    if ttl < 0 {
        return Err(Error::text("ERR Invalid TTL value, must be >= 0"));
    }
    let payload = args.arg(3);
    let value =
        pantala_rdb::restore(payload, cx.settings.proto_max_bulk_len_bytes).map_err(refusal)?;
    let expiry = match (ttl, options.absolute) {
        (0, _) => None,
        (at, true) => Some(at),
        (ms, false) => Some(ms.saturating_add(cx.now_ms)),
    };
    if expiry.is_some_and(|at| at <= cx.now_ms) {
        if slot.remove() {
            super::shared::record_expiry(cx.fx, cx.settings, key.bytes);
        }
        cx.reply.ok();
        return Ok(());
    }
    store(
        &mut slot,
        &value,
        PutMeta {
            expiry: expiry.map_or(PutExpiry::Clear, PutExpiry::At),
            ..PutMeta::CLEAR
        },
    );
    match options.access {
        Some(Access::IdleSecs(secs)) if !lfu => slot.set_idle_secs(secs),
        Some(Access::Freq(counter)) if lfu => slot.set_freq(counter),
        _ => {}
    }
    record(cx, key.bytes, payload, expiry, options);
    announce_new(cx.fx, key.bytes, false);
    cx.fx.modified(key.bytes, EventClass::GENERIC, "restore");
    cx.reply.ok();
    Ok(())
}

fn store(slot: &mut Slot<'_>, value: &Restored<'_>, meta: PutMeta) {
    match value {
        Restored::String(Text::Integer(number)) => string::store_int(slot, *number, meta),
        Restored::String(Text::Bytes(bytes)) => string::store(slot, bytes, meta),
    }
}

fn refusal(error: RdbError) -> Error {
    match error {
        frame if frame.is_frame() => Error::text("ERR DUMP payload version or checksum are wrong"),
        RdbError::UnsupportedType(name) => Error::owned(format!(
            "ERR Bad data format: values of type {name} are not supported"
        )),
        _ => Error::text("ERR Bad data format"),
    }
}

/// The same with an absolute time, which no delay changes.
fn record(cx: &mut Ctx<'_, '_>, key: &[u8], payload: &[u8], expiry: Option<i64>, options: Options) {
    if !cx.fx.listening().contains(Listening::RECORD) {
        return;
    }
    let expiry = Decimal::new(expiry.unwrap_or(0));
    let mut parts: Vec<&[u8]> = vec![b"RESTORE", key, expiry.as_bytes(), payload, b"ABSTTL"];
    if options.replace {
        parts.push(b"REPLACE");
    }
    let number;
    if let Some(access) = options.access {
        let (word, value): (&[u8], i64) = match access {
            Access::IdleSecs(secs) => (b"IDLETIME", i64::try_from(secs).unwrap_or(i64::MAX)),
            Access::Freq(counter) => (b"FREQ", i64::from(counter)),
        };
        number = Decimal::new(value);
        parts.extend([word, number.as_bytes()]);
    }
    cx.fx.command(&parts);
}
