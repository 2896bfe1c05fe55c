//! Values of single options: parsing them as Redis parses them, and writing them in the one canonical form.
//!
//! Parsing never guesses: what Redis refuses is refused with Redis's words. Writing and parsing are each other's
//! inverse (tested for every option).

use crate::Settings;
use crate::spec::{Kind, OptionSpec, Percent};

/// Whether this is the first line of an option in a load, or one that adds to an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrence {
    /// The first: what was there before is a default, and goes.
    First,
    /// A later line of an option whose lines add up.
    Again,
}

/// A type that a field of [`Settings`] may have.
pub(crate) trait Value {
    /// Takes over the words of one line, or leaves itself unchanged and says why.
    fn update(
        &mut self,
        spec: &OptionSpec,
        words: &[String],
        occurrence: Occurrence,
    ) -> Result<(), String>;
    /// The canonical form.
    fn text(&self, spec: &OptionSpec) -> String;
}

/// The only word, for options that take one.
pub(crate) fn single(words: &[String]) -> Result<&str, String> {
    match words {
        [word] => Ok(word),
        _ => Err("wrong number of arguments".to_owned()),
    }
}

impl Value for bool {
    fn update(&mut self, _: &OptionSpec, words: &[String], _: Occurrence) -> Result<(), String> {
        *self = parse_bool(single(words)?)?;
        Ok(())
    }

    fn text(&self, _: &OptionSpec) -> String {
        yes_no(*self).to_owned()
    }
}

/// `yes` or `no`.
pub(crate) fn yes_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

pub(crate) fn parse_bool(word: &str) -> Result<bool, String> {
    if word.eq_ignore_ascii_case("yes") {
        Ok(true)
    } else if word.eq_ignore_ascii_case("no") {
        Ok(false)
    } else {
        Err("argument must be 'yes' or 'no'".to_owned())
    }
}

impl Value for String {
    fn update(&mut self, _: &OptionSpec, words: &[String], _: Occurrence) -> Result<(), String> {
        *self = words.join(" ");
        Ok(())
    }

    fn text(&self, _: &OptionSpec) -> String {
        self.clone()
    }
}

macro_rules! number_values {
    ($($number:ty),*) => {$(
        impl Value for $number {
            fn update(&mut self, spec: &OptionSpec, words: &[String], _: Occurrence) -> Result<(), String> {
                let number = parse_number(spec.kind, single(words)?)?;
                *self = <$number>::try_from(number).map_err(|_| NOT_AN_INTEGER.to_owned())?;
                Ok(())
            }

            fn text(&self, spec: &OptionSpec) -> String {
                if matches!(spec.kind, Kind::Octal { .. }) { format!("{self:o}") } else { self.to_string() }
            }
        }
    )*};
}
number_values!(u8, u16, u32, u64, i32, i64);

const NOT_AN_INTEGER: &str = "argument couldn't be parsed into an integer";

/// Parses a number of a numeric kind and checks its limits.
fn parse_number(kind: Kind, word: &str) -> Result<i128, String> {
    match kind {
        Kind::Integer { min, max } => {
            let number = parse_integer(word).ok_or(NOT_AN_INTEGER)?;
            if (min..=max).contains(&number) {
                Ok(number)
            } else {
                Err(format!(
                    "argument must be between {min} and {max} inclusive"
                ))
            }
        }
        Kind::Octal { max } => {
            let number = i128::from_str_radix(word, 8)
                .map_err(|_| "argument couldn't be parsed as an octal number".to_owned())?;
            if (0..=i128::from(max)).contains(&number) {
                Ok(number)
            } else {
                Err(format!("argument must be between 0 and {max:o} inclusive"))
            }
        }
        Kind::Memory { .. } => match parse_memory(kind, word)? {
            MemorySize::Bytes(bytes) => Ok(i128::from(bytes)),
            MemorySize::Percent(_) => Err("argument must be a memory value".to_owned()),
        },
        _ => Err(NOT_AN_INTEGER.to_owned()),
    }
}

/// A 64-bit decimal number in its shortest form: no plus, no leading zeros, no blanks, no `-0`.
fn parse_integer(word: &str) -> Option<i128> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let canonical = match digits.as_bytes() {
        b"0" => digits.len() == word.len(),
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !canonical {
        return None;
    }
    let number: i64 = word.parse().ok()?;
    Some(i128::from(number))
}

/// An amount of memory: bytes, or a share of something that the option names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemorySize {
    /// A number of bytes.
    Bytes(u64),
    /// Per cent, 0 to 100.
    Percent(u8),
}

impl Default for MemorySize {
    fn default() -> Self {
        MemorySize::Bytes(0)
    }
}

impl MemorySize {
    /// In bytes, where `whole_bytes` is what a percentage is a share of.
    pub fn bytes(self, whole_bytes: u64) -> u64 {
        match self {
            MemorySize::Bytes(bytes) => bytes,
            // Divided first, so that it cannot overflow; the error is below 100 bytes.
            MemorySize::Percent(percent) => whole_bytes / 100 * u64::from(percent),
        }
    }
}

impl Value for MemorySize {
    fn update(&mut self, spec: &OptionSpec, words: &[String], _: Occurrence) -> Result<(), String> {
        *self = parse_memory(spec.kind, single(words)?)?;
        Ok(())
    }

