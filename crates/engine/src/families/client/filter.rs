//! Which clients `CLIENT LIST` and `CLIENT KILL` mean: conditions that must all hold, each also in a `NOT-` form.

use super::super::connection::{DEFAULT_USER, shown};
use super::view::{ClientType, View};
use pantala_commands::Error;
use pantala_protocol::Args;
use pantala_protocol::numbers::parse_i64;
use std::collections::BTreeSet;
use std::mem::discriminant;

/// Flags that `CLIENT LIST` may show, here or elsewhere.
const FLAG_LETTERS: &[u8] = b"OSMPxbtRBdcuAUreTIN";
/// Capabilities that a client may claim: `r`, to follow redirections. None can be claimed here yet.
const CAPABILITY_LETTERS: &[u8] = b"r";

/// The command that filters; a few texts and defaults differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// `CLIENT LIST`.
    List,
    /// `CLIENT KILL`.
    Kill,
}

/// One property that a client has or has not.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Condition {
    Ids(BTreeSet<i64>),
    Type(ClientType),
    Peer(Vec<u8>),
    Local(Vec<u8>),
    Ip(Vec<u8>),
    User(Vec<u8>),
    Name(Vec<u8>),
    LibName(Vec<u8>),
    LibVer(Vec<u8>),
    Flags(Vec<u8>),
    Capabilities(Vec<u8>),
    Db(u16),
    MaxAge(i64),
    Idle(i64),
}

/// Conditions on a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    /// Whether the client that asks is left out.
    pub skip_me: bool,
    /// Identifiers asked for, each once, in the order of the request.
    ids: Vec<i64>,
    /// Conditions, each with whether it must not hold.
    conditions: Vec<(Condition, bool)>,
}

impl Filter {
    /// Everyone.
    pub fn all() -> Self {
        Self {
            skip_me: false,
            ids: Vec::new(),
            conditions: Vec::new(),
        }
    }

    /// The client behind one address, also if it is the one that asks (`CLIENT KILL ip:port`).
    pub fn peer(address: &[u8]) -> Self {
        Self {
            conditions: vec![(Condition::Peer(address.to_vec()), false)],
            ..Self::all()
        }
    }

    /// Reads the options from argument 2 on. `databases`: how many there are. Errors: Redis's texts.
    pub fn parse(args: Args<'_>, purpose: Purpose, databases: u16) -> Result<Self, Error> {
        let mut filter = Self {
            skip_me: purpose == Purpose::Kill,
            ..Self::all()
        };
        let mut at = 2;
        while at < args.len() {
            let word = args.arg(at).to_ascii_uppercase();
            let value = args.get(at + 1).ok_or(Error::Syntax)?;
            let (name, negated) = match word.strip_prefix(b"NOT-") {
                Some(name) => (name, true),
                None => (&*word, false),
            };
            at += 2;
            let condition = match name {
                b"ID" => {
                    let (ids, next) = parse_ids(args, at - 1, purpose)?;
                    at = next;
                    filter.add_ids(&ids, negated);
                    continue;
                }
                b"SKIPME" if !negated => {
                    filter.skip_me = parse_yes_no(value)?;
                    continue;
                }
                b"MAXAGE" if !negated => Condition::MaxAge(parse_seconds(value, "maxage")?),
                b"IDLE" if !negated => Condition::Idle(parse_seconds(value, "idle")?),
                _ => parse_condition(name, negated, value, databases)?,
            };
            filter.add(condition, negated);
        }
        Ok(filter)
    }

    /// A condition of a kind that is there already is replaced.
    fn add(&mut self, condition: Condition, negated: bool) {
        let same = self.conditions.iter_mut().find(|(known, not)| {
            *not == negated && discriminant(known) == discriminant(&condition)
        });
        match same {
            Some((known, _)) => *known = condition,
            None => self.conditions.push((condition, negated)),
        }
    }

    /// Identifiers add up.
    fn add_ids(&mut self, ids: &[i64], negated: bool) {
        let known = self
            .conditions
            .iter_mut()
            .find_map(|(condition, not)| match condition {
                Condition::Ids(known) if *not == negated => Some(known),
                _ => None,
            });
        let mut first = BTreeSet::new();
        let known = known.unwrap_or(&mut first);
        for &id in ids {
            if known.insert(id) && !negated {
                self.ids.push(id);
            }
        }
        if !first.is_empty() {
            self.conditions.push((Condition::Ids(first), negated));
        }
    }

