//! A memcached connection: takes bytes, executes the requests in them in order, and says why it stopped.

use super::batch::{Buffers, Item, KEYS_MAX, Parsing, Wanted, prefetch};
use super::counters::count;
use super::held::{Env, Held};
use super::item::{WRONG_TYPE, WrongType};
use super::{classic, flush, meta, meta_get, retrieve, statistics, watchers};
use crate::clients::Card;
use crate::shared::Shared;
use crate::stats::add;
use pantala_borrow::{Attempt, Party, ShardId};
use pantala_config::Settings;
use pantala_protocol::memcached::{
    Get, McError, McLimits, McParser, McRequest, Meta, MetaVerb, write_line,
};
use pantala_store::{Key, KeyHash, Space};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Replies beyond this many bytes are sent before the session goes on.
const OUT_MAX_BYTES: usize = 256 * 1024;

/// What a worker lends to a session for one call.
pub struct Context<'a> {
    /// What all threads share.
    pub shared: &'a Arc<Shared>,
    /// Configuration in force.
    pub settings: &'a Settings,
    /// Party (index) of the worker.
    pub party: usize,
    /// Unix time in ms, one reading per call.
    pub now_ms: i64,
    /// The worker's buffers for this protocol.
    pub buffers: &'a mut Buffers,
    /// Where the replies go.
    pub out: &'a mut Vec<u8>,
    /// Whether more may be stored; makes room if the policy allows. Called inside the gate, without shards, before anything that stores.
    pub may_grow: &'a mut dyn FnMut() -> bool,
}

/// Why a session stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// All whole requests are executed.
    NeedMore,
    /// The connection is to be closed once the replies are sent; the rest of the input is void.
    Close,
    /// This shard is busy. The request at the returned offset waits: call again when the shard is given back.
    Busy(ShardId),
    /// The gate is closed: call again in the next turn.
    Again,
    /// Writes are paused (`CLIENT PAUSE`): call again when the pause is over.
    Paused,
    /// There are more than 256 KiB of replies: call again when they are sent.
    Full,
}

/// One memcached client.
pub struct Session {
    parser: McParser,
    /// Data of a refused request are still to be skipped.
    skipping: bool,
    /// Keys of the retrieval at hand that are answered: a long one is answered in parts.
    answered: usize,
    /// Failures to borrow of the request at hand.
    attempt: Attempt,
    counted: bool,
    /// It watches: what it says is not listened to any more.
    watching: bool,
    card: Arc<Card>,
}

/// The pieces of a [`Context`] that change hands together.
struct Call<'c> {
    env: Env<'c>,
    settings: &'c Settings,
    buffers: &'c mut Buffers,
    out: &'c mut Vec<u8>,
    may_grow: &'c mut dyn FnMut() -> bool,
}

/// What became of a request.
enum Step {
    /// It is answered.
    Done,
    /// It is answered, and is the connection's last.
    Close,
    /// It is to be executed (or gone on with) later.
    Wait(Stop),
}

impl From<ShardId> for Step {
    fn from(shard: ShardId) -> Self {
        Self::Wait(Stop::Busy(shard))
    }
}

impl Session {
    /// A fresh session for the client behind `card`.
    #[must_use]
    pub fn new(card: Arc<Card>) -> Self {
        Self {
            parser: McParser::new(),
            skipping: false,
            answered: 0,
            attempt: Attempt::new(),
            counted: false,
            watching: false,
            card,
        }
    }

    /// What others may see of this client.
    #[must_use]
    pub fn card(&self) -> &Arc<Card> {
        &self.card
    }

    /// How many more bytes are known to be missing, so that the buffer can be enlarged once.
    #[must_use]
    pub fn needs(&self) -> Option<usize> {
        self.parser.needs()
    }

