//! Words of a configuration line (and of an inline command): splitting with quotes and escapes, and the reverse.
//!
//! Both work on bytes, because `"\xff"` is a legal word. Neither may fail on any input other than by saying that
//! the quotes do not balance.

/// Splits a line into words as `redis.conf` and `redis-cli` do: blanks separate, `"…"` takes the escapes
/// `\n \r \t \b \a \xHH` and `\` before any other byte, `'…'` takes only `\'`. A NUL byte ends the line.
///
/// Returns `None` if a quote is not closed, or is closed in the middle of a word.
pub fn split_args(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let end = line.iter().position(|&b| b == 0).unwrap_or(line.len());
    let line = &line[..end];
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        while line.get(at).is_some_and(|&b| is_space(b)) {
            at += 1;
        }
        if at == line.len() {
            return Some(words);
        }
        let mut word = Vec::new();
        at = take_word(line, at, &mut word)?;
        words.push(word);
    }
}

/// Appends the word that starts at `at` to `word`; the position after it.
fn take_word(line: &[u8], mut at: usize, word: &mut Vec<u8>) -> Option<usize> {
    loop {
        match line.get(at) {
            None | Some(b' ' | b'\n' | b'\r' | b'\t') => return Some(at),
            Some(&quote @ (b'"' | b'\'')) => {
                at = if quote == b'"' {
                    take_double(line, at + 1, word)?
                } else {
                    take_single(line, at + 1, word)?
                };
                // A closing quote must end its word.
                return line.get(at).is_none_or(|&b| is_space(b)).then_some(at);
            }
            Some(&byte) => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

fn take_double(line: &[u8], mut at: usize, word: &mut Vec<u8>) -> Option<usize> {
    loop {
        match *line.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => {
                let hex = (line.get(at + 1) == Some(&b'x'))
                    .then(|| line.get(at + 2..at + 4).and_then(hex_byte));
                if let Some(Some(byte)) = hex {
                    word.push(byte);
                    at += 4;
                    continue;
                }
                word.push(match *line.get(at + 1)? {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => other,
                });
                at += 2;
            }
            byte => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

fn take_single(line: &[u8], mut at: usize, word: &mut Vec<u8>) -> Option<usize> {
    loop {
        match *line.get(at)? {
            b'\'' => return Some(at + 1),
            b'\\' if line.get(at + 1) == Some(&b'\'') => {
                word.push(b'\'');
                at += 2;
            }
            byte => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digit = |b: u8| char::from(b).to_digit(16);
    u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()
}

/// What C's `isspace` accepts.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Quotes a word so that [`split_args`] gives it back, in Redis's form: always `"…"`, and `\xHH` for what does not
/// print in ASCII.
pub fn quote(word: &[u8]) -> String {
    let mut out = String::with_capacity(word.len() + 2);
    out.push('"');
    for &byte in word {
        match byte {
            b'\\' | b'"' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x07 => out.push_str("\\a"),
            0x08 => out.push_str("\\b"),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => {
                out.push_str("\\x");
                for half in [byte >> 4, byte & 15] {
                    out.push(
                        char::from_digit(u32::from(half), 16).expect("a nibble is a hex digit"),
                    );
                }
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::{quote, split_args};
    use proptest::prelude::*;

    fn split(line: &str) -> Option<Vec<String>> {
        let words = split_args(line.as_bytes())?;
        Some(
            words
                .iter()
                .map(|w| String::from_utf8_lossy(w).into_owned())
                .collect(),
        )
    }

    #[test]
    fn words_and_quotes() {
        let words = |w: &[&str]| Some(w.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
        assert_eq!(split(""), words(&[]));
        assert_eq!(split("  \t port   6379 \r"), words(&["port", "6379"]));
        assert_eq!(split("save \"\""), words(&["save", ""]));
        assert_eq!(split(r#"a "b \" c" 'd '"#), words(&["a", "b \" c", "d "]));
        assert_eq!(split(r#""\x41\n\q\xzz""#), words(&["A\nqxzz"]));
        assert_eq!(split(r"'it\'s \n'"), words(&[r"it's \n"]));
        assert_eq!(split(r#"ab"c d""#), words(&["abc d"]));
        assert_eq!(split("a\0b"), words(&["a"]));
        for unbalanced in ["\"", "'", "\"a\"b", "'a'b", "\"a\\"] {
            assert_eq!(split(unbalanced), None, "{unbalanced}");
        }
    }

    proptest! {
        #[test]
        fn quote_and_split_are_inverse(words: Vec<Vec<u8>>) {
            let line = words.iter().map(|w| quote(w)).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(split_args(line.as_bytes()), Some(words));
        }

        #[test]
        fn split_never_panics(line: Vec<u8>) {
            split_args(&line);
        }
    }
}
