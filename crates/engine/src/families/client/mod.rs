//! `CLIENT`: what clients tell of themselves, who is connected, and what an administrator does with them.
//!
//! Other clients are seen through their cards alone and reached by mail alone; nothing here waits for another worker.
//! `CLIENT TRACKING` and `CACHING` are absent as long as nobody is told of changed keys; what reports on tracking says that it is off.

mod filter;
mod help;
mod spec;
mod view;

pub use spec::COMMANDS;

use super::connection::shown;
use super::help::wrong_subcommand;
use crate::clients::{Card, Names};
use crate::session::ReplyMode;
use crate::shared::Mail;
use crate::turn::{Next, Turn};
use filter::{Filter, Purpose};
use pantala_commands::Error;
use pantala_protocol::Args;
use pantala_protocol::numbers::parse_i64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, MutexGuard, PoisonError};
use view::View;

fn help(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    super::help::reply(turn, args, help::LINES)
}

fn id(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let id = turn.session.card.id.cast_signed();
    turn.reply().integer(id);
    Ok(Next::Continue)
}

/// A client as it is now, seen by the one that asks with the command `args`.
fn view<'c>(turn: &'c Turn<'_, '_>, card: &'c Card, args: Args<'_>) -> View<'c> {
    let registry = &turn.shared.registry;
    let mut view = if card.id == turn.session.card.id {
        View::of_asker(card, registry, turn.now_ms, args)
    } else {
        View::of(card, registry, turn.now_ms)
    };
    if card.worker == turn.party {
        // The card has the value of the end of the client's last batch, before its replies were sent.
        view.output_bytes = turn.io.out_len(card.conn);
    }
    view
}

fn info(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let mut line = String::new();
    view(turn, &turn.session.card, args).write_line(&mut line);
    turn.reply().verbatim("txt", line.as_bytes());
    Ok(Next::Continue)
}

fn list(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let filter = if args.len() == 2 {
        Filter::all()
    } else {
        Filter::parse(args, Purpose::List, turn.shared.store.databases())?
    };
    let mut lines = String::new();
    for card in meant(turn, &filter, args) {
        view(turn, &card, args).write_line(&mut lines);
    }
    turn.reply().verbatim("txt", lines.as_bytes());
    Ok(Next::Continue)
}

/// The connected clients that a filter means, in the order of their identifiers or of those asked for.
fn meant(turn: &Turn<'_, '_>, filter: &Filter, args: Args<'_>) -> Vec<Arc<Card>> {
    let clients = &turn.shared.clients;
    let mut cards = match filter.ids() {
        Some(ids) => ids
            .iter()
            .filter_map(|&id| clients.get(u64::try_from(id).ok()?))
            .collect(),
        None => clients.all(),
    };
    let me = turn.session.card.id;
    cards.retain(|card| {
        let left_out = card.killed.load(Relaxed) || (filter.skip_me && card.id == me);
        !left_out && filter.matches(&view(turn, card, args))
    });
    cards
}

fn kill(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let by_address = args.len() == 3;
    let filter = if by_address {
        Filter::peer(args.arg(2))
    } else {
        Filter::parse(args, Purpose::Kill, turn.shared.store.databases())?
    };
    let cards = meant(turn, &filter, args);
    if by_address && cards.is_empty() {
        return Err(Error::text("ERR No such client"));
    }
    let mut next = Next::Continue;
    for card in &cards {
        if card.id == turn.session.card.id {
            // Its reply is sent first.
            next = Next::Close;
        } else {
            close(turn, card);
        }
    }
    if by_address {
        turn.reply().ok();
    } else {
        turn.reply().integer(cards.len() as i64);
    }
    Ok(next)
}

/// Closes another client's connection; it counts as gone from now on.
fn close(turn: &mut Turn<'_, '_>, card: &Card) {
    card.killed.store(true, Relaxed);
    if card.worker == turn.party {
        turn.io.close(card.conn);
    } else {
        let mail = Mail::Close {
            conn: card.conn,
            flush: false,
        };
        turn.shared.send(card.worker, mail);
    }
}

