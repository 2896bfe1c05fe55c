//! A memcached text-protocol client of the suites' own: it sends bytes and reads whole replies, keeping every byte.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// One connection to a memcached port.
#[derive(Debug)]
pub struct McConn {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl McConn {
    /// Connects to a port of this machine; reads give up after `timeout`.
    pub fn open(port: u16, timeout: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
        })
    }

    /// Sends raw bytes.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends one request and reads its whole reply.
    pub fn call(&mut self, request: &[u8]) -> io::Result<Vec<u8>> {
        self.send(request)?;
        self.read_reply()
    }

    /// Reads one reply: the lines up to the one that ends it, data blocks included.
    pub fn read_reply(&mut self) -> io::Result<Vec<u8>> {
        let mut reply = Vec::new();
        loop {
            let line = self.line()?;
            reply.extend_from_slice(&line);
            let words: Vec<&[u8]> = line.trim_ascii_end().split(|b| *b == b' ').collect();
            let data = match words.first().copied() {
                Some(b"VALUE") => words.get(3).copied(),
                Some(b"VA") => words.get(1).copied(),
                _ => None,
            };
            if let Some(size) = data {
                let size = std::str::from_utf8(size)
                    .ok()
                    .and_then(|t| t.parse::<usize>().ok());
                let size = size.ok_or_else(|| {
                    io::Error::new(io::ErrorKind::InvalidData, "a data block without a size")
                })?;
                reply.extend_from_slice(&self.exact(size + 2)?);
            }
            // A classic value and a statistic are followed by more, up to END; everything else is a reply of one line.
            if !matches!(words.first().copied(), Some(b"VALUE" | b"STAT")) {
                return Ok(reply);
            }
        }
    }

    /// Sends requests followed by `mn`, and reads every byte up to its `MN`. Works for requests without a reply and for errors, as long as the
    /// server stays in step.
    pub fn call_fenced(&mut self, requests: &[u8]) -> io::Result<Vec<u8>> {
        self.send(&[requests, b"mn\r\n"].concat())?;
        let mut all = Vec::new();
        loop {
            let line = self.line()?;
            if line == b"MN\r\n" {
                return Ok(all);
            }
            all.extend_from_slice(&line);
        }
    }

    /// Reads until the other side closes.
    pub fn read_to_close(&mut self) -> io::Result<Vec<u8>> {
        let mut rest = std::mem::take(&mut self.buffer);
        match self.stream.read_to_end(&mut rest) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(error),
            _ => Ok(rest),
        }
    }

    fn fill(&mut self) -> io::Result<()> {
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
        loop {
            if let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
                return Ok(self.buffer.drain(..=end).collect());
            }
            self.fill()?;
        }
    }

    fn exact(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < length {
            self.fill()?;
        }
        Ok(self.buffer.drain(..length).collect())
    }
}
