//! The commands about one's own connection: `AUTH HELLO PING ECHO SELECT RESET QUIT`.
//!
//! Passwords are compared in a time that does not depend on where they differ, and never appear in what `MONITOR` or the slow log
//! shows: [`secrets`] says which arguments to hide.

use super::transactions;
use crate::registry::{Entry, SessionCommand};
use crate::session::ReplyMode;
use crate::turn::{Next, Turn};
use pantala_commands::Error;
use pantala_commands::spec::{Acl, Flags, Group, Spec};
use pantala_config::Settings;
use pantala_protocol::numbers::parse_i64;
use pantala_protocol::{Args, Proto};
use std::hint::black_box;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

/// The one user that exists.
pub(super) const DEFAULT_USER: &str = "default";
/// What stands for a hidden argument.
pub const HIDDEN: &[u8] = b"(redacted)";

const WRONG_PASSWORD: Error =
    Error::text("WRONGPASS invalid username-password pair or user is disabled.");

const OPEN: Spec = Spec {
    group: Group::Connection,
    acl: Acl::CONNECTION,
    flags: Flags::NOSCRIPT
        .union(Flags::LOADING)
        .union(Flags::STALE)
        .union(Flags::FAST)
        .union(Flags::NO_AUTH)
        .union(Flags::ALLOW_BUSY),
    ..Spec::BASE
};

const ANSWERED: Spec = Spec {
    flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
    ..OPEN
};

/// The family's commands.
pub const COMMANDS: &[SessionCommand] = &[
    SessionCommand::new(
        Spec {
            name: "auth",
            arity: -2,
            summary: "Authenticates the connection.",
            complexity: "O(N) where N is the number of passwords defined for the user",
            syntax: "[username] password",
            ..OPEN
        },
        auth,
    ),
    SessionCommand::new(
        Spec {
            name: "hello",
            arity: -1,
            summary: "Handshakes with the server: chooses the protocol, and authenticates and names the connection on request.",
            since: "6.0.0",
            syntax: "[protover [AUTH username password] [SETNAME clientname]]",
            ..OPEN
        },
        hello,
    ),
    SessionCommand::new(
        Spec {
            name: "ping",
            arity: -1,
            summary: "Answers, which shows that the server lives.",
            flags: Flags::FAST,
            tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
            syntax: "[message]",
            ..OPEN
        },
        ping,
    ),
    SessionCommand::new(
        Spec {
            name: "echo",
            arity: 2,
            summary: "Returns the given string.",
            syntax: "message",
            ..ANSWERED
        },
        echo,
    ),
    SessionCommand::new(
        Spec {
            name: "select",
            arity: 2,
            summary: "Changes the selected database.",
            syntax: "index",
            ..ANSWERED
        },
        select,
    ),
    SessionCommand::new(
        Spec {
            name: "reset",
            summary: "Puts the connection into the state of a new one.",
            since: "6.2.0",
            ..OPEN
        },
        reset,
    ),
    SessionCommand::new(
        Spec {
            name: "quit",
            arity: -1,
            summary: "Closes the connection.",
            ..OPEN
        },
        quit,
    ),
];

fn auth(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    if args.len() > 3 {
        return Err(Error::Syntax);
    }
    // Not the worker's copy: it may be older than a `CONFIG SET requirepass` that another connection has seen confirmed.
    let settings = turn.shared.settings();
    let (user, password) = if args.len() == 2 {
        if settings.requirepass.is_empty() {
            return Err(Error::text(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
            ));
        }
        (DEFAULT_USER.as_bytes(), args.arg(1))
    } else {
        (args.arg(1), args.arg(2))
    };
    if !is_known(&settings, user, password) {
        return Err(WRONG_PASSWORD);
    }
    set_authenticated(turn);
    turn.ok()
}

