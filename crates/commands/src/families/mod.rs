//! One file per family of commands. Each offers its table of [`crate::Command`]s.

pub mod bitmap;
pub mod hyperloglog;
pub mod string;

use crate::Command;

/// All data commands, family by family.
pub const ALL: &[&[Command]] = &[string::COMMANDS, bitmap::COMMANDS, hyperloglog::COMMANDS];
