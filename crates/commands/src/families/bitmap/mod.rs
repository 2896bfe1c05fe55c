//! Commands on bitmaps. The semantics are in `pantala_types::bitmap`.

mod bits;
mod fields;
mod operation;

use super::string::shared::longest_string;
use crate::{Command, Error};
use pantala_config::Settings;
use pantala_protocol::numbers;

/// All bitmap commands.
pub const COMMANDS: &[Command] = &[
    bits::SETBIT,
    bits::GETBIT,
    bits::BITCOUNT,
    bits::BITPOS,
    operation::BITOP,
    fields::BITFIELD,
    fields::BITFIELD_RO,
];

/// A bit offset, bounded by the longest string that may be.
fn bit_offset(arg: &[u8], settings: &Settings) -> Result<u64, Error> {
    checked_offset(numbers::parse_i64(arg), settings)
}

fn checked_offset(offset: Option<i64>, settings: &Settings) -> Result<u64, Error> {
    offset
        .and_then(|offset| u64::try_from(offset).ok())
        .filter(|offset| offset / 8 < longest_string(settings))
        .ok_or(Error::text(
            "ERR bit offset is not an integer or out of range",
        ))
}
