//! The specifications of these families against what redis-server 7.0.15 answers to COMMAND INFO and COMMAND DOCS.

mod common;

use pantala_commands::{Begin, Find, Group};

/// Name, arity, flags, since, group, tips, key rules (begin + last / step : flags).
type Row = (
    &'static str,
    i16,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

#[rustfmt::skip]
const SEEN_IN_REDIS: &[Row] = &[
    ("append", 3, "denyoom fast write", "2.0.0", "string", "", "1+0/1:insert+rw"),
    ("bitcount", -2, "readonly", "2.6.0", "bitmap", "", "1+0/1:access+ro"),
    ("bitfield", -2, "denyoom write", "3.2.0", "bitmap", "", "1+0/1:access+rw+update+variable_flags"),
    ("bitfield_ro", -2, "fast readonly", "6.0.0", "bitmap", "", "1+0/1:access+ro"),
    ("bitop", -4, "denyoom write", "2.6.0", "bitmap", "", "2+0/1:ow+update 3+-1/1:access+ro"),
    ("bitpos", -3, "readonly", "2.8.7", "bitmap", "", "1+0/1:access+ro"),
    ("decr", 2, "denyoom fast write", "1.0.0", "string", "", "1+0/1:access+rw+update"),
    ("decrby", 3, "denyoom fast write", "1.0.0", "string", "", "1+0/1:access+rw+update"),
    ("get", 2, "fast readonly", "1.0.0", "string", "", "1+0/1:access+ro"),
    ("getbit", 3, "fast readonly", "2.2.0", "bitmap", "", "1+0/1:access+ro"),
    ("getdel", 2, "fast write", "6.2.0", "string", "", "1+0/1:access+delete+rw"),
    ("getex", -2, "fast write", "6.2.0", "string", "", "1+0/1:access+rw+update"),
    ("getrange", 4, "readonly", "2.4.0", "string", "", "1+0/1:access+ro"),
    ("getset", 3, "denyoom fast write", "1.0.0", "string", "", "1+0/1:access+rw+update"),
    ("incr", 2, "denyoom fast write", "1.0.0", "string", "", "1+0/1:access+rw+update"),
    ("incrby", 3, "denyoom fast write", "1.0.0", "string", "", "1+0/1:access+rw+update"),
    ("incrbyfloat", 3, "denyoom fast write", "2.6.0", "string", "", "1+0/1:access+rw+update"),
    ("lcs", -3, "readonly", "7.0.0", "string", "", "1+1/1:access+ro"),
    ("mget", -2, "fast readonly", "1.0.0", "string", "request_policy:multi_shard", "1+-1/1:access+ro"),
    ("mset", -3, "denyoom write", "1.0.1", "string", "request_policy:multi_shard response_policy:all_succeeded", "1+-1/2:ow+update"),
    ("msetnx", -3, "denyoom write", "1.0.1", "string", "request_policy:multi_shard response_policy:agg_min", "1+-1/2:insert+ow"),
    ("pfadd", -2, "denyoom fast write", "2.8.9", "hyperloglog", "", "1+0/1:insert+rw"),
    ("pfcount", -2, "readonly", "2.8.9", "hyperloglog", "", "1+-1/1:access+rw"),
    ("pfdebug", 3, "admin denyoom write", "2.8.9", "hyperloglog", "", "2+0/1:access+rw"),
    ("pfmerge", -2, "denyoom write", "2.8.9", "hyperloglog", "", "1+0/1:access+insert+rw 2+-1/1:access+ro"),
    ("pfselftest", 1, "admin", "2.8.9", "hyperloglog", "", ""),
    ("psetex", 4, "denyoom write", "2.6.0", "string", "", "1+0/1:ow+update"),
    ("set", -3, "denyoom write", "1.0.0", "string", "", "1+0/1:access+rw+update+variable_flags"),
    ("setbit", 4, "denyoom write", "2.2.0", "bitmap", "", "1+0/1:access+rw+update"),
    ("setex", 4, "denyoom write", "2.0.0", "string", "", "1+0/1:ow+update"),
    ("setnx", 3, "denyoom fast write", "1.0.0", "string", "", "1+0/1:insert+ow"),
    ("setrange", 4, "denyoom write", "2.2.0", "string", "", "1+0/1:rw+update"),
    ("strlen", 2, "fast readonly", "2.2.0", "string", "", "1+0/1:ro"),
    ("substr", 4, "readonly", "1.0.0", "string", "", "1+0/1:access+ro"),

];

fn words(names: impl Iterator<Item = (&'static str, ())>, between: &str) -> String {
    let mut names: Vec<String> = names.map(|(name, ())| name.to_ascii_lowercase()).collect();
    names.sort();
    names.join(between)
}

/// A command, or a subcommand as `container|word`.
fn named(name: &str) -> Option<&'static pantala_commands::Command> {
    let (container, word) = name.split_once('|').unwrap_or((name, ""));
    let command = common::find(container.as_bytes())?;
    if word.is_empty() {
        return Some(command);
    }
    command.subcommands.iter().find(|sub| sub.spec.name == word)
}

#[test]
fn specifications_are_those_of_redis() {
    for &(name, arity, flags, since, group, tips, keys) in SEEN_IN_REDIS {
        let spec = named(name).unwrap_or_else(|| panic!("no {name}")).spec;
        assert_eq!(spec.arity, arity, "{name}");
        assert_eq!(
            words(spec.flags.iter_names().map(|(name, _)| (name, ())), " "),
            flags,
            "{name}"
        );
        assert_eq!(spec.since, since, "{name}");
        assert_eq!(
            format!("{:?}", spec.group).to_ascii_lowercase(),
            group,
            "{name}"
        );
        assert_eq!(spec.tips.join(" "), tips, "{name}");
        let rules: Vec<String> = spec
            .keys
            .iter()
            .map(|rule| {
                let flags = words(rule.flags.iter_names().map(|(name, _)| (name, ())), "+");
                match (rule.begin, rule.find) {
                    (Begin::Index(at), Find::Range { last, step, .. }) => {
                        format!("{at}+{last}/{step}:{flags}")
                    }
                    (Begin::Unknown, Find::Unknown) => format!("?:{flags}"),
                    _ => panic!("{name}: another kind of rule"),
                }
            })
            .collect();
        assert_eq!(rules.join(" "), keys, "{name}");
    }
}

#[test]
fn every_command_is_described() {
    for command in pantala_commands::families::ALL
        .iter()
        .flat_map(|family| family.iter())
    {
        let spec = command.spec;
        assert!(
            !spec.summary.is_empty() && spec.summary.ends_with('.'),
            "{}",
            spec.name
        );
        assert!(
            !spec.complexity.is_empty() && !spec.since.is_empty(),
            "{}",
            spec.name
        );
        assert!(spec.arity == 1 || !spec.syntax.is_empty(), "{}", spec.name);
        assert!(
            !matches!(spec.group, Group::Generic) || spec.acl != pantala_commands::Acl::STRING,
            "{}",
            spec.name
        );
    }
}
