//! The memcached request parser: one line, and for storage commands a block of data behind it.
//!
//! A value that is refused by its length is never buffered: the error is reported at once and the data are skipped as they arrive.

use super::KEY_BYTES_MAX;
use super::meta::{self, BAD_FORMAT, MetaVerb};
use super::numbers::{parse_i32, parse_u32, parse_u64};
use super::request::{
    Arithmetic, Delete, Get, GetVerb, McError, McKey, McParsed, McRequest, Store, StoreVerb,
    Tokens, Touch,
};
use super::{Meta, base64};

const ERROR: &str = "ERROR";
const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";
const BAD_CHUNK: &str = "CLIENT_ERROR bad data chunk";
const BAD_EXPTIME: &str = "CLIENT_ERROR invalid exptime argument";

/// What a connection may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct McLimits {
    /// How far a line may go on before its end must be seen, unless it is a `get` or `gets`.
    pub line_bytes: usize,
    /// The same for `get` and `gets`, whose many keys make long lines.
    pub multiget_line_bytes: usize,
    /// Largest item: key, value and the 60 or so bytes that memcached adds to them (`-I`).
    pub item_bytes: usize,
}

impl Default for McLimits {
    fn default() -> Self {
        Self {
            line_bytes: 2048,
            multiget_line_bytes: 1024 * 1024,
            item_bytes: 1024 * 1024,
        }
    }
}

/// The state between two pieces of a request. Default: between requests.
#[derive(Debug, Default)]
pub struct McParser {
    /// Bytes of refused data still to be skipped.
    swallow: usize,
    /// How much of the line, from its beginning, was searched for its end in vain.
    searched: usize,
    /// Bytes known to be missing.
    missing: usize,
}

/// A line that announces data, checked.
struct Announced<'a> {
    request: WithData<'a>,
    /// The reply to a bad block of data.
    bad_chunk: &'static str,
    len: usize,
}

