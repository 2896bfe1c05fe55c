//! What a write did, in a form that can be replayed: the record that the log, replicas and the append-only file will read, and
//! the keys that it modified, for `WATCH`, keyspace events, tracking and waiters.
//!
//! Effects are canonical and deterministic: relative times become absolute, random choices become what was chosen, and
//! floating-point sums become their result. Replaying them into an empty store gives the same data.
//! Nothing is recorded when nobody listens, so a server without readers pays one branch per write.

use bitflags::bitflags;

bitflags! {
    /// Keyspace event classes, with the letters of `notify-keyspace-events`.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct EventClass: u32 {
        /// `g` generic
        const GENERIC = 1;
        /// `$` string
        const STRING = 1 << 1;
        /// `l` list
        const LIST = 1 << 2;
        /// `s` set
        const SET = 1 << 3;
        /// `h` hash
        const HASH = 1 << 4;
        /// `z` sorted set
        const ZSET = 1 << 5;
        /// `x` expired
        const EXPIRED = 1 << 6;
        /// `e` evicted
        const EVICTED = 1 << 7;
        /// `t` stream
        const STREAM = 1 << 8;
        /// `m` key miss
        const KEY_MISS = 1 << 9;
        /// `d` module
        const MODULE = 1 << 10;
        /// `n` new key
        const NEW = 1 << 11;
        /// `o` overwritten
        const OVERWRITTEN = 1 << 12;
        /// `c` type changed
        const TYPE_CHANGED = 1 << 13;
    }
}

bitflags! {
    /// Who listens to the effects of the command at hand; decided by the engine after the borrow.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Listening: u8 {
        /// The record is wanted (log, replica, file, replay test).
        const RECORD = 1;
        /// Modified keys and events are wanted (watched keys in these shards, events, tracking, waiters).
        const KEYS = 1 << 1;
    }
}

/// One modified key with the event to announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modified {
    /// Database.
    pub db: u16,
    /// The key.
    pub key: Box<[u8]>,
    /// Class of the event.
    pub class: EventClass,
    /// Name of the event, such as `set`.
    pub event: &'static str,
}

/// Collects the effects of one command.
#[derive(Debug, Default)]
pub struct Effects {
    listening: Listening,
    db: u16,
    changes: u64,
    verbatim: bool,
    record: Vec<u8>,
    modified: Vec<Modified>,
}

impl Effects {
    /// Starts over for a command on database `db`.
    pub fn begin(&mut self, listening: Listening, db: u16) {
        self.listening = listening;
        self.db = db;
        self.changes = 0;
        self.verbatim = false;
        self.record.clear();
        self.modified.clear();
    }

    /// The command as the client sent it is its own canonical effect.
    pub const fn verbatim(&mut self) {
        self.verbatim = true;
    }

    /// The canonical effect is this command. Several calls are one transaction.
    pub fn command(&mut self, parts: &[&[u8]]) {
        if !self.listening.contains(Listening::RECORD) {
            return;
        }
        push_header(&mut self.record, b'*', parts.len());
        for part in parts {
            push_header(&mut self.record, b'$', part.len());
            self.record.extend_from_slice(part);
            self.record.extend_from_slice(b"\r\n");
        }
    }

    /// A key of the selected database was modified; counts as one change.
    pub fn modified(&mut self, key: &[u8], class: EventClass, event: &'static str) {
        self.modified_in(self.db, key, class, event);
    }

    /// The same for a key of another database.
    pub fn modified_in(&mut self, db: u16, key: &[u8], class: EventClass, event: &'static str) {
        self.changes += 1;
        if self.listening.contains(Listening::KEYS) {
            self.modified.push(Modified {
                db,
                key: key.into(),
                class,
                event,
            });
        }
    }

    /// An event without a modification (for example `keymiss`, or `expire` after `set` in one command).
    pub fn event(&mut self, key: &[u8], class: EventClass, event: &'static str) {
        if self.listening.contains(Listening::KEYS) {
            self.modified.push(Modified {
                db: self.db,
                key: key.into(),
                class,
                event,
            });
        }
    }

    /// Further changes that no key names (as Redis's `server.dirty`).
    pub const fn add_changes(&mut self, changes: u64) {
        self.changes += changes;
    }

    /// Number of changes; 0 means that the command had no effect and must not be propagated.
    pub const fn changes(&self) -> u64 {
        self.changes
    }
    /// Whether the received command is its own effect.
    pub const fn is_verbatim(&self) -> bool {
        self.verbatim
    }
    /// The recorded commands, as RESP arrays one after another.
    pub fn record(&self) -> &[u8] {
        &self.record
    }
    /// Modified keys and events, in order.
    pub fn keys(&self) -> &[Modified] {
        &self.modified
    }
    /// Who listens.
    pub const fn listening(&self) -> Listening {
        self.listening
    }
}

fn push_header(out: &mut Vec<u8>, sigil: u8, n: usize) {
    out.push(sigil);
    out.extend_from_slice(n.to_string().as_bytes());
    out.extend_from_slice(b"\r\n");
}
