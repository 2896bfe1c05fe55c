//! What the store does by itself: expiry, eviction, freeing, compaction, counting memory; and watched keys.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{all, store};
use pantala_store::*;

const NOW: i64 = 1_800_000_000_000;

fn put(space: &mut Space<'_>, db: u16, key: &[u8], value: &[u8], now_ms: i64, expiry: PutExpiry) {
    let mut db = space.db(db, now_ms);
    let key = db.key(key);
    db.slot_quiet(&key).put(
        Kind::String,
        Encoding::RAW,
        value,
        PutMeta {
            expiry,
            mc: PutMc::Clear,
        },
    );
}

fn fill(store: &Store, count: u32, expiry: impl Fn(u32) -> PutExpiry) {
    let mut space = all(store);
    for i in 0..count {
        put(
            &mut space,
            0,
            format!("key{i:012}").as_bytes(),
            &[7; 100],
            NOW,
            expiry(i),
        );
    }
}

#[test]
fn bites_remove_what_expired_and_report_each_key_once() {
    let store = store(2);
    fill(&store, 20_000, |i| {
        if i % 2 == 0 {
            PutExpiry::At(NOW + 10)
        } else {
            PutExpiry::Clear
        }
    });
    let mut removed = Vec::new();
    store.bite_all(NOW + 10, true, &mut |space| {
        removed.extend(space.take_removed())
    });
    assert!(removed.is_empty());
    store.bite_all(NOW + 11, true, &mut |space| {
        removed.extend(space.take_removed())
    });
    assert_eq!(removed.len(), 10_000);
    assert!(
        removed
            .iter()
            .all(|removed| removed.reason == Reason::Expired && removed.db == 0)
    );
    removed.sort_by(|a, b| a.key.cmp(&b.key));
    removed.dedup();
    assert_eq!(removed.len(), 10_000);
    assert_eq!(
        (
            store.dbsize(0),
            store.expires_size(0),
            store.stats().expired
        ),
        (10_000, 0, 10_000)
    );
}

#[test]
fn a_flush_leaves_nothing_behind_and_costs_the_holder_nothing() {
    let store = store(2);
    fill(&store, 50_000, |_| PutExpiry::Clear);
    {
        let mut space = all(&store);
        let mut db = space.db(0, NOW);
        let key = db.key(b"large");
        let mut slot = db.slot_quiet(&key);
        let mut tree = slot.new_tree();
        tree.edit().append(&vec![1; 20_000_000]);
        slot.put_tree(Kind::String, Encoding::TREE, tree, PutMeta::CLEAR);
        let before = store.used_memory();
        assert!(db.remove(&key));
        assert!(
            store.used_memory() + 10_000 > before,
            "a large value is not freed by the command"
        );
        space.flush(Some(0));
        assert_eq!(store.dbsize(0), 0);
        assert!(store.stats().lazy_waiting > 0);
    }
    store.bite_all(NOW, true, &mut |_| {});
    assert_eq!(store.used_memory(), 0);
    let stats = store.stats();
    assert_eq!(stats.lazy_waiting, 0);
    assert!(stats.lazy_freed > 0);
    assert!(
        store.resident_estimate() < 4 << 20,
        "{}",
        store.resident_estimate()
    );
}

#[test]
fn compaction_returns_memory_after_most_keys_went() {
    let store = store(2);
    fill(&store, 100_000, |_| PutExpiry::Clear);
    let peak = store.resident_estimate();
    {
        let mut space = all(&store);
        let mut db = space.db(0, NOW);
        let mut state = 1u64;
        for i in 0..100_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            if !(state >> 33).is_multiple_of(10) {
                let name = format!("key{i:012}");
                let key = db.key(name.as_bytes());
                assert!(db.remove(&key));
            }
        }
    }
    store.bite_all(NOW, true, &mut |_| {});
    store.bite_all(NOW + 2_000, true, &mut |_| {});
    let left = store.resident_estimate();
    assert!(left * 4 <= peak, "{left} of {peak}");
    // All that is left is still there.
    let mut space = all(&store);
    let db = space.db(0, NOW);
    let found = (0..100_000)
        .filter(|i| db.view(&db.key(format!("key{i:012}").as_bytes())).is_some())
        .count();
    assert_eq!(found as u64, store.dbsize(0));
}

