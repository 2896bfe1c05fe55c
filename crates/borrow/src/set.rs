//! A sorted set of shard ids: which shards a command needs. Up to eight ids live inline, more on the heap, and a scratch set keeps
//! its memory from command to command. It must never be read between `push` and `seal`: only a sealed set is in order.

/// The number of a shard, `0..Shards::len()`.
pub type ShardId = u16;

/// Ids that fit without allocation: MGET or MSET of up to eight keys, RENAME, most transactions.
const INLINE: usize = 8;

/// Sorted, deduplicated shard ids. Made whole (`one`, `all`, `from_iter`) or in steps: `clear`, `push`…, `seal`.
#[derive(Clone, Debug, Default)]
pub struct ShardSet {
    inline: [ShardId; INLINE],
    inline_len: u8,
    /// False between a `push` that broke the order and `seal`.
    unsealed: bool,
    /// Holds all ids as soon as there are more than `INLINE`; else empty (its memory is kept).
    spill: Vec<ShardId>,
}

impl ShardSet {
    /// The empty set.
    #[inline]
    pub const fn new() -> Self {
        Self {
            inline: [0; INLINE],
            inline_len: 0,
            unsealed: false,
            spill: Vec::new(),
        }
    }

    /// The set of one shard.
    #[inline]
    pub const fn one(id: ShardId) -> Self {
        let mut inline = [0; INLINE];
        inline[0] = id;
        Self {
            inline,
            inline_len: 1,
            unsealed: false,
            spill: Vec::new(),
        }
    }

    /// The set of all shards `0..count`.
    pub fn all(count: usize) -> Self {
        let last = ShardId::try_from(count).unwrap_or(ShardId::MAX);
        (0..last).collect()
    }

    /// An empty set with room for `count` ids.
    pub fn with_capacity(count: usize) -> Self {
        let mut set = Self::new();
        if count > INLINE {
            set.spill.reserve_exact(count);
        }
        set
    }

    /// Empties the set and keeps its memory.
    #[inline]
    pub fn clear(&mut self) {
        self.inline_len = 0;
        self.unsealed = false;
        self.spill.clear();
    }

    /// Adds an id in any order; `seal` must follow before the set is used.
    #[inline]
    pub fn push(&mut self, id: ShardId) {
        match self.as_slice().last() {
            Some(&last) if last == id => return,
            Some(&last) if last > id => self.unsealed = true,
            _ => {}
        }
        let len = usize::from(self.inline_len);
        if self.spill.is_empty() && len < INLINE {
            self.inline[len] = id;
            self.inline_len += 1;
        } else {
            self.push_spilled(id);
        }
    }

    /// Sorts and removes duplicates. Costs nothing when the ids came in order.
    #[inline]
    pub fn seal(&mut self) {
        if self.unsealed {
            self.sort();
        }
    }

    /// Adds an id to a sealed set, which stays sealed. False if it was there.
    pub fn insert(&mut self, id: ShardId) -> bool {
        if self.contains(id) {
            return false;
        }
        self.push(id);
        self.seal();
        true
    }

    /// Number of shards.
    #[inline]
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the (sealed) set has this id.
    #[inline]
    pub fn contains(&self, id: ShardId) -> bool {
        if self.spill.is_empty() {
            self.inline[..usize::from(self.inline_len)].contains(&id)
        } else {
            self.spill.binary_search(&id).is_ok()
        }
    }

    /// The ids in ascending order.
    #[inline]
    pub fn iter(&self) -> std::iter::Copied<std::slice::Iter<'_, ShardId>> {
        self.as_slice().iter().copied()
    }

    /// The ids in ascending order.
    #[inline]
    pub fn as_slice(&self) -> &[ShardId] {
        if self.spill.is_empty() {
            &self.inline[..usize::from(self.inline_len)]
        } else {
            &self.spill
        }
    }

    /// Whether the set may be used as it is.
    #[inline]
    pub(crate) fn is_sealed(&self) -> bool {
        !self.unsealed
    }

    #[cold]
    fn push_spilled(&mut self, id: ShardId) {
        if self.spill.is_empty() {
            self.spill.extend_from_slice(&self.inline);
            self.inline_len = 0;
        }
        self.spill.push(id);
    }

    fn sort(&mut self) {
        self.unsealed = false;
        if !self.spill.is_empty() {
            self.spill.sort_unstable();
            self.spill.dedup();
            return;
        }
        let ids = &mut self.inline[..usize::from(self.inline_len)];
        ids.sort_unstable();
        let mut kept = 0;
        for at in 0..ids.len() {
            if kept == 0 || ids[kept - 1] != ids[at] {
                ids[kept] = ids[at];
                kept += 1;
            }
        }
        self.inline_len = kept as u8;
    }
}

impl FromIterator<ShardId> for ShardSet {
    fn from_iter<I: IntoIterator<Item = ShardId>>(ids: I) -> Self {
        let mut set = Self::new();
        set.extend(ids);
        set
    }
}

impl Extend<ShardId> for ShardSet {
    /// Adds ids in any order and seals.
    fn extend<I: IntoIterator<Item = ShardId>>(&mut self, ids: I) {
        for id in ids {
            self.push(id);
        }
        self.seal();
    }
}

impl<'a> IntoIterator for &'a ShardSet {
    type Item = ShardId;
    type IntoIter = std::iter::Copied<std::slice::Iter<'a, ShardId>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for ShardSet {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for ShardSet {}