/// Whether this user may enter with this password. The default user without a password takes any.
fn is_known(settings: &Settings, user: &[u8], password: &[u8]) -> bool {
    let expected = settings.requirepass.as_bytes();
    user == DEFAULT_USER.as_bytes()
        && (expected.is_empty() || equal_in_constant_time(expected, password))
}

/// Compares in a time that depends on the length of `given` alone, so that the time tells nothing about `secret`.
fn equal_in_constant_time(secret: &[u8], given: &[u8]) -> bool {
    let mut difference = secret.len() ^ given.len();
    for (at, &byte) in given.iter().enumerate() {
        let expected = secret.get(at % secret.len().max(1)).copied().unwrap_or(0);
        // The compiler must not see that the rest is of no interest once a difference is found.
        difference |= black_box(usize::from(byte ^ expected));
    }
    black_box(difference) == 0
}

fn set_authenticated(turn: &mut Turn<'_, '_>) {
    turn.session.authenticated = true;
    let mut names = turn
        .session
        .card
        .names
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    names.user.clear();
    names.user.push_str(DEFAULT_USER);
}

/// What `HELLO` asks for.
#[derive(Default)]
struct Hello<'a> {
    proto: Option<Proto>,
    authenticates: bool,
    name: Option<&'a [u8]>,
}

/// Reads the options in their order and stops at the first that is wrong; a wrong password counts as such.
/// Nothing is changed yet, so a refused `HELLO` leaves the connection as it was.
fn parse_hello<'a>(settings: &Settings, args: Args<'a>) -> Result<Hello<'a>, Error> {
    let mut hello = Hello::default();
    if let Some(version) = args.get(1) {
        hello.proto = Some(match parse_i64(version) {
            Some(2) => Proto::Resp2,
            Some(3) => Proto::Resp3,
            Some(_) => return Err(Error::text("NOPROTO unsupported protocol version")),
            None => {
                return Err(Error::text(
                    "ERR Protocol version is not an integer or out of range",
                ));
            }
        });
    }
    let mut at = 2;
    while at < args.len() {
        let more = args.len() - 1 - at;
        if args.is(at, "AUTH") && more >= 2 {
            if !is_known(settings, args.arg(at + 1), args.arg(at + 2)) {
                return Err(WRONG_PASSWORD);
            }
            hello.authenticates = true;
            at += 3;
        } else if args.is(at, "SETNAME") && more >= 1 {
            hello.name = Some(super::client::checked_name(args.arg(at + 1))?);
            at += 2;
        } else {
            return Err(Error::owned(format!(
                "ERR Syntax error in HELLO option '{}'",
                shown(args.arg(at))
            )));
        }
    }
    Ok(hello)
}

fn hello(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let settings = turn.shared.settings();
    let hello = parse_hello(&settings, args)?;
    if !turn.session.authenticated && !hello.authenticates {
        return Err(Error::text(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
        ));
    }
    if hello.authenticates {
        set_authenticated(turn);
    }
    if let Some(name) = hello.name {
        super::client::set_name(&turn.session.card, name);
    }
    if let Some(proto) = hello.proto {
        turn.session.proto = proto;
        turn.session.card.resp.store(version_of(proto), Relaxed);
        if let Some(mine) = &turn.session.subscriptions {
            turn.local.set_proto(turn.session.place(), mine);
        }
    }
    let (proto, id) = (version_of(turn.session.proto), turn.session.card.id);
    let mut reply = turn.reply();
    reply.map(7);
    for (field, value) in [
        ("server", "redis"),
        ("version", settings.redis_version.as_str()),
    ] {
        reply.bulk_str(field);
        reply.bulk_str(value);
    }
    reply.bulk_str("proto");
    reply.integer(i64::from(proto));
    reply.bulk_str("id");
    reply.integer(id.cast_signed());
    for (field, value) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk_str(field);
        reply.bulk_str(value);
    }
    reply.bulk_str("modules");
    reply.array(0);
    Ok(Next::Continue)
}