/// The requests that carry data.
enum WithData<'a> {
    Store(Store<'a>),
    Meta(Meta<'a>),
}

/// What a line turned out to be.
enum Line<'a> {
    Request(McRequest<'a>),
    Announced(Announced<'a>),
    Refused { error: McError<'a>, swallow: usize },
}

impl<'a> Line<'a> {
    fn error(reply: &'static str) -> Self {
        Self::refused(reply, 0, None)
    }

    /// An error of a classic command, which `noreply` suppresses.
    fn quiet_error(reply: &'static str, noreply: bool) -> Self {
        Self::error(if noreply { "" } else { reply })
    }

    fn close(reply: &'static str) -> Self {
        Self::Refused {
            error: McError {
                reply,
                close: true,
                unlink: None,
            },
            swallow: 0,
        }
    }

    fn refused(reply: &'static str, swallow: usize, unlink: Option<McKey<'a>>) -> Self {
        Self::Refused {
            error: McError {
                reply,
                close: false,
                unlink,
            },
            swallow,
        }
    }
}

impl McParser {
    /// A parser at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses the next request from `buf[*at..]` and moves `*at` behind it; when it is not whole, `*at` moves at most over data
    /// that were refused, and the caller keeps `buf[*at..]`, appends what arrives and calls again. Between two calls the buffer may
    /// be moved, as long as `*at` points to the same byte.
    pub fn next<'a>(&mut self, buf: &'a [u8], at: &mut usize, limits: &McLimits) -> McParsed<'a> {
        self.missing = 0;
        if self.swallow != 0 {
            let skipped = self.swallow.min(buf.len() - *at);
            *at += skipped;
            self.swallow -= skipped;
        }
        let bytes = &buf[*at..];
        let searched = self.searched.min(bytes.len());
        let Some(newline) = memchr::memchr(b'\n', &bytes[searched..]).map(|i| searched + i) else {
            self.searched = bytes.len();
            return match endless(bytes, limits) {
                Some(reply) => McParsed::Error(McError {
                    reply,
                    close: true,
                    unlink: None,
                }),
                None => McParsed::NeedMore,
            };
        };
        let line = match &bytes[..newline] {
            [line @ .., b'\r'] if !line.is_empty() => line,
            line => line,
        };
        let after = newline + 1;
        let parsed = match parse_line(line, limits) {
            Line::Request(request) => {
                *at += after;
                McParsed::Request(request)
            }
            Line::Refused { error, swallow } => {
                *at += after;
                self.swallow = swallow;
                McParsed::Error(error)
            }
            Line::Announced(announced) => {
                let end = after + announced.len + 2;
                let Some(block) = bytes.get(after..end) else {
                    // The next search finds the same line at once.
                    self.searched = newline;
                    self.missing = end - bytes.len();
                    return McParsed::NeedMore;
                };
                *at += end;
                announced.with_data(block)
            }
        };
        self.searched = 0;
        parsed
    }

    /// How many more bytes are known to be missing, so that the buffer can be enlarged once: at most the item limit.
    pub fn needs(&self) -> Option<usize> {
        (self.missing != 0).then_some(self.missing)
    }

    /// Whether a request is half received.
    pub fn in_request(&self) -> bool {
        self.swallow != 0 || self.searched != 0
    }
}

impl<'a> Announced<'a> {
    fn with_data(self, block: &'a [u8]) -> McParsed<'a> {
        let Some(value) = block.strip_suffix(b"\r\n") else {
            return McParsed::Error(McError {
                reply: self.bad_chunk,
                close: false,
                unlink: None,
            });
        };
        McParsed::Request(match self.request {
            WithData::Store(store) => McRequest::Store(Store {
                data: value,
                ..store
            }),
            WithData::Meta(meta) => McRequest::Meta(Meta {
                data: value,
                ..meta
            }),
        })
    }
}

/// The reply with which a line that does not end is given up; empty for none.
fn endless(bytes: &[u8], limits: &McLimits) -> Option<&'static str> {
    if bytes.len() <= limits.line_bytes {
        return None;
    }
    let blanks = bytes.iter().take_while(|&&byte| byte == b' ').count();
    let command = &bytes[blanks..];
    if blanks > 100 || !(command.starts_with(b"get ") || command.starts_with(b"gets ")) {
        return Some("");
    }
    (bytes.len() > limits.multiget_line_bytes).then_some("CLIENT_ERROR line too long")
}

#[inline]
fn parse_line<'a>(line: &'a [u8], limits: &McLimits) -> Line<'a> {
    let mut words = Tokens(line);
    let Some(command) = words.next() else {
        return Line::error(ERROR);
    };
    match command {
        b"get" | b"bget" => get(GetVerb::Get, words),
        b"gets" => get(GetVerb::Gets, words),
        b"gat" => get(GetVerb::Gat, words),
        b"gats" => get(GetVerb::Gats, words),
        b"mg" => meta_command(MetaVerb::Get, words),
        b"md" => meta_command(MetaVerb::Delete, words),
        b"ma" => meta_command(MetaVerb::Arithmetic, words),
        b"ms" => meta_set(words, limits),
        b"mn" => Line::Request(McRequest::MetaNoop),
        b"me" => meta_debug(words),
        b"set" => store(StoreVerb::Set, &Words::new(words), limits),
        b"add" => store(StoreVerb::Add, &Words::new(words), limits),
        b"replace" => store(StoreVerb::Replace, &Words::new(words), limits),
        b"append" => store(StoreVerb::Append, &Words::new(words), limits),
        b"prepend" => store(StoreVerb::Prepend, &Words::new(words), limits),
        b"cas" => store(StoreVerb::Cas, &Words::new(words), limits),
        b"incr" => arithmetic(false, &Words::new(words)),
        b"decr" => arithmetic(true, &Words::new(words)),
        b"touch" => touch(&Words::new(words)),
        b"delete" => delete(&Words::new(words)),
        _ => parse_rare(command, words),
    }
}

