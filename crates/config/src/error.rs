//! What can be wrong with a configuration. Every error says where it stands, what was expected and what came.

use std::fmt;
use std::path::PathBuf;

/// Where a setting was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of a file.
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        number: usize,
    },
    /// A variable of the environment, by name.
    Environment(String),
    /// An argument of the command line.
    Argument(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line { path, number } => write!(f, "{}, line {number}", path.display()),
            Place::Environment(name) => write!(f, "environment variable {name}"),
            Place::Argument(argument) => write!(f, "argument '{argument}'"),
        }
    }
}

/// Why the configuration could not be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// There is no such option.
    UnknownOption {
        /// Where.
        place: Place,
        /// The name.
        name: String,
        /// The most similar name that exists.
        nearest: Option<&'static str>,
    },
    /// The option does not take this value.
    InvalidValue {
        /// Where.
        place: Place,
        /// The option.
        name: String,
        /// What came; a secret is not shown.
        value: String,
        /// What was expected.
        expected: String,
    },
    /// The option has no value.
    MissingValue {
        /// Where.
        place: Place,
        /// The option.
        name: String,
    },
    /// A quote is not closed, or closed in the middle of a word.
    UnbalancedQuotes {
        /// Where.
        place: Place,
    },
    /// The text is not UTF-8.
    NotUtf8 {
        /// Where.
        place: Place,
    },
    /// A file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The line that includes it, if it is not the main file.
        included_at: Option<Place>,
        /// What the system says.
        reason: String,
    },
    /// Files include each other too deeply, or include too many.
    TooManyIncludes {
        /// The line that went too far.
        place: Place,
        /// The limit that it broke.
        limit: usize,
    },
    /// An argument that is neither an option nor the value of one.
    UnexpectedArgument {
        /// The argument.
        argument: String,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::UnknownOption {
                place,
                name,
                nearest,
            } => {
                write!(f, "{place}: unknown option '{name}'")?;
                match nearest {
                    Some(nearest) => write!(f, "; did you mean '{nearest}'?"),
                    None => write!(f, "; --help lists them all"),
                }
            }
            ConfigError::InvalidValue {
                place,
                name,
                value,
                expected,
            } => {
                write!(
                    f,
                    "{place}: option '{name}' cannot be '{value}': {expected}"
                )
            }
            ConfigError::MissingValue { place, name } => {
                write!(f, "{place}: option '{name}' needs a value")
            }
            ConfigError::UnbalancedQuotes { place } => {
                write!(f, "{place}: the quotes do not balance")
            }
            ConfigError::NotUtf8 { place } => write!(f, "{place}: expected UTF-8 text"),
            ConfigError::Unreadable {
                path,
                included_at,
                reason,
            } => {
                if let Some(place) = included_at {
                    write!(f, "{place}: ")?;
                }
                write!(
                    f,
                    "cannot read the configuration file '{}': {reason}",
                    path.display()
                )
            }
            ConfigError::TooManyIncludes { place, limit } => {
                write!(
                    f,
                    "{place}: more than {limit} included files, or files within files"
                )
            }
            ConfigError::UnexpectedArgument { argument } => {
                write!(
                    f,
                    "unexpected argument '{argument}': expected [FILE] [--option value]...; see --help"
                )
            }
        }
    }
}

impl std::error::Error for ConfigError {}
