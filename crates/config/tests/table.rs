//! The table as a whole: it agrees with itself, and with what a real Redis knows.

use std::collections::HashSet;

use pantala_config::{
    Effect, House, Kind, OptionSpec, Settings, config_get, config_set, find, options,
};
use proptest::prelude::*;

/// Options of Redis that are deliberately not in the table, each with the reason. Empty: all are known.
const NOT_HERE: &[(&str, &str)] = &[];

/// Defaults that differ from Redis's, each with the reason.
const OTHER_DEFAULTS: &[(&str, &str)] = &[
    ("bind", "an open server must be asked for"),
    ("save", "no snapshots are written yet, so none are promised"),
];

/// Options of Redis that CONFIG SET may change there, but not here.
const FIXED_HERE: &[(&str, &str)] = &[];

#[test]
fn every_option_of_redis_is_known_with_its_default_and_rights() {
    let settings = Settings::default();
    for line in include_str!("data/redis-7.0.15-options.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, default, rights] = fields[..] else {
            panic!("three fields: {line}")
        };
        if NOT_HERE.iter().any(|(not_here, _)| *not_here == name) {
            assert!(find(name).is_none(), "{name} is in the table after all");
            continue;
        }
        let found = find(name).unwrap_or_else(|| panic!("{name} is not in the table"));
        let shown = config_get(&settings, &[name]);
        assert_eq!(shown.len(), 1, "{name}");
        if OTHER_DEFAULTS.iter().any(|(other, _)| *other == name) {
            assert_ne!(shown[0].1, default, "{name} has Redis's default after all");
        } else {
            assert_eq!(shown[0].1, default, "{name}");
        }
        let fixed_here = FIXED_HERE.iter().any(|(fixed, _)| *fixed == name);
        assert_eq!(
            found.spec.mutable,
            rights == "mutable" && !fixed_here || name == "dbfilename",
            "{name}"
        );
    }
}

#[test]
fn all_that_redis_lists_is_listed_here() {
    let listed: HashSet<String> = config_get(&Settings::default(), &["*"])
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    for line in include_str!("data/redis-7.0.15-options.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let name = line.split('\t').next().expect("a field");
        assert!(listed.contains(name), "{name}");
    }
}

#[test]
fn names_are_unique_and_well_formed() {
    let mut seen = HashSet::new();
    for spec in options() {
        let aliases = spec
            .aliases
            .iter()
            .filter(|alias| alias.name.replace('_', "-") != spec.name);
        for name in std::iter::once(spec.name).chain(aliases.map(|alias| alias.name)) {
            assert!(seen.insert(name.replace('_', "-")), "{name} stands twice");
            assert_eq!(find(name).map(|found| found.spec.name), Some(spec.name));
        }
        assert!(
            spec.name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
            "{}",
            spec.name
        );
        // A Redis name may be matched by a pattern, so it must never come with foreign values.
        assert!(
            spec.aliases
                .iter()
                .all(|a| a.house == House::Dragonfly || a.translation.is_none()),
            "{}",
            spec.name
        );
    }
}

#[test]
fn defaults_are_canonical() {
    let settings = Settings::default();
    for spec in options().iter().filter(|spec| !spec.file_only) {
        let mut again = settings.clone();
        let value = spec.get(&settings);
        spec.set(&mut again, &value)
            .unwrap_or_else(|reason| panic!("{} = {value}: {reason}", spec.name));
        assert_eq!(settings, again, "{}", spec.name);
        assert!(spec.is_default(&settings), "{}", spec.name);
        if matches!(spec.effect, Effect::None(_)) {
            assert_eq!(
                value, spec.default,
                "{}: an option without effect is stored in its canonical form",
                spec.name
            );
        }
    }
}

