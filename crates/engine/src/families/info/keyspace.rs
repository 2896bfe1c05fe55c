//! `INFO keyspace`.

use super::View;
use super::lines::Lines;
use pantala_borrow::ShardId;
use pantala_store::Position;

pub(super) fn keyspace(view: &View<'_>, lines: &mut Lines) {
    let store = &view.shared.store;
    for db in 0..store.databases() {
        let keys = store.dbsize(db);
        if keys == 0 {
            continue;
        }
        let expires = store.expires_size(db);
        let ttl_ms = if expires == 0 {
            0
        } else {
            mean_ttl_ms(view, db)
        };
        lines.field(
            format_args!("db{db}"),
            format_args!("keys={keys},expires={expires},avg_ttl={ttl_ms}"),
        );
    }
}

/// The mean time to live of a sample of the keys that expire, in ms; 0 when none was met. Shards that are busy are passed over.
fn mean_ttl_ms(view: &View<'_>, db: u16) -> i64 {
    const SHARDS_MAX: usize = 8;
    const KEYS_PER_SHARD: usize = 32;
    let store = &view.shared.store;
    let (mut sum_ms, mut count) = (0_i64, 0_i64);
    let filled = (0..store.shards() as ShardId).filter(|&shard| store.shard_size(shard, db) != 0);
    for shard in filled.take(SHARDS_MAX) {
        let Some(mut space) = store.try_borrow_one(shard) else {
            continue;
        };
        space.shard_db(shard, db, view.now_ms).scan(
            Position::START,
            KEYS_PER_SHARD,
            &mut |entry| {
                if let Some(expiry_ms) = entry.expiry_ms() {
                    sum_ms = sum_ms.saturating_add((expiry_ms - view.now_ms).max(0));
                    count += 1;
                }
            },
        );
    }
    sum_ms.checked_div(count).unwrap_or(0)
}
