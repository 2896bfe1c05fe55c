//! Runs commands in this process, without a server: for tests of handlers and of their effects. Any family's tests may use it.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use pantala_commands::context::Reach;
use pantala_commands::{
    Command, Ctx, Effects, Error, KeyAt, Listening, Rng, Run, Walk, WalkHandler, families, keys,
};
use pantala_config::Settings;
use pantala_protocol::{Args, OwnedArgs, Proto, Reply};
use pantala_store::borrow::{Party, ShardSet, Wake};
use pantala_store::{Entry, Kind, Position, Store, StoreOptions};
use pantala_types::string::StrRef;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Nobody ever waits here.
struct NoWake;

impl Wake for NoWake {
    fn wake(&self, _: usize) {}
}

/// What a key holds, comparable between stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub kind: Kind,
    pub value: Vec<u8>,
    pub expiry_ms: Option<i64>,
}

/// One store with a clock that only the test moves.
pub struct Server {
    pub store: Store,
    pub settings: Settings,
    pub now_ms: i64,
    pub db: u16,
    pub proto: Proto,
    /// Commands that go from shard to shard find all shards held, as inside a transaction.
    pub held: bool,
    pub fx: Effects,
    rng: Rng,
}

/// What a command left behind.
#[derive(Debug, Default)]
pub struct Ran {
    pub reply: Vec<u8>,
    /// The canonical effects, as RESP arrays one after another.
    pub record: Vec<u8>,
    /// Names of the announced events, in order.
    pub events: Vec<&'static str>,
}

impl Server {
    pub fn new() -> Self {
        let options = StoreOptions {
            shards: 4,
            seed: Some(7),
            ..StoreOptions::for_threads(1, 0)
        };
        Self {
            store: Store::new(&options, Arc::new(NoWake)).expect("address space for a store"),
            settings: Settings::default(),
            now_ms: 1_700_000_000_000,
            db: 0,
            proto: Proto::Resp2,
            held: false,
            fx: Effects::default(),
            rng: Rng::new(1),
        }
    }

    /// Runs a command given as words split at spaces and answers its reply, readable in a test.
    pub fn say(&mut self, line: &str) -> String {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        readable(&self.run(&words).reply)
    }

    /// The same while somebody else has a shard; for commands that go from shard to shard.
    pub fn say_while_busy(&mut self, shard: u16, line: &str) -> String {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let args: OwnedArgs = words.iter().collect();
        let Some(Run::Walk(handler)) = find(words[0]).map(|command| command.run) else {
            panic!("{line} does not go from shard to shard");
        };
        let mut ran = Ran::default();
        let mut reply = Vec::new();
        let busy = self.store.try_borrow_one(shard).expect("a free shard");
        let mut walk = Walk {
            store: &self.store,
            reach: Reach::Each { party: None },
            db_index: self.db,
            now_ms: self.now_ms,
            reply: Reply::new(&mut ran.reply, self.proto),
            fx: &mut self.fx,
            settings: &self.settings,
            rng: &mut self.rng,
        };
        match handler(&mut walk, args.as_args()) {
            Ok(()) => reply = ran.reply,
            Err(error) => Reply::new(&mut reply, self.proto).error(error.message()),
        }
        drop(busy);
        readable(&reply)
    }

    /// Runs one command.
    pub fn run(&mut self, words: &[&[u8]]) -> Ran {
        let mut owned = OwnedArgs::new();
        words.iter().for_each(|word| owned.push(word));
        let args = owned.as_args();
        let mut ran = Ran::default();
        if let Err(error) = self.execute(args, &mut ran) {
            ran.reply.clear();
            Reply::new(&mut ran.reply, self.proto).error(error.message());
        }
        ran
    }

    fn execute(&mut self, args: Args<'_>, ran: &mut Ran) -> Result<(), Error> {
        let mut command = find(args.arg(0)).ok_or(Error::text("ERR unknown command"))?;
        if let Run::Container = command.run {
            let word = args.get(1).unwrap_or_default();
            let mut subcommands = command.subcommands.iter();
            command = subcommands
                .find(|sub| word.eq_ignore_ascii_case(sub.spec.name.as_bytes()))
                .ok_or(Error::text("ERR unknown subcommand"))?;
        }
        if !command.spec.arity_fits(args.len()) {
            return Err(Error::wrong_arity(command.spec.name));
        }
        let handler = match command.run {
            Run::Keys(handler) | Run::All(handler) => handler,
            Run::Walk(handler) => return self.walk(handler, args, ran),
            Run::Container => return Err(Error::text("ERR a container does not run")),
        };
        let mut positions = Vec::new();
        keys::positions(&command.spec, args, &mut positions);
        let keys: Vec<KeyAt> = positions
            .iter()
            .map(|&arg| KeyAt {
                arg,
                hash: self.store.hash(args.arg(arg as usize)),
            })
            .collect();
        let set: ShardSet = match command.run {
            Run::All(_) => all_shards(&self.store),
            _ => keys
                .iter()
                .map(|key| self.store.shard_of(key.hash))
                .collect(),
        };
        let mut space = self.store.borrow_blocking(&set, Party::new(0));
        self.fx.begin(Listening::RECORD | Listening::KEYS, self.db);
        let mut cx = Ctx {
            store: &self.store,
            space: &mut space,
            db_index: self.db,
            keys: &keys,
            now_ms: self.now_ms,
            reply: Reply::new(&mut ran.reply, self.proto),
            fx: &mut self.fx,
            settings: &self.settings,
            rng: &mut self.rng,
        };
        if let Some(cost) = command.cost_us {
            cost(&mut cx, args);
        }
        let done = handler(&mut cx, args);
        for removed in space.take_removed() {
            let (there, back) = (removed.db.to_string(), self.db.to_string());
            if removed.db != self.db {
                encode(&[b"SELECT", there.as_bytes()], &mut ran.record);
            }
            encode(&[b"DEL", &removed.key], &mut ran.record);
            if removed.db != self.db {
                encode(&[b"SELECT", back.as_bytes()], &mut ran.record);
            }
        }
        done?;
        ran.events
            .extend(self.fx.keys().iter().map(|modified| modified.event));
        if self.fx.changes() > 0 {
            if self.fx.is_verbatim() {
                encode(&args.iter().collect::<Vec<_>>(), &mut ran.record);
            } else {
                assert!(
                    !self.fx.record().is_empty(),
                    "a change without an effect: {:?}",
                    String::from_utf8_lossy(args.arg(0))
                );
                ran.record.extend_from_slice(self.fx.record());
            }
        } else {
            assert!(
                self.fx.record().is_empty(),
                "an effect without a change: {:?}",
                String::from_utf8_lossy(args.arg(0))
            );
        }
        Ok(())
    }

