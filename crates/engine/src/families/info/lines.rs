//! The text of `INFO`, line by line.

use std::fmt::{Display, Write};

/// A text that grows by headings and fields.
#[derive(Default)]
pub struct Lines(String);

impl Lines {
    /// Begins a section.
    pub fn heading(&mut self, title: &str) {
        let gap = if self.0.is_empty() { "" } else { "\r\n" };
        self.line(format_args!("{gap}# {title}"));
    }

    /// `name:value`.
    pub fn field(&mut self, name: impl Display, value: impl Display) {
        self.line(format_args!("{name}:{value}"));
    }

    /// A size in bytes, and under `<name>_human` in a form for people.
    pub fn size(&mut self, name: &str, bytes: u64) {
        self.field(name, bytes);
        self.line(format_args!("{name}_human:{}", human_bytes(bytes)));
    }

    /// All of it.
    pub fn into_text(self) -> String {
        self.0
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = write!(self.0, "{text}\r\n");
    }
}

/// `894.84K`, as Redis shows sizes to people.
pub fn human_bytes(bytes: u64) -> String {
    if bytes < 1 << 10 {
        return format!("{bytes}B");
    }
    let units = ["K", "M", "G", "T", "P", "E"];
    let mut value = bytes as f64 / 1_024.0;
    let mut unit = 0;
    while value >= 1_024.0 && unit + 1 < units.len() {
        value /= 1_024.0;
        unit += 1;
    }
    format!("{value:.2}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_as_redis_shows_them() {
        let table = [
            (0, "0B"),
            (1_023, "1023B"),
            (1_024, "1.00K"),
            (916_320, "894.84K"),
            (25_276_510_208, "23.54G"),
            (u64::MAX, "16.00E"),
        ];
        for (bytes, text) in table {
            assert_eq!(human_bytes(bytes), text);
        }
    }
}
