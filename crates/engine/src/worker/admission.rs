//! Checks that come before a command runs or is queued.

use super::Core;
use super::texts::{only_subscribes, wrong_arity};
use crate::families;
use crate::registry::{Entry, Runner};
use crate::session::Session;
use crate::shared::Shared;
use pantala_commands::Flags;
use pantala_protocol::Args;
use pantala_reactor::Io;

impl Core {
    /// Checks that come before execution and queueing. `Err(Some(text))`: refused; `Err(None)`: wait for the end of a pause.
    #[inline]
    pub(super) fn admit(
        &mut self,
        shared: &Shared,
        io: &Io,
        session: &Session,
        entry: &Entry,
        args: Args<'_>,
    ) -> Result<(), Option<String>> {
        if !entry.spec.arity_fits(args.len()) || matches!(entry.runner, Runner::Container) {
            return Err(Some(wrong_arity(entry)));
        }
        if !session.authenticated && !entry.spec.flags.contains(Flags::NO_AUTH) {
            return Err(Some("NOAUTH Authentication required.".to_owned()));
        }
        if session.monitor && entry.spec.flags.intersects(Flags::READONLY | Flags::WRITE) {
            return Err(Some(
                "ERR Replica can't interact with the keyspace".to_owned(),
            ));
        }
        if session.queue.is_some() && entry.spec.flags.contains(Flags::NO_MULTI) {
            return Err(Some(
                "ERR Command not allowed inside a transaction".to_owned(),
            ));
        }
        let needs_memory = entry.spec.flags.contains(Flags::DENYOOM)
            || (entry.spec.name == "exec"
                && session
                    .queue
                    .as_ref()
                    .is_some_and(|queue| queue.needs_memory));
        if needs_memory && self.maxmemory_bytes != 0 && !self.make_room(shared, io.unix_ms()) {
            return Err(Some(
                "OOM command not allowed when used memory > 'maxmemory'.".to_owned(),
            ));
        }
        if session.only_subscribes() && !families::pubsub::may_run(entry) {
            return Err(Some(only_subscribes(entry)));
        }
        let writes = entry
            .spec
            .flags
            .intersects(Flags::WRITE | Flags::MAY_REPLICATE)
            || (entry.spec.name == "exec"
                && session.queue.as_ref().is_some_and(|queue| queue.writes));
        let queued = session.queue.is_some() && entry.spec.name != "exec";
        // `CLIENT UNPAUSE` must get through a pause of all commands: Redis lets commands of this kind pass by their flags too.
        if !queued
            && entry.parent.is_none_or(|_| entry.spec.name != "unpause")
            && shared.pause.holds(writes, io.unix_ms()).is_some()
        {
            return Err(None);
        }
        Ok(())
    }
}
