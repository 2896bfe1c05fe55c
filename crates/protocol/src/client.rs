//! Reading replies: the client's side of RESP2 and RESP3, for tests, the benchmark and tools.
//!
//! A reply may come from a server that is broken or hostile, so depth and sizes are bounded, and memory is taken only for
//! what arrived.

use std::fmt;

use crate::numbers::{parse_f64, parse_i64};

/// One reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `+`: a status.
    Simple(Vec<u8>),
    /// `-` or `!`: an error, code and text.
    Error(Vec<u8>),
    /// `:`: an integer.
    Integer(i64),
    /// `$`: a string.
    Bulk(Vec<u8>),
    /// `$-1`, `*-1` or `_`.
    Null,
    /// `*`: an array.
    Array(Vec<Value>),
    /// `#`: a truth value.
    Boolean(bool),
    /// `,`: a double.
    Double(f64),
    /// `(`: an integer of any size, as text.
    BigNumber(Vec<u8>),
    /// `=`: text with a three-letter format.
    Verbatim {
        /// The format, such as `txt`.
        format: [u8; 3],
        /// The text.
        text: Vec<u8>,
    },
    /// `%`: a map, in the order of arrival.
    Map(Vec<(Value, Value)>),
    /// `~`: a set, in the order of arrival.
    Set(Vec<Value>),
    /// `>`: a message that answers no request.
    Push(Vec<Value>),
    /// `|`: attributes, and the reply that they describe.
    Attributed {
        /// The attributes.
        attributes: Vec<(Value, Value)>,
        /// The reply.
        value: Box<Value>,
    },
}

/// Bytes that are no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyError {
    /// A reply that begins with this byte.
    UnknownType(u8),
    /// A length, number or truth value that is none.
    BadNumber(u8),
    /// A line, string or aggregate beyond its limit.
    TooLong,
    /// Aggregates nested deeper than the limit.
    TooDeep,
    /// A string that is not followed by a line end.
    MissingLineEnd,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownType(byte) => write!(
                f,
                "expected a reply, got the byte '{}'",
                byte.escape_ascii()
            ),
            Self::BadNumber(kind) => {
                write!(f, "not a number in a '{}' reply", kind.escape_ascii())
            }
            Self::TooLong => f.write_str("a reply beyond the size limit"),
            Self::TooDeep => f.write_str("a reply nested too deeply"),
            Self::MissingLineEnd => f.write_str("a string that does not end where it said"),
        }
    }
}

impl std::error::Error for ReplyError {}

const DEPTH_LIMIT: usize = 64;
const LINE_LIMIT_BYTES: usize = 1 << 20;
const BULK_LIMIT_BYTES: i64 = 1 << 32;
/// Elements for which room is made before they arrive.
const TRUSTED_ELEMENTS: usize = 1024;

/// An aggregate whose elements are still arriving.
#[derive(Debug)]
struct Frame {
    kind: u8,
    missing: u64,
    items: Vec<Value>,
}

/// Reads replies from a stream that arrives in pieces. No byte is parsed twice, however a large reply is cut.
#[derive(Debug, Default)]
pub struct ReplyReader {
    frames: Vec<Frame>,
    failed: Option<ReplyError>,
}

/// One element, or the beginning of an aggregate.
enum Token {
    Value(Value),
    Open { kind: u8, elements: u64 },
}

impl ReplyReader {
    /// A reader at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads from `buf[*at..]` and moves `*at` behind what was understood, which may be part of a reply: the caller keeps `buf[*at..]`
    /// only. `None` means that more bytes are needed.
    ///
    /// # Errors
    /// When the bytes are no reply. The reader then stays in this state.
    pub fn next(&mut self, buf: &[u8], at: &mut usize) -> Result<Option<Value>, ReplyError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let read = self.read(buf, at);
        if let Err(error) = read {
            self.failed = Some(error);
            self.frames = Vec::new();
        }
        read
    }

    /// Whether part of a reply was read.
    pub fn in_reply(&self) -> bool {
        !self.frames.is_empty()
    }

    fn read(&mut self, buf: &[u8], at: &mut usize) -> Result<Option<Value>, ReplyError> {
        while let Some((token, used)) = token(buf.get(*at..).unwrap_or_default())? {
            *at += used;
            let mut value = match token {
                Token::Value(value) => value,
                Token::Open { kind, elements } => {
                    if self.frames.len() >= DEPTH_LIMIT {
                        return Err(ReplyError::TooDeep);
                    }
                    let room = usize::try_from(elements).unwrap_or(usize::MAX);
                    self.frames.push(Frame {
                        kind,
                        missing: elements,
                        items: Vec::with_capacity(room.min(TRUSTED_ELEMENTS)),
                    });
                    match self.close_empty() {
                        Some(value) => value,
                        None => continue,
                    }
                }
            };
            loop {
                let Some(frame) = self.frames.last_mut() else {
                    return Ok(Some(value));
                };
                frame.items.push(value);
                frame.missing -= 1;
                if frame.missing != 0 {
                    break;
                }
                let frame = self.frames.pop().expect("the frame was there just now");
                value = assemble(frame);
            }
        }
        Ok(None)
    }

    fn close_empty(&mut self) -> Option<Value> {
        let frame = self.frames.pop_if(|frame| frame.missing == 0)?;
        Some(assemble(frame))
    }
}

