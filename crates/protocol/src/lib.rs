//! The wire protocols: bytes in, commands out; replies in, bytes out.
//!
//! - [`Parser`] turns a RESP or inline byte stream into [`Args`], [`Reply`] writes RESP2 and RESP3 replies.
//! - [`memcached`] does the same for the classic text and the meta protocol of memcached.
//! - [`client`] reads replies, for tools and tests.
//! - [`numbers`] and [`long_double`] hold the number syntax that all commands share.
//!
//! This crate never does I/O, never reads a clock, knows no command by its meaning (of RESP) and keeps no state
//! of a session beyond the position inside a half-received request. Nothing that a peer sends makes it panic, and it never holds more than a small
//! constant times the bytes that it was given.

mod args;
pub mod client;
mod error;
mod inline;
pub mod long_double;
pub mod memcached;
pub mod numbers;
mod reply;
mod request;

pub use args::{Args, ArgsIter, OwnedArgs, Span};
pub use error::ProtocolError;
pub use inline::{Quoting, split_line};
pub use reply::{ArrayMark, BulkMark, MapMark, Proto, Reply, SetMark, write_command};
pub use request::{Limits, Parsed, Parser};
