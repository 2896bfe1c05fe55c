//! `CONFIG`: reading and changing the configuration of a running server.

use super::help;
use crate::registry::SessionCommand;
use crate::session::Session;
use crate::shared::Shared;
use crate::turn::{Next, Turn};
use pantala_commands::Error;
use pantala_commands::spec::Spec;
use pantala_config::{
    ConfigSetError, changed, config_get, config_set, find, read_config_file, rewrite,
};
use pantala_protocol::Args;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

/// The family's commands.
pub const COMMANDS: &[SessionCommand] = &[SessionCommand::container(
    Spec {
        name: "config",
        summary: "A container for server configuration commands.",
        since: "2.0.0",
        ..help::CONTAINER
    },
    &[
        SessionCommand::new(
            Spec {
                name: "rewrite",
                summary: "Persists the effective configuration to file.",
                since: "2.8.0",
                ..help::ADMIN
            },
            rewrite_file,
        ),
        SessionCommand::new(
            Spec {
                name: "resetstat",
                summary: "Resets the server's statistics.",
                since: "2.0.0",
                ..help::ADMIN
            },
            reset_statistics,
        ),
        SessionCommand::new(
            Spec {
                name: "get",
                arity: -3,
                summary: "Returns the effective values of configuration parameters.",
                since: "2.0.0",
                complexity: "O(N) when N is the number of configuration parameters provided",
                syntax: "parameter [parameter ...]",
                ..help::ADMIN
            },
            get,
        ),
        SessionCommand::new(
            Spec {
                name: "set",
                arity: -4,
                summary: "Sets configuration parameters in-flight.",
                since: "2.0.0",
                complexity: "O(N) when N is the number of configuration parameters provided",
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                syntax: "parameter value [parameter value ...]",
                ..help::ADMIN
            },
            set,
        ),
        SessionCommand::new(
            Spec {
                since: "5.0.0",
                ..help::HELP
            },
            help_text,
        ),
    ],
)];

fn get(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let patterns: Vec<&[u8]> = args.slice_from(2).iter().collect();
    // Not the worker's copy, which a change earlier in the same batch has not reached yet.
    let pairs = config_get(&turn.shared.settings(), &patterns);
    let mut reply = turn.reply();
    reply.map(pairs.len());
    for (name, value) in pairs {
        reply.bulk_str(&name);
        reply.bulk_str(&value);
    }
    Ok(Next::Continue)
}

/// Whether a client comes from this machine.
pub fn is_local(session: &Session) -> bool {
    let peer = &*session.card.peer;
    session.card.unix
        || peer.starts_with("127.")
        || peer.starts_with("[::1]")
        || peer.starts_with("::1:")
        || peer.starts_with("[::ffff:127.")
}

fn set(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let words: Vec<&[u8]> = args.slice_from(2).iter().collect();
    let (pairs, []) = words.as_chunks::<2>() else {
        return Err(Error::Syntax);
    };
    let pairs: Vec<(&[u8], &[u8])> = pairs.iter().map(|[name, value]| (*name, *value)).collect();
    let local = is_local(turn.session);
    let mut refused = None;
    let mut first_changed = None;
    let result = turn.shared.change_settings(|present| {
        let new = config_set(present, &pairs, local).map_err(|error| {
            refused = Some(error.text);
            String::new()
        })?;
        first_changed = changed(present, &new)
            .into_iter()
            .find(|option| option.needs_action)
            .map(|option| option.name);
        Ok(new)
    });
    if let Err(reason) = result {
        // What the options themselves refuse has its text already; what the server around them could not do has only a reason.
        let text = refused.unwrap_or_else(|| {
            let given = pairs
                .iter()
                .filter_map(|(name, _)| find(std::str::from_utf8(name).ok()?))
                .map(|found| found.name());
            let name = given
                .into_iter()
                .find(|name| first_changed.is_none_or(|changed| changed == *name))
                .or(first_changed);
            ConfigSetError::failed(name.unwrap_or_default(), &reason).text
        });
        return Err(Error::owned(text));
    }
    turn.ok()
}

fn reset_statistics(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    reset(turn.shared);
    turn.ok()
}

fn reset(shared: &Shared) {
    shared.stats.reset();
    shared.store.reset_stats();
    shared.rejected_connections.store(0, Relaxed);
    shared
        .error_codes
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
    shared.server.sampler.reset();
}

fn rewrite_file(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let Some(path) = turn.shared.facts.config_file.as_deref() else {
        return Err(Error::text(
            "ERR The server is running without a config file",
        ));
    };
    let failed =
        |error: io::Error| Error::owned(format!("ERR Rewriting config file: {}", reason(&error)));
    let original = match read_config_file(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(error)),
    };
    replace_file(path, rewrite(&original, &turn.shared.settings()).as_bytes()).map_err(failed)?;
    log::info!("CONFIG REWRITE executed with success.");
    turn.ok()
}

/// What the system says, without the number that Rust adds.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Writes a file so that a crash leaves the old one or the new one, never half of either. The permissions stay.
fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not the path of a file",
        ));
    };
    let mut temporary = name.to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = folder.join(temporary);
    let written = write_synced(&temporary, bytes).and_then(|()| {
        if let Ok(old) = std::fs::metadata(path) {
            std::fs::set_permissions(&temporary, old.permissions())?;
        }
        std::fs::rename(&temporary, path)?;
        // The new name is durable only when its folder is.
        File::open(if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        })?
        .sync_all()
    });
    if written.is_err() {
        // It may never have existed, and the first error is the one to report.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn help_text(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    help::reply(
        turn,
        args,
        &[
            "GET <pattern>",
            "    Return parameters matching the glob-like <pattern> and their values.",
            "SET <directive> <value>",
            "    Set the configuration <directive> to <value>.",
            "RESETSTAT",
            "    Reset statistics reported by the INFO command.",
            "REWRITE",
            "    Rewrite the configuration file.",
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("pantala-config-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
        let path = folder.join("server.conf");
        replace_file(&path, b"port 1\n").expect("a new file can be written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
            .expect("it is ours");
        replace_file(&path, b"port 2\n").expect("an old file can be replaced");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"port 2\n");
        assert_eq!(
            std::fs::metadata(&path)
                .expect("it is there")
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
        assert_eq!(
            std::fs::read_dir(&folder).expect("it is there").count(),
            1,
            "no temporary file stays"
        );
        assert!(replace_file(&folder.join("missing").join("server.conf"), b"").is_err());
        std::fs::remove_dir_all(&folder).expect("it is ours");
    }

    #[test]
    fn reasons_have_no_numbers() {
        let error = io::Error::from_raw_os_error(13);
        assert_eq!(reason(&error), "Permission denied");
    }
}
