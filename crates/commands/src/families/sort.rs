//! `SORT` and `SORT_RO`.
//!
//! Lists, sets and sorted sets can be sorted. A key that does not exist counts as an empty list; any other type is refused.

use super::generic::shared::GENERIC;
use super::string::shared::{GROW, OW_UPDATE, READ, RO_ACCESS, announce_miss, integer};
use crate::spec::{Acl, Begin, Command, Find, Flags, KeyFlags, KeySpec, Spec};
use crate::{Ctx, Done, Error, EventClass};
use pantala_protocol::Args;

/// Both.
pub const COMMANDS: &[Command] = &[SORT, SORT_RO];

const fn somewhere(flags: KeyFlags) -> KeySpec {
    KeySpec {
        flags,
        begin: Begin::Unknown,
        find: Find::Unknown,
    }
}

const SORTS: Spec = Spec {
    complexity: "O(N+M*log(M)) where N is the number of elements and M how many of them are answered; O(N) where nothing is sorted.",
    arity: -2,
    acl: Acl::SET
        .union(Acl::SORTEDSET)
        .union(Acl::LIST)
        .union(Acl::DANGEROUS),
    ..GENERIC
};

/// `SORT`
const SORT: Command = Command::keyed(
    Spec {
        name: "sort",
        summary: "Sorts the elements of a list, a set or a sorted set, and answers or stores them.",
        flags: GROW.union(Flags::MOVABLEKEYS),
        // The keys that `BY` and `GET` lead to depend on the elements; `STORE` may stand anywhere.
        keys: &[
            KeySpec::one(1, RO_ACCESS),
            somewhere(RO_ACCESS),
            somewhere(OW_UPDATE),
        ],
        find_keys: Some(find_keys),
        syntax: "key [BY by-pattern] [LIMIT offset count] [GET get-pattern [GET get-pattern ...]] [ASC|DESC] [ALPHA] [STORE destination]",
        ..SORTS
    },
    sort,
);

/// `SORT_RO`
const SORT_RO: Command = Command::keyed(
    Spec {
        name: "sort_ro",
        summary: "Sorts the elements of a list, a set or a sorted set.",
        since: "7.0.0",
        flags: READ.union(Flags::MOVABLEKEYS),
        keys: &[KeySpec::one(1, RO_ACCESS), somewhere(RO_ACCESS)],
        syntax: "key [BY by-pattern] [LIMIT offset count] [GET get-pattern [GET get-pattern ...]] [ASC|DESC] [ALPHA]",
        ..SORTS
    },
    sort_ro,
);

/// The options of `SORT`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options<'a> {
    /// `DESC`
    pub descending: bool,
    /// `ALPHA`: compare bytes, not numbers.
    pub alpha: bool,
    /// `LIMIT`: how many are left out, how many are answered (negative: all).
    pub limit: Option<(i64, i64)>,
    /// `BY`: where the value to sort by is found.
    pub by: Option<&'a [u8]>,
    /// `GET`: what is answered for each element.
    pub get: Vec<&'a [u8]>,
    /// `STORE`: argument position of the key that the result goes to.
    pub store: Option<usize>,
}

impl<'a> Options<'a> {
    /// Reads the options from argument 2 on. Each may be repeated; the last one counts, and each `GET`.
    pub fn parse(args: Args<'a>, may_store: bool) -> Result<Self, Error> {
        let mut options = Self::default();
        let mut at = 2;
        while let Some(word) = args.get(at) {
            let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
            match (args.get(at + 1), args.get(at + 2)) {
                _ if is(b"ASC") => options.descending = false,
                _ if is(b"DESC") => options.descending = true,
                _ if is(b"ALPHA") => options.alpha = true,
                (Some(start), Some(count)) if is(b"LIMIT") => {
                    options.limit = Some((integer(start)?, integer(count)?));
                    at += 2;
                }
                (Some(_), _) if is(b"STORE") && may_store => {
                    options.store = Some(at + 1);
                    at += 1;
                }
                (Some(pattern), _) if is(b"BY") => {
                    options.by = Some(pattern);
                    at += 1;
                }
                (Some(pattern), _) if is(b"GET") => {
                    options.get.push(pattern);
                    at += 1;
                }
                _ => return Err(Error::Syntax),
            }
            at += 1;
        }
        Ok(options)
    }
}

/// The sorted key, and the last one that `STORE` names.
fn find_keys(args: Args<'_>, out: &mut Vec<u32>) {
    if args.len() > 1 {
        out.push(1);
    }
    if let Ok(Options {
        store: Some(at), ..
    }) = Options::parse(args, true)
    {
        out.push(at as u32);
    }
}

fn sort(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    let options = Options::parse(args, true)?;
    check_source(cx, args)?;
    if options.store.is_none() {
        cx.reply.array(0);
        return Ok(());
    }
    // An empty result is no list: the destination goes.
    let key = cx.key(args, 1);
    if cx.space.db(cx.db_index, cx.now_ms).remove(&key) {
        cx.fx.command(&[b"DEL", key.bytes]);
        cx.fx.modified(key.bytes, EventClass::GENERIC, "del");
    }
    cx.reply.integer(0);
    Ok(())
}

fn sort_ro(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Done {
    Options::parse(args, false)?;
    check_source(cx, args)?;
    cx.reply.array(0);
    Ok(())
}

/// Refuses what cannot be sorted. What passes is empty, for a type that can does not exist yet.
fn check_source(cx: &mut Ctx<'_, '_>, args: Args<'_>) -> Result<(), Error> {
    let key = cx.key(args, 0);
    if cx.space.db(cx.db_index, cx.now_ms).touch(&key) {
        return Err(Error::WrongType);
    }
    announce_miss(cx.fx, key.bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pantala_protocol::OwnedArgs;

    fn words(line: &str) -> OwnedArgs {
        line.split_ascii_whitespace().collect()
    }

    #[test]
    fn all_options() {
        let args = words(
            "SORT k desc LIMIT 1 -1 BY w_* get # GET o_*->f ALPHA store d LIMIT 2 3 asc DESC STORE e",
        );
        let expected = Options {
            descending: true,
            alpha: true,
            limit: Some((2, 3)),
            by: Some(b"w_*"),
            get: vec![b"#", b"o_*->f"],
            store: Some(21),
        };
        assert_eq!(Options::parse(args.as_args(), true), Ok(expected));
        let mut found = Vec::new();
        find_keys(args.as_args(), &mut found);
        assert_eq!(found, [1, 21]);
        assert_eq!(Options::parse(args.as_args(), false), Err(Error::Syntax));
    }

    #[test]
    fn refusals() {
        for (line, error) in [
            ("SORT k FOO", Error::Syntax),
            ("SORT k BY", Error::Syntax),
            ("SORT k GET", Error::Syntax),
            ("SORT k STORE", Error::Syntax),
            ("SORT k LIMIT 1", Error::Syntax),
            ("SORT k LIMIT x 1", Error::NotAnInteger),
            ("SORT k LIMIT 1 x", Error::NotAnInteger),
        ] {
            assert_eq!(
                Options::parse(words(line).as_args(), true),
                Err(error),
                "{line}"
            );
        }
    }
}
