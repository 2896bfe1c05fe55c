//! One worker's side: its subscribed connections, and the delivery of messages into their output.

use super::message::PUSH;
use super::{Kind, Message, Registry};
use pantala_config::BufferLimit;
use pantala_protocol::Proto;
use pantala_reactor::{ConnId, Io};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What one client is subscribed to.
#[derive(Default)]
pub struct Subscriptions {
    channels: HashSet<Arc<[u8]>>,
    patterns: HashSet<Arc<[u8]>>,
    shard_channels: HashSet<Arc<[u8]>>,
}

impl Subscriptions {
    /// Names of one kind.
    pub fn of(&self, kind: Kind) -> &HashSet<Arc<[u8]>> {
        match kind {
            Kind::Channel => &self.channels,
            Kind::Pattern => &self.patterns,
            Kind::Shard => &self.shard_channels,
        }
    }

    fn of_mut(&mut self, kind: Kind) -> &mut HashSet<Arc<[u8]>> {
        match kind {
            Kind::Channel => &mut self.channels,
            Kind::Pattern => &mut self.patterns,
            Kind::Shard => &mut self.shard_channels,
        }
    }

    /// The number that confirmations tell: channels and patterns together, shard channels apart.
    pub fn told(&self, kind: Kind) -> usize {
        match kind {
            Kind::Shard => self.shard_channels.len(),
            Kind::Channel | Kind::Pattern => self.channels.len() + self.patterns.len(),
        }
    }

    /// Subscribed to nothing.
    pub fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.patterns.is_empty() && self.shard_channels.is_empty()
    }

    fn all(&self) -> impl Iterator<Item = (Kind, &Arc<[u8]>)> {
        [Kind::Channel, Kind::Pattern, Kind::Shard]
            .into_iter()
            .flat_map(|kind| self.of(kind).iter().map(move |name| (kind, name)))
    }
}

struct Subscriber {
    /// Messages with this ticket or an earlier one came before the subscription.
    since: u64,
    resp3: bool,
}

type Table = HashMap<Arc<[u8]>, HashMap<ConnId, Subscriber>>;

/// Where a client is: what the tables know it by.
#[derive(Clone, Copy)]
pub struct Place {
    /// Its worker.
    pub worker: usize,
    /// Its connection there.
    pub conn: ConnId,
    /// Its protocol.
    pub proto: Proto,
}

/// The subscribed connections of one worker.
#[derive(Default)]
pub struct Local {
    channels: Table,
    patterns: Table,
    shard_channels: Table,
    /// Posted messages that this worker has taken.
    pub taken: u64,
    /// Messages to the very client whose command is running: they come after its reply, which they would else tear apart.
    pub to_self: Vec<u8>,
    /// Workers with mail from here that have not been woken yet.
    pub to_wake: Vec<usize>,
    /// A subscriber was seen above the soft limit of unsent output.
    pub flooded: bool,
    /// The `pmessage` at hand.
    frame: Vec<u8>,
}

/// Below so much output in its buffer a subscriber is not held against its limits, which costs a look at its connection.
const UNCHECKED_BYTES: usize = 4 * 1024;

impl Local {
    /// Subscribes a client to a name. Nothing happens when it is already.
    pub fn subscribe(
        &mut self,
        registry: &Registry,
        place: Place,
        mine: &mut Subscriptions,
        kind: Kind,
        name: &[u8],
    ) {
        if mine.of(kind).contains(name) {
            return;
        }
        let (name, since) = registry.subscribe(kind, name, place.worker);
        let subscriber = Subscriber {
            since,
            resp3: place.proto == Proto::Resp3,
        };
        self.table(kind)
            .entry(Arc::clone(&name))
            .or_default()
            .insert(place.conn, subscriber);
        mine.of_mut(kind).insert(name);
    }

    /// Ends a client's subscription, if it has it.
    pub fn unsubscribe(
        &mut self,
        registry: &Registry,
        place: Place,
        mine: &mut Subscriptions,
        kind: Kind,
        name: &[u8],
    ) {
        if mine.of_mut(kind).remove(name) {
            self.forget(registry, place, kind, name);
        }
    }

