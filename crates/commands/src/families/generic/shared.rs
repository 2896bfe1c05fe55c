//! What the commands on keys share: numbers of databases, names of types.

use crate::families::string::shared::integer;
use crate::spec::{Acl, Group, Spec};
use crate::{Effects, Error, EventClass};
use pantala_config::Settings;
use pantala_store::{Kind, Store};

/// What the specifications of this group have in common.
pub const GENERIC: Spec = Spec {
    group: Group::Generic,
    acl: Acl::KEYSPACE,
    ..Spec::BASE
};

/// An argument as a 32-bit integer.
pub fn int(arg: &[u8]) -> Result<i32, Error> {
    i32::try_from(integer(arg)?).map_err(|_| {
        Error::text("ERR value is out of range, value must between -2147483648 and 2147483647")
    })
}

/// A number as that of a database.
pub fn existing_db(store: &Store, number: i32) -> Result<u16, Error> {
    u16::try_from(number)
        .ok()
        .filter(|db| *db < store.databases())
        .ok_or(Error::text("ERR DB index is out of range"))
}

/// An argument as the number of a database.
pub fn db_index(store: &Store, arg: &[u8]) -> Result<u16, Error> {
    existing_db(store, int(arg)?)
}

/// What `TYPE` answers.
pub const fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::String => "string",
        Kind::List => "list",
        Kind::Set => "set",
        Kind::ZSet => "zset",
        Kind::Hash => "hash",
        Kind::Stream => "stream",
        _ => "unknown",
    }
}

/// Records that a key was removed because its time is over.
pub fn record_expiry(fx: &mut Effects, settings: &Settings, key: &[u8]) {
    let name: &[u8] = if settings.lazyfree_lazy_expire {
        b"UNLINK"
    } else {
        b"DEL"
    };
    fx.command(&[name, key]);
    fx.modified(key, EventClass::GENERIC, "del");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_databases() {
        assert_eq!(int(b"-7"), Ok(-7));
        assert_eq!(int(b"x"), Err(Error::NotAnInteger));
        let refusal = int(b"2147483648").expect_err("beyond 32 bits");
        assert_eq!(
            refusal.message(),
            "ERR value is out of range, value must between -2147483648 and 2147483647"
        );
    }
}
