//! The types of options that are more than a number or a text: enumerations, addresses, limits by class, events.
//!
//! Each parses from the words of one line and writes itself canonically; each refuses with Redis's words.

use crate::spec::OptionSpec;
use crate::value::{Occurrence, Value, memory_bytes, parse_choice, short_memory, single};

/// Defines an enumeration whose values have names in the configuration.
macro_rules! choices {
    ($(#[$meta:meta])* $name:ident { $first_variant:ident = $first_text:literal : $first_doc:literal,
        $($variant:ident = $text:literal : $doc:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name {
            #[doc = $first_doc]
            #[default]
            $first_variant,
            $(#[doc = $doc] $variant),*
        }

        impl $name {
            /// The names, in the order in which error texts list them.
            pub const NAMES: &'static [&'static str] = &[$first_text $(, $text)*];
            const ALL: &'static [$name] = &[$name::$first_variant $(, $name::$variant)*];

            /// The name in the configuration.
            pub fn name(self) -> &'static str {
                match self {
                    $name::$first_variant => $first_text,
                    $($name::$variant => $text),*
                }
            }
        }

        impl Value for $name {
            fn update(&mut self, _: &OptionSpec, words: &[String], _: Occurrence) -> Result<(), String> {
                *self = Self::ALL[parse_choice(Self::NAMES, single(words)?)?];
                Ok(())
            }

            fn text(&self, _: &OptionSpec) -> String {
                self.name().to_owned()
            }
        }
    };
}

choices! {
    /// What is evicted when `maxmemory` is reached.
    EvictionPolicy {
        VolatileLru = "volatile-lru": "Least recently used, among keys that expire.",
        VolatileLfu = "volatile-lfu": "Least frequently used, among keys that expire.",
        VolatileRandom = "volatile-random": "Any, among keys that expire.",
        VolatileTtl = "volatile-ttl": "The key that expires next.",
        AllkeysLru = "allkeys-lru": "Least recently used.",
        AllkeysLfu = "allkeys-lfu": "Least frequently used.",
        AllkeysRandom = "allkeys-random": "Any.",
        NoEviction = "noeviction": "None: writes that need memory fail.",
        AllkeysLrm = "allkeys-lrm": "Least recently modified.",
        VolatileLrm = "volatile-lrm": "Least recently modified, among keys that expire.",
    }
}

impl EvictionPolicy {
    /// True if only keys with an expiry may be evicted.
    pub fn volatile_only(self) -> bool {
        self.name().starts_with("volatile-")
    }
}

choices! {
    /// How much is logged.
    LogLevel {
        Debug = "debug": "Everything, for developers.",
        Verbose = "verbose": "Much that is rarely useful.",
        Notice = "notice": "What one wants to know in production.",
        Warning = "warning": "Only what is important.",
    }
}

choices! {
    /// The I/O driver.
    IoDriver {
        Auto = "auto": "io_uring if the kernel allows it, else epoll.",
        Uring = "uring": "io_uring; the start fails where it is not possible.",
        Epoll = "epoll": "epoll.",
    }
}

choices! {
    /// Who may use something dangerous.
    ProtectedAction {
        No = "no": "Nobody.",
        Yes = "yes": "Everybody.",
        Local = "local": "Clients from this machine.",
    }
}

impl ProtectedAction {
    /// True if a client may; `is_local` says whether it comes from this machine.
    pub fn allows(self, is_local: bool) -> bool {
        match self {
            ProtectedAction::No => false,
            ProtectedAction::Yes => true,
            ProtectedAction::Local => is_local,
        }
    }
}

choices! {
    /// How deeply the payload of `RESTORE` is checked.
    SanitizeDump {
        No = "no": "Only its checksum and structure.",
        Yes = "yes": "Fully.",
        Clients = "clients": "Fully for clients, not for replication.",
    }
}

choices! {
    /// Who gets `-BUSY` while a script runs for too long.
    BusyReplyScope {
        Shards = "shards": "Those who need its shards.",
        Server = "server": "Everybody, as in Redis.",
    }
}

/// The addresses to listen on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindAddresses(
    /// In the order given; empty means no TCP at all.
    pub Vec<BindAddress>,
);

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindAddress {
    /// A host name, an IPv4 or IPv6 address, `*` for all IPv4 or `::*` for all IPv6 addresses.
    pub address: String,
    /// Written with a leading `-`: it is no error if this machine does not have it.
    pub optional: bool,
}

/// As many as Redis allows.
const BIND_ADDRESSES_MAX: usize = 16;

