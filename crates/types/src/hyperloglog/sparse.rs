//! Sparse registers: runs of equal values. Must never read or write beyond the slice, however damaged it is.
//!
//! ```text
//! 00xxxxxx            ZERO   x + 1 registers that are 0                    (1..=64)
//! 01xxxxxx yyyyyyyy   XZERO  xy + 1 registers that are 0                   (1..=16384)
//! 1vvvvvxx            VAL    x + 1 registers (1..=4) of value v + 1        (1..=32)
//! ```

use super::{Histogram, REGISTERS};

const ZERO_MAX: usize = 64;
const XZERO_MAX: usize = 16_384;
const VAL_MAX_LEN: usize = 4;
/// Largest value that a run can hold.
pub const VAL_MAX: u8 = 32;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// Zeros in one byte.
    Zero(usize),
    /// Zeros in two bytes.
    LongZero(usize),
    /// Registers of one value.
    Value {
        /// The value.
        value: u8,
        /// How many.
        len: usize,
    },
}

impl Run {
    /// Number of registers.
    pub const fn len(self) -> usize {
        match self {
            Self::Zero(len) | Self::LongZero(len) | Self::Value { len, .. } => len,
        }
    }
    /// A run has at least one register.
    pub const fn is_empty(self) -> bool {
        false
    }
    /// Value of its registers.
    pub const fn value(self) -> u8 {
        match self {
            Self::Zero(_) | Self::LongZero(_) => 0,
            Self::Value { value, .. } => value,
        }
    }
    /// Number of bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::LongZero(_) => 2,
            Self::Zero(_) | Self::Value { .. } => 1,
        }
    }
    /// The run that begins at `at`; `None` at the end and where half a run stands.
    pub fn at(bytes: &[u8], at: usize) -> Option<Self> {
        let first = *bytes.get(at)?;
        Some(if first & 0x80 != 0 {
            Self::Value {
                value: (first >> 2 & 31) + 1,
                len: usize::from(first & 3) + 1,
            }
        } else if first & 0x40 != 0 {
            Self::LongZero((usize::from(first & 63) << 8 | usize::from(*bytes.get(at + 1)?)) + 1)
        } else {
            Self::Zero(usize::from(first & 63) + 1)
        })
    }
    const fn zeros(len: usize) -> Self {
        if len > ZERO_MAX {
            Self::LongZero(len)
        } else {
            Self::Zero(len)
        }
    }
    fn push(self, out: &mut Vec<u8>) {
        match self {
            Self::Zero(len) => out.push((len - 1) as u8),
            Self::LongZero(len) => {
                out.extend_from_slice(&[0x40 | ((len - 1) >> 8) as u8, (len - 1) as u8])
            }
            Self::Value { value, len } => out.push(value_byte(value, len)),
        }
    }
}

const fn value_byte(value: u8, len: usize) -> u8 {
    0x80 | (value - 1) << 2 | (len - 1) as u8
}

/// The runs in order. A damaged end is told by the sum of their lengths, which is then not [`REGISTERS`].
pub fn runs(bytes: &[u8]) -> impl Iterator<Item = Run> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let run = Run::at(bytes, at)?;
        at += run.bytes();
        Some(run)
    })
}

/// Appends the registers of an empty HyperLogLog.
pub fn push_empty(out: &mut Vec<u8>) {
    let mut left = REGISTERS;
    while left > 0 {
        let len = left.min(XZERO_MAX);
        Run::LongZero(len).push(out);
        left -= len;
    }
}

/// Calls `visit(index, value)` for each register that is not zero. `None` when the runs are not exactly [`REGISTERS`] long.
pub fn for_each(bytes: &[u8], mut visit: impl FnMut(usize, u8)) -> Option<()> {
    let mut index = 0;
    let mut read = 0;
    for run in runs(bytes) {
        read += run.bytes();
        if let Run::Value { value, len } = run {
            if index + len > REGISTERS {
                return None;
            }
            (index..index + len).for_each(|at| visit(at, value));
        }
        index += run.len();
    }
    (index == REGISTERS && read == bytes.len()).then_some(())
}

/// How often each value occurs; `None` when damaged.
pub fn histogram(bytes: &[u8]) -> Option<Histogram> {
    let mut counts: Histogram = [0; 64];
    let mut total = 0;
    for run in runs(bytes) {
        counts[usize::from(run.value())] += run.len() as u32;
        total += run.len();
    }
    (total == REGISTERS).then_some(counts)
}

/// What [`set`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// The register already had this value or a larger one.
    Unchanged,
    /// The register has the value now.
    Changed,
    /// The value or the longer sequence does not fit: the caller goes over to dense registers.
    Promote,
    /// The runs are damaged.
    Corrupted,
}

/// Raises the register at `index` to `value`. `bytes` holds a header of `header` bytes and then the runs; with it they may be at
/// most `limit_bytes` long.
///
/// The run that covers the register is split into at most three, then runs of values beside it are joined again. The joining
/// begins one run before and looks at five, as everywhere, so that the same elements in the same order give the same bytes.
pub fn set(bytes: &mut Vec<u8>, header: usize, index: usize, value: u8, limit_bytes: usize) -> Set {
    if value > VAL_MAX {
        return Set::Promote;
    }
    let (mut at, mut before, mut first) = (header, None, 0);
    let run = loop {
        let Some(run) = Run::at(bytes, at) else {
            return Set::Corrupted;
        };
        if index < first + run.len() {
            break run;
        }
        before = Some(at);
        at += run.bytes();
        first += run.len();
    };
    if run.value() >= value {
        return Set::Unchanged;
    }
    let mut split = Vec::with_capacity(5);
    let (left, right) = (index - first, first + run.len() - 1 - index);
    let side = |len: usize| match run {
        Run::Value { value, .. } => Run::Value { value, len },
        Run::Zero(_) | Run::LongZero(_) => Run::zeros(len),
    };
    if left > 0 {
        side(left).push(&mut split);
    }
    Run::Value { value, len: 1 }.push(&mut split);
    if right > 0 {
        side(right).push(&mut split);
    }
    if split.len() > run.bytes() && bytes.len() + (split.len() - run.bytes()) > limit_bytes {
        return Set::Promote;
    }
    bytes.splice(at..at + run.bytes(), split);
    join(bytes, before.unwrap_or(header));
    Set::Changed
}

/// Joins neighbouring runs of one value, from `at` over at most five steps.
fn join(bytes: &mut Vec<u8>, mut at: usize) {
    for _ in 0..5 {
        let Some(run) = Run::at(bytes, at) else {
            return;
        };
        if let (
            Run::Value { value, len },
            Some(Run::Value {
                value: next_value,
                len: next_len,
            }),
        ) = (run, Run::at(bytes, at + 1))
            && value == next_value
            && len + next_len <= VAL_MAX_LEN
        {
            bytes[at + 1] = value_byte(value, len + next_len);
            bytes.remove(at);
            continue;
        }
        at += run.bytes();
    }
}
