//! Writing memcached replies. Appends to a buffer and never reads it.

use super::base64;
use super::request::McKey;

const END_OF_LINE: &[u8] = b"\r\n";

/// Appends a line such as `STORED`.
#[inline]
pub fn write_line(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(END_OF_LINE);
}

/// Appends a number as a line: the answer to `incr` and `decr`.
pub fn write_integer(out: &mut Vec<u8>, value: u64) {
    put_number(out, value);
    out.extend_from_slice(END_OF_LINE);
}

/// Appends one hit of a retrieval; `END` follows the last.
pub fn write_value(out: &mut Vec<u8>, key: &[u8], flags: u32, data: &[u8], cas: Option<u64>) {
    // Room for the words, three numbers and the line ends.
    out.reserve(key.len() + data.len() + 64);
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.push(b' ');
    put_number(out, flags);
    out.push(b' ');
    put_number(out, data.len());
    if let Some(cas) = cas {
        out.push(b' ');
        put_number(out, cas);
    }
    out.extend_from_slice(END_OF_LINE);
    out.extend_from_slice(data);
    out.extend_from_slice(END_OF_LINE);
}

/// Appends one statistic; `END` follows the last.
pub fn write_stat(out: &mut Vec<u8>, name: &str, value: impl std::fmt::Display) {
    out.extend_from_slice(format!("STAT {name} {value}\r\n").as_bytes());
}

/// What `me` reports about an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaDebug {
    /// Seconds until it expires; `None` for never.
    pub ttl_s: Option<i64>,
    /// Seconds since it was last read or written.
    pub last_access_s: u64,
    /// Its CAS number.
    pub cas: u64,
    /// Whether it was ever read.
    pub fetched: bool,
    /// Its size class.
    pub class: u32,
    /// Its size in memory.
    pub size_bytes: u64,
}

/// Appends the answer to `me`. `binary` says whether the item was stored under a base64 key.
pub fn write_meta_debug(out: &mut Vec<u8>, key: &[u8], binary: bool, item: &MetaDebug) {
    out.extend_from_slice(b"ME ");
    if binary {
        base64::encode(out, key);
    } else {
        out.extend_from_slice(key);
    }
    let fetched = if item.fetched { "yes" } else { "no" };
    let text = format!(
        " exp={} la={} cas={} fetch={fetched} cls={} size={}\r\n",
        item.ttl_s.unwrap_or(-1),
        item.last_access_s,
        item.cas,
        item.class,
        item.size_bytes,
    );
    out.extend_from_slice(text.as_bytes());
}

/// A meta reply that is being written: the status, the returned flags, the end.
#[must_use = "a reply needs its end"]
#[derive(Debug)]
pub struct MetaReply<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> MetaReply<'a> {
    /// A reply without a value: `HD`, `EN`, `NF`, `NS` or `EX`.
    pub fn status(out: &'a mut Vec<u8>, code: &str) -> Self {
        out.extend_from_slice(code.as_bytes());
        Self { out }
    }

    /// A reply with a value of this many bytes, which [`MetaReply::end_with_value`] appends.
    pub fn value(out: &'a mut Vec<u8>, len: usize) -> Self {
        out.extend_from_slice(b"VA ");
        put_number(out, len);
        Self { out }
    }

    /// Returns a flag without a token: `W`, `X` or `Z`.
    pub fn flag(&mut self, flag: u8) {
        self.out.extend_from_slice(&[b' ', flag]);
    }

    /// Returns a flag with a number: `c`, `f`, `h`, `l`, `s`, `t` (−1 for never).
    pub fn number(&mut self, flag: u8, value: impl itoa::Integer) {
        self.flag(flag);
        put_number(self.out, value);
    }

    /// Returns the opaque token.
    pub fn opaque(&mut self, token: &[u8]) {
        self.flag(b'O');
        self.out.extend_from_slice(token);
    }

    /// Returns a key as its item was stored: a binary one in base64, followed by the flag `b`.
    pub fn key(&mut self, key: &[u8], binary: bool) {
        self.flag(b'k');
        if binary {
            base64::encode(self.out, key);
            self.flag(b'b');
        } else {
            self.out.extend_from_slice(key);
        }
    }

    /// Returns the key of the request.
    pub fn request_key(&mut self, key: &McKey<'_>) {
        self.key(key.as_bytes(), key.is_binary());
    }

    /// Ends a reply without a value.
    pub fn end(self) {
        self.out.extend_from_slice(END_OF_LINE);
    }

    /// Ends a reply with its value.
    pub fn end_with_value(self, value: &[u8]) {
        self.out.extend_from_slice(END_OF_LINE);
        self.out.extend_from_slice(value);
        self.out.extend_from_slice(END_OF_LINE);
    }
}

fn put_number(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_look_as_memcached_writes_them() {
        let mut out = Vec::new();
        write_value(&mut out, b"a", 5, b"q", Some(15));
        write_value(&mut out, b"b", 0, b"", None);
        write_line(&mut out, "END");
        write_integer(&mut out, u64::MAX);
        write_stat(&mut out, "pid", 7);
        let mut reply = MetaReply::value(&mut out, 2);
        reply.number(b't', -1);
        reply.request_key(&McKey::Binary(Box::from(&b"foo"[..])));
        reply.opaque(b"123");
        reply.flag(b'W');
        reply.end_with_value(b"hi");
        let mut reply = MetaReply::status(&mut out, "EN");
        reply.request_key(&McKey::Plain(b"x"));
        reply.end();
        write_meta_debug(
            &mut out,
            b"foo",
            true,
            &MetaDebug {
                ttl_s: None,
                last_access_s: 3,
                cas: 4,
                fetched: false,
                class: 1,
                size_bytes: 63,
            },
        );
        let want: &[u8] =
            b"VALUE a 5 1 15\r\nq\r\nVALUE b 0 0\r\n\r\nEND\r\n18446744073709551615\r\n\
            STAT pid 7\r\nVA 2 t-1 kZm9v b O123 W\r\nhi\r\nEN kx\r\n\
            ME Zm9v exp=-1 la=3 cas=4 fetch=no cls=1 size=63\r\n";
        assert_eq!(
            out.escape_ascii().to_string(),
            want.escape_ascii().to_string()
        );
    }
}
