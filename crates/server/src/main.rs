//! Pantala: server.
fn main() {}
