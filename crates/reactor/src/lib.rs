//! The reactor: bytes in, bytes out, on N worker threads, each with its own ring.
//!
//! A worker owns its connections, their buffers, its timers and a mailbox. What it does with the bytes is the
//! business of a [`Service`], of which each worker makes one on its own thread. Two drivers stand behind the same
//! interface and pass the same tests: io_uring (multishot receive into a provided buffer ring, one batched send per
//! connection and turn, one system call per turn) and epoll (level-triggered), which every Linux has.
//!
//! One **turn** of a worker: wait for events; read the clock; hand out what arrived ([`Service::received`] and the
//! other callbacks), then mail, then timers; [`Service::turn`]; then send what the callbacks put into [`Io::out`].
//! A callback may call any method of [`Io`] for any connection: the calls only mark what is to be done, so nothing
//! re-enters the service.
//!
//! What this crate must never do: know a protocol, hold an unbounded buffer of its own making, use processor time
//! while nobody talks, or let a stale [`ConnId`] touch the connection that took its place.
//!
//! **Panics.** A panic inside a callback leaves a worker's connections and whatever the service shares with other
//! workers in an unknown state. The worker therefore prints which thread it was (after the ordinary panic message)
//! and aborts the process; it never goes on with a missing worker.
//!
//! **What an idle connection costs** in this crate: one slot of [`CONNECTION_BYTES`] bytes. Buffers are lent only
//! while there are bytes in them.

mod acceptor;
mod bell;
mod buffers;
mod conn;
mod epoll;
mod io;
mod listener;
mod mailbox;
mod pool;
mod sys;
mod timers;
mod uring;
mod worker;

pub use acceptor::{Acceptor, AcceptorOptions};
pub use bell::WakeHandle;
pub use conn::{CONNECTION_BYTES, ConnId, Origin};
pub use io::{Io, Next, Service};
pub use listener::Listener;
pub use mailbox::Remote;
pub use pool::{Driver, Intake, IoChoice, Pool, PoolOptions};
