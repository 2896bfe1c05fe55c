//! Counting: what `incr`, `decr` and `ma` have in common.
//!
//! Numbers are unsigned and have 64 bits: adding wraps around, subtracting ends at 0. Memcached overwrites a number in place and pads
//! one that became shorter with blanks, which its clients can see. Here the number is stored as it is, so that Redis's clients can
//! count on, and the blanks are only noted beside it.

use super::announce;
use super::expiry::Expiry;
use super::held::Env;
use super::item::{Item, PAD_MAX, WrongType, put_meta, with_pad};
use pantala_commands::Effects;
use pantala_store::{McMeta, Slot};
use pantala_types::string::{self, StrRef};

/// How much of a text is looked at: 20 digits, and some blanks that clients may have put before them.
const TEXT_MAX: usize = 64;

/// By how much, and what else becomes of the item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) decrement: bool,
    pub(super) delta: u64,
    /// The CAS number to compare; 0 for none.
    pub(super) cas: u64,
    /// The CAS number to give.
    pub(super) new_cas: Option<u64>,
    /// The client wants to know the CAS number.
    pub(super) wants_cas: bool,
    /// The new expiry.
    pub(super) expiry: Option<Expiry>,
}

/// A number that was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Changed {
    pub(super) value: u64,
    /// 0 when nobody asked for it.
    pub(super) cas: u64,
    pub(super) expiry_before: Expiry,
}

/// Why a number was not changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    NotFound,
    CasMismatch,
    NotANumber,
    WrongType,
}

/// Changes the number in `slot`.
pub(super) fn change(
    env: Env<'_>,
    fx: &mut Effects,
    slot: &mut Slot<'_>,
    change: &Change,
) -> Result<Changed, Refused> {
    let item = Item::in_slot(slot)
        .map_err(|WrongType| Refused::WrongType)?
        .ok_or(Refused::NotFound)?;
    let len = item.len();
    if len == 0 {
        return Err(Refused::NotANumber);
    }
    if change.cas != 0 && change.cas != item.mc.cas {
        return Err(Refused::CasMismatch);
    }
    let old = number(&item.value).ok_or(Refused::NotANumber)?;
    let value = if change.decrement {
        old.saturating_sub(change.delta)
    } else {
        old.wrapping_add(change.delta)
    };
    let mut text = value.to_string();
    // Memcached makes a new item when the number needs more room.
    let is_new = text.len() > len;
    let pad = len.saturating_sub(text.len());
    if pad > PAD_MAX {
        // What stood here was more than a number, so Redis's clients could not count with it before either.
        text.extend(std::iter::repeat_n(' ', pad));
    }
    let (fetched, expiry_before) = (item.fetched, item.expiry);
    let mc = McMeta {
        flags: item.mc.flags,
        cas: match change.new_cas {
            Some(cas) => cas,
            None if change.wants_cas => env.store().next_cas(),
            None => 0,
        },
        state: match pad {
            _ if is_new => 0,
            0..=PAD_MAX => with_pad(item.mc.state, pad),
            _ => with_pad(item.mc.state, 0),
        },
    };
    let expiry = change.expiry.unwrap_or(expiry_before);
    if expiry == Expiry::Past {
        slot.remove();
        announce::removed(fx, slot.key());
    } else {
        string::store(slot, text.as_bytes(), put_meta(expiry, mc));
        if fetched && !is_new {
            slot.set_fetched();
        }
        announce::changed(fx, slot.key(), text.as_bytes(), "incrby");
        if expiry != expiry_before {
            announce::expiry(fx, slot.key(), expiry.at_ms());
        }
    }
    Ok(Changed {
        value,
        cas: mc.cas,
        expiry_before,
    })
}

/// A stored string as a number.
fn number(value: &StrRef<'_>) -> Option<u64> {
    if let StrRef::Int(number) = *value {
        return u64::try_from(number).ok();
    }
    let mut text = [0; TEXT_MAX];
    let text = &mut text[..value.len().min(TEXT_MAX)];
    value.read_at(0, text);
    parse(text)
}

/// A number as memcached reads it, which is C's `strtoull`: blanks and a sign before it, and a blank or nothing behind it.
fn parse(text: &[u8]) -> Option<u64> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r');
    let blanks = text.iter().take_while(|byte| is_space(byte)).count();
    let (negative, digits) = match &text[blanks..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let count = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if count == 0
        || digits
            .get(count)
            .is_some_and(|byte| !is_space(byte) && *byte != 0)
    {
        return None;
    }
    let magnitude = digits[..count].iter().try_fold(0u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })?;
    let value = if negative {
        magnitude.wrapping_neg()
    } else {
        magnitude
    };
    // As there: a minus sign is refused only where the result looks negative.
    (value <= i64::MAX as u64 || !negative).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_in_c() {
        for (text, want) in [
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("-1", None),
            ("-18446744073709551615", Some(1)),
            (" 5", Some(5)),
            ("+5", Some(5)),
            ("5 ", Some(5)),
            ("5 x", Some(5)),
            ("5x", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(parse(text.as_bytes()), want, "{text:?}");
        }
    }
}
