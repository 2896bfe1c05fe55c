//! Strings: how their bytes are stored, read and changed.
//!
//! | encoding | payload | chosen for |
//! |---|---|---|
//! | [`RAW`] | the bytes | what nothing below fits |
//! | [`INT`] | 1, 2, 4 or 8 bytes | canonical decimals of 64-bit integers |
//! | [`PACKED`], [`PACKED_7`] | seven bits a character ([`packed7`]) | ASCII from 24 characters up |
//! | [`GROWN`] | the bytes | what was changed in place |
//! | [`TREE`] | leaves of a tree | what is longer than the store keeps in one piece |
//!
//! Which one holds a value is never visible in a reply, except as `OBJECT ENCODING` names it.

pub mod digest;
pub mod int;
pub mod lcs;
pub mod packed7;
mod view;
mod write;

pub use view::StrRef;
pub use write::{append, grow, set_grown, store, store_int, store_plain, write_at};

use pantala_store::Encoding;

/// The bytes as they are.
pub const RAW: Encoding = Encoding::RAW;
/// A little-endian integer of 1, 2, 4 or 8 bytes.
pub const INT: Encoding = Encoding::new(1);
/// ASCII packed; fewer than seven characters at the end stand as they are.
pub const PACKED: Encoding = Encoding::new(2);
/// ASCII packed; seven characters at the end stand as they are.
pub const PACKED_7: Encoding = Encoding::new(3);
/// The bytes as they are, of a string that was changed in place: `OBJECT ENCODING` calls it `raw` however short it is.
pub const GROWN: Encoding = Encoding::new(4);
/// The root of a tree of bytes.
pub const TREE: Encoding = Encoding::TREE;

/// Longest string that Redis calls `embstr`.
const EMBSTR_MAX_LEN: usize = 44;
