//! What is said about a command, once: everything else (dispatch, borrowing, `COMMAND`, ACL, documentation) is derived.
//!
//! The shape follows Redis's own command tables, so that `COMMAND INFO` and `COMMAND DOCS` can answer as Redis does.

use crate::Done;
use crate::context::{Ctx, Walk};
use bitflags::bitflags;
use pantala_protocol::Args;

bitflags! {
    /// Command flags, named as `COMMAND INFO` prints them (lower case, `_` as in Redis).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Flags: u32 {
        /// May change data.
        const WRITE = 1;
        /// Only reads data.
        const READONLY = 1 << 1;
        /// Refused when memory is at its limit.
        const DENYOOM = 1 << 2;
        /// Administrative.
        const ADMIN = 1 << 3;
        /// About publish and subscribe.
        const PUBSUB = 1 << 4;
        /// Not allowed in scripts.
        const NOSCRIPT = 1 << 5;
        /// May block the connection.
        const BLOCKING = 1 << 6;
        /// Allowed while a file is loaded.
        const LOADING = 1 << 7;
        /// Allowed on a replica whose data are stale.
        const STALE = 1 << 8;
        /// Not shown by `MONITOR`.
        const SKIP_MONITOR = 1 << 9;
        /// Not recorded by the slow log.
        const SKIP_SLOWLOG = 1 << 10;
        /// Needs no authentication.
        const NO_AUTH = 1 << 11;
        /// Constant or logarithmic time.
        const FAST = 1 << 12;
        /// May be replicated though it is not a write.
        const MAY_REPLICATE = 1 << 13;
        /// Not allowed inside `MULTI`.
        const NO_MULTI = 1 << 14;
        /// The key positions need [`Spec::find_keys`].
        const MOVABLEKEYS = 1 << 15;
        /// Allowed while a script is busy.
        const ALLOW_BUSY = 1 << 16;
        /// Not shown by the documentation commands' users as a command of its own (containers).
        const SENTINEL = 1 << 17;
        /// Key names are not looked at by ACL key patterns.
        const NO_MANDATORY_KEYS = 1 << 18;
        /// Not allowed while data is loaded asynchronously.
        const NO_ASYNC_LOADING = 1 << 19;
    }
}

bitflags! {
    /// ACL categories beyond those that follow from the flags and the group (`@read @write @fast @slow @admin @dangerous …`).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Acl: u32 {
        /// `@keyspace`
        const KEYSPACE = 1;
        /// `@string`
        const STRING = 1 << 1;
        /// `@bitmap`
        const BITMAP = 1 << 2;
        /// `@hyperloglog`
        const HYPERLOGLOG = 1 << 3;
        /// `@dangerous`
        const DANGEROUS = 1 << 4;
        /// `@connection`
        const CONNECTION = 1 << 5;
        /// `@transaction`
        const TRANSACTION = 1 << 6;
        /// `@scripting`
        const SCRIPTING = 1 << 7;
        /// `@set`
        const SET = 1 << 8;
        /// `@list`
        const LIST = 1 << 9;
        /// `@sortedset`
        const SORTEDSET = 1 << 10;
        /// `@hash`
        const HASH = 1 << 11;
        /// `@stream`
        const STREAM = 1 << 12;
        /// `@geo`
        const GEO = 1 << 13;
        /// `@pubsub`
        const PUBSUB = 1 << 14;
    }
}

bitflags! {
    /// What a command does with a key, as in Redis's key specifications.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct KeyFlags: u32 {
        /// Reads.
        const RO = 1;
        /// Reads and writes.
        const RW = 1 << 1;
        /// Overwrites without reading.
        const OW = 1 << 2;
        /// Removes.
        const RM = 1 << 3;
        /// Returns or copies user data of the value.
        const ACCESS = 1 << 4;
        /// Updates data of the value.
        const UPDATE = 1 << 5;
        /// Adds data without looking at what is there.
        const INSERT = 1 << 6;
        /// Deletes content of the value.
        const DELETE = 1 << 7;
        /// Not a key, but routed as one.
        const NOT_KEY = 1 << 8;
        /// The specification may miss keys.
        const INCOMPLETE = 1 << 9;
        /// What is done depends on the arguments.
        const VARIABLE_FLAGS = 1 << 10;
    }
}

/// Where the search for keys begins.
#[derive(Clone, Copy, Debug)]
pub enum Begin {
    /// At this argument (the command itself is 0).
    Index(u16),
    /// After this word, searched from the given argument on (negative: from the end, backwards).
    Keyword(&'static str, i16),
    /// Cannot be told by a rule.
    Unknown,
}

/// How the keys are found from there.
#[derive(Clone, Copy, Debug)]
pub enum Find {
    /// From the beginning to `last` (relative; negative counts from the end of the arguments), each `step`; `limit` 0 or 1: all, n: 1/n of the arguments.
    Range {
        /// Last key, relative to the beginning; negative from the end of the arguments.
        last: i16,
        /// Distance between keys.
        step: u16,
        /// Divisor of the argument count for `last: -1`.
        limit: u16,
    },
    /// A count at `count_at`, then that many keys from `first` on (both relative to the beginning).
    KeyNum {
        /// Argument with the number of keys.
        count_at: u16,
        /// First key.
        first: u16,
        /// Distance between keys.
        step: u16,
    },
    /// Cannot be told by a rule.
    Unknown,
}

/// One rule that finds keys among the arguments.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// What is done with them.
    pub flags: KeyFlags,
    /// Where the search begins.
    pub begin: Begin,
    /// How it goes on.
    pub find: Find,
}

