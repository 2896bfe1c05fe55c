//! All commands by name: the data commands and the engine's own, merged into one table at start.

use crate::turn::SessionHandler;
use pantala_commands::spec::{Command, Handler, Run, Spec, WalkHandler};
use pantala_protocol::Args;

/// How the engine runs a command.
#[derive(Clone, Copy)]
pub enum Runner {
    /// Borrow the shards of its keys, then call.
    Keys(Handler),
    /// Borrow all shards, then call.
    All(Handler),
    /// Shard by shard.
    Walk(WalkHandler),
    /// About the connection or the server.
    Session(SessionHandler),
    /// Only its subcommands run.
    Container,
}

/// A command of the engine: about a connection or the server rather than about data.
#[derive(Clone, Copy)]
pub struct SessionCommand {
    /// What is said about it.
    pub spec: Spec,
    /// Its handler; `None` for a container.
    pub run: Option<SessionHandler>,
    /// Subcommands of a container.
    pub subcommands: &'static [SessionCommand],
}

impl SessionCommand {
    /// A command with a handler.
    pub const fn new(spec: Spec, run: SessionHandler) -> Self {
        Self {
            spec,
            run: Some(run),
            subcommands: &[],
        }
    }
    /// A container of subcommands.
    pub const fn container(spec: Spec, subcommands: &'static [SessionCommand]) -> Self {
        Self {
            spec,
            run: None,
            subcommands,
        }
    }
}

