//! The parts of `DEBUG` that look at data or make some. They borrow by themselves, which inside a transaction is not possible.

use super::digest::Digest;
use crate::invoke;
use crate::turn::{Next, Turn};
use pantala_borrow::{ShardId, ShardSet};
use pantala_commands::{Effects, Error};
use pantala_protocol::{Args, numbers};
use pantala_store::{Entry, Position, PutMeta, Space};
use pantala_types::string::{self, StrRef};

fn outside_transactions(turn: &Turn<'_, '_>) -> Result<(), Error> {
    if turn.held.is_some() {
        return Err(Error::text(
            "ERR this DEBUG subcommand is not possible inside a transaction",
        ));
    }
    Ok(())
}

fn only_strings() -> Error {
    Error::text("ERR DEBUG knows only strings")
}

/// `DEBUG DIGEST`: all shards are held meanwhile, so that the digest is that of one moment.
pub(super) fn digest_all(turn: &mut Turn<'_, '_>) -> Result<Next, Error> {
    outside_transactions(turn)?;
    let store = &turn.shared.store;
    let mut space =
        match store.try_borrow(&ShardSet::all(store.shards()), &mut turn.session.attempt) {
            Ok(space) => space,
            Err(shard) => return Ok(Next::Aside(shard)),
        };
    let digest = digest_of(&mut space, turn.now_ms);
    drop(space);
    let hex = digest.ok_or_else(only_strings)?.hex();
    turn.reply().simple(hex);
    Ok(Next::Continue)
}

/// `None` when there is a value that is not a string.
fn digest_of(space: &mut Space<'_>, now_ms: i64) -> Option<Digest> {
    let store = space.store();
    let mut all = Digest::default();
    let mut value = Vec::new();
    let mut known = true;
    for db in (0..store.databases()).filter(|&db| store.dbsize(db) != 0) {
        all.database(db);
        for shard in 0..store.shards() as ShardId {
            let part = space.shard_db(shard, db, now_ms);
            part.scan(Position::START, usize::MAX, &mut |entry: Entry<'_>| {
                value.clear();
                match StrRef::of(entry) {
                    Some(string) => string.append_to(&mut value),
                    None => known = false,
                }
                all.combine(Digest::of_string(
                    entry.key(),
                    &value,
                    entry.expiry_ms().is_some(),
                ));
            });
        }
    }
    known.then_some(all)
}

/// `DEBUG DIGEST-VALUE key …`.
pub(super) fn digest_values(turn: &mut Turn<'_, '_>, keys: Args<'_>) -> Result<Next, Error> {
    outside_transactions(turn)?;
    let (shared, db, now_ms) = (turn.shared, turn.session.db, turn.now_ms);
    let mut digests = Vec::with_capacity(keys.len());
    let mut value = Vec::new();
    for bytes in keys {
        let key = shared.store.key(bytes);
        let shard = shared.store.shard_of(key.hash);
        let Some(mut space) = shared.store.try_borrow_one(shard) else {
            return Ok(Next::Aside(shard));
        };
        let digest = match space.db(db, now_ms).view(&key) {
            None => Digest::default(),
            Some(entry) => {
                value.clear();
                StrRef::of(entry)
                    .ok_or_else(only_strings)?
                    .append_to(&mut value);
                Digest::of_string_value(&value, entry.expiry_ms().is_some())
            }
        };
        digests.push(digest);
    }
    let mut reply = turn.reply();
    reply.array(digests.len());
    for digest in digests {
        reply.simple(digest.hex());
    }
    Ok(Next::Continue)
}

/// `DEBUG OBJECT key`. There is no address to show: values move.
pub(super) fn object(turn: &mut Turn<'_, '_>, bytes: &[u8]) -> Result<Next, Error> {
    outside_transactions(turn)?;
    let (shared, db, now_ms) = (turn.shared, turn.session.db, turn.now_ms);
    let key = shared.store.key(bytes);
    let shard = shared.store.shard_of(key.hash);
    let Some(mut space) = shared.store.try_borrow_one(shard) else {
        return Ok(Next::Aside(shard));
    };
    let text = match space.db(db, now_ms).view(&key) {
        None => return Err(Error::NoSuchKey),
        Some(entry) => {
            let string = StrRef::of(entry).ok_or_else(only_strings)?;
            let idle_s = entry.idle_secs(now_ms);
            // Redis's clock of 24 bits, at the time of the last use.
            let lru = (now_ms / 1_000 - idle_s as i64) & 0xff_ffff;
            format!(
                "Value at:none refcount:1 encoding:{} serializedlength:{} lru:{lru} lru_seconds_idle:{idle_s}",
                string.encoding_name(),
                serialized_len(&string)
            )
        }
    };
    drop(space);
    turn.reply().simple(text);
    Ok(Next::Continue)
}