/// Reads exactly one whole reply from the beginning of `buf`, and how many bytes it took.
///
/// # Errors
/// When the bytes are no reply.
pub fn parse_reply(buf: &[u8]) -> Result<Option<(Value, usize)>, ReplyError> {
    let mut at = 0;
    Ok(ReplyReader::new()
        .next(buf, &mut at)?
        .map(|value| (value, at)))
}

fn assemble(frame: Frame) -> Value {
    match frame.kind {
        b'~' => Value::Set(frame.items),
        b'>' => Value::Push(frame.items),
        b'%' => Value::Map(pairs(frame.items)),
        b'|' => {
            let mut items = frame.items;
            let value = items.pop().expect("attributes precede a reply");
            Value::Attributed {
                attributes: pairs(items),
                value: Box::new(value),
            }
        }
        _ => Value::Array(frame.items),
    }
}

fn pairs(items: Vec<Value>) -> Vec<(Value, Value)> {
    let mut pairs = Vec::with_capacity(items.len() / 2);
    let mut items = items.into_iter();
    while let (Some(key), Some(value)) = (items.next(), items.next()) {
        pairs.push((key, value));
    }
    pairs
}

fn token(bytes: &[u8]) -> Result<Option<(Token, usize)>, ReplyError> {
    let Some(&kind) = bytes.first() else {
        return Ok(None);
    };
    if !b"+-:$*_#,(!=%~>|".contains(&kind) {
        return Err(ReplyError::UnknownType(kind));
    }
    let window = &bytes[..bytes.len().min(LINE_LIMIT_BYTES)];
    let Some(newline) = memchr::memchr(b'\n', window) else {
        return if bytes.len() >= LINE_LIMIT_BYTES {
            Err(ReplyError::TooLong)
        } else {
            Ok(None)
        };
    };
    let line = bytes[1..newline]
        .strip_suffix(b"\r")
        .unwrap_or(&bytes[1..newline]);
    let after = newline + 1;
    let bad = ReplyError::BadNumber(kind);
    let number = || parse_i64(line).ok_or(bad);
    let value = match kind {
        b'+' => Value::Simple(line.to_vec()),
        b'-' => Value::Error(line.to_vec()),
        b':' => Value::Integer(number()?),
        b'_' => Value::Null,
        b'(' => Value::BigNumber(line.to_vec()),
        b'#' => Value::Boolean(match line {
            b"t" => true,
            b"f" => false,
            _ => return Err(bad),
        }),
        b',' if line.eq_ignore_ascii_case(b"nan") || line.eq_ignore_ascii_case(b"-nan") => {
            Value::Double(f64::NAN)
        }
        b',' => Value::Double(parse_f64(line).ok_or(bad)?),
        b'$' | b'!' | b'=' => return bulk(kind, number()?, bytes, after),
        _ => match number()? {
            -1 => Value::Null,
            n => {
                let n = u64::try_from(n).map_err(|_| bad)?;
                let elements = match kind {
                    b'%' => n.checked_mul(2),
                    b'|' => n.checked_mul(2).and_then(|n| n.checked_add(1)),
                    _ => Some(n),
                };
                let elements = elements.ok_or(ReplyError::TooLong)?;
                return Ok(Some((Token::Open { kind, elements }, after)));
            }
        },
    };
    Ok(Some((Token::Value(value), after)))
}

