//! A RESP2/RESP3 client of the suites' own: it keeps every type marker of a reply, so that two replies are equal only if their bytes are.
//! It must never be lenient: a reply that the protocol does not allow is an error.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::quote::escape;

/// One reply, with its type marker. Doubles and big numbers keep their text, since the text is what is compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value {
    /// `+OK`
    Simple(Vec<u8>),
    /// `-ERR ...`
    Error(Vec<u8>),
    /// `:1`
    Int(i64),
    /// `$3`
    Bulk(Vec<u8>),
    /// `$-1`
    NullBulk,
    /// `*-1`
    NullArray,
    /// `_`
    Null,
    /// `#t`
    Bool(bool),
    /// `,1.5`
    Double(Vec<u8>),
    /// `(123`
    BigNumber(Vec<u8>),
    /// `=15`: three letters, a colon, the text
    Verbatim(Vec<u8>),
    /// `!21`
    BlobError(Vec<u8>),
    /// `*2`
    Array(Vec<Value>),
    /// `%1`
    Map(Vec<(Value, Value)>),
    /// `~2`
    Set(Vec<Value>),
    /// `>2`
    Push(Vec<Value>),
}

impl Value {
    /// The bytes of a string-like reply.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Simple(b)
            | Self::Error(b)
            | Self::Bulk(b)
            | Self::Double(b)
            | Self::BigNumber(b)
            | Self::BlobError(b) => Some(b),
            Self::Verbatim(b) => b.get(4..),
            _ => None,
        }
    }

    /// The bytes as text, replaced where they are not UTF-8; empty for replies without bytes.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes().unwrap_or_default()).into_owned()
    }

    /// The number of an integer reply.
    pub fn int(&self) -> Option<i64> {
        if let Self::Int(n) = self {
            Some(*n)
        } else {
            None
        }
    }

    /// The elements of an array, set or push.
    pub fn items(&self) -> Option<&[Value]> {
        match self {
            Self::Array(v) | Self::Set(v) | Self::Push(v) => Some(v),
            _ => None,
        }
    }

    /// True for the null of either protocol version.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::NullBulk | Self::NullArray | Self::Null)
    }

    /// True for an error reply.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error(_) | Self::BlobError(_))
    }

    /// One line that shows type and content.
    pub fn show(&self) -> String {
        let list = |mark: &str, items: &[Value]| {
            let inner: Vec<String> = items.iter().map(Value::show).collect();
            format!("{mark}[{}]", inner.join(", "))
        };
        match self {
            Self::Simple(b) => format!("+{}", escape(b)),
            Self::Error(b) => format!("-{}", escape(b)),
            Self::Int(n) => format!(":{n}"),
            Self::Bulk(b) => format!("\"{}\"", escape(b)),
            Self::NullBulk => "$-1".into(),
            Self::NullArray => "*-1".into(),
            Self::Null => "_".into(),
            Self::Bool(b) => format!("#{b}"),
            Self::Double(b) => format!(",{}", escape(b)),
            Self::BigNumber(b) => format!("({}", escape(b)),
            Self::Verbatim(b) => format!("=\"{}\"", escape(b)),
            Self::BlobError(b) => format!("!{}", escape(b)),
            Self::Array(v) => list("*", v),
            Self::Set(v) => list("~", v),
            Self::Push(v) => list(">", v),
            Self::Map(v) => {
                let inner: Vec<String> = v
                    .iter()
                    .map(|(k, v)| format!("{} => {}", k.show(), v.show()))
                    .collect();
                format!("%[{}]", inner.join(", "))
            }
        }
    }
}

/// How deep a reply may nest before it is taken for an error.
const DEPTH_MAX: usize = 32;

/// One connection, read and written in order. Every read has a time limit.
#[derive(Debug)]
pub struct Conn {
    stream: TcpStream,
    buffer: Vec<u8>,
    at: usize,
}

