//! Commands on HyperLogLogs. The semantics are in `pantala_types::hyperloglog`.

use super::string::shared::{
    GROW, GROW_FAST, READ, RO_ACCESS, RW_ACCESS, RW_INSERT, announce_miss, announce_new, string_of,
};
use crate::effects::EventClass;
use crate::spec::{Acl, Command, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::{Ctx, Done, Error};
use pantala_protocol::Args;
use pantala_store::{Entry, PutMeta, Slot};
use pantala_types::hyperloglog::{self as hll, Form, Invalid, Union, sparse};
use pantala_types::string;

/// All HyperLogLog commands.
pub const COMMANDS: &[Command] = &[PFADD, PFCOUNT, PFMERGE, PFDEBUG, PFSELFTEST];

const HLL: Spec = Spec {
    group: Group::Hyperloglog,
    acl: Acl::HYPERLOGLOG,
    since: "2.8.9",
    ..Spec::BASE
};

/// `PFADD`
pub const PFADD: Command = Command::keyed(
    Spec {
        name: "pfadd",
        summary: "Adds elements to a HyperLogLog; creates it where there is none.",
        complexity: "O(1) for each element.",
        arity: -2,
        flags: GROW_FAST,
        keys: &[KeySpec::one(1, RW_INSERT)],
        syntax: "key [element [element ...]]",
        ..HLL
    },
    pfadd,
);

/// `PFCOUNT`
pub const PFCOUNT: Command = Command::costly(
    Spec {
        name: "pfcount",
        summary: "Estimates how many different elements were added to one HyperLogLog or to several together.",
        complexity: "O(1) for one key whose estimate is known, otherwise O(N) where N is the number of keys, with a large constant.",
        arity: -2,
        flags: READ,
        keys: &[KeySpec::all_from(1, 1, RW_ACCESS)],
        syntax: "key [key ...]",
        ..HLL
    },
    pfcount,
    merge_cost_us,
);

/// `PFMERGE`
pub const PFMERGE: Command = Command::costly(
    Spec {
        name: "pfmerge",
        summary: "Merges HyperLogLogs into one.",
        complexity: "O(N) where N is the number of keys, with a large constant.",
        arity: -2,
        flags: GROW,
        keys: &[
            KeySpec::one(1, RW_ACCESS.union(KeyFlags::INSERT)),
            KeySpec::all_from(2, 1, RO_ACCESS),
        ],
        syntax: "destkey [sourcekey [sourcekey ...]]",
        ..HLL
    },
    pfmerge,
    merge_cost_us,
);

/// `PFDEBUG`
pub const PFDEBUG: Command = Command::keyed(
    Spec {
        name: "pfdebug",
        summary: "Shows or changes how a HyperLogLog is stored.",
        complexity: "N/A",
        arity: 3,
        flags: GROW.union(Flags::ADMIN),
        keys: &[KeySpec::one(2, RW_ACCESS)],
        syntax: "subcommand key",
        ..HLL
    },
    pfdebug,
);

/// `PFSELFTEST`
pub const PFSELFTEST: Command = Command::costly(
    Spec {
        name: "pfselftest",
        summary: "Tests the HyperLogLog implementation.",
        complexity: "N/A",
        arity: 1,
        flags: Flags::ADMIN,
        ..HLL
    },
    pfselftest,
    |_, _| 5_000_000,
);

fn refused(why: Invalid) -> Error {
    Error::text(match why {
        Invalid::NotHll => "WRONGTYPE Key is not a valid HyperLogLog string value.",
        Invalid::Corrupted => "INVALIDOBJ Corrupted HLL object detected",
    })
}

/// How the HyperLogLog in an entry is stored, and its estimate if that is up to date; `None` where there is no entry.
fn header_of(entry: Option<Entry<'_>>) -> Result<Option<(Form, Option<u64>)>, Error> {
    let Some(string) = string_of(entry)? else {
        return Ok(None);
    };
    let header = hll::read_header(&string);
    let form = hll::form_of(&header, string.len()).map_err(refused)?;
    Ok(Some((form, hll::cached(&header))))
}

/// A copy of the HyperLogLog in an entry, whose header was checked; `None` where there is no entry.
fn load(entry: Option<Entry<'_>>) -> Result<Option<Vec<u8>>, Error> {
    if header_of(entry)?.is_none() {
        return Ok(None);
    }
    let Some(string) = string_of(entry)? else {
        return Ok(None);
    };
    let mut bytes = Vec::with_capacity(string.len() + 3);
    string.append_to(&mut bytes);
    Ok(Some(bytes))
}

/// Stores a changed HyperLogLog; the expiry stays.
fn save(slot: &mut Slot<'_>, bytes: &[u8]) {
    string::store_plain(slot, bytes, PutMeta::KEEP);
    string::set_grown(slot);
}

fn sparse_limit(cx: &Ctx<'_, '_>) -> usize {
    usize::try_from(cx.settings.hll_sparse_max_bytes).unwrap_or(usize::MAX)
}

fn pfadd(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let limit = sparse_limit(cx);
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot_quiet(&key);
    if header_of(slot.entry())?.is_some_and(|(form, _)| form == Form::Dense) {
        let changes = hll::add_dense(&mut slot, args.slice_from(2).iter());
        return added(cx, key.bytes, changes, true);
    }
    let stored = load(slot.entry())?;
    let existed = stored.is_some();
    let mut changes = u64::from(!existed);
    let mut bytes = stored.unwrap_or_else(hll::empty);
    for element in args.slice_from(2).iter() {
        changes += u64::from(hll::add(&mut bytes, element, limit).map_err(refused)?);
    }
    if changes > 0 {
        hll::invalidate(&mut bytes);
        save(&mut slot, &bytes);
    }
    added(cx, key.bytes, changes, existed)
}

fn added(cx: &mut Ctx<'_, '_>, key: &[u8], changes: u64, existed: bool) -> Done {
    cx.reply.integer(i64::from(changes > 0));
    if changes > 0 {
        cx.fx.verbatim();
        announce_new(cx.fx, key, existed);
        cx.fx.modified(key, EventClass::STRING, "pfadd");
        cx.fx.add_changes(changes - 1);
    }
    Ok(())
}

fn pfcount(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    if cx.keys.len() > 1 {
        let (union, _) = union_of(cx, args)?;
        cx.reply.integer(union.count() as i64);
        return Ok(());
    }
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot(&key);
    let entry = slot.entry();
    if let Some((_, Some(cardinality))) = header_of(entry)? {
        cx.reply.integer(cardinality as i64);
        return Ok(());
    }
    let Some(mut bytes) = load(entry)? else {
        cx.reply.integer(0);
        announce_miss(cx.fx, key.bytes);
        return Ok(());
    };
    let cardinality = hll::count(&bytes).map_err(refused)?;
    hll::set_cached(&mut bytes, cardinality);
    // Only the header changes, but it is part of a string that anyone can read: so it is propagated.
    string::write_at(&mut slot, 0, &bytes[..hll::HEADER_LEN]);
    cx.reply.integer(cardinality as i64);
    cx.fx.verbatim();
    cx.fx.add_changes(1);
    Ok(())
}

/// The union of all keys; whether one of them is dense.
fn union_of(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Result<(Union, bool), Error> {
    let mut union = Union::default();
    let mut dense = false;
    for nth in 0..cx.keys.len() {
        let key = cx.key(args, nth);
        let mut db = cx.space.db(cx.db_index, cx.now_ms);
        match load(db.find(&key))? {
            Some(bytes) => dense |= union.merge(&bytes).map_err(refused)? == Form::Dense,
            None => announce_miss(cx.fx, key.bytes),
        }
    }
    Ok((union, dense))
}

fn pfmerge(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let limit = sparse_limit(cx);
    let (union, dense) = union_of(cx, args)?;
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot_quiet(&key);
    let stored = load(slot.entry())?;
    let existed = stored.is_some();
    let mut bytes = stored.unwrap_or_else(hll::empty);
    union.write_to(&mut bytes, dense, limit).map_err(refused)?;
    save(&mut slot, &bytes);
    cx.reply.ok();
    cx.fx.verbatim();
    announce_new(cx.fx, key.bytes, existed);
    cx.fx.modified(key.bytes, EventClass::STRING, "pfadd");
    Ok(())
}

fn pfdebug(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot_quiet(&key);
    let stored = load(slot.entry())?;
    let Some(mut bytes) = stored else {
        return Err(Error::text("ERR The specified key does not exist"));
    };
    let form = hll::form(&bytes).map_err(refused)?;
    if args.is(1, "ENCODING") {
        cx.reply.simple(form.name());
        return Ok(());
    }
    if args.is(1, "DECODE") {
        if form == Form::Dense {
            return Err(Error::text("ERR HLL encoding is not sparse"));
        }
        cx.reply.bulk_str(&decoded(&bytes[hll::HEADER_LEN..]));
        return Ok(());
    }
    let (registers, to_dense) = (args.is(1, "GETREG"), args.is(1, "TODENSE"));
    if !registers && !to_dense {
        return Err(Error::owned(format!(
            "ERR Unknown PFDEBUG subcommand '{}'",
            String::from_utf8_lossy(args.arg(1))
        )));
    }
    let converts = form == Form::Sparse;
    if converts {
        hll::to_dense(&mut bytes).map_err(refused)?;
        save(&mut slot, &bytes);
        cx.fx.command(&[b"PFDEBUG", b"TODENSE", key.bytes]);
        cx.fx.add_changes(1);
    }
    if to_dense {
        cx.reply.integer(i64::from(converts));
        return Ok(());
    }
    cx.reply.array(hll::REGISTERS);
    hll::dense::for_each(&bytes[hll::HEADER_LEN..], |_, value| {
        cx.reply.integer(i64::from(value))
    });
    Ok(())
}

/// The runs of a sparse HyperLogLog as `PFDEBUG DECODE` writes them.
fn decoded(registers: &[u8]) -> String {
    let words: Vec<String> = sparse::runs(registers)
        .map(|run| match run {
            sparse::Run::Zero(len) => format!("z:{len}"),
            sparse::Run::LongZero(len) => format!("Z:{len}"),
            sparse::Run::Value { value, len } => format!("v:{value},{len}"),
        })
        .collect();
    words.join(" ")
}

/// Merging 16,384 registers and estimating from them.
fn merge_cost_us(cx: &mut Ctx<'_, '_>, _: Args<'_>) -> u64 {
    cx.keys.len() as u64 * 15
}

/// Registers keep what was put into them, sparse and dense agree, and the estimate is within six times the standard error.
fn pfselftest(cx: &mut Ctx<'_, '_>, _: Args<'_>) -> Done {
    registers_keep_values(cx)?;
    let (mut dense, mut sparse) = (hll::empty(), hll::empty());
    hll::to_dense(&mut dense).map_err(refused)?;
    let limit = sparse_limit(cx);
    let seed = cx.rng.next_u64();
    let relative_error = 1.04 / (hll::REGISTERS as f64).sqrt();
    let mut checkpoint = 1u64;
    for n in 1..=10_000_000u64 {
        let element = (n ^ seed).to_le_bytes();
        hll::add(&mut dense, &element, limit).map_err(refused)?;
        hll::add(&mut sparse, &element, limit).map_err(refused)?;
        if n != checkpoint {
            continue;
        }
        if n < limit as u64 / 2 && hll::form(&sparse) != Ok(Form::Sparse) {
            return Err(Error::text("ERR TESTFAILED sparse encoding not used"));
        }
        let estimate = hll::count(&dense).map_err(refused)?;
        if hll::count(&sparse) != Ok(estimate) {
            return Err(Error::text("ERR TESTFAILED dense/sparse disagree"));
        }
        // At ten elements a single collision already is a large error.
        let allowed = if n == 10 {
            1
        } else {
            (relative_error * 6.0 * n as f64).ceil() as u64
        };
        let error = n.abs_diff(estimate);
        if error > allowed {
            return Err(Error::owned(format!(
                "ERR TESTFAILED Too big error. card:{n} abserr:{error}"
            )));
        }
        checkpoint *= 10;
    }
    cx.reply.ok();
    Ok(())
}

fn registers_keep_values(cx: &mut Ctx<'_, '_>) -> Done {
    const CYCLES: usize = 1000;
    let mut packed = vec![0; hll::dense::LEN];
    let mut expected = vec![0u8; hll::REGISTERS];
    for _ in 0..CYCLES {
        for (index, value) in expected.iter_mut().enumerate() {
            *value = cx.rng.below(64) as u8;
            hll::dense::set(&mut packed, index, *value);
        }
        for (index, &value) in expected.iter().enumerate() {
            let got = hll::dense::get(&packed, index);
            if got != value {
                return Err(Error::owned(format!(
                    "ERR TESTFAILED Register {index} should be {value} but is {got}"
                )));
            }
        }
    }
    Ok(())
}
