//! `CONFIG GET` and `CONFIG SET` on a value, without a server: the caller swaps the new settings in and acts on
//! what changed.
//!
//! Error texts are those of Redis 7.0, byte for byte.

use crate::spec::{House, OptionSpec};
use crate::table::{Found, find, options};
use crate::{Settings, glob_match};

/// The names and values that match any of the patterns, each once, in the order of the table.
///
/// As in Redis, a pattern without `*`, `?` or `[` is a name: it finds hidden options too, and comes back as it was
/// written. Redis's aliases count as names.
pub fn config_get(settings: &Settings, patterns: &[impl AsRef<[u8]>]) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, found: Found| {
        if !pairs
            .iter()
            .any(|(known, _)| known.eq_ignore_ascii_case(name))
        {
            pairs.push((name.to_owned(), found.get(settings)));
        }
    };
    for pattern in patterns {
        let pattern = pattern.as_ref();
        if !pattern.iter().any(|byte| b"[*?".contains(byte)) {
            if let Ok(name) = std::str::from_utf8(pattern)
                && let Some(found) = find(name).filter(|found| !found.spec.file_only)
            {
                add(name, found);
            }
            continue;
        }
        for spec in options()
            .iter()
            .filter(|spec| !spec.hidden && !spec.file_only)
        {
            if glob_match(pattern, spec.name.as_bytes(), true) {
                add(spec.name, Found { spec, alias: None });
            }
            for alias in spec
                .aliases
                .iter()
                .filter(|alias| alias.house == House::Redis)
            {
                if glob_match(pattern, alias.name.as_bytes(), true) {
                    add(
                        alias.name,
                        Found {
                            spec,
                            alias: Some(alias),
                        },
                    );
                }
            }
        }
    }
    pairs
}

/// Why `CONFIG SET` was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigSetError {
    /// The whole error of the reply, `ERR` included, without the leading dash and the line end.
    pub text: String,
}

impl ConfigSetError {
    /// The error for an option whose new value is valid but could not be put into practice, such as a port that is
    /// taken. The caller then keeps the old settings.
    pub fn failed(name: &str, reason: &str) -> Self {
        let text =
            format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}");
        // An error reply is one line.
        ConfigSetError {
            text: text.replace(['\r', '\n'], " "),
        }
    }

    fn unknown(name: &[u8]) -> Self {
        let name = String::from_utf8_lossy(name);
        let text = format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'");
        ConfigSetError {
            text: text.replace(['\r', '\n'], " "),
        }
    }
}

impl std::fmt::Display for ConfigSetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ConfigSetError {}

/// The settings after `CONFIG SET name value …`: all of the pairs, or an error. `is_local` says whether the client
/// comes from this machine, which protected options may ask for.
///
/// Options marked `needs_action` among those that [`changed`] are for the caller to put into practice, or to refuse
/// with [`ConfigSetError::failed`].
///
/// # Errors
/// The first thing that is wrong, in Redis's words.
pub fn config_set(
    current: &Settings,
    pairs: &[(impl AsRef<[u8]>, impl AsRef<[u8]>)],
    is_local: bool,
) -> Result<Settings, ConfigSetError> {
    let mut chosen: Vec<(Found, &[u8])> = Vec::with_capacity(pairs.len());
    for (name, value) in pairs {
        let name = name.as_ref();
        let text = std::str::from_utf8(name).ok();
        let Some((text, found)) = text.and_then(|text| Some((text, find(text)?))) else {
            return Err(ConfigSetError::unknown(name));
        };
        if found.spec.file_only {
            return Err(ConfigSetError::unknown(name));
        }
        if !found.spec.mutable {
            return Err(ConfigSetError::failed(text, "can't set immutable config"));
        }
        if found.spec.protected && !current.enable_protected_configs.allows(is_local) {
            return Err(ConfigSetError::failed(text, "can't set protected config"));
        }
        if chosen.iter().any(|(other, _)| other.name() == found.name()) {
            return Err(ConfigSetError::failed(text, "duplicate parameter"));
        }
        chosen.push((found, value.as_ref()));
    }
    let mut settings = current.clone();
    for (found, value) in chosen {
        let failed = |reason: &str| ConfigSetError::failed(found.name(), reason);
        let value =
            std::str::from_utf8(value).map_err(|_| failed("argument must be UTF-8 text"))?;
        found
            .set(&mut settings, value)
            .map_err(|reason| failed(&reason))?;
    }
    Ok(settings)
}

/// The options whose values differ.
pub fn changed(before: &Settings, after: &Settings) -> Vec<&'static OptionSpec> {
    options()
        .iter()
        .filter(|spec| spec.get(before) != spec.get(after))
        .collect()
}
