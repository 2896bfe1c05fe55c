//! From parsed commands to executed ones: sessions, transactions, set-aside connections, helper threads, and the commands about
//! the connection and the server.
//!
//! One [`Worker`] runs on each reactor thread. It parses every command that has arrived, brings the cache lines they need closer
//! (group prefetch), then executes them in order: borrow the shards of the keys, run the handler as an ordinary function, give
//! the shards back. A connection that cannot borrow is set aside *holding nothing*; the others go on.
//!
//! What must never happen here: waiting on a worker thread while holding a shard; a reply out of order within a connection;
//! a write whose effects were not handed to those who listen before its shards were given back.

pub mod clients;
pub mod families;
pub mod helpers;
pub mod invoke;
pub mod memcached;
pub mod pubsub;
pub mod registry;
pub mod session;
pub mod shared;
pub mod stats;
pub mod transaction;
pub mod turn;
pub mod worker;

pub use shared::{Mail, Shared, StartFacts};
pub use worker::Worker;
