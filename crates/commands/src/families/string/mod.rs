//! Commands on strings. The semantics are in `pantala_types::string`; here arguments are read, replies written, effects recorded.

mod compare;
mod edit;
mod expire;
mod increment;
mod increx;
mod lcs;
mod many;
mod read;
mod set;
pub(super) mod shared;
mod throttle;

use crate::Command;

/// All string commands.
pub const COMMANDS: &[Command] = &[
    read::GET,
    set::SET,
    set::SETNX,
    set::SETEX,
    set::PSETEX,
    set::GETSET,
    read::GETDEL,
    read::GETEX,
    many::MGET,
    many::MSET,
    many::MSETNX,
    many::MSETEX,
    edit::APPEND,
    read::STRLEN,
    edit::SETRANGE,
    read::GETRANGE,
    read::SUBSTR,
    increment::INCR,
    increment::DECR,
    increment::INCRBY,
    increment::DECRBY,
    increment::INCRBYFLOAT,
    increx::INCREX,
    lcs::LCS,
    compare::DIGEST,
    compare::DELEX,
    compare::DELIFEQ,
    throttle::CL_THROTTLE,
];
