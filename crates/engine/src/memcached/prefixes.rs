//! Statistics by key prefix (`stats detail`): how often keys that begin with the same text before a `:` were read, stored and deleted.
//! Nothing is noted, and a look at one flag is all that it costs, until a client turns it on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// What ends a prefix.
const DELIMITER: u8 = b':';
/// Keys come from clients, so there is a limit to what is remembered; prefixes that come later are not counted.
const PREFIXES_MAX: usize = 16_384;

/// What happened to a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// It was looked for, and found.
    Hit,
    /// It was looked for in vain.
    Miss,
    /// It was to be stored.
    Set,
    /// It was to be deleted.
    Delete,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Counts {
    gets: u64,
    hits: u64,
    sets: u64,
    deletes: u64,
}

/// The counters of all prefixes.
#[derive(Default)]
pub(super) struct Prefixes {
    on: AtomicBool,
    counts: Mutex<BTreeMap<Box<[u8]>, Counts>>,
}

impl Prefixes {
    /// Begins or ends to count; what was counted stays.
    pub(super) fn turn(&self, on: bool) {
        self.on.store(on, Relaxed);
    }

    /// Whether something is counted.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// Notes an event, if that is wanted. Keys without a delimiter have no prefix.
    #[inline]
    pub(super) fn note(&self, key: &[u8], event: Event) {
        if self.is_on() {
            self.count(key, event);
        }
    }

    #[cold]
    fn count(&self, key: &[u8], event: Event) {
        let Some(end) = key.iter().position(|&byte| byte == DELIMITER) else {
            return;
        };
        let prefix = &key[..end];
        let mut table = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if !table.contains_key(prefix) {
            if table.len() >= PREFIXES_MAX {
                return;
            }
            table.insert(prefix.into(), Counts::default());
        }
        let Some(counts) = table.get_mut(prefix) else {
            return;
        };
        match event {
            Event::Hit => {
                counts.gets += 1;
                counts.hits += 1;
            }
            Event::Miss => counts.gets += 1,
            Event::Set => counts.sets += 1,
            Event::Delete => counts.deletes += 1,
        }
    }

    /// Forgets what was counted.
    pub(super) fn clear(&self) {
        self.counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// One line per prefix.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let table = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for (prefix, counts) in &*table {
            let Counts {
                gets,
                hits,
                sets,
                deletes,
            } = counts;
            out.extend_from_slice(b"PREFIX ");
            out.extend_from_slice(prefix);
            let text = format!(" get {gets} hit {hits} set {sets} del {deletes}\r\n");
            out.extend_from_slice(text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(prefixes: &Prefixes) -> String {
        let mut out = Vec::new();
        prefixes.write(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn events_are_counted_by_prefix_while_it_is_on() {
        let prefixes = Prefixes::default();
        prefixes.note(b"foo:1", Event::Set);
        assert_eq!(text(&prefixes), "");
        prefixes.turn(true);
        for event in [Event::Set, Event::Hit, Event::Miss, Event::Delete] {
            prefixes.note(b"foo:1", event);
        }
        prefixes.note(b"no prefix", Event::Set);
        prefixes.note(b":", Event::Set);
        let all = "PREFIX  get 0 hit 0 set 1 del 0\r\nPREFIX foo get 2 hit 1 set 1 del 1\r\n";
        assert_eq!(text(&prefixes), all);
        prefixes.turn(false);
        prefixes.note(b"foo:1", Event::Set);
        assert_eq!(text(&prefixes), all);
        prefixes.clear();
        assert_eq!(text(&prefixes), "");
    }

    #[test]
    fn clients_cannot_fill_the_memory() {
        let prefixes = Prefixes::default();
        prefixes.turn(true);
        for number in 0..=PREFIXES_MAX {
            prefixes.note(format!("{number}:").as_bytes(), Event::Set);
        }
        assert_eq!(text(&prefixes).lines().count(), PREFIXES_MAX);
    }
}
