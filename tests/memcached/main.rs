//! Memcached suite: generated classic and meta requests go to this server's memcached port and to Debian's `memcached`; every byte of the replies
//! must be the same, except for unique numbers (their pattern of equality is compared), times, and padding of decremented numbers.

mod request;
mod tables;
mod watch;

use std::fs;
use std::path::Path;

use pantala_tests::deviations::{self, Deviation};
use pantala_tests::grammar::Grammar;
use pantala_tests::quote::{escape, quote};
use pantala_tests::rng::{Rng, seed_of_run};
use pantala_tests::server::{Kind, Options, Server};
use pantala_tests::shrink::shrink;
use pantala_tests::values::Pool;
use request::Side;

/// Sequences per family, unless `PANTALA_ROUNDS` says otherwise.
const ROUNDS: usize = 200;
/// Forms per sequence.
const FORMS: usize = 60;
/// After so many different failures a family stops.
const FAILURES_MAX: usize = 5;

/// One request as words; `DATA` stands before a data block.
type Request = Vec<Vec<u8>>;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("memcached")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Our server with a memcached port, and a memcached.
fn servers() -> (Server, Server) {
    (
        Options::new(Kind::Pantala).with_memcached().start(),
        Options::new(Kind::Memcached).start(),
    )
}

/// The first difference: which request, our reply, theirs.
fn run(
    pair: &(Server, Server),
    table: &[Deviation],
    requests: &[Request],
    prefix: &str,
) -> Option<(usize, String, String)> {
    let (mut ours, mut theirs) = (Side::open(&pair.0, prefix), Side::open(&pair.1, prefix));
    for (at, request) in requests.iter().enumerate() {
        let (a, b) = (ours.call(request), theirs.call(request));
        let line = show(request);
        if a != b && !table.iter().any(|d| d.covers(&line, &b, &a)) {
            return Some((at, a, b));
        }
    }
    None
}

fn show(request: &Request) -> String {
    request
        .iter()
        .map(|word| quote(word))
        .collect::<Vec<_>>()
        .join(" ")
}

fn family(name: &str) {
    let rounds = std::env::var("PANTALA_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(ROUNDS);
    let pair = servers();
    let grammar = Grammar::parse(&read(&format!("{name}.txt")))
        .unwrap_or_else(|error| panic!("{name}.txt: {error}"));
    let table =
        deviations::parse(&read("deviations.txt")).expect("the table of deviations is well formed");
    let seed = seed_of_run(name);
    let mut tries = 0;
    let mut failures = Vec::new();
    for round in 0..rounds {
        let mut rng = Rng::new(seed.wrapping_mul(1_000_003).wrapping_add(round as u64));
        let mut pool = Pool::new(0);
        let requests: Vec<Request> = (0..FORMS)
            .flat_map(|_| grammar.draw(&mut rng, &mut pool))
            .collect();
        // Keys that no other sequence used stand for an empty cache: flush_all takes effect only by the second.
        let mut fresh = || {
            tries += 1;
            format!("{name}{tries}:")
        };
        let Some((at, ..)) = run(&pair, &table, &requests, &fresh()) else {
            continue;
        };
        // Memcached's clock ticks once a second: what it answers around a tick cannot be had again. A fault of ours can.
        let repeats = (0..2).any(|_| run(&pair, &table, &requests[..=at], &fresh()).is_some());
        if !repeats {
            println!("{name}: a difference in round {round} did not come again");
            continue;
        }
        let small = shrink(&requests[..=at], 200, |few| {
            run(&pair, &table, few, &fresh()).is_some()
        });
        let lines: Vec<String> = small.iter().map(show).collect();
        let (ours, theirs) =
            run(&pair, &table, &small, &fresh()).map_or_else(Default::default, |(_, a, b)| (a, b));
        failures.push(format!(
            "ours:\n{ours}\nmemcached:\n{theirs}\nafter:\n{}\n",
            lines.join("\n")
        ));
        if failures.len() >= FAILURES_MAX {
            break;
        }
    }
    assert!(
        failures.is_empty(),
        "{name} (PANTALA_SEED={seed}):\n{}",
        failures.join("\n")
    );
}

#[test]
fn classic() {
    family("classic");
}

#[test]
fn meta() {
    family("meta");
}

/// What Redis clients write, memcached clients read, and the other way round.
#[test]
fn both_protocols_see_one_keyspace() {
    let server = Options::new(Kind::Pantala).with_memcached().start();
    if std::env::var_os("PANTALA_BIN_IS_ORACLE").is_some() {
        return;
    }
    let (mut redis, mut mc) = (server.conn(), server.mc());
    redis.cmd("SET shared hello EX 1000");
    assert_eq!(
        escape(&mc.call(b"get shared\r\n").expect("a reply")),
        "VALUE shared 0 5\\r\\nhello\\r\\nEND\\r\\n"
    );
    assert_eq!(
        escape(&mc.call(b"set other 7 0 3\r\nabc\r\n").expect("a reply")),
        "STORED\\r\\n"
    );
    assert_eq!(redis.cmd("GET other").text(), "abc");
    assert_eq!(
        escape(&mc.call(b"set n 0 0 1\r\n5\r\n").expect("a reply")),
        "STORED\\r\\n"
    );
    assert_eq!(redis.cmd("INCR n").int(), Some(6));
    assert_eq!(
        escape(&mc.call(b"incr n 10\r\n").expect("a reply")),
        "16\\r\\n"
    );
    assert_eq!(redis.cmd("DEL shared").int(), Some(1));
    assert_eq!(
        escape(&mc.call(b"get shared\r\n").expect("a reply")),
        "END\\r\\n"
    );
    let ttl = mc.call(b"mg other t v\r\n").expect("a reply");
    assert_eq!(escape(&ttl), "VA 3 t-1\\r\\nabc\\r\\n");
    assert_eq!(redis.cmd("EXPIRE other 500").int(), Some(1));
    let ttl = String::from_utf8_lossy(&mc.call(b"mg other t\r\n").expect("a reply")).into_owned();
    assert!(
        ttl.starts_with("HD t5") || ttl.starts_with("HD t49"),
        "{ttl}"
    );
}
