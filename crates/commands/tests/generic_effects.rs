//! Random commands on keys in several databases, on one store; their recorded effects are replayed into a second one, which
//! must then hold the same. A model of plain maps says what the first must hold.

mod common;

use common::Server;
use proptest::prelude::*;
use std::collections::BTreeMap;

const KEYS: [&str; 5] = ["a", "b", "c", "dd", "e"];
const DATABASES: u16 = 3;
const CONDITIONS: [&str; 7] = ["", "NX", "XX", "GT", "LT", "XX GT", "XX LT"];
const START_MS: i64 = 1_700_000_000_000;

/// One step of a run.
#[derive(Clone, Debug)]
enum Step {
    Set {
        db: u16,
        key: usize,
        value: u32,
        ttl_ms: Option<i64>,
    },
    /// `PEXPIRE` with a condition.
    Expire {
        db: u16,
        key: usize,
        ms: i64,
        condition: &'static str,
    },
    Persist {
        db: u16,
        key: usize,
    },
    Delete {
        db: u16,
        keys: [usize; 2],
    },
    Rename {
        db: u16,
        from: usize,
        to: usize,
        only_new: bool,
    },
    Copy {
        db: u16,
        from: usize,
        to_db: u16,
        to: usize,
        replace: bool,
    },
    Move {
        db: u16,
        key: usize,
        to_db: u16,
    },
    DumpRestore {
        db: u16,
        from: usize,
        to: usize,
        ttl_ms: i64,
        absolute: bool,
        replace: bool,
    },
    SortStore {
        db: u16,
        from: usize,
        to: usize,
    },
    Swap {
        a: u16,
        b: u16,
    },
    Flush {
        db: u16,
    },
    Pass {
        ms: i64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let db = || 0..DATABASES;
    let key = || 0..KEYS.len();
    prop_oneof![
        4 => (db(), key(), any::<u32>(), prop::option::of(1i64..40))
            .prop_map(|(db, key, value, ttl_ms)| Step::Set { db, key, value, ttl_ms }),
        4 => (db(), key(), -20i64..60, prop::sample::select(&CONDITIONS[..]))
            .prop_map(|(db, key, ms, condition)| Step::Expire { db, key, ms, condition }),
        1 => (db(), key()).prop_map(|(db, key)| Step::Persist { db, key }),
        2 => (db(), [key(), key()]).prop_map(|(db, keys)| Step::Delete { db, keys }),
        3 => (db(), key(), key(), any::<bool>())
            .prop_map(|(db, from, to, only_new)| Step::Rename { db, from, to, only_new }),
        3 => (db(), key(), db(), key(), any::<bool>())
            .prop_map(|(db, from, to_db, to, replace)| Step::Copy { db, from, to_db, to, replace }),
        3 => (db(), key(), db()).prop_map(|(db, key, to_db)| Step::Move { db, key, to_db }),
        2 => (db(), key(), key(), -20i64..60, any::<bool>(), any::<bool>())
            .prop_map(|(db, from, to, ttl_ms, absolute, replace)| {
                Step::DumpRestore { db, from, to, ttl_ms: if absolute { ttl_ms } else { ttl_ms.max(0) }, absolute, replace }
            }),
        1 => (db(), key(), key()).prop_map(|(db, from, to)| Step::SortStore { db, from, to }),
        1 => (db(), db()).prop_map(|(a, b)| Step::Swap { a, b }),
        1 => db().prop_map(|db| Step::Flush { db }),
        3 => (0i64..15).prop_map(|ms| Step::Pass { ms }),
    ]
}

/// Value and expiry of each key of one database.
type Database = BTreeMap<&'static str, (String, Option<i64>)>;

/// What the store should hold.
#[derive(Default)]
struct Model {
    databases: [Database; DATABASES as usize],
    now_ms: i64,
}

impl Model {
    fn db(&mut self, db: u16) -> &mut Database {
        let now_ms = self.now_ms;
        let database = &mut self.databases[usize::from(db)];
        database.retain(|_, (_, expiry)| expiry.is_none_or(|at| now_ms <= at));
        database
    }

