//! Splits Rust source into code and comments, line by line, without parsing it: comments and the insides of strings are blanked out of the code, so
//! that a rule about code is not fooled by a word in a message. Also finds functions and test modules by counting braces.

/// One file.
#[derive(Debug)]
pub struct Source {
    /// Each line's code; strings and comments are blank.
    pub code: Vec<String>,
    /// Each line's comment text.
    pub comments: Vec<String>,
    /// Lines that belong to `#[cfg(test)]` modules or items.
    pub test: Vec<bool>,
}

/// A function: its name and lines (from 0, both inclusive).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of `fn`.
    pub first: usize,
    /// The line of its closing brace.
    pub last: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    Line,
    Block(u32),
    Text,
    Raw(usize),
}

impl Source {
    /// Scans a file.
    pub fn new(text: &str) -> Self {
        let mut code = vec![String::new()];
        let mut comments = vec![String::new()];
        let chars: Vec<char> = text.chars().collect();
        let mut state = State::Code;
        let mut at = 0;
        while at < chars.len() {
            let ch = chars[at];
            let next = chars.get(at + 1).copied();
            if ch == '\n' {
                if state == State::Line {
                    state = State::Code;
                }
                code.push(String::new());
                comments.push(String::new());
                at += 1;
                continue;
            }
            let (to_code, to_comment, used, then) = step(state, &chars, at, ch, next);
            if let Some(line) = code.last_mut() {
                line.push_str(&to_code);
            }
            if let (Some(line), Some(ch)) = (comments.last_mut(), to_comment) {
                line.push(ch);
            }
            at += used;
            state = then;
        }
        let test = test_lines(&code);
        Self {
            code,
            comments,
            test,
        }
    }

    /// The functions with a body, nested ones included.
    pub fn functions(&self) -> Vec<Function> {
        let mut found = Vec::new();
        for (at, line) in self.code.iter().enumerate() {
            for (column, _) in line.match_indices("fn ") {
                let before = line[..column].chars().next_back();
                if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
                    continue;
                }
                let name: String = line[column + 3..]
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                if let (false, Some(last)) = (name.is_empty(), end_of_item(&self.code, at, column))
                {
                    found.push(Function {
                        name,
                        first: at,
                        last,
                    });
                }
            }
        }
        found
    }
}

/// What the character at `at` adds to the code, to the comment, how many characters it uses, and the state after it.
fn step(
    state: State,
    chars: &[char],
    at: usize,
    ch: char,
    next: Option<char>,
) -> (String, Option<char>, usize, State) {
    match state {
        State::Line => (String::new(), Some(ch), 1, state),
        State::Block(depth) => match (ch, next) {
            ('/', Some('*')) => (String::new(), None, 2, State::Block(depth + 1)),
            ('*', Some('/')) if depth == 1 => (" ".into(), None, 2, State::Code),
            ('*', Some('/')) => (String::new(), None, 2, State::Block(depth - 1)),
            _ => (String::new(), Some(ch), 1, state),
        },
        State::Text => match ch {
            // A backslash before the end of a line continues the string there: the line break itself must stay visible to the caller.
            '\\' if next == Some('\n') => (" ".into(), None, 1, state),
            '\\' => ("  ".into(), None, 2, state),
            '"' => ("\"".into(), None, 1, State::Code),
            _ => (" ".into(), None, 1, state),
        },
        State::Raw(hashes) => {
            let closes = ch == '"' && (1..=hashes).all(|n| chars.get(at + n) == Some(&'#'));
            if closes {
                ("\"".into(), None, 1 + hashes, State::Code)
            } else {
                (" ".into(), None, 1, state)
            }
        }
        State::Code => match (ch, next) {
            ('/', Some('/')) => (String::new(), None, 2, State::Line),
            ('/', Some('*')) => (String::new(), None, 2, State::Block(1)),
            ('"', _) => ("\"".into(), None, 1, State::Text),
            ('\'', _) => character(chars, at),
            ('r', Some('"' | '#')) if !word_before(chars, at) => raw(chars, at),
            ('r', Some('"' | '#'))
                if at > 0 && matches!(chars[at - 1], 'b' | 'c') && !word_before(chars, at - 1) =>
            {
                raw(chars, at)
            }
            _ => (ch.to_string(), None, 1, State::Code),
        },
    }
}

fn word_before(chars: &[char], at: usize) -> bool {
    at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_')
}

