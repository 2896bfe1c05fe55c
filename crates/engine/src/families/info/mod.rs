//! `INFO`: sections of `name:value` lines, with the names and the order of Redis as far as they mean something here.

mod keyspace;
mod lines;
pub mod memory;
mod process;
pub mod sampler;
mod sections;
pub mod statistics;

pub use lines::human_bytes;
pub use process::resident_bytes;

use crate::registry::SessionCommand;
use crate::shared::Shared;
use crate::turn::{Next, Turn};
use lines::Lines;
use pantala_commands::Error;
use pantala_commands::spec::{Acl, Flags, Group, Spec};
use pantala_config::Settings;
use pantala_protocol::Args;

/// The family's commands.
pub const COMMANDS: &[SessionCommand] = &[SessionCommand::new(
    Spec {
        name: "info",
        arity: -1,
        summary: "Returns information and statistics about the server.",
        group: Group::Server,
        flags: Flags::LOADING.union(Flags::STALE),
        acl: Acl::DANGEROUS,
        tips: &[
            "nondeterministic_output",
            "request_policy:all_shards",
            "response_policy:special",
        ],
        syntax: "[section [section ...]]",
        ..Spec::BASE
    },
    info,
)];

/// What the sections are made from.
struct View<'a> {
    shared: &'a Shared,
    settings: &'a Settings,
    now_ms: i64,
}

/// When a section is shown without being named.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    ByDefault,
    /// Only with `all` and `everything`.
    WithAll,
    /// By default and with `everything`: Redis counts modules neither among `all`.
    WithEverything,
}

