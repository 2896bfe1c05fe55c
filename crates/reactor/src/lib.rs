//! Pantala: reactor.
