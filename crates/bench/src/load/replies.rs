//! Counts replies in a byte stream without keeping them: values are skipped, not copied. Takes bytes, does no I/O.

use super::encode::Protocol;

/// A reply line longer than this is no reply that a server of ours gives.
pub const LINE_BYTES_MAX: usize = 4096;

/// What a stream of replies amounted to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Whole replies.
    pub replies: u64,
    /// Values found.
    pub hits: u64,
    /// Bytes of the values found.
    pub value_bytes: u64,
    /// Error replies.
    pub errors: u64,
    /// The text of the first error reply.
    pub first_error: Option<String>,
}

impl Tally {
    /// Adds what another stream amounted to.
    pub fn add(&mut self, other: &Self) {
        self.replies += other.replies;
        self.hits += other.hits;
        self.value_bytes += other.value_bytes;
        self.errors += other.errors;
        if self.first_error.is_none() {
            self.first_error.clone_from(&other.first_error);
        }
    }
}

/// Where one connection's reply stream stands between two reads.
#[derive(Debug, Clone)]
pub struct ReplyParser {
    protocol: Protocol,
    /// Bytes of a value (with its line end) that are still to be skipped.
    skip_bytes: u64,
    /// Elements of the RESP reply under way that are still to come.
    elements: u64,
}

impl ReplyParser {
    /// A parser at the start of a stream.
    pub fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            skip_bytes: 0,
            elements: 1,
        }
    }

    /// Reads what `bytes` holds and returns how many were used; the rest is the start of a line and must come again
    /// with its continuation.
    ///
    /// # Errors
    /// Describes bytes that are no reply.
    pub fn feed(&mut self, bytes: &[u8], tally: &mut Tally) -> Result<usize, String> {
        let mut used = 0;
        loop {
            if self.skip_bytes > 0 {
                let step = self.skip_bytes.min((bytes.len() - used) as u64);
                used += step as usize;
                self.skip_bytes -= step;
                if self.skip_bytes > 0 {
                    return Ok(used);
                }
                if self.protocol == Protocol::Resp {
                    self.element_done(tally);
                }
            }
            let rest = &bytes[used..];
            let Some(end) = line_end(rest) else {
                if rest.len() > LINE_BYTES_MAX {
                    return Err(format!(
                        "expected a reply line of at most {LINE_BYTES_MAX} bytes, got a longer one"
                    ));
                }
                return Ok(used);
            };
            let line = &rest[..end];
            used += end + 2;
            match self.protocol {
                Protocol::Resp => self.resp_line(line, tally)?,
                Protocol::Memcached => self.memcached_line(line, tally)?,
            }
        }
    }

    fn resp_line(&mut self, line: &[u8], tally: &mut Tally) -> Result<(), String> {
        match line.first() {
            Some(b'$') => match number(&line[1..]) {
                Some(-1) => self.element_done(tally),
                Some(len) if len >= 0 => {
                    tally.hits += 1;
                    tally.value_bytes += len as u64;
                    self.skip_bytes = len as u64 + 2;
                }
                _ => return Err(unexpected(line)),
            },
            Some(b'+' | b':') => self.element_done(tally),
            Some(b'-') => {
                note_error(tally, &line[1..]);
                self.element_done(tally);
            }
            Some(b'*') => match number(&line[1..]) {
                Some(count) if count > 0 => self.elements += count as u64 - 1,
                Some(_) => self.element_done(tally),
                None => return Err(unexpected(line)),
            },
            _ => return Err(unexpected(line)),
        }
        Ok(())
    }

    fn element_done(&mut self, tally: &mut Tally) {
        self.elements -= 1;
        if self.elements == 0 {
            self.elements = 1;
            tally.replies += 1;
        }
    }

    fn memcached_line(&mut self, line: &[u8], tally: &mut Tally) -> Result<(), String> {
        if line.starts_with(b"VALUE ") {
            // VALUE <key> <flags> <bytes>
            let len = line.split(|b| *b == b' ').nth(3).and_then(number);
            let Some(len) = len.filter(|len| *len >= 0) else {
                return Err(unexpected(line));
            };
            tally.hits += 1;
            tally.value_bytes += len as u64;
            self.skip_bytes = len as u64 + 2;
            return Ok(());
        }
        match line {
            b"END" | b"STORED" | b"DELETED" | b"NOT_FOUND" => {}
            b"NOT_STORED" | b"EXISTS" | b"ERROR" => note_error(tally, line),
            _ if line.starts_with(b"CLIENT_ERROR") || line.starts_with(b"SERVER_ERROR") => {
                note_error(tally, line);
            }
            _ => return Err(unexpected(line)),
        }
        tally.replies += 1;
        Ok(())
    }
}

