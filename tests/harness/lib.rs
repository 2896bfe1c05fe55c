//! What the black-box suites share: starting and stopping servers, clients for both protocols, seeded generators, comparison of replies,
//! shrinking, and a linearisability checker. It must never depend on a crate of the server: everything is seen from outside.

pub mod compare;
pub mod deviations;
pub mod differential;
pub mod generate;
pub mod grammar;
pub mod linear;
pub mod memcache;
pub mod quote;
pub mod resp;
pub mod rng;
pub mod server;
pub mod shrink;
pub mod values;