fn version_of(proto: Proto) -> u16 {
    match proto {
        Proto::Resp2 => 2,
        Proto::Resp3 => 3,
    }
}

fn ping(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    if args.len() > 2 {
        return Err(Error::wrong_arity("ping"));
    }
    if turn.session.subscriptions.is_some() && super::pubsub::awaits_mail(turn) {
        return Ok(Next::Again);
    }
    if turn.session.only_subscribes() {
        // In the form of a message, as all that a RESP2 subscriber gets.
        let mut reply = turn.reply();
        reply.array(2);
        reply.bulk_str("pong");
        reply.bulk(args.get(1).unwrap_or_default());
        return Ok(Next::Continue);
    }
    match args.get(1) {
        None => turn.reply().simple("PONG"),
        Some(message) => turn.reply().bulk(message),
    }
    Ok(Next::Continue)
}

fn echo(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    turn.reply().bulk(args.arg(1));
    Ok(Next::Continue)
}

fn select(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let db = parse_database(args.arg(1), turn.shared.store.databases())?;
    turn.session.db = db;
    turn.session.card.db.store(db, Relaxed);
    turn.ok()
}

/// A database number below `databases`. Redis reads a C `int` first, which gives numbers beyond it a text of their own.
fn parse_database(text: &[u8], databases: u16) -> Result<u16, Error> {
    let number = parse_i64(text).ok_or(Error::NotAnInteger)?;
    if i32::try_from(number).is_err() {
        return Err(Error::text(
            "ERR value is out of range, value must between -2147483648 and 2147483647",
        ));
    }
    u16::try_from(number)
        .ok()
        .filter(|&db| db < databases)
        .ok_or(Error::text("ERR DB index is out of range"))
}

fn reset(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    transactions::leave(turn);
    if let Some(mine) = turn.session.subscriptions.take() {
        turn.local
            .leave(&turn.shared.pubsub, turn.session.place(), &mine);
        turn.session.note_subscriptions();
    }
    let authenticated = turn.shared.settings().requirepass.is_empty();
    let session = &mut *turn.session;
    let card = &session.card;
    turn.shared.clients.set_monitor(card, false);
    session.monitor = false;
    session.db = 0;
    session.proto = Proto::Resp2;
    session.authenticated = authenticated;
    session.reply_mode = ReplyMode::On;
    session.no_touch = false;
    card.db.store(0, Relaxed);
    card.resp.store(2, Relaxed);
    card.no_touch.store(false, Relaxed);
    card.no_evict.store(false, Relaxed);
    {
        // What the client's library said of itself stays true.
        let mut names = card.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.name = String::new();
        DEFAULT_USER.clone_into(&mut names.user);
    }
    turn.reply().simple("RESET");
    Ok(Next::Continue)
}

fn quit(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    turn.reply().ok();
    Ok(Next::Close)
}

/// Positions of the arguments that nobody else may see, ascending: user names and passwords.
pub fn secrets(entry: &Entry, args: Args<'_>) -> Vec<usize> {
    match (entry.parent, entry.spec.name) {
        (None, "auth") if args.len() <= 3 => (1..args.len()).collect(),
        (None, "hello") => hello_secrets(args),
        _ => Vec::new(),
    }
}

fn hello_secrets(args: Args<'_>) -> Vec<usize> {
    let mut hidden = Vec::new();
    let mut at = 2;
    while at < args.len() {
        if args.is(at, "AUTH") {
            hidden.extend((at + 1..args.len()).take(2));
            at += 3;
        } else if args.is(at, "SETNAME") {
            at += 2;
        } else {
            at += 1;
        }
    }
    hidden
}

