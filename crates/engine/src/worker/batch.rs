//! Parses every command that the input holds, up to a limit, and brings the memory that they need closer (group prefetch).
//!
//! A look-up in a table of a million keys waits for memory three times: shard, table line, entry. One after another that costs
//! some 400 ns per command; asked for in groups, the waits overlap and a command costs about 100 ns.

use crate::invoke;
use crate::registry::{CommandId, Entry, Lookup, Registry, Runner};
use crate::session::Session;
use crate::shared::Shared;
use pantala_commands::KeyAt;
use pantala_protocol::Limits;
use pantala_protocol::{Args, OwnedArgs, Parsed, ProtocolError, Span};

/// Most commands per batch: enough to overlap the waits for memory, few enough that what was prefetched is still in the cache.
pub const BATCH_MAX: usize = 32;

/// Places for arguments that are kept from batch to batch.
const KEPT_MAX: usize = 16 * 1024;

/// Which command an item names.
#[derive(Clone, Copy)]
pub enum Named {
    /// One on keys, with the right number of arguments.
    Keys(CommandId),
    /// Any other, not yet looked at.
    Command(CommandId),
    /// None.
    Unknown,
    /// A container with an unknown subcommand.
    UnknownSubcommand(CommandId),
}

/// One parsed command.
pub struct Item {
    /// Offset of its first byte in the input.
    pub start: usize,
    /// Which command.
    pub named: Named,
    /// Its keys, as a range of [`Batch::keys`].
    keys: (u32, u32),
    /// Its arguments, as a range of [`Batch::spans`]; `decoded` when they were decoded from a quoted inline command.
    spans: (u32, u32),
    decoded: Option<Box<OwnedArgs>>,
}

/// The parsed commands of one piece of input.
#[derive(Default)]
pub struct Batch {
    /// In order.
    pub items: Vec<Item>,
    /// Keys of all items.
    pub keys: Vec<KeyAt>,
    /// Offset behind the last item.
    pub end: usize,
    spans: Vec<Span>,
}

/// Why parsing stopped.
pub enum Parsing {
    /// The batch is full; more may follow at the offset.
    More,
    /// The input holds no further whole command.
    Exhausted,
    /// The stream is broken behind the parsed commands.
    Broken(ProtocolError),
}

impl Batch {
    /// Parses commands from `input[*at..]`, at most `limit`; `*at` moves behind them.
    #[expect(
        clippy::too_many_arguments,
        reason = "the pieces of a worker that parsing touches, borrowed apart"
    )]
    pub fn fill(
        &mut self,
        shared: &Shared,
        session: &mut Session,
        positions: &mut Vec<u32>,
        limits: &Limits,
        input: &[u8],
        at: &mut usize,
        limit: usize,
    ) -> Parsing {
        self.items.clear();
        self.keys.clear();
        self.spans.clear();
        // What one command with very many arguments needed is not kept for all others.
        if self.spans.capacity() > KEPT_MAX {
            self.spans.shrink_to(KEPT_MAX);
            self.keys.shrink_to(KEPT_MAX);
        }
        self.end = *at;
        let mut last = Last::default();
        while self.items.len() < limit {
            let start = *at;
            let (spans, decoded) = match session.parser.next(input, at, &mut self.spans, limits) {
                Parsed::Command { spans } => ((spans.start as u32, spans.end as u32), None),
                Parsed::Decoded(args) => ((0, 0), Some(args)),
                Parsed::Empty => continue,
                Parsed::NeedMore => return Parsing::Exhausted,
                Parsed::Error(error) => return Parsing::Broken(error),
            };
            let args = args_at(&decoded, spans, &self.spans, input);
            let first = self.keys.len() as u32;
            let name = match (&decoded, self.spans.get(spans.0 as usize)) {
                (None, Some(span)) => span_of(input, *span),
                _ => &[],
            };
            let found = last.find(&shared.registry, name, args);
            let named = match found {
                Lookup::Found(entry) => {
                    if matches!(entry.runner, Runner::Keys(_)) && entry.spec.arity_fits(args.len())
                    {
                        invoke::keys_of(&shared.store, entry, args, positions, &mut self.keys);
                        Named::Keys(entry.id)
                    } else {
                        Named::Command(entry.id)
                    }
                }
                Lookup::Unknown => Named::Unknown,
                Lookup::UnknownSubcommand(container) => Named::UnknownSubcommand(container.id),
            };
            self.items.push(Item {
                start,
                named,
                keys: (first, self.keys.len() as u32),
                spans,
                decoded,
            });
            self.end = *at;
        }
        Parsing::More
    }

    /// Asks the memory system for what the batch will touch. One key alone would only wait twice.
    pub fn prefetch(&self, shared: &Shared, db: u16) {
        if self.keys.len() < 2 {
            return;
        }
        for key in &self.keys {
            shared.store.prefetch_shard(key.hash);
        }
        for key in &self.keys {
            shared.store.prefetch_line(key.hash, db);
        }
        for key in &self.keys {
            shared.store.prefetch_entry(key.hash, db);
        }
    }

    /// An item's arguments.
    #[inline]
    pub fn args<'b>(&'b self, item: &'b Item, input: &'b [u8]) -> Args<'b> {
        args_at(&item.decoded, item.spans, &self.spans, input)
    }

    /// An item's keys.
    #[inline]
    pub fn keys(&self, item: &Item) -> &[KeyAt] {
        &self.keys[item.keys.0 as usize..item.keys.1 as usize]
    }
}

/// The last command that was looked up: pipelines repeat the same command, whose name then leads where it led before.
#[derive(Default)]
struct Last<'i, 'r> {
    name: &'i [u8],
    entry: Option<&'r Entry>,
}

impl<'i, 'r> Last<'i, 'r> {
    /// What `args` name; `name` is their first one, empty when it does not lie in the input.
    #[inline]
    fn find(&mut self, registry: &'r Registry, name: &'i [u8], args: Args<'_>) -> Lookup<'r> {
        // Names are so short that a loop beats a call.
        let same = name.len() == self.name.len() && name.iter().zip(self.name).all(|(a, b)| a == b);
        if let (true, Some(entry)) = (same, self.entry) {
            return Lookup::Found(entry);
        }
        let found = registry.lookup(args);
        if let Lookup::Found(entry) = found
            && !name.is_empty()
            && entry.parent.is_none()
            && entry.subcommands.is_empty()
        {
            (self.name, self.entry) = (name, Some(entry));
        }
        found
    }
}

#[inline]
fn span_of(input: &[u8], span: Span) -> &[u8] {
    &input[span.start as usize..span.start as usize + span.len as usize]
}

#[inline]
fn args_at<'b>(
    decoded: &'b Option<Box<OwnedArgs>>,
    (first, end): (u32, u32),
    spans: &'b [Span],
    input: &'b [u8],
) -> Args<'b> {
    match decoded {
        None => Args::new(input, &spans[first as usize..end as usize]),
        Some(args) => args.as_args(),
    }
}
