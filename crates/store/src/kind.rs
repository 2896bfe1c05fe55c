//! What a value is (its type) and how its bytes are laid out (its encoding), as far as the store must know.

/// The type of a value, four bits in the entry. The store treats all types alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// A string.
    String = 0,
    /// A list.
    List = 1,
    /// A set.
    Set = 2,
    /// A sorted set.
    ZSet = 3,
    /// A hash.
    Hash = 4,
    /// A stream.
    Stream = 5,
    /// Free for a later type.
    Extra6 = 6,
    /// Free for a later type.
    Extra7 = 7,
    /// Free for a later type.
    Extra8 = 8,
    /// Free for a later type.
    Extra9 = 9,
    /// Free for a later type.
    Extra10 = 10,
    /// Free for a later type.
    Extra11 = 11,
    /// Free for a later type.
    Extra12 = 12,
    /// Free for a later type.
    Extra13 = 13,
    /// Free for a later type.
    Extra14 = 14,
    /// Free for a later type.
    Extra15 = 15,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 16] = [
        Self::String,
        Self::List,
        Self::Set,
        Self::ZSet,
        Self::Hash,
        Self::Stream,
        Self::Extra6,
        Self::Extra7,
        Self::Extra8,
        Self::Extra9,
        Self::Extra10,
        Self::Extra11,
        Self::Extra12,
        Self::Extra13,
        Self::Extra14,
        Self::Extra15,
    ];

    /// The kind of a number; only the low four bits count.
    #[inline]
    #[must_use]
    pub fn from_bits(bits: u8) -> Self {
        Self::ALL[(bits & 15) as usize]
    }
}

/// How a value's bytes are laid out: 0 to 15, the meaning belongs to the type. From 8 up the payload is a tree root, which
/// the store itself frees, copies and counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Encoding(u8);

impl Encoding {
    /// The plain encoding 0.
    pub const RAW: Self = Self(0);
    /// The first encoding whose payload is a tree root.
    pub const TREE: Self = Self(8);

    /// The encoding of a number; only the low four bits count.
    #[inline]
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self(number & 15)
    }

    /// Its number.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Whether the payload is a tree root.
    #[inline]
    #[must_use]
    pub const fn is_tree(self) -> bool {
        self.0 >= Self::TREE.0
    }
}
