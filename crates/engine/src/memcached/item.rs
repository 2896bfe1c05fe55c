//! An item as memcached sees it: a string with client flags, a CAS number and two state bits. Where these stand in the entry, and
//! when an entry has a place for them at all, is said in the head of the module.

use super::expiry::Expiry;
use pantala_store::{Entry, McMeta, PutExpiry, PutMc, PutMeta, Slot, Store};
use pantala_types::string::StrRef;

/// The value is outdated; the first who comes may refresh it.
pub(super) const STALE: u8 = 1;
/// Somebody was told that it is theirs to refresh the value.
pub(super) const WON: u8 = 1 << 1;
/// The key came in base64 and is shown so.
pub(super) const BINARY_KEY: u8 = 1 << 2;
/// From this bit on the state says how many blanks follow a number that became shorter.
const PAD_SHIFT: u32 = 3;
/// Most blanks that the state can tell.
pub(super) const PAD_MAX: usize = (u8::MAX >> PAD_SHIFT) as usize;

/// The same state with so many blanks behind the number, at most `PAD_MAX`.
pub(super) fn with_pad(state: u8, pad: usize) -> u8 {
    let pad = pad.min(PAD_MAX) as u8;
    (state & (STALE | WON | BINARY_KEY)) | pad << PAD_SHIFT
}

/// The answer to a command that needs a string and meets a list, a set …
pub(super) const WRONG_TYPE: &str =
    "SERVER_ERROR WRONGTYPE Operation against a key holding the wrong kind of value";

/// A key holds something else than a string.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WrongType;

/// An item that was found.
#[derive(Clone, Copy)]
pub(super) struct Item<'b> {
    pub(super) value: StrRef<'b>,
    /// Flags, CAS number (0: none was handed out) and state.
    pub(super) mc: McMeta,
    pub(super) expiry: Expiry,
    /// Whether it was fetched since it was stored.
    pub(super) fetched: bool,
    /// Blanks that memcached's clients see behind the value.
    pub(super) pad: usize,
}

impl<'b> Item<'b> {
    /// The item in an entry.
    #[inline]
    pub(super) fn of(entry: Entry<'b>) -> Result<Self, WrongType> {
        let value = StrRef::of(entry).ok_or(WrongType)?;
        let mc = entry.mc().unwrap_or_default();
        Ok(Self {
            value,
            mc,
            expiry: Expiry::from_entry(entry.expiry_ms()),
            fetched: entry.fetched(),
            pad: pad_of(mc, &value),
        })
    }

    /// Number of bytes as memcached's clients see them.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.value.len() + self.pad
    }

    /// Appends the bytes as memcached's clients see them. The value is unpacked straight into the reply.
    #[inline]
    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        match self.value {
            StrRef::Raw { bytes, .. } => out.extend_from_slice(bytes),
            ref value => value.append_to(out),
        }
        if self.pad != 0 {
            out.resize(out.len() + self.pad, b' ');
        }
    }

    /// The item in a slot, if there is one.
    #[inline]
    pub(super) fn in_slot(slot: &'b Slot<'_>) -> Result<Option<Self>, WrongType> {
        slot.entry().map(Self::of).transpose()
    }
}

/// Blanks behind a number. Redis's clients may have put something else in its place since, which has none.
#[inline]
fn pad_of(mc: McMeta, value: &StrRef<'_>) -> usize {
    /// Digits of the largest number.
    const DIGITS_MAX: usize = 20;
    let pad = usize::from(mc.state >> PAD_SHIFT);
    let is_number = || match value {
        StrRef::Int(_) => true,
        StrRef::Raw { bytes, .. } => {
            bytes.len() <= DIGITS_MAX && bytes.iter().all(u8::is_ascii_digit)
        }
        StrRef::Packed { .. } | StrRef::Tree(_) => false,
    };
    if pad != 0 && is_number() { pad } else { 0 }
}

/// The section that an entry gets: none when there is nothing in it.
pub(super) fn section(mc: McMeta) -> Option<McMeta> {
    (mc != McMeta::default()).then_some(mc)
}

/// How an item is stored.
pub(super) fn put_meta(expiry: Expiry, mc: McMeta) -> PutMeta {
    PutMeta {
        expiry: match expiry {
            Expiry::At(at_ms) => PutExpiry::At(at_ms),
            Expiry::Never | Expiry::Past => PutExpiry::Clear,
        },
        mc: section(mc).map_or(PutMc::Clear, PutMc::Set),
    }
}

/// The CAS number of the item in `slot`, which is given one if nobody asked for it before.
pub(super) fn cas_of(store: &Store, slot: &mut Slot<'_>) -> u64 {
    let mc = slot.entry().and_then(Entry::mc).unwrap_or_default();
    if mc.cas != 0 {
        return mc.cas;
    }
    let cas = store.next_cas();
    slot.set_mc(Some(McMeta { cas, ..mc }));
    cas
}

/// What a comparison with an item's CAS number says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compared {
    /// Nothing was to be compared.
    None,
    /// It is the item's number.
    Match,
    /// It is the number of an earlier version of some item.
    Older,
    /// It is none of these.
    Different,
}

/// Compares a client's number, 0 for none, with an item's.
pub(super) fn compare(store: &Store, mc: McMeta, wanted: u64) -> Compared {
    if wanted == 0 {
        Compared::None
    } else if wanted == mc.cas {
        Compared::Match
    } else if wanted
        < if mc.cas == 0 {
            // Never handed out, so it would be the newest of all if it were given now.
            store.next_cas()
        } else {
            mc.cas
        }
    {
        Compared::Older
    } else {
        Compared::Different
    }
}

/// What an item takes in memcached, which is what its size limit is about: header 48, key with a zero byte, flags unless 0, value with a
/// line end, CAS number 8.
pub(super) fn item_bytes(key_len: usize, flags: u32, value_len: usize) -> usize {
    let flags_len = if flags == 0 { 0 } else { 4 };
    48 + key_len + 1 + flags_len + value_len + 2 + 8
}
