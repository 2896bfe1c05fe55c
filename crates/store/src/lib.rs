//! Pantala: store.
