//! The table of intended differences: `command | reply of redis-server | our reply | reason`, with `*` in the first three. A difference that no
//! line covers is a failure; a line without a reason is one too.

/// One intended difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deviation {
    command: String,
    theirs: String,
    ours: String,
    /// Why it is intended.
    pub reason: String,
}

/// Parses the table; an error names the line.
pub fn parse(text: &str) -> Result<Vec<Deviation>, String> {
    let mut table = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let parts: Vec<&str> = line.split(" | ").map(str::trim).collect();
        match parts[..] {
            [command, theirs, ours, reason] if reason.len() > 5 => table.push(Deviation {
                command: command.to_uppercase(),
                theirs: theirs.into(),
                ours: ours.into(),
                reason: reason.into(),
            }),
            _ => {
                return Err(format!(
                    "line {}: expected `command | theirs | ours | reason`: {line}",
                    number + 1
                ));
            }
        }
    }
    Ok(table)
}

impl Deviation {
    /// True if this line covers the difference.
    pub fn covers(&self, command: &str, theirs: &str, ours: &str) -> bool {
        wild(&self.command, &command.to_uppercase())
            && wild(&self.theirs, theirs)
            && wild(&self.ours, ours)
    }
}

/// Matches `*` against anything; every other character stands for itself.
pub fn wild(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards() {
        for (pattern, text, expect) in [
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "ab", false),
            ("a", "ab", false),
            ("*b*", "abc", true),
            ("aa*aa", "aaa", false),
        ] {
            assert_eq!(wild(pattern, text), expect, "{pattern} {text}");
        }
    }

    #[test]
    fn a_line_needs_a_reason() {
        assert!(
            parse("GET * | a | b | because of this")
                .is_ok_and(|t| t.len() == 1 && t[0].covers("get k", "a", "b"))
        );
        assert!(parse("GET * | a | b |  ").is_err());
        assert!(parse("GET").is_err());
        assert_eq!(parse("# note\n\n"), Ok(Vec::new()));
    }
}
