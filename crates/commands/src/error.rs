//! What a client may see when a command fails: a closed set with Redis's exact texts.

use std::borrow::Cow;

/// Why a command was refused. Nothing was changed and nothing was written to the reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The key holds another type.
    WrongType,
    /// The arguments do not follow the command's syntax.
    Syntax,
    /// An argument or a stored value is no 64-bit integer.
    NotAnInteger,
    /// An argument or a stored value is no float.
    NotAFloat,
    /// The result would leave the 64-bit range.
    Overflow,
    /// The result would be NaN or infinite.
    NanOrInfinity,
    /// A key that must exist does not.
    NoSuchKey,
    /// An index is out of range.
    OutOfRange,
    /// The string would be larger than `proto-max-bulk-len`.
    StringTooLong,
    /// Any other text, with its error code: `ERR …`.
    Text(Cow<'static, str>),
    /// A shard was busy: nothing was done; the engine retries later.
    Busy(u16),
}

impl Error {
    /// An error with a fixed text (error code included).
    pub const fn text(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
    /// An error with a composed text (error code included).
    pub const fn owned(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
    /// `ERR invalid expire time in 'set' command`.
    pub fn invalid_expire(command: &str) -> Self {
        Self::owned(format!("ERR invalid expire time in '{command}' command"))
    }
    /// `ERR wrong number of arguments for 'get' command`.
    pub fn wrong_arity(command: &str) -> Self {
        Self::owned(format!(
            "ERR wrong number of arguments for '{command}' command"
        ))
    }

    /// The text after the `-` of the reply.
    pub fn message(&self) -> &str {
        match self {
            Self::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value",
            Self::Syntax => "ERR syntax error",
            Self::NotAnInteger => "ERR value is not an integer or out of range",
            Self::NotAFloat => "ERR value is not a valid float",
            Self::Overflow => "ERR increment or decrement would overflow",
            Self::NanOrInfinity => "ERR increment would produce NaN or Infinity",
            Self::NoSuchKey => "ERR no such key",
            Self::OutOfRange => "ERR index out of range",
            Self::StringTooLong => "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
            Self::Text(text) => text,
            Self::Busy(_) => "BUSY try again",
        }
    }
}
