//! Sizes above the soft limits that exist today, in `tidy.ratchet`: each may only shrink. A new file or function must keep to the limit; an entry
//! that is not needed any more must go, so that the list is always the truth.

use std::collections::BTreeMap;

use super::Finding;

/// The file, in the project's folder.
pub const FILE: &str = "tidy.ratchet";

/// A file or function above its soft limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Size {
    /// Path, or path and function name: `crates/x/src/a.rs` or `crates/x/src/a.rs:name`.
    pub what: String,
    /// Where it starts, from 1.
    pub line: usize,
    /// Its lines.
    pub lines: usize,
    /// The soft limit that it exceeds.
    pub limit: usize,
}

/// The exceptions: name and lines.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ratchet {
    allowed: BTreeMap<String, usize>,
}

impl Ratchet {
    /// Parses the file.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut allowed = BTreeMap::new();
        for line in text
            .lines()
            .filter(|l| !l.is_empty() && !l.starts_with('#'))
        {
            let entry = line
                .rsplit_once(' ')
                .and_then(|(what, lines)| Some((what.to_owned(), lines.parse().ok()?)));
            let (what, lines) =
                entry.ok_or_else(|| format!("{FILE}: expected `path[:function] lines`: {line}"))?;
            allowed.insert(what, lines);
        }
        Ok(Self { allowed })
    }

    /// The file's text.
    pub fn to_text(&self) -> String {
        let mut out = String::from(
            "# Files and functions above the soft limits (600 and 70 lines): each may only shrink.\n# `cargo xtask tidy --update` writes smaller sizes down.\n",
        );
        for (what, lines) in &self.allowed {
            out.push_str(&format!("{what} {lines}\n"));
        }
        out
    }

    /// Everything that grew or is new, and every entry that is not true any more.
    pub fn check(&self, sizes: &[Size]) -> Vec<Finding> {
        let mut findings = Vec::new();
        for size in sizes {
            let path = size.what.split(':').next().unwrap_or_default().to_owned();
            let message = match self.allowed.get(&size.what) {
                None => format!(
                    "{} has {} lines, the soft limit is {}: split it",
                    size.what, size.lines, size.limit
                ),
                Some(allowed) if size.lines > *allowed => format!(
                    "{} grew from {allowed} to {} lines: it may only shrink",
                    size.what, size.lines
                ),
                Some(_) => continue,
            };
            findings.push(Finding {
                path,
                line: size.line,
                message,
            });
        }
        for (what, lines) in &self.allowed {
            let present = sizes
                .iter()
                .find(|s| s.what == *what)
                .map_or(0, |s| s.lines);
            if present < *lines {
                let message = format!(
                    "{what} is smaller than its entry ({lines} lines): run `cargo xtask tidy --update`"
                );
                findings.push(Finding {
                    path: FILE.into(),
                    line: 0,
                    message,
                });
            }
        }
        findings
    }

    /// The list after a run: smaller sizes, and with `accept` also new and larger ones.
    pub fn updated(&self, sizes: &[Size], accept: bool) -> Self {
        let mut allowed = BTreeMap::new();
        for size in sizes {
            match self.allowed.get(&size.what) {
                Some(before) => allowed.insert(
                    size.what.clone(),
                    if accept {
                        size.lines
                    } else {
                        size.lines.min(*before)
                    },
                ),
                None if accept => allowed.insert(size.what.clone(), size.lines),
                None => None,
            };
        }
        Self { allowed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(what: &str, lines: usize) -> Size {
        Size {
            what: what.into(),
            line: 1,
            lines,
            limit: 70,
        }
    }

    #[test]
    fn may_only_shrink() {
        let ratchet = Ratchet::parse("# note\na.rs 700\nb.rs:f 90\n").expect("valid");
        assert_eq!(ratchet.check(&[size("a.rs", 700), size("b.rs:f", 90)]), []);
        assert_eq!(
            ratchet
                .check(&[size("a.rs", 701), size("b.rs:f", 90)])
                .len(),
            1
        );
        assert_eq!(
            ratchet
                .check(&[size("a.rs", 700), size("b.rs:f", 80)])
                .len(),
            1
        );
        assert_eq!(ratchet.check(&[size("a.rs", 700)]).len(), 1);
        assert_eq!(
            ratchet
                .check(&[size("a.rs", 700), size("b.rs:f", 90), size("c.rs", 601)])
                .len(),
            1
        );
    }

    #[test]
    fn update_shrinks_and_accept_also_grows() {
        let ratchet = Ratchet::parse("a.rs 700\nb.rs 800\n").expect("valid");
        let now = [size("a.rs", 650), size("c.rs", 601)];
        assert_eq!(
            ratchet.updated(&now, false).to_text().lines().last(),
            Some("a.rs 650")
        );
        assert_eq!(
            ratchet.updated(&now, true).to_text().lines().last(),
            Some("c.rs 601")
        );
        assert!(Ratchet::parse("nonsense").is_err());
        assert_eq!(Ratchet::parse(&ratchet.to_text()), Ok(ratchet));
    }
}
