//! What the commands on strings, bitmaps and HyperLogLogs share: reading arguments, answering a stored string, checking
//! lengths, announcing writes.

use crate::Error;
use crate::effects::{Effects, EventClass};
use crate::spec::{Flags, KeyFlags};
use pantala_config::Settings;
use pantala_protocol::{Reply, numbers};
use pantala_store::{Entry, Kind, McMeta, Slot, Store, TREE_LEN_MAX};
use pantala_types::string::{StrRef, packed7};
use std::ops::ControlFlow;

/// Writes in constant time, but only takes away.
pub const WRITE_FAST: Flags = Flags::WRITE.union(Flags::FAST);
/// Writes and may need memory.
pub const GROW: Flags = Flags::WRITE.union(Flags::DENYOOM);
/// Writes in constant time and may need memory.
pub const GROW_FAST: Flags = GROW.union(Flags::FAST);
/// Reads.
pub const READ: Flags = Flags::READONLY;
/// Reads in constant time.
pub const READ_FAST: Flags = Flags::READONLY.union(Flags::FAST);

/// Reads the value and shows it.
pub const RO_ACCESS: KeyFlags = KeyFlags::RO.union(KeyFlags::ACCESS);
/// Changes the value and shows it.
pub const RW_ACCESS: KeyFlags = KeyFlags::RW.union(KeyFlags::ACCESS);
/// Changes the value, shows it, takes it into account.
pub const RW_ACCESS_UPDATE: KeyFlags = RW_ACCESS.union(KeyFlags::UPDATE);
/// Adds to the value without showing it.
pub const RW_INSERT: KeyFlags = KeyFlags::RW.union(KeyFlags::INSERT);
/// Replaces the value.
pub const OW_UPDATE: KeyFlags = KeyFlags::OW.union(KeyFlags::UPDATE);
/// Sets the value only where there was none.
pub const OW_INSERT: KeyFlags = KeyFlags::OW.union(KeyFlags::INSERT);

/// An argument as a 64-bit integer.
pub fn integer(arg: &[u8]) -> Result<i64, Error> {
    numbers::parse_i64(arg).ok_or(Error::NotAnInteger)
}

/// The string in an entry, if there is one; an error when it holds another type.
#[inline]
pub fn string_of<'b>(entry: Option<Entry<'b>>) -> Result<Option<StrRef<'b>>, Error> {
    match entry {
        Some(entry) => StrRef::of(entry).map(Some).ok_or(Error::WrongType),
        None => Ok(None),
    }
}

/// Answers a stored string.
#[inline]
pub fn reply_string(reply: &mut Reply<'_>, string: &StrRef<'_>) {
    match string {
        StrRef::Raw { bytes, .. } => reply.bulk(bytes),
        StrRef::Int(value) => reply.bulk_integer(*value),
        StrRef::Packed { packed, len } => {
            let mark = reply.begin_bulk(*len);
            packed7::for_each_piece(packed, *len, |piece| reply.raw(piece));
            reply.end_bulk(mark);
        }
        string => reply_range(reply, string, 0, string.len()),
    }
}

/// Answers `len` bytes from `start` on, which the string has.
pub fn reply_range(reply: &mut Reply<'_>, string: &StrRef<'_>, start: usize, len: usize) {
    let mark = reply.begin_bulk(len);
    let _: ControlFlow<()> = string.for_each_chunk(start, len, |chunk| {
        reply.raw(chunk);
        ControlFlow::Continue(())
    });
    reply.end_bulk(mark);
}

/// The longest string that may be: as configured, and short of what the store can hold, with room for the end of a bit field.
pub fn longest_string(settings: &Settings) -> u64 {
    settings.proto_max_bulk_len_bytes.min(TREE_LEN_MAX - 64)
}

/// Checks that a string of `len` bytes may grow by `more`.
pub fn check_len(settings: &Settings, len: u64, more: u64) -> Result<usize, Error> {
    len.checked_add(more)
        .filter(|total| *total <= longest_string(settings))
        .and_then(|total| usize::try_from(total).ok())
        .ok_or(Error::StringTooLong)
}

/// A value that memcached's clients stored was changed: their next compare-and-swap must notice it.
#[inline]
pub fn renew_cas(store: &Store, slot: &mut Slot<'_>) {
    if let Some(mc) = slot.entry().and_then(Entry::mc) {
        slot.set_mc(Some(McMeta {
            cas: store.next_cas(),
            ..mc
        }));
    }
}

/// Announces that a value was put where `before` stood, ahead of the command's own event.
pub fn announce_put(fx: &mut Effects, key: &[u8], before: Option<Kind>) {
    match before {
        None => fx.event(key, EventClass::NEW, "new"),
        Some(kind) => {
            fx.event(key, EventClass::OVERWRITTEN, "overwritten");
            if kind != Kind::String {
                fx.event(key, EventClass::TYPE_CHANGED, "type_changed");
            }
        }
    }
}

/// Announces that a value was created where nothing stood.
pub fn announce_new(fx: &mut Effects, key: &[u8], existed: bool) {
    if !existed {
        fx.event(key, EventClass::NEW, "new");
    }
}

/// Announces that a key that was asked for is not there.
pub fn announce_miss(fx: &mut Effects, key: &[u8]) {
    fx.event(key, EventClass::KEY_MISS, "keymiss");
}
