//! One file per family of commands. Each offers its table of [`crate::Command`]s.

pub mod bitmap;
pub mod generic;
pub mod hyperloglog;
pub mod keyspace;
pub mod object;
pub mod sort;
pub mod string;

use crate::Command;

/// All data commands, family by family.
pub const ALL: &[&[Command]] = &[
    string::COMMANDS,
    bitmap::COMMANDS,
    hyperloglog::COMMANDS,
    generic::COMMANDS,
    keyspace::COMMANDS,
    object::COMMANDS,
    sort::COMMANDS,
];