    fn walk(&mut self, handler: WalkHandler, args: Args<'_>, ran: &mut Ran) -> Result<(), Error> {
        self.fx.begin(Listening::RECORD | Listening::KEYS, self.db);
        let mut held;
        let reach = if self.held {
            held = self
                .store
                .borrow_blocking(&all_shards(&self.store), Party::new(0));
            Reach::Held(&mut held)
        } else {
            Reach::Each { party: None }
        };
        let mut walk = Walk {
            store: &self.store,
            reach,
            db_index: self.db,
            now_ms: self.now_ms,
            reply: Reply::new(&mut ran.reply, self.proto),
            fx: &mut self.fx,
            settings: &self.settings,
            rng: &mut self.rng,
        };
        handler(&mut walk, args)
    }

    /// Runs recorded effects; `SELECT` belongs to the session, which this is.
    pub fn replay(&mut self, record: &[u8]) {
        for words in decode(record) {
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            if words[0] == b"SELECT" {
                let db = std::str::from_utf8(words[1]).ok();
                self.db = db
                    .and_then(|text| text.parse().ok())
                    .expect("a recorded database");
                continue;
            }
            let ran = self.run(&words);
            assert!(
                !ran.reply.starts_with(b"-"),
                "{words:?} -> {:?}",
                String::from_utf8_lossy(&ran.reply)
            );
        }
    }

    /// All keys that have not expired, with what they hold.
    pub fn contents(&self) -> BTreeMap<Vec<u8>, Held> {
        let mut contents = BTreeMap::new();
        for shard in 0..self.store.shards() {
            let shard = u16::try_from(shard).expect("a shard's number");
            let mut space = self
                .store
                .borrow_blocking(&ShardSet::one(shard), Party::new(0));
            let part = space.shard_db(shard, self.db, self.now_ms);
            let mut next = Some(Position::START);
            while let Some(from) = next {
                next = part.scan(from, 1000, &mut |entry: Entry<'_>| {
                    if !entry.is_expired(self.now_ms) {
                        contents.insert(entry.key().to_vec(), held(entry));
                    }
                });
            }
        }
        contents
    }
}

fn readable(reply: &[u8]) -> String {
    String::from_utf8_lossy(reply)
        .replace("\r\n", " ")
        .trim_end()
        .to_owned()
}

fn all_shards(store: &Store) -> ShardSet {
    let count = u16::try_from(store.shards()).expect("a number of shards");
    (0..count).collect()
}

fn held(entry: Entry<'_>) -> Held {
    let value = match StrRef::of(entry) {
        Some(string) => {
            let mut bytes = Vec::new();
            string.append_to(&mut bytes);
            bytes
        }
        None => entry.payload().to_vec(),
    };
    Held {
        kind: entry.kind(),
        value,
        expiry_ms: entry.expiry_ms(),
    }
}

/// The command of that name, in any case.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    families::ALL
        .iter()
        .flat_map(|family| family.iter())
        .find(|command| name.eq_ignore_ascii_case(command.spec.name.as_bytes()))
}

fn encode(words: &[&[u8]], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// The commands of a record.
pub fn decode(mut record: &[u8]) -> Vec<Vec<Vec<u8>>> {
    fn header(record: &mut &[u8]) -> usize {
        let end = record
            .iter()
            .position(|&byte| byte == b'\r')
            .expect("a line's end");
        let number = std::str::from_utf8(&record[1..end])
            .ok()
            .and_then(|text| text.parse().ok())
            .expect("a number");
        *record = &record[end + 2..];
        number
    }
    let mut commands = Vec::new();
    while !record.is_empty() {
        let words = (0..header(&mut record)).map(|_| {
            let len = header(&mut record);
            let word = record[..len].to_vec();
            record = &record[len + 2..];
            word
        });
        commands.push(words.collect());
    }
    commands
}
