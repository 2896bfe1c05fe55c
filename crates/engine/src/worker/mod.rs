//! One worker: the service that runs on a reactor thread and turns bytes into executed commands.
//!
//! `input` takes bytes and keeps what cannot be executed yet, `batch` parses and prefetches, `step` decides about one command,
//! `background` does bites of other work between turns. Sessions that wait for a shard hold nothing: when the shard is given
//! back, the worker is woken and lets all its waiting sessions try again.

mod admission;
mod background;
mod batch;
pub mod clock;
mod input;
mod memcached;
mod preview;
mod step;
mod subscribers;
mod texts;
mod timing;

use crate::clients::{Arrival, Card};
use crate::invoke::Scratch;
use crate::pubsub;
use crate::session::{Session, State};
use crate::shared::{MEMCACHED_LISTENER, Mail, Shared};
use crate::stats;
use batch::Batch;
use pantala_config::Settings;
use pantala_protocol::Limits;
use pantala_reactor::{ConnId, Io, Next, Origin, Service};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// The service of one reactor thread.
pub struct Worker {
    shared: Arc<Shared>,
    core: Core,
}

/// Everything of a worker but the shared part, so that both can be borrowed at once.
struct Core {
    party: usize,
    settings: Arc<Settings>,
    settings_version: u64,
    limits: Limits,
    /// `maxmemory` in bytes; 0: no limit.
    maxmemory_bytes: u64,
    /// Unsent replies of one client, in bytes, above which it is looked at.
    flood_bytes: usize,
    sessions: Sessions,
    scratch: Scratch,
    local: pubsub::Local,
    batch: Batch,
    preview: preview::Preview,
    memcached_buffers: crate::memcached::Buffers,
    /// Sessions that wait for a shard, the gate or their next turn, oldest first.
    aside: Vec<ConnId>,
    /// Sessions that wait for the end of a pause, oldest first.
    paused: Vec<ConnId>,
    /// A pause may have ended: paused sessions look again.
    look_at_paused: bool,
    /// Sessions that monitor.
    monitors: Vec<ConnId>,
    /// Number of keys in each database that may be evicted, at the last look.
    database_sizes: Vec<u64>,
    /// End of the last batch, so that one clock reading serves as its end and the next one's start.
    last_end: Instant,
    background: background::Background,
    /// A session that was set aside has nobody to wake it: look again without sleeping.
    retry_soon: bool,
    stopping: bool,
}

/// Sessions by the dense index of their connection.
#[derive(Default)]
struct Sessions(Vec<Option<(ConnId, Box<Session>)>>);

impl Sessions {
    fn insert(&mut self, conn: ConnId, session: Box<Session>) {
        let at = conn.index();
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        self.0[at] = Some((conn, session));
    }
    fn take(&mut self, conn: ConnId) -> Option<Box<Session>> {
        self.0
            .get_mut(conn.index())?
            .take_if(|(id, _)| *id == conn)
            .map(|(_, session)| session)
    }
    fn get(&self, conn: ConnId) -> Option<&Session> {
        self.0
            .get(conn.index())?
            .as_ref()
            .filter(|(id, _)| *id == conn)
            .map(|(_, session)| &**session)
    }
}

impl Worker {
    /// The worker with this index.
    pub fn new(shared: Arc<Shared>, index: usize) -> Self {
        let settings_version = shared.settings_version();
        let settings = shared.settings();
        let core = Core {
            party: index,
            limits: limits_of(&settings),
            maxmemory_bytes: settings.maxmemory.bytes(shared.facts.machine_bytes),
            flood_bytes: flood_bytes(&settings),
            settings,
            settings_version,
            sessions: Sessions::default(),
            scratch: Scratch::new(
                shared.facts.seed ^ (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            ),
            local: pubsub::Local::default(),
            batch: Batch::default(),
            preview: preview::Preview::default(),
            memcached_buffers: crate::memcached::Buffers::default(),
            aside: Vec::new(),
            paused: Vec::new(),
            look_at_paused: false,
            monitors: Vec::new(),
            database_sizes: Vec::new(),
            last_end: clock::now(),
            background: background::Background::default(),
            retry_soon: false,
            stopping: false,
        };
        Self { shared, core }
    }
}

fn limits_of(settings: &Settings) -> Limits {
    Limits {
        bulk_bytes: settings.proto_max_bulk_len_bytes,
        ..Limits::default()
    }
}

/// A hard limit of replies below the reactor's mark must be noticed too.
fn flood_bytes(settings: &Settings) -> usize {
    match settings.client_output_buffer_limit.normal.hard_limit_bytes {
        0 => Io::OUT_HIGH,
        hard => usize::try_from(hard).map_or(Io::OUT_HIGH, |hard| hard.min(Io::OUT_HIGH)),
    }
}

impl Service for Worker {
    type Mail = Mail;

