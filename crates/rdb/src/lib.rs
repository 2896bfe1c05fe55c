//! Pantala: rdb.