fn names(card: &Card) -> MutexGuard<'_, Names> {
    card.names.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether `CLIENT LIST` stays readable with this value in it: printable ASCII without blanks.
fn is_plain(value: &[u8]) -> bool {
    value.iter().all(u8::is_ascii_graphic)
}

/// A name that a client may take. Errors: it would break the fields of `CLIENT LIST`.
pub(super) fn checked_name(name: &[u8]) -> Result<&[u8], Error> {
    if is_plain(name) {
        Ok(name)
    } else {
        Err(Error::text(
            "ERR Client names cannot contain spaces, newlines or special characters.",
        ))
    }
}

/// Takes a checked name; the empty one removes it.
pub(super) fn set_name(card: &Card, name: &[u8]) {
    names(card).name = String::from_utf8_lossy(name).into_owned();
}

fn setname(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    set_name(&turn.session.card, checked_name(args.arg(2))?);
    turn.ok()
}

fn getname(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let name = names(&turn.session.card).name.clone();
    if name.is_empty() {
        turn.reply().null();
    } else {
        turn.reply().bulk_str(&name);
    }
    Ok(Next::Continue)
}

fn setinfo(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let (attribute, value) = (args.arg(2), args.arg(3));
    let is_name = attribute.eq_ignore_ascii_case(b"lib-name");
    if !is_name && !attribute.eq_ignore_ascii_case(b"lib-ver") {
        return Err(Error::owned(format!(
            "ERR Unrecognized option '{}'",
            shown(attribute)
        )));
    }
    if !is_plain(value) {
        return Err(Error::owned(format!(
            "ERR {} cannot contain spaces, newlines or special characters.",
            shown(attribute)
        )));
    }
    let value = String::from_utf8_lossy(value).into_owned();
    let mut names = names(&turn.session.card);
    if is_name {
        names.lib_name = value;
    } else {
        names.lib_ver = value;
    }
    drop(names);
    turn.ok()
}

fn reply(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let mode = &mut turn.session.reply_mode;
    if args.is(2, "ON") {
        *mode = ReplyMode::On;
        return turn.ok();
    }
    if args.is(2, "OFF") {
        *mode = ReplyMode::Off;
    } else if args.is(2, "SKIP") {
        if *mode != ReplyMode::Off {
            *mode = ReplyMode::SkipNow;
        }
    } else {
        return Err(Error::Syntax);
    }
    Ok(Next::Continue)
}

fn pause(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let (until_ms, all) = parse_pause(args, turn.now_ms)?;
    turn.shared.pause.begin(until_ms, all, turn.now_ms);
    turn.ok()
}

/// End of the pause in Unix ms (0: now), and whether it holds all commands.
fn parse_pause(args: Args<'_>, now_ms: i64) -> Result<(i64, bool), Error> {
    let all = match args.get(3) {
        _ if args.len() > 4 => return Err(wrong_subcommand(args)),
        None => true,
        Some(mode) if mode.eq_ignore_ascii_case(b"all") => true,
        Some(mode) if mode.eq_ignore_ascii_case(b"write") => false,
        Some(_) => return Err(Error::text("ERR CLIENT PAUSE mode must be WRITE or ALL")),
    };
    let timeout_ms = parse_i64(args.arg(2))
        .ok_or(Error::text("ERR timeout is not an integer or out of range"))?;
    match timeout_ms {
        ..0 => Err(Error::text("ERR timeout is negative")),
        0 => Ok((0, all)),
        _ => match timeout_ms.checked_add(now_ms) {
            Some(until_ms) => Ok((until_ms, all)),
            None => Err(Error::text("ERR timeout is out of range")),
        },
    }
}

fn unpause(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    turn.shared.pause.end();
    turn.shared.send_all(|| Mail::PauseChanged);
    turn.ok()
}

