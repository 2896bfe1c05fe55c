//! The data of Pantala: shards, tables, entries and the memory under them.
//!
//! A [`Store`] is made of shards; a thread that wants to work on keys borrows their shards and gets a [`Space`], in it a
//! [`Db`], in it a [`Slot`] per key. The store knows keys, types by number, bytes, expiry and memory; it must never know a command,
//! a protocol, a socket or a clock: times and random seeds come in from outside.

mod access;
mod background;
mod db;
mod entry;
mod hash;
mod heap;
mod kind;
mod shard;
mod slot;
mod space;
mod store;
mod table;
mod tree;
mod walk;
mod watch;

pub use access::AccessPolicy;
pub use background::BiteProgress;
pub use db::Db;
pub use entry::{Entry, LENGTH_MAX, McMeta};
pub use hash::{Key, KeyHash};
pub use heap::{HeapUse, SizeClass};
pub use kind::{Encoding, Kind};
pub use pantala_borrow as borrow;
pub use shard::{Header, Shard};
pub use slot::{Detached, PutExpiry, PutMc, PutMeta, Slot};
pub use space::{ExpiryMode, Reason, Removed, Space};
pub use store::{Position, SHARDS_MAX, Store, StoreOptions, StoreStats};
pub use table::CutSink;
pub use tree::{ByteTree, ByteTreeMut, Chunks, INLINE_MAX, LEAF_BYTES, TREE_LEN_MAX, TreeRef};
pub use walk::{EvictPolicy, ExpireProgress, ShardDb};
pub use watch::WatchFlag;