/// Bytes of a string in a snapshot, without its type.
fn serialized_len(string: &StrRef<'_>) -> usize {
    let mut value = Vec::new();
    string.append_to(&mut value);
    // A payload of DUMP has a byte for the type in front, and version and checksum behind.
    const AROUND: usize = 1 + 2 + 8;
    let payload = match string {
        StrRef::Int(number) => pantala_rdb::dump_integer(*number),
        _ => pantala_rdb::dump_string(&value, true),
    };
    payload.len().saturating_sub(AROUND)
}

/// `DEBUG POPULATE count [prefix] [size]`: strings `prefix:n` with the value `value:n`, cut or filled with zeros to `size`. Keys that
/// exist stay, so when a shard is busy it can begin anew later.
pub(super) fn populate(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    outside_transactions(turn)?;
    /// The worker is busy meanwhile, so this must end.
    const COUNT_MAX: u64 = 100_000_000;
    /// Summing up the memory costs more than storing a key.
    const MEMORY_CHECKED_EVERY: u64 = 256;
    let positive = |text: &[u8]| match numbers::parse_i64(text) {
        Some(number @ 0..) => Ok(number as u64),
        _ => Err(Error::text("ERR value is out of range, must be positive")),
    };
    let count = positive(args.arg(0))?;
    if count > COUNT_MAX {
        return Err(Error::owned(format!(
            "ERR DEBUG POPULATE makes at most {COUNT_MAX} keys"
        )));
    }
    let prefix = args.get(1).unwrap_or(b"key");
    let size = args.get(2).map_or(Ok(0), positive)?;
    if size > turn.settings.proto_max_bulk_len_bytes {
        return Err(Error::StringTooLong);
    }
    let (shared, db, now_ms) = (turn.shared, turn.session.db, turn.now_ms);
    let limit_bytes = turn.settings.maxmemory.bytes(shared.facts.machine_bytes);
    let (mut name, mut value) = (Vec::new(), Vec::new());
    for nth in 0..count {
        if nth % MEMORY_CHECKED_EVERY == 0 && limit_bytes != 0 && shared.used_memory() > limit_bytes
        {
            return Err(Error::text(
                "OOM command not allowed when used memory > 'maxmemory'.",
            ));
        }
        name.clear();
        name.extend_from_slice(prefix);
        name.extend_from_slice(format!(":{nth}").as_bytes());
        value.clear();
        value.extend_from_slice(format!("value:{nth}").as_bytes());
        if size != 0 {
            value.resize(size as usize, 0);
        }
        let key = shared.store.key(&name);
        let shard = shared.store.shard_of(key.hash);
        let Some(mut space) = shared.store.try_borrow_one(shard) else {
            return Ok(Next::Aside(shard));
        };
        let mut data = space.db(db, now_ms);
        let mut slot = data.slot_quiet(&key);
        let vacant = !slot.is_occupied();
        if vacant {
            string::store(&mut slot, &value, PutMeta::CLEAR);
        }
        if vacant {
            space.mark(db, &key);
        }
        invoke::publish(shared, turn.party, &Effects::default(), &mut space);
    }
    turn.ok()
}

/// `DEBUG HTSTATS db`: how the keys of a database lie in the tables.
pub(super) fn table_statistics(turn: &mut Turn<'_, '_>, db: &[u8]) -> Result<Next, Error> {
    outside_transactions(turn)?;
    let (store, now_ms) = (&turn.shared.store, turn.now_ms);
    let db = numbers::parse_i64(db).ok_or(Error::NotAnInteger)?;
    let Some(db) = u16::try_from(db).ok().filter(|&db| db < store.databases()) else {
        return Err(Error::text("ERR Out of range database"));
    };
    let (mut fewest, mut most, mut used, mut bytes) = (u64::MAX, 0, 0, 0);
    for shard in 0..store.shards() as ShardId {
        let keys = store.shard_size(shard, db);
        fewest = fewest.min(keys);
        most = most.max(keys);
        used += u64::from(keys != 0);
        let Some(mut space) = store.try_borrow_one(shard) else {
            return Ok(Next::Aside(shard));
        };
        bytes += space.shard_db(shard, db, now_ms).table_bytes();
    }
    let text = format!(
        "[Tables]\n keys: {}\n keys that expire: {}\n shards with keys: {used} of {}\n keys per shard: {fewest} to {most}\n table bytes: {bytes}\n",
        store.dbsize(db),
        store.expires_size(db),
        store.shards(),
    );
    turn.reply().verbatim("txt", text.as_bytes());
    Ok(Next::Continue)
}