    fn opened(&mut self, io: &mut Io, conn: ConnId, origin: &Origin) {
        let Self { shared, core } = self;
        core.notice_settings(shared);
        stats::add(&shared.stats.party(core.party).connections, 1);
        let memcached = origin.listener == MEMCACHED_LISTENER;
        let card = shared.clients.add(Arrival {
            worker: core.party,
            conn,
            peer: origin.peer.clone(),
            local: origin.local.clone(),
            fd: origin.fd,
            unix: origin.unix,
            memcached,
            now_ms: io.unix_ms(),
        });
        let open = core.settings.requirepass.is_empty();
        if core.settings.protected_mode && open && !origin.loopback {
            let refusal = if memcached {
                PROTECTED_MEMCACHED
            } else {
                PROTECTED
            };
            io.out(conn).extend_from_slice(refusal.as_bytes());
            io.close_after_flush(conn);
        }
        let mut session = Box::new(Session::new(Arc::clone(&card), open));
        if memcached {
            shared.memcached.watchers.opened(shared, &card);
            session.memcached = Some(Box::new(crate::memcached::Session::new(card)));
        }
        core.sessions.insert(conn, session);
    }

    fn received(&mut self, io: &mut Io, conn: ConnId, bytes: &[u8]) {
        let Self { shared, core } = self;
        let Some(mut session) = core.sessions.take(conn) else {
            return;
        };
        core.notice_settings(shared);
        stats::add(
            &shared.stats.party(core.party).read_bytes,
            bytes.len() as u64,
        );
        // Also a part of a command shows that the client is there.
        session.card.active_ms.store(io.unix_ms(), Relaxed);
        core.feed(shared, io, conn, &mut session, bytes);
        core.put_back(io, conn, session);
    }

    fn coming(&mut self, conn: ConnId, bytes: &[u8]) {
        self.core.preview(&self.shared, conn, bytes);
    }

    fn come(&mut self) {
        self.core.previewed(&self.shared);
    }

    fn ended(&mut self, io: &mut Io, conn: ConnId) {
        let Some(mut session) = self.core.sessions.take(conn) else {
            return;
        };
        session.ended = true;
        self.core.put_back(io, conn, session);
    }

    fn closed(&mut self, io: &mut Io, conn: ConnId) {
        let Self { shared, core } = self;
        if let Some(mut session) = core.sessions.take(conn) {
            crate::transaction::unwatch(shared, &mut session, None);
            if let Some(mine) = session.subscriptions.take() {
                core.local.leave(&shared.pubsub, session.place(), &mine);
            }
            shared.store.locks().abandon(&mut session.attempt);
            if session.listed {
                core.aside.retain(|&other| other != conn);
                core.paused.retain(|&other| other != conn);
            }
            core.monitors.retain(|&other| other != conn);
            if session.memcached.is_some() {
                core.tell_closed(shared, io, &session);
            }
            shared.clients.remove(&session.card);
        }
    }

    fn drained(&mut self, io: &mut Io, conn: ConnId) {
        let Self { shared, core } = self;
        let Some(mut session) = core.sessions.take(conn) else {
            return;
        };
        if session.state == State::Full {
            core.carry_on(shared, io, conn, &mut session);
        }
        core.put_back(io, conn, session);
    }

    fn mail(&mut self, io: &mut Io, mail: Mail) {
        let Self { shared, core } = self;
        match mail {
            Mail::Helped { conn, reply } => {
                let Some(mut session) = core.sessions.take(conn) else {
                    return;
                };
                core.helped(shared, io, conn, &mut session, &reply);
                core.put_back(io, conn, session);
            }
            Mail::Close { conn, flush: true } => {
                if let Some(mut session) = core.sessions.take(conn) {
                    session.state = State::Closing;
                    core.put_back(io, conn, session);
                }
            }
            Mail::Close { conn, flush: false } => io.close(conn),
            Mail::Published(message) => core.deliver(shared, io, &message),
            Mail::Watched(conn) => core.show_watched(shared, io, conn),
            Mail::Monitor(line) => core.show_monitors(io, &line),
            Mail::PauseChanged => core.look_at_paused = true,
            Mail::Stop => core.stopping = true,
        }
    }

