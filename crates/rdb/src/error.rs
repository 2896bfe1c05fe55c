//! What can be wrong with encoded bytes.

use std::fmt;

/// Why bytes could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdbError {
    /// The payload is too short for its footer.
    NoFooter,
    /// The payload was written in a version that is not read.
    Version {
        /// What it says.
        found: u16,
    },
    /// The checksum does not belong to these bytes.
    Checksum,
    /// The bytes end within a value.
    Truncated,
    /// Bytes are left behind the value.
    TrailingBytes,
    /// A length has a form that does not exist, or an encoded string stands where a length is expected.
    BadLength,
    /// A string has an encoding that does not exist.
    BadStringEncoding(u8),
    /// The compressed bytes do not yield what they announce.
    BadCompression,
    /// A string is longer than allowed.
    TooLong {
        /// Its length in bytes.
        len: u64,
        /// The limit in bytes.
        limit_bytes: u64,
    },
    /// No version of RDB knows this type number.
    UnknownType(u8),
    /// A type that exists in RDB, but not here.
    UnsupportedType(&'static str),
}

impl RdbError {
    /// Whether it is the payload's frame that is wrong rather than the value in it.
    pub const fn is_frame(self) -> bool {
        matches!(self, Self::NoFooter | Self::Version { .. } | Self::Checksum)
    }
}

impl fmt::Display for RdbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFooter => write!(
                f,
                "expected a payload with version and checksum, got fewer bytes than these take"
            ),
            Self::Version { found } => write!(
                f,
                "expected version 1 to {}, got {found}",
                crate::VERSION_MAX
            ),
            Self::Checksum => write!(f, "the checksum does not belong to the bytes before it"),
            Self::Truncated => write!(f, "the bytes end within a value"),
            Self::TrailingBytes => write!(f, "bytes are left behind the value"),
            Self::BadLength => write!(f, "expected a length, got a form that is none"),
            Self::BadStringEncoding(found) => {
                write!(f, "expected a string encoding from 0 to 3, got {found}")
            }
            Self::BadCompression => write!(f, "compressed bytes do not yield what they announce"),
            Self::TooLong { len, limit_bytes } => write!(
                f,
                "a string has {len} bytes, at most {limit_bytes} are allowed"
            ),
            Self::UnknownType(found) => write!(f, "no value type has the number {found}"),
            Self::UnsupportedType(name) => write!(f, "values of type {name} are not supported"),
        }
    }
}

impl std::error::Error for RdbError {}
