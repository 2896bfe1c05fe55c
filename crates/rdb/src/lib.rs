//! The encoding of values in RDB, Redis's format for snapshots, `DUMP` and `RESTORE`.
//!
//! Bytes in, bytes out: no I/O, no clock, no store. It must never panic on any input, never read past it, and never allocate
//! more than the input can justify: a length is believed only as far as bytes stand behind it.
//!
//! # A payload of `DUMP`
//! ```text
//! +------+-----------------+----------------+------------------+
//! | type | value           | version        | checksum         |
//! | u8   | depends on type | u16, low first | u64, low first   |
//! +------+-----------------+----------------+------------------+
//!                                            CRC-64 (Jones) of all before it
//! ```
//!
//! # Lengths and strings
//! ```text
//! 00nnnnnn                        length, 6 bits
//! 01nnnnnn nnnnnnnn               length, 14 bits, high first
//! 10000000 n*4                    length, 32 bits, high first
//! 10000001 n*8                    length, 64 bits, high first
//! 11000000 i                      instead of a string: integer of 8 bits
//! 11000001 i i                    integer of 16 bits, low first
//! 11000010 i i i i                integer of 32 bits, low first
//! 11000011 length length bytes    compressed with LZF: compressed length, original length, compressed bytes
//! ```
//! A plain string is a length and so many bytes.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

pub mod crc64;
mod error;
pub mod lzf;
mod payload;
mod reader;
mod value_type;
mod writer;

pub use error::RdbError;
pub use payload::{Restored, dump_integer, dump_string, restore};
pub use reader::{Reader, Text};
pub use value_type::ValueType;
pub use writer::{write_integer, write_length, write_string};

/// The version that payloads carry: what Redis 7.0 writes and everything newer reads.
pub const VERSION: u16 = 10;

/// The highest version that is read. Redis 8 writes up to 14 and Valkey 9 writes 80; none of them changed how strings are
/// encoded, and a type that is not known is refused by itself.
pub const VERSION_MAX: u16 = 99;
