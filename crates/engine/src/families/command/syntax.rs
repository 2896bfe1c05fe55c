//! The argument tree of `COMMAND DOCS`, read from a command's syntax line.
//!
//! A syntax line is what the documentation of Redis prints behind a command's name:
//! `key value [NX|XX] [EX seconds|PX milliseconds] [GET pattern [GET pattern ...]]`. Words in capitals are tokens, other words name
//! values, `[…]` may be left out, `<a|b>` must be chosen from, `x [x ...]` may be repeated. The tree has the types that Redis
//! uses, guessed from the names of the values, since the line says nothing more about them.
//!
//! Syntax lines are constants of this program: a line that cannot be read is a defect, which a test over all commands finds; at
//! run time it yields no tree. Nothing here may panic.

use std::fmt;

/// How deeply brackets may be nested.
const DEPTH_MAX: usize = 8;

/// What an argument is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Any bytes.
    String,
    /// A number without a fraction.
    Integer,
    /// A number with a fraction.
    Double,
    /// A key.
    Key,
    /// A glob-style pattern.
    Pattern,
    /// A point in time.
    UnixTime,
    /// A word that stands for itself.
    PureToken,
    /// One of several.
    OneOf,
    /// Several that belong together.
    Block,
}

impl Kind {
    /// As `COMMAND DOCS` names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Double => "double",
            Self::Key => "key",
            Self::Pattern => "pattern",
            Self::UnixTime => "unix-time",
            Self::PureToken => "pure-token",
            Self::OneOf => "oneof",
            Self::Block => "block",
        }
    }
}

/// One argument with all that belongs to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arg {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The word in front of it, or which it is.
    pub token: Option<String>,
    /// May be left out.
    pub optional: bool,
    /// May be repeated.
    pub multiple: bool,
    /// The token is repeated with it.
    pub multiple_token: bool,
    /// Which of the command's key specifications finds it.
    pub key_spec: Option<usize>,
    /// Parts of a block, choices of a one-of.
    pub args: Vec<Arg>,
}

impl Arg {
    fn value(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind_of(name),
            token: None,
            optional: false,
            multiple: false,
            multiple_token: false,
            key_spec: None,
            args: Vec::new(),
        }
    }

    fn of(name: String, kind: Kind, args: Vec<Self>) -> Self {
        Self {
            name,
            kind,
            args,
            ..Self::value("")
        }
    }

    fn pure(token: &str) -> Self {
        Self {
            token: Some(token.to_owned()),
            ..Self::of(name_of_token(token), Kind::PureToken, Vec::new())
        }
    }
}

/// Why a syntax line cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyntaxError(String);

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SyntaxError {}

/// Reads a syntax line. `key_specs` is the number of the command's key specifications; the keys are numbered by it in order.
pub fn parse(syntax: &str, key_specs: usize) -> Result<Vec<Arg>, SyntaxError> {
    let words = split(syntax);
    let mut parser = Parser {
        words: &words,
        at: 0,
    };
    let mut choices = parser.choices(0)?;
    if let Some(word) = parser.words.get(parser.at) {
        return Err(SyntaxError(format!("unexpected '{word}' in '{syntax}'")));
    }
    let Some(items) = choices.pop().filter(|_| choices.is_empty()) else {
        return Err(SyntaxError(format!("'|' outside brackets in '{syntax}'")));
    };
    let mut args = sequence(&items);
    number_keys(&mut args, key_specs, &mut 0);
    Ok(args)
}

/// A piece of the line.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Item {
    Word(String),
    Optional(Vec<Vec<Item>>),
    Choice(Vec<Vec<Item>>),
    /// `x [x ...]`.
    Repeated(Vec<Item>),
    /// `...`, before it has been understood.
    Dots,
}

const MARKS: [char; 5] = ['[', ']', '<', '>', '|'];

fn split(syntax: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut depth = 0_usize;
    for piece in syntax.split_whitespace() {
        let core = piece.trim_end_matches([']', '>']);
        let after_word = words
            .last()
            .is_some_and(|word: &&str| !word.starts_with(MARKS));
        let bare = is_bare_choice(core, depth == 0, after_word);
        if bare {
            words.push("<");
        }
        cut(core, &mut words);
        if bare {
            words.push(">");
        }
        cut(&piece[core.len()..], &mut words);
        let count = |marks: [char; 2]| piece.matches(marks).count();
        depth = (depth + count(['[', '<'])).saturating_sub(count([']', '>']));
    }
    words
}