/// Whether a word can be an address at all, and stands in a file without quotes.
fn is_address(word: &str) -> bool {
    !word.is_empty()
        && word
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b"\"'\\".contains(&byte))
}

impl Value for BindAddresses {
    fn update(&mut self, _: &OptionSpec, words: &[String], _: Occurrence) -> Result<(), String> {
        if words.len() > BIND_ADDRESSES_MAX {
            return Err("Too many bind addresses specified.".to_owned());
        }
        if matches!(words, [word] if word.is_empty()) {
            self.0.clear();
            return Ok(());
        }
        let addresses = words.iter().map(|word| {
            let address = word.strip_prefix('-');
            let optional = address.is_some();
            let address = address.unwrap_or(word).to_owned();
            is_address(&address).then_some(BindAddress { address, optional })
        });
        // Redis finds out when it binds, with this text.
        let addresses = addresses.collect::<Option<_>>();
        self.0 = addresses.ok_or("Failed to bind to specified addresses.")?;
        Ok(())
    }

    fn text(&self, _: &OptionSpec) -> String {
        let words = self
            .0
            .iter()
            .map(|bind| format!("{}{}", if bind.optional { "-" } else { "" }, bind.address));
        words.collect::<Vec<_>>().join(" ")
    }
}

/// When a client that does not read its replies is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferLimit {
    /// At this many bytes at once; 0 = never.
    pub hard_limit_bytes: u64,
    /// Above this many bytes for `soft_limit_seconds`; 0 = never.
    pub soft_limit_bytes: u64,
    /// How long the soft limit may be exceeded.
    pub soft_limit_seconds: u32,
}

/// Output-buffer limits by class of client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputBufferLimits {
    /// Ordinary clients.
    pub normal: BufferLimit,
    /// Replicas.
    pub replica: BufferLimit,
    /// Clients with a subscription.
    pub pubsub: BufferLimit,
}

impl Value for OutputBufferLimits {
    /// Classes that are not named keep their limits, so lines add up whatever their number.
    fn update(&mut self, _: &OptionSpec, words: &[String], _: Occurrence) -> Result<(), String> {
        if !words.len().is_multiple_of(4) {
            return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
        }
        let mut limits = *self;
        for group in words.chunks_exact(4) {
            let limit = match group[0].to_ascii_lowercase().as_str() {
                "normal" => &mut limits.normal,
                "slave" | "replica" => &mut limits.replica,
                "pubsub" => &mut limits.pubsub,
                _ => {
                    return Err(
                        "Invalid client class specified in buffer limit configuration.".to_owned(),
                    );
                }
            };
            let parsed = (
                memory_bytes(&group[1]),
                memory_bytes(&group[2]),
                group[3].parse::<u32>(),
            );
            let (Some(hard_limit_bytes), Some(soft_limit_bytes), Ok(soft_limit_seconds)) = parsed
            else {
                return Err(
                    "Error in hard, soft or soft_seconds setting in buffer limit configuration."
                        .to_owned(),
                );
            };
            *limit = BufferLimit {
                hard_limit_bytes,
                soft_limit_bytes,
                soft_limit_seconds,
            };
        }
        *self = limits;
        Ok(())
    }

    fn text(&self, _: &OptionSpec) -> String {
        let text = |class: &str, l: &BufferLimit| {
            format!(
                "{class} {} {} {}",
                l.hard_limit_bytes, l.soft_limit_bytes, l.soft_limit_seconds
            )
        };
        // `CONFIG GET` still says "slave" in Redis 7; clients parse it.
        format!(
            "{} {} {}",
            text("normal", &self.normal),
            text("slave", &self.replica),
            text("pubsub", &self.pubsub)
        )
    }
}

impl OutputBufferLimits {
    /// The limits as lines of a file, one per class, each with whether it differs from `defaults`.
    pub(crate) fn lines(&self, defaults: &Self) -> Vec<(String, bool)> {
        [
            ("normal", self.normal, defaults.normal),
            ("replica", self.replica, defaults.replica),
            ("pubsub", self.pubsub, defaults.pubsub),
        ]
        .into_iter()
        .map(|(class, limit, default)| {
            let (hard, soft) = (
                short_memory(limit.hard_limit_bytes),
                short_memory(limit.soft_limit_bytes),
            );
            let line = format!(
                "client-output-buffer-limit {class} {hard} {soft} {}",
                limit.soft_limit_seconds
            );
            (line, limit != default)
        })
        .collect()
    }
}

/// Which keyspace events are published: the value of `notify-keyspace-events`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceEvents(u16);

