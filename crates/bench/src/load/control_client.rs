//! A plain blocking client for what happens beside the load: is the server up, how many keys has it, is a value right.

use super::encode::Protocol;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A reply, as far as this client looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A status line.
    Status(String),
    /// An error line.
    Error(String),
    /// An integer.
    Integer(i64),
    /// A string, or nil.
    Bulk(Option<Vec<u8>>),
    /// An array; nil counts as empty.
    Array(Vec<Reply>),
}

/// A blocking connection.
#[derive(Debug)]
pub struct ControlClient {
    reader: BufReader<TcpStream>,
    protocol: Protocol,
}

/// Nesting of arrays that this client follows.
const DEPTH_MAX: usize = 8;
/// Lengths and counts beyond this are taken for a broken stream.
const LENGTH_MAX: i64 = 1 << 30;

impl ControlClient {
    /// Connects to `address`; each reply may take up to `timeout`.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn open(address: SocketAddr, protocol: Protocol, timeout: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Self {
            reader: BufReader::new(stream),
            protocol,
        })
    }

    /// Sends one RESP command and returns its reply.
    ///
    /// # Errors
    /// Whatever the system says, or bytes that are no reply.
    pub fn command(&mut self, words: &[&[u8]]) -> io::Result<Reply> {
        let mut out = Vec::new();
        append_command(&mut out, words);
        self.send(&out)?;
        self.reply(DEPTH_MAX)
    }

    /// Sends `count` RESP commands that are in `bytes` already and returns the first error reply among theirs.
    ///
    /// # Errors
    /// Whatever the system says, or bytes that are no reply.
    pub fn pipeline(&mut self, bytes: &[u8], count: usize) -> io::Result<Option<String>> {
        self.send(bytes)?;
        let mut first = None;
        for _ in 0..count {
            if let Reply::Error(text) = self.reply(DEPTH_MAX)? {
                first = first.or(Some(text));
            }
        }
        Ok(first)
    }

    /// Asks the server whether it is there.
    ///
    /// # Errors
    /// Whatever the system says, or what the server said instead of yes.
    pub fn ping(&mut self) -> io::Result<()> {
        let line = match self.protocol {
            Protocol::Resp => match self.command(&[b"PING"])? {
                Reply::Status(_) => return Ok(()),
                other => format!("{other:?}"),
            },
            Protocol::Memcached => {
                self.send(b"version\r\n")?;
                self.line()?
            }
        };
        if line.starts_with("VERSION") {
            return Ok(());
        }
        Err(invalid(format!("expected a sign of life, got {line:?}")))
    }

    /// How many keys the server has.
    ///
    /// # Errors
    /// Whatever the system says, or a reply that holds no number.
    pub fn key_count(&mut self) -> io::Result<u64> {
        match self.protocol {
            Protocol::Resp => match self.command(&[b"DBSIZE"])? {
                Reply::Integer(count) if count >= 0 => Ok(count as u64),
                other => Err(invalid(format!("expected a count, got {other:?}"))),
            },
            Protocol::Memcached => {
                self.send(b"stats\r\n")?;
                let mut count = None;
                loop {
                    let line = self.line()?;
                    if line == "END" {
                        break;
                    }
                    if let Some(text) = line.strip_prefix("STAT curr_items ") {
                        count = text.parse().ok();
                    }
                    if !line.starts_with("STAT ") {
                        return Err(invalid(format!("expected statistics, got {line:?}")));
                    }
                }
                count.ok_or_else(|| invalid("expected curr_items among the statistics".to_owned()))
            }
        }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// Whatever the system says, or bytes that are no reply.
    pub fn get(&mut self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        match self.protocol {
            Protocol::Resp => match self.command(&[b"GET", key])? {
                Reply::Bulk(value) => Ok(value),
                other => Err(invalid(format!("expected a string, got {other:?}"))),
            },
            Protocol::Memcached => {
                self.send(&[b"get ", key, b"\r\n"].concat())?;
                let line = self.line()?;
                if line == "END" {
                    return Ok(None);
                }
                let len = line
                    .rsplit(' ')
                    .next()
                    .and_then(|text| text.parse().ok())
                    .filter(|len| line.starts_with("VALUE ") && (0..=LENGTH_MAX).contains(len))
                    .ok_or_else(|| invalid(format!("expected a value, got {line:?}")))?;
                let value = self.bytes(len as usize)?;
                match self.line()?.as_str() {
                    "END" => Ok(Some(value)),
                    other => Err(invalid(format!("expected END, got {other:?}"))),
                }
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        (&mut self.reader)
            .take(64 * 1024)
            .read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\r\n") {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.len() - 2);
        Ok(String::from_utf8_lossy(&line).into_owned())
    }

    /// A value of `len` bytes and the line end behind it.
    fn bytes(&mut self, len: usize) -> io::Result<Vec<u8>> {
        let mut value = vec![0; len + 2];
        self.reader.read_exact(&mut value)?;
        value.truncate(len);
        Ok(value)
    }

    fn reply(&mut self, depth: usize) -> io::Result<Reply> {
        let line = self.line()?;
        let rest = line.get(1..).unwrap_or_default().to_owned();
        let length = || match rest.parse::<i64>() {
            Ok(length) if length <= LENGTH_MAX => Ok(length),
            _ => Err(invalid(format!("expected a length, got {line:?}"))),
        };
        match line.as_bytes().first() {
            Some(b'+') => Ok(Reply::Status(rest)),
            Some(b'-') => Ok(Reply::Error(rest)),
            Some(b':') => rest
                .parse()
                .map(Reply::Integer)
                .map_err(|_| invalid(format!("expected an integer, got {line:?}"))),
            Some(b'$') => match length()? {
                len if len < 0 => Ok(Reply::Bulk(None)),
                len => Ok(Reply::Bulk(Some(self.bytes(len as usize)?))),
            },
            Some(b'*') if depth > 0 => {
                let count = length()?;
                (0..count)
                    .map(|_| self.reply(depth - 1))
                    .collect::<io::Result<_>>()
                    .map(Reply::Array)
            }
            _ => Err(invalid(format!("expected a reply, got {line:?}"))),
        }
    }
}

/// Appends one RESP command.
pub fn append_command(out: &mut Vec<u8>, words: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text)
}
