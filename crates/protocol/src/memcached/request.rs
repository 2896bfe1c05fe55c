//! What a memcached client can ask, as types. Keys and data are slices of the receive buffer.

use super::meta::Meta;

/// One step of [`super::McParser::next`].
#[derive(Debug)]
pub enum McParsed<'a> {
    /// A request.
    Request(McRequest<'a>),
    /// The bytes end within a request (or before one).
    NeedMore,
    /// A line that is no request. The stream goes on behind it unless `close` is set.
    Error(McError<'a>),
}

/// The answer to a line that is no request.
#[derive(Debug)]
pub struct McError<'a> {
    /// The reply without line end; empty where the client asked for none or the connection just closes.
    pub reply: &'static str,
    /// Close the connection behind the reply.
    pub close: bool,
    /// A value for this key was refused: what is stored under it must go, so that no outdated value is served.
    pub unlink: Option<McKey<'a>>,
}

impl McError<'_> {
    /// Appends the reply, if there is one.
    pub fn write_reply(&self, out: &mut Vec<u8>) {
        if !self.reply.is_empty() {
            super::write_line(out, self.reply);
        }
    }
}

/// A well-formed request.
#[derive(Debug)]
pub enum McRequest<'a> {
    /// `get`, `gets`, `gat`, `gats`.
    Get(Get<'a>),
    /// `set`, `add`, `replace`, `append`, `prepend`, `cas`.
    Store(Store<'a>),
    /// `incr` and `decr`.
    Arithmetic(Arithmetic<'a>),
    /// `touch`.
    Touch(Touch<'a>),
    /// `delete`.
    Delete(Delete<'a>),
    /// `stats`, with what follows it.
    Stats(Tokens<'a>),
    /// `flush_all`.
    FlushAll {
        /// Seconds from now, or a Unix time; 0 and less mean at once.
        delay_s: i32,
        /// No reply is wanted.
        noreply: bool,
    },
    /// `version`.
    Version,
    /// `verbosity`.
    Verbosity {
        /// The level.
        level: u32,
        /// No reply is wanted.
        noreply: bool,
    },
    /// `cache_memlimit`: at least 8, at most 10^9.
    CacheMemlimit {
        /// The limit in mebibytes.
        limit_mib: u32,
        /// No reply is wanted.
        noreply: bool,
    },
    /// `watch`, with the names of what is to be watched.
    Watch(Tokens<'a>),
    /// `quit`: close without a reply.
    Quit,
    /// `mg`, `ms`, `md`, `ma`.
    Meta(Meta<'a>),
    /// `mn`: answered with `MN`, once all before it is answered.
    MetaNoop,
    /// `me`: answered with what is known about the item, or `EN`.
    MetaDebug(McKey<'a>),
}

/// A key. Binary keys come in base64 and are decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McKey<'a> {
    /// As it stands in the request.
    Plain(&'a [u8]),
    /// Decoded from base64.
    Binary(Box<[u8]>),
}

impl McKey<'_> {
    /// The bytes under which the item is stored.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Plain(bytes) => bytes,
            Self::Binary(bytes) => bytes,
        }
    }

    /// Whether the client wrote it in base64, and wants to see it so.
    pub fn is_binary(&self) -> bool {
        matches!(self, Self::Binary(_))
    }
}

/// Which form of retrieval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GetVerb {
    /// Values.
    Get,
    /// Values with their CAS numbers.
    Gets,
    /// Values, with a new expiry time.
    Gat,
    /// Values with their CAS numbers, with a new expiry time.
    Gats,
}

impl GetVerb {
    /// Whether CAS numbers are wanted.
    pub fn wants_cas(self) -> bool {
        matches!(self, Self::Gets | Self::Gats)
    }

    /// Whether the expiry time is set.
    pub fn touches(self) -> bool {
        matches!(self, Self::Gat | Self::Gats)
    }
}

/// A retrieval of any number of keys (`gat` allows none).
#[derive(Clone, Debug)]
pub struct Get<'a> {
    /// Which form.
    pub verb: GetVerb,
    /// The new expiry time for `gat` and `gats`: seconds from now or a Unix time; negative means expired.
    pub exptime_s: i32,
    /// The keys, each at most 250 bytes.
    pub keys: Tokens<'a>,
}

/// Which form of storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreVerb {
    /// Unconditionally.
    Set,
    /// Only if there is none.
    Add,
    /// Only if there is one.
    Replace,
    /// Behind what is there.
    Append,
    /// Before what is there.
    Prepend,
    /// Only if it is unchanged.
    Cas,
}

/// A value to be stored.
#[derive(Clone, Copy, Debug)]
pub struct Store<'a> {
    /// Which form.
    pub verb: StoreVerb,
    /// The key.
    pub key: &'a [u8],
    /// The client's flags.
    pub flags: u32,
    /// Seconds from now or a Unix time; 0 means never, negative means expired.
    pub exptime_s: i32,
    /// The number to compare for `cas`, else 0.
    pub cas: u64,
    /// No reply is wanted.
    pub noreply: bool,
    /// The value.
    pub data: &'a [u8],
}

/// `incr` or `decr`.
#[derive(Clone, Copy, Debug)]
pub struct Arithmetic<'a> {
    /// `decr`.
    pub decrement: bool,
    /// The key.
    pub key: &'a [u8],
    /// By how much.
    pub delta: u64,
    /// No reply is wanted.
    pub noreply: bool,
}

/// `touch`.
#[derive(Clone, Copy, Debug)]
pub struct Touch<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Seconds from now or a Unix time; 0 means never, negative means expired.
    pub exptime_s: i32,
    /// No reply is wanted.
    pub noreply: bool,
}

/// `delete`.
#[derive(Clone, Copy, Debug)]
pub struct Delete<'a> {
    /// The key.
    pub key: &'a [u8],
    /// No reply is wanted.
    pub noreply: bool,
}

/// Words separated by blanks.
#[derive(Clone, Debug)]
pub struct Tokens<'a>(pub(super) &'a [u8]);

impl Tokens<'_> {
    /// Whether no word is left.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&byte| byte == b' ')
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.0.iter().position(|&byte| byte != b' ')?;
        let rest = &self.0[start..];
        let end = rest
            .iter()
            .position(|&byte| byte == b' ')
            .unwrap_or(rest.len());
        let (token, rest) = rest.split_at(end);
        self.0 = rest;
        Some(token)
    }
}
