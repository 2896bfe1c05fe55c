//! `ms`, `md`, `ma`, `me` of the meta protocol. `mg` stands apart.
//!
//! As in memcached 1.6.18, `q` hides only the ordinary success of these commands, and `ms` answers no flags but `O`, `k` and `c`.

use super::announce;
use super::arithmetic::{self, Change, Refused};
use super::classic::{NO_ROOM, NOT_A_NUMBER, count_change};
use super::counters::count;
use super::expiry::Expiry;
use super::held::{DB, Held, set_expiry, set_meta};
use super::item::{self, BINARY_KEY, STALE, WON, WRONG_TYPE};
use super::store::{self, Mode, Outcome, Write};
use pantala_protocol::memcached::{Meta, MetaDebug, MetaReply, write_line, write_meta_debug};
use pantala_store::{Entry, Key, Kind, McMeta};
use pantala_types::string;

/// Answers the flags that only return what the request brought: `O` and `k`.
pub(super) fn echo(reply: &mut MetaReply<'_>, meta: &Meta<'_>) {
    for token in meta.tokens() {
        match token.flag {
            b'O' => reply.opaque(token.token),
            b'k' => reply.request_key(&meta.key),
            _ => {}
        }
    }
}

fn wants_cas(meta: &Meta<'_>) -> bool {
    meta.tokens().any(|token| token.flag == b'c')
}

/// `ms`.
pub(super) fn set(held: &mut Held<'_, '_>, key: &Key<'_>, meta: &Meta<'_>) {
    let flags = &meta.flags;
    let mode = match flags.mode {
        Some(b'E') => Mode::Add,
        Some(b'A') => Mode::Append,
        Some(b'P') => Mode::Prepend,
        // With a number to compare, replacing is what `cas` does too.
        _ if flags.cas.is_some() => Mode::Cas,
        Some(b'R') => Mode::Replace,
        _ => Mode::Set,
    };
    let write = Write {
        mode,
        value: meta.data,
        flags: flags.client_flags,
        expiry: flags
            .ttl_s
            .map_or(Expiry::Never, |ttl_s| held.env.expiry(ttl_s)),
        cas: flags.cas.unwrap_or(0),
        stale_allowed: flags.invalidate,
        binary_key: meta.key.is_binary(),
        new_cas: flags.new_cas,
        wants_cas: wants_cas(meta),
        unlinks_without_room: true,
    };
    let (code, cas) = match store::store(held, key, &write) {
        Outcome::Stored(_) if flags.quiet => return,
        Outcome::Stored(cas) => ("HD", cas),
        Outcome::Refused => ("NS", 0),
        Outcome::Exists => ("EX", 0),
        Outcome::NotFound => ("NF", 0),
        Outcome::WrongType => return held.line(WRONG_TYPE),
        Outcome::NoRoom => return held.line(NO_ROOM),
    };
    let mut reply = MetaReply::status(held.out, code);
    for token in meta.tokens() {
        match token.flag {
            b'O' => reply.opaque(token.token),
            b'k' => reply.request_key(&meta.key),
            b'c' => reply.number(b'c', cas),
            _ => {}
        }
    }
    reply.end();
}

/// `md`.
pub(super) fn delete(held: &mut Held<'_, '_>, key: &Key<'_>, meta: &Meta<'_>) {
    let code = match remove(held, key, meta) {
        Ok("HD") if meta.flags.quiet => return,
        Ok(code) => code,
        Err(error) => return held.line(error),
    };
    let mut reply = MetaReply::status(held.out, code);
    echo(&mut reply, meta);
    reply.end();
}

/// Removes the item, or its value, or marks it as outdated. `Err`: the reply is this line.
fn remove(
    held: &mut Held<'_, '_>,
    key: &Key<'_>,
    meta: &Meta<'_>,
) -> Result<&'static str, &'static str> {
    let env = held.env;
    let flags = &meta.flags;
    let mut db = held.space.db(DB, env.now_ms);
    let mut slot = db.slot_quiet(key);
    let Some(entry) = slot.entry() else {
        count(&env.counters.delete_misses);
        return Ok("NF");
    };
    let (kind, mut mc) = (entry.kind(), entry.mc().unwrap_or_default());
    if flags.cas.is_some_and(|cas| cas == 0 || cas != mc.cas) {
        count(&env.counters.delete_misses);
        return Ok("EX");
    }
    if !flags.invalidate && !flags.remove_value {
        count(&env.counters.delete_hits);
        slot.remove();
        announce::removed(held.fx, key.bytes);
        return Ok("HD");
    }
    let ttl = flags.ttl_s.map(|ttl_s| env.expiry(ttl_s));
    let mut expiry = ttl;
    if flags.remove_value {
        // What is left is a new item without a value.
        mc = McMeta {
            flags: flags.client_flags,
            cas: flags.new_cas.unwrap_or(mc.cas),
            state: 0,
        };
        let at = ttl.unwrap_or(Expiry::Never);
        string::store(&mut slot, b"", item::put_meta(at, mc));
        announce::stored(held.fx, key.bytes, b"", at.at_ms(), Some(kind));
        expiry = Some(at);
    } else if kind != Kind::String {
        return Err(WRONG_TYPE);
    }
    if flags.invalidate {
        mc.state = (mc.state | STALE) & !WON;
        // Nobody knows the new number yet, so it need not be given yet.
        mc.cas = flags.new_cas.unwrap_or(0);
        set_meta(&mut slot, mc);
    } else {
        count(&env.counters.delete_hits);
    }
    if let Some(expiry) = expiry {
        set_expiry(held.fx, &mut slot, expiry);
    }
    Ok("HD")
}

