//! The table against a map; scanning, cuts and compaction under growth and shrinking.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::entry::{McMeta, Spec};
use crate::heap::Heap;
use crate::kind::{Encoding, Kind};
use crate::tree::LEAF_BYTES;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Mutex;

fn table() -> Table {
    let heap = Heap::new(1, 4 << 30).unwrap();
    Table::new(heap.handle(0), Arc::new(Hasher::new(Some(11))), 3)
}

fn spec(payload_len: usize, expiry: Option<i64>) -> Spec {
    Spec {
        kind: Kind::String,
        encoding: Encoding::RAW,
        access: 0,
        fetched: false,
        expiry,
        mc: None,
        payload_len,
    }
}

/// Only keys of one shard may go into a table; here all go, since the bits above are simply not looked at.
fn put(table: &mut Table, key: &[u8], value: &[u8], expiry: Option<i64>) {
    let hash = table.hasher.hash(key);
    table
        .spot(hash, key)
        .store(&spec(value.len(), expiry), |payload| {
            payload.copy_from_slice(value)
        });
}

fn remove(table: &mut Table, key: &[u8]) -> bool {
    table.remove_key(key).is_some()
}

fn value<'t>(table: &'t Table, key: &[u8]) -> Option<Entry<'t>> {
    table.find(table.hasher.hash(key), key)
}

fn key(i: u32) -> [u8; 6] {
    let mut key = *b"k.....";
    key[2..].copy_from_slice(&i.to_be_bytes());
    key
}

/// Everything that must hold between operations.
fn check_whole(table: &Table) {
    let mut len = 0;
    let mut deepest = 0;
    for (start, seg) in table.segments() {
        let mut count = 0;
        deepest += u32::from(seg.depth == table.dir_bits);
        for number in 0..seg.lines {
            // SAFETY: the table is borrowed.
            let line = unsafe { *seg.line(number) };
            for &word in line.0.iter().filter(|&&word| word != 0) {
                count += 1;
                // SAFETY: a live entry.
                let entry = unsafe { Entry::new(entry_of(word)) };
                let inner = table.inner(table.hasher.hash(entry.key()));
                assert_eq!(tag_of(word), seg.tag(inner));
                assert!(seg.depth == 0 || inner >> (64 - seg.depth) == start >> (64 - seg.depth));
                // All lines from the home to this one are full.
                let mut between = seg.home(tag_of(word));
                while between != number {
                    // SAFETY: as above.
                    assert_eq!(unsafe { seg.line(between) }.empty_mask(), 0);
                    between = seg.next(between);
                }
            }
        }
        // SAFETY: as above.
        assert_eq!(unsafe { seg.count() }, count);
        len += u64::from(count);
    }
    assert_eq!(table.len, len);
    assert!(table.dir.is_null() || table.deepest == deepest);
    assert!(table.dir.is_null() || deepest > 0);
}

fn scan_all(table: &Table, budget: usize) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let mut next = Some(0);
    while let Some(at) = next {
        next = table.scan(at, budget, &mut |entry| keys.push(entry.key().to_vec()));
    }
    keys
}

#[derive(Clone, Debug)]
enum Step {
    Put(u32, usize, Option<i64>),
    Remove(u32),
    Grow(u32),
    Shrink(u32),
    Scan,
    Expire(i64),
    Compact,
}

fn step() -> impl Strategy<Value = Step> {
    let length = prop_oneof![5 => 0usize..200, 1 => 0usize..5_000];
    prop_oneof![
        5 => (0u32..4_000, length, proptest::option::of(0i64..100)).prop_map(|(i, length, expiry)| Step::Put(i, length, expiry)),
        5 => (0u32..4_000).prop_map(Step::Remove),
        2 => (0u32..4_000).prop_map(Step::Grow),
        2 => (0u32..4_000).prop_map(Step::Shrink),
        1 => Just(Step::Scan),
        1 => (0i64..100).prop_map(Step::Expire),
        1 => Just(Step::Compact),
    ]
}

