//! Who may touch which shard, and when.
