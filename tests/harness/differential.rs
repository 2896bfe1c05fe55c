//! Runs one sequence of commands on two servers and compares every reply. A sequence starts on empty databases and fresh connections, so that
//! it fails alone or not at all, and can be shrunk.

use std::io::ErrorKind;
use std::time::Duration;

use crate::compare::{Outcome, same};
use crate::deviations::Deviation;
use crate::generate::Step;
use crate::resp::{Conn, Value};
use crate::server::{REPLY_TIMEOUT, Server};
use crate::shrink::shrink;

/// The version of the protocol that a sequence uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proto {
    /// The version that connections start with.
    Resp2,
    /// After `HELLO 3`.
    Resp3,
}

/// The first difference that a sequence led to.
#[derive(Debug, Clone)]
pub struct Mismatch {
    /// Which step.
    pub at: usize,
    /// Our outcome.
    pub ours: Outcome,
    /// The oracle's.
    pub theirs: Outcome,
}

/// Two servers side by side.
#[derive(Debug)]
pub struct Pair<'a> {
    ours: &'a Server,
    theirs: &'a Server,
    deviations: &'a [Deviation],
    /// How many commands were compared so far.
    pub compared: usize,
    /// How often each intended difference was seen.
    pub deviated: Vec<usize>,
}

/// Both connections to one server, and what is queued on each.
struct Side<'a> {
    server: &'a Server,
    proto: Proto,
    conns: [Conn; 2],
}

impl<'a> Pair<'a> {
    /// Compares `ours` with `theirs`, except for `deviations`.
    pub fn new(ours: &'a Server, theirs: &'a Server, deviations: &'a [Deviation]) -> Self {
        Self {
            ours,
            theirs,
            deviations,
            compared: 0,
            deviated: vec![0; deviations.len()],
        }
    }

    /// Runs `steps` on both; the first difference, if there is one.
    pub fn run(&mut self, steps: &[Step], proto: Proto) -> Option<Mismatch> {
        let mut ours = Side::open(self.ours, proto);
        let mut theirs = Side::open(self.theirs, proto);
        let mut queued: [Vec<Vec<Vec<u8>>>; 2] = [Vec::new(), Vec::new()];
        for (at, step) in steps.iter().enumerate() {
            let name = step
                .args
                .first()
                .map(|a| a.to_ascii_uppercase())
                .unwrap_or_default();
            let (a, b) = match name.as_slice() {
                b"@SLEEP" => {
                    std::thread::sleep(Duration::from_millis(sleep_ms(step)));
                    continue;
                }
                b"@DUMPCROSS" => cross_restore(step, &mut ours, &mut theirs),
                b"@SCANALL" => (ours.scan_all(step), theirs.scan_all(step)),
                b"@STATE" => (ours.state(step), theirs.state(step)),
                _ => (ours.call(step), theirs.call(step)),
            };
            self.compared += 1;
            let queue = &mut queued[step.conn];
            let queues = a == Outcome::Reply(Value::Simple(b"QUEUED".to_vec()));
            if !same(&step.args, queue, &a, &b) && !self.intended(step, &a, &b) {
                return Some(Mismatch {
                    at,
                    ours: a,
                    theirs: b,
                });
            }
            if queues {
                queue.push(step.args.clone());
            } else if matches!(name.as_slice(), b"MULTI" | b"EXEC" | b"DISCARD" | b"RESET")
                || a == Outcome::Closed
            {
                queue.clear();
            }
        }
        None
    }

    /// Shrinks a failing sequence and words the failure as a regression test that can be saved as a file.
    pub fn explain(&mut self, steps: &[Step], proto: Proto) -> String {
        // A server that does not answer costs its whole time limit in every try.
        let hangs = |m: &Mismatch| {
            [&m.ours, &m.theirs]
                .iter()
                .any(|o| matches!(o, Outcome::Broken(_)))
        };
        let small = if self.run(steps, proto).is_some_and(|m| hangs(&m)) {
            shrink(steps, 8, |s| self.run(s, proto).is_some())
        } else {
            let fewer = shrink(steps, 300, |s| self.run(s, proto).is_some());
            self.shrink_arguments(fewer, proto)
        };
        let lines: Vec<String> = small.iter().map(Step::line).collect();
        let found = self.run(&small, proto);
        let found = match &found {
            Some(m) => format!(
                "# step {}: ours {}\n# redis-server  {}",
                m.at + 1,
                m.ours.show(),
                m.theirs.show()
            ),
            None => "# the shrunk sequence failed only sometimes: look for a race".into(),
        };
        format!(
            "replies differ ({proto:?}); save this as differential/regressions/NAME.txt:\n{found}\n{}\n",
            lines.join("\n")
        )
    }

    fn shrink_arguments(&mut self, mut steps: Vec<Step>, proto: Proto) -> Vec<Step> {
        for at in 0..steps.len().min(20) {
            let args = steps[at].args.clone();
            let smaller = shrink(&args, 20, |few| {
                let mut changed = steps.clone();
                changed[at].args = few.to_vec();
                few.first() == args.first() && self.run(&changed, proto).is_some()
            });
            steps[at].args = smaller;
        }
        steps
    }

    fn intended(&mut self, step: &Step, ours: &Outcome, theirs: &Outcome) -> bool {
        let command = step.line();
        let found = self
            .deviations
            .iter()
            .position(|d| d.covers(&command, &theirs.show(), &ours.show()));
        if let Some(at) = found {
            self.deviated[at] += 1;
        }
        found.is_some()
    }
}

