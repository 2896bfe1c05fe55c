//! Compares the replies of two servers. The rule is equality of bytes; the few commands whose replies may differ between two right servers
//! (order of keys, clocks, addresses, random choices) are listed here, each with what must still hold.

use crate::resp::Value;

/// What one command led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A reply.
    Reply(Value),
    /// The server closed the connection.
    Closed,
    /// No whole reply in time, or bytes that are no reply: never right.
    Broken(String),
}

impl Outcome {
    /// One line.
    pub fn show(&self) -> String {
        match self {
            Self::Reply(value) => value.show(),
            Self::Closed => "(closed)".into(),
            Self::Broken(why) => format!("(broken: {why})"),
        }
    }
}

/// What must hold between two replies to the same command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// The same bytes.
    Exact,
    /// The same elements in any order, at every level.
    Unordered,
    /// Integers this close together; all else exact.
    Near(i64),
    /// Both null, both errors (the same), or both something of the same type.
    SameType,
    /// An integer, ours no larger: whoever removes expired keys sooner counts fewer.
    NotMore,
}

const RULES: &[(&str, Rule)] = &[
    ("@STATE", Rule::Near(3000)),
    ("@SCANALL", Rule::Exact),
    ("TTL", Rule::Near(3)),
    ("PTTL", Rule::Near(3000)),
    ("EXPIRETIME", Rule::Near(3)),
    ("PEXPIRETIME", Rule::Near(3000)),
    ("LASTSAVE", Rule::SameType),
    ("TIME", Rule::SameType),
    ("OBJECT IDLETIME", Rule::Near(3)),
    ("OBJECT FREQ", Rule::SameType),
    ("MEMORY USAGE", Rule::SameType),
    ("DEBUG OBJECT", Rule::SameType),
    ("KEYS", Rule::Unordered),
    ("SCAN", Rule::Unordered),
    ("DBSIZE", Rule::NotMore),
    ("RANDOMKEY", Rule::SameType),
    ("DUMP", Rule::SameType),
    ("CLIENT ID", Rule::SameType),
    ("CLIENT INFO", Rule::SameType),
    ("CLIENT LIST", Rule::SameType),
    ("COMMAND COUNT", Rule::SameType),
    ("COMMAND LIST", Rule::SameType),
    ("COMMAND DOCS", Rule::SameType),
    ("COMMAND INFO", Rule::SameType),
    ("COMMAND", Rule::SameType),
    ("CONFIG GET", Rule::Unordered),
    ("HELLO", Rule::SameType),
    ("INFO", Rule::SameType),
    ("LOLWUT", Rule::SameType),
    ("SLOWLOG GET", Rule::SameType),
    ("SLOWLOG LEN", Rule::SameType),
    ("LATENCY", Rule::SameType),
    ("MEMORY STATS", Rule::SameType),
    ("MEMORY DOCTOR", Rule::SameType),
    ("MEMORY MALLOC-STATS", Rule::SameType),
    // Newer versions have more to help with.
    ("CLIENT HELP", Rule::SameType),
    ("COMMAND HELP", Rule::SameType),
    ("CONFIG HELP", Rule::SameType),
    ("DEBUG HELP", Rule::SameType),
    ("LATENCY HELP", Rule::SameType),
    ("MEMORY HELP", Rule::SameType),
    ("OBJECT HELP", Rule::SameType),
    ("SLOWLOG HELP", Rule::SameType),
];

/// Compares two outcomes of the command `args`; `queued` are the commands of the transaction that an EXEC ends.
pub fn same(args: &[Vec<u8>], queued: &[Vec<Vec<u8>>], ours: &Outcome, theirs: &Outcome) -> bool {
    match (ours, theirs) {
        (Outcome::Broken(_), _) | (_, Outcome::Broken(_)) => false,
        (Outcome::Reply(a), Outcome::Reply(b)) if a != b => {
            if name(args, 1) == "EXEC"
                && let (Value::Array(a), Value::Array(b)) = (a, b)
            {
                return a.len() == b.len()
                    && a.len() == queued.len()
                    && queued
                        .iter()
                        .zip(a.iter().zip(b))
                        .all(|(args, (a, b))| holds(rule(args), a, b));
            }
            holds(rule(args), a, b)
        }
        (a, b) => a == b,
    }
}

