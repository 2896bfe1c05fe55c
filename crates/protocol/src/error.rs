//! Why a RESP connection is closed: a closed set with the texts that clients know from Redis.

use std::borrow::Cow;

/// A request that cannot be understood. The connection gets [`ProtocolError::write_reply`] and is closed, because
/// where the next command begins is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// An inline command whose line does not end within the limit.
    TooBigInline,
    /// An inline command with a quote that does not close, or text right behind a closing quote.
    UnbalancedQuotes,
    /// `*` with no end of line within the limit.
    TooBigMultibulkCount,
    /// `*` with something that is not a number, or a number beyond the limit.
    InvalidMultibulkLength,
    /// More than 10 arguments before authentication.
    UnauthenticatedMultibulk,
    /// `$` with no end of line within the limit.
    TooBigBulkCount,
    /// An argument that begins with this byte instead of `$`.
    ExpectedDollar(u8),
    /// `$` with something that is not a length, or a length beyond `proto-max-bulk-len`.
    InvalidBulkLength,
    /// An argument of more than 16384 bytes before authentication.
    UnauthenticatedBulk,
    /// One command needs more than the 4 GiB that a buffer may have. Redis closes such a connection at its query-buffer limit
    /// without a word, and so does this.
    TooBigQuery,
}

impl ProtocolError {
    /// The text behind `-ERR `, without line end. Empty where the connection is closed without a reply.
    pub fn message(self) -> Cow<'static, [u8]> {
        let text = match self {
            Self::TooBigInline => "Protocol error: too big inline request",
            Self::UnbalancedQuotes => "Protocol error: unbalanced quotes in request",
            Self::TooBigMultibulkCount => "Protocol error: too big mbulk count string",
            Self::InvalidMultibulkLength => "Protocol error: invalid multibulk length",
            Self::UnauthenticatedMultibulk => "Protocol error: unauthenticated multibulk length",
            Self::TooBigBulkCount => "Protocol error: too big bulk count string",
            Self::ExpectedDollar(got) => return Cow::Owned(expected_dollar(got)),
            Self::InvalidBulkLength => "Protocol error: invalid bulk length",
            Self::UnauthenticatedBulk => "Protocol error: unauthenticated bulk length",
            Self::TooBigQuery => "",
        };
        Cow::Borrowed(text.as_bytes())
    }

    /// Appends the reply that precedes the end of the connection.
    pub fn write_reply(self, out: &mut Vec<u8>) {
        let message = self.message();
        if !message.is_empty() {
            out.extend_from_slice(b"-ERR ");
            out.extend_from_slice(&message);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Like every error text this one may not contain a line end, so those become spaces.
fn expected_dollar(got: u8) -> Vec<u8> {
    let shown = if matches!(got, b'\r' | b'\n') {
        b' '
    } else {
        got
    };
    let mut text = b"Protocol error: expected '$', got '".to_vec();
    text.extend_from_slice(&[shown, b'\'']);
    text
}
