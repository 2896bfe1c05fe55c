//! `mg`: reads an item, and may create it, give it an expiry, or hand out the right to refresh it (the lease).
//!
//! The flags are answered in the order in which they came, and a change counts from its flag on: `t` before `T` tells the old time
//! to live, `t` behind it the new one.

use super::announce;
use super::counters::count;
use super::expiry::Expiry;
use super::held::{DB, Env, Held, set_expiry, set_meta};
use super::item::{self, BINARY_KEY, Item, STALE, WON, WRONG_TYPE, WrongType, cas_of};
use super::meta::echo;
use pantala_commands::Effects;
use pantala_protocol::memcached::{Meta, MetaReply};
use pantala_store::{Key, McMeta, Slot};
use pantala_types::string;

/// An item while its reply is being written.
#[derive(Clone, Copy)]
struct View {
    mc: McMeta,
    expiry: Expiry,
    fetched: bool,
    len: usize,
    idle_s: u64,
    created: bool,
}

/// `mg`.
pub(super) fn get(held: &mut Held<'_, '_>, key: &Key<'_>, meta: &Meta<'_>) {
    let env = held.env;
    let flags = meta.flags;
    let mut db = held.space.db(DB, env.now_ms);
    // What `h` and `l` tell was true before this access.
    let later = flags.wants_access_info || flags.no_update;
    let mut slot = if later {
        db.slot_quiet(key)
    } else {
        db.slot(key)
    };
    let touches = flags.ttl_s.is_some();
    let view = match look(env, &mut slot, meta, held.has_room) {
        Ok(Some(view)) => view,
        Ok(None) => {
            if held.space.has_removed() {
                count(&env.counters.get_expired);
            }
            count_lookup(env, false, false);
            if !flags.quiet {
                let mut reply = MetaReply::status(held.out, "EN");
                echo(&mut reply, meta);
                reply.end();
            }
            return;
        }
        Err(WrongType) => return held.line(WRONG_TYPE),
    };
    let after = answer(held.out, env, &slot, view, meta);
    if after.created {
        create(held.fx, env, &mut slot, after);
    } else {
        set_meta(&mut slot, after.mc);
        if touches {
            set_expiry(held.fx, &mut slot, after.expiry);
        }
    }
    count_lookup(env, true, touches);
    if !flags.no_update {
        let mut db = held.space.db(DB, env.now_ms);
        if later && !after.created {
            db.touch(key);
        }
        if !view.fetched {
            db.slot_quiet(key).set_fetched();
        }
    }
}

fn count_lookup(env: Env<'_>, hit: bool, touches: bool) {
    let counters = env.counters;
    count(match (hit, touches) {
        (true, true) => &counters.touch_hits,
        (true, false) => &counters.get_hits,
        (false, _) => &counters.get_misses,
    });
    count(if hit && touches {
        &counters.cmd_touch
    } else {
        &counters.cmd_get
    });
}

/// The item, or the one that is to be created.
fn look(
    env: Env<'_>,
    slot: &mut Slot<'_>,
    meta: &Meta<'_>,
    has_room: bool,
) -> Result<Option<View>, WrongType> {
    let wants_cas = meta.tokens().any(|token| token.flag == b'c');
    if Item::in_slot(slot)?.is_none() {
        let vivifies = meta.flags.vivify_s.is_some() && has_room;
        return Ok(vivifies.then(|| View {
            mc: McMeta {
                cas: match meta.flags.new_cas {
                    Some(cas) => cas,
                    None if wants_cas => env.store().next_cas(),
                    None => 0,
                },
                ..McMeta::default()
            },
            expiry: Expiry::Never,
            fetched: false,
            len: 0,
            idle_s: 0,
            created: true,
        }));
    }
    if wants_cas {
        cas_of(env.store(), slot);
    }
    // Uses are counted under LFU: then nobody knows when the last one was.
    let knows_idle = !env.store().access_policy().lfu;
    let idle_s = slot
        .entry()
        .filter(|_| knows_idle)
        .map_or(0, |entry| entry.idle_secs(env.now_ms));
    Ok(Item::in_slot(slot)?.map(|item| View {
        mc: item.mc,
        expiry: item.expiry,
        fetched: item.fetched,
        len: item.len(),
        idle_s,
        created: false,
    }))
}

/// Writes the reply, and gives back what the item is afterwards.
fn answer(out: &mut Vec<u8>, env: Env<'_>, slot: &Slot<'_>, view: View, meta: &Meta<'_>) -> View {
    let mut after = view;
    let mut wins = false;
    let flags = meta.flags;
    let mut reply = if flags.value {
        MetaReply::value(out, view.len)
    } else {
        MetaReply::status(out, "HD")
    };
    for token in meta.tokens() {
        match token.flag {
            b'T' => after.expiry = flags.ttl_s.map_or(after.expiry, |ttl_s| env.expiry(ttl_s)),
            b'N' if view.created => {
                after.expiry = flags
                    .vivify_s
                    .map_or(after.expiry, |ttl_s| env.expiry(ttl_s));
                wins = true;
            }
            b'R' if !view.created && view.mc.state & WON == 0 => {
                let limit = flags.recache_s.map_or(Expiry::Never, |s| env.expiry(s));
                wins |= after.expiry.is_before(limit, env.now_ms);
            }
            b's' => reply.number(b's', view.len),
            b't' => reply.number(b't', after.expiry.ttl_s(env.now_ms)),
            b'c' => reply.number(b'c', view.mc.cas),
            b'f' => reply.number(b'f', view.mc.flags),
            b'l' => reply.number(b'l', view.idle_s),
            b'h' => reply.number(b'h', u8::from(view.fetched)),
            b'O' => reply.opaque(token.token),
            b'k' => reply.key(slot.key(), view.mc.state & BINARY_KEY != 0),
            _ => {}
        }
    }
    if view.mc.state & WON != 0 {
        reply.flag(b'Z');
    }
    if view.mc.state & STALE != 0 {
        reply.flag(b'X');
        wins |= view.mc.state & WON == 0;
    }
    if wins {
        reply.flag(b'W');
        after.mc.state |= WON;
    }
    reply.end();
    if flags.value {
        // There is none yet when it is being created.
        if let Ok(Some(item)) = Item::in_slot(slot) {
            item.append_to(out);
        }
        out.extend_from_slice(b"\r\n");
    }
    after
}

/// Stores the empty item of which the client was told that it is there.
fn create(fx: &mut Effects, env: Env<'_>, slot: &mut Slot<'_>, view: View) {
    if view.expiry == Expiry::Past {
        return;
    }
    string::store(slot, b"", item::put_meta(view.expiry, view.mc));
    announce::stored(fx, slot.key(), b"", view.expiry.at_ms(), None);
    count(&env.counters.total_items);
}
