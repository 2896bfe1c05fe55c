//! What an option *is*: its name, kind, limits, rights and effect, and how its value is read from and written to
//! [`Settings`]. The tables in `options.rs` and `inert.rs` are made of these.
//!
//! Nothing here may know a particular option by name.

use crate::Settings;
use crate::value::Occurrence;

/// Looks at a value before it is set, and says what is wrong with it.
type Check = fn(&str) -> Result<(), String>;
/// Writes an option as lines of a file, each with whether the file needs it.
type Rewrite = fn(&Settings) -> Vec<(String, bool)>;

/// One option: everything that the configuration file, the command line, the environment, `CONFIG` and `--help`
/// need to know about it.
#[derive(Clone, Copy)]
pub struct OptionSpec {
    /// The name, in lower case, as `CONFIG GET` shows it.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [Alias],
    /// What values it takes.
    pub kind: Kind,
    /// The default, as it would stand in the file.
    pub default: &'static str,
    /// `CONFIG SET` may change it.
    pub mutable: bool,
    /// Its lines in a file add up, instead of the last one winning.
    pub multi: bool,
    /// Not matched by patterns in `CONFIG GET`, and not in `--help`.
    pub hidden: bool,
    /// `CONFIG SET` needs `enable-protected-configs`.
    pub protected: bool,
    /// A secret: keep its value out of logs, `MONITOR` and `SLOWLOG`.
    pub sensitive: bool,
    /// A directive that only a file or the command line may carry; `CONFIG` does not know it.
    pub file_only: bool,
    /// Changing it at run time takes more than storing the value: whoever calls [`crate::config_set`] must act, or
    /// refuse the change. Options without this mark are read each time they are used.
    pub needs_action: bool,
    /// Whether it does something.
    pub effect: Effect,
    /// The heading in `--help`.
    pub group: Group,
    /// One or more sentences for `--help`.
    pub help: &'static str,
    pub(crate) check: Option<Check>,
    pub(crate) read: fn(&Settings, &OptionSpec) -> String,
    pub(crate) write: fn(&mut Settings, &OptionSpec, &[String], Occurrence) -> Result<(), String>,
    pub(crate) rewrite: Option<Rewrite>,
}

/// Another name for an option.
#[derive(Clone, Copy, Debug)]
pub struct Alias {
    /// The other name.
    pub name: &'static str,
    /// Who calls it so. `CONFIG GET` patterns match Redis's aliases, not Dragonfly's.
    pub house: House,
    /// How the alias's values map to the option's, if they are not the same.
    pub translation: Option<Translation>,
}

/// The product that a name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum House {
    /// Redis (and Valkey).
    Redis,
    /// Dragonfly.
    Dragonfly,
}

/// How the values of an alias map to those of its option, and back.
#[derive(Clone, Copy, Debug)]
pub struct Translation {
    /// From the alias's value to the option's.
    pub to_option: fn(&str) -> Result<String, String>,
    /// From the option's value to the alias's.
    pub from_option: fn(&str) -> String,
    /// The alias is a switch: it may stand alone on the command line.
    pub switch: bool,
}

/// What values an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `yes` or `no`.
    Bool,
    /// A decimal number.
    Integer {
        /// The least value.
        min: i128,
        /// The greatest value.
        max: i128,
    },
    /// An octal number, for permissions.
    Octal {
        /// The greatest value; the least is 0.
        max: u32,
    },
    /// A number of bytes with an optional unit: `1k` = 1000, `1kb` = 1024, and so on for `m` and `g`.
    Memory {
        /// The least value in bytes.
        min: u64,
        /// The greatest value in bytes.
        max: u64,
        /// Whether `50%` is a value too.
        percent: Percent,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
    /// Several words on one line; the string says which.
    Words(&'static str),
}

/// Whether a memory size may be a percentage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Percent {
    /// No.
    No,
    /// Yes, as in Redis, and the error text says so.
    Redis,
    /// Yes, but the error text stays that of Redis, which knows bytes only here.
    Ours,
}

/// Whether an option does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It does what its help says.
    Works,
    /// Recognised, stored and returned, without effect, for this reason. The start says which of these were given.
    None(&'static str),
    /// Values other than these are refused, for this reason: ignoring them would put data, access or availability
    /// at risk.
    Refused {
        /// The canonical values that mean "off".
        allowed: &'static [&'static str],
        /// What is missing.
        reason: &'static str,
    },
}

