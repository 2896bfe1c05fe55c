//! Writing RESP2 and RESP3 replies.
//!
//! A [`Reply`] appends to a buffer and never reads it. It does not check that aggregates get as many elements as they
//! announced: the command does that. It never writes a line end inside a line, whatever a key or an error text holds.

use std::fmt;

use crate::numbers::{write_f64, write_f64_shortest};

/// The protocol version that a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proto {
    /// RESP2, until `HELLO 3`.
    #[default]
    Resp2,
    /// RESP3.
    Resp3,
}

/// Writes replies to the end of a buffer.
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
    proto: Proto,
}

/// Where the length of an array will stand; see [`Reply::array_deferred`].
#[derive(Debug)]
#[must_use = "an array needs its length"]
pub struct ArrayMark(usize);

/// Where the length of a map will stand; see [`Reply::map_deferred`].
#[derive(Debug)]
#[must_use = "a map needs its length"]
pub struct MapMark(usize);

/// Where the length of a set will stand; see [`Reply::set_deferred`].
#[derive(Debug)]
#[must_use = "a set needs its length"]
pub struct SetMark(usize);

/// A bulk string that is being written in chunks; see [`Reply::begin_bulk`].
#[derive(Debug)]
#[must_use = "a chunked bulk string must be ended"]
pub struct BulkMark {
    end: usize,
}

/// `<one byte for the type><digits>\r\n`, padded to 8 bytes; the last byte is the length.
const HEADERS: [[u8; 8]; 1024] = headers();

const fn headers() -> [[u8; 8]; 1024] {
    let mut table = [[0; 8]; 1024];
    let mut n = 0;
    while n < table.len() {
        let digits = if n < 10 {
            1
        } else if n < 100 {
            2
        } else if n < 1000 {
            3
        } else {
            4
        };
        let mut rest = n;
        let mut i = digits;
        while i > 0 {
            table[n][i] = b'0' + (rest % 10) as u8;
            rest /= 10;
            i -= 1;
        }
        table[n][digits + 1] = b'\r';
        table[n][digits + 2] = b'\n';
        table[n][7] = digits as u8 + 3;
        n += 1;
    }
    table
}

#[inline]
fn put_length(out: &mut Vec<u8>, kind: u8, n: usize) {
    if let Some(header) = HEADERS.get(n) {
        let mut header = *header;
        header[0] = kind;
        let len = usize::from(header[7]);
        // One store of 8 bytes costs less than a copy of a length known only at run time.
        out.extend_from_slice(&header);
        out.truncate(out.len() - 8 + len);
    } else {
        put_number(out, kind, n);
    }
}

fn put_number(out: &mut Vec<u8>, kind: u8, n: impl itoa::Integer) {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(n).as_bytes();
    out.reserve(digits.len() + 3);
    out.push(kind);
    out.extend_from_slice(digits);
    out.extend_from_slice(b"\r\n");
}

