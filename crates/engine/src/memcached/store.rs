//! Storing a value: what `set`, `add`, `replace`, `append`, `prepend`, `cas` and `ms` have in common.

use super::announce;
use super::counters::count;
use super::expiry::Expiry;
use super::held::{DB, Env, Held};
use super::item::{self, BINARY_KEY, Compared, Item, STALE, WON, WrongType, compare, item_bytes};
use super::watchers;
use pantala_commands::Effects;
use pantala_store::{Key, McMeta, Slot, Store};
use pantala_types::string;

/// When a value is stored, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// Unconditionally.
    Set,
    /// Only if there is none.
    Add,
    /// Only if there is one.
    Replace,
    /// Behind what is there.
    Append,
    /// Before what is there.
    Prepend,
    /// Only if the CAS number is as told.
    Cas,
}

/// A value to be stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write<'v> {
    pub(super) mode: Mode,
    pub(super) value: &'v [u8],
    pub(super) flags: u32,
    pub(super) expiry: Expiry,
    /// The CAS number to compare; 0 for none.
    pub(super) cas: u64,
    /// With an older CAS number the value is stored too, as outdated.
    pub(super) stale_allowed: bool,
    pub(super) binary_key: bool,
    /// The CAS number to give.
    pub(super) new_cas: Option<u64>,
    /// The client wants to know the CAS number.
    pub(super) wants_cas: bool,
    /// Without memory the old value goes too, so that no outdated one is served.
    pub(super) unlinks_without_room: bool,
}

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// Stored, with this CAS number (0 when nobody asked for it).
    Stored(u64),
    /// The condition does not hold, or the value would become too large.
    Refused,
    /// The CAS number is another.
    Exists,
    /// There is nothing to compare with.
    NotFound,
    /// The key holds no string.
    WrongType,
    /// There is no memory.
    NoRoom,
}

impl Write<'_> {
    /// The CAS number to give; 0 for none yet.
    fn cas_to_give(&self, store: &Store) -> u64 {
        match self.new_cas {
            Some(cas) => cas,
            None if self.wants_cas => store.next_cas(),
            None => 0,
        }
    }
}

/// Stores a value.
pub(super) fn store(held: &mut Held<'_, '_>, key: &Key<'_>, write: &Write<'_>) -> Outcome {
    let outcome = try_store(held, key, write);
    watchers::stored(held.env, held.space, key, write, outcome);
    outcome
}

fn try_store(held: &mut Held<'_, '_>, key: &Key<'_>, write: &Write<'_>) -> Outcome {
    let env = held.env;
    count(&env.counters.cmd_set);
    if !held.has_room {
        count(&env.counters.store_no_memory);
        if write.unlinks_without_room {
            held.remove(key);
        }
        return Outcome::NoRoom;
    }
    let mut db = held.space.db(DB, env.now_ms);
    let mut slot = db.slot_quiet(key);
    let (expiry, state) = match admit(env, &mut slot, write) {
        Ok(admitted) => admitted,
        Err(refused) => return refused,
    };
    count(&env.counters.total_items);
    if matches!(write.mode, Mode::Append | Mode::Prepend) {
        return join(env, held.fx, &mut slot, write);
    }
    let before = slot.entry().map(|entry| entry.kind());
    let cas = write.cas_to_give(env.store());
    if expiry == Expiry::Past {
        // Only that the old value is gone can be seen.
        if slot.remove() {
            announce::removed(held.fx, key.bytes);
        }
        return Outcome::Stored(cas);
    }
    let binary = if write.binary_key { BINARY_KEY } else { 0 };
    let mc = McMeta {
        flags: write.flags,
        cas,
        state: state | binary,
    };
    string::store(&mut slot, write.value, item::put_meta(expiry, mc));
    announce::stored(held.fx, key.bytes, write.value, expiry.at_ms(), before);
    Outcome::Stored(cas)
}

/// Whether the condition holds, and then the expiry and the state that the item gets.
fn admit(env: Env<'_>, slot: &mut Slot<'_>, write: &Write<'_>) -> Result<(Expiry, u8), Outcome> {
    let counters = env.counters;
    let Some(entry) = slot.entry() else {
        return match write.mode {
            Mode::Set | Mode::Add => Ok((write.expiry, 0)),
            Mode::Cas => {
                count(&counters.cas_misses);
                Err(Outcome::NotFound)
            }
            Mode::Replace | Mode::Append | Mode::Prepend => Err(Outcome::Refused),
        };
    };
    match write.mode {
        Mode::Set | Mode::Replace => Ok((write.expiry, 0)),
        Mode::Add => {
            slot.touch();
            Err(Outcome::Refused)
        }
        Mode::Append | Mode::Prepend => {
            let item = Item::of(entry).map_err(|WrongType| Outcome::WrongType)?;
            let len = item.len() + write.value.len();
            let compared = compare(env.store(), item.mc, write.cas);
            if !matches!(compared, Compared::None | Compared::Match) {
                Err(Outcome::Exists)
            } else if item_bytes(slot.key().len(), item.mc.flags, len) > env.item_bytes_max {
                Err(Outcome::Refused)
            } else {
                Ok((item.expiry, 0))
            }
        }
        Mode::Cas => {
            let mc = entry.mc().unwrap_or_default();
            match compare(env.store(), mc, write.cas) {
                Compared::Match => {
                    count(&counters.cas_hits);
                    Ok((write.expiry, 0))
                }
                Compared::Older if write.stale_allowed => {
                    count(&counters.cas_hits);
                    let expiry = Expiry::from_entry(entry.expiry_ms());
                    Ok((expiry, STALE | (mc.state & WON)))
                }
                _ => {
                    count(&counters.cas_badval);
                    Err(Outcome::Exists)
                }
            }
        }
    }
}

/// Appends or prepends. As in memcached the whole is a new item, so it is written anew, in the encoding that suits it; the limit on
/// items bounds the copy.
fn join(env: Env<'_>, fx: &mut Effects, slot: &mut Slot<'_>, write: &Write<'_>) -> Outcome {
    let Ok(Some(item)) = Item::in_slot(slot) else {
        return Outcome::Refused;
    };
    let mut whole = Vec::with_capacity(item.len() + write.value.len());
    if write.mode == Mode::Prepend {
        whole.extend_from_slice(write.value);
    }
    item.append_to(&mut whole);
    if write.mode == Mode::Append {
        whole.extend_from_slice(write.value);
    }
    let cas = write.cas_to_give(env.store());
    let mc = McMeta {
        flags: item.mc.flags,
        cas,
        state: 0,
    };
    let meta = item::put_meta(item.expiry, mc);
    string::store(slot, &whole, meta);
    announce::changed(fx, slot.key(), &whole, "append");
    Outcome::Stored(cas)
}
