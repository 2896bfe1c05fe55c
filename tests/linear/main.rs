//! Linearisability suite: several clients work on few keys at once, single keys, `MSET`/`MGET` and transactions; each recorded history must have
//! a sequential explanation. Rounds are short (the checker is exponential in the overlap) and many, each on keys of its own.

use std::sync::{Arc, Barrier};
use std::time::Instant;

use pantala_tests::linear::{Entry, Op, Ret, Verdict, check};
use pantala_tests::resp::{Conn, Value, encode};
use pantala_tests::rng::{Rng, seed_of_run};
use pantala_tests::server::Server;

const CLIENTS: usize = 5;
const OPS_PER_CLIENT: usize = 12;
const KEYS: usize = 4;

/// The commands of one operation, to be sent as one write.
fn commands(op: &Op, prefix: &str) -> Vec<Vec<String>> {
    let key = |k: &usize| format!("{prefix}:{k}");
    match op {
        Op::Get(k) => vec![vec!["GET".into(), key(k)]],
        Op::Set(k, v) => vec![vec!["SET".into(), key(k), v.to_string()]],
        Op::Incr(k) => vec![vec!["INCR".into(), key(k)]],
        Op::Del(k) => vec![vec!["DEL".into(), key(k)]],
        Op::MSet(pairs) => {
            let mut args = vec!["MSET".to_owned()];
            pairs
                .iter()
                .for_each(|(k, v)| args.extend([key(k), v.to_string()]));
            vec![args]
        }
        Op::MGet(keys) => {
            let mut args = vec!["MGET".to_owned()];
            args.extend(keys.iter().map(key));
            vec![args]
        }
        Op::Exec(ops) => {
            let mut all = vec![vec!["MULTI".to_owned()]];
            ops.iter().for_each(|op| all.extend(commands(op, prefix)));
            all.push(vec!["EXEC".to_owned()]);
            all
        }
    }
}

fn ret(value: &Value) -> Ret {
    match value {
        Value::Simple(_) => Ret::Ok,
        Value::Int(n) => Ret::Value(Some(*n)),
        Value::Bulk(text) => Ret::Value(Some(
            std::str::from_utf8(text)
                .ok()
                .and_then(|t| t.parse().ok())
                .expect("only numbers were written"),
        )),
        Value::Array(items) => Ret::Many(items.iter().map(ret).collect()),
        v if v.is_null() => Ret::Value(None),
        other => panic!("unexpected reply {}", other.show()),
    }
}

fn random_op(rng: &mut Rng, value: i64, multi: bool) -> Op {
    let key = rng.below(KEYS);
    match rng.below(if multi { 10 } else { 4 }) {
        0 => Op::Set(key, value),
        1 => Op::Incr(key),
        2 => Op::Get(key),
        3 => Op::Del(key),
        4 | 5 => {
            let mut keys: Vec<usize> = (0..KEYS).collect();
            rng.shuffle(&mut keys);
            Op::MSet(
                keys.iter()
                    .take(1 + rng.below(KEYS))
                    .map(|k| (*k, value))
                    .collect(),
            )
        }
        6 | 7 => {
            let mut keys: Vec<usize> = (0..KEYS).collect();
            rng.shuffle(&mut keys);
            Op::MGet(keys)
        }
        _ => Op::Exec(
            (0..1 + rng.below(3))
                .map(|_| random_op(rng, value, false))
                .collect(),
        ),
    }
}

fn client(
    mut conn: Conn,
    prefix: &str,
    start: Instant,
    barrier: &Barrier,
    rng: &mut Rng,
    id: usize,
) -> Vec<Entry> {
    let ops: Vec<Op> = (0..OPS_PER_CLIENT)
        .map(|at| random_op(rng, (id * 1000 + at) as i64, true))
        .collect();
    barrier.wait();
    let mut history = Vec::new();
    for op in ops {
        let commands = commands(&op, prefix);
        let bytes: Vec<u8> = commands.iter().flat_map(|args| encode(args)).collect();
        let call = start.elapsed().as_nanos() as u64;
        conn.send_raw(&bytes).expect("the server reads");
        let mut last = Value::Null;
        for _ in &commands {
            last = conn.read().expect("a reply");
        }
        let done = start.elapsed().as_nanos() as u64;
        history.push(Entry {
            call,
            done,
            op,
            ret: ret(&last),
        });
    }
    history
}