    /// The identifiers asked for, in the order of the request; `None`: any.
    pub fn ids(&self) -> Option<&[i64]> {
        (!self.ids.is_empty()).then_some(&self.ids)
    }

    /// Whether a client is meant.
    pub fn matches(&self, client: &View<'_>) -> bool {
        self.conditions
            .iter()
            .all(|(condition, negated)| condition.holds(client) != *negated)
    }
}

impl Condition {
    fn holds(&self, client: &View<'_>) -> bool {
        let is = |value: &str, wanted: &[u8]| value.as_bytes() == wanted;
        // Who has no name does not have the empty name.
        let is_named = |value: &str, wanted: &[u8]| !value.is_empty() && is(value, wanted);
        match self {
            Self::Ids(ids) => ids.contains(&client.id.cast_signed()),
            Self::Type(class) => client.class() == *class,
            Self::Peer(address) => is(client.peer, address),
            Self::Local(address) => is(client.local, address),
            Self::Ip(ip) => ip_of(client).is_some_and(|own| is(own, ip)),
            Self::User(user) => is(&client.names.user, user),
            Self::Name(name) => is_named(&client.names.name, name),
            Self::LibName(name) => is_named(&client.names.lib_name, name),
            Self::LibVer(version) => is_named(&client.names.lib_ver, version),
            Self::Flags(letters) => {
                let flags = client.flags();
                letters
                    .iter()
                    .all(|letter| flags.as_bytes().contains(letter))
            }
            // Nobody has any.
            Self::Capabilities(letters) => letters.is_empty(),
            Self::Db(db) => client.db == *db,
            Self::MaxAge(seconds) => client.age_s >= *seconds,
            Self::Idle(seconds) => client.idle_s >= *seconds,
        }
    }
}

/// The address without port and brackets; a Unix socket has none.
fn ip_of<'v>(client: &View<'v>) -> Option<&'v str> {
    if client.unix {
        return None;
    }
    let (ip, _port) = client.peer.rsplit_once(':')?;
    Some(
        ip.strip_prefix('[')
            .and_then(|ip| ip.strip_suffix(']'))
            .unwrap_or(ip),
    )
}

fn parse_condition(
    name: &[u8],
    negated: bool,
    value: &[u8],
    databases: u16,
) -> Result<Condition, Error> {
    let bytes = || value.to_vec();
    Ok(match name {
        b"TYPE" => {
            Condition::Type(ClientType::parse(value).ok_or_else(|| {
                Error::owned(format!("ERR Unknown client type '{}'", shown(value)))
            })?)
        }
        b"ADDR" => Condition::Peer(bytes()),
        b"LADDR" => Condition::Local(bytes()),
        b"IP" => Condition::Ip(bytes()),
        b"USER" if value == DEFAULT_USER.as_bytes() => Condition::User(bytes()),
        b"USER" => return Err(Error::owned(format!("ERR No such user '{}'", shown(value)))),
        b"NAME" => Condition::Name(bytes()),
        b"LIB-NAME" => Condition::LibName(bytes()),
        b"LIB-VER" => Condition::LibVer(bytes()),
        b"FLAGS" => Condition::Flags(parse_letters(
            value,
            FLAG_LETTERS,
            "flags",
            "FLAGS",
            negated,
        )?),
        b"CAPA" => Condition::Capabilities(parse_letters(
            value,
            CAPABILITY_LETTERS,
            "capa",
            "CAPA",
            negated,
        )?),
        b"DB" => Condition::Db(parse_db(value, databases)?),
        _ => return Err(Error::Syntax),
    })
}

/// Identifiers from argument `at` on, and the position behind them. The list ends where another option begins.
fn parse_ids(args: Args<'_>, mut at: usize, purpose: Purpose) -> Result<(Vec<i64>, usize), Error> {
    const NOT_AN_ID: Error = Error::text("ERR client-id should be greater than 0");
    let mut ids = Vec::new();
    while let Some(word) = args.get(at) {
        match parse_i64(word) {
            // Nobody has such an identifier, which only `KILL` minds.
            Some(id) if id < 1 && purpose == Purpose::Kill => return Err(NOT_AN_ID),
            Some(id) => ids.push(id),
            None if !ids.is_empty() && (purpose == Purpose::Kill || is_option(word)) => break,
            None if purpose == Purpose::Kill => return Err(NOT_AN_ID),
            None => return Err(Error::text("ERR Invalid client ID")),
        }
        at += 1;
    }
    Ok((ids, at))
}