    fn timer(&mut self, io: &mut Io, token: u64) {
        let Self { shared, core } = self;
        core.background_due(shared, io, token);
    }

    fn turn(&mut self, io: &mut Io) -> Next {
        let Self { shared, core } = self;
        core.notice_settings(shared);
        if core.look_at_paused {
            core.look_at_paused = false;
            let paused = std::mem::take(&mut core.paused);
            core.aside.extend(paused);
        }
        core.retry_aside(shared, io);
        if core.stopping {
            io.stop();
            return Next::Wait;
        }
        core.background_bites(shared, io)
    }
}

impl Core {
    /// Takes over a changed configuration.
    #[inline]
    fn notice_settings(&mut self, shared: &Shared) {
        let version = shared.settings_version();
        if version != self.settings_version {
            self.settings_version = version;
            self.settings = shared.settings();
            self.limits = limits_of(&self.settings);
            self.maxmemory_bytes = self.settings.maxmemory.bytes(shared.facts.machine_bytes);
            self.flood_bytes = flood_bytes(&self.settings);
        }
    }

    /// Lets every session that was set aside try again, oldest first.
    fn retry_aside(&mut self, shared: &Arc<Shared>, io: &mut Io) {
        if self.aside.is_empty() {
            return;
        }
        for conn in std::mem::take(&mut self.aside) {
            let Some(mut session) = self.sessions.take(conn) else {
                continue;
            };
            session.listed = false;
            // One of those before it may have ended it (`CLIENT KILL`).
            if io.is_open(conn) && matches!(session.state, State::Aside | State::Paused) {
                self.carry_on(shared, io, conn, &mut session);
            }
            self.put_back(io, conn, session);
        }
    }

    /// Returns a session to its place and does what its state asks of the connection.
    fn put_back(&mut self, io: &mut Io, conn: ConnId, mut session: Box<Session>) {
        note_card(&session.card, &session, io.out_len(conn));
        match session.state {
            State::Closing => io.close_after_flush(conn),
            // All that the peer sent is answered; what is left of an unfinished command will never be finished.
            State::Ready if session.ended => io.close_after_flush(conn),
            // Its client has given up, as Redis sees it, on an answer that may never come and on commands that have not begun.
            State::Blocked | State::Paused if session.ended => io.close_after_flush(conn),
            State::Aside | State::Paused if session.listed => {}
            State::Aside => {
                session.listed = true;
                self.aside.push(conn);
            }
            State::Paused => {
                session.listed = true;
                self.paused.push(conn);
            }
            State::Ready | State::Away | State::Blocked | State::Full => {}
        }
        self.sessions.insert(conn, session);
    }

    fn show_monitors(&mut self, io: &mut Io, line: &[u8]) {
        let sessions = &self.sessions;
        self.monitors
            .retain(|&conn| sessions.get(conn).is_some_and(|session| session.monitor));
        // A monitor that does not keep up would otherwise grow without limit.
        let hard = self
            .settings
            .client_output_buffer_limit
            .replica
            .hard_limit_bytes;
        for &conn in &self.monitors {
            io.out(conn).extend_from_slice(line);
            if hard != 0 && io.out_len(conn) as u64 > hard {
                io.close(conn);
            }
        }
    }
}

fn note_card(card: &Card, session: &Session, output_bytes: usize) {
    card.query_bytes.store(session.backlog(), Relaxed);
    card.output_bytes.store(output_bytes, Relaxed);
    card.waiting.store(
        !matches!(session.state, State::Ready | State::Closing),
        Relaxed,
    );
}

const PROTECTED_MEMCACHED: &str =
    "SERVER_ERROR protected mode: only connections from this machine are accepted\r\n";
const PROTECTED: &str = "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the default user. \
In this mode connections are only accepted from the loopback interface. If you want to connect from external computers to Redis you may adopt one \
of the following solutions: 1) Just disable protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface by \
connecting to Redis from the same host the server is running, however MAKE SURE Redis is not publicly accessible from internet if you do so. Use \
CONFIG REWRITE to make this change permanent. 2) Alternatively you can just disable the protected mode by editing the Redis configuration file, and \
setting the protected mode option to 'no', and then restarting the server. 3) If you started the server manually just for testing, restart it with \
the '--protected-mode no' option. 4) Setup a an authentication password for the default user. NOTE: You only need to do one of the above things in \
order for the server to start accepting connections from the outside.\r\n";
