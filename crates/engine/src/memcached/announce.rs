//! Effects of memcached's commands, in the form that Redis's log knows. Client flags and CAS numbers have no such form.

use pantala_commands::{Effects, EventClass, Listening};
use pantala_store::Kind;
use pantala_types::string::int::Decimal;

/// A value was stored where `before` stood.
pub(super) fn stored(
    fx: &mut Effects,
    key: &[u8],
    value: &[u8],
    expiry_ms: Option<i64>,
    before: Option<Kind>,
) {
    if fx.listening().contains(Listening::RECORD) {
        match expiry_ms {
            Some(at_ms) => {
                let at = Decimal::new(at_ms);
                fx.command(&[b"SET", key, value, b"PXAT", at.as_bytes()]);
            }
            None => fx.command(&[b"SET", key, value]),
        }
    }
    match before {
        None => fx.event(key, EventClass::NEW, "new"),
        Some(kind) => {
            fx.event(key, EventClass::OVERWRITTEN, "overwritten");
            if kind != Kind::String {
                fx.event(key, EventClass::TYPE_CHANGED, "type_changed");
            }
        }
    }
    fx.modified(key, EventClass::STRING, "set");
    if expiry_ms.is_some() {
        fx.event(key, EventClass::GENERIC, "expire");
    }
}

/// A value was changed, and its expiry kept.
pub(super) fn changed(fx: &mut Effects, key: &[u8], value: &[u8], event: &'static str) {
    fx.command(&[b"SET", key, value, b"KEEPTTL"]);
    fx.modified(key, EventClass::STRING, event);
}

/// A key was removed.
pub(super) fn removed(fx: &mut Effects, key: &[u8]) {
    fx.command(&[b"DEL", key]);
    fx.modified(key, EventClass::GENERIC, "del");
}

/// A key has a new expiry, or none any more.
pub(super) fn expiry(fx: &mut Effects, key: &[u8], expiry_ms: Option<i64>) {
    match expiry_ms {
        Some(at_ms) => {
            fx.command(&[b"PEXPIREAT", key, Decimal::new(at_ms).as_bytes()]);
            fx.modified(key, EventClass::GENERIC, "expire");
        }
        None => {
            fx.command(&[b"PERSIST", key]);
            fx.modified(key, EventClass::GENERIC, "persist");
        }
    }
}
