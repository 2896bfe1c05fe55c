//! What the server knows of one connection.

use crate::clients::Card;
use crate::pubsub::{Kind, Place, Subscriptions};
use crate::transaction::{Queue, Watching};
use pantala_borrow::Attempt;
use pantala_config::{BufferLimit, Settings};
use pantala_protocol::{Parser, Proto};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Why a session does not execute commands at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It does.
    Ready,
    /// A shard (or the gate) was busy; the command will be tried again. Nothing is held.
    Aside,
    /// Its command runs on a helper thread; the reply is sent also when the client will send no more.
    Away,
    /// Its command waits for something that may never come (`WAIT`); pointless once the client will send no more.
    Blocked,
    /// The client does not read its replies; execution goes on when they have drained.
    Full,
    /// Commands wait for `CLIENT UNPAUSE` or the pause's end.
    Paused,
    /// Its replies are sent, then the connection is closed.
    Closing,
}

/// `CLIENT REPLY`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyMode {
    /// Replies are sent.
    On,
    /// No replies.
    Off,
    /// No reply to this command (the one that said `SKIP`) …
    SkipNow,
    /// … nor to the next.
    SkipNext,
}

/// One client.
pub struct Session {
    /// Protocol version of its replies.
    pub proto: Proto,
    /// Selected database.
    pub db: u16,
    /// Whether it may run commands that need authentication.
    pub authenticated: bool,
    /// Runs or waits.
    pub state: State,
    /// It is in its worker's list of sessions that look again.
    pub listed: bool,
    /// Unix ms since when its unsent replies are above the soft limit; 0: they are not.
    pub flooded_since_ms: i64,
    /// `CLIENT REPLY`.
    pub reply_mode: ReplyMode,
    /// The peer will send no more; closed once all that was sent is answered.
    pub ended: bool,
    /// `MONITOR` is on.
    pub monitor: bool,
    /// `CLIENT NO-TOUCH`.
    pub no_touch: bool,
    /// The memcached side of the client, on a memcached connection; what is about RESP is unused then.
    pub memcached: Option<Box<crate::memcached::Session>>,
    /// Parser with what it knows of a command that has not arrived whole.
    pub parser: Parser,
    /// Bytes that arrived and are not executed yet; empty for a client that waits for its replies.
    pub pending: Vec<u8>,
    /// How much of `pending` is done with.
    pub pending_at: usize,
    /// The transaction being queued.
    pub queue: Option<Box<Queue>>,
    /// Watched keys.
    pub watching: Option<Box<Watching>>,
    /// What it is subscribed to; never empty.
    pub subscriptions: Option<Box<Subscriptions>>,
    /// Its command waits until its worker has taken so many published messages; 0: it does not.
    pub mail_awaited: u64,
    /// Failures to borrow of the command at hand.
    pub attempt: Attempt,
    /// What others may see of this client.
    pub card: Arc<Card>,
}

impl Session {
    /// A fresh session for the client behind `card`.
    pub fn new(card: Arc<Card>, authenticated: bool) -> Self {
        Self {
            proto: Proto::Resp2,
            db: 0,
            authenticated,
            state: State::Ready,
            listed: false,
            flooded_since_ms: 0,
            reply_mode: ReplyMode::On,
            ended: false,
            monitor: false,
            no_touch: false,
            memcached: None,
            parser: Parser::default(),
            pending: Vec::new(),
            pending_at: 0,
            queue: None,
            watching: None,
            subscriptions: None,
            mail_awaited: 0,
            attempt: Attempt::default(),
            card,
        }
    }

    /// In RESP2 a subscriber may use few commands, since its replies could not be told from messages.
    #[inline]
    pub fn only_subscribes(&self) -> bool {
        self.subscriptions.is_some() && self.proto == Proto::Resp2
    }

    /// Limit of its unsent output.
    pub fn output_limit(&self, settings: &Settings) -> BufferLimit {
        let limits = &settings.client_output_buffer_limit;
        if self.subscriptions.is_some() {
            limits.pubsub
        } else {
            limits.normal
        }
    }

    /// Where it is, for the tables of subscribers.
    pub fn place(&self) -> Place {
        Place {
            worker: self.card.worker,
            conn: self.card.conn,
            proto: self.proto,
        }
    }

    /// Shows others how much it is subscribed to.
    pub fn note_subscriptions(&self) {
        let kinds = [Kind::Channel, Kind::Pattern, Kind::Shard];
        for (shown, kind) in self.card.subscriptions.iter().zip(kinds) {
            let count = self.subscriptions.as_ref();
            let count = count.map_or(0, |subscriptions| subscriptions.of(kind).len());
            shown.store(u32::try_from(count).unwrap_or(u32::MAX), Relaxed);
        }
    }

    /// Bytes that wait to be executed.
    pub fn backlog(&self) -> usize {
        self.pending.len() - self.pending_at
    }
}