fn parse_rare<'a>(command: &[u8], words: Tokens<'a>) -> Line<'a> {
    match command {
        b"stats" => Line::Request(McRequest::Stats(words)),
        b"flush_all" => flush_all(&Words::new(words)),
        b"version" => Line::Request(McRequest::Version),
        b"verbosity" => verbosity(&Words::new(words)),
        b"quit" => Line::Request(McRequest::Quit),
        b"slabs" => slabs(&Words::new(words)),
        b"cache_memlimit" => cache_memlimit(&Words::new(words)),
        b"shutdown" => Line::error("ERROR: shutdown not enabled"),
        b"watch" => Line::Request(McRequest::Watch(words)),
        b"refresh_certs" => Line::error("Error TLS not enabled"),
        _ => unknown(command, words),
    }
}

/// A browser that talks HTTP to this port is cut off, so that a page cannot make it send commands in the lines that follow.
fn unknown<'a>(command: &[u8], words: Tokens<'a>) -> Line<'a> {
    let known_initial = command.len() < 2
        || command
            .first()
            .is_some_and(|first| b"gsacidt".contains(first))
        || (command.len() == 2 && command[0] == b'm');
    let last = words.last().unwrap_or(command);
    if !known_initial && last.starts_with(b"HTTP/") {
        Line::close("")
    } else {
        Line::error(ERROR)
    }
}

/// The words behind a classic command: at most six mean anything, so more are only counted.
struct Words<'a> {
    words: [&'a [u8]; 6],
    count: usize,
    noreply: bool,
}

impl<'a> Words<'a> {
    #[inline]
    fn new(tokens: Tokens<'a>) -> Self {
        let mut words = [&[][..]; 6];
        let mut count = 0;
        let mut last = &[][..];
        for word in tokens.take(words.len() + 1) {
            if let Some(slot) = words.get_mut(count) {
                *slot = word;
            }
            count += 1;
            last = word;
        }
        Self {
            words,
            count,
            noreply: last == b"noreply",
        }
    }
}

fn get(verb: GetVerb, mut words: Tokens<'_>) -> Line<'_> {
    let mut exptime_s = 0;
    if verb.touches() {
        let Some(exptime) = words.next() else {
            return Line::error(ERROR);
        };
        match parse_i32(exptime) {
            Some(exptime) => exptime_s = exptime,
            None => return Line::error(BAD_EXPTIME),
        }
    }
    if !verb.touches() && words.is_empty() {
        return Line::error(ERROR);
    }
    // On a short line no key can be too long.
    if words.0.len() > KEY_BYTES_MAX && words.clone().any(|key| key.len() > KEY_BYTES_MAX) {
        return Line::error(BAD_FORMAT);
    }
    Line::Request(McRequest::Get(Get {
        verb,
        exptime_s,
        keys: words,
    }))
}

fn store<'a>(verb: StoreVerb, args: &Words<'a>, limits: &McLimits) -> Line<'a> {
    let needed = if verb == StoreVerb::Cas { 5 } else { 4 };
    if args.count != needed && args.count != needed + 1 {
        return Line::error(ERROR);
    }
    let [key, flags, exptime, len, cas, _] = args.words;
    let (Some(flags), Some(exptime_s), Some(len), true) = (
        parse_u32(flags),
        parse_i32(exptime),
        parse_i32(len).and_then(value_len),
        key.len() <= KEY_BYTES_MAX,
    ) else {
        return Line::quiet_error(BAD_FORMAT, args.noreply);
    };
    let cas = if verb == StoreVerb::Cas {
        match parse_u64(cas) {
            Some(cas) => cas,
            None => return Line::quiet_error(BAD_FORMAT, args.noreply),
        }
    } else {
        0
    };
    let reply = |text| if args.noreply { "" } else { text };
    if item_bytes(key.len(), flags, len) > limits.item_bytes {
        let unlink = (verb == StoreVerb::Set).then_some(McKey::Plain(key));
        return Line::refused(reply(TOO_LARGE), len + 2, unlink);
    }
    Line::Announced(Announced {
        request: WithData::Store(Store {
            verb,
            key,
            flags,
            exptime_s,
            cas,
            noreply: args.noreply,
            data: &[],
        }),
        bad_chunk: reply(BAD_CHUNK),
        len,
    })
}