type Model = HashMap<Vec<u8>, (Vec<u8>, Option<i64>)>;

fn apply(table: &mut Table, model: &mut Model, step: &Step) {
    match *step {
        Step::Put(i, length, expiry) => {
            let value: Vec<u8> = (0..length).map(|j| (j + i as usize) as u8).collect();
            put(table, &key(i), &value, expiry);
            model.insert(key(i).to_vec(), (value, expiry));
        }
        Step::Remove(i) => assert_eq!(remove(table, &key(i)), model.remove(&key(i)[..]).is_some()),
        Step::Grow(to) => {
            for i in 0..to {
                put(table, &key(i), b"x", None);
                model.insert(key(i).to_vec(), (b"x".to_vec(), None));
            }
        }
        Step::Shrink(to) => {
            for i in to..4_000 {
                assert_eq!(remove(table, &key(i)), model.remove(&key(i)[..]).is_some());
            }
        }
        Step::Scan => {
            let keys = scan_all(table, 7);
            let distinct: HashSet<&Vec<u8>> = keys.iter().collect();
            assert_eq!(keys.len(), distinct.len());
            assert_eq!(keys.len(), model.len());
            assert!(keys.iter().all(|key| model.contains_key(key)));
        }
        Step::Expire(now) => {
            let mut next = Some(0);
            while let Some(at) = next {
                let judge = &mut |entry: Entry<'_>| {
                    if entry.is_expired(now) {
                        Verdict::Remove
                    } else {
                        Verdict::Keep
                    }
                };
                next = table.sweep(at, 50, true, judge, &mut |_| {});
            }
            // What was pulled back into lines that the walk had passed is met by the next.
            let judge = &mut |entry: Entry<'_>| {
                if entry.is_expired(now) {
                    Verdict::Remove
                } else {
                    Verdict::Keep
                }
            };
            let mut next = Some(0);
            while let Some(at) = next {
                next = table.sweep(at, 1_000_000, true, judge, &mut |_| {});
            }
            model.retain(|_, (_, expiry)| expiry.is_none_or(|expiry| now <= expiry));
        }
        Step::Compact => {
            let heap = Arc::clone(table.heap.heap());
            for _ in 0..heap.mark_turns() {
                heap.mark_sparse();
            }
            let mut next = Some(0);
            while let Some(at) = next {
                next = table.evacuate(at, 100);
            }
            heap.purge(100);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: if cfg!(miri) { 1 } else { 40 }, ..ProptestConfig::default() })]

    #[test]
    fn the_table_is_a_map(steps in proptest::collection::vec(step(), 1..60)) {
        let mut table = table();
        let heap = Arc::clone(table.heap.heap());
        let mut model = Model::new();
        for step in &steps {
            apply(&mut table, &mut model, step);
            check_whole(&table);
        }
        prop_assert_eq!(table.len(), model.len() as u64);
        prop_assert_eq!(table.expires(), model.values().filter(|value| value.1.is_some()).count() as u64);
        for (key, (bytes, expiry)) in &model {
            let entry = value(&table, key).unwrap();
            prop_assert!(entry.payload() == &bytes[..]);
            prop_assert_eq!(entry.expiry_ms(), *expiry);
        }
        drop(table);
        prop_assert_eq!(heap.used_bytes(), 0);
    }

    /// SCAN's guarantee: what is there throughout is returned, while the table grows, shrinks, splits and merges.
    #[test]
    fn a_scan_returns_what_was_there_throughout(seed in any::<u64>(), budget in 1usize..40) {
        let mut table = table();
        let mut random = seed | 1;
        let stay: HashSet<Vec<u8>> = (0..300u32).map(|i| key(i).to_vec()).collect();
        for key in &stay {
            put(&mut table, key, b"stays", None);
        }
        let mut seen = HashSet::new();
        let mut next = Some(0u64);
        let mut limit = 0;
        while let Some(at) = next {
            assert_eq!(at << 40, 0, "forty bits tell the place");
            next = table.scan(at, budget, &mut |entry| { seen.insert(entry.key().to_vec()); });
            prop_assert!(next.is_none_or(|next| next > at));
            let draw = crate::shard::draw(&mut random);
            let target = (draw % 20_000) as u32;
            // Big leaps, a few times; small changes otherwise.
            if draw >> 60 == 0 || limit == 0 {
                for i in 1_000..1_000 + target { put(&mut table, &key(i), b"comes and goes", None); }
                for i in 1_000 + target..1_000 + limit { remove(&mut table, &key(i)); }
                limit = target;
            }
        }
        check_whole(&table);
        prop_assert!(stay.is_subset(&seen));
    }
}