/// Letters in the order in which Redis writes them. The first ten make up `A`.
const EVENT_LETTERS: &[u8] = b"g$lshzxetdnKEm";

impl KeyspaceEvents {
    /// Commands that are not of one type, such as DEL and EXPIRE (`g`).
    pub const GENERIC: Self = Self(1);
    /// String commands (`$`).
    pub const STRING: Self = Self(1 << 1);
    /// List commands (`l`).
    pub const LIST: Self = Self(1 << 2);
    /// Set commands (`s`).
    pub const SET: Self = Self(1 << 3);
    /// Hash commands (`h`).
    pub const HASH: Self = Self(1 << 4);
    /// Sorted-set commands (`z`).
    pub const ZSET: Self = Self(1 << 5);
    /// A key expired (`x`).
    pub const EXPIRED: Self = Self(1 << 6);
    /// A key was evicted (`e`).
    pub const EVICTED: Self = Self(1 << 7);
    /// Stream commands (`t`).
    pub const STREAM: Self = Self(1 << 8);
    /// Modules' types (`d`).
    pub const MODULE: Self = Self(1 << 9);
    /// A key was created (`n`); not part of `A`.
    pub const NEW: Self = Self(1 << 10);
    /// Publish on `__keyspace@<db>__` (`K`).
    pub const KEYSPACE: Self = Self(1 << 11);
    /// Publish on `__keyevent@<db>__` (`E`).
    pub const KEYEVENT: Self = Self(1 << 12);
    /// A read missed (`m`); not part of `A`.
    pub const KEY_MISS: Self = Self(1 << 13);
    /// All classes of `A`.
    pub const ALL: Self = Self((1 << 10) - 1);

    /// True if every class of `other` is in `self`.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// All classes as one number, for storage in an atomic.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The inverse of [`bits`](Self::bits).
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// True if any event is to be published.
    #[inline]
    pub const fn is_on(self) -> bool {
        self.0 & (Self::KEYSPACE.0 | Self::KEYEVENT.0) != 0
    }

    /// True if an event of `class` is to be published anywhere.
    pub fn wants(self, class: Self) -> bool {
        self.contains(class) && self.is_on()
    }
}

impl Value for KeyspaceEvents {
    fn update(&mut self, _: &OptionSpec, words: &[String], _: Occurrence) -> Result<(), String> {
        let mut flags = 0;
        for letter in single(words)?.bytes() {
            flags |= match EVENT_LETTERS.iter().position(|&l| l == letter) {
                Some(bit) => 1 << bit,
                None if letter == b'A' => Self::ALL.0,
                None => {
                    return Err("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned());
                }
            };
        }
        *self = Self(flags);
        Ok(())
    }

    fn text(&self, _: &OptionSpec) -> String {
        let mut text = String::new();
        let mut rest = self.0;
        if self.contains(Self::ALL) {
            text.push('A');
            rest &= !Self::ALL.0;
        }
        let letters = EVENT_LETTERS
            .iter()
            .enumerate()
            .filter(|(bit, _)| rest & (1 << bit) != 0);
        text.extend(letters.map(|(_, &letter)| char::from(letter)));
        text
    }
}

/// The percentiles of `INFO latencystats`, each 0 to 100.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Percentiles(
    /// In the order given.
    pub Vec<f64>,
);

/// More than anybody needs, so that `INFO` stays bounded.
const PERCENTILES_MAX: usize = 100;

impl Value for Percentiles {
    fn update(&mut self, _: &OptionSpec, words: &[String], _: Occurrence) -> Result<(), String> {
        if matches!(words, [word] if word.is_empty()) {
            self.0.clear();
            return Ok(());
        }
        let invalid = || "Invalid latency-tracking-info-percentiles parameters".to_owned();
        if words.len() > PERCENTILES_MAX {
            return Err(invalid());
        }
        let mut percentiles = Vec::with_capacity(words.len());
        for word in words {
            let percentile: f64 = word.parse().map_err(|_| invalid())?;
            if percentile.is_nan() {
                return Err(invalid());
            }
            if !(0.0..=100.0).contains(&percentile) {
                return Err(
                    "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"
                        .to_owned(),
                );
            }
            // Six digits are what is ever shown; `+ 0.0` turns a negative zero into a plain one.
            percentiles.push((percentile * 1e6).round() / 1e6 + 0.0);
        }
        self.0 = percentiles;
        Ok(())
    }