/// A length that leaves room for the line end in 31 bits.
fn value_len(len: i32) -> Option<usize> {
    (len <= i32::MAX - 2)
        .then(|| usize::try_from(len).ok())
        .flatten()
}

/// What an item takes in memcached: header 48, key with a zero byte, flags unless 0, value with a line end, CAS number 8.
fn item_bytes(key_len: usize, flags: u32, value_len: usize) -> usize {
    let flags_len = if flags == 0 { 0 } else { 4 };
    48 + key_len + 1 + flags_len + value_len + 2 + 8
}

fn arithmetic<'a>(decrement: bool, args: &Words<'a>) -> Line<'a> {
    let noreply = args.noreply;
    let [key, delta, ..] = args.words;
    if args.count != 2 && args.count != 3 {
        Line::error(ERROR)
    } else if key.len() > KEY_BYTES_MAX {
        Line::quiet_error(BAD_FORMAT, noreply)
    } else if let Some(delta) = parse_u64(delta) {
        Line::Request(McRequest::Arithmetic(Arithmetic {
            decrement,
            key,
            delta,
            noreply,
        }))
    } else {
        Line::quiet_error("CLIENT_ERROR invalid numeric delta argument", noreply)
    }
}

fn touch<'a>(args: &Words<'a>) -> Line<'a> {
    let noreply = args.noreply;
    let [key, exptime, ..] = args.words;
    if args.count != 2 && args.count != 3 {
        Line::error(ERROR)
    } else if key.len() > KEY_BYTES_MAX {
        Line::quiet_error(BAD_FORMAT, noreply)
    } else if let Some(exptime_s) = parse_i32(exptime) {
        Line::Request(McRequest::Touch(Touch {
            key,
            exptime_s,
            noreply,
        }))
    } else {
        Line::quiet_error(BAD_EXPTIME, noreply)
    }
}

/// `delete <key> [0] [noreply]`: the 0 is what remains of a delay that old clients still send.
fn delete<'a>(args: &Words<'a>) -> Line<'a> {
    let [key, second, ..] = args.words;
    // With the key alone, `noreply` is a key.
    let noreply = args.noreply && args.count > 1;
    let valid = match args.count {
        1 => true,
        2 => second == b"0" || noreply,
        3 => second == b"0" && noreply,
        _ => return Line::error(ERROR),
    };
    if !valid {
        const USAGE: &str = "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]";
        Line::quiet_error(USAGE, noreply)
    } else if key.len() > KEY_BYTES_MAX {
        Line::quiet_error(BAD_FORMAT, noreply)
    } else {
        Line::Request(McRequest::Delete(Delete { key, noreply }))
    }
}

fn flush_all<'a>(args: &Words<'a>) -> Line<'a> {
    let noreply = args.noreply;
    if args.count > 2 {
        return Line::error(ERROR);
    }
    if args.count == usize::from(noreply) {
        return Line::Request(McRequest::FlushAll {
            delay_s: 0,
            noreply,
        });
    }
    match parse_i32(args.words[0]) {
        Some(delay_s) => Line::Request(McRequest::FlushAll { delay_s, noreply }),
        None => Line::quiet_error(BAD_EXPTIME, noreply),
    }
}

