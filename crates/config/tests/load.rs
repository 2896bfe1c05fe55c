//! Loading from files, environment and command line: order, shapes, errors; and that nothing makes it panic.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;

use pantala_config::{Action, Loaded, Settings, changed, load, options, read_config_file, rewrite};
use proptest::prelude::*;

fn load_all(args: &[&str], env: &[(&str, &str)], files: &[(&str, &str)]) -> Result<Loaded, String> {
    let files: HashMap<&str, &str> = files.iter().copied().collect();
    let read = |path: &Path| -> io::Result<String> {
        let found = path.to_str().and_then(|path| files.get(path));
        found
            .map(|text| (*text).to_owned())
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file"))
    };
    load(
        args.iter().map(OsString::from),
        env.iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value))),
        read,
    )
    .map_err(|error| error.to_string())
}

fn with_args(args: &[&str]) -> Settings {
    load_all(args, &[], &[])
        .unwrap_or_else(|error| panic!("{args:?}: {error}"))
        .settings
}

fn error(args: &[&str]) -> String {
    load_all(args, &[], &[]).expect_err("must not load")
}

#[test]
fn later_sources_win() {
    let files = [("a.conf", "port 1\nmaxclients 1\ntimeout 1\ndatabases 1\n")];
    let env = [
        ("PANTALA_PORT", "2"),
        ("PANTALA_MAXCLIENTS", "2"),
        ("PANTALA_TIMEOUT", "2"),
        ("HOME", "x"),
    ];
    let loaded = load_all(
        &["a.conf", "--port", "3", "--maxclients", "3"],
        &env,
        &files,
    )
    .expect("valid");
    let s = &loaded.settings;
    assert_eq!(
        (s.port, s.maxclients, s.timeout_seconds, s.databases),
        (3, 3, 2, 1)
    );
    assert_eq!(loaded.config_file.as_deref(), Some(Path::new("a.conf")));
    assert_eq!((loaded.action, loaded.warnings.len()), (Action::Run, 0));
}

#[test]
fn shapes_of_arguments() {
    assert_eq!(with_args(&[]), Settings::default());
    assert_eq!(with_args(&["--port", "1"]), with_args(&["--port=1"]));
    assert_eq!(with_args(&["--port 1"]), with_args(&["--PORT", "1"]));
    let bind = with_args(&["--bind", "127.0.0.1", "-::1"]);
    assert_eq!(bind, with_args(&["--bind", "127.0.0.1 -::1"]));
    assert_eq!(bind, with_args(&["--bind=127.0.0.1 -::1"]));
    assert_eq!((bind.bind.0.len(), bind.bind.0[1].optional), (2, true));
    assert_eq!(
        with_args(&["--slowlog_log_slower_than=-1"]).slowlog_log_slower_than_us,
        -1
    );
    assert_eq!(
        with_args(&["--requirepass", "--secret"]).requirepass,
        "--secret"
    );
    assert_eq!(
        with_args(&["--requirepass", "--secret", "--port", "1"]).port,
        1
    );
    assert_eq!(with_args(&["--requirepass=a=b c"]).requirepass, "a=b c");
    assert_eq!(with_args(&["--save", "", "--port", "1"]).port, 1);
    assert_eq!(with_args(&["--save", "--port", "1"]).port, 1);
    assert_eq!(with_args(&["--save"]), Settings::default());
    assert!(
        with_args(&["--save=", "--appendonly", "no", "--unixsocket", ""])
            .save
            .0
            .is_empty()
    );
}

#[test]
fn switches_stand_alone() {
    assert!(!with_args(&["--noprotected_mode", "--port", "1"]).protected_mode);
    assert!(with_args(&["--pin_threads", "--port", "1"]).pin_threads);
    assert!(
        with_args(&["--pin-threads=true"]).pin_threads
            && with_args(&["--pin-threads", "yes"]).pin_threads
    );
    assert_eq!(with_args(&["--force_epoll"]).io.name(), "epoll");
    assert_eq!(with_args(&["--force_epoll=false"]).io.name(), "auto");
    assert_eq!(
        with_args(&["--cache_mode", "--maxmemory=2gb"])
            .maxmemory_policy
            .name(),
        "allkeys-lfu"
    );
    assert_eq!(
        with_args(&["--proactor_threads=4", "--logtostderr", "--dbnum", "2"]).threads,
        4
    );
    // Not a form that Redis knows for its own options.
    assert!(error(&["--protected-mode", "true"]).contains("argument must be 'yes' or 'no'"));
}

