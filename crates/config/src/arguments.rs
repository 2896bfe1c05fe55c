//! The command line, taken apart: `[FILE] [--name value… | --name=value | --switch | --noswitch]…`.
//!
//! It knows the shape of arguments, and from the table only whether an option can stand alone; values are for
//! `load.rs` to judge.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::error::{ConfigError, Place};
use crate::load::Action;
use crate::split_args;
use crate::table::find;

/// A command line, taken apart.
#[derive(Debug, Default)]
pub(crate) struct CommandLine {
    pub(crate) config_file: Option<PathBuf>,
    pub(crate) action: Action,
    pub(crate) arguments: Vec<Argument>,
}

/// One option and its words.
#[derive(Debug)]
pub(crate) struct Argument {
    pub(crate) place: Place,
    pub(crate) name: String,
    pub(crate) words: Vec<String>,
    /// It was written `--name=value`.
    pub(crate) equals: bool,
}

pub(crate) fn parse_arguments(
    args: impl Iterator<Item = OsString>,
) -> Result<CommandLine, ConfigError> {
    let mut line = CommandLine::default();
    let mut args = args
        .map(|arg| {
            arg.into_string().map_err(|arg| ConfigError::NotUtf8 {
                place: Place::Argument(arg.to_string_lossy().into_owned()),
            })
        })
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .peekable();
    if let Some(path) = args.next_if(|arg| !arg.starts_with('-') && !arg.is_empty()) {
        line.config_file = Some(PathBuf::from(path));
    }
    while let Some(arg) = args.next() {
        if let Some(action) = action(&arg) {
            line.action = action;
            // Whoever asks for help wants it, whatever else is wrong.
            if action != Action::CheckConfig {
                return Ok(line);
            }
            continue;
        }
        let Some(body) = arg.strip_prefix("--").filter(|body| !body.is_empty()) else {
            return Err(ConfigError::UnexpectedArgument { argument: arg });
        };
        let mut argument = option(&arg, body)?;
        if !argument.equals && argument.words.is_empty() {
            // As in Redis, the first word after an option is its value even if it begins with dashes (a password
            // may), except where the option can stand alone.
            let alone = find(&argument.name)
                .is_none_or(|found| found.is_switch() || found.spec.name == "save");
            argument
                .words
                .extend(args.next_if(|next| !alone || !next.starts_with("--")));
            while !argument.words.is_empty()
                && let Some(word) = args.next_if(|next| !next.starts_with("--"))
            {
                argument.words.push(word);
            }
        }
        line.arguments.push(argument);
    }
    Ok(line)
}

fn action(arg: &str) -> Option<Action> {
    match arg {
        "-h" | "--help" | "--helpfull" => Some(Action::Help),
        "-v" | "--version" => Some(Action::Version),
        "--dump-commands" => Some(Action::DumpCommands),
        "--check-config" => Some(Action::CheckConfig),
        _ => None,
    }
}

/// One argument: a name, `name=value`, or (as Redis allows) a name and its words in one.
fn option(arg: &str, body: &str) -> Result<Argument, ConfigError> {
    let separator = body.find(|c: char| c == '=' || c.is_ascii_whitespace());
    if let Some((name, value)) = separator
        .filter(|&at| body.as_bytes()[at] == b'=')
        .and_then(|_| body.split_once('='))
    {
        let place = Place::Argument(format!("--{name}"));
        return Ok(Argument {
            place,
            name: name.to_owned(),
            words: vec![value.to_owned()],
            equals: true,
        });
    }
    let place = Place::Argument(format!(
        "--{}",
        body.split_ascii_whitespace().next().unwrap_or_default()
    ));
    let words = split_args(body.as_bytes()).ok_or_else(|| ConfigError::UnbalancedQuotes {
        place: place.clone(),
    })?;
    let words = words
        .into_iter()
        .map(String::from_utf8)
        .collect::<Result<Vec<_>, _>>();
    let mut words = words.map_err(|_| ConfigError::NotUtf8 {
        place: place.clone(),
    })?;
    if words.is_empty() {
        return Err(ConfigError::UnexpectedArgument {
            argument: arg.to_owned(),
        });
    }
    let name = words.remove(0);
    Ok(Argument {
        place,
        name,
        words,
        equals: false,
    })
}
