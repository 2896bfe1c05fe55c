//! Pantala: engine.
