//! Commands that work on keys whatever they hold: removing, renaming, copying, expiring, serialising.
//!
//! Nothing here may depend on the type of a value, except where its bytes leave the store (`DUMP`, `RESTORE`).

mod delete;
mod dump;
mod expire;
mod rename;
pub(super) mod shared;
mod ttl;

use crate::Command;

/// All of them.
pub const COMMANDS: &[Command] = &[
    delete::DEL,
    delete::UNLINK,
    delete::EXISTS,
    delete::TOUCH,
    delete::TYPE,
    expire::EXPIRE,
    expire::PEXPIRE,
    expire::EXPIREAT,
    expire::PEXPIREAT,
    expire::PERSIST,
    ttl::TTL,
    ttl::PTTL,
    ttl::EXPIRETIME,
    ttl::PEXPIRETIME,
    rename::RENAME,
    rename::RENAMENX,
    rename::COPY,
    rename::MOVE,
    dump::DUMP,
    dump::RESTORE,
];