    /// Does the step and answers the reply.
    fn apply(&mut self, step: &Step) -> String {
        let now_ms = self.now_ms;
        match *step {
            Step::Set {
                db,
                key,
                value,
                ttl_ms,
            } => {
                self.db(db)
                    .insert(KEYS[key], (value.to_string(), ttl_ms.map(|ms| now_ms + ms)));
                "+OK".into()
            }
            Step::Expire {
                db,
                key,
                ms,
                condition,
            } => number(self.expire(db, key, now_ms + ms, condition)),
            Step::Persist { db, key } => number(
                self.db(db)
                    .get_mut(KEYS[key])
                    .is_some_and(|(_, expiry)| expiry.take().is_some()),
            ),
            Step::Delete { db, keys } => {
                let removed = keys
                    .iter()
                    .filter(|key| self.db(db).remove(KEYS[**key]).is_some())
                    .count();
                format!(":{removed}")
            }
            Step::Rename {
                db,
                from,
                to,
                only_new,
            } => {
                let database = self.db(db);
                if !database.contains_key(KEYS[from]) {
                    return "-ERR no such key".into();
                }
                let free = from != to && !database.contains_key(KEYS[to]);
                if from != to
                    && (free || !only_new)
                    && let Some(value) = database.remove(KEYS[from])
                {
                    database.insert(KEYS[to], value);
                }
                if only_new { number(free) } else { "+OK".into() }
            }
            Step::Copy {
                db,
                from,
                to_db,
                to,
                replace,
            } => {
                if db == to_db && from == to {
                    return "-ERR source and destination objects are the same".into();
                }
                let value = self.db(db).get(KEYS[from]).cloned();
                let free = replace || !self.db(to_db).contains_key(KEYS[to]);
                number(value.filter(|_| free).is_some_and(|value| {
                    self.db(to_db).insert(KEYS[to], value);
                    true
                }))
            }
            Step::Move { db, key, to_db } => {
                if db == to_db {
                    return "-ERR source and destination objects are the same".into();
                }
                if self.db(to_db).contains_key(KEYS[key]) {
                    return ":0".into();
                }
                let value = self.db(db).remove(KEYS[key]);
                number(value.is_some_and(|value| {
                    self.db(to_db).insert(KEYS[key], value);
                    true
                }))
            }
            Step::DumpRestore {
                db,
                from,
                to,
                ttl_ms,
                absolute,
                replace,
            } => {
                let database = self.db(db);
                let Some((value, _)) = database.get(KEYS[from]).cloned() else {
                    return String::new();
                };
                if database.contains_key(KEYS[to]) && !replace {
                    return "-BUSYKEY Target key name already exists.".into();
                }
                database.remove(KEYS[to]);
                let expiry = (absolute || ttl_ms != 0).then_some(now_ms + ttl_ms);
                if expiry.is_none_or(|at| at > now_ms) {
                    database.insert(KEYS[to], (value, expiry));
                }
                "+OK".into()
            }
            Step::SortStore { db, from, to } => {
                if self.db(db).contains_key(KEYS[from]) {
                    return "-WRONGTYPE Operation against a key holding the wrong kind of value"
                        .into();
                }
                self.db(db).remove(KEYS[to]);
                ":0".into()
            }
            Step::Swap { a, b } => {
                self.databases.swap(usize::from(a), usize::from(b));
                "+OK".into()
            }
            Step::Flush { db } => {
                self.db(db).clear();
                "+OK".into()
            }
            Step::Pass { ms } => {
                self.now_ms += ms;
                String::new()
            }
        }
    }

