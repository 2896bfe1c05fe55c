//! One published message, in the form in which connections get it.

use super::Kind;
use pantala_protocol::{Proto, Reply};
use std::sync::Arc;

/// A published message. It is encoded once, by its publisher.
#[derive(Debug)]
pub struct Message {
    /// Channel or shard channel.
    pub kind: Kind,
    /// Its place in the order of all messages and subscriptions.
    pub ticket: u64,
    /// Patterns that match the channel.
    pub patterns: Box<[Arc<[u8]>]>,
    /// The whole message in RESP2; RESP3 differs in the first byte.
    frame: Box<[u8]>,
    /// Where the channel's header begins in `frame`; from there on a `pmessage` is the same.
    tail_at: usize,
    /// Length of the channel's name.
    channel_len: usize,
}

/// What a RESP3 message begins with, where a RESP2 one begins with `*`.
pub const PUSH: u8 = b'>';

impl Message {
    /// A message on `channel`.
    pub fn new(
        kind: Kind,
        ticket: u64,
        patterns: Box<[Arc<[u8]>]>,
        channel: &[u8],
        payload: &[u8],
    ) -> Self {
        /// Headers and line ends at their longest.
        const OVERHEAD_BYTES: usize = 64;
        let mut frame = Vec::with_capacity(channel.len() + payload.len() + OVERHEAD_BYTES);
        let mut reply = Reply::new(&mut frame, Proto::Resp2);
        reply.push(3);
        reply.bulk_str(match kind {
            Kind::Shard => "smessage",
            Kind::Channel | Kind::Pattern => "message",
        });
        let tail_at = reply.len();
        reply.bulk(channel);
        reply.bulk(payload);
        Self {
            kind,
            ticket,
            patterns,
            frame: frame.into(),
            tail_at,
            channel_len: channel.len(),
        }
    }

    /// The channel's name.
    pub fn channel(&self) -> &[u8] {
        // `$`, the length's digits, CRLF.
        let header = 1 + self.channel_len.max(1).ilog10() as usize + 1 + 2;
        let at = self.tail_at + header;
        &self.frame[at..at + self.channel_len]
    }

    /// What a subscriber of the channel gets, in RESP2.
    pub fn frame(&self) -> &[u8] {
        &self.frame
    }

    /// What a subscriber of `pattern` gets, in RESP2.
    pub fn pattern_frame(&self, pattern: &[u8], frame: &mut Vec<u8>) {
        frame.clear();
        let mut reply = Reply::new(frame, Proto::Resp2);
        reply.push(4);
        reply.bulk_str("pmessage");
        reply.bulk(pattern);
        reply.raw(&self.frame[self.tail_at..]);
    }

    /// Size in memory, in bytes, for the bound on what is under way.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.frame.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_as_redis_writes_them() {
        let message = Message::new(Kind::Channel, 1, Box::default(), b"news", b"hi\r\n");
        assert_eq!(
            message.frame(),
            b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$4\r\nhi\r\n\r\n"
        );
        let mut frame = b"old".to_vec();
        message.pattern_frame(b"n*", &mut frame);
        assert_eq!(
            frame,
            b"*4\r\n$8\r\npmessage\r\n$2\r\nn*\r\n$4\r\nnews\r\n$4\r\nhi\r\n\r\n"
        );
        let shard = Message::new(Kind::Shard, 1, Box::default(), b"", b"");
        assert_eq!(
            shard.frame(),
            b"*3\r\n$8\r\nsmessage\r\n$0\r\n\r\n$0\r\n\r\n"
        );
    }

    #[test]
    fn the_channel_is_found_whatever_its_length() {
        for len in [0, 1, 9, 10, 11, 99, 100, 1_000, 1_023, 1_024, 100_000] {
            let name = vec![b'c'; len];
            let message = Message::new(Kind::Channel, 1, Box::default(), &name, b"$5\r\n");
            assert_eq!(message.channel(), name);
        }
    }
}
