//! The store through its public face against a map, with expiry, several databases, and values small and large.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{all, store};
use pantala_store::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    Put {
        db: u16,
        key: u16,
        length: usize,
        meta: u8,
        expiry: i64,
    },
    Tree {
        db: u16,
        key: u16,
        length: usize,
    },
    WriteTree {
        db: u16,
        key: u16,
        at: u64,
    },
    Resize {
        db: u16,
        key: u16,
        length: usize,
    },
    Expiry {
        db: u16,
        key: u16,
        expiry: Option<i64>,
    },
    Mc {
        db: u16,
        key: u16,
        cas: Option<u64>,
    },
    Remove {
        db: u16,
        key: u16,
    },
    Rename {
        db: u16,
        from: u16,
        to: u16,
    },
    Copy {
        db: u16,
        from: u16,
        to: u16,
    },
    Pass(i64),
    Swap(u16, u16),
    Flush(u16),
    Bites,
    Many {
        db: u16,
        from: u16,
        count: u16,
    },
    Few {
        db: u16,
        from: u16,
        count: u16,
    },
}

#[derive(Clone, Debug, PartialEq)]
struct Value {
    bytes: Vec<u8>,
    expiry: Option<i64>,
    mc: Option<McMeta>,
}

const DATABASES: u16 = 3;
type Model = BTreeMap<(u16, Vec<u8>), Value>;

fn name(key: u16) -> Vec<u8> {
    // Some keys are long, one is very long.
    match key {
        7 => vec![b'k'; 70_000],
        key if key % 50 == 0 => vec![b'a' + (key / 50 % 26) as u8; 100 + key as usize],
        key => format!("key:{key}").into_bytes(),
    }
}

fn step() -> impl Strategy<Value = Step> {
    let db = || 0..DATABASES;
    let key = || prop_oneof![3 => 0u16..40, 1 => 0u16..2_000];
    let length = || prop_oneof![6 => 0usize..150, 2 => 0usize..5_000, 1 => 0usize..40_000];
    prop_oneof![
        8 => (db(), key(), length(), any::<u8>(), 0i64..500)
            .prop_map(|(db, key, length, meta, expiry)| Step::Put { db, key, length, meta, expiry }),
        2 => (db(), key(), 0usize..200_000).prop_map(|(db, key, length)| Step::Tree { db, key, length }),
        2 => (db(), key(), 0u64..100_000).prop_map(|(db, key, at)| Step::WriteTree { db, key, at }),
        2 => (db(), key(), length()).prop_map(|(db, key, length)| Step::Resize { db, key, length }),
        2 => (db(), key(), proptest::option::of(0i64..500)).prop_map(|(db, key, expiry)| Step::Expiry { db, key, expiry }),
        1 => (db(), key(), proptest::option::of(any::<u64>())).prop_map(|(db, key, cas)| Step::Mc { db, key, cas }),
        4 => (db(), key()).prop_map(|(db, key)| Step::Remove { db, key }),
        2 => (db(), key(), key()).prop_map(|(db, from, to)| Step::Rename { db, from, to }),
        2 => (db(), key(), key()).prop_map(|(db, from, to)| Step::Copy { db, from, to }),
        1 => (0i64..50).prop_map(Step::Pass),
        1 => (db(), db()).prop_map(|(a, b)| Step::Swap(a, b)),
        1 => db().prop_map(Step::Flush),
        1 => Just(Step::Bites),
        1 => (db(), 0u16..1_000, 0u16..600).prop_map(|(db, from, count)| Step::Many { db, from, count }),
        1 => (db(), 0u16..1_000, 0u16..600).prop_map(|(db, from, count)| Step::Few { db, from, count }),
    ]
}

/// What the value is, read through all ways of reading.
fn read(entry: Entry<'_>) -> Value {
    let mut bytes = Vec::new();
    match entry.tree() {
        Some(tree) => tree.copy_to(0..u64::MAX, &mut bytes),
        None => bytes.extend_from_slice(entry.payload()),
    }
    Value {
        bytes,
        expiry: entry.expiry_ms(),
        mc: entry.mc(),
    }
}

struct Run<'s> {
    space: Space<'s>,
    model: Model,
    now_ms: i64,
}

