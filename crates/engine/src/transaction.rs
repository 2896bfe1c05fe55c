//! `MULTI`, `EXEC`, `WATCH`: a queue of commands that runs while the shards of all its keys, and of the watched ones, are held.

use crate::registry::{CommandId, Entry, Registry, Runner};
use crate::session::Session;
use crate::shared::Shared;
use pantala_borrow::{Attempt, ShardSet};
use pantala_commands::KeyAt;
use pantala_protocol::{Args, OwnedArgs};
use pantala_store::{Key, KeyHash, Space, WatchFlag};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// One queued command.
pub struct Queued {
    /// Which.
    pub command: CommandId,
    /// Its arguments.
    pub args: OwnedArgs,
    /// Its keys, as a range of [`Queue::keys`].
    pub keys: Range<u32>,
}

/// What a queued command takes beside its arguments: its place, and the headers of its two allocations.
const PER_COMMAND_BYTES: usize = size_of::<Queued>() + 2 * 16;

/// The transaction that a client is queueing.
#[derive(Default)]
pub struct Queue {
    /// Commands in order.
    pub commands: Vec<Queued>,
    /// Keys of all commands with their hashes.
    pub keys: Vec<KeyAt>,
    /// Bytes of the queued arguments.
    pub bytes: usize,
    /// A command was refused while queueing: `EXEC` will refuse the whole.
    pub refused: bool,
    /// A queued command goes over all shards.
    pub needs_all: bool,
    /// A queued command may write.
    pub writes: bool,
    /// A queued command needs memory.
    pub needs_memory: bool,
}

impl Queue {
    /// Appends a command with its `keys`.
    pub fn push(&mut self, entry: &Entry, args: Args<'_>, keys: &[KeyAt]) {
        let first = self.keys.len() as u32;
        self.keys.extend_from_slice(keys);
        self.bytes += PER_COMMAND_BYTES
            + size_of_val(keys)
            + args
                .iter()
                .map(|arg| arg.len() + size_of::<(u32, u32)>())
                .sum::<usize>();
        self.needs_all |= matches!(entry.runner, Runner::All(_) | Runner::Walk(_));
        self.writes |= entry.spec.flags.intersects(
            pantala_commands::Flags::WRITE.union(pantala_commands::Flags::MAY_REPLICATE),
        );
        self.needs_memory |= entry.spec.flags.contains(pantala_commands::Flags::DENYOOM);
        self.commands.push(Queued {
            command: entry.id,
            args: args.into(),
            keys: first..self.keys.len() as u32,
        });
    }

    /// The shards that `EXEC` must hold.
    pub fn shards(&self, shared: &Shared, watching: Option<&Watching>, set: &mut ShardSet) {
        set.clear();
        if self.needs_all {
            (0..shared.store.shards() as u16).for_each(|shard| set.push(shard));
        } else {
            for key in &self.keys {
                set.push(shared.store.shard_of(key.hash));
            }
            for watched in watching.iter().flat_map(|watching| &watching.keys) {
                set.push(shared.store.shard_of(watched.hash));
            }
        }
        set.seal();
    }
}

/// One watched key.
pub struct Watched {
    /// Its database.
    pub db: u16,
    /// Its bytes.
    pub key: Box<[u8]>,
    /// Its hash.
    pub hash: KeyHash,
}

impl Watched {
    /// The key as the store takes it.
    pub fn key(&self) -> Key<'_> {
        Key {
            bytes: &self.key,
            hash: self.hash,
        }
    }
}

/// The keys that a client watches.
pub struct Watching {
    /// Set when one of them was modified.
    pub flag: Arc<WatchFlag>,
    /// Which.
    pub keys: Vec<Watched>,
}

impl Watching {
    /// No key yet.
    pub fn new() -> Self {
        Self {
            flag: WatchFlag::new(),
            keys: Vec::new(),
        }
    }
    /// Whether a watched key was modified. Final only while its shard is held.
    pub fn is_dirty(&self) -> bool {
        self.flag.is_dirty()
    }
}

impl Default for Watching {
    fn default() -> Self {
        Self::new()
    }
}

/// Leaves a transaction: queue and watched keys are forgotten.
pub fn discard(shared: &Shared, session: &mut Session, held: Option<&mut Space<'_>>) {
    session.queue = None;
    session.card.queued.store(-1, Relaxed);
    session.card.queue_bytes.store(0, Relaxed);
    unwatch(shared, session, held);
}

/// Forgets the watched keys. Those whose shards are busy (or not in `held`) are forgotten lazily: a mark on a dropped flag is harmless, and
/// the store drops flags that nobody else holds when it next meets them.
pub fn unwatch(shared: &Shared, session: &mut Session, held: Option<&mut Space<'_>>) {
    let Some(watching) = session.watching.take() else {
        return;
    };
    session.card.watched.store(0, Relaxed);
    match held {
        Some(space) => {
            for watched in &watching.keys {
                if space.holds(shared.store.shard_of(watched.hash)) {
                    space.unwatch(watched.db, &watched.key(), &watching.flag);
                }
            }
        }
        None => {
            for watched in &watching.keys {
                let shard = ShardSet::one(shared.store.shard_of(watched.hash));
                if let Ok(mut space) = shared.store.try_borrow(&shard, &mut Attempt::new()) {
                    space.unwatch(watched.db, &watched.key(), &watching.flag);
                }
            }
        }
    }
}

/// Whether a command is executed at once inside `MULTI` instead of being queued.
pub fn runs_inside_multi(registry: &Registry, entry: &Entry) -> bool {
    entry.parent.is_none()
        && std::ptr::eq(registry.entry(entry.id), entry)
        && matches!(
            entry.spec.name,
            "exec" | "discard" | "multi" | "watch" | "quit" | "reset"
        )
}
