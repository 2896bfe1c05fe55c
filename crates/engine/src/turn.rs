//! What a command about the connection or the server sees while it runs.

use crate::invoke::Scratch;
use crate::pubsub::Local;
use crate::session::Session;
use crate::shared::Shared;
use pantala_commands::Error;
use pantala_config::Settings;
use pantala_protocol::{Args, Reply};
use pantala_reactor::{ConnId, Io};
use pantala_store::Space;
use std::sync::Arc;

/// What happens after a session command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The reply is written; the next command runs.
    Continue,
    /// The reply is written; the connection is closed once it is sent.
    Close,
    /// Nothing was done: this shard was busy; the command runs again when it is free.
    Aside(u16),
    /// Nothing was done: the gate could not be closed in time; the command runs again in the next turn.
    Again,
    /// The reply will come later by mail; until then the connection's commands wait.
    Away,
}

/// A handler of a session command.
pub type SessionHandler = fn(&mut Turn<'_, '_>, Args<'_>) -> Result<Next, Error>;

/// The context of a session command.
pub struct Turn<'t, 's> {
    /// What all threads share.
    pub shared: &'s Arc<Shared>,
    /// The reactor.
    pub io: &'t mut Io,
    /// The connection.
    pub conn: ConnId,
    /// The client.
    pub session: &'t mut Session,
    /// Buffers of this worker.
    pub scratch: &'t mut Scratch,
    /// Subscribers of this worker.
    pub local: &'t mut Local,
    /// Configuration in force.
    pub settings: &'t Arc<Settings>,
    /// All shards of the transaction at hand, when the command runs inside `EXEC`.
    pub held: Option<&'t mut Space<'s>>,
    /// Unix time in ms, one reading per batch.
    pub now_ms: i64,
    /// Party (index) of this worker.
    pub party: usize,
}

impl Turn<'_, '_> {
    /// Where the reply goes.
    pub fn reply(&mut self) -> Reply<'_> {
        Reply::new(self.io.out(self.conn), self.session.proto)
    }

    /// Answers `OK`.
    pub fn ok(&mut self) -> Result<Next, Error> {
        self.reply().ok();
        Ok(Next::Continue)
    }
}