fn is_option(word: &[u8]) -> bool {
    const NAMES: [&str; 14] = [
        "ID", "TYPE", "ADDR", "LADDR", "IP", "USER", "NAME", "LIB-NAME", "LIB-VER", "FLAGS",
        "CAPA", "DB", "MAXAGE", "IDLE",
    ];
    let word = word.to_ascii_uppercase();
    let name = word.strip_prefix(b"NOT-").unwrap_or(&word);
    name == b"SKIPME" || NAMES.iter().any(|known| known.as_bytes() == name)
}

fn parse_yes_no(value: &[u8]) -> Result<bool, Error> {
    if value.eq_ignore_ascii_case(b"yes") {
        Ok(true)
    } else if value.eq_ignore_ascii_case(b"no") {
        Ok(false)
    } else {
        Err(Error::Syntax)
    }
}

fn parse_seconds(value: &[u8], what: &str) -> Result<i64, Error> {
    match parse_i64(value) {
        None => Err(Error::owned(format!(
            "ERR {what} is not an integer or out of range"
        ))),
        Some(seconds) if seconds <= 0 => {
            Err(Error::owned(format!("ERR {what} should be greater than 0")))
        }
        Some(seconds) => Ok(seconds),
    }
}

fn parse_db(value: &[u8], databases: u16) -> Result<u16, Error> {
    let number = parse_i64(value)
        .filter(|&number| i32::try_from(number).is_ok())
        .ok_or(Error::text("ERR DB is not an integer or out of range"))?;
    u16::try_from(number)
        .ok()
        .filter(|&db| db < databases)
        .ok_or_else(|| {
            Error::owned(format!(
                "ERR DB number should be between 0 and {}",
                databases.saturating_sub(1)
            ))
        })
}

