//! What `COMMAND` says, compared with what redis-server 7.0.15 says of the same commands.

use super::*;
use crate::shared::all_commands;
use pantala_protocol::{Proto, Reply};

fn info_of(name: &str) -> String {
    let registry = all_commands(&[]).expect("the tables are sound");
    let mut out = Vec::new();
    describe::reply_info(
        &mut Reply::new(&mut out, Proto::Resp3),
        &registry,
        registry.by_full_name(name.as_bytes()),
    );
    String::from_utf8(out)
        .expect("names are ASCII")
        .replace("\r\n", " ")
}

#[test]
fn command_info_equals_that_of_redis() {
    let table = [
        (
            "get",
            "*10 $3 get :2 ~2 +readonly +fast :1 :1 :1 ~3 +@read +@string +@fast ~0 ~1 %3 $5 flags ~2 +RO +access $12 begin_search %2 $4 type $5 index $4 spec %1 $5 index :1 $9 find_keys %2 $4 type $5 range $4 spec %3 $7 lastkey :0 $7 keystep :1 $5 limit :0 ~0 ",
        ),
        (
            "config|get",
            "*10 $10 config|get :-3 ~4 +admin +noscript +loading +stale :0 :0 :0 ~3 +@admin +@slow +@dangerous ~0 ~0 ~0 ",
        ),
        (
            "config|set",
            "*10 $10 config|set :-4 ~4 +admin +noscript +loading +stale :0 :0 :0 ~3 +@admin +@slow +@dangerous ~2 $24 request_policy:all_nodes $29 response_policy:all_succeeded ~0 ~0 ",
        ),
        (
            "config|help",
            "*10 $11 config|help :2 ~2 +loading +stale :0 :0 :0 ~1 +@slow ~0 ~0 ~0 ",
        ),
        (
            "command|count",
            "*10 $13 command|count :2 ~2 +loading +stale :0 :0 :0 ~2 +@slow +@connection ~0 ~0 ~0 ",
        ),
        (
            "info",
            "*10 $4 info :-1 ~2 +loading +stale :0 :0 :0 ~2 +@slow +@dangerous ~3 $23 nondeterministic_output $25 request_policy:all_shards $23 response_policy:special ~0 ~0 ",
        ),
        (
            "time",
            "*10 $4 time :1 ~3 +loading +stale +fast :0 :0 :0 ~1 +@fast ~1 $23 nondeterministic_output ~0 ~0 ",
        ),
        (
            "lastsave",
            "*10 $8 lastsave :1 ~3 +loading +stale +fast :0 :0 :0 ~3 +@admin +@fast +@dangerous ~1 $23 nondeterministic_output ~0 ~0 ",
        ),
        (
            "role",
            "*10 $4 role :1 ~4 +noscript +loading +stale +fast :0 :0 :0 ~3 +@admin +@fast +@dangerous ~0 ~0 ~0 ",
        ),
        (
            "lolwut",
            "*10 $6 lolwut :-1 ~2 +readonly +fast :0 :0 :0 ~2 +@read +@fast ~0 ~0 ~0 ",
        ),
        (
            "shutdown",
            "*10 $8 shutdown :-1 ~6 +admin +noscript +loading +stale +no_multi +allow_busy :0 :0 :0 ~3 +@admin +@slow +@dangerous ~0 ~0 ~0 ",
        ),
        (
            "debug",
            "*10 $5 debug :-2 ~4 +admin +noscript +loading +stale :0 :0 :0 ~3 +@admin +@slow +@dangerous ~0 ~0 ~0 ",
        ),
        (
            "wait",
            "*10 $4 wait :3 ~1 +noscript :0 :0 :0 ~2 +@slow +@connection ~2 $25 request_policy:all_shards $23 response_policy:agg_min ~0 ~0 ",
        ),
        (
            "replicaof",
            "*10 $9 replicaof :3 ~4 +admin +noscript +stale +no_async_loading :0 :0 :0 ~3 +@admin +@slow +@dangerous ~0 ~0 ~0 ",
        ),
        (
            "slowlog|get",
            "*10 $11 slowlog|get :-2 ~3 +admin +loading +stale :0 :0 :0 ~3 +@admin +@slow +@dangerous ~2 $24 request_policy:all_nodes $23 nondeterministic_output ~0 ~0 ",
        ),
        (
            "latency|graph",
            "*10 $13 latency|graph :3 ~4 +admin +noscript +loading +stale :0 :0 :0 ~3 +@admin +@slow +@dangerous ~3 $23 nondeterministic_output $24 request_policy:all_nodes $23 response_policy:special ~0 ~0 ",
        ),
        (
            "memory|doctor",
            "*10 $13 memory|doctor :2 ~0 :0 :0 :0 ~1 +@slow ~3 $23 nondeterministic_output $25 request_policy:all_shards $23 response_policy:special ~0 ~0 ",
        ),
        (
            "acl|whoami",
            "*10 $10 acl|whoami :2 ~3 +noscript +loading +stale :0 :0 :0 ~1 +@slow ~0 ~0 ~0 ",
        ),
        (
            "acl|list",
            "*10 $8 acl|list :2 ~4 +admin +noscript +loading +stale :0 :0 :0 ~3 +@admin +@slow +@dangerous ~0 ~0 ~0 ",
        ),
        (
            "multi",
            "*10 $5 multi :1 ~5 +noscript +loading +stale +fast +allow_busy :0 :0 :0 ~2 +@fast +@transaction ~0 ~0 ~0 ",
        ),
        ("nosuch", "_ "),
    ];
    for (name, expected) in table {
        assert_eq!(info_of(name), expected, "{name}");
    }
}