    fn expire(&mut self, db: u16, key: usize, at: i64, condition: &str) -> bool {
        let now_ms = self.now_ms;
        let database = self.db(db);
        let Some((_, expiry)) = database.get_mut(KEYS[key]) else {
            return false;
        };
        // Written unlike the handler on purpose: no expiry is the end of all times.
        let old = expiry.map_or(i128::MAX, i128::from);
        let new = i128::from(at);
        let wanted = condition.split_ascii_whitespace().all(|word| match word {
            "NX" => expiry.is_none(),
            "XX" => expiry.is_some(),
            "GT" => new > old,
            "LT" => new < old,
            other => panic!("no condition {other}"),
        });
        if wanted && at > now_ms {
            *expiry = Some(at);
        } else if wanted {
            database.remove(KEYS[key]);
        }
        wanted
    }
}

fn number(yes: bool) -> String {
    format!(":{}", i32::from(yes))
}

/// The step as a command in a database; `None` when it is none.
fn command(server: &mut Server, replica: &mut Server, step: &Step) -> Option<(u16, Vec<Vec<u8>>)> {
    let (db, line) = match *step {
        Step::Set {
            db,
            key,
            value,
            ttl_ms: None,
        } => (db, format!("SET {} {value}", KEYS[key])),
        Step::Set {
            db,
            key,
            value,
            ttl_ms: Some(ms),
        } => (db, format!("SET {} {value} PX {ms}", KEYS[key])),
        Step::Expire {
            db,
            key,
            ms,
            condition,
        } => (db, format!("PEXPIRE {} {ms} {condition}", KEYS[key])),
        Step::Persist { db, key } => (db, format!("PERSIST {}", KEYS[key])),
        Step::Delete {
            db,
            keys: [one, two],
        } => (db, format!("DEL {} {}", KEYS[one], KEYS[two])),
        Step::Rename {
            db,
            from,
            to,
            only_new,
        } => (
            db,
            format!(
                "{} {} {}",
                if only_new { "RENAMENX" } else { "RENAME" },
                KEYS[from],
                KEYS[to]
            ),
        ),
        Step::Copy {
            db,
            from,
            to_db,
            to,
            replace,
        } => (
            db,
            format!(
                "COPY {} {} DB {to_db}{}",
                KEYS[from],
                KEYS[to],
                if replace { " REPLACE" } else { "" }
            ),
        ),
        Step::Move { db, key, to_db } => (db, format!("MOVE {} {to_db}", KEYS[key])),
        Step::SortStore { db, from, to } => (db, format!("SORT {} STORE {}", KEYS[from], KEYS[to])),
        Step::Swap { a, b } => (0, format!("SWAPDB {a} {b}")),
        Step::Flush { db } => (db, "FLUSHDB".into()),
        Step::Pass { .. } => return None,
        Step::DumpRestore {
            db,
            from,
            to,
            ttl_ms,
            absolute,
            replace,
        } => {
            (server.db, replica.db) = (db, db);
            let ran = server.run(&[b"DUMP", KEYS[from].as_bytes()]);
            // A read has an effect too when it finds an expired key.
            replica.replay(&ran.record);
            let dumped = ran.reply;
            let body = dumped.iter().position(|byte| *byte == b'\n')? + 1;
            let payload = dumped.get(body..dumped.len().checked_sub(2)?)?.to_vec();
            let ttl = if absolute {
                server.now_ms + ttl_ms
            } else {
                ttl_ms
            };
            let mut words = vec![
                b"RESTORE".to_vec(),
                KEYS[to].into(),
                ttl.to_string().into_bytes(),
                payload,
            ];
            words.extend(absolute.then(|| b"ABSTTL".to_vec()));
            words.extend(replace.then(|| b"REPLACE".to_vec()));
            return Some((db, words));
        }
    };
    Some((
        db,
        line.split_ascii_whitespace()
            .map(|word| word.as_bytes().to_vec())
            .collect(),
    ))
}

fn contents(server: &mut Server, db: u16) -> BTreeMap<String, (String, Option<i64>)> {
    server.db = db;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    server
        .contents()
        .iter()
        .map(|(key, held)| (text(key), (text(&held.value), held.expiry_ms)))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn replay_gives_the_same(steps in prop::collection::vec(step(), 1..80)) {
        let (mut first, mut second) = (Server::new(), Server::new());
        let mut model = Model { now_ms: START_MS, ..Model::default() };
        first.now_ms = START_MS;
        for step in &steps {
            let expected = model.apply(step);
            first.now_ms = model.now_ms;
            // Replay knows only absolute times, so it may happen at any time.
            second.now_ms = START_MS;
            let Some((db, words)) = command(&mut first, &mut second, step) else { continue };
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            first.db = db;
            second.db = db;
            let ran = first.run(&words);
            let reply = String::from_utf8_lossy(&ran.reply);
            prop_assert_eq!(reply.trim_end(), expected, "{:?}", step);
            second.replay(&ran.record);
            prop_assert_eq!(second.db, db);
        }
        second.now_ms = first.now_ms;
        for db in 0..DATABASES {
            let held = contents(&mut first, db);
            let wanted: BTreeMap<String, _> =
                model.db(db).iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
            prop_assert_eq!(&held, &wanted, "database {}", db);
            prop_assert_eq!(held, contents(&mut second, db), "replayed, database {}", db);
        }
    }
}