impl<'a> Side<'a> {
    fn open(server: &'a Server, proto: Proto) -> Self {
        let mut control = server.conn();
        control.cmd("FLUSHALL");
        Self {
            server,
            proto,
            conns: [connect(server, proto), connect(server, proto)],
        }
    }

    fn call(&mut self, step: &Step) -> Outcome {
        let result = self.conns[step.conn].call(&step.args);
        self.outcome(step.conn, result)
    }

    fn outcome(&mut self, conn: usize, result: std::io::Result<Value>) -> Outcome {
        match result {
            Ok(value) => Outcome::Reply(value),
            Err(error) => {
                self.conns[conn] = connect(self.server, self.proto);
                match error.kind() {
                    ErrorKind::UnexpectedEof
                    | ErrorKind::ConnectionReset
                    | ErrorKind::BrokenPipe
                    | ErrorKind::ConnectionAborted => Outcome::Closed,
                    _ => Outcome::Broken(error.to_string()),
                }
            }
        }
    }

    /// A whole `SCAN` with the options of the step: the keys, sorted, each once.
    fn scan_all(&mut self, step: &Step) -> Outcome {
        let mut found: Vec<Value> = Vec::new();
        let mut cursor = b"0".to_vec();
        for _ in 0..10_000 {
            let mut args = vec![b"SCAN".to_vec(), cursor];
            args.extend(step.args.iter().skip(1).cloned());
            let outcome = self.call(&Step {
                conn: step.conn,
                args,
            });
            let Outcome::Reply(Value::Array(parts)) = &outcome else {
                return outcome;
            };
            let [Value::Bulk(next), Value::Array(keys)] = parts.as_slice() else {
                return outcome;
            };
            found.extend(keys.iter().cloned());
            if next == b"0" {
                found.sort_by_key(Value::show);
                found.dedup();
                return Outcome::Reply(Value::Array(found));
            }
            cursor = next.clone();
        }
        Outcome::Broken("SCAN did not end within 10,000 calls".into())
    }

    /// Everything that can be seen of the selected database: each key with type, value, encoding, time to live.
    fn state(&mut self, step: &Step) -> Outcome {
        let mut keys = match self.call(&Step {
            conn: step.conn,
            args: vec![b"KEYS".to_vec(), b"*".to_vec()],
        }) {
            Outcome::Reply(Value::Array(keys)) => keys,
            other => return other,
        };
        keys.sort_by_key(Value::show);
        let mut all = Vec::new();
        for key in keys {
            let name = key.bytes().unwrap_or_default().to_vec();
            all.push(key);
            for command in [&["TYPE"][..], &["GET"], &["OBJECT", "ENCODING"], &["PTTL"]] {
                let mut args: Vec<Vec<u8>> =
                    command.iter().map(|w| w.as_bytes().to_vec()).collect();
                args.push(name.clone());
                match self.call(&Step {
                    conn: step.conn,
                    args,
                }) {
                    Outcome::Reply(value) => all.push(value),
                    other => return other,
                }
            }
        }
        Outcome::Reply(Value::Array(all))
    }

    fn restore(&mut self, step: &Step, dump: Option<&[u8]>) -> Outcome {
        let Some(dump) = dump else {
            return Outcome::Reply(Value::NullBulk);
        };
        let at = b"restored".to_vec();
        let args = vec![
            b"RESTORE".to_vec(),
            at.clone(),
            b"0".to_vec(),
            dump.to_vec(),
            b"REPLACE".to_vec(),
        ];
        let restored = self.call(&Step {
            conn: step.conn,
            args,
        });
        let value = self.call(&Step {
            conn: step.conn,
            args: vec![b"GET".to_vec(), at.clone()],
        });
        let _ = self.call(&Step {
            conn: step.conn,
            args: vec![b"DEL".to_vec(), at],
        });
        match (restored, value) {
            (Outcome::Reply(a), Outcome::Reply(b)) => Outcome::Reply(Value::Array(vec![a, b])),
            (Outcome::Reply(_), other) | (other, _) => other,
        }
    }
}

/// Each side restores what the other side dumped, and shows the value.
fn cross_restore(step: &Step, ours: &mut Side<'_>, theirs: &mut Side<'_>) -> (Outcome, Outcome) {
    let dump = Step {
        conn: step.conn,
        args: vec![
            b"DUMP".to_vec(),
            step.args.get(1).cloned().unwrap_or_default(),
        ],
    };
    let (a, b) = (ours.call(&dump), theirs.call(&dump));
    let bytes = |outcome: &Outcome| {
        if let Outcome::Reply(Value::Bulk(bytes)) = outcome {
            Some(bytes.clone())
        } else {
            None
        }
    };
    match (&a, &b) {
        (Outcome::Reply(Value::Bulk(_)), Outcome::Reply(Value::Bulk(_))) => (
            ours.restore(step, bytes(&b).as_deref()),
            theirs.restore(step, bytes(&a).as_deref()),
        ),
        _ => (a, b),
    }
}

fn connect(server: &Server, proto: Proto) -> Conn {
    let mut conn = server.conn_with(REPLY_TIMEOUT);
    if proto == Proto::Resp3 {
        let reply = conn.cmd("HELLO 3");
        assert!(
            matches!(reply, Value::Map(_)),
            "HELLO 3 on {:?}: {}",
            server.kind,
            reply.show()
        );
    }
    conn
}

fn sleep_ms(step: &Step) -> u64 {
    step.args
        .get(1)
        .and_then(|a| std::str::from_utf8(a).ok())
        .and_then(|t| t.parse().ok())
        .unwrap_or(10)
        .min(2000)
}