    fn text(&self, _: &OptionSpec) -> String {
        match self {
            MemorySize::Bytes(bytes) => bytes.to_string(),
            MemorySize::Percent(percent) => format!("{percent}%"),
        }
    }
}

/// Parses a memory size of kind `Memory` and checks its limits.
fn parse_memory(kind: Kind, word: &str) -> Result<MemorySize, String> {
    let Kind::Memory { min, max, percent } = kind else {
        return Err(NOT_AN_INTEGER.to_owned());
    };
    if let Some(bytes) = memory_bytes(word) {
        return if (min..=max).contains(&bytes) {
            Ok(MemorySize::Bytes(bytes))
        } else {
            Err(format!(
                "argument must be between {min} and {max} inclusive"
            ))
        };
    }
    if percent != Percent::No
        && let Some(number) = word.strip_suffix('%').and_then(parse_integer)
        && number >= 0
    {
        return match u8::try_from(number) {
            Ok(number @ 0..=100) => Ok(MemorySize::Percent(number)),
            _ => Err("percentage argument must be less or equal to 100".to_owned()),
        };
    }
    Err(match percent {
        Percent::Redis => "argument must be a memory or percent value".to_owned(),
        Percent::No | Percent::Ours => "argument must be a memory value".to_owned(),
    })
}

/// Bytes of a text such as `100`, `1k`, `64MB`; `None` if it is not one or exceeds 64 bits.
pub(crate) fn memory_bytes(word: &str) -> Option<u64> {
    let unit_at = word
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(word.len());
    let (digits, unit) = word.split_at(unit_at);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// A memory size in the shortest exact form for a file: `1gb`, `64mb`, `100`.
pub(crate) fn short_memory(bytes: u64) -> String {
    for (unit, shift) in [("gb", 30), ("mb", 20), ("kb", 10)] {
        if bytes != 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// The index of the chosen word.
pub(crate) fn parse_choice(names: &[&str], word: &str) -> Result<usize, String> {
    names
        .iter()
        .position(|name| name.eq_ignore_ascii_case(word))
        .ok_or_else(|| {
            format!(
                "argument(s) must be one of the following: {}",
                names.join(", ")
            )
        })
}

/// Checks words against a kind and gives their canonical form; for options that are stored as text only.
pub(crate) fn canonical(spec: &OptionSpec, words: &[String]) -> Result<String, String> {
    match spec.kind {
        Kind::Bool => Ok(yes_no(parse_bool(single(words)?)?).to_owned()),
        Kind::Integer { .. } => Ok(parse_number(spec.kind, single(words)?)?.to_string()),
        Kind::Octal { .. } => Ok(format!("{:o}", parse_number(spec.kind, single(words)?)?)),
        Kind::Memory { .. } => Ok(parse_memory(spec.kind, single(words)?)?.text(spec)),
        Kind::Choice(names) => Ok(names[parse_choice(names, single(words)?)?].to_owned()),
        Kind::Text | Kind::Words(_) => Ok(words.join(" ")),
    }
}

/// Reads an option that has no field of its own.
pub(crate) fn read_stored(settings: &Settings, spec: &OptionSpec) -> String {
    settings
        .stored(spec.name)
        .unwrap_or(spec.default)
        .to_owned()
}

/// Writes an option that has no field of its own.
pub(crate) fn write_stored(
    settings: &mut Settings,
    spec: &OptionSpec,
    words: &[String],
    _: Occurrence,
) -> Result<(), String> {
    let text = canonical(spec, words)?;
    settings.store(spec, text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("100", 100),
            ("1b", 1),
            ("1K", 1000),
            ("1kB", 1024),
            ("2m", 2_000_000),
            ("2mb", 2 << 20),
        ] {
            assert_eq!(memory_bytes(text), Some(bytes), "{text}");
        }
        assert_eq!(memory_bytes("3g"), Some(3_000_000_000));
        assert_eq!(memory_bytes("3gb"), Some(3 << 30));
        assert_eq!(memory_bytes("18446744073709551615"), Some(u64::MAX));
        for bad in [
            "",
            "mb",
            "-1",
            "1tb",
            "1 mb",
            "1.5gb",
            "18446744073709551616",
            "99999999999gb",
            "+1",
        ] {
            assert_eq!(memory_bytes(bad), None, "{bad}");
        }
        assert_eq!(short_memory(1 << 30), "1gb");
        assert_eq!(short_memory(3 << 20), "3mb");
        assert_eq!(short_memory(1025), "1025");
        assert_eq!(short_memory(0), "0");
    }

    #[test]
    fn integers_are_strict() {
        assert_eq!(parse_integer("0"), Some(0));
        assert_eq!(parse_integer("-12"), Some(-12));
        assert_eq!(
            parse_integer("9223372036854775807"),
            Some(i128::from(i64::MAX))
        );
        for bad in [
            "",
            "-",
            "-0",
            "00",
            "01",
            "+1",
            " 1",
            "1 ",
            "1a",
            "9223372036854775808",
            "é",
        ] {
            assert_eq!(parse_integer(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_percentage_is_resolved_without_overflow() {
        assert_eq!(
            MemorySize::Percent(100).bytes(u64::MAX),
            u64::MAX / 100 * 100
        );
        assert_eq!(MemorySize::Percent(50).bytes(2000), 1000);
        assert_eq!(MemorySize::Bytes(7).bytes(0), 7);
    }
}
