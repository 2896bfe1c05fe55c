//! `CONFIG GET`, `CONFIG SET` and `CONFIG REWRITE`, against what a real Redis answers.

use pantala_config::{Settings, changed, config_get, config_set, rewrite};

/// Answers that differ from those of Redis 7.0.15, each with the reason.
const OTHER_ANSWERS: &[(&str, &str, &str)] = &[
    (
        "maxmemory-samples",
        "65",
        "limited to 64, as in later versions, so that one eviction stays bounded",
    ),
    ("maxmemory-samples", "0", "the limit is part of the text"),
    (
        "notify-keyspace-events",
        "KEAmn",
        "Redis 7.0 forgets to show `n` beside `A`",
    ),
];

#[test]
fn config_set_answers_as_redis_does() {
    let mut settings = Settings::default();
    for line in include_str!("data/redis-7.0.15-config-set.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, value, expected] = fields[..] else {
            panic!("three fields: {line}")
        };
        let answer = match config_set(&settings, &[(name, value)], true) {
            Ok(new) => {
                settings = new;
                format!("OK {}", config_get(&settings, &[name])[0].1)
            }
            Err(error) => format!("-{}", error.text),
        };
        if OTHER_ANSWERS
            .iter()
            .any(|(n, v, _)| (*n, *v) == (name, value))
        {
            assert_ne!(answer, expected, "{name} {value}");
        } else {
            assert_eq!(answer, expected, "{name} {value}");
        }
    }
}

#[test]
fn config_set_is_all_or_nothing() {
    let settings = Settings::default();
    let new =
        config_set(&settings, &[("timeout", "5"), ("maxclients", "77")], false).expect("valid");
    assert_eq!((new.timeout_seconds, new.maxclients), (5, 77));
    let names: Vec<_> = changed(&settings, &new)
        .iter()
        .map(|spec| spec.name)
        .collect();
    assert_eq!(names, ["timeout", "maxclients"]);

    let error = |pairs: &[(&str, &str)]| {
        config_set(&settings, pairs, false)
            .expect_err("invalid")
            .text
    };
    assert_eq!(
        error(&[("timeout", "1"), ("TIMEOUT", "2")]),
        "ERR CONFIG SET failed (possibly related to argument 'TIMEOUT') - duplicate parameter"
    );
    // Names are looked at before values.
    assert_eq!(
        error(&[("maxclients", "x"), ("nosuch", "1")]),
        "ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'"
    );
    assert_eq!(
        error(&[("a\r\nb", "1")]),
        "ERR Unknown option or number of arguments for CONFIG SET - 'a  b'"
    );
}

#[test]
fn protected_options_ask_where_the_client_is() {
    let mut settings = Settings::default();
    let set =
        |settings: &Settings, is_local| config_set(settings, &[("dbfilename", "x.rdb")], is_local);
    assert!(set(&settings, true).is_err());
    settings.enable_protected_configs = pantala_config::ProtectedAction::Local;
    assert!(set(&settings, true).is_ok() && set(&settings, false).is_err());
    let error = config_set(&settings, &[("dbfilename", "a/b")], true).expect_err("a path");
    assert!(
        error
            .text
            .ends_with("dbfilename can't be a path, just a filename")
    );
}

#[test]
fn config_get_patterns() {
    let settings = Settings::default();
    let names = |patterns: &[&str]| -> Vec<String> {
        config_get(&settings, patterns)
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    };
    assert_eq!(names(&["maxmemory"]), ["maxmemory"]);
    assert_eq!(
        names(&["MaxMemory", "max?emory", "MAXMEMORY"]),
        ["MaxMemory"]
    );
    assert_eq!(
        names(&["hash-max-*-entries"]),
        ["hash-max-listpack-entries", "hash-max-ziplist-entries"]
    );
    assert_eq!(
        names(&["nosuch", "rename-command", "user*", ""]),
        Vec::<String>::new()
    );
    // Hidden options answer to their name only; Dragonfly's aliases too.
    assert_eq!(
        names(&["use-exit*", "use-exit-on-panic", "cache_mod?"]),
        ["use-exit-on-panic"]
    );
    assert_eq!(config_get(&settings, &[b"\xff*"]), []);
}

#[test]
fn rewrite_keeps_what_it_need_not_change() {
    let original = "# My server\n\n\n\nport 7000\n# memory\nMAXMEMORY 1gb\ninclude other.conf\nport 7001\n\
                    rename-command FLUSHALL \"\"\nbogus line\nhash-max-ziplist-entries 128\nsave \"\"\n\
                    client-output-buffer-limit normal 0 0 0\n";
    let mut settings = Settings::default();
    settings.port = 7002;
    settings.requirepass = "it's \"x\"".to_owned();
    settings.hash_max_listpack_entries = 64;
    settings.client_output_buffer_limit.pubsub.hard_limit_bytes = 1 << 30;
    let text = rewrite(original, &settings);
    let expected = "# My server\n\nport 7002\n# memory\nmaxmemory 0\ninclude other.conf\n\n\
                    rename-command FLUSHALL \"\"\n# ??? bogus line\nhash-max-listpack-entries 64\nsave \"\"\n\
                    client-output-buffer-limit pubsub 1gb 8mb 60\n# Generated by CONFIG REWRITE\n\
                    requirepass \"it's \\\"x\\\"\"\n";
    assert_eq!(text, expected);
    // A second time changes nothing.
    assert_eq!(rewrite(&text, &settings), text);
}

#[test]
fn addresses_that_cannot_be_bound_are_refused() {
    for bind in ["127.0.0.1  ::1", "-", "a\u{b}b", "\"127.0.0.1\"", "é"] {
        let error = config_set(&Settings::default(), &[("bind", bind)], true).expect_err(bind);
        assert!(
            error
                .text
                .ends_with("Failed to bind to specified addresses."),
            "{error}"
        );
    }
    let settings = config_set(
        &Settings::default(),
        &[("bind", "* -::* fe80::1%eth0")],
        true,
    )
    .expect("valid");
    assert_eq!(
        settings.bind.0.iter().filter(|bind| bind.optional).count(),
        1
    );
}

#[test]
fn secrets_are_not_shown() {
    let settings = config_set(
        &Settings::default(),
        &[("requirepass", "hidden"), ("port", "7")],
        true,
    )
    .expect("valid");
    assert_eq!(
        format!("{settings:?}"),
        "{\"port\": \"7\", \"requirepass\": \"***\"}"
    );
}
