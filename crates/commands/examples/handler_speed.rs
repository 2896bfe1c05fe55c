//! Prints what GET, SET, INCR and MGET cost without network and parsing: `cargo run --release -p pantala-commands --example handler_speed`.
//! Each operation borrows its shard, runs its handler and writes its reply, on one million keys in random order.

use pantala_commands::{Command, Ctx, Effects, KeyAt, Listening, Rng, Run, families, keys};
use pantala_config::Settings;
use pantala_protocol::{OwnedArgs, Proto, Reply};
use pantala_store::borrow::Wake;
use pantala_store::{Store, StoreOptions};
use std::sync::Arc;
use std::time::Instant;

const KEYS: u64 = 1_000_000;
const OPERATIONS: usize = 500_000;

struct NoWake;

impl Wake for NoWake {
    fn wake(&self, _: usize) {}
}

struct Bench {
    store: Store,
    settings: Settings,
    fx: Effects,
    rng: Rng,
    out: Vec<u8>,
}

fn main() {
    let store = Store::new(&StoreOptions::for_threads(1, 0), Arc::new(NoWake))
        .expect("address space for a store");
    let mut bench = Bench {
        store,
        settings: Settings::default(),
        fx: Effects::default(),
        rng: Rng::new(1),
        out: Vec::new(),
    };
    let ascii: String = (0..100).map(|i| char::from(b'a' + i % 26)).collect();
    let binary: Vec<u8> = (0..100u8).map(|i| i.wrapping_mul(151) | 0x80).collect();
    for (label, value) in [
        ("100 B ASCII", ascii.as_bytes()),
        ("100 B binary", &binary[..]),
    ] {
        let fill: Vec<OwnedArgs> = (0..KEYS)
            .map(|n| request(&[b"SET", name(n).as_bytes(), value]))
            .collect();
        bench.run("SET", &format!("{label}, new or in order"), &fill);
        let mut rng = Rng::new(7);
        let mut random = || name(rng.below(KEYS));
        let gets: Vec<OwnedArgs> = (0..OPERATIONS)
            .map(|_| request(&[b"GET", random().as_bytes()]))
            .collect();
        bench.run("GET", label, &gets);
        let hot: Vec<OwnedArgs> = (0..OPERATIONS)
            .map(|n| request(&[b"GET", name(n as u64 % 100).as_bytes()]))
            .collect();
        bench.run("GET", &format!("{label}, 100 hot keys"), &hot);
        let sets: Vec<OwnedArgs> = (0..OPERATIONS)
            .map(|_| request(&[b"SET", random().as_bytes(), value]))
            .collect();
        bench.run("SET", label, &sets);
        let hot: Vec<OwnedArgs> = (0..OPERATIONS)
            .map(|n| request(&[b"SET", name(n as u64 % 100).as_bytes(), value]))
            .collect();
        bench.run("SET", &format!("{label}, 100 hot keys"), &hot);
    }
    let counters: Vec<OwnedArgs> = (0..OPERATIONS)
        .map(|n| request(&[b"INCR", format!("n{}", n % 100).as_bytes()]))
        .collect();
    bench.run("INCR", "100 hot keys", &counters);
}

fn name(n: u64) -> String {
    format!("key:{n:011}")
}

fn request(words: &[&[u8]]) -> OwnedArgs {
    let mut args = OwnedArgs::new();
    words.iter().for_each(|word| args.push(word));
    args
}

impl Bench {
    fn run(&mut self, command: &str, label: &str, requests: &[OwnedArgs]) {
        let Command {
            spec,
            run: Run::Keys(handler),
            ..
        } = find(command)
        else {
            return;
        };
        let mut positions = Vec::new();
        let start = Instant::now();
        for request in requests {
            let args = request.as_args();
            positions.clear();
            keys::positions(&spec, args, &mut positions);
            let at = KeyAt {
                arg: positions[0],
                hash: self.store.hash(args.arg(positions[0] as usize)),
            };
            let Some(mut space) = self.store.try_borrow_one(self.store.shard_of(at.hash)) else {
                continue;
            };
            self.fx.begin(Listening::empty(), 0);
            self.out.clear();
            let mut cx = Ctx {
                store: &self.store,
                space: &mut space,
                db_index: 0,
                keys: &[at],
                now_ms: 1_700_000_000_000,
                reply: Reply::new(&mut self.out, Proto::Resp2),
                fx: &mut self.fx,
                settings: &self.settings,
                rng: &mut self.rng,
            };
            handler(&mut cx, args).expect("a command that succeeds");
        }
        let ns = start.elapsed().as_secs_f64() * 1e9 / requests.len() as f64;
        println!("{command:5} {ns:7.1} ns  {label}");
    }
}

fn find(name: &str) -> Command {
    let mut all = families::ALL.iter().flat_map(|family| family.iter());
    *all.find(|command| command.spec.name.eq_ignore_ascii_case(name))
        .expect("a command of that name")
}
