//! `OBJECT` and `MEMORY USAGE`: how a value is kept.
//!
//! Nothing here counts as a use of the key.

use super::generic::shared::GENERIC;
use super::string::shared::{READ, integer};
use crate::spec::{Acl, Command, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::{Ctx, Done, Error};
use pantala_config::{EvictionPolicy, MemorySize, Settings};
use pantala_protocol::Args;
use pantala_store::Entry;
use pantala_types::string::StrRef;

/// Both containers.
pub const COMMANDS: &[Command] = &[OBJECT, MEMORY];

const KEY: &[KeySpec] = &[KeySpec::one(2, KeyFlags::RO)];
const SUB: Spec = Spec {
    since: "2.2.3",
    arity: 3,
    flags: READ,
    keys: KEY,
    tips: &["nondeterministic_output"],
    syntax: "key",
    ..GENERIC
};

/// `OBJECT`
const OBJECT: Command = Command::container(
    Spec {
        name: "object",
        summary: "Tells how values are kept.",
        since: "2.2.3",
        complexity: "Depends on subcommand.",
        arity: -2,
        acl: Acl::empty(),
        syntax: "subcommand",
        ..GENERIC
    },
    &[
        Command::keyed(
            Spec {
                name: "encoding",
                summary: "Names the form in which a value is kept.",
                ..SUB
            },
            encoding,
        ),
        Command::keyed(
            Spec {
                name: "freq",
                summary: "Answers how often a key is used, on a logarithmic scale.",
                since: "4.0.0",
                ..SUB
            },
            freq,
        ),
        Command::keyed(
            Spec {
                name: "idletime",
                summary: "Answers for how many seconds a key was not used.",
                ..SUB
            },
            idletime,
        ),
        Command::keyed(
            Spec {
                name: "refcount",
                summary: "Answers how many references a value has.",
                ..SUB
            },
            refcount,
        ),
        Command::keyed(
            Spec {
                name: "help",
                summary: "Lists the subcommands.",
                since: "6.2.0",
                arity: 2,
                flags: Flags::LOADING.union(Flags::STALE),
                syntax: "",
                ..GENERIC
            },
            help,
        ),
    ],
);

/// `MEMORY`, as far as it is about data.
const MEMORY: Command = Command::container(
    Spec {
        name: "memory",
        summary: "Tells what memory is used for.",
        since: "4.0.0",
        group: Group::Server,
        complexity: "Depends on subcommand.",
        arity: -2,
        acl: Acl::empty(),
        syntax: "subcommand",
        ..GENERIC
    },
    &[Command::keyed(
        Spec {
            name: "usage",
            summary: "Answers how many bytes of memory a key takes with its value.",
            since: "4.0.0",
            group: Group::Server,
            complexity: "O(1) for small values, O(N) where N is the number of nodes of a large one.",
            arity: -3,
            flags: READ,
            acl: Acl::empty(),
            keys: KEY,
            syntax: "key [SAMPLES count]",
            ..GENERIC
        },
        usage,
    )],
);

/// Answers what `of` says about the value, or null.
fn answer(
    cx: &mut Ctx<'_, '_>,
    args: Args<'_>,
    of: impl FnOnce(&Asked<'_>, Entry<'_>) -> Result<Answer, Error>,
) -> Done {
    let key = cx.key(args, 0);
    let mut db = cx.space.db(cx.db_index, cx.now_ms);
    let asked = Asked {
        settings: cx.settings,
        access: db.access_policy(),
        now_ms: cx.now_ms,
    };
    match db.peek(&key).map(|entry| of(&asked, entry)).transpose()? {
        Some(Answer::Number(number)) => cx.reply.integer(i64::try_from(number).unwrap_or(i64::MAX)),
        Some(Answer::Name(name)) => cx.reply.bulk_str(name),
        None => cx.reply.null(),
    }
    Ok(())
}

/// What the answer may depend on beside the value.
struct Asked<'a> {
    settings: &'a Settings,
    access: pantala_store::AccessPolicy,
    now_ms: i64,
}

enum Answer {
    Number(u64),
    Name(&'static str),
}

fn encoding(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    answer(cx, args, |_, entry| {
        Ok(Answer::Name(
            StrRef::of(entry).map_or("raw", |string| string.encoding_name()),
        ))
    })
}

fn freq(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    answer(cx, args, |asked, entry| {
        if !asked.access.lfu {
            return Err(Error::text(
                "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.",
            ));
        }
        Ok(Answer::Number(u64::from(
            entry.freq(asked.access, asked.now_ms),
        )))
    })
}

fn idletime(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    answer(cx, args, |asked, entry| {
        if asked.access.lfu {
            return Err(Error::text(
                "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.",
            ));
        }
        Ok(Answer::Number(entry.idle_secs(asked.now_ms)))
    })
}

fn refcount(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    answer(cx, args, |asked, entry| {
        // Redis shares the small integers, unless it needs access bits for each, and counts no references of theirs; here no value
        // has more than one, but programs know Redis's answer.
        let small = matches!(StrRef::of(entry), Some(StrRef::Int(0..10_000)));
        Ok(Answer::Number(
            if small && shares_integers(asked.settings) {
                i32::MAX as u64
            } else {
                1
            },
        ))
    })
}

fn shares_integers(settings: &Settings) -> bool {
    use EvictionPolicy::{AllkeysLfu, AllkeysLru, VolatileLfu, VolatileLru};
    settings.maxmemory == MemorySize::Bytes(0)
        || !matches!(
            settings.maxmemory_policy,
            AllkeysLfu | AllkeysLru | VolatileLfu | VolatileLru
        )
}

fn help(cx: &mut Ctx<'_, '_>, _: Args<'_>) -> Done {
    const LINES: &[&str] = &[
        "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "ENCODING <key>",
        "    The form in which the value of <key> is kept.",
        "FREQ <key>",
        "    How often <key> is used, on a logarithmic scale from 0 to 255. Needs an LFU",
        "    maxmemory-policy.",
        "IDLETIME <key>",
        "    For how many seconds <key> was not used. Needs a maxmemory-policy other than LFU.",
        "REFCOUNT <key>",
        "    How many references the value of <key> has.",
        "HELP",
        "    This list.",
    ];
    cx.reply.array(LINES.len());
    for line in LINES {
        cx.reply.simple(line);
    }
    Ok(())
}

fn usage(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let mut at = 3;
    while at < args.len() {
        // How many elements are sampled does not matter: sizes are known exactly.
        let (true, Some(samples)) = (args.is(at, "SAMPLES"), args.get(at + 1)) else {
            return Err(Error::Syntax);
        };
        if integer(samples)? < 0 {
            return Err(Error::Syntax);
        }
        at += 2;
    }
    answer(cx, args, |_, entry| {
        Ok(Answer::Number(entry.memory_bytes()))
    })
}