#[test]
fn a_key_of_15_and_a_value_of_100_bytes_take_at_most_136() {
    let store = store(1);
    let mut worst = 0.0f64;
    let mut space = all(&store);
    for i in 0..200_000u32 {
        put(
            &mut space,
            0,
            format!("key{i:012}").as_bytes(),
            &[7; 100],
            NOW,
            PutExpiry::Clear,
        );
        if i >= 150_000 && i % 1_000 == 0 {
            worst = worst.max(store.resident_estimate() as f64 / f64::from(i));
        }
    }
    let heap = store.heap_use();
    assert_eq!(heap.entries_bytes, 200_000 * 120);
    assert!(worst <= 136.0, "{worst}");
}

#[test]
fn an_expiry_takes_eight_bytes_more() {
    let store = store(1);
    fill(&store, 50_000, |_| PutExpiry::At(NOW + 1));
    assert_eq!(store.heap_use().entries_bytes, 50_000 * 128);
}

fn lookups(store: &Store, range: std::ops::Range<u32>, now_ms: i64) {
    let mut space = all(store);
    let mut db = space.db(0, now_ms);
    for i in range {
        let name = format!("key{i:012}");
        let key = db.key(name.as_bytes());
        db.find(&key);
    }
}

/// Evicts a quarter of the keys and returns how many of the first and of the second half went.
fn evict_quarter(store: &Store, policy: EvictPolicy, now_ms: i64) -> (usize, usize) {
    let mut removed = Vec::new();
    let mut space = all(store);
    while store.dbsize(0) > 7_500 {
        for shard in 0..store.shards() as u16 {
            assert!(space.shard_db(shard, 0, now_ms).evict_bite(policy, 1) > 0);
        }
    }
    removed.extend(space.take_removed());
    assert!(
        removed
            .iter()
            .all(|removed| removed.reason == Reason::Evicted)
    );
    assert_eq!(store.stats().evicted, removed.len() as u64);
    let first = removed
        .iter()
        .filter(|removed| &*removed.key < b"key000000005000".as_slice())
        .count();
    (first, removed.len() - first)
}

#[test]
fn eviction_takes_the_least_recently_used() {
    let store = store(1);
    fill(&store, 10_000, |_| PutExpiry::Clear);
    lookups(&store, 0..5_000, NOW + 600_000);
    let (used, unused) = evict_quarter(&store, EvictPolicy::AllkeysLru, NOW + 700_000);
    assert!(used * 100 < unused, "{used} {unused}");
}

#[test]
fn eviction_takes_the_least_often_used() {
    let store = store(1);
    store.set_access_policy(AccessPolicy {
        lfu: true,
        ..AccessPolicy::default()
    });
    fill(&store, 10_000, |_| PutExpiry::Clear);
    for _ in 0..50 {
        lookups(&store, 0..5_000, NOW);
    }
    let (used, unused) = evict_quarter(&store, EvictPolicy::AllkeysLfu, NOW);
    assert!(used * 100 < unused, "{used} {unused}");
}

#[test]
fn eviction_of_volatile_keys_spares_the_others() {
    for policy in [
        EvictPolicy::VolatileLru,
        EvictPolicy::VolatileRandom,
        EvictPolicy::VolatileTtl,
        EvictPolicy::VolatileLfu,
    ] {
        let store = store(1);
        fill(&store, 1_000, |i| {
            if i % 4 == 0 {
                PutExpiry::At(NOW + 1_000 + i64::from(i))
            } else {
                PutExpiry::Clear
            }
        });
        let mut space = all(&store);
        for _ in 0..100 {
            for shard in 0..store.shards() as u16 {
                space.shard_db(shard, 0, NOW).evict_bite(policy, u64::MAX);
            }
        }
        assert_eq!(
            (store.dbsize(0), store.expires_size(0)),
            (750, 0),
            "{policy:?}"
        );
    }
    let store = store(1);
    fill(&store, 100, |_| PutExpiry::Clear);
    assert_eq!(
        all(&store)
            .shard_db(0, 0, NOW)
            .evict_bite(EvictPolicy::NoEviction, u64::MAX),
        0
    );
}

