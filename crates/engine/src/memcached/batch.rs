//! Parses every request that the input holds, up to a limit, and brings the memory that they need closer (group prefetch, as for
//! Redis's commands).

use super::held::DB;
use crate::invoke;
use crate::shared::Shared;
use pantala_borrow::ShardSet;
use pantala_commands::Effects;
use pantala_protocol::memcached::{McError, McLimits, McParsed, McParser, McRequest};
use pantala_store::{KeyHash, Space, Store};
use std::ops::Range;

/// Most requests per batch: enough to overlap the waits for memory, few enough that what was prefetched is still in the cache.
const REQUESTS_MAX: usize = 32;
/// Most keys that are prefetched at once, and most keys of a retrieval that are borrowed together.
pub(super) const KEYS_MAX: usize = 32;

/// Buffers that are used again for each call, by all sessions of a worker.
#[derive(Default)]
pub struct Buffers {
    /// Empty between calls; only its memory is kept.
    items: Vec<Item<'static>>,
    pub(super) hashes: Vec<KeyHash>,
    pub(super) set: ShardSet,
    pub(super) fx: Effects,
    /// All effects so far, where a test wants them.
    #[cfg(test)]
    pub(super) recorded: Option<Vec<u8>>,
}

/// What a piece of the input asks for.
pub(super) enum Wanted<'a> {
    Request(McRequest<'a>),
    Refusal(McError<'a>),
}

/// A request, or a line that is none.
pub(super) struct Item<'a> {
    /// Offset of its first byte in the input.
    pub(super) start: usize,
    pub(super) wanted: Wanted<'a>,
    /// Hashes of its keys, of the first `KEYS_MAX` ones of a retrieval, as a range of [`Buffers::hashes`].
    pub(super) keys: Range<usize>,
}

/// Why parsing stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Parsing {
    /// The batch is full; more may follow.
    More,
    /// The last item is a refused request, whose data are to be skipped first.
    Refused,
    /// The input holds no further whole request.
    Exhausted,
}

impl Buffers {
    /// Parses requests from `input[*at..]`, and moves `*at` behind them. The items are to be given back with [`Buffers::recycle`].
    pub(super) fn fill<'i>(
        &mut self,
        parser: &mut McParser,
        store: &Store,
        input: &'i [u8],
        at: &mut usize,
        limits: &McLimits,
    ) -> (Vec<Item<'i>>, Parsing) {
        let mut items = shorten(std::mem::take(&mut self.items));
        self.hashes.clear();
        while items.len() < REQUESTS_MAX && self.hashes.len() < KEYS_MAX {
            let start = *at;
            let wanted = match parser.next(input, at, limits) {
                McParsed::NeedMore => return (items, Parsing::Exhausted),
                McParsed::Request(request) => Wanted::Request(request),
                McParsed::Error(error) => Wanted::Refusal(error),
            };
            let from = self.hashes.len();
            each_key(&wanted, |key| self.hashes.push(store.hash(key)));
            let closes = matches!(
                &wanted,
                Wanted::Request(McRequest::Quit) | Wanted::Refusal(McError { close: true, .. })
            );
            items.push(Item {
                start,
                wanted,
                keys: from..self.hashes.len(),
            });
            if closes {
                return (items, Parsing::Exhausted);
            }
            // Behind a line nothing else can be half received.
            if parser.in_request() {
                return (items, Parsing::Refused);
            }
        }
        (items, Parsing::More)
    }

    /// Starts collecting the effects of a command whose shards are in `space`.
    #[inline]
    pub(super) fn begin(&mut self, shared: &Shared, space: &Space<'_>) {
        let listening = invoke::listening(shared, space);
        #[cfg(test)]
        let listening = if self.recorded.is_some() {
            listening | pantala_commands::Listening::RECORD
        } else {
            listening
        };
        self.fx.begin(listening, DB);
    }

    /// Hands the effects on to those who listen, while the shards are still held.
    #[inline]
    pub(super) fn publish(&mut self, shared: &Shared, party: usize, space: &mut Space<'_>) {
        #[cfg(test)]
        if let Some(recorded) = &mut self.recorded {
            recorded.extend_from_slice(self.fx.record());
        }
        invoke::publish(shared, party, &self.fx, space);
    }

    /// Takes the memory of the items back.
    pub(super) fn recycle(&mut self, items: Vec<Item<'_>>) {
        self.items = shorten(items);
    }
}

/// Asks the memory system for what hashes lead to. One key alone would only wait twice.
pub(super) fn prefetch(store: &Store, hashes: &[KeyHash]) {
    if hashes.len() < 2 {
        return;
    }
    for &hash in hashes {
        store.prefetch_shard(hash);
    }
    for &hash in hashes {
        store.prefetch_line(hash, DB);
    }
    for &hash in hashes {
        store.prefetch_entry(hash, DB);
    }
}

/// Calls `visit` with the keys that are hashed ahead.
#[inline]
fn each_key(wanted: &Wanted<'_>, mut visit: impl FnMut(&[u8])) {
    match wanted {
        Wanted::Request(request) => match request {
            McRequest::Get(get) => get.keys.clone().take(KEYS_MAX).for_each(visit),
            McRequest::Store(store) => visit(store.key),
            McRequest::Meta(meta) => visit(meta.key.as_bytes()),
            McRequest::Arithmetic(arithmetic) => visit(arithmetic.key),
            McRequest::Touch(touch) => visit(touch.key),
            McRequest::Delete(delete) => visit(delete.key),
            McRequest::MetaDebug(key) => visit(key.as_bytes()),
            McRequest::Stats(_)
            | McRequest::FlushAll { .. }
            | McRequest::Version
            | McRequest::Verbosity { .. }
            | McRequest::CacheMemlimit { .. }
            | McRequest::Quit
            | McRequest::Watch(_)
            | McRequest::MetaNoop => {}
        },
        Wanted::Refusal(error) => {
            if let Some(key) = &error.unlink {
                visit(key.as_bytes());
            }
        }
    }
}

/// An empty vector for items of another lifetime, in the same memory: collecting into a vector of the same layout does not
/// allocate.
fn shorten<'b>(mut items: Vec<Item<'_>>) -> Vec<Item<'b>> {
    items.clear();
    items.into_iter().map_while(|_| None::<Item<'b>>).collect()
}
