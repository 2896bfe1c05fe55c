//! Sessions over a store in this process. What memcached 1.6.18 answered to the same requests stands in `transcripts/`.

use super::{Buffers, Context, Session, Stop};
use crate::clients::Arrival;
use crate::shared::{Shared, StartFacts, all_commands};
use pantala_commands::{Effects, Listening};
use pantala_config::Settings;
use pantala_reactor::ConnId;
use pantala_store::borrow::{Attempt, Party, ShardSet};
use pantala_store::{Entry, McMeta, PutMeta, WatchFlag};
use pantala_types::string;
use std::collections::BTreeMap;
use std::sync::Arc;

mod effects;
mod flow;
mod transcripts;
mod watch;

const NOW: i64 = 1_800_000_000_000;

/// A server with one client.
struct Server {
    shared: Arc<Shared>,
    settings: Settings,
    session: Session,
    buffers: Buffers,
    now_ms: i64,
    has_room: bool,
}

impl Server {
    fn new() -> Self {
        let settings = Settings::default();
        let registry = all_commands(&[]).expect("the commands make a table");
        let facts = StartFacts::new(1, None);
        let shared = Arc::new(
            Shared::new(settings.clone(), registry, facts, 0).expect("address space for a store"),
        );
        // The numbers that the transcripts invent are older than all that are given.
        for _ in 0..10 {
            shared.store.next_cas();
        }
        let session = Self::session(&shared);
        Self {
            shared,
            settings,
            session,
            buffers: Buffers::default(),
            now_ms: NOW,
            has_room: true,
        }
    }

    fn session(shared: &Shared) -> Session {
        Session::new(shared.clients.add(Arrival {
            worker: 0,
            conn: ConnId::from_u64(1),
            peer: "127.0.0.1:1".to_owned(),
            local: "127.0.0.1:2".to_owned(),
            fd: 3,
            unix: false,
            memcached: true,
            now_ms: NOW,
        }))
    }

    /// One call of the session: replies, bytes done with, why it stopped.
    fn execute(&mut self, input: &[u8]) -> (Vec<u8>, usize, Stop) {
        let mut out = Vec::new();
        let has_room = self.has_room;
        let cx = Context {
            shared: &self.shared,
            settings: &self.settings,
            party: 0,
            now_ms: self.now_ms,
            buffers: &mut self.buffers,
            out: &mut out,
            may_grow: &mut || has_room,
        };
        let (done, stop) = self.session.execute(cx, input);
        (out, done, stop)
    }

    /// Whole requests that are executed at once.
    fn say(&mut self, input: &str) -> String {
        let (out, done, stop) = self.execute(input.as_bytes());
        assert_eq!((done, stop), (input.len(), Stop::NeedMore), "{input}");
        String::from_utf8(out).expect("replies of texts are texts")
    }

    /// Works on a key as another client would.
    fn on_key<R>(&self, key: &str, work: impl FnOnce(&mut pantala_store::Slot<'_>) -> R) -> R {
        let store = &self.shared.store;
        let key = store.key(key.as_bytes());
        let mut space = store
            .try_borrow_one(store.shard_of(key.hash))
            .expect("nobody else borrows");
        let mut db = space.db(0, self.now_ms);
        work(&mut db.slot_quiet(&key))
    }

    fn mc(&self, key: &str) -> Option<McMeta> {
        self.on_key(key, |slot| slot.entry().and_then(Entry::mc))
    }
}
