//! The numbers that tell which value follows.

/// A value type of RDB. Several numbers may mean one type, for it was stored in several ways over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the types")]
pub enum ValueType {
    String,
    List,
    Set,
    ZSet,
    Hash,
    Stream,
    Module,
}

impl ValueType {
    /// The type of a number, as far as Redis (to 8.x) and Valkey (to 9.x) have given them out.
    #[must_use]
    pub const fn of(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::String,
            1 | 10 | 14 | 18 => Self::List,
            2 | 11 | 20 => Self::Set,
            3 | 5 | 12 | 17 => Self::ZSet,
            // 22 to 25: with expiring fields (22 in Valkey's numbering too).
            4 | 9 | 13 | 16 | 22..=25 => Self::Hash,
            6 | 7 => Self::Module,
            15 | 19 | 21 | 26 | 27 => Self::Stream,
            _ => return None,
        })
    }

    /// Its name, as `TYPE` answers it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::List => "list",
            Self::Set => "set",
            Self::ZSet => "zset",
            Self::Hash => "hash",
            Self::Stream => "stream",
            Self::Module => "module",
        }
    }
}
