//! `get`, `gets`, `gat` and `gats` of one key. Many keys are the session's concern.

use super::counters::count;
use super::expiry::Expiry;
use super::held::{DB, Held, set_expiry};
use super::item::{Item, WrongType, cas_of};
use super::prefixes::Event;
use pantala_protocol::memcached::{GetVerb, write_integer};
use pantala_store::Key;
use pantala_types::string::int::Decimal;

/// Answers one key: a value, or nothing when there is none.
#[inline]
pub(super) fn one(
    held: &mut Held<'_, '_>,
    key: &Key<'_>,
    verb: GetVerb,
    expiry: Expiry,
) -> Result<(), WrongType> {
    let env = held.env;
    let counters = env.counters;
    let mut db = held.space.db(DB, env.now_ms);
    let mut slot = db.slot(key);
    count(if verb.touches() {
        &counters.cmd_touch
    } else {
        &counters.cmd_get
    });
    let found = slot.is_occupied();
    env.note(key.bytes, if found { Event::Hit } else { Event::Miss });
    if !found {
        count(if verb.touches() {
            &counters.touch_misses
        } else {
            &counters.get_misses
        });
        if held.space.has_removed() {
            count(&counters.get_expired);
        }
        return Ok(());
    }
    // Only strings have CAS numbers; this says so before one is given.
    Item::in_slot(&slot)?;
    let cas = verb.wants_cas().then(|| cas_of(env.store(), &mut slot));
    if let Some(item) = Item::in_slot(&slot)? {
        write(held.out, key.bytes, &item, cas);
        if !item.fetched {
            slot.set_fetched();
        }
    }
    count(if verb.touches() {
        &counters.touch_hits
    } else {
        &counters.get_hits
    });
    if verb.touches() {
        set_expiry(held.fx, &mut slot, expiry);
    }
    Ok(())
}

/// Appends a hit.
#[inline]
fn write(out: &mut Vec<u8>, key: &[u8], item: &Item<'_>, cas: Option<u64>) {
    let len = item.len();
    // Room for the words, three numbers and the line ends.
    out.reserve(key.len() + len + 64);
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.push(b' ');
    if item.mc.flags == 0 {
        out.push(b'0');
    } else {
        out.extend_from_slice(Decimal::new(i64::from(item.mc.flags)).as_bytes());
    }
    out.push(b' ');
    match cas {
        Some(cas) => {
            out.extend_from_slice(Decimal::new(len as i64).as_bytes());
            out.push(b' ');
            write_integer(out, cas);
        }
        None => write_integer(out, len as u64),
    }
    item.append_to(out);
    out.extend_from_slice(b"\r\n");
}
