//! The classic commands on one key: storage, `incr`, `decr`, `touch`, `delete`.

use super::arithmetic::{self, Change, Refused};
use super::counters::count;
use super::held::{DB, Held, set_expiry};
use super::item::WRONG_TYPE;
use super::prefixes::Event;
use super::store::{self, Mode, Outcome, Write};
use pantala_protocol::memcached::{Arithmetic, Delete, Store, StoreVerb, Touch, write_integer};
use pantala_store::Key;

/// The answer when there is no memory for a value.
pub(super) const NO_ROOM: &str = "SERVER_ERROR out of memory storing object";
/// The answer when something else than a number is to be changed.
pub(super) const NOT_A_NUMBER: &str =
    "CLIENT_ERROR cannot increment or decrement non-numeric value";

/// `set`, `add`, `replace`, `append`, `prepend`, `cas`.
pub(super) fn store(held: &mut Held<'_, '_>, key: &Key<'_>, request: &Store<'_>) {
    held.env.note(key.bytes, Event::Set);
    let write = Write {
        mode: match request.verb {
            StoreVerb::Set => Mode::Set,
            StoreVerb::Add => Mode::Add,
            StoreVerb::Replace => Mode::Replace,
            StoreVerb::Append => Mode::Append,
            StoreVerb::Prepend => Mode::Prepend,
            StoreVerb::Cas => Mode::Cas,
        },
        value: request.data,
        flags: request.flags,
        expiry: held.env.expiry(request.exptime_s),
        cas: request.cas,
        stale_allowed: false,
        binary_key: false,
        new_cas: None,
        wants_cas: false,
        unlinks_without_room: request.verb == StoreVerb::Set,
    };
    let stored = store::store(held, key, &write);
    if !request.noreply {
        held.line(match stored {
            Outcome::Stored(_) => "STORED",
            Outcome::Refused => "NOT_STORED",
            Outcome::Exists => "EXISTS",
            Outcome::NotFound => "NOT_FOUND",
            Outcome::WrongType => WRONG_TYPE,
            Outcome::NoRoom => NO_ROOM,
        });
    }
}

/// `incr` and `decr`.
pub(super) fn arithmetic(held: &mut Held<'_, '_>, key: &Key<'_>, request: &Arithmetic<'_>) {
    let env = held.env;
    if !held.has_room {
        if !request.noreply {
            held.line("SERVER_ERROR out of memory");
        }
        return;
    }
    let mut db = held.space.db(DB, env.now_ms);
    let mut slot = db.slot_quiet(key);
    let change = Change {
        decrement: request.decrement,
        delta: request.delta,
        cas: 0,
        new_cas: None,
        wants_cas: false,
        expiry: None,
    };
    let result = arithmetic::change(env, held.fx, &mut slot, &change);
    count_change(held, request.decrement, result.as_ref().err().copied());
    if request.noreply {
        return;
    }
    match result {
        Ok(changed) => write_integer(held.out, changed.value),
        Err(refused) => held.line(match refused {
            // No number was given to compare.
            Refused::NotFound | Refused::CasMismatch => "NOT_FOUND",
            Refused::NotANumber => NOT_A_NUMBER,
            Refused::WrongType => WRONG_TYPE,
        }),
    }
}

/// Counts a change of a number.
pub(super) fn count_change(held: &Held<'_, '_>, decrement: bool, refused: Option<Refused>) {
    let counters = held.env.counters;
    match (refused, decrement) {
        (None, false) => count(&counters.incr_hits),
        (None, true) => count(&counters.decr_hits),
        (Some(Refused::NotFound), false) => count(&counters.incr_misses),
        (Some(Refused::NotFound), true) => count(&counters.decr_misses),
        (Some(_), _) => {}
    }
}

/// `touch`: of any type, since only the expiry is at stake.
pub(super) fn touch(held: &mut Held<'_, '_>, key: &Key<'_>, request: &Touch<'_>) {
    let env = held.env;
    let mut db = held.space.db(DB, env.now_ms);
    let mut slot = db.slot(key);
    count(&env.counters.cmd_touch);
    let found = slot.is_occupied();
    if found {
        count(&env.counters.touch_hits);
        slot.set_fetched();
        set_expiry(held.fx, &mut slot, env.expiry(request.exptime_s));
    } else {
        count(&env.counters.touch_misses);
    }
    if !request.noreply {
        held.line(if found { "TOUCHED" } else { "NOT_FOUND" });
    }
}

/// `delete`: of any type.
pub(super) fn delete(held: &mut Held<'_, '_>, key: &Key<'_>, request: &Delete<'_>) {
    held.env.note(key.bytes, Event::Delete);
    let found = held.remove(key);
    count(if found {
        &held.env.counters.delete_hits
    } else {
        &held.env.counters.delete_misses
    });
    if !request.noreply {
        held.line(if found { "DELETED" } else { "NOT_FOUND" });
    }
}
