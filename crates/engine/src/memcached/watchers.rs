//! Clients that watch what happens (`watch`): keys that are fetched and stored, connections that open and close.
//!
//! While nobody watches, a look at one number is all that it costs. Each watcher has a text of its own, which its worker takes when mail says
//! that there is some; a watcher that does not read misses lines and is told how many. What is watched here must never wait for a watcher, nor keep
//! more than a bounded text for it.

use super::expiry::Expiry;
use super::held::{DB, Env};
use super::store::{Mode, Outcome, Write};
use crate::clients::Card;
use crate::shared::{Mail, Shared};
use crate::worker::clock;
use pantala_protocol::memcached::Tokens;
use pantala_store::{Entry, Key, Space};
use pantala_types::string::StrRef;
use std::fmt::{Display, Write as _};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most watchers at a time, as in memcached.
const WATCHERS_MAX: usize = 20;
/// Text that waits for one watcher, and again as much that the system has not taken yet. Memcached's default too.
pub(crate) const TEXT_MAX_BYTES: usize = 256 * 1024;

/// Keys that are looked up.
const FETCHERS: u8 = 1;
/// Keys that are stored.
const MUTATIONS: u8 = 1 << 1;
/// Connections that open and close.
const CONNECTIONS: u8 = 1 << 2;

/// Why a connection closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// The client went, or said `quit`.
    Normal,
    /// It said nothing for longer than `timeout`.
    Idle,
    /// Anything else: the network, a limit, `CLIENT KILL`.
    Error,
}

struct Watcher {
    card: Arc<Card>,
    streams: u8,
    /// Whole lines.
    text: Vec<u8>,
    /// Events that the text tells, with those that it says were missed.
    told: u64,
    /// Events that it missed since.
    skipped: u64,
}

/// All watchers of a server.
#[derive(Default)]
pub(crate) struct Watchers {
    /// What any of them wants.
    streams: AtomicU8,
    next_number: AtomicU64,
    list: Mutex<Vec<Watcher>>,
}

impl Watchers {
    /// Whether anybody watches one of `streams`.
    #[inline]
    fn wants(&self, streams: u8) -> bool {
        self.streams.load(Relaxed) & streams != 0
    }

    fn list(&self) -> MutexGuard<'_, Vec<Watcher>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client watches from now on. False: there are too many.
    pub(super) fn add(&self, card: &Arc<Card>, streams: u8) -> bool {
        let mut list = self.list();
        if list.len() >= WATCHERS_MAX {
            return false;
        }
        list.push(Watcher {
            card: Arc::clone(card),
            streams,
            text: Vec::new(),
            told: 0,
            skipped: 0,
        });
        self.streams.fetch_or(streams, Relaxed);
        true
    }

    /// A client is gone.
    fn remove(&self, card: &Card) {
        let mut list = self.list();
        list.retain(|watcher| watcher.card.id != card.id);
        let left = list.iter().fold(0, |sum, watcher| sum | watcher.streams);
        self.streams.store(left, Relaxed);
    }

    /// Whether this client watches.
    pub(crate) fn has(&self, card: &Card) -> bool {
        self.streams.load(Relaxed) != 0
            && self.list().iter().any(|watcher| watcher.card.id == card.id)
    }

    /// The lines that wait for a client. When it does not read (`room` is false), they are counted as missed instead.
    pub(crate) fn take(&self, card: &Card, room: bool) -> Vec<u8> {
        let mut list = self.list();
        let Some(watcher) = list.iter_mut().find(|watcher| watcher.card.id == card.id) else {
            return Vec::new();
        };
        let told = std::mem::take(&mut watcher.told);
        if room {
            return std::mem::take(&mut watcher.text);
        }
        watcher.skipped += told;
        watcher.text.clear();
        Vec::new()
    }

    /// Gives a line to all who watch `stream`.
    #[cold]
    fn tell(&self, shared: &Shared, stream: u8, what: impl Display) {
        let number = self.next_number.fetch_add(1, Relaxed) + 1;
        let now_us = clock::unix_us();
        let (seconds, micros) = (now_us / 1_000_000, now_us % 1_000_000);
        let line = format!("ts={seconds}.{micros} gid={number} {what}\n");
        for watcher in self.list().iter_mut() {
            if watcher.streams & stream == 0 {
                continue;
            }
            let mut skipped = String::new();
            if watcher.skipped != 0 {
                skipped = format!("skipped={}\n", watcher.skipped);
            }
            if watcher.text.len() + skipped.len() + line.len() > TEXT_MAX_BYTES {
                watcher.skipped += 1;
                continue;
            }
            watcher.told += watcher.skipped + 1;
            watcher.skipped = 0;
            if watcher.text.is_empty() {
                let conn = watcher.card.conn;
                shared.send(watcher.card.worker, Mail::Watched(conn));
            }
            watcher.text.extend_from_slice(skipped.as_bytes());
            watcher.text.extend_from_slice(line.as_bytes());
        }
    }

    /// A client of memcached's protocol came.
    #[inline]
    pub(crate) fn opened(&self, shared: &Shared, card: &Card) {
        if self.wants(CONNECTIONS) {
            self.tell(
                shared,
                CONNECTIONS,
                format_args!("type=conn_new {} cfd={}", Origin(card), card.fd),
            );
        }
    }

