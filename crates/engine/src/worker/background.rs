//! Work between commands: expiry, eviction, compaction, freeing, in bites of at most 50 µs per turn; and the slow clock that
//! closes idle clients. A worker whose clients are silent and whose keys do not expire sets no timer at all.

use super::Core;
use crate::session::State;
use crate::shared::Shared;
use pantala_borrow::Party;
use pantala_config::Settings;
use pantala_reactor::{Io, Next};
use pantala_store::background::{Bites, Need};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Timer: bites are due.
const BITES: u64 = 1;
/// Timer: look for idle clients.
const IDLE: u64 = 2;
/// Timer: a pause may have ended.
const PAUSE: u64 = 3;

/// Between rounds of bites while there is something to watch but nothing urgent.
const BITES_EVERY: Duration = Duration::from_millis(100);
/// Time per bite.
const BITE_US: u64 = 50;
/// Between looks for idle clients.
const IDLE_EVERY: Duration = Duration::from_secs(1);

/// State of a worker's background work.
#[derive(Default)]
pub(super) struct Background {
    bites: Bites,
    /// Bites go on in the next turn without waiting.
    urgent: bool,
    bites_armed: bool,
    idle_armed: bool,
    pause_armed: bool,
}

impl Background {
    /// Idle clients are looked for only while there are clients and a `timeout`.
    pub(super) fn connection_opened(&mut self, io: &mut Io, settings: &Settings) {
        if settings.timeout_seconds != 0 && !self.idle_armed {
            self.idle_armed = true;
            io.set_timer(io.now() + IDLE_EVERY, IDLE);
        }
    }
}

impl Core {
    pub(super) fn background_due(&mut self, shared: &Arc<Shared>, io: &mut Io, token: u64) {
        match token {
            BITES => {
                self.background.bites_armed = false;
                self.background.urgent = true;
            }
            IDLE => {
                self.background.idle_armed = false;
                self.close_idle(io);
            }
            // Paused sessions look again in this turn.
            PAUSE => self.background.pause_armed = false,
            _ => debug_assert!(false, "unknown timer {token}"),
        }
        let _ = shared;
    }

    /// Does a bite of background work if one is due, and says whether the worker may sleep.
    pub(super) fn background_bites(&mut self, shared: &Arc<Shared>, io: &mut Io) -> Next {
        self.arm_pause(shared, io);
        shared.stats.party(self.party).buffer_bytes.store(io.buffer_bytes() as u64, Relaxed);
        if self.background.urgent
            && let Ok(_inside) = shared.store.gate().enter(Party::new(self.party))
        {
            let need = self.background.bites.bite(&shared.store, io.unix_ms(), BITE_US);
            self.background.urgent = need == Need::Now;
        }
        if self.background.urgent {
            return Next::Again;
        }
        if !self.background.bites_armed && shared.store.needs_bites() {
            self.background.bites_armed = true;
            io.set_timer(io.now() + BITES_EVERY, BITES);
        }
        if std::mem::take(&mut self.retry_soon) { Next::Again } else { Next::Wait }
    }

    fn arm_pause(&mut self, shared: &Shared, io: &mut Io) {
        if !self.background.pause_armed
            && !self.aside.is_empty()
            && let Some(until_ms) = shared.pause.holds(true, io.unix_ms())
        {
            self.background.pause_armed = true;
            let wait_ms = (until_ms - io.unix_ms()).max(1).unsigned_abs();
            io.set_timer(io.now() + Duration::from_millis(wait_ms), PAUSE);
        }
    }

    fn close_idle(&mut self, io: &mut Io) {
        let timeout_ms = i64::from(self.settings.timeout_seconds) * 1_000;
        if timeout_ms == 0 {
            return;
        }
        let now_ms = io.unix_ms();
        for (conn, session) in self.sessions.0.iter().flatten() {
            // Whoever waits for an answer is not idle.
            if session.state == State::Ready && !session.monitor && now_ms - session.card.active_ms.load(Relaxed) > timeout_ms {
                io.close(*conn);
            }
        }
        if io.connections() != 0 {
            self.background.idle_armed = true;
            io.set_timer(io.now() + IDLE_EVERY, IDLE);
        }
    }

    /// Whether there is room for a command that needs memory, after evicting what the policy allows.
    pub(super) fn make_room(&mut self, shared: &Shared, io: &Io) -> bool {
        let limit = self.maxmemory_bytes;
        if shared.used_memory() <= limit {
            return true;
        }
        self.background.bites.evict(&shared.store, self.settings.maxmemory_policy, io.unix_ms(), || shared.used_memory() <= limit)
    }
}