fn unblock(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    check_unblock(args)?;
    // No command blocks yet, so there is never anyone to release.
    turn.reply().integer(0);
    Ok(Next::Continue)
}

fn check_unblock(args: Args<'_>) -> Result<(), Error> {
    if args.len() > 4 {
        return Err(wrong_subcommand(args));
    }
    if args.len() == 4 && !args.is(3, "TIMEOUT") && !args.is(3, "ERROR") {
        return Err(Error::text(
            "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
        ));
    }
    parse_i64(args.arg(2))
        .map(|_| ())
        .ok_or(Error::NotAnInteger)
}

/// The `ON` or `OFF` of argument 2.
fn parse_switch(args: Args<'_>) -> Result<bool, Error> {
    if args.is(2, "ON") {
        Ok(true)
    } else if args.is(2, "OFF") {
        Ok(false)
    } else {
        Err(Error::Syntax)
    }
}

fn no_evict(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    turn.session
        .card
        .no_evict
        .store(parse_switch(args)?, Relaxed);
    turn.ok()
}

fn no_touch(turn: &mut Turn<'_, '_>, args: Args<'_>) -> Result<Next, Error> {
    let on = parse_switch(args)?;
    turn.session.no_touch = on;
    turn.session.card.no_touch.store(on, Relaxed);
    turn.ok()
}

fn trackinginfo(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    let mut reply = turn.reply();
    reply.map(3);
    reply.bulk_str("flags");
    reply.set(1);
    reply.bulk_str("off");
    reply.bulk_str("redirect");
    reply.integer(-1);
    reply.bulk_str("prefixes");
    reply.array(0);
    Ok(Next::Continue)
}

fn getredir(turn: &mut Turn<'_, '_>, _: Args<'_>) -> Result<Next, Error> {
    turn.reply().integer(-1);
    Ok(Next::Continue)
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

    fn text<T>(result: Result<T, Error>) -> Result<T, String> {
        result.map_err(|error| error.message().to_owned())
    }

    #[test]
    fn pauses() {
        let parse = |line: &str| text(parse_pause(args(line).as_args(), 1_000));
        assert_eq!(parse("CLIENT PAUSE 50"), Ok((1_050, true)));
        assert_eq!(parse("CLIENT PAUSE 50 write"), Ok((1_050, false)));
        assert_eq!(parse("CLIENT PAUSE 0 ALL"), Ok((0, true)));
        for (line, error) in [
            (
                "CLIENT PAUSE x",
                "ERR timeout is not an integer or out of range",
            ),
            ("CLIENT PAUSE -1", "ERR timeout is negative"),
            (
                "CLIENT PAUSE x other",
                "ERR CLIENT PAUSE mode must be WRITE or ALL",
            ),
            (
                "CLIENT PAUSE 9223372036854775807",
                "ERR timeout is out of range",
            ),
            (
                "CLIENT PAUSE 1 ALL x",
                "ERR unknown subcommand or wrong number of arguments for 'PAUSE'. Try CLIENT HELP.",
            ),
        ] {
            assert_eq!(parse(line), Err(error.to_owned()), "{line}");
        }
    }

    #[test]
    fn unblocking_is_checked() {
        let check = |line: &str| text(check_unblock(args(line).as_args()));
        assert_eq!(check("CLIENT UNBLOCK 5"), Ok(()));
        assert_eq!(check("CLIENT UNBLOCK 5 error"), Ok(()));
        assert_eq!(
            check("CLIENT UNBLOCK x other"),
            Err("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR".to_owned())
        );
        assert_eq!(
            check("CLIENT UNBLOCK x"),
            Err("ERR value is not an integer or out of range".to_owned())
        );
    }

    #[test]
    fn names_are_printable_and_have_no_blanks() {
        assert!(checked_name(b"").is_ok());
        assert!(checked_name(b"a!~z").is_ok());
        for name in [&b"a b"[..], b"a\n", b"\xc3\xa9", b"a\0"] {
            assert!(checked_name(name).is_err());
        }
    }
}