    /// Executes the requests in `input`, and says how many bytes are done with and why it stopped. The caller keeps the other bytes and
    /// calls again with them in front.
    pub fn execute(&mut self, cx: Context<'_>, input: &[u8]) -> (usize, Stop) {
        if self.watching {
            return (input.len(), Stop::NeedMore);
        }
        let shared: &Shared = cx.shared;
        let counters = shared.memcached.counters(cx.party);
        if !self.counted {
            self.counted = true;
            count(&counters.connections);
        }
        let item_bytes_max =
            usize::try_from(cx.settings.memcached_item_size_max_bytes).unwrap_or(usize::MAX);
        let before = cx.out.len();
        let mut call = Call {
            env: Env {
                shared,
                counters,
                party: cx.party,
                now_ms: cx.now_ms,
                fd: self.card.fd,
                item_bytes_max,
            },
            settings: cx.settings,
            buffers: cx.buffers,
            out: cx.out,
            may_grow: cx.may_grow,
        };
        let (mut done, stop) = self.run(&mut call, input);
        if self.watching {
            done = input.len();
        }
        add(&counters.bytes_read, done as u64);
        add(
            &counters.bytes_written,
            call.out.len().saturating_sub(before) as u64,
        );
        (done, stop)
    }

    fn run(&mut self, call: &mut Call<'_>, input: &[u8]) -> (usize, Stop) {
        let limits = McLimits {
            item_bytes: call.env.item_bytes_max,
            ..McLimits::default()
        };
        let store = call.env.store();
        let mut at = 0;
        loop {
            self.skip_refused(input, &mut at);
            if self.skipping {
                return (at, Stop::NeedMore);
            }
            let (items, parsing) =
                call.buffers
                    .fill(&mut self.parser, store, input, &mut at, &limits);
            prefetch(store, &call.buffers.hashes);
            let stopped = self.run_batch(call, &items);
            let rest = stopped.and_then(|(done, _)| items.get(done).map(|item| item.start));
            call.buffers.recycle(items);
            if let Some(start) = rest {
                // What the parser knew of a request further on is void: it will see the bytes again.
                self.parser = McParser::new();
                at = start;
            } else {
                self.skipping = parsing == Parsing::Refused;
            }
            match (stopped, parsing) {
                (Some((_, stop)), _) => return (at, stop),
                (None, Parsing::Exhausted) => return (at, Stop::NeedMore),
                (None, Parsing::More | Parsing::Refused) => {}
            }
        }
    }

    /// Moves `*at` over data that were refused. The parser does this too, but then nobody knows where the next request begins; so it
    /// is shown blanks in their place, of which it takes as many as there are to skip.
    fn skip_refused(&mut self, input: &[u8], at: &mut usize) {
        static BLANKS: [u8; 4096] = [b' '; 4096];
        let limits = McLimits {
            line_bytes: BLANKS.len(),
            ..McLimits::default()
        };
        while self.skipping && *at < input.len() {
            let shown = &BLANKS[..BLANKS.len().min(input.len() - *at)];
            let mut skipped = 0;
            // It finds no line in blanks.
            let _ = self.parser.next(shown, &mut skipped, &limits);
            *at += skipped;
            if skipped < shown.len() {
                self.parser = McParser::new();
                self.skipping = false;
            }
        }
    }