fn parse_letters(
    value: &[u8],
    known: &[u8],
    what: &str,
    option: &str,
    negated: bool,
) -> Result<Vec<u8>, Error> {
    if value.iter().all(|letter| known.contains(letter)) {
        return Ok(value.to_vec());
    }
    let place = if negated {
        format!("NOT-{option}")
    } else {
        "provided".to_owned()
    };
    Err(Error::owned(format!(
        "ERR Unknown {what} found in the {place} filter: {}",
        shown(value)
    )))
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::example;
    use super::*;
    use crate::clients::Names;
    use pantala_protocol::OwnedArgs;

    fn parse(line: &str, purpose: Purpose) -> Result<Filter, String> {
        let mut args = OwnedArgs::new();
        line.split(' ').for_each(|word| args.push(word.as_bytes()));
        Filter::parse(args.as_args(), purpose, 16).map_err(|error| error.message().to_owned())
    }

    fn list(line: &str) -> Result<Filter, String> {
        parse(&format!("CLIENT LIST {line}"), Purpose::List)
    }

    fn kill(line: &str) -> Result<Filter, String> {
        parse(&format!("CLIENT KILL {line}"), Purpose::Kill)
    }

    fn matches(line: &str, client: &View<'_>) -> bool {
        list(line)
            .map(|filter| filter.matches(client))
            .unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    #[test]
    fn every_condition_and_its_opposite() {
        let client = View {
            no_evict: true,
            queued: 2,
            ..example()
        };
        for (name, right, wrong) in [
            ("ID", "7", "8"),
            ("TYPE", "normal", "replica"),
            ("ADDR", "127.0.0.1:5000", "127.0.0.1:5001"),
            ("LADDR", "127.0.0.1:6379", "127.0.0.1:5000"),
            ("IP", "127.0.0.1", "127.0.0"),
            ("NAME", "me", "m"),
            ("LIB-NAME", "lib", "Lib"),
            ("LIB-VER", "1.2", "1.3"),
            ("FLAGS", "ex", "exb"),
            ("DB", "3", "4"),
        ] {
            assert!(matches(&format!("{name} {right}"), &client), "{name}");
            assert!(!matches(&format!("{name} {wrong}"), &client), "{name}");
            assert!(!matches(&format!("not-{name} {right}"), &client), "{name}");
            assert!(matches(&format!("NOT-{name} {wrong}"), &client), "{name}");
        }
        assert!(matches("USER default", &client) && !matches("NOT-USER default", &client));
        assert!(!matches("CAPA r", &client) && matches("NOT-CAPA r", &client));
        assert!(matches("MAXAGE 100", &client) && !matches("MAXAGE 101", &client));
        assert!(matches("IDLE 10 DB 3", &client) && !matches("IDLE 11 DB 3", &client));
        assert!(!matches("FLAGS N", &client) && matches("FLAGS N", &example()));
    }

    #[test]
    fn an_unnamed_client_has_no_name() {
        let client = View {
            names: Names::default(),
            ..example()
        };
        let mut args = OwnedArgs::new();
        [&b"CLIENT"[..], b"LIST", b"NAME", b""]
            .iter()
            .for_each(|word| args.push(word));
        let filter = Filter::parse(args.as_args(), Purpose::List, 16).expect("a valid filter");
        assert!(!filter.matches(&client));
        assert!(matches("NOT-NAME x", &client));
    }

    #[test]
    fn addresses_of_all_kinds() {
        let v6 = View {
            peer: "[::1]:5000",
            ..example()
        };
        assert!(matches("IP ::1", &v6) && !matches("IP [::1]", &v6));
        let unix = View {
            peer: "/tmp/socket:0",
            unix: true,
            ..example()
        };
        assert!(!matches("IP /tmp/socket", &unix) && matches("NOT-IP ::1", &unix));
    }

    #[test]
    fn identifiers_end_where_an_option_begins() {
        let filter = list("ID 3 1 1 2 TYPE normal ID 9 3").expect("valid");
        assert_eq!(filter.ids(), Some(&[3, 1, 2, 9][..]));
        assert_eq!(
            list("ID 0 -1").expect("nobody is meant").ids(),
            Some(&[0, -1][..])
        );
        assert_eq!(list("TYPE normal").expect("valid").ids(), None);
        assert_eq!(list("ID 1 abc"), Err("ERR Invalid client ID".to_owned()));
        assert_eq!(list("ID abc"), Err("ERR Invalid client ID".to_owned()));
        assert_eq!(
            kill("ID 0"),
            Err("ERR client-id should be greater than 0".to_owned())
        );
        assert_eq!(
            kill("ID abc"),
            Err("ERR client-id should be greater than 0".to_owned())
        );
        assert_eq!(kill("ID 1 abc"), Err("ERR syntax error".to_owned()));
        assert_eq!(
            kill("ID 1 2 SKIPME no").map(|filter| filter.skip_me),
            Ok(false)
        );
    }

    #[test]
    fn the_last_of_a_kind_counts() {
        assert!(matches("DB 1 DB 3", &example()));
        assert!(!matches("DB 3 NOT-DB 3", &example()));
    }

    #[test]
    fn who_kills_spares_itself_by_default() {
        assert_eq!(kill("TYPE normal").map(|filter| filter.skip_me), Ok(true));
        assert_eq!(list("TYPE normal").map(|filter| filter.skip_me), Ok(false));
        assert!(!Filter::peer(b"127.0.0.1:5000").skip_me);
    }

    #[test]
    fn faults_have_their_texts() {
        for (line, text) in [
            ("foo", "ERR syntax error"),
            ("foo bar", "ERR syntax error"),
            ("ID", "ERR syntax error"),
            ("TYPE normal ADDR", "ERR syntax error"),
            ("TYPE other", "ERR Unknown client type 'other'"),
            ("NOT-SKIPME yes", "ERR syntax error"),
            ("SKIPME maybe", "ERR syntax error"),
            ("USER nobody", "ERR No such user 'nobody'"),
            ("MAXAGE x", "ERR maxage is not an integer or out of range"),
            ("MAXAGE 0", "ERR maxage should be greater than 0"),
            ("NOT-IDLE 5", "ERR syntax error"),
            ("IDLE -1", "ERR idle should be greater than 0"),
            ("DB x", "ERR DB is not an integer or out of range"),
            ("DB 16", "ERR DB number should be between 0 and 15"),
            (
                "FLAGS Nz",
                "ERR Unknown flags found in the provided filter: Nz",
            ),
            (
                "NOT-FLAGS z",
                "ERR Unknown flags found in the NOT-FLAGS filter: z",
            ),
            ("CAPA x", "ERR Unknown capa found in the provided filter: x"),
        ] {
            assert_eq!(list(line), Err(text.to_owned()), "{line}");
        }
    }
}
