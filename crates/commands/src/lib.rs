//! The commands that work on data: one file per family, each with its specifications and its handlers.
//!
//! A handler parses its arguments, calls the semantics in `pantala-types`, writes the reply and records its effects. It never
//! sees a socket, a thread or a lock: the caller has borrowed the shards of its keys before and gives them back after.
//! Everything that is said *about* a command (arity, flags, key positions, categories, documentation) stands once, in its
//! [`Spec`]; dispatch, shard borrowing, `COMMAND`, ACL and the compatibility matrix are derived from it.

pub mod context;
pub mod effects;
pub mod error;
pub mod families;
pub mod keys;
pub mod rng;
pub mod spec;

pub use context::{Ctx, KeyAt, Walk};
pub use effects::{Effects, EventClass, Listening, Modified};
pub use error::Error;
pub use rng::Rng;
pub use spec::{
    Acl, Begin, Command, Find, Flags, Group, Handler, KeyFlags, KeySpec, Run, Spec, WalkHandler,
};

/// What a handler gives back: the reply is written and effects are recorded, or nothing was changed and the error is the reply.
pub type Done = Result<(), Error>;
