//! Published messages on their last step: from the mailbox into the output of this worker's subscribers.

use super::Core;
use crate::pubsub::Message;
use crate::shared::Shared;
use crate::stats;
use pantala_reactor::{ConnId, Io};

impl Core {
    /// A message that was posted to this worker.
    pub(super) fn deliver(&mut self, shared: &Shared, io: &mut Io, message: &Message) {
        self.local.taken += 1;
        shared.pubsub.taken(message);
        let limit = self.settings.client_output_buffer_limit.pubsub;
        let closed = self.local.deliver(io, limit, None, message);
        if closed != 0 {
            stats::add(&shared.stats.party(self.party).closed_for_output, closed);
        }
    }

    /// Wakes the workers that have mail from the batch at hand.
    #[inline]
    pub(super) fn wake_mailed(&mut self, shared: &Shared) {
        for worker in self.local.to_wake.drain(..) {
            shared.wake(worker);
        }
    }

    /// Messages that the command at hand sent to its own client, after its reply.
    #[inline]
    pub(super) fn flush_to_self(&mut self, io: &mut Io, conn: ConnId) {
        if !self.local.to_self.is_empty() {
            io.out(conn).append(&mut self.local.to_self);
        }
    }
}
