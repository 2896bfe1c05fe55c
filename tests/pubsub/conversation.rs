//! Plays conversations to both servers.
//!
//! ```text
//! # comment
//! = a new case: new connections, empty databases, no keyspace events
//! a COMMAND and arguments       what the client `a` sends; a client whose name ends in 3 speaks RESP3
//! ! a                           the client `a` closes its connection
//! ~ 60                          60 ms pass
//! ```
//! Each client's bytes are compared, not how they interleave with those of other clients. The oracle answers first; a step with this
//! server is over when each client has as many bytes as the oracle sent by then.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use pantala_tests::quote::{escape, split};
use pantala_tests::resp::encode;
use pantala_tests::server::{Kind, Options, Server};

/// The oracle is taken to have said all when it has been silent for so long.
const SILENCE: Duration = Duration::from_millis(8);
/// How long this server may take for a step, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);

struct Client {
    stream: TcpStream,
    got: Vec<u8>,
}

impl Client {
    fn open(server: &Server, resp3: bool) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).expect("the server accepts");
        stream.set_nodelay(true).expect("a socket option");
        let mut client = Self {
            stream,
            got: Vec::new(),
        };
        if resp3 {
            // The reply names the server, which differs.
            client.send(&encode(&["HELLO", "3"]));
            let end = Instant::now() + PATIENCE;
            while !client.got.ends_with(b"modules\r\n*0\r\n") {
                assert!(Instant::now() < end, "no answer to HELLO 3");
                client.read(Duration::from_millis(1));
            }
            client.got.clear();
        }
        client
    }

    fn send(&mut self, bytes: &[u8]) {
        // A closed connection shows in what is read.
        let _ = self.stream.write_all(bytes);
    }

    /// Reads what is there, waiting at most so long for the first byte. True: something came.
    fn read(&mut self, wait: Duration) -> bool {
        self.stream
            .set_read_timeout(Some(wait))
            .expect("a socket option");
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) => false,
            Ok(n) => {
                self.got.extend_from_slice(&chunk[..n]);
                true
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionReset
                ) =>
            {
                false
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Bytes that each client has got, step by step.
type Lengths = Vec<BTreeMap<String, usize>>;

fn play(
    server: &Server,
    steps: &[&str],
    lengths: &mut Lengths,
    is_oracle: bool,
) -> BTreeMap<String, Vec<u8>> {
    let mut admin = server.conn();
    admin.cmd("FLUSHALL");
    admin.cmd("CONFIG SET notify-keyspace-events \"\"");
    let mut clients: BTreeMap<String, Client> = BTreeMap::new();
    let mut ended = BTreeMap::new();
    for (number, step) in steps.iter().enumerate() {
        let (who, what) = step.split_once(' ').expect("a step has two parts");
        match who {
            "~" => std::thread::sleep(Duration::from_millis(what.parse().expect("a time in ms"))),
            "!" => {
                let gone = clients.remove(what).expect("a client that closes is there");
                ended.insert(what.to_owned(), gone.got);
                // Nothing tells when the server has noticed.
                std::thread::sleep(Duration::from_millis(100));
            }
            _ => {
                let client = clients
                    .entry(who.to_owned())
                    .or_insert_with(|| Client::open(server, who.ends_with('3')));
                client.send(&encode(&split(what).expect("a step is well formed")));
            }
        }
        if is_oracle {
            loop {
                let mut came = false;
                for client in clients.values_mut() {
                    came |= client.read(SILENCE);
                }
                if !came {
                    break;
                }
            }
            let seen = clients.iter();
            lengths.push(
                seen.map(|(name, client)| (name.clone(), client.got.len()))
                    .collect(),
            );
        } else {
            let end = Instant::now() + PATIENCE;
            for (name, &length) in &lengths[number] {
                let client = clients
                    .get_mut(name)
                    .expect("the same clients with both servers");
                while client.got.len() < length && Instant::now() < end {
                    client.read(Duration::from_millis(20));
                }
            }
        }
    }
    // What nobody expects comes within a moment, or not at all.
    for client in clients.values_mut() {
        while client.read(SILENCE) {}
    }
    ended.extend(clients.into_iter().map(|(name, client)| (name, client.got)));
    ended
}

/// Plays all cases of a file and reports every difference.
pub fn compare(text: &str) {
    let bin_is_oracle = std::env::var_os("PANTALA_BIN_IS_ORACLE").is_some();
    let redis = Server::redis();
    let ours = if bin_is_oracle {
        Server::redis()
    } else {
        Options::new(Kind::Pantala).set("threads", "3").start()
    };
    let mut cases: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix("= ") {
            Some(name) => cases.push((name, Vec::new())),
            None if line.trim().is_empty() => {}
            None => cases
                .last_mut()
                .expect("a file begins with a case")
                .1
                .push(line),
        }
    }
    let mut faults = Vec::new();
    for (name, steps) in &cases {
        let mut lengths = Lengths::new();
        let expected = play(&redis, steps, &mut lengths, true);
        let got = play(&ours, steps, &mut lengths, false);
        for (client, bytes) in &expected {
            let answer = got.get(client).map(Vec::as_slice).unwrap_or_default();
            if answer != bytes.as_slice() {
                let common = bytes.iter().zip(answer).take_while(|(a, b)| a == b).count();
                faults.push(format!(
                    "{name}, client {client}, after {:?}:\n  redis {}\n  ours  {}",
                    escape(&bytes[common.saturating_sub(60)..common]),
                    escape(&bytes[common..]),
                    escape(&answer[common..])
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(cases.len() > 10, "the file was not read");
}
