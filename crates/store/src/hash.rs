//! The one hash of a key, and what its bits mean.
//!
//! 64 bits under a secret of the process: the top bits choose the shard, the next ones the place in the shard's table. Nothing
//! that leaves the process may depend on it, except SCAN cursors, which hold for one run.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use std::hash::{BuildHasher, Hasher as _};

/// The hash of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct KeyHash(pub(crate) u64);

impl KeyHash {
    /// All 64 bits, for other uses of the same hash (waiters, tracking tables).
    #[inline]
    #[must_use]
    pub fn bits(self) -> u64 {
        self.0
    }
}

/// A key with its hash, which is computed once per command.
#[derive(Clone, Copy, Debug)]
pub struct Key<'k> {
    /// The key.
    pub bytes: &'k [u8],
    /// Its hash in this store.
    pub hash: KeyHash,
}

/// The hash function with the secret of the process.
pub(crate) struct Hasher {
    secrets: RapidSecrets,
}

impl Hasher {
    /// A fixed seed repeats a run; without one the seed is random.
    pub(crate) fn new(seed: Option<u64>) -> Self {
        // The standard library's hash keys come from the system's random source.
        let seed = seed.unwrap_or_else(|| {
            std::collections::hash_map::RandomState::new()
                .build_hasher()
                .finish()
        });
        Self {
            secrets: RapidSecrets::seed(seed),
        }
    }

    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        rapidhash_v3_seeded(key, &self.secrets)
    }
}
