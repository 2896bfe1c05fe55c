//! Encoding lengths and strings.

use crate::lzf;

/// Shorter strings are not worth compressing (as Redis has it).
const COMPRESSED_FROM_LEN: usize = 21;
/// The longest text that may be one of the integers that are stored as such: `-2147483648`.
const INTEGER_TEXT_MAX: usize = 11;

/// Appends a length.
pub fn write_length(out: &mut Vec<u8>, len: u64) {
    if len < 1 << 6 {
        out.push(len as u8);
    } else if len < 1 << 14 {
        out.extend_from_slice(&(len as u16 | 0x4000).to_be_bytes());
    } else if let Ok(len) = u32::try_from(len) {
        out.push(0x80);
        out.extend_from_slice(&len.to_be_bytes());
    } else {
        out.push(0x81);
        out.extend_from_slice(&len.to_be_bytes());
    }
}

/// Appends a string in the shortest form: as an integer if its text is exactly that of one, compressed if `compress` says so and
/// it helps, else plain.
pub fn write_string(out: &mut Vec<u8>, bytes: &[u8], compress: bool) {
    if let Some(value) = parse_i32(bytes) {
        return write_i32(out, value);
    }
    if compress
        && bytes.len() >= COMPRESSED_FROM_LEN
        && let Some(compressed) = lzf::compress(bytes, bytes.len() - 4)
    {
        out.push(0xc3);
        write_length(out, compressed.len() as u64);
        write_length(out, bytes.len() as u64);
        out.extend_from_slice(&compressed);
        return;
    }
    write_plain(out, bytes);
}

/// Appends the string that is the decimal text of `value`.
pub fn write_integer(out: &mut Vec<u8>, value: i64) {
    match i32::try_from(value) {
        Ok(value) => write_i32(out, value),
        Err(_) => write_plain(out, value.to_string().as_bytes()),
    }
}

fn write_plain(out: &mut Vec<u8>, bytes: &[u8]) {
    write_length(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn write_i32(out: &mut Vec<u8>, value: i32) {
    if let Ok(value) = i8::try_from(value) {
        out.push(0xc0);
        out.extend_from_slice(&value.to_le_bytes());
    } else if let Ok(value) = i16::try_from(value) {
        out.push(0xc1);
        out.extend_from_slice(&value.to_le_bytes());
    } else {
        out.push(0xc2);
        out.extend_from_slice(&value.to_le_bytes());
    }
}

/// The number whose decimal text these bytes are, without `+`, leading zeros or `-0`: it must read back as the same bytes.
fn parse_i32(bytes: &[u8]) -> Option<i32> {
    if bytes.len() > INTEGER_TEXT_MAX {
        return None;
    }
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    match digits {
        [b'0'] if digits.len() == bytes.len() => {}
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    std::str::from_utf8(bytes).ok()?.parse().ok()
}
