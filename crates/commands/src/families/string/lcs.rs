//! `LCS`

use super::shared::{READ, RO_ACCESS, announce_miss, integer, string_of};
use crate::spec::{Acl, Begin, Command, Find, Group, KeySpec, Spec};
use crate::{Ctx, Done, Error};
use pantala_protocol::Args;
use pantala_types::string::lcs::{self, Lcs as Found, Refused};

/// `LCS`
pub const LCS: Command = Command::costly(
    Spec {
        name: "lcs",
        summary: "Answers the longest common subsequence of two strings.",
        since: "7.0.0",
        group: Group::String,
        complexity: "O(N*M) where N and M are the lengths of the strings.",
        arity: -3,
        flags: READ,
        acl: Acl::STRING,
        keys: &[KeySpec {
            flags: RO_ACCESS,
            begin: Begin::Index(1),
            find: Find::Range {
                last: 1,
                step: 1,
                limit: 0,
            },
        }],
        syntax: "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]",
        ..Spec::BASE
    },
    lcs,
    cost_us,
);

#[derive(Default)]
struct Options {
    len: bool,
    idx: bool,
    with_match_len: bool,
    min_match_len: i64,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Self, Error> {
        let mut options = Self::default();
        let mut at = 3;
        while at < args.len() {
            if args.is(at, "IDX") {
                options.idx = true;
            } else if args.is(at, "LEN") {
                options.len = true;
            } else if args.is(at, "WITHMATCHLEN") {
                options.with_match_len = true;
            } else if args.is(at, "MINMATCHLEN") && at + 1 < args.len() {
                at += 1;
                options.min_match_len = integer(args.arg(at))?.max(0);
            } else {
                return Err(Error::Syntax);
            }
            at += 1;
        }
        if options.len && options.idx {
            return Err(Error::text(
                "ERR If you want both the length and indexes, please just use IDX.",
            ));
        }
        Ok(options)
    }
}

fn lcs(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let (a, b) = (bytes_of(cx, args, 0)?, bytes_of(cx, args, 1)?);
    let options = Options::parse(args)?;
    let limit_bytes = cx.settings.proto_max_bulk_len_bytes;
    if options.len {
        let len = lcs::length(&a, &b, limit_bytes).map_err(refused)?;
        cx.reply.integer(i64::from(len));
        return Ok(());
    }
    let found = lcs::compute(&a, &b, limit_bytes).map_err(refused)?;
    if options.idx {
        reply_matches(cx, &options, &found);
    } else {
        cx.reply.bulk(&found.text);
    }
    Ok(())
}

/// A copy: both keys are looked at in turn, and the work on them is long anyway.
fn bytes_of(cx: &mut Ctx<'_, '_>, args: Args<'_>, nth: usize) -> Result<Vec<u8>, Error> {
    let key = cx.key(args, nth);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let string = string_of(db.find(&key))
        .map_err(|_| Error::text("ERR The specified keys must contain string values"))?;
    let mut bytes = Vec::new();
    match string {
        Some(string) => string.append_to(&mut bytes),
        None => announce_miss(cx.fx, key.bytes),
    }
    Ok(bytes)
}

fn reply_matches(cx: &mut Ctx<'_, '_>, options: &Options, found: &Found) {
    cx.reply.map(2);
    cx.reply.bulk(b"matches");
    let wanted = |len: u32| i64::from(len) >= options.min_match_len;
    cx.reply.array(
        found
            .matches
            .iter()
            .filter(|found| wanted(found.len()))
            .count(),
    );
    for found in found.matches.iter().filter(|found| wanted(found.len())) {
        cx.reply.array(if options.with_match_len { 3 } else { 2 });
        for (first, last) in [found.a, found.b] {
            cx.reply.array(2);
            cx.reply.integer(i64::from(first));
            cx.reply.integer(i64::from(last));
        }
        if options.with_match_len {
            cx.reply.integer(i64::from(found.len()));
        }
    }
    cx.reply.bulk(b"len");
    cx.reply.integer(i64::from(found.len));
}

const fn refused(why: Refused) -> Error {
    Error::text(match why {
        Refused::TooLong => "ERR String too long for LCS",
        Refused::BeyondLimit => {
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"
        }
        Refused::NoMemory => "ERR Insufficient memory, failed allocating transient memory for LCS",
    })
}

/// About a nanosecond per cell of the table.
fn cost_us(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> u64 {
    let mut len = |nth: usize| -> u64 {
        let key = cx.key(args, nth);
        let mut db = cx.space.db(cx.db_index, cx.now_ms);
        db.peek(&key)
            .and_then(pantala_types::string::StrRef::of)
            .map_or(0, |string| string.len() as u64)
    };
    len(0).saturating_mul(len(1)) / 700
}