fn note_error(tally: &mut Tally, text: &[u8]) {
    tally.errors += 1;
    if tally.first_error.is_none() {
        tally.first_error = Some(String::from_utf8_lossy(text).into_owned());
    }
}

fn unexpected(line: &[u8]) -> String {
    format!(
        "expected a reply, got {:?}",
        String::from_utf8_lossy(&line[..line.len().min(80)])
    )
}

/// Where the first CR LF stands.
fn line_end(bytes: &[u8]) -> Option<usize> {
    // Reply lines are a few bytes long, so a plain loop is the quickest search.
    let mut from = 0;
    loop {
        let at = from + bytes[from..].iter().position(|b| *b == b'\r')?;
        match bytes.get(at + 1) {
            Some(b'\n') => return Some(at),
            Some(_) => from = at + 1,
            None => return None,
        }
    }
}

fn number(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0i64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `stream` cut into pieces of `piece` bytes, as a socket might.
    fn run(protocol: Protocol, stream: &[u8], piece: usize) -> Tally {
        let mut parser = ReplyParser::new(protocol);
        let mut tally = Tally::default();
        let mut carry: Vec<u8> = Vec::new();
        for chunk in stream.chunks(piece) {
            carry.extend_from_slice(chunk);
            let used = parser.feed(&carry, &mut tally).unwrap();
            carry.drain(..used);
        }
        assert!(carry.is_empty());
        tally
    }

    #[test]
    fn resp_replies_are_counted_wherever_the_stream_is_cut() {
        let stream = b"$5\r\nhe\r\no\r\n+OK\r\n$-1\r\n*3\r\n$1\r\na\r\n$-1\r\n$2\r\n\r\n\r\n:7\r\n*0\r\n*-1\r\n-ERR no\r\n*2\r\n*1\r\n:1\r\n*2\r\n:2\r\n:3\r\n$0\r\n\r\n";
        for piece in 1..=stream.len() {
            let tally = run(Protocol::Resp, stream, piece);
            assert_eq!(tally.replies, 10, "pieces of {piece}");
            assert_eq!(tally.hits, 4);
            assert_eq!(tally.value_bytes, 8);
            assert_eq!(tally.errors, 1);
            assert_eq!(tally.first_error.as_deref(), Some("ERR no"));
        }
    }

    #[test]
    fn memcached_replies_are_counted_wherever_the_stream_is_cut() {
        let stream = b"VALUE key:1 0 5\r\nE\r\nND\r\nEND\r\nEND\r\nSTORED\r\nVALUE a 0 1\r\nx\r\nVALUE b 0 2\r\nyy\r\nEND\r\nSERVER_ERROR out of memory storing object\r\n";
        for piece in 1..=stream.len() {
            let tally = run(Protocol::Memcached, stream, piece);
            assert_eq!(tally.replies, 5, "pieces of {piece}");
            assert_eq!(tally.hits, 3);
            assert_eq!(tally.value_bytes, 8);
            assert_eq!(tally.errors, 1);
        }
    }

    #[test]
    fn bytes_that_are_no_reply_are_an_error() {
        let mut tally = Tally::default();
        for bytes in [
            b"hello\r\n".as_slice(),
            b"$x\r\n",
            b"\r\n",
            b"$-2\r\n",
            b"$99999999999999999999\r\n",
        ] {
            assert!(
                ReplyParser::new(Protocol::Resp)
                    .feed(bytes, &mut tally)
                    .is_err()
            );
        }
        assert!(
            ReplyParser::new(Protocol::Memcached)
                .feed(b"VALUE a\r\n", &mut tally)
                .is_err()
        );
        let long = vec![b'a'; LINE_BYTES_MAX + 1];
        assert!(
            ReplyParser::new(Protocol::Resp)
                .feed(&long, &mut tally)
                .is_err()
        );
    }
}
