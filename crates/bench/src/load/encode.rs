//! Requests as bytes, in RESP2 or memcached's classic text. Appends to a caller's buffer and never allocates beyond it.

use super::keys::KeyFormat;
use super::values::Values;
use serde::Serialize;
use std::io::Write;
use std::sync::Arc;

/// The language that client and server speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Redis, RESP2.
    Resp,
    /// Memcached, classic text commands.
    Memcached,
}

/// Writes requests.
#[derive(Debug, Clone)]
pub struct Encoder {
    protocol: Protocol,
    format: KeyFormat,
    values: Arc<Values>,
    /// `GET`, up to the key's own bytes.
    get_head: Vec<u8>,
    /// `SET`, up to the key's own bytes.
    set_head: Vec<u8>,
    del_head: Vec<u8>,
    /// What stands between key and value length, when it does not depend on the key.
    set_middle: Vec<u8>,
    /// What follows the value of a SET.
    set_tail: Vec<u8>,
    key_head: Vec<u8>,
}

impl Encoder {
    /// An encoder for keys of `format` with `values`, each written with `ttl_s` when it is given.
    pub fn new(
        protocol: Protocol,
        format: KeyFormat,
        values: Arc<Values>,
        ttl_s: Option<u64>,
    ) -> Self {
        let key_bytes = format.size_bytes();
        let key_head = format!("${key_bytes}\r\n");
        let (get_head, set_head, del_head, set_middle, set_tail) = match protocol {
            Protocol::Resp => (
                format!("*2\r\n$3\r\nGET\r\n{key_head}"),
                format!(
                    "*{}\r\n$3\r\nSET\r\n{key_head}",
                    if ttl_s.is_some() { 5 } else { 3 }
                ),
                format!("*2\r\n$3\r\nDEL\r\n{key_head}"),
                "\r\n$".to_owned(),
                ttl_s.map_or_else(
                    || "\r\n".to_owned(),
                    |ttl| {
                        let text = ttl.to_string();
                        format!("\r\n$2\r\nEX\r\n${}\r\n{text}\r\n", text.len())
                    },
                ),
            ),
            Protocol::Memcached => (
                "get ".to_owned(),
                "set ".to_owned(),
                "delete ".to_owned(),
                format!(" 0 {} ", ttl_s.unwrap_or(0)),
                "\r\n".to_owned(),
            ),
        };
        Self {
            protocol,
            format,
            values,
            get_head: get_head.into_bytes(),
            set_head: set_head.into_bytes(),
            del_head: del_head.into_bytes(),
            set_middle: set_middle.into_bytes(),
            set_tail: set_tail.into_bytes(),
            key_head: key_head.into_bytes(),
        }
    }

    /// One read of one key.
    pub fn get(&self, out: &mut Vec<u8>, index: u64) {
        out.extend_from_slice(&self.get_head);
        self.format.append(out, index);
        out.extend_from_slice(b"\r\n");
    }

    /// One write of one key with its value.
    pub fn set(&self, out: &mut Vec<u8>, index: u64) {
        out.extend_from_slice(&self.set_head);
        self.format.append(out, index);
        out.extend_from_slice(&self.set_middle);
        self.append_value(out, index);
        out.extend_from_slice(&self.set_tail);
    }

    /// One deletion of one key.
    pub fn delete(&self, out: &mut Vec<u8>, index: u64) {
        out.extend_from_slice(&self.del_head);
        self.format.append(out, index);
        out.extend_from_slice(b"\r\n");
    }

    /// One read of `count` keys, drawn from `pick`.
    pub fn get_many(&self, out: &mut Vec<u8>, count: usize, mut pick: impl FnMut() -> u64) {
        match self.protocol {
            Protocol::Resp => {
                append_header(out, b'*', count + 1);
                out.extend_from_slice(b"$4\r\nMGET\r\n");
                for _ in 0..count {
                    out.extend_from_slice(&self.key_head);
                    self.format.append(out, pick());
                    out.extend_from_slice(b"\r\n");
                }
            }
            Protocol::Memcached => {
                out.extend_from_slice(b"get");
                for _ in 0..count {
                    out.push(b' ');
                    self.format.append(out, pick());
                }
                out.extend_from_slice(b"\r\n");
            }
        }
    }

