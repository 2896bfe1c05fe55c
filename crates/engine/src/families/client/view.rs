//! A client as `CLIENT LIST` shows it: a reading of its [`Card`] at one moment, and the line made from it.
//!
//! The line's fields and their order are what tools parse; none may go, and new ones come at the end.

use crate::clients::{Card, Names};
use crate::registry::Registry;
use crate::session::Session;
use pantala_protocol::Args;
use std::fmt::Write;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

/// Classes of clients that `TYPE` tells apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientType {
    /// Everyone else, those that monitor included.
    Normal,
    /// A replica of this server.
    Replica,
    /// Subscribed to channels.
    Pubsub,
    /// The server that this one replicates.
    Primary,
}

impl ClientType {
    /// By name, any case.
    pub fn parse(name: &[u8]) -> Option<Self> {
        const NAMES: [(&str, ClientType); 6] = [
            ("normal", ClientType::Normal),
            ("slave", ClientType::Replica),
            ("replica", ClientType::Replica),
            ("pubsub", ClientType::Pubsub),
            ("master", ClientType::Primary),
            ("primary", ClientType::Primary),
        ];
        NAMES
            .iter()
            .find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name))
            .map(|&(_, class)| class)
    }
}

/// What is known of one client at one moment.
#[derive(Clone, Debug)]
pub struct View<'c> {
    /// Unique, never reused.
    pub id: u64,
    /// Peer's address.
    pub peer: &'c str,
    /// Our address.
    pub local: &'c str,
    /// File descriptor number.
    pub fd: i32,
    /// Whether it is a Unix socket.
    pub unix: bool,
    /// What the client calls itself.
    pub names: Names,
    /// Seconds since it connected.
    pub age_s: i64,
    /// Seconds since its last command.
    pub idle_s: i64,
    /// Selected database.
    pub db: u16,
    /// Commands queued in `MULTI`, -1 outside.
    pub queued: i64,
    /// Bytes that arrived and are not executed yet.
    pub query_bytes: usize,
    /// Bytes of the arguments of the command at hand.
    pub args_bytes: usize,
    /// Bytes held by the queue of a transaction.
    pub queue_bytes: usize,
    /// Reply bytes not yet taken by the system.
    pub output_bytes: usize,
    /// `MONITOR` is on.
    pub monitor: bool,
    /// `CLIENT NO-EVICT`.
    pub no_evict: bool,
    /// `CLIENT NO-TOUCH`.
    pub no_touch: bool,
    /// Channels, patterns and shard channels that it is subscribed to.
    pub subscriptions: [u32; 3],
    /// Waits for a shard, a helper thread or the end of a pause.
    pub waiting: bool,
    /// Its last command, if it has sent one.
    pub command: Option<&'c str>,
    /// 2 or 3.
    pub resp: u16,
}

impl<'c> View<'c> {
    /// Reads another client's card.
    pub fn of(card: &'c Card, registry: &'c Registry, now_ms: i64) -> Self {
        let command = registry
            .entries()
            .get(usize::from(card.last_command.load(Relaxed)));
        let seconds_since = |then_ms: i64| (now_ms - then_ms).max(0) / 1_000;
        Self {
            id: card.id,
            peer: &card.peer,
            local: &card.local,
            fd: card.fd,
            unix: card.unix,
            names: card
                .names
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
            age_s: seconds_since(card.since_ms),
            idle_s: seconds_since(card.active_ms.load(Relaxed)),
            db: card.db.load(Relaxed),
            queued: card.queued.load(Relaxed),
            query_bytes: card.query_bytes.load(Relaxed),
            args_bytes: 0,
            queue_bytes: card.queue_bytes.load(Relaxed),
            output_bytes: card.output_bytes.load(Relaxed),
            monitor: card.monitor.load(Relaxed),
            no_evict: card.no_evict.load(Relaxed),
            no_touch: card.no_touch.load(Relaxed),
            subscriptions: card
                .subscriptions
                .each_ref()
                .map(|count| count.load(Relaxed)),
            waiting: card.waiting.load(Relaxed),
            command: command.map(|entry| &*entry.full_name),
            resp: card.resp.load(Relaxed),
        }
    }

    /// The client that asks, while its command `args` is still in its buffer.
    pub fn of_asker(card: &'c Card, registry: &'c Registry, now_ms: i64, args: Args<'_>) -> Self {
        Self {
            idle_s: 0,
            // It is being served at this moment.
            waiting: false,
            query_bytes: request_bytes(args),
            args_bytes: args.total_bytes(),
            ..Self::of(card, registry, now_ms)
        }
    }

    /// Its class. Replicas do not exist yet.
    pub fn class(&self) -> ClientType {
        if self.subscribes() {
            ClientType::Pubsub
        } else {
            ClientType::Normal
        }
    }

    fn subscribes(&self) -> bool {
        self.subscriptions != [0; 3]
    }

    /// Its flags as letters, `N` for none.
    pub fn flags(&self) -> String {
        let letters = [
            (self.monitor, 'O'),
            (self.subscribes(), 'P'),
            (self.queued >= 0, 'x'),
            (self.waiting, 'b'),
            (self.unix, 'U'),
            (self.no_evict, 'e'),
            (self.no_touch, 'T'),
        ];
        let set: String = letters
            .iter()
            .filter(|(on, _)| *on)
            .map(|&(_, letter)| letter)
            .collect();
        if set.is_empty() { "N".to_owned() } else { set }
    }

