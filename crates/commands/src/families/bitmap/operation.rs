//! `BITOP`

use super::super::string::shared::{
    GROW, OW_UPDATE, RO_ACCESS, announce_miss, announce_put, string_of,
};
use crate::effects::EventClass;
use crate::spec::{Acl, Command, Group, KeySpec, Spec};
use crate::{Ctx, Done, Error};
use pantala_protocol::Args;
use pantala_store::{Db, Key, PutMeta};
use pantala_types::bitmap::op::{self, BLOCK_LEN, BitOp};
use pantala_types::string::{self, StrRef};

/// `BITOP`
pub const BITOP: Command = Command::costly(
    Spec {
        name: "bitop",
        summary: "Combines strings bit by bit and stores the result.",
        since: "2.6.0",
        group: Group::Bitmap,
        complexity: "O(N)",
        arity: -4,
        flags: GROW,
        acl: Acl::BITMAP,
        keys: &[
            KeySpec::one(2, OW_UPDATE),
            KeySpec::all_from(3, 1, RO_ACCESS),
        ],
        syntax: "AND|OR|XOR|NOT|DIFF|DIFF1|ANDOR|ONE destkey key [key ...]",
        ..Spec::BASE
    },
    bitop,
    cost_us,
);

fn bitop(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let op = BitOp::from_name(args.arg(1)).ok_or(Error::Syntax)?;
    let sources = cx.keys.len() - 1;
    if op == BitOp::Not && sources != 1 {
        return Err(Error::text(
            "ERR BITOP NOT must be called with a single source key.",
        ));
    }
    if matches!(op, BitOp::Diff | BitOp::Diff1 | BitOp::AndOr) && sources < 2 {
        let name = String::from_utf8_lossy(args.arg(1)).to_ascii_uppercase();
        return Err(Error::owned(format!(
            "ERR BITOP {name} must be called with at least two source keys."
        )));
    }
    let keys: Vec<Key<'_>> = (0..=sources).map(|nth| cx.key(args, nth)).collect();
    let (target, sources) = (&keys[0], &keys[1..]);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let mut len = 0;
    for source in sources {
        match string_of(db.find(source))? {
            Some(string) => len = len.max(string.len()),
            None => announce_miss(cx.fx, source.bytes),
        }
    }
    if len == 0 {
        if db.remove(target) {
            cx.fx.verbatim();
            cx.fx.modified(target.bytes, EventClass::GENERIC, "del");
        }
    } else {
        let before = db.peek(target).map(|entry| entry.kind());
        store(&mut db, op, target, sources, len);
        cx.fx.verbatim();
        announce_put(cx.fx, target.bytes, before);
        cx.fx.modified(target.bytes, EventClass::STRING, "set");
    }
    cx.reply.integer(len as i64);
    Ok(())
}

/// Combines block by block into the target. Where it is a source too, each of its blocks is read before it is written, so no
/// second copy of it is needed.
fn store(db: &mut Db<'_, '_>, op: BitOp, target: &Key<'_>, sources: &[Key<'_>], len: usize) {
    let block_len = len.min(BLOCK_LEN);
    let (mut out, mut other, mut more) =
        (vec![0; block_len], vec![0; block_len], vec![0; block_len]);
    if len <= BLOCK_LEN {
        combine(db, op, sources, 0, [&mut out, &mut other, &mut more]);
        string::store_plain(&mut db.slot_quiet(target), &out, PutMeta::CLEAR);
        string::set_grown(&mut db.slot_quiet(target));
        return;
    }
    let mut slot = db.slot_quiet(target);
    if !sources.iter().any(|source| source.bytes == target.bytes) {
        slot.remove();
    }
    string::grow(&mut slot, len);
    slot.set_expiry(None);
    slot.set_mc(None);
    let mut at = 0;
    while at < len {
        let n = (len - at).min(BLOCK_LEN);
        combine(
            db,
            op,
            sources,
            at,
            [&mut out[..n], &mut other[..n], &mut more[..n]],
        );
        string::write_at(&mut db.slot_quiet(target), at, &out[..n]);
        at += n;
    }
}

fn combine(
    db: &mut Db<'_, '_>,
    op: BitOp,
    sources: &[Key<'_>],
    at: usize,
    [out, other, more]: [&mut [u8]; 3],
) {
    op::combine(op, sources.len(), out, other, more, |source, buf| match db
        .peek(&sources[source])
        .and_then(StrRef::of)
    {
        Some(string) => string.read_at(at, buf),
        None => buf.fill(0),
    });
}

/// About four bytes a nanosecond and source.
fn cost_us(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> u64 {
    let mut bytes = 0;
    for nth in 1..cx.keys.len() {
        let key = cx.key(args, nth);
        let mut db = cx.space.db(cx.db_index, cx.now_ms);
        bytes += db
            .peek(&key)
            .and_then(StrRef::of)
            .map_or(0, |string| string.len() as u64);
    }
    bytes / 4_000
}
