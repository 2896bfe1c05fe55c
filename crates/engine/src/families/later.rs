//! Replies that come after a while: `WAIT`. One thread waits for all of them; it exists only while there are any.
//!
//! A connection waits for at most one such reply, and its place takes over that of an earlier tenant who left, so there are never
//! more entries than places for connections.

use crate::shared::{Mail, Shared};
use crate::worker::clock;
use pantala_reactor::ConnId;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A reply for a connection of a worker.
struct Pending {
    worker: usize,
    conn: ConnId,
    reply: Vec<u8>,
}

#[derive(Default)]
struct Line {
    /// By due time; the number keeps two with the same time apart.
    due: BTreeMap<(Instant, u64), Pending>,
    /// The one entry of each place (worker and dense connection index).
    places: HashMap<(usize, usize), (Instant, u64)>,
    next_number: u64,
    running: bool,
}

impl Line {
    fn insert(&mut self, at: Instant, pending: Pending) {
        let key = (at, self.next_number);
        self.next_number += 1;
        if let Some(old) = self
            .places
            .insert((pending.worker, pending.conn.index()), key)
        {
            self.due.remove(&old);
        }
        self.due.insert(key, pending);
    }

    fn take_due(&mut self, now: Instant) -> Option<Pending> {
        let entry = self
            .due
            .first_entry()
            .filter(|entry| entry.key().0 <= now)?;
        let pending = entry.remove();
        self.places.remove(&(pending.worker, pending.conn.index()));
        Some(pending)
    }
}

/// Replies that are due later.
#[derive(Default)]
pub struct Later {
    line: Mutex<Line>,
    changed: Condvar,
}

/// Sends `reply` to a connection that is [`Away`](crate::turn::Next::Away) after `delay`. Errors: no thread could be started.
pub fn reply_after(
    shared: &Arc<Shared>,
    delay: Duration,
    worker: usize,
    conn: ConnId,
    reply: Vec<u8>,
) -> std::io::Result<()> {
    /// Longer than any process lives, and short enough to be added to any time.
    const DELAY_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);
    let later = &shared.server.later;
    let at = clock::now() + delay.min(DELAY_MAX);
    let mut line = later.line.lock().unwrap_or_else(PoisonError::into_inner);
    if !line.running {
        let shared = Arc::clone(shared);
        std::thread::Builder::new()
            .name("later".to_owned())
            .spawn(move || run(&shared))?;
        line.running = true;
    }
    line.insert(
        at,
        Pending {
            worker,
            conn,
            reply,
        },
    );
    drop(line);
    later.changed.notify_one();
    Ok(())
}

fn run(shared: &Shared) {
    let later = &shared.server.later;
    let mut line = later.line.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let now = clock::now();
        while let Some(pending) = line.take_due(now) {
            shared.send(
                pending.worker,
                Mail::Helped {
                    conn: pending.conn,
                    reply: pending.reply,
                },
            );
        }
        let Some((&(at, _), _)) = line.due.first_key_value() else {
            line.running = false;
            return;
        };
        line = later
            .changed
            .wait_timeout(line, at.saturating_duration_since(now))
            .unwrap_or_else(PoisonError::into_inner)
            .0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(worker: usize, slot: u64) -> Pending {
        Pending {
            worker,
            conn: ConnId::from_u64(slot << 32),
            reply: Vec::new(),
        }
    }

    #[test]
    fn replies_come_in_the_order_of_their_times() {
        let start = clock::now();
        let mut line = Line::default();
        line.insert(start + Duration::from_secs(2), pending(0, 1));
        line.insert(start + Duration::from_secs(1), pending(0, 2));
        line.insert(start + Duration::from_secs(1), pending(1, 1));
        assert!(line.take_due(start).is_none());
        let later = start + Duration::from_secs(3);
        let order: Vec<_> = std::iter::from_fn(|| line.take_due(later))
            .map(|due| (due.worker, due.conn.index()))
            .collect();
        assert_eq!(order, [(0, 2), (1, 1), (0, 1)]);
        assert!(line.places.is_empty());
    }

    #[test]
    fn a_place_has_one_entry() {
        let start = clock::now();
        let mut line = Line::default();
        for _ in 0..1_000 {
            line.insert(start + Duration::from_secs(3_600), pending(0, 7));
        }
        assert_eq!((line.due.len(), line.places.len()), (1, 1));
    }
}