    /// Executes a batch in order. `Some`: it stopped, with so many items done.
    fn run_batch(&mut self, call: &mut Call<'_>, items: &[Item<'_>]) -> Option<(usize, Stop)> {
        if items.is_empty() {
            return None;
        }
        let env = call.env;
        let Ok(_inside) = env.store().gate().enter(Party::new(env.party)) else {
            return Some((0, Stop::Again));
        };
        if let Err(shard) = flush::flush_if_due(env, call.buffers, &mut self.attempt) {
            return Some((0, Stop::Busy(shard)));
        }
        let mut done = 0;
        let mut stopped = None;
        for item in items {
            match self.step(call, item) {
                Step::Done => done += 1,
                Step::Close => {
                    done += 1;
                    stopped = Some(Stop::Close);
                    break;
                }
                Step::Wait(stop) => {
                    stopped = Some(stop);
                    break;
                }
            }
            if self.watching {
                stopped = Some(Stop::NeedMore);
                break;
            }
            if call.out.len() > OUT_MAX_BYTES {
                stopped = Some(Stop::Full);
                break;
            }
        }
        let executed = done as u64;
        add(&env.shared.stats.party(env.party).executed, executed);
        self.card
            .commands
            .store(self.card.commands.load(Relaxed) + executed, Relaxed);
        self.card.active_ms.store(env.now_ms, Relaxed);
        stopped.map(|stop| (done, stop))
    }

    fn step(&mut self, call: &mut Call<'_>, item: &Item<'_>) -> Step {
        let request = match &item.wanted {
            Wanted::Request(request) => request,
            Wanted::Refusal(error) => return self.refuse(call, item, error),
        };
        let env = call.env;
        if writes(request) && env.shared.pause.holds(true, env.now_ms).is_some() {
            return Step::Wait(Stop::Paused);
        }
        if let McRequest::Get(get) = request {
            return self.retrieve(call, get, item);
        }
        let Some(&hash) = call.buffers.hashes.get(item.keys.start) else {
            return self.keyless(call, request);
        };
        let mut with_key = |bytes: &[u8], run: &mut dyn FnMut(&mut Held<'_, '_>, &Key<'_>)| {
            self.with_key(call, Key { bytes, hash }, stores(request), run)
        };
        let result = match request {
            McRequest::Store(store) => with_key(store.key, &mut |held, key| {
                classic::store(held, key, store);
            }),
            McRequest::Arithmetic(arithmetic) => with_key(arithmetic.key, &mut |held, key| {
                classic::arithmetic(held, key, arithmetic);
            }),
            McRequest::Touch(touch) => with_key(touch.key, &mut |held, key| {
                classic::touch(held, key, touch);
            }),
            McRequest::Delete(delete) => with_key(delete.key, &mut |held, key| {
                classic::delete(held, key, delete);
            }),
            McRequest::Meta(meta) => with_key(meta.key.as_bytes(), &mut |held, key| {
                run_meta(held, key, meta);
            }),
            McRequest::MetaDebug(name) => with_key(name.as_bytes(), &mut |held, key| {
                count(&held.env.counters.cmd_meta);
                meta::debug(held, key);
            }),
            _ => return self.keyless(call, request),
        };
        result.map_or_else(Step::from, |()| Step::Done)
    }

    /// A line that is no request.
    fn refuse(&mut self, call: &mut Call<'_>, item: &Item<'_>, error: &McError<'_>) -> Step {
        if let (Some(key), Some(&hash)) = (&error.unlink, call.buffers.hashes.get(item.keys.start))
        {
            let bytes = key.as_bytes();
            // The old value goes too, so that no outdated one is served.
            let removed = self.with_key(call, Key { bytes, hash }, false, &mut |held, key| {
                held.remove(key);
            });
            if let Err(shard) = removed {
                return shard.into();
            }
            watchers::too_large(call.env, key.as_bytes());
            count(&call.env.counters.store_too_large);
        }
        error.write_reply(call.out);
        if error.close { Step::Close } else { Step::Done }
    }

    /// Runs a command on one key while its shard is borrowed. `Err`: this shard is busy.
    #[inline]
    fn with_key(
        &mut self,
        call: &mut Call<'_>,
        key: Key<'_>,
        stores: bool,
        run: &mut dyn FnMut(&mut Held<'_, '_>, &Key<'_>),
    ) -> Result<(), ShardId> {
        let env = call.env;
        let has_room = !stores || (call.may_grow)();
        let mut space = self.borrow(call, &[key.hash])?;
        let buffers = &mut *call.buffers;
        buffers.begin(env.shared, &space);
        watchers::fetched(env, &mut space, &key);
        run(
            &mut Held {
                env,
                space: &mut space,
                fx: &mut buffers.fx,
                out: call.out,
                has_room,
            },
            &key,
        );
        buffers.publish(env.shared, env.party, &mut space);
        Ok(())
    }

    #[inline]
    fn borrow<'s>(
        &mut self,
        call: &mut Call<'s>,
        hashes: &[KeyHash],
    ) -> Result<Space<'s>, ShardId> {
        let store = call.env.store();
        let mode = call.env.shared.expiry_mode(call.env.now_ms);
        if let [hash] = hashes
            && let Some(mut space) = store.try_borrow_one(store.shard_of(*hash))
        {
            space.set_expiry_mode(mode);
            return Ok(space);
        }
        let set = &mut call.buffers.set;
        set.clear();
        for &hash in hashes {
            set.push(store.shard_of(hash));
        }
        set.seal();
        let mut space = store.try_borrow(set, &mut self.attempt)?;
        space.set_expiry_mode(mode);
        Ok(space)
    }

    /// `get`, `gets`, `gat`, `gats`: in groups of keys, each group at one moment.
    fn retrieve(&mut self, call: &mut Call<'_>, get: &Get<'_>, item: &Item<'_>) -> Step {
        let mut hashes = std::mem::take(&mut call.buffers.hashes);
        let ahead = hashes.len();
        let step = self.retrieve_groups(call, get, item, &mut hashes);
        hashes.truncate(ahead);
        call.buffers.hashes = hashes;
        step
    }

    fn retrieve_groups(
        &mut self,
        call: &mut Call<'_>,
        get: &Get<'_>,
        item: &Item<'_>,
        hashes: &mut Vec<KeyHash>,
    ) -> Step {
        let env = call.env;
        let ahead = hashes.len();
        let mut names = get.keys.clone().skip(self.answered).peekable();
        // The hashes of the first group are known, and its memory is asked for already.
        let mut group = item.keys.clone();
        if self.answered != 0 {
            group = next_group(env, &names, hashes, ahead);
        }
        while names.peek().is_some() {
            let stop = self.retrieve_group(call, get, &hashes[group], &mut names);
            match stop {
                Err(Some(stop)) => return Step::Wait(stop),
                // A key holds no string: the reply ends here.
                Err(None) => return Step::Done,
                Ok(()) => {}
            }
            group = next_group(env, &names, hashes, ahead);
        }
        self.answered = 0;
        write_line(call.out, "END");
        Step::Done
    }

    /// Answers keys whose hashes these are. `Err`: go on later, or, with `None`, not at all.
    fn retrieve_group<'k>(
        &mut self,
        call: &mut Call<'_>,
        get: &Get<'_>,
        hashes: &[KeyHash],
        names: &mut impl Iterator<Item = &'k [u8]>,
    ) -> Result<(), Option<Stop>> {
        let env = call.env;
        let expiry = env.expiry(get.exptime_s);
        let mut space = self
            .borrow(call, hashes)
            .map_err(|shard| Some(Stop::Busy(shard)))?;
        let buffers = &mut *call.buffers;
        buffers.begin(env.shared, &space);
        let mut held = Held {
            env,
            space: &mut space,
            fx: &mut buffers.fx,
            out: call.out,
            has_room: true,
        };
        let mut result = Ok(());
        for (&hash, bytes) in hashes.iter().zip(names) {
            self.answered += 1;
            watchers::fetched(env, held.space, &Key { bytes, hash });
            result = retrieve::one(&mut held, &Key { bytes, hash }, get.verb, expiry);
            if result.is_err() || held.out.len() > OUT_MAX_BYTES {
                break;
            }
        }
        buffers.publish(env.shared, env.party, &mut space);
        if let Err(WrongType) = result {
            self.answered = 0;
            write_line(call.out, WRONG_TYPE);
            Err(None)
        } else if call.out.len() > OUT_MAX_BYTES {
            // Also behind the last key: `END` follows when there is room again.
            Err(Some(Stop::Full))
        } else {
            Ok(())
        }
    }

    /// Requests about the server.
    fn keyless(&mut self, call: &mut Call<'_>, request: &McRequest<'_>) -> Step {
        let env = call.env;
        let (answer, noreply) = match request {
            McRequest::Stats(words) => {
                statistics::answer(env, call.settings, words.clone(), call.out);
                return Step::Done;
            }
            McRequest::Version => {
                call.out.extend_from_slice(b"VERSION ");
                write_line(call.out, statistics::VERSION);
                return Step::Done;
            }
            McRequest::Quit => return Step::Close,
            McRequest::Watch(words) => {
                let begun = watchers::begin(env, &self.card, words.clone(), !call.out.is_empty());
                self.watching = begun.is_ok();
                (begun.map_or_else(|refusal| refusal, |()| "OK"), false)
            }
            McRequest::MetaNoop => {
                count(&env.counters.cmd_meta);
                ("MN", false)
            }
            McRequest::FlushAll { delay_s, noreply } => {
                if let Err(shard) = self.flush_all(call, *delay_s) {
                    return shard.into();
                }
                ("OK", *noreply)
            }
            // How much is logged is Redis's `loglevel`, and there is nothing more to say by client.
            McRequest::Verbosity { noreply, .. } => ("OK", *noreply),
            // The limit is `maxmemory`, which belongs to whoever configures the server.
            McRequest::CacheMemlimit { noreply, .. } => {
                ("CLIENT_ERROR cache_memlimit not allowed", *noreply)
            }
            // All others have keys and are handled by the caller.
            _ => return Step::Done,
        };
        if !noreply {
            write_line(call.out, answer);
        }
        Step::Done
    }

    fn flush_all(&mut self, call: &mut Call<'_>, delay_s: i32) -> Result<(), ShardId> {
        let env = call.env;
        let later = if delay_s > 0 {
            env.expiry(delay_s).at_ms()
        } else {
            None
        };
        if later.is_none() {
            flush::flush(env.shared, env.party, call.buffers, &mut self.attempt, None)?;
        }
        env.shared.memcached.plan_flush(later);
        count(&env.counters.cmd_flush);
        Ok(())
    }
}

