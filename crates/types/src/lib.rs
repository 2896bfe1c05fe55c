//! Pantala: types.