    /// Ends all subscriptions of a client.
    pub fn leave(&mut self, registry: &Registry, place: Place, mine: &Subscriptions) {
        for (kind, name) in mine.all() {
            self.forget(registry, place, kind, name);
        }
    }

    fn forget(&mut self, registry: &Registry, place: Place, kind: Kind, name: &[u8]) {
        registry.unsubscribe(kind, name, place.worker);
        let table = self.table(kind);
        if let Some(subscribers) = table.get_mut(name) {
            subscribers.remove(&place.conn);
            if subscribers.is_empty() {
                table.remove(name);
            }
        }
    }

    /// A subscribed client changed its protocol.
    pub fn set_proto(&mut self, place: Place, mine: &Subscriptions) {
        for (kind, name) in mine.all() {
            let subscribers = self.table(kind).get_mut(name);
            if let Some(subscriber) =
                subscribers.and_then(|subscribers| subscribers.get_mut(&place.conn))
            {
                subscriber.resp3 = place.proto == Proto::Resp3;
            }
        }
    }

    /// Writes a message to those of this worker's connections that get it; `current` is the one whose command is running. Closes those
    /// that are above their hard limit of unsent output, and returns how many.
    pub fn deliver(
        &mut self,
        io: &mut Io,
        limit: BufferLimit,
        current: Option<ConnId>,
        message: &Message,
    ) -> u64 {
        let mut sender = Sender {
            io,
            limit,
            current,
            ticket: message.ticket,
            to_self: &mut self.to_self,
            flooded: &mut self.flooded,
            closed: 0,
        };
        let table = match message.kind {
            Kind::Shard => &self.shard_channels,
            Kind::Channel | Kind::Pattern => &self.channels,
        };
        if let Some(subscribers) = table.get(message.channel()) {
            sender.send(subscribers, message.frame());
        }
        for pattern in &message.patterns {
            if let Some(subscribers) = self.patterns.get(pattern) {
                message.pattern_frame(pattern, &mut self.frame);
                sender.send(subscribers, &self.frame);
            }
        }
        if self.frame.capacity() > UNCHECKED_BYTES {
            self.frame = Vec::new();
        }
        sender.closed
    }

    fn table(&mut self, kind: Kind) -> &mut Table {
        match kind {
            Kind::Channel => &mut self.channels,
            Kind::Pattern => &mut self.patterns,
            Kind::Shard => &mut self.shard_channels,
        }
    }
}

/// One message on its way to connections.
struct Sender<'a> {
    io: &'a mut Io,
    limit: BufferLimit,
    current: Option<ConnId>,
    ticket: u64,
    to_self: &'a mut Vec<u8>,
    flooded: &'a mut bool,
    closed: u64,
}

impl Sender<'_> {
    fn send(&mut self, subscribers: &HashMap<ConnId, Subscriber>, frame: &[u8]) {
        for (&conn, subscriber) in subscribers {
            if self.ticket <= subscriber.since {
                continue;
            }
            let out = if self.current == Some(conn) {
                &mut *self.to_self
            } else {
                self.io.out(conn)
            };
            let at = out.len();
            out.extend_from_slice(frame);
            if subscriber.resp3 {
                out[at] = PUSH;
            }
            if out.len() > UNCHECKED_BYTES {
                self.check(conn);
            }
        }
    }

    #[cold]
    fn check(&mut self, conn: ConnId) {
        let mut unsent = self.io.out_len(conn);
        if self.current == Some(conn) {
            unsent += self.to_self.len();
        }
        let unsent = unsent as u64;
        let BufferLimit {
            hard_limit_bytes,
            soft_limit_bytes,
            ..
        } = self.limit;
        if hard_limit_bytes != 0 && unsent > hard_limit_bytes {
            self.io.close(conn);
            self.closed += 1;
        } else if soft_limit_bytes != 0 && unsent > soft_limit_bytes {
            *self.flooded = true;
        }
    }
}
