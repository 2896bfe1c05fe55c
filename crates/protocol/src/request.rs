//! The RESP request parser: `*<n>\r\n` followed by n times `$<len>\r\n<bytes>\r\n`, or one line of text.
//!
//! A whole command takes one pass with no allocation. A command that arrives in pieces is never scanned twice: the parser keeps
//! its position, relative to the first byte of the command, so that the owner of the buffer may move the bytes
//! meanwhile. It must never hold memory in proportion to a length that a peer only announced.
//!
//! As in Redis, the byte after `\r` and the two bytes after a value are skipped without a look at them.

use std::ops::Range;

use crate::args::{OwnedArgs, Span};
use crate::error::ProtocolError;
use crate::inline::{Quoting, split_line};
use crate::numbers::parse_i64;

/// What a connection may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest line: an inline command, or the header of an array or of an argument.
    pub inline_bytes: usize,
    /// Most arguments per command.
    pub multibulk: i64,
    /// Longest argument (`proto-max-bulk-len`). A replica passes `u64::MAX` for its primary.
    pub bulk_bytes: u64,
    /// The connection has to authenticate first: at most 10 arguments of at most 16384 bytes.
    pub unauthenticated: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            inline_bytes: 64 * 1024,
            multibulk: i32::MAX as i64,
            bulk_bytes: 512 * 1024 * 1024,
            unauthenticated: false,
        }
    }
}

const UNAUTHENTICATED_MULTIBULK: i64 = 10;
const UNAUTHENTICATED_BULK_BYTES: u64 = 16384;
/// Above this many spans the room for half-received commands is given back after use.
const KEEP_SPANS: usize = 1024;

/// One step of [`Parser::next`].
#[derive(Debug)]
pub enum Parsed {
    /// A command. Its arguments are `spans[range]`, offsets into the buffer that was passed.
    Command {
        /// Which of the pushed spans belong to it.
        spans: Range<usize>,
    },
    /// An inline command with quotes, which had to be decoded. Rare: people type it.
    Decoded(Box<OwnedArgs>),
    /// An empty line or an empty array: nothing to do, nothing to answer.
    Empty,
    /// The bytes end within a command (or before one).
    NeedMore,
    /// The stream is broken: answer with this, then close. The parser must not be asked again.
    Error(ProtocolError),
}

/// The state between two pieces of one command. Default: between commands.
#[derive(Debug, Default)]
pub struct Parser {
    /// Arguments still to come; 0 between commands and within a line.
    remaining: u32,
    /// Offset, from the first byte of the command, up to which it is parsed; within a line, up to which it was searched.
    offset: usize,
    /// Length of the argument whose header was read.
    bulk_len: Option<u64>,
    /// Arguments that are complete, relative to the first byte of the command.
    done: Vec<Span>,
    /// Bytes known to be missing.
    missing: usize,
}

/// What became of a header line.
enum Header {
    /// The number, and the offset behind the line.
    Value(Option<i64>, usize),
    Incomplete,
    TooLong,
}

impl Parser {
    /// A parser at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses the next command from `buf[*at..]`. When it is whole, its spans are appended to `spans` and `*at` moves behind it;
    /// otherwise `*at` stays at its first byte, and the caller keeps `buf[*at..]`, appends what arrives and calls again. Between two
    /// calls the buffer may be moved, as long as `*at` points to the same byte.
    #[inline]
    pub fn next(
        &mut self,
        buf: &[u8],
        at: &mut usize,
        spans: &mut Vec<Span>,
        limits: &Limits,
    ) -> Parsed {
        if self.remaining != 0 {
            return self.resume(buf, at, spans, limits);
        }
        match buf.get(*at) {
            None => Parsed::NeedMore,
            Some(b'*') => {
                if let Some(parsed) = whole_command(buf, at, spans, limits) {
                    return parsed;
                }
                self.begin_array(buf, at, spans, limits)
            }
            Some(_) => self.line(buf, at, spans, limits),
        }
    }

    /// How many more bytes are known to be missing, so that the buffer can be enlarged once. `None` when that is unknown
    /// or nothing is pending. Announced by the peer, so cap it before trusting it with memory.
    pub fn needs(&self) -> Option<usize> {
        (self.missing != 0).then_some(self.missing)
    }