    fn text(&self, _: &OptionSpec) -> String {
        self.0
            .iter()
            .map(|p| percentile_text(*p))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// A percentile as `INFO latencystats` and `CONFIG GET` write it: up to six digits, trailing zeros cut.
pub fn percentile_text(percentile: f64) -> String {
    let text = format!("{percentile:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What SIGINT or SIGTERM does beyond a plain shutdown. All false is `default`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShutdownFlags {
    /// Save even if no save rule is set.
    pub save: bool,
    /// Do not save even if a save rule is set.
    pub nosave: bool,
    /// Do not wait for replicas.
    pub now: bool,
    /// Ignore errors that would prevent the shutdown.
    pub force: bool,
}

impl ShutdownFlags {
    const NAMES: &'static [&'static str] = &["default", "save", "nosave", "now", "force"];
}

impl Value for ShutdownFlags {
    fn update(&mut self, _: &OptionSpec, words: &[String], _: Occurrence) -> Result<(), String> {
        let mut flags = Self::default();
        if words.is_empty() {
            parse_choice(Self::NAMES, "")?;
        }
        for word in words {
            match parse_choice(Self::NAMES, word)? {
                1 => flags.save = true,
                2 => flags.nosave = true,
                3 => flags.now = true,
                4 => flags.force = true,
                _ => {}
            }
        }
        if flags.save && flags.nosave {
            return Err("shutdown options SAVE and NOSAVE can't be used simultaneously".to_owned());
        }
        *self = flags;
        Ok(())
    }

    fn text(&self, _: &OptionSpec) -> String {
        let set = [self.save, self.nosave, self.now, self.force];
        let names = Self::NAMES[1..]
            .iter()
            .zip(set)
            .filter(|(_, set)| *set)
            .map(|(name, _)| *name);
        let text = names.collect::<Vec<_>>().join(" ");
        if text.is_empty() {
            Self::NAMES[0].to_owned()
        } else {
            text
        }
    }
}

/// When a snapshot is taken by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaveRules(
    /// Any of these.
    pub Vec<SaveRule>,
);

/// A snapshot after `seconds` if there were at least `changes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveRule {
    /// At least 1.
    pub seconds: u32,
    /// The least number of changes.
    pub changes: u32,
}

/// More than anybody needs, so that a long file cannot make each check of the rules slow.
const SAVE_RULES_MAX: usize = 64;

impl Value for SaveRules {
    fn update(
        &mut self,
        _: &OptionSpec,
        words: &[String],
        occurrence: Occurrence,
    ) -> Result<(), String> {
        let clear = matches!(words, [word] if word.is_empty());
        let mut rules = if clear || occurrence == Occurrence::First {
            Vec::new()
        } else {
            self.0.clone()
        };
        if !clear {
            let invalid = || "Invalid save parameters".to_owned();
            if !words.len().is_multiple_of(2) || rules.len() + words.len() / 2 > SAVE_RULES_MAX {
                return Err(invalid());
            }
            for pair in words.chunks_exact(2) {
                let (seconds, changes) = (pair[0].parse::<u32>(), pair[1].parse::<u32>());
                let (Ok(seconds @ 1..), Ok(changes)) = (seconds, changes) else {
                    return Err(invalid());
                };
                rules.push(SaveRule { seconds, changes });
            }
        }
        self.0 = rules;
        Ok(())
    }

    fn text(&self, _: &OptionSpec) -> String {
        self.0
            .iter()
            .map(|r| format!("{} {}", r.seconds, r.changes))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Commands that have another name here, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenamedCommands(
    /// Pairs of a command and its new name; an empty new name takes the command away. Whether the command exists
    /// and the new name is free is for the command table to say.
    pub Vec<(String, String)>,
);

/// There are fewer commands than this.
const RENAMED_COMMANDS_MAX: usize = 1024;

impl Value for RenamedCommands {
    fn update(
        &mut self,
        _: &OptionSpec,
        words: &[String],
        occurrence: Occurrence,
    ) -> Result<(), String> {
        let [command, new_name] = words else {
            return Err("wrong number of arguments".to_owned());
        };
        if command.is_empty() || self.0.len() >= RENAMED_COMMANDS_MAX {
            return Err("No such command in rename-command".to_owned());
        }
        if occurrence == Occurrence::First {
            self.0.clear();
        }
        self.0.push((command.clone(), new_name.clone()));
        Ok(())
    }

    fn text(&self, _: &OptionSpec) -> String {
        let quoted = |(command, new_name): &(String, String)| {
            format!(
                "{} {}",
                crate::quote(command.as_bytes()),
                crate::quote(new_name.as_bytes())
            )
        };
        self.0.iter().map(quoted).collect::<Vec<_>>().join(" ")
    }
}