fn raw(chars: &[char], at: usize) -> (String, Option<char>, usize, State) {
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    if chars.get(at + 1 + hashes) == Some(&'"') {
        ("r\"".into(), None, 2 + hashes, State::Raw(hashes))
    } else {
        // r#name: a raw identifier.
        ("r".into(), None, 1, State::Code)
    }
}

/// A character literal is blanked; a lifetime stays.
fn character(chars: &[char], at: usize) -> (String, Option<char>, usize, State) {
    let end = match chars.get(at + 1) {
        Some('\\') => (at + 3..(at + 14).min(chars.len())).find(|n| chars[*n] == '\''),
        Some(_) if chars.get(at + 2) == Some(&'\'') => Some(at + 2),
        _ => None,
    };
    match end {
        Some(end) => ("' '".into(), None, end + 1 - at, State::Code),
        None => ("'".into(), None, 1, State::Code),
    }
}

/// The line on which the braces of the item that starts at `line`, `column` close; `None` if it ends in `;` before any brace.
fn end_of_item(code: &[String], line: usize, column: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut brackets = 0usize;
    for (at, text) in code.iter().enumerate().skip(line) {
        let from = if at == line { column } else { 0 };
        for ch in text[from..].chars() {
            match ch {
                '(' | '[' => brackets += 1,
                ')' | ']' => brackets = brackets.saturating_sub(1),
                '{' => depth += 1,
                '}' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Some(at);
                    }
                }
                ';' if depth == 0 && brackets == 0 => return None,
                _ => {}
            }
        }
    }
    None
}

/// Marks the items behind `#[cfg(test)]` (and `#[cfg(all(test, ...))]`).
fn test_lines(code: &[String]) -> Vec<bool> {
    let mut test = vec![false; code.len()];
    for at in 0..code.len() {
        let line = code[at].trim_start();
        let guarded = line.starts_with("#[cfg(test)]")
            || line.starts_with("#[cfg(all(test")
            || line.starts_with("#[cfg(any(test");
        if line.starts_with("#![cfg(test)]") || line.starts_with("#![cfg(all(test") {
            test.iter_mut().for_each(|t| *t = true);
        }
        if guarded {
            // The attribute's own brackets end before the item starts.
            let column = code[at].find(']').map_or(0, |n| n + 1);
            let last = end_of_item(code, at, column).unwrap_or(at + 1);
            test.iter_mut()
                .take(last + 1)
                .skip(at)
                .for_each(|t| *t = true);
        }
    }
    test
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_leave_the_code() {
        let source = Source::new(
            "let a = \"unsafe // x\"; // NOTE y\n/* unsafe\n /* nested */ z */ b();\nlet c = 'u'; let d: &'a str = r#\"un\"safe\"#; e(b'\\'');",
        );
        assert_eq!(source.code.len(), 4);
        assert!(
            source
                .code
                .iter()
                .all(|line| !line.contains("unsafe") && !line.contains("NOTE"))
        );
        assert!(source.comments[0].contains("NOTE y"));
        assert!(source.code[2].contains("b();"));
        assert!(source.code[3].contains("&'a str") && source.code[3].contains("e(b"));
    }

    #[test]
    fn functions_and_their_lines() {
        let text = "trait T { fn no_body(&self) -> [u8; 3]; }\nfn one() {\n    if x { y(\"}\") }\n}\npub async fn two<T>(a: [u8; 2]) -> u8\nwhere\n    T: Copy,\n{ 1 }\nlet f: fn (u8) = z;";
        let found: Vec<(String, usize, usize)> = Source::new(text)
            .functions()
            .into_iter()
            .map(|f| (f.name, f.first, f.last))
            .collect();
        assert_eq!(found, [("one".to_owned(), 1, 3), ("two".to_owned(), 4, 7)]);
    }

    #[test]
    fn test_modules_are_marked() {
        let source = Source::new(
            "a();\n#[cfg(test)]\nmod tests {\n    b();\n}\nc();\n#[cfg(test)]\nmod other;\nd();",
        );
        assert_eq!(
            source.test,
            [false, true, true, true, true, false, true, true, false]
        );
    }

    #[test]
    fn strings_over_several_lines_keep_the_line_count() {
        let source = Source::new("let a = \"x \\\n  y\";\nb();");
        assert_eq!(source.code.len(), 3);
        assert!(source.code[2].contains("b();"));
    }
}
