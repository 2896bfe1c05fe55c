//! The expiry options `EX`, `PX`, `EXAT` and `PXAT`.

use super::shared::integer;
use crate::Error;

/// How an expiry is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Seconds from now.
    Seconds,
    /// Milliseconds from now.
    Millis,
    /// Unix time in seconds.
    SecondsAt,
    /// Unix time in milliseconds.
    MillisAt,
}

impl Unit {
    /// The unit of an option's word.
    pub fn of(word: &[u8]) -> Option<Self> {
        const WORDS: [(&[u8], Unit); 4] = [
            (b"EX", Unit::Seconds),
            (b"PX", Unit::Millis),
            (b"EXAT", Unit::SecondsAt),
            (b"PXAT", Unit::MillisAt),
        ];
        WORDS
            .iter()
            .find(|(name, _)| word.eq_ignore_ascii_case(name))
            .map(|(_, unit)| *unit)
    }
}

/// An expiry as the client gave it.
#[derive(Clone, Copy, Debug)]
pub struct Expire<'a> {
    /// What the number means.
    pub unit: Unit,
    /// The number, not parsed yet: some commands look at the key first.
    pub number: &'a [u8],
}

impl Expire<'_> {
    /// The expiry as unix time in ms; `command` is named in the error.
    pub fn at_ms(self, now_ms: i64, command: &str) -> Result<i64, Error> {
        let number = integer(self.number)?;
        let ms = match self.unit {
            Unit::Seconds | Unit::SecondsAt => number.checked_mul(1000),
            Unit::Millis | Unit::MillisAt => Some(number),
        };
        let at = match self.unit {
            Unit::Seconds | Unit::Millis => ms.and_then(|ms| ms.checked_add(now_ms)),
            Unit::SecondsAt | Unit::MillisAt => ms,
        };
        at.filter(|at| number > 0 && *at > 0)
            .ok_or_else(|| Error::invalid_expire(command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let at = |unit, number: &str| {
            Expire {
                unit,
                number: number.as_bytes(),
            }
            .at_ms(1000, "set")
        };
        assert_eq!(at(Unit::Seconds, "5"), Ok(6000));
        assert_eq!(at(Unit::Millis, "5"), Ok(1005));
        assert_eq!(at(Unit::SecondsAt, "5"), Ok(5000));
        assert_eq!(at(Unit::MillisAt, "5"), Ok(5));
        let invalid = Err(Error::invalid_expire("set"));
        assert_eq!(at(Unit::Seconds, "0"), invalid);
        assert_eq!(at(Unit::MillisAt, "-1"), invalid);
        assert_eq!(at(Unit::Seconds, "9223372036854775807"), invalid);
        assert_eq!(at(Unit::Millis, "9223372036854775807"), invalid);
        assert_eq!(at(Unit::MillisAt, "9223372036854775807"), Ok(i64::MAX));
        assert_eq!(at(Unit::Seconds, "x"), Err(Error::NotAnInteger));
    }
}