    /// Memory that the client costs, in bytes: its state, what it sent, what it queued, what it has not read.
    fn total_bytes(&self) -> usize {
        let names = &self.names;
        size_of::<Session>()
            + size_of::<Card>()
            + self.peer.len()
            + self.local.len()
            + names.name.len()
            + names.lib_name.len()
            + names.lib_ver.len()
            + names.user.len()
            + self.query_bytes
            + self.queue_bytes
            + self.output_bytes
    }

    /// Appends its line, with the line end.
    ///
    /// Fields that describe parts of Redis which have no counterpart here (a fixed reply buffer, a list of reply blocks) are 0;
    /// replies wait in one buffer, which both `obl` and `omem` measure.
    pub fn write_line(&self, out: &mut String) {
        let Self {
            id,
            peer,
            local,
            fd,
            age_s,
            idle_s,
            db,
            queued,
            subscriptions: [sub, psub, ssub],
            ..
        } = self;
        let names = &self.names;
        let events = if self.output_bytes == 0 { "r" } else { "rw" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "id={id} addr={peer} laddr={local} fd={fd} name={name} age={age_s} idle={idle_s} flags={flags} db={db} \
             sub={sub} psub={psub} ssub={ssub} multi={queued} qbuf={query} qbuf-free=0 argv-mem={args} multi-mem={queue} rbs=0 rbp=0 \
             obl={output} oll=0 omem={output} tot-mem={total} events={events} cmd={command} user={user} redir=-1 \
             resp={resp} lib-name={lib_name} lib-ver={lib_ver}",
            name = names.name,
            flags = self.flags(),
            query = self.query_bytes,
            args = self.args_bytes,
            queue = self.queue_bytes,
            output = self.output_bytes,
            total = self.total_bytes(),
            command = self.command.unwrap_or("NULL"),
            user = names.user,
            resp = self.resp,
            lib_name = names.lib_name,
            lib_ver = names.lib_ver,
        );
    }
}

/// Size of a command as RESP carries it.
fn request_bytes(args: Args<'_>) -> usize {
    let header = |number: usize| number.checked_ilog10().unwrap_or(0) as usize + 1 + 3;
    header(args.len())
        + args
            .iter()
            .map(|arg| header(arg.len()) + arg.len() + 2)
            .sum::<usize>()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use pantala_protocol::OwnedArgs;

    /// An ordinary client.
    pub fn example() -> View<'static> {
        View {
            id: 7,
            peer: "127.0.0.1:5000",
            local: "127.0.0.1:6379",
            fd: 8,
            unix: false,
            names: Names {
                name: "me".to_owned(),
                lib_name: "lib".to_owned(),
                lib_ver: "1.2".to_owned(),
                user: "default".to_owned(),
            },
            age_s: 100,
            idle_s: 10,
            db: 3,
            queued: -1,
            query_bytes: 26,
            args_bytes: 10,
            queue_bytes: 0,
            output_bytes: 0,
            monitor: false,
            no_evict: false,
            no_touch: false,
            subscriptions: [0; 3],
            waiting: false,
            command: Some("client|list"),
            resp: 2,
        }
    }

    fn line(view: &View<'_>) -> String {
        let mut out = String::new();
        view.write_line(&mut out);
        out
    }

    #[test]
    fn the_line_has_the_fields_that_tools_expect() {
        let total = example().total_bytes();
        assert_eq!(
            line(&example()),
            format!(
                "id=7 addr=127.0.0.1:5000 laddr=127.0.0.1:6379 fd=8 name=me age=100 idle=10 flags=N db=3 sub=0 psub=0 ssub=0 \
                 multi=-1 qbuf=26 qbuf-free=0 argv-mem=10 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem={total} events=r \
                 cmd=client|list user=default redir=-1 resp=2 lib-name=lib lib-ver=1.2\n"
            )
        );
        let fresh = View {
            command: None,
            output_bytes: 5,
            ..example()
        };
        assert!(line(&fresh).contains(" obl=5 oll=0 omem=5 "));
        assert!(line(&fresh).contains(" events=rw cmd=NULL "));
    }

    #[test]
    fn flags_stand_in_their_order() {
        let all = View {
            monitor: true,
            queued: 0,
            waiting: true,
            unix: true,
            no_evict: true,
            no_touch: true,
            subscriptions: [0, 0, 1],
            ..example()
        };
        assert_eq!(all.flags(), "OPxbUeT");
        assert_eq!(all.class(), ClientType::Pubsub);
        assert_eq!(example().flags(), "N");
    }

    #[test]
    fn a_request_is_as_long_as_on_the_wire() {
        let mut args = OwnedArgs::new();
        args.push(b"client");
        args.push(b"list");
        assert_eq!(
            request_bytes(args.as_args()),
            b"*2\r\n$6\r\nclient\r\n$4\r\nlist\r\n".len()
        );
        args.push(&[b'x'; 100]);
        args.push(b"");
        let longer = b"*4\r\n$6\r\nclient\r\n$4\r\nlist\r\n$100\r\n\r\n$0\r\n\r\n".len() + 100;
        assert_eq!(request_bytes(args.as_args()), longer);
    }

    #[test]
    fn types_have_old_and_new_names() {
        assert_eq!(ClientType::parse(b"SLAVE"), Some(ClientType::Replica));
        assert_eq!(ClientType::parse(b"primary"), Some(ClientType::Primary));
        assert_eq!(ClientType::parse(b"other"), None);
    }
}