/// A heading in `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Addresses, ports, sockets.
    Network,
    /// Threads and the I/O driver.
    Threads,
    /// Clients and their limits.
    Clients,
    /// Passwords and rights.
    Security,
    /// Memory, eviction, expiry.
    Memory,
    /// Encodings of values.
    Encodings,
    /// Scripts, notifications, tracking.
    Features,
    /// Files and persistence.
    Persistence,
    /// Replication.
    Replication,
    /// Redis Cluster.
    Cluster,
    /// Log, slow log, latency.
    Diagnostics,
    /// The process itself.
    Process,
}

impl Group {
    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            Group::Network => "Network",
            Group::Threads => "Threads",
            Group::Clients => "Clients",
            Group::Security => "Security",
            Group::Memory => "Memory",
            Group::Encodings => "Encodings",
            Group::Features => "Scripts and events",
            Group::Persistence => "Files",
            Group::Replication => "Replication",
            Group::Cluster => "Cluster",
            Group::Diagnostics => "Diagnostics",
            Group::Process => "Process",
        }
    }
}

impl OptionSpec {
    /// A plain option that works, cannot be changed at run time, and has no aliases; the methods below change that.
    pub(crate) const fn new(
        name: &'static str,
        group: Group,
        kind: Kind,
        default: &'static str,
        help: &'static str,
        read: fn(&Settings, &OptionSpec) -> String,
        write: fn(&mut Settings, &OptionSpec, &[String], Occurrence) -> Result<(), String>,
    ) -> Self {
        OptionSpec {
            name,
            aliases: &[],
            kind,
            default,
            mutable: false,
            multi: false,
            hidden: false,
            protected: false,
            sensitive: false,
            file_only: false,
            needs_action: false,
            effect: Effect::Works,
            group,
            help,
            check: None,
            read,
            write,
            rewrite: None,
        }
    }

    pub(crate) const fn mutable(mut self) -> Self {
        self.mutable = true;
        self
    }

    pub(crate) const fn action(mut self) -> Self {
        self.needs_action = true;
        self
    }

    pub(crate) const fn multi(mut self) -> Self {
        self.multi = true;
        self
    }

    pub(crate) const fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    pub(crate) const fn protected(mut self) -> Self {
        self.protected = true;
        self
    }

    pub(crate) const fn sensitive(mut self) -> Self {
        self.sensitive = true;
        self
    }

    pub(crate) const fn file_only(mut self) -> Self {
        self.file_only = true;
        self
    }

    pub(crate) const fn aliases(mut self, aliases: &'static [Alias]) -> Self {
        self.aliases = aliases;
        self
    }

    pub(crate) const fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    pub(crate) const fn check(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    pub(crate) const fn rewrite(mut self, rewrite: Rewrite) -> Self {
        self.rewrite = Some(rewrite);
        self
    }

    /// The value in the form in which `CONFIG GET` returns it.
    pub fn get(&self, settings: &Settings) -> String {
        (self.read)(settings, self)
    }

    /// Sets the value from one string, as `CONFIG SET` does: an option of several words is split at single blanks.
    ///
    /// # Errors
    /// The reason in Redis's words; `settings` are unchanged then.
    pub fn set(&self, settings: &mut Settings, value: &str) -> Result<(), String> {
        if self.takes_words() {
            let words: Vec<String> = match value {
                "" => Vec::new(),
                _ => value.split(' ').map(str::to_owned).collect(),
            };
            self.set_words(settings, &words, Occurrence::First)
        } else {
            self.set_words(settings, &[value.to_owned()], Occurrence::First)
        }
    }

    /// Sets the value from the words of a line. `Occurrence::Again` adds to the value if the option is `multi`.
    ///
    /// # Errors
    /// The reason in Redis's words; `settings` are unchanged then.
    pub(crate) fn set_words(
        &self,
        settings: &mut Settings,
        words: &[String],
        occurrence: Occurrence,
    ) -> Result<(), String> {
        if !self.takes_words() && words.len() != 1 {
            return Err("wrong number of arguments".to_owned());
        }
        if let Some(check) = self.check {
            check(&words.join(" "))?;
        }
        if let Effect::Refused { allowed, reason } = self.effect {
            // Tried on a copy: the canonical form decides, and a refused value must leave no trace.
            let mut trial = settings.clone();
            (self.write)(&mut trial, self, words, occurrence)?;
            if !allowed.contains(&self.get(&trial).as_str()) {
                return Err(format!("not supported yet: {reason}"));
            }
        }
        (self.write)(settings, self, words, occurrence)
    }

    /// True if a line of this option may have several words.
    pub fn takes_words(&self) -> bool {
        matches!(self.kind, Kind::Words(_))
    }

    /// True if the value in `settings` is the default.
    pub fn is_default(&self, settings: &Settings) -> bool {
        self.get(settings) == self.get(crate::table::defaults())
    }
}

impl std::fmt::Debug for OptionSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OptionSpec")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