#[test]
fn watchers_hear_of_changes_expiry_and_flushes() {
    let store = store(2);
    let mut space = all(&store);
    let key = store.key(b"watched");
    let watch = |space: &mut Space<'_>, now_ms: i64| {
        let flag = WatchFlag::new();
        space.watch(0, &key, &flag, now_ms);
        flag
    };
    // A change, and only of this key in this database.
    let flag = watch(&mut space, NOW);
    space.mark(1, &key);
    space.mark(0, &store.key(b"another"));
    assert!(!flag.is_dirty());
    space.mark(0, &key);
    assert!(flag.is_dirty());
    space.unwatch(0, &key, &flag);
    assert!(!space.has_watches());
    // A flush counts when the key is there.
    let flag = watch(&mut space, NOW);
    space.flush(Some(0));
    assert!(!flag.is_dirty());
    put(&mut space, 0, b"watched", b"x", NOW, PutExpiry::At(NOW + 5));
    space.flush(Some(0));
    assert!(flag.is_dirty());
    // Expiry counts when it happens after the watch.
    put(&mut space, 0, b"watched", b"x", NOW, PutExpiry::At(NOW + 5));
    let (alive, over) = (watch(&mut space, NOW), watch(&mut space, NOW + 6));
    assert!(!space.watched_expired(0, &key, &alive, NOW + 5));
    assert!(space.watched_expired(0, &key, &alive, NOW + 6));
    assert!(!space.watched_expired(0, &key, &over, NOW + 6));
    assert!(!space.db(0, NOW + 6).exists(&key));
    assert!(alive.is_dirty());
    assert!(!over.is_dirty());
    // From then on the second watches an absent key.
    put(&mut space, 0, b"watched", b"y", NOW, PutExpiry::Clear);
    space.mark(0, &key);
    assert!(over.is_dirty());
    // A swap counts when the key stands in either database.
    let flag = watch(&mut space, NOW);
    space.swap_databases(0, 1, NOW);
    assert!(flag.is_dirty());
}

/// Redis's "SWAPDB does not touch non-existing key replaced with stale key" and its sisters.
#[test]
fn a_swap_of_expired_keys_is_no_change() {
    let store = store(2);
    let mut space = all(&store);
    let key = store.key(b"watched");
    let watch = |space: &mut Space<'_>, db| {
        let flag = WatchFlag::new();
        space.watch(db, &key, &flag, NOW + 6);
        flag
    };
    put(&mut space, 0, b"watched", b"x", NOW, PutExpiry::At(NOW + 5));
    let (stale, absent) = (watch(&mut space, 0), watch(&mut space, 1));
    // Expired and absent change places, and again.
    for _ in 0..2 {
        space.swap_databases(0, 1, NOW + 6);
        assert!(!stale.is_dirty());
        assert!(!absent.is_dirty());
    }
    assert!(!space.watched_expired(0, &key, &stale, NOW + 6));
    // Expired and expired.
    put(&mut space, 1, b"watched", b"y", NOW, PutExpiry::At(NOW + 5));
    space.swap_databases(0, 1, NOW + 6);
    assert!(!stale.is_dirty());
    // A database and itself.
    put(&mut space, 1, b"watched", b"z", NOW + 6, PutExpiry::Clear);
    space.swap_databases(1, 1, NOW + 6);
    let alive = watch(&mut space, 1);
    space.swap_databases(1, 1, NOW + 6);
    assert!(!alive.is_dirty());
    // Expired becomes alive.
    space.swap_databases(0, 1, NOW + 6);
    assert!(stale.is_dirty());
    assert!(alive.is_dirty());
}

#[test]
fn expired_keys_can_be_hidden_or_ignored() {
    let store = store(1);
    let mut space = all(&store);
    put(&mut space, 0, b"k", b"old", NOW, PutExpiry::At(NOW));
    let key = store.key(b"k");
    space.set_expiry_mode(ExpiryMode::Hide);
    let mut db = space.db(0, NOW + 1);
    assert!(
        db.find(&key).is_none() && db.view(&key).is_none() && !db.slot_quiet(&key).is_occupied()
    );
    assert_eq!(store.dbsize(0), 1);
    space.set_expiry_mode(ExpiryMode::Ignore);
    assert_eq!(space.db(0, NOW + 1).find(&key).unwrap().payload(), b"old");
    space.set_expiry_mode(ExpiryMode::Hide);
    let mut db = space.db(0, NOW + 1);
    let mut slot = db.slot_quiet(&key);
    slot.put(Kind::String, Encoding::RAW, b"new", PutMeta::KEEP);
    assert_eq!(
        (
            slot.entry().unwrap().payload(),
            slot.entry().unwrap().expiry_ms()
        ),
        (&b"new"[..], None)
    );
    assert_eq!((store.dbsize(0), store.expires_size(0)), (1, 0));
    assert!(space.take_removed().is_empty());
}

