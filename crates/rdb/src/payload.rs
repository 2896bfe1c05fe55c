//! The payloads of `DUMP` and `RESTORE`: one value with its type, version and checksum.

use crate::reader::{Reader, Text};
use crate::value_type::ValueType;
use crate::{RdbError, VERSION, VERSION_MAX, crc64, writer};

const STRING: u8 = 0;
const FOOTER_BYTES: usize = 10;

/// A value from a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restored<'a> {
    /// A string.
    String(Text<'a>),
}

/// The payload of a string; `compress` follows `rdbcompression`.
#[must_use]
pub fn dump_string(bytes: &[u8], compress: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 20);
    out.push(STRING);
    writer::write_string(&mut out, bytes, compress);
    seal(out)
}

/// The payload of the string that is the decimal text of `value`.
#[must_use]
pub fn dump_integer(value: i64) -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    out.push(STRING);
    writer::write_integer(&mut out, value);
    seal(out)
}

/// Decodes a payload; strings in it may be at most `limit_bytes` long.
pub fn restore(payload: &[u8], limit_bytes: u64) -> Result<Restored<'_>, RdbError> {
    let mut reader = Reader::new(unseal(payload)?, limit_bytes);
    let number = reader.byte()?;
    let value = match ValueType::of(number).ok_or(RdbError::UnknownType(number))? {
        ValueType::String => Restored::String(reader.string()?),
        other => return Err(RdbError::UnsupportedType(other.name())),
    };
    if reader.rest().is_empty() {
        Ok(value)
    } else {
        Err(RdbError::TrailingBytes)
    }
}

fn seal(mut out: Vec<u8>) -> Vec<u8> {
    out.extend_from_slice(&VERSION.to_le_bytes());
    let checksum = crc64::checksum(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

/// Checks the footer; gives what stands before it.
fn unseal(payload: &[u8]) -> Result<&[u8], RdbError> {
    let (summed, checksum) = payload.split_last_chunk::<8>().ok_or(RdbError::NoFooter)?;
    let (body, version) = summed.split_last_chunk::<2>().ok_or(RdbError::NoFooter)?;
    debug_assert_eq!(body.len() + FOOTER_BYTES, payload.len());
    let version = u16::from_le_bytes(*version);
    if !(1..=VERSION_MAX).contains(&version) {
        return Err(RdbError::Version { found: version });
    }
    if crc64::checksum(summed) != u64::from_le_bytes(*checksum) {
        return Err(RdbError::Checksum);
    }
    Ok(body)
}
