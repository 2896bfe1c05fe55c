//! Pantala: commands.