type Saved = Arc<Mutex<BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)>>>;

struct Sink(Saved);

impl CutSink for Sink {
    fn save(&mut self, entry: Entry<'_>, tree: Option<ByteTree>) {
        let mut bytes = entry.payload().to_vec();
        if let Some(tree) = tree {
            bytes.clear();
            tree.view().copy_to(0..u64::MAX, &mut bytes);
        }
        let twice = self
            .0
            .lock()
            .unwrap()
            .insert(entry.key().to_vec(), (bytes, entry.expiry_ms()));
        assert!(twice.is_none(), "an entry was saved twice");
    }
}

fn state(table: &Table) -> BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)> {
    let mut all = BTreeMap::new();
    table.scan(0, usize::MAX, &mut |entry| {
        let mut bytes = entry.payload().to_vec();
        if let Some(tree) = entry.tree() {
            bytes.clear();
            tree.copy_to(0..u64::MAX, &mut bytes);
        }
        all.insert(entry.key().to_vec(), (bytes, entry.expiry_ms()));
    });
    all
}

/// One random change of some key, large values included.
fn change(table: &mut Table, draw: u64) {
    let i = (draw % 3_000) as u32;
    let key = key(i);
    let hash = table.hasher.hash(&key);
    let heap = table.heap.clone();
    let mut spot = table.spot(hash, &key);
    match draw >> 32 & 15 {
        0..=3 => drop(spot.remove()),
        4 => {
            let mut tree = ByteTree::new(heap);
            tree.edit().append(&vec![draw as u8; LEAF_BYTES * 3]);
            let spec = Spec {
                encoding: Encoding::TREE,
                ..spec(0, None)
            };
            drop(spot.store_tree(&spec, tree));
        }
        5 | 6 => {
            if let Some(mut tree) = spot.tree_mut() {
                tree.write(draw >> 40 & 0x3fff, b"a change inside");
            }
        }
        7 | 8 => {
            if let Some(payload) = spot.payload_mut() {
                payload.iter_mut().for_each(|byte| *byte ^= 0x55);
            }
        }
        9 | 10 => {
            if let Some(spec) = spot.entry().map(Entry::spec) {
                spot.change(&Spec {
                    expiry: Some((draw >> 40) as i64),
                    mc: Some(McMeta::default()),
                    ..spec
                });
            }
        }
        11 => drop(
            spot.take()
                .map(|parts| table.spot(hash, &key).attach(parts)),
        ),
        _ => drop(
            spot.store(&spec((draw >> 50) as usize % 300, None), |payload| {
                payload.fill(draw as u8)
            }),
        ),
    }
}

