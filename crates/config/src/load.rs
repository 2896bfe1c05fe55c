//! Loading: defaults, then the file, then the environment, then the command line; the later wins.
//!
//! Pure but for the reader that the caller passes in, so that tests and fuzzing need no disk. It must never
//! accept a name that it does not know, and never hide that a setting has no effect.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::arguments::{Argument, parse_arguments};
use crate::error::{ConfigError, Place};
use crate::spec::Effect;
use crate::table::{Found, find, nearest};
use crate::value::Occurrence;
use crate::{Settings, split_args};

/// What was loaded.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// All settings.
    pub settings: Settings,
    /// The configuration file, if one was named: `CONFIG REWRITE` writes it.
    pub config_file: Option<PathBuf>,
    /// What the command line asks for.
    pub action: Action,
    /// Lines for the log: settings without effect, and variables that were ignored.
    pub warnings: Vec<String>,
}

/// What the command line asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// Run the server.
    #[default]
    Run,
    /// Print [`crate::help_text`] and end. Nothing else was looked at.
    Help,
    /// Print the version and end. Nothing else was looked at.
    Version,
    /// Print the command table and end. Nothing else was looked at.
    DumpCommands,
    /// The configuration was loaded: say that it is valid, print the warnings, and end.
    CheckConfig,
}

/// Most files that one configuration may include, itself not counted.
pub const INCLUDES_MAX: usize = 64;
/// Longest configuration file that [`read_config_file`] reads.
pub const FILE_LIMIT_BYTES: u64 = 16 << 20;
/// Variables of the environment that begin so are options.
const ENVIRONMENT_PREFIX: &str = "PANTALA_";

/// Loads the configuration.
///
/// `args` are those of the command line without the program's own name, `env` all variables of the environment.
/// `read_file` reads a file; [`read_config_file`] is the one for production.
///
/// # Errors
/// The first thing that is wrong, with its place.
pub fn load(
    args: impl Iterator<Item = OsString>,
    env: impl Iterator<Item = (OsString, OsString)>,
    read_file: impl Fn(&Path) -> io::Result<String>,
) -> Result<Loaded, ConfigError> {
    let line = parse_arguments(args)?;
    let mut loader = Loader {
        settings: Settings::default(),
        seen: HashSet::new(),
        ineffective: BTreeMap::new(),
        warnings: Vec::new(),
        includes: 0,
        read_file: &read_file,
    };
    if matches!(line.action, Action::Run | Action::CheckConfig) {
        if let Some(path) = &line.config_file {
            loader.file(path, None)?;
        }
        loader.environment(env)?;
        for argument in line.arguments {
            loader.argument(argument)?;
        }
        loader.warn_ineffective();
    }
    Ok(Loaded {
        settings: loader.settings,
        config_file: line.config_file,
        action: line.action,
        warnings: loader.warnings,
    })
}

/// Reads a configuration file of at most [`FILE_LIMIT_BYTES`].
///
/// # Errors
/// What the system says, or that the file is too long or is not UTF-8.
pub fn read_config_file(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?
        .take(FILE_LIMIT_BYTES + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > FILE_LIMIT_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it exceeds {FILE_LIMIT_BYTES} bytes"),
        ));
    }
    Ok(text)
}

struct Loader<'a> {
    settings: Settings,
    /// Options given so far, to tell the first line of a `multi` option from the others.
    seen: HashSet<&'static str>,
    /// Options given that have no effect, by reason.
    ineffective: BTreeMap<&'static str, Vec<&'static str>>,
    warnings: Vec<String>,
    includes: usize,
    read_file: &'a dyn Fn(&Path) -> io::Result<String>,
}