/// Whether `A|B` is a choice that lacks its brackets: outside all brackets, or behind a word (`TOKEN A|B`) where the parts are all
/// tokens or all values. In `EX seconds|PX milliseconds` they are not, so there the alternatives go on.
fn is_bare_choice(core: &str, outside: bool, after_word: bool) -> bool {
    if !core.contains('|') || core.contains(['[', ']', '<', '>']) {
        return false;
    }
    let mut parts = core.split('|').map(is_token);
    let first = parts.next();
    outside || (after_word && parts.all(|part| Some(part) == first))
}

/// Appends the words of a piece without blanks, each mark a word of its own.
fn cut<'s>(piece: &'s str, words: &mut Vec<&'s str>) {
    let mut rest = piece;
    while let Some(at) = rest.find(MARKS) {
        if at != 0 {
            words.push(&rest[..at]);
        }
        words.push(&rest[at..=at]);
        rest = &rest[at + 1..];
    }
    if !rest.is_empty() {
        words.push(rest);
    }
}

struct Parser<'w> {
    words: &'w [&'w str],
    at: usize,
}

impl Parser<'_> {
    /// Alternatives up to a closing bracket or the end.
    fn choices(&mut self, depth: usize) -> Result<Vec<Vec<Item>>, SyntaxError> {
        if depth > DEPTH_MAX {
            return Err(SyntaxError(format!(
                "more than {DEPTH_MAX} brackets in each other"
            )));
        }
        let mut choices = Vec::new();
        let mut items = Vec::new();
        while let Some(&word) = self.words.get(self.at) {
            match word {
                "]" | ">" => break,
                "|" => choices.push(std::mem::take(&mut items)),
                "[" => {
                    let inner = self.bracket("]", depth)?;
                    optional(&mut items, inner);
                }
                "<" => {
                    let inner = self.bracket(">", depth)?;
                    items.push(Item::Choice(inner));
                }
                "..." => items.push(Item::Dots),
                word => items.push(Item::Word(word.to_owned())),
            }
            self.at += 1;
        }
        choices.push(items);
        Ok(choices)
    }

    /// What stands in a bracket; ends on the closing one.
    fn bracket(&mut self, end: &str, depth: usize) -> Result<Vec<Vec<Item>>, SyntaxError> {
        self.at += 1;
        let inner = self.choices(depth + 1)?;
        match self.words.get(self.at) {
            Some(&word) if word == end => {}
            other => return Err(SyntaxError(format!("'{end}' expected, {other:?} found"))),
        }
        if inner.iter().any(Vec::is_empty) {
            return Err(SyntaxError("an empty alternative".to_owned()));
        }
        Ok(inner)
    }
}

/// Appends `[inner]`: a repetition of what stands before it, a repetition by itself, or something optional.
fn optional(items: &mut Vec<Item>, mut inner: Vec<Vec<Item>>) {
    if let [only] = &mut inner[..]
        && only.len() > 1
        && only.last() == Some(&Item::Dots)
    {
        only.pop();
        let start = items.len().checked_sub(only.len());
        match start.filter(|&start| items[start..] == only[..]) {
            Some(start) => {
                let repeated = items.split_off(start);
                items.push(Item::Repeated(repeated));
            }
            None => items.push(Item::Optional(vec![vec![Item::Repeated(std::mem::take(
                only,
            ))]])),
        }
        return;
    }
    items.push(Item::Optional(inner));
}

fn is_token(word: &str) -> bool {
    !word.chars().any(|c| c.is_ascii_lowercase()) && !word.is_empty()
}

fn is_token_item(item: &Item) -> bool {
    match item {
        Item::Word(word) => is_token(word),
        Item::Repeated(inner) => matches!(inner.first(), Some(Item::Word(word)) if is_token(word)),
        Item::Optional(_) | Item::Choice(_) | Item::Dots => false,
    }
}

/// The arguments of a sequence: a token takes what follows it up to the next token or option.
fn sequence(items: &[Item]) -> Vec<Arg> {
    let mut args = Vec::new();
    let mut at = 0;
    while let Some(item) = items.get(at) {
        at += 1;
        match item {
            Item::Word(word) if is_token(word) => {
                let taken = items[at..]
                    .iter()
                    .take_while(|item| {
                        !is_token_item(item) && !matches!(item, Item::Optional(_) | Item::Dots)
                    })
                    .count();
                args.push(with_token(word, &items[at..at + taken]));
                at += taken;
            }
            Item::Word(word) => args.push(Arg::value(word)),
            Item::Optional(choices) => {
                let mut arg = one_of(choices);
                arg.optional = true;
                args.push(arg);
            }
            Item::Choice(choices) => args.push(one_of(choices)),
            Item::Repeated(inner) => {
                let mut arg = joined(sequence(inner));
                arg.multiple = true;
                arg.multiple_token = arg.token.is_some();
                args.push(arg);
            }
            // A stray `...`: what stands before it may be repeated.
            Item::Dots => {
                if let Some(arg) = args.last_mut() {
                    arg.multiple = true;
                }
            }
        }
    }
    args
}

