//! The memcached side of the engine: sessions on the memcached port, and what the classic text commands and the meta protocol do to
//! the shared store. It must never parse or frame bytes itself (the protocol crate does), wait while it holds a shard, or let
//! the length of a request decide how much memory a reply takes.
//!
//! # One keyspace
//!
//! Memcached's items are Redis's strings of database 0, in whichever encoding suits their bytes, so a number that one side stored
//! is a number for the other. Commands that need a string and meet another type answer `SERVER_ERROR WRONGTYPE …` (a retrieval of many
//! keys ends with that line instead of `END`). As with Redis's `SET` and `DEL`, storing unconditionally and deleting work on any type;
//! so do `touch` and `me`.
//!
//! # What an entry keeps for memcached
//!
//! Client flags (32 bits), a CAS number (64 bits) and state (outdated, refresh granted, key in base64, blanks
//! behind a number that became shorter) stand in an optional section of
//! the entry, which exists only while one of them is not zero. Most entries have none.
//!
//! CAS numbers come from one counter per store and are never repeated. They are **assigned lazily**: an entry has the number 0, "none
//! yet", until a client asks for it (`gets`, `gats`, flag `c`), because nobody can hold a number that was never shown. Every write puts
//! the number back to 0 (or to a new one, when the write itself asks), so a number that was shown before matches no more:
//!
//! ```text
//! set k           cas 0        no section
//! gets k          cas 7        the section is made; the client holds 7
//! gets k          cas 7
//! set k, incr k   cas 0        the section goes, unless there are flags
//! cas k … 7       0 ≠ 7        EXISTS
//! ```
//!
//! Redis's commands do the same from their side: what replaces a value drops the section, what changes it in place renews the number.
//! A change of the expiry alone keeps the number, as in memcached. To decide whether a client's number is *older* (flag `I`), an item
//! without a number counts as newer than every number shown so far.
//!
//! # Version
//!
//! Replies, errors and the meaning of flags are those of memcached 1.6.18, with the later flags `E` (give this CAS number) and `x`
//! (remove the value, keep the item). What is different, on purpose:
//!
//! - Times to live count in milliseconds rather than by ticks of a second, and a flush removes everything at once.
//! - `ma` with `T` always sets the expiry; memcached forgets it when the number needs another digit.
//! - `stats` tells what is counted here. `stats slabs` and `stats items` sum the heap's own classes into those of memcached; see there.
//!   `watch` knows fetchers, mutations and connevents (of values that were too large, mutations tell those of `set`). `cachedump`,
//!   `cache_memlimit` is refused, `verbosity` is accepted without effect. `stats detail` shows prefixes in order, at most 16,384.
//! - `me` and `stats conns` show our fields; the CAS number of an item that has none is shown as 0.

mod announce;
mod arithmetic;
mod batch;
mod classic;
mod counters;
mod expiry;
mod flush;
mod held;
mod item;
mod meta;
mod meta_get;
mod prefixes;
mod retrieve;
mod session;
mod statistics;
mod store;
#[cfg(test)]
mod tests;
mod watchers;

pub use batch::Buffers;
pub use counters::Common;
pub use flush::bite as flush_bite;
pub use session::{Context, Session, Stop};
pub use watchers::CloseReason;
pub(crate) use watchers::TEXT_MAX_BYTES as WATCHED_MAX_BYTES;
