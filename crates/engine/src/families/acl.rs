//! `ACL`: what is true while there is one user. It must never pretend to rules that nobody enforces: users cannot be made yet, so the
//! commands that would make or change them do not exist.

use super::command::{categories, matching};
use super::help;
use super::state::fill_randomly;
use crate::registry::SessionCommand;
use crate::turn::{Next, Turn};
use pantala_commands::Error;
use pantala_commands::spec::{Flags, Spec};
use pantala_protocol::{Args, numbers};
use sha2::{Digest, Sha256};
use std::sync::PoisonError;

/// The one user.
const DEFAULT_USER: &str = "default";

const OPEN: Spec = Spec {
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    since: "6.0.0",
    ..help::ADMIN
};
const CLOSED: Spec = Spec {
    since: "6.0.0",
    complexity: "O(N). Where N is the number of configured users.",
    ..help::ADMIN
};

/// The family's commands.
pub const COMMANDS: &[SessionCommand] = &[SessionCommand::container(
    Spec {
        name: "acl",
        summary: "A container for Access List Control commands.",
        since: "6.0.0",
        ..help::CONTAINER
    },
    &[
        SessionCommand::new(
            Spec {
                since: "6.0.0",
                ..help::HELP
            },
            help_text,
        ),
        SessionCommand::new(
            Spec {
                name: "cat",
                arity: -2,
                summary: "Lists the ACL categories, or the commands inside a category.",
                complexity: "O(1) since the categories and commands are a fixed set.",
                syntax: "[category]",
                ..OPEN
            },
            cat,
        ),
        SessionCommand::new(
            Spec {
                name: "list",
                summary: "Dumps the effective rules in ACL file format.",
                ..CLOSED
            },
            list,
        ),
        SessionCommand::new(
            Spec {
                name: "users",
                summary: "Lists all ACL users.",
                ..CLOSED
            },
            users,
        ),
        SessionCommand::new(
            Spec {
                name: "genpass",
                arity: -2,
                summary: "Generates a pseudorandom, secure password that can be used to identify ACL users.",
                syntax: "[bits]",
                ..OPEN
            },
            generate_password,
        ),
        SessionCommand::new(
            Spec {
                name: "whoami",
                summary: "Returns the authenticated username of the current connection.",
                ..OPEN
            },
            who_am_i,
        ),
        SessionCommand::new(
            Spec {
                name: "getuser",
                arity: 3,
                summary: "Lists the ACL rules of a user.",
                complexity: "O(N). Where N is the number of password, command and pattern rules that the user has.",
                syntax: "username",
                ..CLOSED
            },
            get_user,
        ),
    ],
)];

fn cat(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let names = match (args.len(), args.get(2)) {
        (2, _) => categories::ALL.to_vec(),
        (3, Some(word)) => {
            let category = String::from_utf8_lossy(word).to_ascii_lowercase();
            if !categories::ALL.contains(&category.as_str()) {
                return Err(Error::owned(format!(
                    "ERR Unknown category '{}'",
                    String::from_utf8_lossy(word)
                )));
            }
            matching(&turn.shared.registry, |entry| {
                categories::contains(&entry.spec, &category)
            })
        }
        _ => return Err(help::wrong_subcommand(args)),
    };
    let mut reply = turn.reply();
    reply.array(names.len());
    for name in names {
        reply.bulk_str(name);
    }
    Ok(Next::Continue)
}

/// The SHA-256 of the password, as ACL files hold it; `None` without a password.
fn password_hash(requirepass: &str) -> Option<String> {
    (!requirepass.is_empty()).then(|| hex(&Sha256::digest(requirepass.as_bytes())))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn list(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let password = password_hash(&turn.shared.settings().requirepass)
        .map_or_else(|| "nopass".to_owned(), |hash| format!("#{hash}"));
    let mut reply = turn.reply();
    reply.array(1);
    reply.bulk_str(&format!("user {DEFAULT_USER} on {password} ~* &* +@all"));
    Ok(Next::Continue)
}

fn users(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let mut reply = turn.reply();
    reply.array(1);
    reply.bulk_str(DEFAULT_USER);
    Ok(Next::Continue)
}

fn get_user(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let known = args.arg(2) == DEFAULT_USER.as_bytes();
    let password = password_hash(&turn.shared.settings().requirepass);
    let mut reply = turn.reply();
    if !known {
        reply.null();
        return Ok(Next::Continue);
    }
    reply.map(6);
    reply.bulk_str("flags");
    reply.set(if password.is_some() { 1 } else { 2 });
    reply.bulk_str("on");
    if password.is_none() {
        reply.bulk_str("nopass");
    }
    reply.bulk_str("passwords");
    reply.array(password.iter().len());
    if let Some(hash) = &password {
        reply.bulk_str(hash);
    }
    for (name, rule) in [("commands", "+@all"), ("keys", "~*"), ("channels", "&*")] {
        reply.bulk_str(name);
        reply.bulk_str(rule);
    }
    reply.bulk_str("selectors");
    reply.array(0);
    Ok(Next::Continue)
}

fn generate_password(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    const BITS_DEFAULT: i64 = 256;
    const BITS_MAX: i64 = 4_096;
    let bits = match (args.len(), args.get(2)) {
        (2, _) => BITS_DEFAULT,
        (3, Some(bits)) => numbers::parse_i64(bits).ok_or(Error::NotAnInteger)?,
        _ => return Err(help::wrong_subcommand(args)),
    };
    if !(1..=BITS_MAX).contains(&bits) {
        return Err(Error::text(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096",
        ));
    }
    // Four bits make one digit.
    let digits = (bits as usize).div_ceil(4);
    let mut bytes = vec![0; digits.div_ceil(2)];
    fill_randomly(&mut bytes)
        .map_err(|error| Error::owned(format!("ERR no randomness: {error}")))?;
    let text = hex(&bytes);
    turn.reply().bulk_str(&text[..digits]);
    Ok(Next::Continue)
}

fn who_am_i(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let user = turn
        .session
        .card
        .names
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .user
        .clone();
    turn.reply().bulk_str(&user);
    Ok(Next::Continue)
}

fn help_text(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    help::reply(
        turn,
        args,
        &[
            "CAT [<category>]",
            "    List all commands that belong to <category>, or all command categories",
            "    when no category is specified.",
            "GETUSER <username>",
            "    Get the user's details.",
            "GENPASS [<bits>]",
            "    Generate a secure 256-bit user password. The optional `bits` argument can",
            "    be used to specify a different size.",
            "LIST",
            "    Show users details in config file format.",
            "USERS",
            "    List all the registered usernames.",
            "WHOAMI",
            "    Return the current connection username.",
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hashed_as_in_acl_files() {
        assert_eq!(password_hash(""), None);
        assert_eq!(
            password_hash("foo").as_deref(),
            Some("2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae")
        );
    }
}
