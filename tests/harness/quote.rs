//! Text form of binary arguments and replies: what `redis-cli` would take and print. Quoting and unquoting undo each other, so that a printed
//! sequence can be saved as a regression test.

/// Quotes one argument where it needs it.
pub fn quote(bytes: &[u8]) -> String {
    let plain = |b: &u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\' | b'\'' | b'#' | b'@');
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    format!("\"{}\"", escape(bytes))
}

/// Escapes bytes for the inside of a quoted string.
pub fn escape(bytes: &[u8]) -> String {
    let mut out = String::new();
    for &byte in bytes {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\r' => out.push_str("\\r"),
            b'\n' => out.push_str("\\n"),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out
}

/// Splits one line into its arguments; `Err` says what is wrong with it.
pub fn split(line: &str) -> Result<Vec<Vec<u8>>, String> {
    let bytes = line.as_bytes();
    let mut at = 0;
    let mut args = Vec::new();
    while at < bytes.len() {
        if bytes[at] == b' ' {
            at += 1;
        } else if bytes[at] == b'"' {
            let (arg, next) = quoted(bytes, at + 1)?;
            args.push(arg);
            at = next;
        } else {
            let end = bytes[at..]
                .iter()
                .position(|b| *b == b' ')
                .map_or(bytes.len(), |n| at + n);
            args.push(bytes[at..end].to_vec());
            at = end;
        }
    }
    Ok(args)
}

fn quoted(bytes: &[u8], mut at: usize) -> Result<(Vec<u8>, usize), String> {
    let mut arg = Vec::new();
    loop {
        match bytes.get(at) {
            None => return Err("a quote is not closed".into()),
            Some(b'"') => return Ok((arg, at + 1)),
            Some(b'\\') => {
                let (byte, used) = match bytes.get(at + 1) {
                    Some(b'n') => (b'\n', 2),
                    Some(b'r') => (b'\r', 2),
                    Some(b'x') => {
                        let digits = bytes
                            .get(at + 2..at + 4)
                            .and_then(|d| std::str::from_utf8(d).ok());
                        let value = digits.and_then(|d| u8::from_str_radix(d, 16).ok());
                        (value.ok_or("\\x needs two hex digits")?, 4)
                    }
                    Some(other) => (*other, 2),
                    None => return Err("a line ends in a backslash".into()),
                };
                arg.push(byte);
                at += used;
            }
            Some(byte) => {
                arg.push(*byte);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_is_undone_by_splitting() {
        let all: Vec<u8> = (0..=255).collect();
        for arg in [
            &b""[..],
            b"plain",
            b"two words",
            b"\"\\'",
            b"#x",
            b"@b",
            &all,
        ] {
            assert_eq!(split(&quote(arg)), Ok(vec![arg.to_vec()]), "{}", quote(arg));
        }
        assert_eq!(
            split("SET k  \"a b\""),
            Ok(vec![b"SET".to_vec(), b"k".to_vec(), b"a b".to_vec()])
        );
        assert!(split("\"open").is_err());
    }
}