/// An argument inside an error text: up to the first NUL, as C prints it, and never long.
pub(super) fn shown(bytes: &[u8]) -> String {
    const SHOWN_MAX: usize = 128;
    let end = bytes.iter().take(SHOWN_MAX).position(|&byte| byte == 0);
    let end = end.unwrap_or(bytes.len().min(SHOWN_MAX));
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pantala_protocol::OwnedArgs;

    fn args(line: &str) -> OwnedArgs {
        let mut owned = OwnedArgs::new();
        line.split(' ').for_each(|word| owned.push(word.as_bytes()));
        owned
    }

    fn with_password(password: &str) -> Settings {
        let mut settings = Settings::default();
        password.clone_into(&mut settings.requirepass);
        settings
    }

    #[test]
    fn passwords_compare_as_bytes_do() {
        for (secret, given) in [
            ("a", "a"),
            ("abc", "abc"),
            ("abc", "abd"),
            ("ab", "abab"),
            ("abab", "ab"),
            ("abc", ""),
            ("x", "y"),
        ] {
            assert_eq!(
                equal_in_constant_time(secret.as_bytes(), given.as_bytes()),
                secret == given,
                "{secret} {given}"
            );
        }
    }

    #[test]
    fn only_the_default_user_enters() {
        assert!(is_known(&with_password(""), b"default", b"anything"));
        assert!(!is_known(&with_password(""), b"someone", b"anything"));
        assert!(is_known(&with_password("secret"), b"default", b"secret"));
        assert!(!is_known(&with_password("secret"), b"Default", b"secret"));
        assert!(!is_known(&with_password("secret"), b"default", b""));
    }

    #[test]
    fn database_numbers() {
        assert_eq!(parse_database(b"15", 16), Ok(15));
        for (text, error) in [
            ("16", "ERR DB index is out of range"),
            ("-1", "ERR DB index is out of range"),
            ("70000", "ERR DB index is out of range"),
            ("one", "ERR value is not an integer or out of range"),
            (
                "2147483648",
                "ERR value is out of range, value must between -2147483648 and 2147483647",
            ),
        ] {
            let found =
                parse_database(text.as_bytes(), 16).map_err(|error| error.message().to_owned());
            assert_eq!(found, Err(error.to_owned()), "{text}");
        }
    }

    #[test]
    fn hello_reports_the_first_fault() {
        let fault = |line: &str| {
            parse_hello(&with_password("secret"), args(line).as_args())
                .map(|_| ())
                .map_err(|error| error.message().to_owned())
        };
        assert_eq!(fault("HELLO"), Ok(()));
        assert_eq!(fault("HELLO 3 auth default secret setname me"), Ok(()));
        assert_eq!(
            fault("HELLO three"),
            Err("ERR Protocol version is not an integer or out of range".to_owned())
        );
        assert_eq!(
            fault("HELLO 4 AUTH"),
            Err("NOPROTO unsupported protocol version".to_owned())
        );
        assert_eq!(
            fault("HELLO 2 AUTH a"),
            Err("ERR Syntax error in HELLO option 'AUTH'".to_owned())
        );
        assert_eq!(
            fault("HELLO 2 AUTH default wrong nonsense"),
            Err("WRONGPASS invalid username-password pair or user is disabled.".to_owned())
        );
        assert_eq!(
            fault("HELLO 2 SETNAME a\u{1}b"),
            Err(
                "ERR Client names cannot contain spaces, newlines or special characters."
                    .to_owned()
            )
        );
    }

    #[test]
    fn hello_hides_user_and_password() {
        assert_eq!(
            hello_secrets(args("HELLO 3 SETNAME AUTH AUTH u p SETNAME x").as_args()),
            [5, 6]
        );
        assert_eq!(hello_secrets(args("HELLO 3 AUTH u").as_args()), [3]);
        assert!(hello_secrets(args("HELLO 3").as_args()).is_empty());
    }

    #[test]
    fn shown_stops_at_nul_and_is_bounded() {
        assert_eq!(shown(b"abc\0def"), "abc");
        assert_eq!(shown(&[b'x'; 1000]).len(), 128);
    }
}