fn with_token(token: &str, items: &[Item]) -> Arg {
    let mut args = sequence(items);
    match args.len() {
        0 => Arg::pure(token),
        1 => {
            let mut arg = args.remove(0);
            if token.ends_with("FLOAT") && arg.kind == Kind::Integer {
                arg.kind = Kind::Double;
            }
            Arg {
                token: Some(token.to_owned()),
                ..arg
            }
        }
        _ => Arg {
            token: Some(token.to_owned()),
            ..Arg::of(name_of_token(token), Kind::Block, args)
        },
    }
}

/// One argument for a sequence: itself, or a block.
fn joined(mut args: Vec<Arg>) -> Arg {
    if args.len() == 1 {
        return args.remove(0);
    }
    let name = join_names(&args);
    Arg::of(name, Kind::Block, args)
}

fn one_of(choices: &[Vec<Item>]) -> Arg {
    let mut args: Vec<Arg> = choices
        .iter()
        .map(|items| joined(sequence(items)))
        .collect();
    if args.len() == 1 {
        return args.remove(0);
    }
    let tokens = || args.iter().filter_map(|arg| arg.token.as_deref());
    let name = if tokens().any(|token| matches!(token, "EX" | "PX" | "EXAT" | "PXAT")) {
        "expiration".to_owned()
    } else if tokens().any(|token| matches!(token, "NX" | "XX" | "FNX" | "FXX")) {
        "condition".to_owned()
    } else {
        join_names(&args)
    };
    Arg::of(name, Kind::OneOf, args)
}

fn join_names(args: &[Arg]) -> String {
    args.iter()
        .map(|arg| arg.name.as_str())
        .collect::<Vec<_>>()
        .join("-")
}

fn name_of_token(token: &str) -> String {
    match token {
        "*" => "auto-id".to_owned(),
        "=" => "equal".to_owned(),
        "~" => "approximately".to_owned(),
        "$" => "last-id".to_owned(),
        "\"\"" => "empty-string".to_owned(),
        _ => token.to_ascii_lowercase(),
    }
}

fn kind_of(name: &str) -> Kind {
    match name {
        "key" | "key1" | "key2" | "newkey" | "source" | "destination" | "destkey" | "sourcekey" => {
            Kind::Key
        }
        "pattern" | "by-pattern" | "get-pattern" => Kind::Pattern,
        "unix-time-seconds" | "unix-time-milliseconds" | "unix-time" => Kind::UnixTime,
        "min" | "max" | "score" | "weight" | "longitude" | "latitude" | "radius" | "width"
        | "height" => Kind::Double,
        "seconds" | "milliseconds" | "timeout" | "count" | "limit" | "offset" | "start" | "end"
        | "stop" | "index" | "numkeys" | "numfields" | "increment" | "decrement" | "bit"
        | "cursor" | "ttl" | "db" | "destination-db" | "index1" | "index2" | "numreplicas"
        | "numlocal" | "version" | "bits" | "min-match-len" | "port" | "protover" | "client-id"
        | "frequency" | "max-burst" | "count-per-period" | "period-seconds" | "quantity"
        | "maxage" | "idle-seconds" => Kind::Integer,
        _ => Kind::String,
    }
}

/// Keys get the number of the key specification that finds them, in order; what looks like a key in a command without keys is none.
fn number_keys(args: &mut [Arg], key_specs: usize, next: &mut usize) {
    let mut of_patterns = None;
    for arg in args {
        match arg.kind {
            Kind::Key if key_specs == 0 => arg.kind = Kind::String,
            Kind::Key => {
                arg.key_spec = Some((*next).min(key_specs - 1));
                *next += 1;
            }
            // Patterns that name keys (`SORT … BY x GET y`) share one specification.
            Kind::Pattern if arg.name != "pattern" && key_specs > 1 => {
                arg.key_spec = *of_patterns.get_or_insert_with(|| {
                    *next += 1;
                    Some((*next - 1).min(key_specs - 1))
                });
            }
            _ => {}
        }
        number_keys(&mut arg.args, key_specs, next);
    }
}

#[cfg(test)]
mod tests;
