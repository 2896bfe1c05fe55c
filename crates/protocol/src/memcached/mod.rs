//! The memcached text protocols, classic and meta: request lines in, typed requests out; replies in, bytes out.
//!
//! Limits and error texts are those of memcached 1.6.18; the flags `E` and `x` of later versions are understood as well. What a request means
//! is decided elsewhere. A zero byte is an ordinary byte of a key here (1.6.18 ends the line there, later versions do not).

mod base64;
mod meta;
mod numbers;
mod parser;
mod request;
mod response;

pub use meta::{Meta, MetaFlag, MetaFlags, MetaFlagsIter, MetaVerb};
pub use parser::{McLimits, McParser};
pub use request::{
    Arithmetic, Delete, Get, GetVerb, McError, McKey, McParsed, McRequest, Store, StoreVerb,
    Tokens, Touch,
};
pub use response::{
    MetaDebug, MetaReply, write_integer, write_line, write_meta_debug, write_stat, write_value,
};

/// Longest key in bytes.
pub const KEY_BYTES_MAX: usize = 250;
