//! Pantala: bench.
fn main() {}
