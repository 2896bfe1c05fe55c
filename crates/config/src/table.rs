//! The whole table, and finding an option in it by any of its names.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::Settings;
use crate::inert::INERT;
use crate::options::OPTIONS;
use crate::spec::{Alias, Kind, OptionSpec};
use crate::value::Occurrence;

static TABLE: LazyLock<Vec<OptionSpec>> =
    LazyLock::new(|| OPTIONS.iter().chain(INERT).copied().collect());

/// Every name, with dashes, to its option and (for an alias) which alias it is.
static NAMES: LazyLock<HashMap<String, Found>> = LazyLock::new(|| {
    let mut names = HashMap::new();
    for spec in options() {
        for alias in spec.aliases {
            names.insert(
                normal(alias.name),
                Found {
                    spec,
                    alias: Some(alias),
                },
            );
        }
    }
    // Main names come last: an alias that differs from them only by underscores is the same name.
    for spec in options() {
        names.insert(normal(spec.name), Found { spec, alias: None });
    }
    names
});

static DEFAULTS: LazyLock<Settings> = LazyLock::new(|| {
    let mut settings = Settings::blank();
    for spec in options().iter().filter(|spec| !spec.file_only) {
        let words: Vec<String> = if spec.takes_words() {
            spec.default
                .split(' ')
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect()
        } else {
            vec![spec.default.to_owned()]
        };
        (spec.write)(&mut settings, spec, &words, Occurrence::First)
            .expect("every default in the table is a value of its option (tested)");
    }
    settings
});

/// All options, by group and then by weight; those without effect last.
pub fn options() -> &'static [OptionSpec] {
    &TABLE
}

/// The default of every option.
pub(crate) fn defaults() -> &'static Settings {
    &DEFAULTS
}

/// An option, and the alias by which it was found.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The option.
    pub spec: &'static OptionSpec,
    /// The alias, if the name was one.
    pub alias: Option<&'static Alias>,
}

impl Found {
    /// The name by which it was found, in its proper spelling.
    pub fn name(&self) -> &'static str {
        self.alias.map_or(self.spec.name, |alias| alias.name)
    }

    /// True if it may stand on a command line without a value.
    pub fn is_switch(&self) -> bool {
        match self.alias.and_then(|alias| alias.translation) {
            Some(translation) => translation.switch,
            None => self.spec.kind == Kind::Bool,
        }
    }

    /// The value as this name shows it.
    pub fn get(&self, settings: &Settings) -> String {
        let value = self.spec.get(settings);
        match self.alias.and_then(|alias| alias.translation) {
            Some(translation) => (translation.from_option)(&value),
            None => value,
        }
    }

    /// Sets the value from one string, as `CONFIG SET` does.
    ///
    /// # Errors
    /// The reason in Redis's words; `settings` are unchanged then.
    pub fn set(&self, settings: &mut Settings, value: &str) -> Result<(), String> {
        match self.alias.and_then(|alias| alias.translation) {
            Some(translation) => self.spec.set(settings, &(translation.to_option)(value)?),
            None => self.spec.set(settings, value),
        }
    }

    /// Sets the value from the words of a line.
    pub(crate) fn set_words(
        &self,
        settings: &mut Settings,
        words: &[String],
        occurrence: Occurrence,
    ) -> Result<(), String> {
        match self.alias.and_then(|alias| alias.translation) {
            Some(translation) => {
                let value = (translation.to_option)(crate::value::single(words)?)?;
                self.spec.set_words(settings, &[value], occurrence)
            }
            None => self.spec.set_words(settings, words, occurrence),
        }
    }
}

/// Finds an option by name or alias; letter case does not matter, nor do dashes and underscores differ.
pub fn find(name: &str) -> Option<Found> {
    NAMES.get(&normal(name)).copied()
}

fn normal(name: &str) -> String {
    name.to_ascii_lowercase().replace('_', "-")
}

/// Longer names than this are not compared, so that an absurd name costs nothing.
const NEAREST_LEN_MAX: usize = 64;

/// The known name that is most like `name`, if any is like it at all.
pub fn nearest(name: &str) -> Option<&'static str> {
    let wanted = normal(name);
    if wanted.len() > NEAREST_LEN_MAX {
        return None;
    }
    let visible = options().iter().filter(|spec| !spec.hidden);
    let names = visible.flat_map(|spec| {
        let aliases = spec.aliases.iter().map(|alias| (true, alias.name));
        std::iter::once((false, spec.name)).chain(aliases)
    });
    // Where two names are equally near, the main one of an option comes first.
    let scored = names.map(|(is_alias, known)| {
        let score = distance(wanted.as_bytes(), normal(known).as_bytes());
        (score, is_alias, known)
    });
    let (score, _, known) = scored.min()?;
    // A third of the letters wrong is still a typing error; more is another word.
    (score <= (wanted.len() / 3).max(1)).then_some(known)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, find, nearest};

    #[test]
    fn names_are_found_whatever_their_spelling() {
        for name in ["maxmemory-policy", "MAXMEMORY-POLICY", "maxmemory_policy"] {
            assert_eq!(
                find(name).map(|found| found.name()),
                Some("maxmemory-policy")
            );
        }
        assert_eq!(
            find("slaveof").map(|found| found.spec.name),
            Some("replicaof")
        );
        assert_eq!(
            find("proactor_threads").map(|found| found.spec.name),
            Some("threads")
        );
        assert!(find("nonsense").is_none());
    }

    #[test]
    fn the_nearest_name() {
        assert_eq!(nearest("maxmemroy"), Some("maxmemory"));
        assert_eq!(nearest("prot"), Some("port"));
        assert_eq!(nearest("memcachd_port"), Some("memcached-port"));
        assert_eq!(nearest("completely-different-thing"), None);
        assert_eq!(nearest(&"x".repeat(10_000)), None);
        assert_eq!(distance(b"", b"abc"), 3);
        assert_eq!(distance(b"abcd", b"acbd"), 1);
    }
}