    /// One write of `count` keys, drawn from `pick` (RESP only: memcached's text has no such command, and the options say so).
    pub fn set_many(&self, out: &mut Vec<u8>, count: usize, mut pick: impl FnMut() -> u64) {
        append_header(out, b'*', 2 * count + 1);
        out.extend_from_slice(b"$4\r\nMSET\r\n");
        for _ in 0..count {
            let index = pick();
            out.extend_from_slice(&self.key_head);
            self.format.append(out, index);
            out.extend_from_slice(b"\r\n$");
            self.append_value(out, index);
            out.extend_from_slice(b"\r\n");
        }
    }

    /// The value's length, a line end, and the value.
    fn append_value(&self, out: &mut Vec<u8>, index: u64) {
        let value = self.values.of(index);
        append_number(out, value.len());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(value);
    }
}

/// A RESP header: a type byte, a count, a line end.
fn append_header(out: &mut Vec<u8>, kind: u8, count: usize) {
    out.push(kind);
    append_number(out, count);
    out.extend_from_slice(b"\r\n");
}

fn append_number(out: &mut Vec<u8>, number: usize) {
    // Writing to a vector cannot fail; three digits are by far the commonest case and skip the formatter.
    if (100..1_000).contains(&number) {
        let digit = |n: usize| b'0' + (n % 10) as u8;
        out.extend_from_slice(&[digit(number / 100), digit(number / 10), digit(number)]);
    } else {
        let _ = write!(out, "{number}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::values::{ValueKind, ValueSize};
    use super::*;

    fn encoder(protocol: Protocol, ttl_s: Option<u64>) -> Encoder {
        let values = Values::new(ValueSize::fixed(3), ValueKind::Ascii, 1);
        let format = KeyFormat::new(6, 100).unwrap();
        Encoder::new(protocol, format, Arc::new(values), ttl_s)
    }

    fn bytes(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn value(index: u64) -> String {
        let values = Values::new(ValueSize::fixed(3), ValueKind::Ascii, 1);
        String::from_utf8(values.of(index).to_vec()).unwrap()
    }

    #[test]
    fn resp_requests() {
        let plain = encoder(Protocol::Resp, None);
        assert_eq!(
            bytes(|out| plain.get(out, 7)),
            "*2\r\n$3\r\nGET\r\n$6\r\nkey:07\r\n"
        );
        assert_eq!(
            bytes(|out| plain.delete(out, 7)),
            "*2\r\n$3\r\nDEL\r\n$6\r\nkey:07\r\n"
        );
        assert_eq!(
            bytes(|out| plain.set(out, 7)),
            format!("*3\r\n$3\r\nSET\r\n$6\r\nkey:07\r\n$3\r\n{}\r\n", value(7))
        );
        assert_eq!(
            bytes(|out| encoder(Protocol::Resp, Some(600)).set(out, 7)),
            format!(
                "*5\r\n$3\r\nSET\r\n$6\r\nkey:07\r\n$3\r\n{}\r\n$2\r\nEX\r\n$3\r\n600\r\n",
                value(7)
            )
        );
        assert_eq!(
            bytes(|out| plain.get_many(out, 2, || 3)),
            "*3\r\n$4\r\nMGET\r\n$6\r\nkey:03\r\n$6\r\nkey:03\r\n"
        );
        assert_eq!(
            bytes(|out| plain.set_many(out, 1, || 3)),
            format!("*3\r\n$4\r\nMSET\r\n$6\r\nkey:03\r\n$3\r\n{}\r\n", value(3))
        );
    }

    #[test]
    fn memcached_requests() {
        let plain = encoder(Protocol::Memcached, None);
        assert_eq!(bytes(|out| plain.get(out, 7)), "get key:07\r\n");
        assert_eq!(bytes(|out| plain.delete(out, 7)), "delete key:07\r\n");
        assert_eq!(
            bytes(|out| plain.get_many(out, 2, || 3)),
            "get key:03 key:03\r\n"
        );
        assert_eq!(
            bytes(|out| encoder(Protocol::Memcached, Some(60)).set(out, 7)),
            format!("set key:07 0 60 3\r\n{}\r\n", value(7))
        );
    }

    #[test]
    fn numbers_of_every_length() {
        for number in [0, 9, 10, 99, 100, 105, 999, 1_000, 65_536] {
            assert_eq!(bytes(|out| append_number(out, number)), number.to_string());
        }
    }
}