/// Number of a command in the registry; stable while the process runs.
pub type CommandId = u16;
type CostFn = fn(&mut pantala_commands::Ctx<'_, '_>, Args<'_>) -> u64;

/// One command or subcommand as the engine runs it.
pub struct Entry {
    /// Its number.
    pub id: CommandId,
    /// `get`, `config|get`.
    pub full_name: Box<str>,
    /// What is said about it.
    pub spec: Spec,
    /// How it runs.
    pub runner: Runner,
    /// Estimate of its run time in µs, asked under the borrow.
    pub cost_us: Option<CostFn>,
    /// The container, for a subcommand.
    pub parent: Option<CommandId>,
    /// Subcommands of a container.
    pub subcommands: Vec<CommandId>,
    /// The argument that is the command's only key, where that is so for every request: the common case needs no rules.
    pub only_key: Option<u16>,
}

/// What a request's name leads to.
pub enum Lookup<'r> {
    /// A command that can run.
    Found(&'r Entry),
    /// No such command.
    Unknown,
    /// A container whose subcommand is missing or unknown.
    UnknownSubcommand(&'r Entry),
}

const NAME_MAX: usize = 32;
const TABLE_BITS: u32 = 11;
const EMPTY: u16 = u16::MAX;

/// One place of the table.
#[derive(Clone, Copy)]
struct Place {
    name: Folded,
    id: CommandId,
    /// The name has other characters than letters: `name` does not tell it from all others.
    compare: bool,
}

const FREE: Place = Place {
    name: Folded {
        first: 0,
        last: 0,
        len: 0,
    },
    id: EMPTY,
    compare: false,
};

/// The table of all commands.
pub struct Registry {
    entries: Vec<Entry>,
    /// Open addressing over the top-level names; 2,048 places for a few hundred names, so a probe rarely goes past the first.
    table: Box<[Place]>,
}

impl Registry {
    /// Merges the tables; `renames` holds (old, new) pairs of `rename-command`, an empty new name removes a command.
    /// Errors name a command that does not exist or a name that is taken.
    pub fn new(
        data: &[&[Command]],
        own: &[&[SessionCommand]],
        renames: &[(String, String)],
    ) -> Result<Self, String> {
        let mut registry = Self {
            entries: Vec::new(),
            table: vec![FREE; 1 << TABLE_BITS].into(),
        };
        for command in own.iter().copied().flatten() {
            registry.add_session(command, None);
        }
        for command in data.iter().copied().flatten() {
            registry.add_data(command, None);
        }
        let mut names: Vec<(String, CommandId)> = registry
            .entries
            .iter()
            .filter(|entry| entry.parent.is_none())
            .map(|entry| (entry.spec.name.to_owned(), entry.id))
            .collect();
        for (old, new) in renames {
            let old = old.to_ascii_lowercase();
            let Some(at) = names.iter().position(|(name, _)| *name == old) else {
                return Err(format!("No such command '{old}' in rename-command"));
            };
            let (_, id) = names.swap_remove(at);
            if !new.is_empty() {
                let new = new.to_ascii_lowercase();
                if names.iter().any(|(name, _)| *name == new) {
                    return Err(format!(
                        "Target command name '{new}' already exists in rename-command"
                    ));
                }
                names.push((new, id));
            }
        }
        for (name, id) in names {
            registry.place(&name, id);
        }
        Ok(registry)
    }

    fn push(
        &mut self,
        spec: Spec,
        runner: Runner,
        cost_us: Option<CostFn>,
        parent: Option<CommandId>,
    ) -> CommandId {
        let id = self.entries.len() as CommandId;
        let full_name = match parent {
            Some(parent) => format!(
                "{}|{}",
                self.entries[usize::from(parent)].full_name,
                spec.name
            ),
            None => spec.name.to_owned(),
        };
        // Two tables may both contribute subcommands to one container (`MEMORY USAGE` is about data, `MEMORY DOCTOR` is not).
        if parent.is_none()
            && let Some(known) = self
                .entries
                .iter()
                .find(|entry| entry.parent.is_none() && entry.spec.name == spec.name)
        {
            assert!(
                matches!(
                    (runner, known.runner),
                    (Runner::Container, Runner::Container)
                ),
                "command {full_name} stands twice"
            );
            return known.id;
        }
        if let Some(parent) = parent {
            self.entries[usize::from(parent)].subcommands.push(id);
        }
        let only_key = match spec.keys {
            [rule] if spec.find_keys.is_none() => rule.only_key(),
            _ => None,
        };
        self.entries.push(Entry {
            id,
            full_name: full_name.into(),
            spec,
            runner,
            cost_us,
            parent,
            subcommands: Vec::new(),
            only_key,
        });
        id
    }

    fn add_session(&mut self, command: &SessionCommand, parent: Option<CommandId>) {
        let runner = command.run.map_or(Runner::Container, Runner::Session);
        let id = self.push(command.spec, runner, None, parent);
        for sub in command.subcommands {
            self.add_session(sub, Some(id));
        }
    }

    fn add_data(&mut self, command: &Command, parent: Option<CommandId>) {
        let runner = match command.run {
            Run::Keys(run) => Runner::Keys(run),
            Run::All(run) => Runner::All(run),
            Run::Walk(run) => Runner::Walk(run),
            Run::Container => Runner::Container,
        };
        let id = self.push(command.spec, runner, command.cost_us, parent);
        for sub in command.subcommands {
            self.add_data(sub, Some(id));
        }
    }

    fn place(&mut self, name: &str, id: CommandId) {
        assert!(
            name.len() <= NAME_MAX,
            "command name {name} is longer than the look-up supports"
        );
        let folded = Folded::of(name.as_bytes());
        let mut at = folded.slot();
        while self.table[at].id != EMPTY {
            at = (at + 1) & ((1 << TABLE_BITS) - 1);
        }
        // Names of more than 16 bytes have a middle that the numbers leave out.
        let compare = name.len() > 16 || !name.bytes().all(|byte| byte.is_ascii_alphabetic());
        self.table[at] = Place {
            name: folded,
            id,
            compare,
        };
        // A renamed command answers under its new name only.
        if self.entries[usize::from(id)].spec.name != name {
            self.entries[usize::from(id)].full_name = name.into();
        }
    }

    #[inline]
    fn top(&self, name: &[u8]) -> Option<&Entry> {
        let folded = Folded::of(name);
        let mut at = folded.slot();
        loop {
            let place = &self.table[at];
            if place.id == EMPTY {
                return None;
            }
            if place.name == folded {
                let entry = &self.entries[usize::from(place.id)];
                if !place.compare || entry.full_name.as_bytes().eq_ignore_ascii_case(name) {
                    return Some(entry);
                }
            }
            at = (at + 1) & ((1 << TABLE_BITS) - 1);
        }
    }

    /// The command that a request names, with its subcommand resolved.
    #[inline]
    pub fn lookup(&self, args: Args<'_>) -> Lookup<'_> {
        let Some(entry) = args
            .get(0)
            .filter(|name| name.len() <= NAME_MAX)
            .and_then(|name| self.top(name))
        else {
            return Lookup::Unknown;
        };
        if entry.subcommands.is_empty() {
            return Lookup::Found(entry);
        }
        let Some(word) = args.get(1) else {
            return Lookup::Found(entry);
        };
        match self.subcommand(entry, word) {
            Some(sub) => Lookup::Found(sub),
            // A command that can also run by itself (`COMMAND`) answers to an unknown word as an unknown subcommand.
            None => Lookup::UnknownSubcommand(entry),
        }
    }

    /// A container's subcommand by its word.
    pub fn subcommand(&self, container: &Entry, word: &[u8]) -> Option<&Entry> {
        container
            .subcommands
            .iter()
            .map(|&id| self.entry(id))
            .find(|sub| sub.spec.name.as_bytes().eq_ignore_ascii_case(word))
    }

    /// By `name` or `container|sub`, any case.
    pub fn by_full_name(&self, name: &[u8]) -> Option<&Entry> {
        match name.iter().position(|&byte| byte == b'|') {
            None => self.top(name).filter(|_| name.len() <= NAME_MAX),
            Some(bar) => self
                .top(&name[..bar])
                .and_then(|container| self.subcommand(container, &name[bar + 1..])),
        }
    }

    /// By number.
    pub fn entry(&self, id: CommandId) -> &Entry {
        &self.entries[usize::from(id)]
    }

    /// All commands and subcommands.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Commands without their subcommands.
    pub fn top_level(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.parent.is_none())
    }
}

/// A name as three numbers, so that it is found and compared without a loop over its bytes: first and last eight bytes (which
/// overlap in short names) and the length. Bit 5 of each byte is cleared, which folds the letters' case. It also folds a few other
/// bytes together, so a name with other characters than letters is compared byte by byte in the end.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Folded {
    first: u64,
    last: u64,
    len: usize,
}

impl Folded {
    const CASE: u64 = 0xdfdf_dfdf_dfdf_dfdf;

    #[inline]
    fn of(name: &[u8]) -> Self {
        let len = name.len();
        let (first, last) = if let (Some(first), Some(last)) =
            (name.first_chunk::<8>(), name.last_chunk::<8>())
        {
            (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
        } else if let (Some(first), Some(last)) = (name.first_chunk::<4>(), name.last_chunk::<4>())
        {
            (
                u64::from(u32::from_le_bytes(*first)),
                u64::from(u32::from_le_bytes(*last)),
            )
        } else {
            let byte = |at: usize| u64::from(name.get(at).copied().unwrap_or(0));
            (byte(0) | byte(1) << 8 | byte(2) << 16, 0)
        };
        Self {
            first: first & Self::CASE,
            last: last & Self::CASE,
            len,
        }
    }

    #[inline]
    fn slot(self) -> usize {
        let mixed = (self.first ^ self.last.rotate_left(29) ^ self.len as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - TABLE_BITS)) as usize
    }
}