    /// Whether a command is half received.
    pub fn in_command(&self) -> bool {
        self.remaining != 0 || self.offset != 0
    }

    /// Bytes of memory that the parser holds.
    pub fn allocated_bytes(&self) -> usize {
        self.done.capacity() * size_of::<Span>()
    }

    /// The careful way for the array header: for what [`whole_command`] leaves undone.
    #[cold]
    fn begin_array(
        &mut self,
        buf: &[u8],
        at: &mut usize,
        spans: &mut Vec<Span>,
        limits: &Limits,
    ) -> Parsed {
        let (count, offset) = match header(&buf[*at..], 0, limits) {
            Header::Value(count, offset) => (count, offset),
            Header::Incomplete => return Parsed::NeedMore,
            Header::TooLong => return Parsed::Error(ProtocolError::TooBigMultibulkCount),
        };
        let most = limits.multibulk.min(i64::from(i32::MAX));
        let Some(count) = count.filter(|&count| count <= most) else {
            return Parsed::Error(ProtocolError::InvalidMultibulkLength);
        };
        if limits.unauthenticated && count > UNAUTHENTICATED_MULTIBULK {
            return Parsed::Error(ProtocolError::UnauthenticatedMultibulk);
        }
        let Some(count) = u32::try_from(count).ok().filter(|&count| count > 0) else {
            *at += offset;
            return Parsed::Empty;
        };
        self.remaining = count;
        self.offset = offset;
        self.resume(buf, at, spans, limits)
    }

    /// Goes on with an array where the last call stopped.
    fn resume(
        &mut self,
        buf: &[u8],
        at: &mut usize,
        spans: &mut Vec<Span>,
        limits: &Limits,
    ) -> Parsed {
        let bytes = &buf[*at..];
        self.missing = 0;
        while self.remaining != 0 {
            let len = match self.bulk_len {
                Some(len) => len,
                None => match self.bulk_header(bytes, limits) {
                    Ok(Some(len)) => len,
                    Ok(None) => return Parsed::NeedMore,
                    Err(error) => return Parsed::Error(error),
                },
            };
            let Some(end) = usize::try_from(len)
                .ok()
                .and_then(|len| self.offset.checked_add(len)?.checked_add(2))
                .filter(|&end| u32::try_from(end).is_ok())
            else {
                return Parsed::Error(ProtocolError::TooBigQuery);
            };
            if end > bytes.len() {
                self.missing = end - bytes.len();
                return Parsed::NeedMore;
            }
            // Both fit: `end` does.
            self.done.push(Span {
                start: self.offset as u32,
                len: len as u32,
            });
            self.offset = end;
            self.bulk_len = None;
            self.remaining -= 1;
        }
        self.finish(at, spans)
    }

