//! One client connection: a nonblocking socket, what is still to be sent, and where its reply stream stands.

use super::encode::{Encoder, Protocol};
use super::replies::{LINE_BYTES_MAX, ReplyParser, Tally};
use super::source::{Asked, Source};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Bytes asked for in one receive.
const READ_BYTES: usize = 64 * 1024;
/// A server on this machine accepts within this time, or is broken.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where replies are received; one for all connections of a thread, so that it stays in the cache.
#[derive(Debug)]
pub struct Scratch(Vec<u8>);

impl Scratch {
    /// Room for one receive and the unfinished line before it.
    pub fn new() -> Self {
        Self(vec![0; LINE_BYTES_MAX * 2 + READ_BYTES])
    }
}

/// Where the received bytes start, so that the unfinished line fits in front of them.
const READ_AT: usize = LINE_BYTES_MAX * 2;

/// One client connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    source: Source,
    out: Vec<u8>,
    sent: usize,
    carry: Vec<u8>,
    parser: ReplyParser,
    /// Requests without a reply yet.
    pub outstanding: u64,
    /// When the batch under way was sent (closed loop).
    pub sent_at: Instant,
    /// When each request without a reply should have been sent (open loop).
    pub intended: VecDeque<Instant>,
    /// Whether the event loop watches for room to send.
    pub watches_write: bool,
}

impl Connection {
    /// Connects to `address`.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn open(address: SocketAddr, protocol: Protocol, source: Source) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            source,
            out: Vec::new(),
            sent: 0,
            carry: Vec::new(),
            parser: ReplyParser::new(protocol),
            outstanding: 0,
            sent_at: Instant::now(),
            intended: VecDeque::new(),
            watches_write: false,
        })
    }

    /// Appends the next request to what is to be sent, or returns `None` at the end of a sweep.
    pub fn enqueue(&mut self, encoder: &Encoder) -> Option<Asked> {
        let asked = self.source.append(encoder, &mut self.out)?;
        self.outstanding += 1;
        Some(asked)
    }

    /// Sends what is to be sent; `false` when the socket took only a part.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn flush(&mut self) -> io::Result<bool> {
        while self.sent < self.out.len() {
            match (&self.stream).write(&self.out[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Receives once and returns how many requests that completed.
    ///
    /// # Errors
    /// Whatever the system says, a closed connection, or bytes that are no reply.
    pub fn receive(&mut self, scratch: &mut Scratch, tally: &mut Tally) -> io::Result<u64> {
        let count = match (&self.stream).read(&mut scratch.0[READ_AT..]) {
            Ok(0) => {
                return Err(io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "the server closed the connection",
                ));
            }
            Ok(count) => count,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Ok(0);
            }
            Err(error) => return Err(error),
        };
        let start = READ_AT - self.carry.len();
        scratch.0[start..READ_AT].copy_from_slice(&self.carry);
        let bytes = &scratch.0[start..READ_AT + count];
        let before = tally.replies;
        let used = self
            .parser
            .feed(bytes, tally)
            .map_err(|text| io::Error::new(ErrorKind::InvalidData, text))?;
        self.carry.clear();
        self.carry.extend_from_slice(&bytes[used..]);
        let done = tally.replies - before;
        self.outstanding = self.outstanding.checked_sub(done).ok_or_else(|| {
            io::Error::new(
                ErrorKind::InvalidData,
                "more replies came than requests went",
            )
        })?;
        Ok(done)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