#[test]
fn actions() {
    for (args, action) in [
        (&["--help"][..], Action::Help),
        (&["-h"], Action::Help),
        (&["--port", "nonsense", "--version"], Action::Version),
        (&["--dump-commands"], Action::DumpCommands),
        (&["--check-config", "--port", "1"], Action::CheckConfig),
    ] {
        assert_eq!(
            load_all(args, &[], &[]).expect("valid").action,
            action,
            "{args:?}"
        );
    }
    assert!(load_all(&["--check-config", "--port", "x"], &[], &[]).is_err());
}

#[test]
fn errors_say_where_and_what() {
    assert_eq!(
        error(&["--prot", "1"]),
        "argument '--prot': unknown option 'prot'; did you mean 'port'?"
    );
    assert_eq!(
        error(&["--port", "x"]),
        "argument '--port': option 'port' cannot be 'x': argument couldn't be parsed into an integer"
    );
    assert_eq!(
        error(&["--port"]),
        "argument '--port': option 'port' needs a value"
    );
    assert!(error(&["--port", "1", "2"]).contains("wrong number of arguments"));
    assert!(error(&["-p", "1"]).starts_with("unexpected argument '-p'"));
    assert!(
        error(&["--appendonly", "yes"])
            .ends_with("not supported yet: there is no append-only file")
    );
    assert!(error(&["--masterauth=x", "--requirepass", "a", "b"]).contains("cannot be '***'"));
    assert!(error(&["missing.conf"]).contains("cannot read the configuration file 'missing.conf'"));

    let file =
        |text: &str| load_all(&["a.conf"], &[], &[("a.conf", text)]).expect_err("must not load");
    assert_eq!(
        file("port 1\nmaxmemroy 1gb\n"),
        "a.conf, line 2: unknown option 'maxmemroy'; did you mean 'maxmemory'?"
    );
    assert_eq!(
        file("\n\nlogfile \"x"),
        "a.conf, line 3: the quotes do not balance"
    );
    assert_eq!(file("port"), "a.conf, line 1: option 'port' needs a value");
    assert_eq!(
        file("logfile \"\\xff\""),
        "a.conf, line 1: expected UTF-8 text"
    );
    assert!(file("save 900 1").contains("not supported yet"));
    assert!(
        file("include b.conf")
            .starts_with("a.conf, line 1: cannot read the configuration file 'b.conf'")
    );
    assert!(file("include a.conf").contains("more than 64 included files"));
    assert!(file("include *.conf").contains("patterns are not supported yet"));

    let env = load_all(&[], &[("PANTALA_MAXMEMROY", "1")], &[]).expect_err("must not load");
    assert!(
        env.starts_with("environment variable PANTALA_MAXMEMROY: unknown option"),
        "{env}"
    );
}

#[test]
fn variables_of_kubernetes_are_ignored_aloud() {
    let env = [
        ("PANTALA_PORT", "tcp://10.0.0.1:6379"),
        ("PANTALA_PORT_6379_TCP_ADDR", "10.0.0.1"),
        ("PANTALA_SERVICE_HOST", "10.0.0.1"),
        ("PANTALA_SERVICE_PORT_REDIS", "6379"),
        ("PANTALA_CACHE_MODE", "true"),
    ];
    let loaded = load_all(&[], &env, &[]).expect("valid");
    assert_eq!((loaded.settings.port, loaded.warnings.len()), (6379, 4));
    assert_eq!(loaded.settings.maxmemory_policy.name(), "allkeys-lfu");
}

#[test]
fn files_have_quotes_includes_and_lines_that_add_up() {
    let main = "  # comment\nREQUIREPASS \"a\\x41 b\"\r\ninclude b.conf\nrename-command CONFIG \"\"\n\
                rename-command FLUSHALL 'wipe it'\nclient-output-buffer-limit replica 1gb 1mb 10\n\
                client-output-buffer-limit pubsub 1kb 1kb 1\nbind 127.0.0.1 ::1\n--timeout=7\n--nolatency_tracking\n";
    let loaded =
        load_all(&["a.conf"], &[], &[("a.conf", main), ("b.conf", "port 1")]).expect("valid");
    let s = loaded.settings;
    assert_eq!(
        (
            s.requirepass.as_str(),
            s.port,
            s.timeout_seconds,
            s.latency_tracking
        ),
        ("aA b", 1, 7, false)
    );
    assert_eq!(s.renamed_commands.0.len(), 2);
    assert_eq!(
        s.renamed_commands.0[1],
        ("FLUSHALL".to_owned(), "wipe it".to_owned())
    );
    assert_eq!(
        s.client_output_buffer_limit.replica.hard_limit_bytes,
        1 << 30
    );
    assert_eq!(s.client_output_buffer_limit.pubsub.soft_limit_seconds, 1);
    assert_eq!(s.bind.0.len(), 2);
}

