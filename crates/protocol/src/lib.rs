//! Pantala: protocol.