impl Conn {
    /// Connects to a port of this machine; reads give up after `timeout`.
    pub fn open(port: u16, timeout: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
            at: 0,
        })
    }

    /// Sends one command.
    pub fn send<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<()> {
        self.stream.write_all(&encode(args))
    }

    /// Sends raw bytes.
    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends one command and reads its reply.
    pub fn call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<Value> {
        self.send(args)?;
        self.read()
    }

    /// Sends one command given as words separated by spaces; for tests.
    pub fn cmd(&mut self, line: &str) -> Value {
        let args = crate::quote::split(line).expect("a test's own command line is well formed");
        self.call(&args)
            .unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    /// Reads one reply.
    pub fn read(&mut self) -> io::Result<Value> {
        self.value(0)
    }

    /// Reads until the other side closes; the bytes that came before. For tests of closed connections.
    pub fn read_to_close(&mut self) -> io::Result<Vec<u8>> {
        let mut rest = self.buffer.split_off(self.at);
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => Ok(rest),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(rest),
            Err(error) => Err(error),
        }
    }

    /// The socket itself.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Bytes that were received and not yet read as a reply.
    pub fn unread(&self) -> usize {
        self.buffer.len() - self.at
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.at == self.buffer.len() {
            self.buffer.clear();
            self.at = 0;
        } else if self.at > 1 << 20 {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        let mut piece = [0; 64 * 1024];
        let got = self.stream.read(&mut piece)?;
        if got == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "closed by the server",
            ));
        }
        self.buffer.extend_from_slice(&piece[..got]);
        Ok(())
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut searched = 0;
        loop {
            let rest = &self.buffer[self.at..];
            if let Some(end) = rest[searched..]
                .iter()
                .position(|b| *b == b'\n')
                .map(|n| n + searched)
            {
                if end == 0 || rest[end - 1] != b'\r' {
                    return Err(bad("a line must end in CR LF", rest));
                }
                let line = rest[..end - 1].to_vec();
                self.at += end + 1;
                return Ok(line);
            }
            searched = rest.len();
            self.fill()?;
        }
    }

    fn exact(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() - self.at < length + 2 {
            self.fill()?;
        }
        let data = self.buffer[self.at..self.at + length].to_vec();
        if &self.buffer[self.at + length..self.at + length + 2] != b"\r\n" {
            return Err(bad("a string must end in CR LF", &data));
        }
        self.at += length + 2;
        Ok(data)
    }

    fn value(&mut self, depth: usize) -> io::Result<Value> {
        let line = self.line()?;
        let (Some(mark), true) = (line.first().copied(), depth < DEPTH_MAX) else {
            return Err(bad("a reply needs a type marker and bounded depth", &line));
        };
        let rest = line[1..].to_vec();
        let number = || {
            std::str::from_utf8(&rest)
                .ok()
                .and_then(|t| t.parse::<i64>().ok())
                .ok_or_else(|| bad("expected a number", &line))
        };
        Ok(match mark {
            b'+' => Value::Simple(rest),
            b'-' => Value::Error(rest),
            b':' => Value::Int(number()?),
            b',' => Value::Double(rest),
            b'(' => Value::BigNumber(rest),
            b'_' if rest.is_empty() => Value::Null,
            b'#' if rest == b"t" || rest == b"f" => Value::Bool(rest == b"t"),
            b'$' | b'=' | b'!' => match (mark, number()?) {
                (b'$', -1) => Value::NullBulk,
                (_, length) if length < 0 => return Err(bad("negative length", &line)),
                (b'$', length) => Value::Bulk(self.exact(length as usize)?),
                (b'=', length) => Value::Verbatim(self.exact(length as usize)?),
                (_, length) => Value::BlobError(self.exact(length as usize)?),
            },
            b'*' | b'~' | b'>' | b'%' => match (mark, number()?) {
                (b'*', -1) => Value::NullArray,
                (_, count) if count < 0 => return Err(bad("negative count", &line)),
                (b'*', count) => Value::Array(self.values(count, depth)?),
                (b'~', count) => Value::Set(self.values(count, depth)?),
                (b'>', count) => Value::Push(self.values(count, depth)?),
                (_, count) => {
                    let mut flat = self.values(count * 2, depth)?.into_iter();
                    let mut pairs = Vec::new();
                    while let (Some(key), Some(value)) = (flat.next(), flat.next()) {
                        pairs.push((key, value));
                    }
                    Value::Map(pairs)
                }
            },
            _ => return Err(bad("unknown type marker", &line)),
        })
    }

    fn values(&mut self, count: i64, depth: usize) -> io::Result<Vec<Value>> {
        (0..count).map(|_| self.value(depth + 1)).collect()
    }
}

fn bad(what: &str, bytes: &[u8]) -> io::Error {
    let shown = &bytes[..bytes.len().min(80)];
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("{what}: \"{}\"", escape(shown)),
    )
}

/// The RESP form of one command.
pub fn encode<A: AsRef<[u8]>>(args: &[A]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn read_back(bytes: &'static [u8]) -> io::Result<Value> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let server = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("one client");
            for piece in bytes.chunks(3) {
                peer.write_all(piece).expect("the client reads");
            }
        });
        let value = Conn::open(port, Duration::from_secs(5))?.read();
        server.join().expect("the writer ends");
        value
    }

    #[test]
    fn every_type_is_kept_apart() {
        let all = b"*8\r\n+OK\r\n$-1\r\n*-1\r\n_\r\n#t\r\n,1.50\r\n%1\r\n$1\r\na\r\n:1\r\n~1\r\n=5\r\ntxt:x\r\n";
        let value = read_back(all).expect("valid");
        assert_eq!(
            value.show(),
            "*[+OK, $-1, *-1, _, #true, ,1.50, %[\"a\" => :1], ~[=\"txt:x\"]]"
        );
    }

    #[test]
    fn what_the_protocol_forbids_is_an_error() {
        for bytes in [
            &b"?1\r\n"[..],
            b":x\r\n",
            b"$1\r\nabc\r\n",
            b"#x\r\n",
            b"\r\n",
            b"$-2\r\n",
        ] {
            assert!(read_back(bytes).is_err(), "{}", escape(bytes));
        }
    }
}
