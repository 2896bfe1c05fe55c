//! Publish and subscribe: who listens to what, and how a message reaches them.
//!
//! Two tables. The [`Registry`] is shared: for each name (channel, pattern, shard channel) the workers that have subscribers, with
//! their number, behind small locks by the hash of the name. The [`Local`] table belongs to one worker: for each name its
//! connections. `PUBLISH` reads the registry, which gives the exact number of receivers, and sends one [`Message`] to each worker
//! concerned, whatever its number of subscribers; the bytes are shared. The worker copies them into its connections' output.
//!
//! **Order.** All subscribers of a channel see its messages in one order, that of the channel's lock, under which mail is posted. A
//! publisher's own worker delivers at once only if no earlier mail is under way to it; else the message goes behind that mail.
//!
//! **Who is a receiver** is decided under the lock too, but the mail arrives later. Each message draws a ticket there, and each
//! subscription notes the last one drawn before it: a message with a smaller ticket is not delivered to it. The other way round, a
//! connection leaves a channel only after its worker has taken all mail that was posted before.
//!
//! What must never happen here: waiting for a subscriber. One that does not read is closed at its own limit.

mod keyspace;
mod local;
mod message;
mod registry;

pub use keyspace::notify;
pub use local::{Local, Place, Subscriptions};
pub use message::Message;
pub use registry::{Published, Registry};

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A channel of `SUBSCRIBE`.
    Channel,
    /// A pattern of `PSUBSCRIBE`.
    Pattern,
    /// A channel of `SSUBSCRIBE`, a world of its own.
    Shard,
}