impl Run<'_> {
    /// The model's keys that are over at this time go when they are met; what the store says it removed must be among them.
    fn check_removed(&mut self) {
        for removed in self.space.take_removed() {
            let key = (removed.db, removed.key.to_vec());
            let value = self
                .model
                .remove(&key)
                .expect("only what was there is removed");
            assert!(
                value.expiry.is_some_and(|expiry| self.now_ms > expiry)
                    && removed.reason == Reason::Expired
            );
        }
    }

    fn live(&self, db: u16, key: &[u8]) -> Option<&Value> {
        let value = self.model.get(&(db, key.to_vec()))?;
        if value.expiry.is_some_and(|expiry| self.now_ms > expiry) {
            None
        } else {
            Some(value)
        }
    }

    /// Runs one command on one key; afterwards the key is as the model says.
    fn on(
        &mut self,
        db: u16,
        key: &[u8],
        command: impl FnOnce(&mut Slot<'_>, Option<&Value>) -> Option<Value>,
    ) {
        let old = self.live(db, key).cloned();
        let now_ms = self.now_ms;
        {
            let mut view = self.space.db(db, now_ms);
            let key = view.key(key);
            assert_eq!(view.view(&key).map(read), old);
            let mut slot = view.slot(&key);
            assert_eq!(slot.entry().map(read), old);
            let new = command(&mut slot, old.as_ref());
            assert_eq!(slot.entry().map(read), new);
            self.space
                .take_removed()
                .iter()
                .for_each(|removed| assert_eq!(&*removed.key, key.bytes));
            match new {
                Some(value) => self.model.insert((db, key.bytes.to_vec()), value),
                None => self.model.remove(&(db, key.bytes.to_vec())),
            };
        }
    }

    fn step(&mut self, store: &Store, step: &Step) {
        match *step {
            Step::Put {
                db,
                key,
                length,
                meta,
                expiry,
            } => self.put(db, &name(key), length, meta, expiry),
            Step::Tree { db, key, length } => self.on(db, &name(key), |slot, _| {
                let mut tree = slot.new_tree();
                let bytes: Vec<u8> = (0..length).map(|i| (i / 3) as u8).collect();
                tree.edit().append(&bytes);
                slot.put_tree(Kind::String, Encoding::TREE, tree, PutMeta::CLEAR);
                Some(Value {
                    bytes,
                    expiry: None,
                    mc: None,
                })
            }),
            Step::WriteTree { db, key, at } => self.on(db, &name(key), |slot, old| {
                let mut value = old?.clone();
                if let Some(mut tree) = slot.tree_mut() {
                    tree.write(at, b"written");
                    value
                        .bytes
                        .resize(value.bytes.len().max(at as usize + 7), 0);
                    value.bytes[at as usize..at as usize + 7].copy_from_slice(b"written");
                }
                Some(value)
            }),
            Step::Resize { db, key, length } => self.on(db, &name(key), |slot, old| {
                let mut value = old?.clone();
                if let Some(payload) = slot.resize_payload(length) {
                    value.bytes.resize(length, 0);
                    payload.iter_mut().for_each(|byte| *byte ^= 1);
                    value.bytes.iter_mut().for_each(|byte| *byte ^= 1);
                }
                Some(value)
            }),
            Step::Expiry { db, key, expiry } => self.on(db, &name(key), |slot, old| {
                assert_eq!(slot.set_expiry(expiry), old.is_some());
                Some(Value {
                    expiry,
                    ..old?.clone()
                })
            }),
            Step::Mc { db, key, cas } => self.on(db, &name(key), |slot, old| {
                let mc = cas.map(|cas| McMeta {
                    flags: cas as u32,
                    cas,
                    state: 3,
                });
                assert_eq!(slot.set_mc(mc), old.is_some());
                Some(Value { mc, ..old?.clone() })
            }),
            Step::Remove { db, key } => self.on(db, &name(key), |slot, old| {
                assert_eq!(slot.remove(), old.is_some());
                None
            }),
            Step::Rename { db, from, to } => self.rename(db, &name(from), &name(to)),
            Step::Copy { db, from, to } => self.copy(db, &name(from), &name(to)),
            Step::Pass(ms) => self.now_ms += ms,
            Step::Swap(a, b) => {
                self.space.swap_databases(a, b, self.now_ms);
                let swap = |db: u16| {
                    if db == a {
                        b
                    } else if db == b {
                        a
                    } else {
                        db
                    }
                };
                self.model = std::mem::take(&mut self.model)
                    .into_iter()
                    .map(|((db, key), value)| ((swap(db), key), value))
                    .collect();
            }
            Step::Flush(db) => {
                self.space.flush(Some(db));
                self.model.retain(|key, _| key.0 != db);
            }
            Step::Bites => {
                for shard in 0..store.shards() as u16 {
                    for db in 0..DATABASES {
                        self.expire_all(shard, db);
                    }
                }
                let now_ms = self.now_ms;
                assert!(
                    self.model
                        .values()
                        .all(|value| value.expiry.is_none_or(|expiry| now_ms <= expiry))
                );
            }
            Step::Many { db, from, count } => {
                (from..from + count).for_each(|key| self.put(db, &name(key), 20, 1, 0))
            }
            Step::Few { db, from, count } => {
                for key in from..from + count {
                    self.on(db, &name(key), |slot, _| {
                        slot.remove();
                        None
                    });
                }
            }
        }
    }

    fn expire_all(&mut self, shard: u16, db: u16) {
        let mut removed = 1;
        // Words that are pulled back over the walk are met in the next round.
        while removed > 0 {
            removed = 0;
            loop {
                let mut view = self.space.shard_db(shard, db, self.now_ms);
                view.age_bite(30);
                let progress = view.expire_bite(30);
                removed += progress.removed;
                if progress.round {
                    break;
                }
            }
        }
        self.check_removed();
    }

    fn put(&mut self, db: u16, key: &[u8], length: usize, meta: u8, expiry: i64) {
        let now_ms = self.now_ms;
        self.on(db, key, |slot, old| {
            let expiry = [
                PutExpiry::Keep,
                PutExpiry::Clear,
                PutExpiry::At(now_ms + expiry),
            ][meta as usize % 3];
            let fresh = McMeta {
                flags: 1,
                cas: 2,
                state: meta,
            };
            let mc = [PutMc::Keep, PutMc::Clear, PutMc::Set(fresh)][meta as usize / 3 % 3];
            let bytes: Vec<u8> = (0..length).map(|i| i as u8 ^ meta).collect();
            slot.put(Kind::String, Encoding::RAW, &bytes, PutMeta { expiry, mc });
            Some(Value {
                bytes,
                expiry: match expiry {
                    PutExpiry::Keep => old.and_then(|old| old.expiry),
                    PutExpiry::Clear => None,
                    PutExpiry::At(at) => Some(at),
                },
                mc: match mc {
                    PutMc::Keep => old.and_then(|old| old.mc),
                    PutMc::Clear => None,
                    PutMc::Set(mc) => Some(mc),
                },
            })
        });
    }

    fn rename(&mut self, db: u16, from: &[u8], to: &[u8]) {
        let (mut moved, mut value) = (None, None);
        self.on(db, from, |slot, old| {
            value = old.cloned();
            moved = slot.take();
            None
        });
        assert_eq!(moved.is_some(), value.is_some());
        if let Some(moved) = moved {
            self.on(db, to, |slot, _| {
                slot.attach(moved);
                value
            });
        }
    }

    fn copy(&mut self, db: u16, from: &[u8], to: &[u8]) {
        let (mut copied, mut value) = (None, None);
        self.on(db, from, |slot, old| {
            value = old.cloned();
            copied = slot.duplicate();
            value.clone()
        });
        if let Some(copied) = copied {
            self.on(db, to, |slot, _| {
                slot.attach(copied);
                value
            });
        }
    }

    fn check_all(&mut self, store: &Store) {
        for db in 0..DATABASES {
            let keys = self.model.keys().filter(|key| key.0 == db).count() as u64;
            let expires = self
                .model
                .iter()
                .filter(|(key, value)| key.0 == db && value.expiry.is_some())
                .count() as u64;
            assert_eq!(store.dbsize(db), keys);
            assert_eq!(store.expires_size(db), expires);
            assert_eq!(self.space.db(db, self.now_ms).len(), keys);
            let mut seen = BTreeMap::new();
            let mut cursor = 0;
            loop {
                let (shard, at) = store.decode_cursor(cursor).unwrap();
                let view = self.space.shard_db(shard, db, self.now_ms);
                let next = view.scan(at, 13, &mut |entry| {
                    assert!(
                        seen.insert((db, entry.key().to_vec()), read(entry))
                            .is_none()
                    );
                });
                cursor = store.encode_cursor(shard, next);
                assert!(cursor < 1 << 52);
                if cursor == 0 {
                    break;
                }
            }
            let now_ms = self.now_ms;
            let live = self.model.iter().filter(|(key, value)| {
                key.0 == db && value.expiry.is_none_or(|expiry| now_ms <= expiry)
            });
            assert!(seen.iter().eq(live));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn the_store_is_a_map_with_expiry(steps in proptest::collection::vec(step(), 1..80)) {
        let store = store(DATABASES);
        let mut run = Run { space: all(&store), model: Model::new(), now_ms: 1_000 };
        for step in &steps {
            run.step(&store, step);
        }
        run.check_all(&store);
        run.space.flush(None);
        drop(run);
        store.bite_all(0, true, &mut |_| {});
        prop_assert_eq!(store.used_memory(), 0);
        prop_assert_eq!(store.dbsize(0), 0);
    }
}