struct Section {
    name: &'static str,
    title: &'static str,
    shown: Shown,
    write: fn(&View<'_>, &mut Lines),
}

const fn section(
    name: &'static str,
    title: &'static str,
    shown: Shown,
    write: fn(&View<'_>, &mut Lines),
) -> Section {
    Section {
        name,
        title,
        shown,
        write,
    }
}

const SECTIONS: [Section; 14] = [
    section("server", "Server", Shown::ByDefault, sections::server),
    section("clients", "Clients", Shown::ByDefault, sections::clients),
    section("memory", "Memory", Shown::ByDefault, memory::memory),
    section(
        "persistence",
        "Persistence",
        Shown::ByDefault,
        sections::persistence,
    ),
    section("stats", "Stats", Shown::ByDefault, statistics::stats),
    section(
        "replication",
        "Replication",
        Shown::ByDefault,
        sections::replication,
    ),
    section("cpu", "CPU", Shown::ByDefault, sections::cpu),
    // There are none; the heading stands so that parsers find the section.
    section("modules", "Modules", Shown::WithEverything, |_, _| {}),
    section(
        "commandstats",
        "Commandstats",
        Shown::WithAll,
        statistics::commands,
    ),
    section(
        "errorstats",
        "Errorstats",
        Shown::ByDefault,
        statistics::errors,
    ),
    section(
        "latencystats",
        "Latencystats",
        Shown::WithAll,
        statistics::latencies,
    ),
    section("cluster", "Cluster", Shown::ByDefault, |_, lines| {
        lines.field("cluster_enabled", 0)
    }),
    section("keyspace", "Keyspace", Shown::ByDefault, keyspace::keyspace),
    section("pantala", "Pantala", Shown::ByDefault, sections::own),
];

impl Section {
    fn is_wanted(&self, words: Args<'_>) -> bool {
        let named = |word: &[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let by_default = self.shown != Shown::WithAll;
        words.iter().any(|word| {
            named(word, self.name)
                || named(word, "everything")
                || (named(word, "all") && self.shown != Shown::WithEverything)
                || (named(word, "default") && by_default)
        }) || (words.is_empty() && by_default)
    }
}

fn info(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let settings = turn.shared.settings();
    let view = View {
        shared: turn.shared,
        settings: &settings,
        now_ms: turn.now_ms,
    };
    let text = render(&view, args.slice_from(1));
    turn.reply().verbatim("txt", text.as_bytes());
    Ok(Next::Continue)
}

fn render(view: &View<'_>, words: Args<'_>) -> String {
    let mut lines = Lines::default();
    for section in SECTIONS.iter().filter(|section| section.is_wanted(words)) {
        lines.heading(section.title);
        (section.write)(view, &mut lines);
    }
    lines.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::{StartFacts, all_commands};
    use pantala_protocol::OwnedArgs;

    fn shared() -> Shared {
        let registry = all_commands(&[]).expect("the tables are sound");
        Shared::new(Settings::default(), registry, StartFacts::new(2, None), 1)
            .expect("there is address space")
    }

    fn rendered(shared: &Shared, words: &[&str]) -> String {
        let settings = shared.settings();
        let words: OwnedArgs = words.iter().collect();
        render(
            &View {
                shared,
                settings: &settings,
                now_ms: shared.facts.started_ms + 90_000,
            },
            words.as_args(),
        )
    }

    fn titles(text: &str) -> Vec<&str> {
        text.lines()
            .filter_map(|line| line.strip_prefix("# "))
            .collect()
    }

    #[test]
    fn sections_are_chosen_as_in_redis() {
        let shared = shared();
        let default = rendered(&shared, &[]);
        let expected = [
            "Server",
            "Clients",
            "Memory",
            "Persistence",
            "Stats",
            "Replication",
            "CPU",
            "Modules",
            "Errorstats",
            "Cluster",
            "Keyspace",
            "Pantala",
        ];
        assert_eq!(titles(&default), expected);
        assert_eq!(titles(&rendered(&shared, &["DEFAULT"])), expected);
        let all = rendered(&shared, &["all"]);
        assert!(
            titles(&all).contains(&"Commandstats")
                && titles(&all).contains(&"Latencystats")
                && !titles(&all).contains(&"Modules")
        );
        assert_eq!(
            titles(&rendered(&shared, &["everything"])).len(),
            SECTIONS.len()
        );
        assert_eq!(
            titles(&rendered(&shared, &["cpu", "Server", "cpu"])),
            ["Server", "CPU"]
        );
        assert_eq!(rendered(&shared, &["nosuch"]), "");
        assert_eq!(
            titles(&rendered(&shared, &["nosuch", "cluster"])),
            ["Cluster"]
        );
    }

    #[test]
    fn every_line_is_a_field_a_heading_or_empty_and_no_field_stands_twice() {
        let shared = shared();
        shared.count_error("ERR syntax error");
        let get = shared
            .registry
            .by_full_name(b"info")
            .expect("there is INFO")
            .id;
        shared.stats.party(0).command(get).executed(3, 2_500);
        let text = rendered(&shared, &["everything"]);
        let mut names = std::collections::HashSet::new();
        for line in text
            .split("\r\n")
            .filter(|line| !line.is_empty() && !line.starts_with("# "))
        {
            let (name, _) = line.split_once(':').expect(line);
            let shared_with_server = [
                "pantala_version",
                "io_driver",
                "io_driver_reason",
                "worker_threads",
            ]
            .contains(&name);
            assert!(
                names.insert(name) || shared_with_server,
                "{name} stands twice"
            );
        }
        assert!(
            text.contains("\r\n\r\n# Clients\r\n"),
            "an empty line stands before each further section"
        );
        for expected in [
            "redis_version:7.4.2\r\n",
            "redis_mode:standalone\r\n",
            "role:master\r\n",
            "uptime_in_seconds:90\r\n",
            "cluster_enabled:0\r\n",
            "errorstat_ERR:count=1\r\n",
            "cmdstat_info:calls=3,usec=7,usec_per_call=2.50,rejected_calls=0,failed_calls=0\r\n",
            "latency_percentiles_usec_info:p50=2.560,p99=2.560,p99.9=2.560\r\n",
            "worker_threads:2\r\n",
        ] {
            assert!(text.contains(expected), "{expected:?} is missing in {text}");
        }
    }
}
