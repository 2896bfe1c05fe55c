//! `BITFIELD` and `BITFIELD_RO`

use super::super::string::shared::{
    GROW, READ_FAST, RO_ACCESS, RW_ACCESS_UPDATE, announce_miss, announce_new, integer, renew_cas,
    string_of,
};
use super::checked_offset;
use crate::effects::EventClass;
use crate::spec::{Acl, Command, Group, KeyFlags, KeySpec, Spec};
use crate::{Ctx, Done, Error};
use pantala_config::Settings;
use pantala_protocol::{Args, numbers};
use pantala_types::bitmap::field::{FieldType, Overflow};
use pantala_types::bitmap::{self, field};
use pantala_types::string::{self, StrRef};

const FIELDS: Spec = Spec {
    group: Group::Bitmap,
    acl: Acl::BITMAP,
    complexity: "O(1) for each operation.",
    arity: -2,
    ..Spec::BASE
};

/// `BITFIELD`
pub const BITFIELD: Command = Command::keyed(
    Spec {
        name: "bitfield",
        summary: "Reads, writes and increments integers of any width inside a string.",
        since: "3.2.0",
        flags: GROW,
        keys: &[KeySpec::one(
            1,
            RW_ACCESS_UPDATE.union(KeyFlags::VARIABLE_FLAGS),
        )],
        syntax: "key [GET encoding offset|[OVERFLOW WRAP|SAT|FAIL] SET encoding offset value|INCRBY encoding offset increment ...]",
        ..FIELDS
    },
    |cx, args| bitfield(cx, args, false),
);

/// `BITFIELD_RO`
pub const BITFIELD_RO: Command = Command::keyed(
    Spec {
        name: "bitfield_ro",
        summary: "Reads integers of any width inside a string.",
        since: "6.0.0",
        flags: READ_FAST,
        keys: &[KeySpec::one(1, RO_ACCESS)],
        syntax: "key [GET encoding offset [GET encoding offset ...]]",
        ..FIELDS
    },
    |cx, args| bitfield(cx, args, true),
);

#[derive(Clone, Copy)]
enum Action {
    Get,
    Set(i64),
    Increment(i64),
}

#[derive(Clone, Copy)]
struct Operation {
    field: FieldType,
    offset: u64,
    action: Action,
    overflow: Overflow,
}

fn bitfield(cx: &mut Ctx<'_, '_>, args: Args<'_>, read_only: bool) -> Done {
    let operations = parse(args, cx.settings)?;
    let last_written = operations
        .iter()
        .filter(|operation| !matches!(operation.action, Action::Get))
        .map(|operation| operation.offset + u64::from(operation.field.bits) - 1)
        .max();
    match last_written {
        Some(_) if read_only => Err(Error::text(
            "ERR BITFIELD_RO only supports the GET subcommand",
        )),
        Some(last_bit) => write(cx, args, &operations, last_bit),
        None => read(cx, args, &operations),
    }
}

fn read(cx: &mut Ctx<'_, '_>, args: Args<'_>, operations: &[Operation]) -> Done {
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let string = string_of(db.find(&key))?;
    if string.is_none() {
        announce_miss(cx.fx, key.bytes);
    }
    cx.reply.array(operations.len());
    for operation in operations {
        cx.reply.integer(bitmap::read_field(
            string.as_ref(),
            operation.offset,
            operation.field,
        ));
    }
    Ok(())
}

fn write(cx: &mut Ctx<'_, '_>, args: Args<'_>, operations: &[Operation], last_bit: u64) -> Done {
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut slot = db.slot_quiet(&key);
    let len_before = string_of(slot.entry())?.map(|string| string.len() as u64);
    let len = last_bit / 8 + 1;
    let grows = len_before.is_none_or(|before| before < len);
    string::grow(&mut slot, len as usize);
    cx.reply.array(operations.len());
    let mut changes = 0;
    for operation in operations {
        let before = bitmap::read_field(
            slot.entry().and_then(StrRef::of).as_ref(),
            operation.offset,
            operation.field,
        );
        let (field, overflow) = (operation.field, operation.overflow);
        let (after, answer) = match operation.action {
            Action::Get => (None, Some(before)),
            Action::Set(value) => {
                let after = field::fit(value, field, overflow);
                (after, after.map(|_| before))
            }
            Action::Increment(increment) => {
                let after = field::add(before, increment, field, overflow);
                (after, after)
            }
        };
        match answer {
            Some(answer) => cx.reply.integer(answer),
            None => cx.reply.null(),
        }
        if let Some(after) = after {
            bitmap::write_field(&mut slot, operation.offset, field, after);
            changes += u64::from(grows || before != after);
        }
    }
    renew_cas(cx.store, &mut slot);
    // A string that grew is changed even when every operation failed.
    if changes > 0 || grows {
        cx.fx.verbatim();
        announce_new(cx.fx, key.bytes, len_before.is_some());
        cx.fx.modified(key.bytes, EventClass::STRING, "setbit");
        cx.fx.add_changes(changes.saturating_sub(1));
    }
    Ok(())
}

fn parse(args: Args<'_>, settings: &Settings) -> Result<Vec<Operation>, Error> {
    let mut operations = Vec::new();
    let mut overflow = Overflow::default();
    let mut at = 2;
    while at < args.len() {
        let left = args.len() - at - 1;
        if args.is(at, "OVERFLOW") && left >= 1 {
            overflow = overflow_mode(args, at + 1)?;
            at += 2;
            continue;
        }
        let reads = args.is(at, "GET");
        if !(reads && left >= 2 || (args.is(at, "SET") || args.is(at, "INCRBY")) && left >= 3) {
            return Err(Error::Syntax);
        }
        let field = FieldType::parse(args.arg(at + 1)).ok_or(Error::text(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
        ))?;
        let offset = field_offset(args.arg(at + 2), field, settings)?;
        let action = if reads {
            Action::Get
        } else {
            let number = integer(args.arg(at + 3))?;
            if args.is(at, "SET") {
                Action::Set(number)
            } else {
                Action::Increment(number)
            }
        };
        operations.push(Operation {
            field,
            offset,
            action,
            overflow,
        });
        at += if reads { 3 } else { 4 };
    }
    Ok(operations)
}

fn overflow_mode(args: Args<'_>, at: usize) -> Result<Overflow, Error> {
    if args.is(at, "WRAP") {
        Ok(Overflow::Wrap)
    } else if args.is(at, "SAT") {
        Ok(Overflow::Saturate)
    } else if args.is(at, "FAIL") {
        Ok(Overflow::Fail)
    } else {
        Err(Error::text("ERR Invalid OVERFLOW type specified"))
    }
}

/// `#n` counts in fields of this width.
fn field_offset(arg: &[u8], field: FieldType, settings: &Settings) -> Result<u64, Error> {
    let offset = match arg {
        [b'#', number @ ..] => {
            numbers::parse_i64(number).and_then(|number| number.checked_mul(i64::from(field.bits)))
        }
        number => numbers::parse_i64(number),
    };
    checked_offset(offset, settings)
}
