//! Pantala: config.
