//! The arguments of one command, as slices of a buffer that somebody else owns.
//!
//! An argument costs 8 bytes and no copy. A span must lie inside its buffer; [`Args`] checks that on access, because
//! a span that was kept after its buffer moved is a programming error that must not pass unnoticed.

use std::fmt;
use std::ops::Index;

/// Where an argument lies in its buffer. Buffers are at most 4 GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Length in bytes.
    pub len: u32,
}

/// One command's arguments, the command name first.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    buf: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Args<'a> {
    /// Arguments at `spans` of `buf`.
    #[inline]
    pub fn new(buf: &'a [u8], spans: &'a [Span]) -> Self {
        Self { buf, spans }
    }

    /// How many arguments there are, the command name included.
    #[inline]
    pub fn len(self) -> usize {
        self.spans.len()
    }

    /// Whether there is no argument at all, not even a command name.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.spans.is_empty()
    }

    /// Argument `i`, if there is one.
    #[inline]
    pub fn get(self, i: usize) -> Option<&'a [u8]> {
        self.spans.get(i).map(|&span| self.bytes(span))
    }

    /// Argument `i`.
    ///
    /// # Panics
    /// When there are not that many: the arity was checked before.
    #[inline]
    pub fn arg(self, i: usize) -> &'a [u8] {
        self.get(i)
            .expect("arity is checked before arguments are read")
    }

    /// Whether argument `i` exists and equals `word`, ASCII case ignored.
    #[inline]
    pub fn is(self, i: usize, word: &str) -> bool {
        self.get(i)
            .is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// All arguments in order.
    #[inline]
    pub fn iter(self) -> ArgsIter<'a> {
        ArgsIter {
            buf: self.buf,
            spans: self.spans.iter(),
        }
    }

    /// The arguments from `i` on; none if there are not that many.
    #[inline]
    pub fn slice_from(self, i: usize) -> Args<'a> {
        Args {
            buf: self.buf,
            spans: self.spans.get(i..).unwrap_or_default(),
        }
    }

    /// The sum of all argument lengths in bytes.
    pub fn total_bytes(self) -> usize {
        self.spans.iter().map(|span| span.len as usize).sum()
    }

    #[inline]
    fn bytes(self, span: Span) -> &'a [u8] {
        &self.buf[span.start as usize..][..span.len as usize]
    }
}

impl Index<usize> for Args<'_> {
    type Output = [u8];

    #[inline]
    fn index(&self, i: usize) -> &[u8] {
        self.arg(i)
    }
}

impl<'a> IntoIterator for Args<'a> {
    type Item = &'a [u8];
    type IntoIter = ArgsIter<'a>;

    fn into_iter(self) -> ArgsIter<'a> {
        self.iter()
    }
}

impl fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|arg| arg.escape_ascii().to_string()))
            .finish()
    }
}

/// Iterator over arguments.
#[derive(Clone)]
pub struct ArgsIter<'a> {
    buf: &'a [u8],
    spans: std::slice::Iter<'a, Span>,
}

impl<'a> Iterator for ArgsIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let span = self.spans.next()?;
        Some(&self.buf[span.start as usize..][..span.len as usize])
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.spans.size_hint()
    }
}

impl DoubleEndedIterator for ArgsIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let span = self.spans.next_back()?;
        Some(&self.buf[span.start as usize..][..span.len as usize])
    }
}

impl ExactSizeIterator for ArgsIter<'_> {}

/// Arguments with a buffer of their own: for transactions, for helper threads and for commands that are made rather than received.
#[derive(Clone, Default)]
pub struct OwnedArgs {
    buf: Vec<u8>,
    spans: Vec<Span>,
}

impl OwnedArgs {
    /// No arguments yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends one argument.
    ///
    /// # Panics
    /// When all arguments together exceed 4 GiB, which the request limits exclude.
    pub fn push(&mut self, arg: &[u8]) {
        let start = self.buf.len();
        self.buf.extend_from_slice(arg);
        self.seal(start);
    }

    /// The arguments as a view.
    #[inline]
    pub fn as_args(&self) -> Args<'_> {
        Args::new(&self.buf, &self.spans)
    }

    /// Bytes of memory behind this value.
    pub fn allocated_bytes(&self) -> usize {
        self.buf.capacity() + self.spans.capacity() * size_of::<Span>()
    }

    /// Appends a byte to the argument that is being built.
    pub(crate) fn push_byte(&mut self, byte: u8) {
        self.buf.push(byte);
    }

    /// Where the argument that is to be built next begins.
    pub(crate) fn mark(&self) -> usize {
        self.buf.len()
    }

    /// Ends the argument that began at `start`.
    pub(crate) fn seal(&mut self, start: usize) {
        let fits = "arguments of one command stay below 4 GiB";
        self.spans.push(Span {
            start: u32::try_from(start).expect(fits),
            len: u32::try_from(self.buf.len() - start).expect(fits),
        });
    }
}

impl From<Args<'_>> for OwnedArgs {
    fn from(args: Args<'_>) -> Self {
        let mut owned = Self {
            buf: Vec::with_capacity(args.total_bytes()),
            spans: Vec::with_capacity(args.len()),
        };
        for arg in args {
            owned.push(arg);
        }
        owned
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for OwnedArgs {
    fn from_iter<I: IntoIterator<Item = T>>(args: I) -> Self {
        let mut owned = Self::new();
        for arg in args {
            owned.push(arg.as_ref());
        }
        owned
    }
}

impl fmt::Debug for OwnedArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_args().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_and_its_copy_read_alike() {
        let spans = [
            Span { start: 2, len: 3 },
            Span { start: 5, len: 0 },
            Span { start: 0, len: 2 },
        ];
        let args = Args::new(b"abSET", &spans);
        assert_eq!(args.len(), 3);
        assert!(args.is(0, "set") && !args.is(1, "set") && !args.is(9, "set"));
        assert_eq!(&args[2], b"ab");
        assert_eq!(args.get(3), None);
        assert_eq!(
            args.slice_from(1).iter().collect::<Vec<_>>(),
            [&b""[..], b"ab"]
        );
        assert!(args.slice_from(7).is_empty());
        assert_eq!(args.iter().next_back(), Some(&b"ab"[..]));
        let owned = OwnedArgs::from(args);
        assert!(owned.as_args().iter().eq(args.iter()));
        assert_eq!(args.total_bytes(), 5);
        assert_eq!(format!("{owned:?}"), r#"["SET", "", "ab"]"#);
    }
}