#[test]
fn every_syntax_line_can_be_read() {
    let registry = all_commands(&[]).expect("the tables are sound");
    for entry in registry.entries() {
        let parsed = syntax::parse(entry.spec.syntax, entry.spec.keys.len());
        assert!(parsed.is_ok(), "{}: {parsed:?}", entry.full_name);
    }
}

#[test]
fn every_command_can_be_described_in_both_protocols() {
    let registry = all_commands(&[]).expect("the tables are sound");
    for proto in [Proto::Resp2, Proto::Resp3] {
        for entry in registry.entries() {
            let mut out = Vec::new();
            let mut reply = Reply::new(&mut out, proto);
            describe::reply_info(&mut reply, &registry, Some(entry));
            docs::reply_docs(&mut reply, &registry, entry);
            assert!(out.ends_with(b"\r\n"));
        }
    }
}

#[test]
fn a_command_that_was_taken_away_is_not_listed() {
    let renames = [
        ("debug".to_owned(), String::new()),
        ("config".to_owned(), "settings".to_owned()),
    ];
    let registry = all_commands(&renames).expect("both exist");
    let names = matching(&registry, |_| true);
    assert!(!names.contains(&"debug") && !names.contains(&"config"));
    assert!(names.contains(&"settings"));
    assert!(names.contains(&"client|list"), "subcommands are listed too");
}

fn keys_and_flags(line: &str) -> String {
    let registry = all_commands(&[]).expect("the tables are sound");
    let args: pantala_protocol::OwnedArgs = line.split(' ').collect();
    let args = args.as_args();
    let crate::registry::Lookup::Found(entry) = registry.lookup(args) else {
        return "unknown".to_owned();
    };
    let keys = keys::positions_with_flags(&entry.spec, args);
    let shown = keys.into_iter().map(|(at, flags)| {
        let mut out = Vec::new();
        describe::key_flags(&mut Reply::new(&mut out, Proto::Resp2), flags);
        let names = String::from_utf8(out).expect("names are ASCII");
        let names: Vec<&str> = names
            .split("\r\n")
            .filter_map(|name| name.strip_prefix('+'))
            .collect();
        format!(
            "{} {}",
            args.arg(at as usize).escape_ascii(),
            names.join(" ")
        )
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[test]
fn flags_of_keys_follow_the_options() {
    let table = [
        ("get a", "a RO access"),
        ("mset a 1 b 2", "a OW update, b OW update"),
        ("set a 1", "a OW update"),
        ("set a 1 GET", "a RW access update"),
        ("bitfield a get u8 0", "a RO access"),
        ("bitfield a set u8 0 1", "a RW access update"),
        ("sort a by b store c", "a RO access, c OW update"),
        ("rename a b", "a RW access delete, b OW update"),
        ("memory usage a", "a RO"),
        ("ping a", ""),
    ];
    for (line, expected) in table {
        assert_eq!(keys_and_flags(line), expected, "{line}");
    }
}
