//! Reading a stored string without caring how it is stored.

use super::int::{self, Decimal};
use super::{EMBSTR_MAX_LEN, GROWN, INT, PACKED, PACKED_7, TREE, digest, packed7};
use pantala_store::{Entry, Kind, TreeRef};
use std::ops::ControlFlow;

/// Characters that are unpacked at a time.
const UNPACK_LEN: usize = 128;

/// A stored string.
#[derive(Clone, Copy)]
pub enum StrRef<'b> {
    /// An integer, to be read as its decimal.
    Int(i64),
    /// Bytes.
    Raw {
        /// The bytes.
        bytes: &'b [u8],
        /// Whether it was changed in place.
        grown: bool,
    },
    /// Packed ASCII.
    Packed {
        /// As stored.
        packed: &'b [u8],
        /// Number of characters.
        len: usize,
    },
    /// A tree of bytes.
    Tree(TreeRef<'b>),
}

impl<'b> StrRef<'b> {
    /// The string in `entry`; `None` when it holds another type.
    #[inline]
    pub fn of(entry: Entry<'b>) -> Option<Self> {
        if entry.kind() != Kind::String {
            return None;
        }
        Some(match entry.encoding() {
            INT => Self::Int(
                int::decode(entry.payload()).expect("an integer payload has 1, 2, 4 or 8 bytes"),
            ),
            encoding @ (PACKED | PACKED_7) => {
                let packed = entry.payload();
                Self::Packed {
                    packed,
                    len: packed7::text_len(packed.len(), encoding == PACKED_7),
                }
            }
            TREE => Self::Tree(entry.tree().expect("a tree encoding has a tree")),
            encoding => Self::Raw {
                bytes: entry.payload(),
                grown: encoding == GROWN,
            },
        })
    }

    /// Number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Int(value) => int::decimal_len(*value),
            Self::Raw { bytes, .. } => bytes.len(),
            Self::Packed { len, .. } => *len,
            Self::Tree(tree) => tree.len() as usize,
        }
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What `OBJECT ENCODING` answers.
    pub fn encoding_name(&self) -> &'static str {
        match self {
            Self::Int(_) => "int",
            Self::Raw {
                bytes,
                grown: false,
            } if bytes.len() <= EMBSTR_MAX_LEN => "embstr",
            Self::Packed { len, .. } if *len <= EMBSTR_MAX_LEN => "embstr",
            _ => "raw",
        }
    }

    /// The string as an integer, if it is a canonical decimal.
    pub fn to_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Raw { bytes, .. } => int::parse(bytes),
            // No packed text and no tree is short enough.
            Self::Packed { .. } | Self::Tree(_) => None,
        }
    }

    /// Calls `visit` with the bytes from `start` on, at most `len`, piece by piece, until it breaks. What lies beyond the end is left out.
    #[inline]
    pub fn for_each_chunk<B>(
        &self,
        start: usize,
        len: usize,
        mut visit: impl FnMut(&[u8]) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let end = start.saturating_add(len).min(self.len());
        if start >= end {
            return ControlFlow::Continue(());
        }
        match self {
            Self::Int(value) => visit(&Decimal::new(*value).as_bytes()[start..end]),
            Self::Raw { bytes, .. } => visit(&bytes[start..end]),
            Self::Packed { packed, len } => unpack_range(packed, *len, start, end, visit),
            Self::Tree(tree) => {
                for chunk in tree.chunks(start as u64..end as u64) {
                    visit(chunk)?;
                }
                ControlFlow::Continue(())
            }
        }
    }

    /// Appends all bytes to `out`.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        self.append_range_to(0, self.len(), out);
    }

    /// Appends the bytes from `start` on, at most `len`, to `out`.
    pub fn append_range_to(&self, start: usize, len: usize, out: &mut Vec<u8>) {
        let _: ControlFlow<()> = self.for_each_chunk(start, len, |chunk| {
            out.extend_from_slice(chunk);
            ControlFlow::Continue(())
        });
    }

    /// Fills `out` with the bytes from `start` on; zeros stand for what lies beyond the end.
    pub fn read_at(&self, start: usize, out: &mut [u8]) {
        let mut filled = 0;
        let _: ControlFlow<()> = self.for_each_chunk(start, out.len(), |chunk| {
            out[filled..filled + chunk.len()].copy_from_slice(chunk);
            filled += chunk.len();
            ControlFlow::Continue(())
        });
        out[filled..].fill(0);
    }

    /// The byte at `index`, or `None` beyond the end.
    pub fn byte_at(&self, index: usize) -> Option<u8> {
        if index >= self.len() {
            return None;
        }
        match self {
            Self::Raw { bytes, .. } => Some(bytes[index]),
            Self::Packed { packed, len } => Some(packed7::char_at(packed, *len, index)),
            Self::Int(_) | Self::Tree(_) => {
                let mut byte = [0];
                self.read_at(index, &mut byte);
                Some(byte[0])
            }
        }
    }

    /// The bytes in one piece: borrowed where they are stored so, otherwise written to `scratch`, which is emptied first.
    pub fn to_bytes<'s>(&self, scratch: &'s mut Vec<u8>) -> &'s [u8]
    where
        'b: 's,
    {
        if let Self::Raw { bytes, .. } = *self {
            return bytes;
        }
        scratch.clear();
        self.append_to(scratch);
        scratch
    }

    /// Whether the bytes are those of `other`.
    pub fn is(&self, other: &[u8]) -> bool {
        if self.len() != other.len() {
            return false;
        }
        let mut at = 0;
        let same = self.for_each_chunk(0, other.len(), |chunk| {
            let equal = *chunk == other[at..at + chunk.len()];
            at += chunk.len();
            if equal {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        same.is_continue()
    }

    /// The digest that `DIGEST` reports.
    pub fn digest(&self) -> [u8; 16] {
        let mut hasher = digest::Digest::default();
        let _: ControlFlow<()> = self.for_each_chunk(0, self.len(), |chunk| {
            hasher.update(chunk);
            ControlFlow::Continue(())
        });
        hasher.finish()
    }
}

/// Unpacks the characters `start..end` piece by piece, in whole groups, of which only what was asked for is shown.
fn unpack_range<B>(
    packed: &[u8],
    len: usize,
    start: usize,
    end: usize,
    mut visit: impl FnMut(&[u8]) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let mut buf = [0; UNPACK_LEN];
    let mut from = start / UNPACK_LEN * UNPACK_LEN;
    while from < end {
        let to = (from + UNPACK_LEN).min(len);
        let text = &mut buf[..to - from];
        let first = packed7::packed_len(from);
        packed7::unpack(
            &packed[first..first + packed7::packed_len(text.len())],
            text,
        );
        visit(&text[start.saturating_sub(from)..text.len().min(end - from)])?;
        from = to;
    }
    ControlFlow::Continue(())
}
