//! The engine's own commands, one file per family: about the connection, the transaction, the server.

pub mod acl;
pub mod client;
pub mod command;
pub mod config;
pub mod connection;
pub mod debug;
pub mod help;
pub mod info;
pub mod latency;
pub mod later;
pub mod lolwut;
pub mod memory;
pub mod monitor;
pub mod pubsub;
pub mod replication;
pub mod server;
pub mod slowlog;
pub mod state;
pub mod transactions;

use crate::registry::SessionCommand;

/// All session commands, family by family.
pub const ALL: &[&[SessionCommand]] = &[
    client::COMMANDS,
    connection::COMMANDS,
    monitor::COMMANDS,
    transactions::COMMANDS,
    acl::COMMANDS,
    command::COMMANDS,
    config::COMMANDS,
    debug::COMMANDS,
    info::COMMANDS,
    latency::COMMANDS,
    lolwut::COMMANDS,
    memory::COMMANDS,
    pubsub::COMMANDS,
    replication::COMMANDS,
    server::COMMANDS,
    slowlog::COMMANDS,
];