/// Hashes the next keys of a long retrieval, behind the `ahead` hashes that are known, and asks for their memory.
fn next_group<'k>(
    env: Env<'_>,
    names: &(impl Iterator<Item = &'k [u8]> + Clone),
    hashes: &mut Vec<KeyHash>,
    ahead: usize,
) -> Range<usize> {
    hashes.truncate(ahead);
    let next = names.clone().take(KEYS_MAX);
    hashes.extend(next.map(|name| env.store().hash(name)));
    prefetch(env.store(), &hashes[ahead..]);
    ahead..hashes.len()
}

fn run_meta(held: &mut Held<'_, '_>, key: &Key<'_>, request: &Meta<'_>) {
    count(&held.env.counters.cmd_meta);
    match request.verb {
        MetaVerb::Get => meta_get::get(held, key, request),
        MetaVerb::Set => meta::set(held, key, request),
        MetaVerb::Delete => meta::delete(held, key, request),
        MetaVerb::Arithmetic => meta::arithmetic(held, key, request),
    }
}

/// Whether a request may change data.
fn writes(request: &McRequest<'_>) -> bool {
    match request {
        McRequest::Get(get) => get.verb.touches(),
        McRequest::Meta(meta) if meta.verb == MetaVerb::Get => {
            meta.flags.vivify_s.is_some() || meta.flags.ttl_s.is_some()
        }
        McRequest::Store(_)
        | McRequest::Arithmetic(_)
        | McRequest::Touch(_)
        | McRequest::Delete(_)
        | McRequest::FlushAll { .. }
        | McRequest::Meta(_) => true,
        McRequest::Stats(_)
        | McRequest::Version
        | McRequest::Verbosity { .. }
        | McRequest::CacheMemlimit { .. }
        | McRequest::Quit
        | McRequest::Watch(_)
        | McRequest::MetaNoop
        | McRequest::MetaDebug(_) => false,
    }
}

/// Whether a request may need memory.
fn stores(request: &McRequest<'_>) -> bool {
    match request {
        McRequest::Store(_) | McRequest::Arithmetic(_) => true,
        McRequest::Meta(meta) => match meta.verb {
            MetaVerb::Set | MetaVerb::Arithmetic => true,
            MetaVerb::Get => meta.flags.vivify_s.is_some(),
            MetaVerb::Delete => false,
        },
        _ => false,
    }
}
