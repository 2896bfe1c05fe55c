//! `SCAN`: the keyspace in pieces.
//!
//! The cursor is a place in the order of hashes (shard, then place within it), so it needs no state here, and a key that stands
//! from the first call to the last is listed at least once however the tables grow and shrink meanwhile.

use super::walk;
use crate::context::Reach;
use crate::families::generic::shared::{GENERIC, type_name};
use crate::families::string::shared::{READ, integer};
use crate::spec::{Command, Spec};
use crate::{Done, Error, Walk};
use pantala_config::glob_match;
use pantala_protocol::{Args, Reply, numbers};
use pantala_store::Entry;

/// The most entries that one call looks at on a worker, so that no `COUNT` makes others wait for more than about a ms.
const WORKER_COUNT_MAX: u64 = 16_384;

/// `SCAN`
pub const SCAN: Command = Command {
    // Its piece of work is small, and its own cap sees to that: it need not go to a helper thread.
    cost_us: Some(|_, _| 0),
    ..walk(
        Spec {
            name: "scan",
            summary: "Lists the keys piece by piece.",
            since: "2.8.0",
            complexity: "O(1) for every call, O(N) for a whole iteration, where N is the number of keys.",
            arity: -2,
            flags: READ,
            tips: &["nondeterministic_output", "request_policy:special"],
            syntax: "cursor [MATCH pattern] [COUNT count] [TYPE type] [ATTR v|p] [MINMSZ bytes]",
            ..GENERIC
        },
        scan,
    )
};

/// Which keys are listed.
#[derive(Clone, Copy, Debug)]
struct Filter<'a> {
    pattern: Option<&'a [u8]>,
    type_name: Option<&'a [u8]>,
    /// `ATTR v` (true) and `p` (false), as in Dragonfly.
    expires: Option<bool>,
    min_bytes: u64,
}

impl<'a> Filter<'a> {
    /// Reads the options from argument 2 on; the filter and the count.
    fn parse(args: Args<'a>) -> Result<(Self, u64), Error> {
        let mut filter = Self {
            pattern: None,
            type_name: None,
            expires: None,
            min_bytes: 0,
        };
        let mut count = 10;
        let mut at = 2;
        while let Some(word) = args.get(at) {
            let value = args.get(at + 1).ok_or(Error::Syntax)?;
            if word.eq_ignore_ascii_case(b"COUNT") {
                count = u64::try_from(integer(value)?)
                    .ok()
                    .filter(|count| *count > 0)
                    .ok_or(Error::Syntax)?;
            } else if word.eq_ignore_ascii_case(b"MATCH") {
                filter.pattern = (value != b"*").then_some(value);
            } else if word.eq_ignore_ascii_case(b"TYPE") {
                filter.type_name = Some(value);
            } else if word.eq_ignore_ascii_case(b"ATTR") {
                match value {
                    b"v" | b"V" => filter.expires = Some(true),
                    b"p" | b"P" => filter.expires = Some(false),
                    _ => return Err(Error::Syntax),
                }
            } else if word.eq_ignore_ascii_case(b"MINMSZ") {
                filter.min_bytes = u64::try_from(integer(value)?).map_err(|_| Error::Syntax)?;
            } else {
                return Err(Error::Syntax);
            }
            at += 2;
        }
        Ok((filter, count))
    }

    fn lists(&self, entry: Entry<'_>) -> bool {
        self.type_name
            .is_none_or(|name| name.eq_ignore_ascii_case(type_name(entry.kind()).as_bytes()))
            && self
                .expires
                .is_none_or(|expires| expires == entry.expiry_ms().is_some())
            && (self.min_bytes == 0 || entry.memory_bytes() >= self.min_bytes)
            && self
                .pattern
                .is_none_or(|pattern| glob_match(pattern, entry.key(), false))
    }
}

fn scan(walk: &mut Walk<'_, '_>, args: Args<'_>) -> Done {
    let start = cursor(args.arg(1))?;
    let (filter, mut count) = Filter::parse(args)?;
    if matches!(walk.reach, Reach::Each { party: None }) {
        count = count.min(WORKER_COUNT_MAX);
    }
    let mut listed = Vec::new();
    let (next, found) = collect(walk, start, count, &filter, &mut listed)?;
    walk.reply.array(2);
    walk.reply.bulk_fmt(format_args!("{next}"));
    walk.reply.array(found);
    walk.reply.raw(&listed);
    Ok(())
}

/// Goes on from `start` until about `count` entries were looked at. Where to go on, and how many keys were listed.
fn collect(
    walk: &mut Walk<'_, '_>,
    start: u64,
    count: u64,
    filter: &Filter<'_>,
    listed: &mut Vec<u8>,
) -> Result<(u64, usize), Error> {
    let proto = walk.reply.proto();
    let mut list = Reply::new(listed, proto);
    let mut found = 0;
    let mut left = count;
    let mut at = start;
    while left > 0 {
        // A number that is no cursor of ours ends the scan.
        let Some((shard, position)) = walk.store.decode_cursor(at) else {
            return Ok((0, found));
        };
        if walk.store.shard_size(shard, walk.db_index) == 0 {
            at = walk.store.encode_cursor(shard, None);
        } else {
            let mut seen = 0;
            let budget = usize::try_from(left).unwrap_or(usize::MAX);
            let walked = walk.shard(shard, |part| {
                part.scan(position, budget, &mut |entry: Entry<'_>| {
                    seen += 1;
                    if filter.lists(entry) {
                        list.bulk(entry.key());
                        found += 1;
                    }
                })
            });
            match walked {
                Ok(next) => at = walk.store.encode_cursor(shard, next),
                // What was gathered is answered; the next call finds the shard free, or says that it is not.
                Err(Error::Busy(_)) if at != start => return Ok((at, found)),
                Err(error) => return Err(error),
            }
            left = left.saturating_sub(u64::max(seen, 1));
        }
        if at == 0 {
            break;
        }
    }
    Ok((at, found))
}

/// An empty cursor is a start too, as in Redis.
fn cursor(arg: &[u8]) -> Result<u64, Error> {
    if arg.is_empty() {
        return Ok(0);
    }
    numbers::parse_u64(arg).ok_or(Error::text("ERR invalid cursor"))
}