fn rounds(suite: &str, count: usize) {
    let server = Server::pantala();
    let seed = seed_of_run(suite);
    let mut undecided = 0;
    for round in 0..count {
        let prefix = Arc::new(format!("{suite}{round}"));
        let barrier = Arc::new(Barrier::new(CLIENTS));
        let start = Instant::now();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|id| {
                let (prefix, barrier, conn) = (prefix.clone(), barrier.clone(), server.conn());
                let mut rng = Rng::new(
                    seed.wrapping_add((round * CLIENTS + id) as u64)
                        .wrapping_mul(7919),
                );
                std::thread::spawn(move || client(conn, &prefix, start, &barrier, &mut rng, id))
            })
            .collect();
        let mut history: Vec<Entry> = clients
            .into_iter()
            .flat_map(|c| c.join().expect("a client ends"))
            .collect();
        history.sort_by_key(|entry| entry.call);
        match check(&history, KEYS) {
            Verdict::Linearisable => {}
            Verdict::Undecided => undecided += 1,
            Verdict::Wrong(best) => {
                let lines: Vec<String> = history
                    .iter()
                    .enumerate()
                    .map(|(at, e)| {
                        format!(
                            "{at:3} [{:9} {:9}] {:?} -> {:?}",
                            e.call, e.done, e.op, e.ret
                        )
                    })
                    .collect();
                panic!(
                    "round {round} (PANTALA_SEED={seed}) has no sequential order; longest: {best:?}\n{}",
                    lines.join("\n")
                );
            }
        }
    }
    println!(
        "{suite}: {count} histories of {} operations, {undecided} undecided",
        CLIENTS * OPS_PER_CLIENT
    );
    assert!(
        undecided * 20 <= count,
        "{undecided} of {count} histories could not be decided"
    );
}

#[test]
fn concurrent_clients_see_one_order() {
    rounds("linear", 250);
}

/// Money moves between accounts by transactions on watched keys; the sum never changes, whoever looks.
#[test]
fn watched_transfers_keep_the_sum() {
    let server = Server::pantala();
    let seed = seed_of_run("transfers");
    let accounts = 8;
    let mut setup = server.conn();
    for account in 0..accounts {
        setup.cmd(&format!("SET account:{account} 100"));
    }
    let movers: Vec<_> = (0..4u64)
        .map(|id| {
            let mut conn = server.conn();
            let mut rng = Rng::new(seed.wrapping_add(id));
            std::thread::spawn(move || {
                (0..300)
                    .filter(|_| transfer(&mut conn, &mut rng, accounts))
                    .count()
            })
        })
        .collect();
    let all = (0..accounts)
        .map(|a| format!("account:{a}"))
        .collect::<Vec<_>>()
        .join(" ");
    for _ in 0..300 {
        let Value::Array(values) = setup.cmd(&format!("MGET {all}")) else {
            panic!("MGET must answer with an array")
        };
        let sum: i64 = values
            .iter()
            .map(|v| v.text().parse::<i64>().expect("a number"))
            .sum();
        assert_eq!(sum, 100 * accounts as i64);
    }
    let moved: usize = movers
        .into_iter()
        .map(|m| m.join().expect("a mover ends"))
        .sum();
    assert!(moved > 0, "no transfer succeeded");
}

fn transfer(conn: &mut Conn, rng: &mut Rng, accounts: usize) -> bool {
    let from = rng.below(accounts);
    let to = (from + 1 + rng.below(accounts - 1)) % accounts;
    conn.cmd(&format!("WATCH account:{from} account:{to}"));
    let read = |conn: &mut Conn, account: usize| {
        conn.cmd(&format!("GET account:{account}"))
            .text()
            .parse::<i64>()
            .expect("a number")
    };
    let (a, b) = (read(conn, from), read(conn, to));
    conn.cmd("MULTI");
    conn.cmd(&format!("SET account:{from} {}", a - 1));
    conn.cmd(&format!("SET account:{to} {}", b + 1));
    !conn.cmd("EXEC").is_null()
}