    /// A client of memcached's protocol went.
    #[inline]
    pub(crate) fn closed(&self, shared: &Shared, card: &Card, reason: CloseReason) {
        if self.streams.load(Relaxed) == 0 {
            return;
        }
        self.remove(card);
        if self.wants(CONNECTIONS) {
            let reason = match reason {
                CloseReason::Normal => "normal",
                CloseReason::Idle => "idle_timeout",
                CloseReason::Error => "error",
            };
            let (origin, fd) = (Origin(card), card.fd);
            let what = format_args!("type=conn_close {origin} reason={reason} cfd={fd}");
            self.tell(shared, CONNECTIONS, what);
        }
    }
}

/// Makes a client a watcher, which it is until it goes. `Err`: the refusal. Without names it watches fetchers.
pub(super) fn begin(
    env: Env<'_>,
    card: &Arc<Card>,
    names: Tokens<'_>,
    replies_wait: bool,
) -> Result<(), &'static str> {
    if replies_wait {
        return Err("ERROR cannot pipeline other commands before watch");
    }
    let mut streams = 0;
    for name in names {
        streams |= match name {
            b"fetchers" => FETCHERS,
            b"mutations" => MUTATIONS,
            b"connevents" => CONNECTIONS,
            // What does not exist here, or is not known where a client could be told.
            b"rawcmds" | b"evictions" | b"sysevents" | b"proxyreqs" | b"proxyevents"
            | b"proxyuser" => return Err("CLIENT_ERROR watch commands not allowed"),
            _ => return Err("ERROR"),
        };
    }
    let streams = if streams == 0 { FETCHERS } else { streams };
    if env.shared.memcached.watchers.add(card, streams) {
        Ok(())
    } else {
        Err("WATCHER_TOO_MANY log watcher limit reached")
    }
}

/// Tells that a command looks a key up.
#[inline]
pub(super) fn fetched(env: Env<'_>, space: &mut Space<'_>, key: &Key<'_>) {
    if env.shared.memcached.watchers.wants(FETCHERS) {
        tell_fetched(env, space, key);
    }
}

#[cold]
fn tell_fetched(env: Env<'_>, space: &mut Space<'_>, key: &Key<'_>) {
    let db = space.db(DB, env.now_ms);
    let (status, class, size) = match db.view(key) {
        Some(entry) => ("found", entry.size_class(), len_of(entry)),
        None => ("not_found", 0, 0),
    };
    let (name, fd) = (Encoded(key.bytes), env.fd);
    env.shared.memcached.watchers.tell(
        env.shared,
        FETCHERS,
        format_args!("type=item_get key={name} status={status} clsid={class} cfd={fd} size={size}"),
    );
}

/// Bytes of a string; other types have no size that memcached's clients could see.
fn len_of(entry: Entry<'_>) -> usize {
    StrRef::of(entry).map_or(0, |value| value.len())
}

/// Tells what became of a value.
#[inline]
pub(super) fn stored(
    env: Env<'_>,
    space: &mut Space<'_>,
    key: &Key<'_>,
    write: &Write<'_>,
    outcome: Outcome,
) {
    if env.shared.memcached.watchers.wants(MUTATIONS) {
        let status = match outcome {
            Outcome::Stored(_) => "stored",
            Outcome::Refused | Outcome::WrongType => "not_stored",
            Outcome::Exists => "exists",
            Outcome::NotFound => "not_found",
            Outcome::NoRoom => "no_memory",
        };
        let verb = match write.mode {
            Mode::Set => "set",
            Mode::Add => "add",
            Mode::Replace => "replace",
            Mode::Append => "append",
            Mode::Prepend => "prepend",
            Mode::Cas => "cas",
        };
        // An item that was added to is told as a whole.
        let db = space.db(DB, env.now_ms);
        let entry = match outcome {
            Outcome::Stored(_) => db.view(key),
            _ => None,
        };
        let (expiry, class, size) = match entry {
            Some(entry) => (
                Expiry::from_entry(entry.expiry_ms()),
                entry.size_class(),
                len_of(entry),
            ),
            None => (write.expiry, 0, write.value.len()),
        };
        let ttl_s = expiry.ttl_s(env.now_ms).max(0);
        tell_stored(env, key.bytes, status, verb, (ttl_s, class, size));
    }
}

/// Tells that a value of `set` was too large.
#[inline]
pub(super) fn too_large(env: Env<'_>, key: &[u8]) {
    if env.shared.memcached.watchers.wants(MUTATIONS) {
        tell_stored(env, key, "too_large", "set", (0, 0, 0));
    }
}

#[cold]
fn tell_stored(
    env: Env<'_>,
    key: &[u8],
    status: &str,
    verb: &str,
    (ttl_s, class, size): (i64, u8, usize),
) {
    let (name, fd) = (Encoded(key), env.fd);
    env.shared.memcached.watchers.tell(
        env.shared,
        MUTATIONS,
        format_args!(
            "type=item_store key={name} status={status} cmd={verb} ttl={ttl_s} clsid={class} cfd={fd} size={size}"
        ),
    );
}

/// A key as a URI would name it, so that it is one word.
struct Encoded<'k>(&'k [u8]);

impl Display for Encoded<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for &byte in self.0 {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                f.write_char(char::from(byte))?;
            } else {
                write!(f, "%{byte:02X}")?;
            }
        }
        Ok(())
    }
}

/// Where a client is.
struct Origin<'c>(&'c Card);

impl Display for Origin<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.unix {
            return f.write_str("rip=unix rport=0 transport=local");
        }
        let (ip, port) = self.0.peer.rsplit_once(':').unwrap_or((&self.0.peer, "0"));
        let ip = ip.trim_start_matches('[').trim_end_matches(']');
        write!(f, "rip={ip} rport={port} transport=tcp")
    }
}