/// `ma`.
pub(super) fn arithmetic(held: &mut Held<'_, '_>, key: &Key<'_>, meta: &Meta<'_>) {
    let env = held.env;
    let flags = &meta.flags;
    if !held.has_room {
        return held.line("SERVER_ERROR out of memory");
    }
    let decrement = matches!(flags.mode, Some(b'D' | b'-'));
    let wants_cas = wants_cas(meta);
    let new_expiry = flags.ttl_s.map(|ttl_s| env.expiry(ttl_s));
    let change = Change {
        decrement,
        delta: flags.delta,
        cas: flags.cas.unwrap_or(0),
        new_cas: flags.new_cas,
        wants_cas,
        expiry: new_expiry,
    };
    let mut db = held.space.db(DB, env.now_ms);
    let mut slot = db.slot_quiet(key);
    let result = arithmetic::change(env, held.fx, &mut slot, &change);
    let vivified = result == Err(Refused::NotFound) && flags.vivify_s.is_some();
    if !vivified {
        count_change(held, decrement, result.as_ref().err().copied());
    }
    let error = match result {
        Ok(changed) => {
            if !flags.quiet {
                let (cas, before) = (changed.cas, changed.expiry_before);
                answer_number(held, meta, changed.value, cas, before, None);
            }
            return;
        }
        Err(Refused::NotFound) if vivified => return vivify(held, key, meta, wants_cas),
        Err(Refused::NotFound) => "NF",
        Err(Refused::CasMismatch) => "EX",
        Err(Refused::NotANumber) => return held.line(NOT_A_NUMBER),
        Err(Refused::WrongType) => return held.line(WRONG_TYPE),
    };
    let mut reply = MetaReply::status(held.out, error);
    echo(&mut reply, meta);
    reply.end();
}

/// Creates the number that `ma` did not find, with its initial value.
fn vivify(held: &mut Held<'_, '_>, key: &Key<'_>, meta: &Meta<'_>, wants_cas: bool) {
    let env = held.env;
    let flags = &meta.flags;
    let vivified = flags.vivify_s.map(|ttl_s| env.expiry(ttl_s));
    // The last of `N` and `T` counts.
    let mut expiry = Expiry::Never;
    for token in meta.tokens() {
        expiry = match token.flag {
            b'N' => vivified.unwrap_or(expiry),
            b'T' => flags.ttl_s.map_or(expiry, |ttl_s| env.expiry(ttl_s)),
            _ => expiry,
        };
    }
    let text = flags.initial.to_string();
    let write = Write {
        mode: Mode::Add,
        value: text.as_bytes(),
        flags: 0,
        expiry,
        cas: 0,
        stale_allowed: false,
        binary_key: false,
        new_cas: flags.new_cas,
        wants_cas,
        unlinks_without_room: false,
    };
    if let Outcome::Stored(cas) = store::store(held, key, &write) {
        answer_number(held, meta, flags.initial, cas, Expiry::Never, vivified);
    }
}

/// Answers `ma` with the item that it changed or created. `t` tells the time to live as it is at its place among the flags.
fn answer_number(
    held: &mut Held<'_, '_>,
    meta: &Meta<'_>,
    value: u64,
    cas: u64,
    before: Expiry,
    vivified: Option<Expiry>,
) {
    let env = held.env;
    let flags = &meta.flags;
    let text = value.to_string();
    let mut expiry = before;
    let mut reply = if flags.value {
        MetaReply::value(held.out, text.len())
    } else {
        MetaReply::status(held.out, "HD")
    };
    for token in meta.tokens() {
        match token.flag {
            b'c' => reply.number(b'c', cas),
            b't' => reply.number(b't', expiry.ttl_s(env.now_ms)),
            b'T' => expiry = flags.ttl_s.map_or(expiry, |ttl_s| env.expiry(ttl_s)),
            b'N' => expiry = vivified.unwrap_or(expiry),
            b'O' => reply.opaque(token.token),
            b'k' => reply.request_key(&meta.key),
            _ => {}
        }
    }
    if flags.value {
        reply.end_with_value(text.as_bytes());
    } else {
        reply.end();
    }
}

/// `me`: of any type. The class is that of `stats slabs`; the CAS number is 0 when none was handed out.
pub(super) fn debug(held: &mut Held<'_, '_>, key: &Key<'_>) {
    let env = held.env;
    let knows_idle = !env.store().access_policy().lfu;
    let mut db = held.space.db(DB, env.now_ms);
    let Some(entry) = db.peek(key) else {
        return write_line(held.out, "EN");
    };
    let mc = entry.mc().unwrap_or_default();
    let ttl_s = Expiry::from_entry(Entry::expiry_ms(entry)).ttl_s(env.now_ms);
    let item = MetaDebug {
        ttl_s: (ttl_s >= 0).then_some(ttl_s),
        last_access_s: if knows_idle {
            entry.idle_secs(env.now_ms)
        } else {
            0
        },
        cas: mc.cas,
        fetched: entry.fetched(),
        class: u32::from(entry.size_class()),
        size_bytes: entry.memory_bytes(),
    };
    write_meta_debug(held.out, key.bytes, mc.state & BINARY_KEY != 0, &item);
}