impl Loader<'_> {
    fn file(&mut self, path: &Path, included_at: Option<&Place>) -> Result<(), ConfigError> {
        let text = (self.read_file)(path).map_err(|error| ConfigError::Unreadable {
            path: path.to_owned(),
            included_at: included_at.cloned(),
            reason: error.to_string(),
        })?;
        for (index, line) in text.split('\n').enumerate() {
            let line = line.trim_matches([' ', '\t', '\r', '\n']);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let place = Place::Line {
                path: path.to_owned(),
                number: index + 1,
            };
            // A file of flags, one `--name=value` a line, is a configuration file too.
            if line.starts_with("--") {
                for argument in parse_arguments(std::iter::once(OsString::from(line)))?.arguments {
                    self.argument(Argument {
                        place: place.clone(),
                        ..argument
                    })?;
                }
                continue;
            }
            let mut words = words_of(line, &place)?;
            if words.is_empty() {
                continue;
            }
            let name = words.remove(0);
            self.directive(place, &name, words)?;
        }
        Ok(())
    }

    fn directive(
        &mut self,
        place: Place,
        name: &str,
        words: Vec<String>,
    ) -> Result<(), ConfigError> {
        if name.eq_ignore_ascii_case("include") || name.eq_ignore_ascii_case("flagfile") {
            return self.include(place, name, &words);
        }
        let Some(found) = find(name) else {
            return Err(unknown(place, name));
        };
        if words.is_empty() && !found.spec.takes_words() {
            return Err(ConfigError::MissingValue {
                place,
                name: found.name().to_owned(),
            });
        }
        // One word may hold them all: `save "900 1"`, `--bind '127.0.0.1 ::1'`.
        let words = match &words[..] {
            [all] if found.spec.takes_words() && !all.is_empty() => words_of(all, &place)?,
            _ => words,
        };
        self.apply(place, found, &words)
    }

    fn include(&mut self, place: Place, name: &str, words: &[String]) -> Result<(), ConfigError> {
        let [path] = words else {
            return Err(ConfigError::MissingValue {
                place,
                name: name.to_owned(),
            });
        };
        if path.contains(['*', '?', '[']) {
            return Err(ConfigError::InvalidValue {
                place,
                name: name.to_owned(),
                value: path.clone(),
                expected: "the path of one file; patterns are not supported yet".to_owned(),
            });
        }
        if self.includes == INCLUDES_MAX {
            return Err(ConfigError::TooManyIncludes {
                place,
                limit: INCLUDES_MAX,
            });
        }
        self.includes += 1;
        self.file(Path::new(path), Some(&place))
    }

    fn apply(&mut self, place: Place, found: Found, words: &[String]) -> Result<(), ConfigError> {
        let spec = found.spec;
        let first = self.seen.insert(spec.name);
        let occurrence = if spec.multi && !first {
            Occurrence::Again
        } else {
            Occurrence::First
        };
        found
            .set_words(&mut self.settings, words, occurrence)
            .map_err(|expected| ConfigError::InvalidValue {
                place,
                name: found.name().to_owned(),
                value: if spec.sensitive {
                    "***".to_owned()
                } else {
                    words.join(" ")
                },
                expected,
            })?;
        if let Effect::None(reason) = spec.effect {
            let names = self.ineffective.entry(reason).or_default();
            if !names.contains(&found.name()) {
                names.push(found.name());
            }
        }
        Ok(())
    }

    fn environment(
        &mut self,
        env: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<(), ConfigError> {
        let named = env.filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let mut variables: Vec<_> = named
            .filter(|(name, _)| name.starts_with(ENVIRONMENT_PREFIX))
            .collect();
        variables.sort();
        for (variable, value) in variables {
            let place = Place::Environment(variable.clone());
            let Ok(value) = value.into_string() else {
                return Err(ConfigError::NotUtf8 { place });
            };
            if is_service_link(&variable, &value) {
                self.warnings.push(format!(
                    "ignored the environment variable {variable}: it describes a Kubernetes service, not an option"
                ));
                continue;
            }
            let name = variable[ENVIRONMENT_PREFIX.len()..]
                .to_ascii_lowercase()
                .replace('_', "-");
            self.argument(Argument {
                place,
                name,
                words: vec![value],
                equals: true,
            })?;
        }
        Ok(())
    }

    fn argument(&mut self, argument: Argument) -> Result<(), ConfigError> {
        let Argument {
            place,
            name,
            mut words,
            equals,
        } = argument;
        let found = find(&name);
        if words.is_empty() {
            let negated = name.strip_prefix("no").and_then(find);
            match (found, negated) {
                (Some(found), _) if found.is_switch() => words.push("yes".to_owned()),
                (None, Some(negated)) if negated.is_switch() => {
                    return self.apply(place, negated, &["no".to_owned()]);
                }
                // What a shell makes of `--save ""` when it drops the empty word.
                (Some(found), _) if found.spec.name == "save" => words.push(String::new()),
                (Some(found), _) => {
                    return Err(ConfigError::MissingValue {
                        place,
                        name: found.name().to_owned(),
                    });
                }
                (None, _) => {}
            }
        }
        // `--flag=true` is how Dragonfly's flags are written; `--flag true` stays an error, as in Redis.
        if equals && found.is_some_and(|found| found.is_switch()) {
            loosen(&mut words);
        }
        self.directive(place, &name, words)
    }

    fn warn_ineffective(&mut self) {
        if self.ineffective.is_empty() {
            return;
        }
        let groups = self
            .ineffective
            .iter()
            .map(|(reason, names)| format!("{} ({reason})", names.join(", ")));
        self.warnings.push(format!(
            "options without effect here: {}",
            groups.collect::<Vec<_>>().join("; ")
        ));
    }
}

/// Other words for `yes` and `no`.
fn loosen(words: &mut [String]) {
    if let [word] = words {
        match word.to_ascii_lowercase().as_str() {
            "true" | "t" | "1" | "y" => *word = "yes".to_owned(),
            "false" | "f" | "0" | "n" => *word = "no".to_owned(),
            _ => {}
        }
    }
}

/// Kubernetes describes every service to every pod in variables made from its name. A service called `pantala`
/// would otherwise set `port` to `tcp://10.0.0.1:6379` and keep the server from starting.
fn is_service_link(variable: &str, value: &str) -> bool {
    let name = &variable[ENVIRONMENT_PREFIX.len()..];
    let link = ["tcp://", "udp://", "sctp://"]
        .iter()
        .any(|scheme| value.starts_with(scheme));
    let port_part = name
        .strip_prefix("PORT_")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    (link && name == "PORT")
        || port_part
        || name.ends_with("SERVICE_HOST")
        || name.contains("SERVICE_PORT")
}

fn words_of(line: &str, place: &Place) -> Result<Vec<String>, ConfigError> {
    let words = split_args(line.as_bytes()).ok_or_else(|| ConfigError::UnbalancedQuotes {
        place: place.clone(),
    })?;
    let texts = words
        .into_iter()
        .map(String::from_utf8)
        .collect::<Result<Vec<_>, _>>();
    texts.map_err(|_| ConfigError::NotUtf8 {
        place: place.clone(),
    })
}

fn unknown(place: Place, name: &str) -> ConfigError {
    ConfigError::UnknownOption {
        place,
        name: name.to_owned(),
        nearest: nearest(name),
    }
}