#[test]
fn what_would_be_unsafe_to_ignore_is_refused() {
    for (name, value) in [
        ("appendonly", "yes"),
        ("save", "900 1"),
        ("replicaof", "127.0.0.1 6379"),
        ("tls-port", "6380"),
        ("tls-replication", "yes"),
        ("cluster-enabled", "yes"),
        ("cluster_mode", "emulated"),
        ("aclfile", "users.acl"),
        ("min-replicas-to-write", "1"),
        ("snapshot_cron", "* * * * *"),
        ("admin_port", "6380"),
        ("tls", "yes"),
        ("user", "alice on"),
        ("loadmodule", "x.so"),
    ] {
        let found = find(name).expect("in the table");
        let mut settings = Settings::default();
        let reason = found.set(&mut settings, value).expect_err(name);
        assert!(
            reason.starts_with("not supported yet: "),
            "{name}: {reason}"
        );
        assert_eq!(settings, Settings::default(), "{name}");
    }
}

#[test]
fn switches_of_dragonfly_map_to_values() {
    let set = |name: &str, value: &str| {
        let mut settings = Settings::default();
        find(name)
            .expect("in the table")
            .set(&mut settings, value)
            .expect("a valid value");
        settings
    };
    let cache = set("cache_mode", "yes");
    assert_eq!(cache.maxmemory_policy.name(), "allkeys-lfu");
    assert_eq!(
        config_get(&cache, &["cache_mode"]),
        [("cache_mode".to_owned(), "yes".to_owned())]
    );
    assert_eq!(set("force_epoll", "yes").io.name(), "epoll");
    assert_eq!(set("proactor_threads", "3").threads, 3);
    assert_eq!(set("dbnum", "4").databases, 4);
    assert_eq!(set("memcached_port", "11211").memcached_port, 11211);
}

/// Values that the option may take, and now and then something else.
fn value_for(spec: &'static OptionSpec) -> BoxedStrategy<String> {
    match spec.kind {
        Kind::Bool => prop_oneof![Just("yes".to_owned()), Just("No".to_owned())].boxed(),
        Kind::Integer { min, max } => (min..=max).prop_map(|n| n.to_string()).boxed(),
        Kind::Octal { max } => (0..=max).prop_map(|n| format!("{n:o}")).boxed(),
        Kind::Memory { min, max, .. } => prop_oneof![
            (min..=max).prop_map(|n| n.to_string()),
            "[0-9]{1,5}[kmg]b?",
            "[0-9]{1,3}%"
        ]
        .boxed(),
        Kind::Choice(names) => proptest::sample::select(names)
            .prop_map(str::to_uppercase)
            .boxed(),
        Kind::Text | Kind::Words(_) => prop_oneof![
            "[a-zA-Z0-9$]{0,6}",
            "[0-9]{1,2}( [0-9]{1,2}){0,3}",
            "(normal|replica|pubsub) [0-9]{1,4}(kb)? [0-9]{1,4} [0-9]{1,4}",
            "(save|nosave|now|force|default)( (now|force))?",
            "-?[0-9a-f:.*]{1,9}( -?[0-9a-f:.*]{1,9})?",
            ".{0,12}",
        ]
        .boxed(),
    }
}

fn option_and_value() -> impl Strategy<Value = (&'static OptionSpec, String)> {
    (0..options().len()).prop_flat_map(|index| {
        let spec = &options()[index];
        (Just(spec), value_for(spec))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn what_is_set_is_got_and_set_again((spec, value) in option_and_value()) {
        let mut settings = Settings::default();
        match spec.set(&mut settings, &value) {
            Err(reason) => {
                prop_assert!(!reason.is_empty());
                prop_assert_eq!(settings, Settings::default());
            }
            Ok(()) if spec.file_only => {}
            Ok(()) => {
                let canonical = spec.get(&settings);
                let mut again = Settings::default();
                let set = spec.set(&mut again, &canonical);
                prop_assert!(set.is_ok(), "{} = {canonical}: {set:?}", spec.name);
                prop_assert_eq!(&settings, &again);
                prop_assert_eq!(spec.get(&again), canonical);
            }
        }
    }

    #[test]
    fn config_set_never_panics(name: String, value: Vec<u8>, index in 0..options().len()) {
        let _ = config_set(&Settings::default(), &[(name.as_bytes(), &value)], true);
        let _ = config_set(&Settings::default(), &[(options()[index].name, &value)], true);
    }
}