/// The model of a snapshot: the state at the cut is handed over exactly, whatever happens meanwhile.
#[test]
fn cuts_see_the_state_of_their_moment_under_writes_growth_and_shrinking() {
    let cases = if cfg!(miri) { 1 } else { 12 };
    for case in 0..cases {
        let mut random = 1_000 + case;
        let mut table = table();
        for _ in 0..3_000 {
            let draw = crate::shard::draw(&mut random);
            change(&mut table, draw);
        }
        // Two cuts that overlap, several times, so that epochs go on.
        for _ in 0..3 {
            let (first, second) = (Saved::default(), Saved::default());
            let expected = state(&table);
            assert!(table.begin_cut(Box::new(Sink(Arc::clone(&first)))));
            churn(&mut table, &mut random, 500);
            table.cut_bite(200);
            let expected_second = state(&table);
            assert!(table.begin_cut(Box::new(Sink(Arc::clone(&second)))));
            assert!(!table.begin_cut(Box::new(Sink(Arc::default()))));
            while !table.cut_bite(100) {
                churn(&mut table, &mut random, 100);
            }
            assert!(
                table.end_cut().is_some() && table.end_cut().is_some() && table.end_cut().is_none()
            );
            assert!(*first.lock().unwrap() == expected, "the first cut differs");
            assert!(
                *second.lock().unwrap() == expected_second,
                "the second cut differs"
            );
        }
        check_whole(&table);
    }
}

/// Random changes, with leaps of growth and shrinking among them.
fn churn(table: &mut Table, random: &mut u64, steps: usize) {
    for _ in 0..steps {
        let draw = crate::shard::draw(random);
        change(table, draw);
        if draw >> 56 == 0 {
            let many = (draw % 4_000) as u32;
            for i in 10_000..10_000 + many {
                put(table, &key(i), b"much", None);
            }
            for i in 10_000..10_000 + many {
                remove(table, &key(i));
            }
            let heap = Arc::clone(table.heap.heap());
            heap.mark_sparse();
            table.evacuate(0, 10_000);
        }
    }
}

/// Chi-square over all keys, with sizes that leave segments of different depth and load.
#[test]
fn random_keys_are_uniform() {
    let mut table = table();
    let count = if cfg!(miri) { 50 } else { 2_300u32 };
    for i in 0..count {
        put(&mut table, &key(i), b"", None);
    }
    let draws = count * 100;
    let mut hits: HashMap<Vec<u8>, u32> = HashMap::new();
    let mut random = 77;
    for _ in 0..draws {
        let entry = table.random(|| crate::shard::draw(&mut random)).unwrap();
        *hits.entry(entry.key().to_vec()).or_default() += 1;
    }
    let chi: f64 = (0..count)
        .map(|i| (f64::from(*hits.get(&key(i)[..]).unwrap_or(&0)) - 100.0).powi(2) / 100.0)
        .sum();
    let degrees = f64::from(count - 1);
    // The mean of chi-square is its degrees of freedom, the standard deviation sqrt(2 × degrees).
    assert!(
        (chi - degrees).abs() < 5.0 * (2.0 * degrees).sqrt(),
        "{chi} for {degrees} degrees of freedom"
    );
}

#[test]
fn load_stays_high_while_growing_and_nothing_is_left_after_shrinking() {
    let mut table = table();
    let heap = Arc::clone(table.heap.heap());
    let (mut worst, mut sum, mut samples) = (0f64, 0f64, 0);
    let count = if cfg!(miri) { 3_000 } else { 60_000u32 };
    for i in 0..count {
        put(&mut table, &key(i), b"", None);
        if i > 2_000 && i % 97 == 0 {
            let per_key = heap.usage().tables_bytes as f64 / f64::from(i + 1);
            worst = worst.max(per_key);
            sum += per_key;
            samples += 1;
        }
    }
    let mean = sum / f64::from(samples);
    assert!(
        mean < 10.4 && worst < 11.5,
        "mean {mean}, worst {worst} bytes of table per key"
    );
    for i in 0..count {
        assert!(remove(&mut table, &key(i)));
        if i % 1_000 == 0 {
            check_whole(&table);
        }
        let left = u64::from(count - i - 1);
        assert!(
            heap.usage().tables_bytes <= left * 26 + 4_096,
            "{} for {left}",
            heap.usage().tables_bytes
        );
    }
    assert_eq!(heap.used_bytes(), 0);
}
