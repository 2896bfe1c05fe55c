//! One file per family of commands. Each offers its table of [`crate::Command`]s.

use crate::Command;

/// All data commands, family by family.
pub const ALL: &[&[Command]] = &[];
