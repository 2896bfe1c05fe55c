//! The time of single commands, for the slow log and the latency monitor. Most commands are not timed one by one: each counts with its
//! share of its batch.

use super::Core;
use super::input::Tally;
use crate::registry::Entry;
use crate::session::Session;
use crate::shared::Shared;
use pantala_commands::Flags;
use pantala_protocol::Args;
use pantala_reactor::Io;

impl Core {
    /// Whether commands are so interesting that each is timed by itself.
    #[inline]
    pub(super) fn times_each(&self) -> bool {
        /// Thresholds below this could be met by an ordinary command; above, only long ones meet them, which are timed anyway.
        const SLOW_US: i64 = 1_000;
        (0..SLOW_US).contains(&self.settings.slowlog_log_slower_than_us)
            || self.settings.latency_monitor_threshold_ms != 0
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the pieces of a worker that a command may touch, borrowed apart"
    )]
    pub(super) fn note_time(
        &mut self,
        shared: &Shared,
        io: &Io,
        session: &Session,
        entry: &Entry,
        args: Args<'_>,
        started: std::time::Instant,
        tally: &mut Tally,
    ) {
        let nanos = started.elapsed().as_nanos() as u64;
        tally.note_timed(nanos);
        shared
            .stats
            .party(self.party)
            .command(entry.id)
            .executed(1, nanos);
        if !entry.spec.flags.contains(Flags::SKIP_SLOWLOG) {
            shared.slowlog.note(
                &self.settings,
                &session.card,
                entry,
                args,
                io.unix_ms(),
                nanos / 1_000,
            );
        }
        let event = if entry.spec.flags.contains(Flags::FAST) {
            "fast-command"
        } else {
            "command"
        };
        shared
            .latency
            .note(&self.settings, event, io.unix_ms(), nanos / 1_000_000);
    }
}