    fn bulk_header(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<u64>, ProtocolError> {
        let (len, offset) = match header(bytes, self.offset, limits) {
            Header::Value(len, offset) => (len, offset),
            Header::Incomplete => return Ok(None),
            Header::TooLong => return Err(ProtocolError::TooBigBulkCount),
        };
        if bytes[self.offset] != b'$' {
            return Err(ProtocolError::ExpectedDollar(bytes[self.offset]));
        }
        let len = len
            .and_then(|len| u64::try_from(len).ok())
            .filter(|&len| len <= limits.bulk_bytes)
            .ok_or(ProtocolError::InvalidBulkLength)?;
        if limits.unauthenticated && len > UNAUTHENTICATED_BULK_BYTES {
            return Err(ProtocolError::UnauthenticatedBulk);
        }
        self.offset = offset;
        self.bulk_len = Some(len);
        Ok(Some(len))
    }

    /// Hands the collected spans over, now that the place of the command is settled.
    fn finish(&mut self, at: &mut usize, spans: &mut Vec<Span>) -> Parsed {
        let Some(base) = u32::try_from(*at + self.offset).ok().map(|_| *at as u32) else {
            return Parsed::Error(ProtocolError::TooBigQuery);
        };
        let first = spans.len();
        spans.extend(self.done.iter().map(|span| Span {
            start: base + span.start,
            len: span.len,
        }));
        *at += self.offset;
        self.offset = 0;
        self.done.clear();
        if self.done.capacity() > KEEP_SPANS {
            self.done = Vec::new();
        }
        Parsed::Command {
            spans: first..spans.len(),
        }
    }

    /// An inline command.
    #[cold]
    fn line(
        &mut self,
        buf: &[u8],
        at: &mut usize,
        spans: &mut Vec<Span>,
        limits: &Limits,
    ) -> Parsed {
        let bytes = &buf[*at..];
        let searched = self.offset.min(bytes.len());
        let Some(newline) = memchr::memchr(b'\n', &bytes[searched..]).map(|i| searched + i) else {
            if bytes.len() > limits.inline_bytes {
                return Parsed::Error(ProtocolError::TooBigInline);
            }
            self.offset = bytes.len();
            return Parsed::NeedMore;
        };
        if newline > limits.inline_bytes {
            return Parsed::Error(ProtocolError::TooBigInline);
        }
        self.offset = 0;
        let line = bytes[..newline]
            .strip_suffix(b"\r")
            .unwrap_or(&bytes[..newline]);
        let Some(base) = u32::try_from(*at + newline).ok().map(|_| *at as u32) else {
            return Parsed::Error(ProtocolError::TooBigQuery);
        };
        let first = spans.len();
        let parsed = match split_line(line, spans) {
            Quoting::Unbalanced => return Parsed::Error(ProtocolError::UnbalancedQuotes),
            Quoting::Decoded(args) => Parsed::Decoded(args),
            Quoting::Plain if spans.len() == first => Parsed::Empty,
            Quoting::Plain => {
                for span in &mut spans[first..] {
                    span.start += base;
                }
                Parsed::Command {
                    spans: first..spans.len(),
                }
            }
        };
        *at += newline + 1;
        parsed
    }
}

/// The straight way: a command that is whole, well formed and within the limits. `None`, with nothing changed, for all else.
#[inline]
fn whole_command(
    buf: &[u8],
    at: &mut usize,
    spans: &mut Vec<Span>,
    limits: &Limits,
) -> Option<Parsed> {
    if limits.unauthenticated || buf.len() > u32::MAX as usize {
        return None;
    }
    let (count, mut pos) = short_number(buf, *at + 1)?;
    if count == 0 || i64::from(count) > limits.multibulk {
        return None;
    }
    let first = spans.len();
    for _ in 0..count {
        let argument = if buf.get(pos) == Some(&b'$') {
            short_number(buf, pos + 1).filter(|&(len, start)| {
                buf.len() - start >= len as usize + 2 && u64::from(len) <= limits.bulk_bytes
            })
        } else {
            None
        };
        let Some((len, start)) = argument else {
            spans.truncate(first);
            return None;
        };
        // The whole buffer is at most 4 GiB, so its offsets fit.
        spans.push(Span {
            start: start as u32,
            len,
        });
        pos = start + len as usize + 2;
    }
    *at = pos;
    Some(Parsed::Command {
        spans: first..spans.len(),
    })
}

/// A canonical number below 10^8 at `buf[pos..]` and its line end: the number and the offset behind, which is at most `buf.len()`.
#[inline]
fn short_number(buf: &[u8], pos: usize) -> Option<(u32, usize)> {
    let bytes = buf.get(pos..)?;
    // Nearly all numbers on the wire have one or two digits.
    if let [ones, b'\r', _, ..] = bytes {
        let value = ones.wrapping_sub(b'0');
        return (value < 10).then_some((u32::from(value), pos + 3));
    }
    let mut value = 0;
    for (i, &byte) in bytes.iter().take(9).enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            if digit == 0 && value == 0 {
                return None;
            }
            value = value * 10 + u32::from(digit);
        } else {
            let whole = byte == b'\r' && i > 0 && i + 1 < bytes.len();
            return whole.then_some((value, pos + i + 2));
        }
    }
    None
}

/// Reads the line at `bytes[offset..]`: a type byte (not looked at), a number, and the line end.
fn header(bytes: &[u8], offset: usize, limits: &Limits) -> Header {
    let line = &bytes[offset..];
    let window = &line[..line.len().min(limits.inline_bytes.saturating_add(1))];
    let Some(end) = memchr::memchr(b'\r', window) else {
        return if line.len() > limits.inline_bytes {
            Header::TooLong
        } else {
            Header::Incomplete
        };
    };
    if end + 2 > line.len() {
        return Header::Incomplete;
    }
    let number = line.get(1..end).and_then(parse_i64);
    Header::Value(number, offset + end + 2)
}