#[test]
fn options_without_effect_are_named_once_in_one_line() {
    let file = "daemonize yes\nhz 10\ndynamic-hz yes\nhz 20\nslave-priority 5\nport 1\n";
    let loaded = load_all(&["a.conf"], &[], &[("a.conf", file)]).expect("valid");
    assert_eq!(loaded.warnings.len(), 1);
    let warning = &loaded.warnings[0];
    for part in [
        "hz, dynamic-hz (there is no periodic tick)",
        "daemonize (",
        "slave-priority (there is no replication)",
    ] {
        assert!(warning.contains(part), "{warning}");
    }
    assert!(!warning.contains("port ("), "{warning}");
}

/// A file with every option of a stock redis.conf at its default, in the order of their names.
fn stock_file() -> String {
    let lines = include_str!("data/redis-7.0.15-options.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let directive = |line: &str| -> Option<String> {
        let mut fields = line.split('\t');
        let (name, value) = (fields.next()?, fields.next()?);
        match (name, value) {
            ("save" | "replicaof" | "slaveof", _) => None,
            (_, "") => Some(format!("{name} \"\"\n")),
            ("proc-title-template", value) => Some(format!("{name} \"{value}\"\n")),
            (name, value) => Some(format!("{name} {value}\n")),
        }
    };
    lines.filter_map(directive).collect()
}

#[test]
fn a_stock_file_of_redis_loads() {
    let text = stock_file();
    let loaded = load_all(&["redis.conf"], &[], &[("redis.conf", &text)]).expect("valid");
    let differing: Vec<_> = changed(&Settings::default(), &loaded.settings)
        .iter()
        .map(|spec| spec.name)
        .collect();
    assert_eq!(differing, ["bind"]);
    assert_eq!(loaded.warnings.len(), 1);
}

#[test]
fn an_unreadable_file_is_an_error() {
    assert!(read_config_file(Path::new("/nonexistent/pantala.conf")).is_err());
    assert!(read_config_file(Path::new("/")).is_err());
    // Endless, but read only up to the limit.
    assert!(read_config_file(Path::new("/dev/zero")).is_err());
}

/// Lines that look like configuration more often than not.
fn any_line() -> impl Strategy<Value = String> {
    let name = proptest::sample::select(options()).prop_map(|spec| spec.name.to_owned());
    let values = prop_oneof![
        Just("yes".to_owned()),
        "[0-9]{1,20}",
        "-?[0-9]{1,3}(kb|%|mb)?",
        "\"[^\"]{0,8}\"",
        ".{0,16}"
    ];
    prop_oneof![
        (name.clone(), values.clone()).prop_map(|(name, value)| format!("{name} {value}")),
        (name, values.clone()).prop_map(|(name, value)| format!("--{name}={value}")),
        values,
        Just("include a.conf".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn no_file_and_no_argument_panics(
        lines in proptest::collection::vec(any_line(), 0..8),
        args in proptest::collection::vec(any_line(), 0..4),
        name in "[A-Z_]{0,12}",
    ) {
        let text = lines.join("\n");
        let words: Vec<&str> = args.iter().flat_map(|arg| arg.split(' ')).collect();
        let _ = load_all(&[&["a.conf"], &words[..]].concat(), &[], &[("a.conf", &text)]);
        let _ = load_all(&[], &[(&format!("PANTALA_{name}"), &text)], &[]);
        rewrite(&text, &Settings::default());
    }

    #[test]
    fn a_rewritten_file_loads_to_the_same_settings(
        lines in proptest::collection::vec(any_line(), 0..24),
    ) {
        // Only what loads by itself, so that most cases get through.
        let loads = |text: &str| load_all(&["a.conf"], &[], &[("a.conf", text)]);
        let lines: Vec<String> = lines.into_iter().filter(|line| loads(line).is_ok()).collect();
        let text = lines.join("\n");
        if let Ok(loaded) = loads(&text) {
            let rewritten = rewrite(&text, &loaded.settings);
            let again = loads(&rewritten);
            prop_assert!(again.is_ok(), "{:?}\n{rewritten}", again.err());
            prop_assert_eq!(loaded.settings, again.expect("checked").settings, "{}", rewritten);
        }
    }
}