fn name(args: &[Vec<u8>], words: usize) -> String {
    let words: Vec<String> = args
        .iter()
        .take(words)
        .map(|w| String::from_utf8_lossy(w).to_uppercase())
        .collect();
    words.join(" ")
}

fn rule(args: &[Vec<u8>]) -> Rule {
    // Only a scan from the start with a count above the number of keys answers the same on two servers with different hash seeds.
    if name(args, 1) == "SCAN"
        && (args.get(1).is_none_or(|cursor| cursor != b"0") || !args.iter().any(|a| a == b"100000"))
    {
        return Rule::SameType;
    }
    let find = |wanted: &str| {
        RULES
            .iter()
            .find(|(name, _)| *name == wanted)
            .map(|(_, rule)| *rule)
    };
    find(&name(args, 2))
        .or_else(|| find(&name(args, 1)))
        .unwrap_or(Rule::Exact)
}

fn holds(rule: Rule, ours: &Value, theirs: &Value) -> bool {
    if ours.is_error() || theirs.is_error() {
        return ours == theirs;
    }
    match rule {
        Rule::Exact => ours == theirs,
        Rule::Unordered => sorted(ours) == sorted(theirs),
        Rule::Near(limit) => near(ours, theirs, limit),
        Rule::SameType => same_type(ours, theirs),
        Rule::NotMore => ours
            .int()
            .zip(theirs.int())
            .is_some_and(|(ours, theirs)| ours <= theirs),
    }
}

fn same_type(ours: &Value, theirs: &Value) -> bool {
    std::mem::discriminant(ours) == std::mem::discriminant(theirs)
}

fn near(ours: &Value, theirs: &Value, limit: i64) -> bool {
    match (ours, theirs) {
        // Negative numbers are answers of their own (-1: no expiry, -2: no key).
        (Value::Int(a), Value::Int(b)) => {
            a == b || (*a >= 0 && *b >= 0 && a.abs_diff(*b) <= limit.unsigned_abs())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| near(a, b, limit))
        }
        _ => ours == theirs,
    }
}

fn sorted(value: &Value) -> Value {
    let sort = |items: &[Value]| {
        let mut items: Vec<Value> = items.iter().map(sorted).collect();
        items.sort_by_key(Value::show);
        items
    };
    match value {
        Value::Array(items) => Value::Array(sort(items)),
        Value::Set(items) => Value::Set(sort(items)),
        Value::Map(pairs) => {
            let mut pairs = pairs.clone();
            pairs.sort_by_key(|(key, _)| key.show());
            Value::Map(pairs)
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, ours: Value, theirs: Value) -> bool {
        let args = crate::quote::split(command).expect("valid");
        same(&args, &[], &Outcome::Reply(ours), &Outcome::Reply(theirs))
    }

    #[test]
    fn only_listed_commands_may_differ() {
        let bulk = |t: &str| Value::Bulk(t.into());
        assert!(!check("GET k", bulk("a"), bulk("b")));
        assert!(!check("GET k", Value::Null, Value::NullBulk));
        assert!(check(
            "KEYS *",
            Value::Array(vec![bulk("a"), bulk("b")]),
            Value::Array(vec![bulk("b"), bulk("a")])
        ));
        assert!(!check(
            "MGET a b",
            Value::Array(vec![bulk("a"), bulk("b")]),
            Value::Array(vec![bulk("b"), bulk("a")])
        ));
        assert!(check("pttl k", Value::Int(5000), Value::Int(5001)));
        assert!(!check("pttl k", Value::Int(-1), Value::Int(0)));
        assert!(!check(
            "TIME",
            Value::Error(b"ERR x".to_vec()),
            Value::Array(Vec::new())
        ));
        assert!(!same(
            &[],
            &[],
            &Outcome::Broken("x".into()),
            &Outcome::Broken("x".into())
        ));
    }

    #[test]
    fn exec_compares_each_queued_command_by_its_own_rule() {
        let queued = [
            vec![b"TTL".to_vec(), b"k".to_vec()],
            vec![b"GET".to_vec(), b"k".to_vec()],
        ];
        let exec = [b"EXEC".to_vec()];
        let reply = |ttl, get: &str| {
            Outcome::Reply(Value::Array(vec![Value::Int(ttl), Value::Bulk(get.into())]))
        };
        assert!(same(&exec, &queued, &reply(100, "a"), &reply(101, "a")));
        assert!(!same(&exec, &queued, &reply(100, "a"), &reply(101, "b")));
    }
}
