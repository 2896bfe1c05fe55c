//! Pantala: xtask.
fn main() {}
