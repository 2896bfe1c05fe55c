//! Splitting a line of text into arguments, as `redis-cli`, configuration files and inline commands do.
//!
//! Blanks separate arguments. Double quotes allow `\n \r \t \b \a \xHH` and take the byte after any other backslash as it is;
//! single quotes allow only `\'`. A closing quote must be followed by a blank or by the end of the line. A zero byte is a byte
//! like any other (Redis never answers a line that holds one).

use crate::args::{OwnedArgs, Span};

/// What a line holds.
#[derive(Debug)]
pub enum Quoting {
    /// No quotes: the arguments lie in the line as they are, and their spans (relative to the line) were pushed.
    Plain,
    /// Quotes occur, so the arguments had to be decoded.
    Decoded(Box<OwnedArgs>),
    /// A quote does not close, or text follows right behind a closing quote.
    Unbalanced,
}

/// Splits `line`, which holds no line end. Pushes to `spans` only when it returns [`Quoting::Plain`].
///
/// # Panics
/// When the line is longer than 4 GiB; callers limit it to far less.
pub fn split_line(line: &[u8], spans: &mut Vec<Span>) -> Quoting {
    if memchr::memchr2(b'"', b'\'', line).is_some() {
        return match decode_line(line) {
            Some(args) => Quoting::Decoded(Box::new(args)),
            None => Quoting::Unbalanced,
        };
    }
    let mut at = 0;
    while let Some(start) = skip_blanks(line, at) {
        let len = line[start..]
            .iter()
            .position(|&byte| ends_word(byte))
            .unwrap_or(line.len() - start);
        let fits = "a line is shorter than 4 GiB";
        spans.push(Span {
            start: u32::try_from(start).expect(fits),
            len: u32::try_from(len).expect(fits),
        });
        at = start + len;
    }
    Quoting::Plain
}

fn decode_line(line: &[u8]) -> Option<OwnedArgs> {
    let mut args = OwnedArgs::new();
    let mut at = 0;
    while let Some(start) = skip_blanks(line, at) {
        let mark = args.mark();
        at = decode_word(line, start, &mut args)?;
        args.seal(mark);
    }
    Some(args)
}

/// Decodes one argument and returns where the rest of the line begins.
fn decode_word(line: &[u8], mut at: usize, args: &mut OwnedArgs) -> Option<usize> {
    while let Some(&byte) = line.get(at) {
        at += 1;
        match byte {
            b'"' => return decode_double(line, at, args),
            b'\'' => return decode_single(line, at, args),
            _ if ends_word(byte) => return Some(at),
            _ => args.push_byte(byte),
        }
    }
    Some(at)
}

fn decode_double(line: &[u8], mut at: usize, args: &mut OwnedArgs) -> Option<usize> {
    loop {
        match line.get(at..)? {
            [b'\\', b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                args.push_byte(hex_value(*high) << 4 | hex_value(*low));
                at += 4;
            }
            [b'\\', escaped, ..] => {
                args.push_byte(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                at += 2;
            }
            [b'"', rest @ ..] => return closed(rest).then_some(at + 1),
            [byte, ..] => {
                args.push_byte(*byte);
                at += 1;
            }
            [] => return None,
        }
    }
}

fn decode_single(line: &[u8], mut at: usize, args: &mut OwnedArgs) -> Option<usize> {
    loop {
        match line.get(at..)? {
            [b'\\', b'\'', ..] => {
                args.push_byte(b'\'');
                at += 2;
            }
            [b'\'', rest @ ..] => return closed(rest).then_some(at + 1),
            [byte, ..] => {
                args.push_byte(*byte);
                at += 1;
            }
            [] => return None,
        }
    }
}

fn closed(rest: &[u8]) -> bool {
    rest.first().is_none_or(|&byte| is_blank(byte))
}

fn skip_blanks(line: &[u8], at: usize) -> Option<usize> {
    let skipped = line.get(at..)?.iter().position(|&byte| !is_blank(byte))?;
    Some(at + skipped)
}

/// What the C library calls a space. Vertical tab and form feed separate arguments, but do not end one.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Always a blank too, so a word has at least one byte and splitting makes progress.
fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
        let mut spans = Vec::new();
        match split_line(line, &mut spans) {
            Quoting::Plain => Some(
                spans
                    .iter()
                    .map(|s| line[s.start as usize..][..s.len as usize].to_vec())
                    .collect(),
            ),
            Quoting::Decoded(args) => Some(args.as_args().iter().map(<[u8]>::to_vec).collect()),
            Quoting::Unbalanced => None,
        }
    }

    /// The right-hand sides are what redis-server 7.0.15 echoed.
    #[test]
    fn lines_split_as_in_redis() {
        type Row<'a> = (&'a [u8], Option<&'a [&'a [u8]]>);
        let table: &[Row<'_>] = &[
            (b"", Some(&[])),
            (b"  ping  ", Some(&[b"ping"])),
            (b"echo 'a\\'b'", Some(&[b"echo", b"a'b"])),
            (
                b"echo \"\\x41\\n\\t\\q\\xzz\"",
                Some(&[b"echo", b"A\n\tqxzz"]),
            ),
            (b"echo a\"b c\"", Some(&[b"echo", b"ab c"])),
            (b"echo \x0b\x0cq", Some(&[b"echo", b"q"])),
            (b"echo a\x0bb", Some(&[b"echo", b"a\x0bb"])),
            (b"echo \"\"", Some(&[b"echo", b""])),
            (b"echo a\rb", Some(&[b"echo", b"a", b"b"])),
            (b"echo \"a\\\"b\"", Some(&[b"echo", b"a\"b"])),
            (b"\"abc", None),
            (b"\"abc\"d", None),
            (b"'abc", None),
            (b"'a\\\\'", None),
            (b"\"abc\\", None),
            (b"'abc'\"d\"", None),
        ];
        for (line, want) in table {
            let got = split(line);
            let want = want.map(|w| w.iter().map(|a| a.to_vec()).collect::<Vec<_>>());
            assert_eq!(got, want, "{}", line.escape_ascii());
        }
    }
}