impl KeySpec {
    /// One key at argument `at`.
    pub const fn one(at: u16, flags: KeyFlags) -> Self {
        Self {
            flags,
            begin: Begin::Index(at),
            find: Find::Range {
                last: 0,
                step: 1,
                limit: 0,
            },
        }
    }
    /// The argument that is the only key, if the rule always finds just one at a fixed place.
    pub const fn only_key(&self) -> Option<u16> {
        match (self.begin, self.find) {
            (Begin::Index(at), Find::Range { last: 0, .. }) => Some(at),
            _ => None,
        }
    }
    /// Keys from argument `at` to the last, each `step`.
    pub const fn all_from(at: u16, step: u16, flags: KeyFlags) -> Self {
        Self {
            flags,
            begin: Begin::Index(at),
            find: Find::Range {
                last: -1,
                step,
                limit: 0,
            },
        }
    }
    /// A count at argument `at`, keys right after it, each `step`.
    pub const fn counted(at: u16, step: u16, flags: KeyFlags) -> Self {
        Self {
            flags,
            begin: Begin::Index(at),
            find: Find::KeyNum {
                count_at: 0,
                first: 1,
                step,
            },
        }
    }
}

/// The group under which the documentation lists a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are Redis's group names")]
pub enum Group {
    Generic,
    String,
    List,
    Set,
    SortedSet,
    Hash,
    Pubsub,
    Transactions,
    Connection,
    Server,
    Scripting,
    Hyperloglog,
    Cluster,
    Geo,
    Stream,
    Bitmap,
}

/// Everything that is said about one command or subcommand.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Lower case; for a subcommand its own word alone.
    pub name: &'static str,
    /// One sentence for `COMMAND DOCS`.
    pub summary: &'static str,
    /// First version with it, `1.0.0` as Redis says it; `valkey 9.0.0` where only Valkey has it.
    pub since: &'static str,
    /// Documentation group.
    pub group: Group,
    /// Time complexity in Redis's words style.
    pub complexity: &'static str,
    /// Number of arguments with the command itself: exact when positive, at least when negative. A subcommand counts its container too.
    pub arity: i16,
    /// What it is.
    pub flags: Flags,
    /// Explicit ACL categories.
    pub acl: Acl,
    /// Where its keys stand.
    pub keys: &'static [KeySpec],
    /// Finds the argument positions of keys where the rules of `keys` do not suffice.
    pub find_keys: Option<fn(Args<'_>, &mut Vec<u32>)>,
    /// Hints for clients and proxies (`nondeterministic_output` and the like).
    pub tips: &'static [&'static str],
    /// The arguments after the name in the usual notation, for example `key value [NX|XX] [GET] [EX seconds|PX milliseconds|KEEPTTL]`.
    /// `COMMAND DOCS` and prompts derive the argument tree from it.
    pub syntax: &'static str,
}

impl Spec {
    /// Base for constants: `Spec { name: "get", …, ..Spec::BASE }`.
    pub const BASE: Self = Self {
        name: "",
        summary: "",
        since: "1.0.0",
        group: Group::Generic,
        complexity: "O(1)",
        arity: 1,
        flags: Flags::empty(),
        acl: Acl::empty(),
        keys: &[],
        find_keys: None,
        tips: &[],
        syntax: "",
    };

    /// Whether a request with `argc` arguments (the command included) satisfies the arity.
    pub const fn arity_fits(&self, argc: usize) -> bool {
        if self.arity >= 0 {
            argc == self.arity as usize
        } else {
            argc >= self.arity.unsigned_abs() as usize
        }
    }
}

/// A handler of a command whose shards are borrowed.
pub type Handler = fn(&mut Ctx<'_, '_>, Args<'_>) -> Done;
/// A handler of a command that goes through the keyspace shard by shard.
pub type WalkHandler = fn(&mut Walk<'_, '_>, Args<'_>) -> Done;

/// How a command is run.
#[derive(Clone, Copy)]
pub enum Run {
    /// The shards of its keys are borrowed, then the handler runs to its end.
    Keys(Handler),
    /// All shards are borrowed, then the handler runs (`FLUSHALL`, `SWAPDB`).
    All(Handler),
    /// Goes shard by shard outside transactions; under all shards inside (`KEYS`, `SCAN`).
    Walk(WalkHandler),
    /// Only its subcommands run.
    Container,
}

/// A command with its handler.
#[derive(Clone, Copy)]
pub struct Command {
    /// What is said about it.
    pub spec: Spec,
    /// How it runs.
    pub run: Run,
    /// Estimated run time in µs, asked under the borrow before the handler runs; above the engine's limit the command is handed to
    /// a helper thread, so that only those who need its shards wait. `None`: always short.
    pub cost_us: Option<fn(&mut Ctx<'_, '_>, Args<'_>) -> u64>,
    /// Subcommands of a container.
    pub subcommands: &'static [Command],
}

impl Command {
    /// A command that borrows the shards of its keys.
    pub const fn keyed(spec: Spec, run: Handler) -> Self {
        Self {
            spec,
            run: Run::Keys(run),
            cost_us: None,
            subcommands: &[],
        }
    }
    /// The same with an estimate of its run time.
    pub const fn costly(
        spec: Spec,
        run: Handler,
        cost_us: fn(&mut Ctx<'_, '_>, Args<'_>) -> u64,
    ) -> Self {
        Self {
            spec,
            run: Run::Keys(run),
            cost_us: Some(cost_us),
            subcommands: &[],
        }
    }
    /// A container of subcommands.
    pub const fn container(spec: Spec, subcommands: &'static [Command]) -> Self {
        Self {
            spec,
            run: Run::Container,
            cost_us: None,
            subcommands,
        }
    }
}
