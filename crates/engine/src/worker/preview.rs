//! Group prefetch across connections. At pipeline 1 a batch is one command, and its look-up would wait for memory three times. But
//! when the server is busy, many connections have something in the same turn: the reactor shows all of it before it hands out the
//! first piece, and what the commands will need is asked for together. Only a hint: nothing is executed or kept here.

use super::Core;
use crate::invoke;
use crate::registry::{Lookup, Runner};
use crate::session::State;
use crate::shared::Shared;
use pantala_protocol::{Args, Parsed, Parser, Span};
use pantala_reactor::ConnId;
use pantala_store::KeyHash;

/// A longer piece holds several commands or a large value: its batch prefetches for itself.
const SHORT_BYTES: usize = 512;

/// What the commands of this turn will look up.
#[derive(Default)]
pub(super) struct Preview {
    keys: Vec<(KeyHash, u16)>,
    spans: Vec<Span>,
    found: Vec<pantala_commands::KeyAt>,
}

impl Core {
    /// Looks at the first command of a piece that will be handed out in this turn.
    pub(super) fn preview(&mut self, shared: &Shared, conn: ConnId, bytes: &[u8]) {
        let Some(session) = self.sessions.get(conn) else {
            return;
        };
        let plain = session.state == State::Ready
            && session.memcached.is_none()
            && session.backlog() == 0
            && bytes.len() <= SHORT_BYTES;
        if !plain {
            return;
        }
        let preview = &mut self.preview;
        preview.spans.clear();
        preview.found.clear();
        let mut at = 0;
        let parsed = Parser::new().next(bytes, &mut at, &mut preview.spans, &self.limits);
        let Parsed::Command { spans } = parsed else {
            return;
        };
        let args = Args::new(bytes, &preview.spans[spans]);
        if let Lookup::Found(entry) = shared.registry.lookup(args)
            && matches!(entry.runner, Runner::Keys(_))
            && entry.spec.arity_fits(args.len())
        {
            let positions = &mut self.scratch.positions;
            invoke::keys_of(&shared.store, entry, args, positions, &mut preview.found);
            for key in &preview.found {
                shared.store.prefetch_shard(key.hash);
                preview.keys.push((key.hash, session.db));
            }
        }
    }

    /// All pieces of this turn were looked at.
    pub(super) fn previewed(&mut self, shared: &Shared) {
        for &(hash, db) in &self.preview.keys {
            shared.store.prefetch_line(hash, db);
        }
        for &(hash, db) in &self.preview.keys {
            shared.store.prefetch_entry(hash, db);
        }
        self.preview.keys.clear();
    }
}