fn bulk(
    kind: u8,
    len: i64,
    bytes: &[u8],
    start: usize,
) -> Result<Option<(Token, usize)>, ReplyError> {
    if len == -1 && kind == b'$' {
        return Ok(Some((Token::Value(Value::Null), start)));
    }
    if len > BULK_LIMIT_BYTES {
        return Err(ReplyError::TooLong);
    }
    let len = usize::try_from(len).map_err(|_| ReplyError::BadNumber(kind))?;
    let end = start + len;
    let Some(body) = bytes.get(start..end + 2) else {
        return Ok(None);
    };
    let Some(body) = body.strip_suffix(b"\r\n") else {
        return Err(ReplyError::MissingLineEnd);
    };
    let value = match (kind, body) {
        (b'$', _) => Value::Bulk(body.to_vec()),
        (b'!', _) => Value::Error(body.to_vec()),
        (_, [a, b, c, b':', text @ ..]) => Value::Verbatim {
            format: [*a, *b, *c],
            text: text.to_vec(),
        },
        _ => return Err(ReplyError::BadNumber(kind)),
    };
    Ok(Some((Token::Value(value), end + 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(bytes: &[u8]) -> Value {
        let (value, used) = parse_reply(bytes).expect("a reply").expect("whole");
        assert_eq!(used, bytes.len());
        value
    }

    #[test]
    fn every_type_is_read() {
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        assert_eq!(one(b"+OK\r\n"), Value::Simple(b"OK".to_vec()));
        assert_eq!(one(b"-ERR x\r\n"), Value::Error(b"ERR x".to_vec()));
        assert_eq!(one(b"!5\r\nERR x\r\n"), Value::Error(b"ERR x".to_vec()));
        assert_eq!(one(b":-7\r\n"), Value::Integer(-7));
        assert_eq!(one(b"$3\r\na\r\n\r\n"), bulk("a\r\n"));
        for null in [&b"$-1\r\n"[..], b"*-1\r\n", b"_\r\n"] {
            assert_eq!(one(null), Value::Null);
        }
        assert_eq!(one(b"#t\r\n"), Value::Boolean(true));
        assert_eq!(one(b",-inf\r\n"), Value::Double(f64::NEG_INFINITY));
        assert!(matches!(one(b",nan\r\n"), Value::Double(d) if d.is_nan()));
        assert_eq!(one(b"(123\r\n"), Value::BigNumber(b"123".to_vec()));
        assert_eq!(
            one(b"=5\r\ntxt:a\r\n"),
            Value::Verbatim {
                format: *b"txt",
                text: b"a".to_vec()
            }
        );
        assert_eq!(
            one(b"*3\r\n*0\r\n%1\r\n$1\r\nk\r\n~1\r\n:1\r\n>1\r\n:2\r\n"),
            Value::Array(vec![
                Value::Array(vec![]),
                Value::Map(vec![(bulk("k"), Value::Set(vec![Value::Integer(1)]))]),
                Value::Push(vec![Value::Integer(2)]),
            ])
        );
        assert_eq!(
            one(b"|1\r\n+a\r\n:1\r\n$1\r\nv\r\n"),
            Value::Attributed {
                attributes: vec![(Value::Simple(b"a".to_vec()), Value::Integer(1))],
                value: Box::new(bulk("v")),
            }
        );
    }

    #[test]
    fn broken_replies_are_refused_and_stay_refused() {
        let table: &[(&[u8], ReplyError)] = &[
            (b"x", ReplyError::UnknownType(b'x')),
            (b"\n", ReplyError::UnknownType(b'\n')),
            (b":x\r\n", ReplyError::BadNumber(b':')),
            (b"$-2\r\n", ReplyError::BadNumber(b'$')),
            (b"*-2\r\n", ReplyError::BadNumber(b'*')),
            (b"#x\r\n", ReplyError::BadNumber(b'#')),
            (b"=1\r\nx\r\n", ReplyError::BadNumber(b'=')),
            (b"$1\r\nabc", ReplyError::MissingLineEnd),
            (b"$4294967297\r\n", ReplyError::TooLong),
            (b"%9223372036854775807\r\n", ReplyError::BadNumber(b'x')),
        ];
        for &(bytes, want) in &table[..table.len() - 1] {
            let mut reader = ReplyReader::new();
            assert_eq!(
                reader.next(bytes, &mut 0),
                Err(want),
                "{}",
                bytes.escape_ascii()
            );
            assert_eq!(reader.next(b"+OK\r\n", &mut 0), Err(want));
        }
        // A length that only claims much takes no memory.
        assert_eq!(parse_reply(table[table.len() - 1].0), Ok(None));
        assert_eq!(parse_reply(&b"*1\r\n".repeat(65)), Err(ReplyError::TooDeep));
        assert_eq!(
            parse_reply(&vec![b'+'; LINE_LIMIT_BYTES]),
            Err(ReplyError::TooLong)
        );
    }
}