fn verbosity<'a>(args: &Words<'a>) -> Line<'a> {
    let noreply = args.noreply;
    if args.count != 1 && args.count != 2 {
        return Line::error(ERROR);
    }
    match parse_u32(args.words[0]) {
        Some(level) => Line::Request(McRequest::Verbosity { level, noreply }),
        None => Line::quiet_error(BAD_FORMAT, noreply),
    }
}

/// `slabs reassign|automove`: as a memcached answers whose pages are not moved between classes.
fn slabs<'a>(args: &Words<'a>) -> Line<'a> {
    const DISABLED: &str = "CLIENT_ERROR slab reassignment disabled";
    let [command, level, ..] = args.words;
    match (command, args.count) {
        (b"reassign", 3) => Line::error(DISABLED),
        (b"automove", 2..) => match parse_u32(level) {
            Some(0..=2) => Line::quiet_error(DISABLED, args.noreply),
            Some(_) => Line::quiet_error(ERROR, args.noreply),
            None => Line::quiet_error(BAD_FORMAT, args.noreply),
        },
        _ => Line::error(ERROR),
    }
}

fn cache_memlimit<'a>(args: &Words<'a>) -> Line<'a> {
    let noreply = args.noreply;
    if args.count != 1 && args.count != 2 {
        return Line::error(ERROR);
    }
    match parse_u32(args.words[0]) {
        None => Line::quiet_error(ERROR, noreply),
        Some(0..8) => Line::quiet_error(
            "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m",
            noreply,
        ),
        Some(limit_mib) if limit_mib > 1_000_000_000 => Line::quiet_error(
            "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes",
            noreply,
        ),
        Some(limit_mib) => Line::Request(McRequest::CacheMemlimit { limit_mib, noreply }),
    }
}

fn meta_command(verb: MetaVerb, mut words: Tokens<'_>) -> Line<'_> {
    let count = words.clone().count();
    let Some(key) = words.next() else {
        return Line::error(ERROR);
    };
    let meta = meta::check_line(verb, key, count + 1).and_then(|()| meta::parse(verb, key, words));
    match meta {
        Ok(meta) => Line::Request(McRequest::Meta(meta)),
        Err(reply) => Line::error(reply),
    }
}

fn meta_set<'a>(mut words: Tokens<'a>, limits: &McLimits) -> Line<'a> {
    let count = words.clone().count();
    let Some(key) = words.next() else {
        return Line::error(ERROR);
    };
    let len = match words.next() {
        Some(len) if key.len() <= KEY_BYTES_MAX => len,
        _ => return Line::error(BAD_FORMAT),
    };
    if let Err(reply) = meta::check_line(MetaVerb::Set, key, count + 1) {
        return Line::error(reply);
    }
    let Some(len) = parse_i32(len).and_then(value_len) else {
        return Line::error(BAD_FORMAT);
    };
    // From here on the length is known, so the data of a refused request can be skipped.
    let meta: Meta<'a> = match meta::parse(MetaVerb::Set, key, words) {
        Ok(meta) => meta,
        Err(reply) => return Line::refused(reply, len + 2, None),
    };
    if item_bytes(meta.key.as_bytes().len(), meta.flags.client_flags, len) > limits.item_bytes {
        return Line::refused(TOO_LARGE, len + 2, Some(meta.key));
    }
    Line::Announced(Announced {
        request: WithData::Meta(meta),
        bad_chunk: BAD_CHUNK,
        len,
    })
}

fn meta_debug(mut words: Tokens<'_>) -> Line<'_> {
    let key = match words.next() {
        Some(key) if key.len() <= KEY_BYTES_MAX => key,
        _ => return Line::error(BAD_FORMAT),
    };
    let key = if words.next() == Some(b"b") {
        match base64::decode(key) {
            Some(key) => McKey::Binary(key.into()),
            None => return Line::error(BAD_FORMAT),
        }
    } else {
        McKey::Plain(key)
    };
    Line::Request(McRequest::MetaDebug(key))
}
