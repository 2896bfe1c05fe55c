//! Decoding lengths and strings from a slice.

use crate::{RdbError, lzf};
use std::borrow::Cow;

/// A decoded string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text<'a> {
    /// The string is the decimal text of this number.
    Integer(i64),
    /// These bytes.
    Bytes(Cow<'a, [u8]>),
}

/// Reads encoded bytes from the front.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    limit_bytes: u64,
}

/// What the first byte says.
enum Head {
    Length(u64),
    Encoded(u8),
}

impl<'a> Reader<'a> {
    /// Reads `bytes`; strings may be at most `limit_bytes` long.
    #[must_use]
    pub const fn new(bytes: &'a [u8], limit_bytes: u64) -> Self {
        Self {
            rest: bytes,
            limit_bytes,
        }
    }

    /// What is not read yet.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// So many bytes as they are.
    pub fn bytes(&mut self, len: u64) -> Result<&'a [u8], RdbError> {
        let (bytes, rest) = usize::try_from(len)
            .ok()
            .and_then(|len| self.rest.split_at_checked(len))
            .ok_or(RdbError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8, RdbError> {
        self.array().map(|[byte]| byte)
    }

    /// A length.
    pub fn length(&mut self) -> Result<u64, RdbError> {
        match self.head()? {
            Head::Length(len) => Ok(len),
            Head::Encoded(_) => Err(RdbError::BadLength),
        }
    }

    /// A string.
    pub fn string(&mut self) -> Result<Text<'a>, RdbError> {
        Ok(match self.head()? {
            Head::Length(len) => {
                self.check(len)?;
                Text::Bytes(Cow::Borrowed(self.bytes(len)?))
            }
            Head::Encoded(0) => Text::Integer(i64::from(i8::from_le_bytes(self.array()?))),
            Head::Encoded(1) => Text::Integer(i64::from(i16::from_le_bytes(self.array()?))),
            Head::Encoded(2) => Text::Integer(i64::from(i32::from_le_bytes(self.array()?))),
            Head::Encoded(3) => {
                let compressed_len = self.length()?;
                let len = self.length()?;
                self.check(len)?;
                let compressed = self.bytes(compressed_len)?;
                let mut out = Vec::new();
                lzf::decompress(compressed, len, &mut out)?;
                Text::Bytes(Cow::Owned(out))
            }
            Head::Encoded(other) => return Err(RdbError::BadStringEncoding(other)),
        })
    }

    fn head(&mut self) -> Result<Head, RdbError> {
        let first = self.byte()?;
        let low = first & 0x3f;
        Ok(match first >> 6 {
            0 => Head::Length(u64::from(low)),
            1 => Head::Length(u64::from(low) << 8 | u64::from(self.byte()?)),
            2 => Head::Length(match low {
                0 => u64::from(u32::from_be_bytes(self.array()?)),
                1 => u64::from_be_bytes(self.array()?),
                _ => return Err(RdbError::BadLength),
            }),
            _ => Head::Encoded(low),
        })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RdbError> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(RdbError::Truncated)?;
        self.rest = rest;
        Ok(*array)
    }

    const fn check(&self, len: u64) -> Result<(), RdbError> {
        if len > self.limit_bytes {
            Err(RdbError::TooLong {
                len,
                limit_bytes: self.limit_bytes,
            })
        } else {
            Ok(())
        }
    }
}
