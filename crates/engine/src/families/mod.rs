//! The engine's own commands, one file per family: about the connection, the transaction, the server.

pub mod latency;
pub mod monitor;
pub mod slowlog;
pub mod transactions;

use crate::registry::SessionCommand;

/// All session commands, family by family.
pub const ALL: &[&[SessionCommand]] = &[transactions::COMMANDS];