impl<'a> Reply<'a> {
    /// Replies in `proto` appended to `out`.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>, proto: Proto) -> Self {
        Self { out, proto }
    }

    /// The protocol version in use.
    #[inline]
    pub fn proto(&self) -> Proto {
        self.proto
    }

    /// Changes the protocol version, which `HELLO` does before it replies.
    pub fn set_proto(&mut self, proto: Proto) {
        self.proto = proto;
    }

    /// Bytes in the buffer, what stood there before included.
    #[inline]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Takes back everything behind `len`, for a reply that turned out to be wrong half-way.
    pub fn truncate(&mut self, len: usize) {
        self.out.truncate(len);
    }

    /// A second writer to the same buffer, to be handed to a callee.
    pub fn reborrow(&mut self) -> Reply<'_> {
        Reply {
            out: self.out,
            proto: self.proto,
        }
    }

    /// `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// A status line.
    pub fn simple(&mut self, text: impl AsRef<[u8]>) {
        self.line(b'+', text.as_ref());
    }

    /// An error: its code and text, such as `ERR syntax error`, without `-` and line end. Line ends inside become spaces, those at the end go.
    pub fn error(&mut self, text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        let end = text
            .iter()
            .rposition(|&byte| !matches!(byte, b'\r' | b'\n'));
        self.line(b'-', &text[..end.map_or(0, |end| end + 1)]);
    }

    /// An error from format arguments; see [`Reply::error`].
    pub fn error_fmt(&mut self, text: fmt::Arguments<'_>) {
        self.error(text.to_string());
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.reserve(text.len() + 3);
        self.out.push(kind);
        let start = self.out.len();
        self.out.extend_from_slice(text);
        for byte in &mut self.out[start..] {
            if matches!(*byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.out.extend_from_slice(b"\r\n");
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        match usize::try_from(value) {
            Ok(small) if small < HEADERS.len() => put_length(self.out, b':', small),
            _ => put_number(self.out, b':', value),
        }
    }

    /// A bulk string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        // Room for the longest header and the line end.
        self.out.reserve(bytes.len() + 26);
        put_length(self.out, b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// A bulk string of text.
    #[inline]
    pub fn bulk_str(&mut self, text: &str) {
        self.bulk(text.as_bytes());
    }

    /// A bulk string from format arguments.
    pub fn bulk_fmt(&mut self, text: fmt::Arguments<'_>) {
        match text.as_str() {
            Some(text) => self.bulk_str(text),
            None => self.bulk_str(&text.to_string()),
        }
    }

    /// A bulk string that holds an integer.
    pub fn bulk_integer(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value).as_bytes());
    }

    /// Begins a bulk string of `len` bytes that is written with [`Reply::raw`] in chunks and ended with [`Reply::end_bulk`].
    pub fn begin_bulk(&mut self, len: usize) -> BulkMark {
        put_length(self.out, b'$', len);
        BulkMark {
            end: self.out.len() + len,
        }
    }

    /// Ends a bulk string.
    ///
    /// # Panics
    /// When not exactly the announced number of bytes was written: the stream would be broken beyond repair.
    pub fn end_bulk(&mut self, mark: BulkMark) {
        assert_eq!(
            self.out.len(),
            mark.end,
            "a bulk string has the length it announced"
        );
        self.out.extend_from_slice(b"\r\n");
    }

    /// Bytes that are already in protocol form, or a chunk of a bulk string.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// No value.
    #[inline]
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.proto {
            Proto::Resp2 => b"$-1\r\n",
            Proto::Resp3 => b"_\r\n",
        });
    }

    /// No array.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(match self.proto {
            Proto::Resp2 => b"*-1\r\n",
            Proto::Resp3 => b"_\r\n",
        });
    }

    /// The header of an array of `n` elements.
    #[inline]
    pub fn array(&mut self, n: usize) {
        put_length(self.out, b'*', n);
    }

    /// The header of a map of `n` pairs; in RESP2 an array of `2n` elements.
    pub fn map(&mut self, n: usize) {
        match self.proto {
            Proto::Resp2 => put_length(self.out, b'*', 2 * n),
            Proto::Resp3 => put_length(self.out, b'%', n),
        }
    }

    /// The header of a set of `n` elements; in RESP2 an array.
    pub fn set(&mut self, n: usize) {
        put_length(self.out, self.set_kind(), n);
    }

    /// The header of a message that is no reply; in RESP2 an array.
    pub fn push(&mut self, n: usize) {
        let kind = match self.proto {
            Proto::Resp2 => b'*',
            Proto::Resp3 => b'>',
        };
        put_length(self.out, kind, n);
    }

    /// The header of `n` attribute pairs, which precede the reply that they describe. RESP2 knows none: the caller must not write any there.
    pub fn attribute(&mut self, n: usize) {
        debug_assert_eq!(self.proto, Proto::Resp3, "attributes exist in RESP3 only");
        put_length(self.out, b'|', n);
    }

    /// A truth value; in RESP2 1 or 0.
    pub fn boolean(&mut self, value: bool) {
        self.out.extend_from_slice(match (self.proto, value) {
            (Proto::Resp2, true) => b":1\r\n",
            (Proto::Resp2, false) => b":0\r\n",
            (Proto::Resp3, true) => b"#t\r\n",
            (Proto::Resp3, false) => b"#f\r\n",
        });
    }

    /// A double as `%.17g`, the way of Redis 7.0; in RESP2 a bulk string.
    pub fn double(&mut self, value: f64) {
        let mut text = Vec::with_capacity(32);
        write_f64(&mut text, value);
        self.double_text(&text);
    }

    /// A double with the fewest digits that read back the same, the way of Redis 7.2 and later.
    pub fn double_shortest(&mut self, value: f64) {
        let mut text = Vec::with_capacity(32);
        write_f64_shortest(&mut text, value);
        self.double_text(&text);
    }

    /// A double whose text the caller made, such as one from [`crate::long_double::LongDouble`]; in RESP2 a bulk string.
    pub fn double_text(&mut self, text: &[u8]) {
        match self.proto {
            Proto::Resp2 => self.bulk(text),
            Proto::Resp3 => self.line(b',', text),
        }
    }

    /// A double with up to 17 decimals and no exponent, as Redis shows coordinates; in RESP2 a bulk string.
    pub fn human_double(&mut self, value: f64) {
        let text = crate::long_double::LongDouble::from_f64(value).to_string();
        self.double_text(text.as_bytes());
    }

    /// A number beyond 64 bits, as decimal text; in RESP2 a bulk string.
    pub fn big_number(&mut self, digits: &str) {
        match self.proto {
            Proto::Resp2 => self.bulk_str(digits),
            Proto::Resp3 => self.line(b'(', digits.as_bytes()),
        }
    }

    /// Text with a three-letter format such as `txt`; in RESP2 a plain bulk string.
    pub fn verbatim(&mut self, format: &str, text: &[u8]) {
        if self.proto == Proto::Resp2 {
            return self.bulk(text);
        }
        let mut padded = [b' '; 3];
        for (to, from) in padded.iter_mut().zip(format.bytes()) {
            *to = from;
        }
        put_length(self.out, b'=', text.len() + 4);
        self.out.extend_from_slice(&padded);
        self.out.push(b':');
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Begins an array whose length is known only at its end. Lengths must be set innermost and last first, because
    /// setting one may move what follows it.
    pub fn array_deferred(&mut self) -> ArrayMark {
        ArrayMark(self.defer())
    }

    /// Sets the length of an array that [`Reply::array_deferred`] began.
    pub fn set_array_len(&mut self, mark: ArrayMark, n: usize) {
        self.settle(mark.0, b'*', n);
    }

    /// Begins a map whose length is known only at its end; see [`Reply::array_deferred`].
    pub fn map_deferred(&mut self) -> MapMark {
        MapMark(self.defer())
    }

    /// Sets the length of a map that [`Reply::map_deferred`] began, in pairs.
    pub fn set_map_len(&mut self, mark: MapMark, n: usize) {
        match self.proto {
            Proto::Resp2 => self.settle(mark.0, b'*', 2 * n),
            Proto::Resp3 => self.settle(mark.0, b'%', n),
        }
    }

    /// Begins a set whose length is known only at its end; see [`Reply::array_deferred`].
    pub fn set_deferred(&mut self) -> SetMark {
        SetMark(self.defer())
    }

    /// Sets the length of a set that [`Reply::set_deferred`] began.
    pub fn set_set_len(&mut self, mark: SetMark, n: usize) {
        self.settle(mark.0, self.set_kind(), n);
    }

    fn set_kind(&self) -> u8 {
        match self.proto {
            Proto::Resp2 => b'*',
            Proto::Resp3 => b'~',
        }
    }

    /// Leaves room for a header of one digit: right for most lengths, and then nothing has to move.
    fn defer(&mut self) -> usize {
        let at = self.out.len();
        self.out.extend_from_slice(PLACEHOLDER);
        at
    }

    fn settle(&mut self, at: usize, kind: u8, n: usize) {
        assert_eq!(
            self.out.get(at..at + PLACEHOLDER.len()),
            Some(PLACEHOLDER),
            "deferred lengths are set innermost and last first"
        );
        let mut header = Vec::with_capacity(24);
        put_length(&mut header, kind, n);
        self.out.splice(at..at + PLACEHOLDER.len(), header);
    }
}

/// Never part of a finished reply, so a length that is set out of order is found out.
const PLACEHOLDER: &[u8] = b"*?\r\n";

impl fmt::Debug for Reply<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.proto, self.out.escape_ascii())
    }
}

/// Appends a command as a client sends it, and as logs and replication streams hold it.
pub fn write_command<A: AsRef<[u8]>>(
    out: &mut Vec<u8>,
    args: impl IntoIterator<Item = A, IntoIter: ExactSizeIterator>,
) {
    let args = args.into_iter();
    put_length(out, b'*', args.len());
    let mut reply = Reply::new(out, Proto::Resp2);
    for arg in args {
        reply.bulk(arg.as_ref());
    }
}