#[test]
fn random_keys_come_from_all_shards_by_their_share() {
    let store = store(1);
    fill(&store, 1_000, |_| PutExpiry::Clear);
    let mut space = all(&store);
    let mut seen = std::collections::HashSet::new();
    let mut state = 5u64;
    for _ in 0..20_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let shard = store.random_shard(0, state).unwrap();
        seen.insert(
            space
                .shard_db(shard, 0, NOW)
                .random()
                .unwrap()
                .key()
                .to_vec(),
        );
    }
    assert_eq!(seen.len(), 1_000);
    assert!(store.random_shard(1, 7).is_none());
}

struct Count(std::sync::mpsc::Sender<Box<[u8]>>);

impl CutSink for Count {
    fn save(&mut self, entry: Entry<'_>, _tree: Option<ByteTree>) {
        self.0.send(entry.key().into()).unwrap();
    }
}

#[test]
fn a_flush_hands_over_what_a_cut_still_needs() {
    let store = store(1);
    fill(&store, 5_000, |_| PutExpiry::Clear);
    let (sender, receiver) = std::sync::mpsc::channel();
    {
        let mut space = all(&store);
        for shard in 0..store.shards() as u16 {
            let mut view = space.shard_db(shard, 0, NOW);
            assert!(view.begin_cut(Box::new(Count(sender.clone()))));
            view.cut_bite(100);
        }
        drop(sender);
        space.flush(None);
        put(&mut space, 0, b"new", b"", NOW, PutExpiry::Clear);
    }
    store.bite_all(NOW, true, &mut |_| {});
    // The channel ends when all sinks were dropped, so nothing is missing silently.
    let mut keys: Vec<Box<[u8]>> = receiver.iter().collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 5_000);
    assert!(!keys.contains(&b"new"[..].into()));
}

/// A worker goes on with bites while one says that there is more to do, and pauses when none does: freeing must not need a whole round
/// of all shards for each bite of one value.
#[test]
fn a_large_value_is_freed_without_a_pause() {
    const BYTES: u64 = 16 << 20;
    let store = store(2);
    let before = store.used_memory();
    {
        let mut space = all(&store);
        let mut db = space.db(0, NOW);
        let key = db.key(b"large");
        let mut slot = db.slot_quiet(&key);
        let mut tree = slot.new_tree();
        let piece = vec![7; 1 << 20];
        (0..BYTES >> 20).for_each(|_| tree.edit().append(&piece));
        slot.put_tree(Kind::String, Encoding::TREE, tree, PutMeta::CLEAR);
        assert!(slot.remove());
    }
    assert!(store.used_memory() > before + BYTES / 2);
    let mut bites = 0;
    while store.bite(NOW, true, &mut |_| {}).busy {
        bites += 1;
        assert!(bites < 1_000);
    }
    assert_eq!(store.stats().lazy_waiting, 0);
    assert!(store.used_memory() < before + BYTES / 16);
}

#[test]
fn a_large_value_that_is_replaced_again_and_again_is_owed_once() {
    let store = store(2);
    let mut space = all(&store);
    let piece = vec![7; 1 << 20];
    for _ in 0..50 {
        let mut db = space.db(0, NOW);
        let key = db.key(b"large");
        let mut slot = db.slot_quiet(&key);
        let mut tree = slot.new_tree();
        (0..4).for_each(|_| tree.edit().append(&piece));
        slot.put_tree(Kind::String, Encoding::TREE, tree, PutMeta::CLEAR);
    }
    // The value, the one before, and the one that is being freed.
    assert!(store.used_memory() < 13 << 20, "{}", store.used_memory());
}
