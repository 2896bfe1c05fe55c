//! HyperLogLog: the number of different elements, estimated from 16,384 registers, in the very bytes that Redis stores. Works on
//! byte slices alone; must never trust them, since any client can write a string that looks like a HyperLogLog.
//!
//! ```text
//! +------+---+-----+----------+-----------+
//! | HYLL | E | 000 | card (8) | registers |     E: 0 dense, 1 sparse
//! +------+---+-----+----------+-----------+
//! card: the last estimate, little endian; its highest bit set means that the registers changed since
//! ```

pub mod dense;
mod estimate;
mod hash;
mod in_place;
pub mod sparse;

pub use hash::murmur64a;
pub use in_place::{add_dense, read_header};

/// Number of registers.
pub const REGISTERS: usize = 1 << INDEX_BITS;
/// Bytes of the header.
pub const HEADER_LEN: usize = 16;
/// Bytes of a dense HyperLogLog.
pub const DENSE_LEN: usize = HEADER_LEN + dense::LEN;
const INDEX_BITS: u32 = 14;
const STALE: u64 = 1 << 63;

/// How often each register value occurs.
pub type Histogram = [u32; 64];

/// How the registers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// All registers.
    Dense,
    /// Runs of equal values.
    Sparse,
}

impl Form {
    /// As `PFDEBUG ENCODING` names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Sparse => "sparse",
        }
    }
}

/// Why a string cannot be used as a HyperLogLog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// It has not the header or the length of one.
    NotHll,
    /// Its registers are damaged.
    Corrupted,
}

/// Checks header and length; says how the registers are stored.
pub fn form(bytes: &[u8]) -> Result<Form, Invalid> {
    let header = bytes.first_chunk().ok_or(Invalid::NotHll)?;
    form_of(header, bytes.len())
}

/// The same for a HyperLogLog of `len` bytes of which only the header is at hand.
pub fn form_of(header: &[u8; HEADER_LEN], len: usize) -> Result<Form, Invalid> {
    if !header.starts_with(b"HYLL") {
        return Err(Invalid::NotHll);
    }
    match header[4] {
        0 if len == DENSE_LEN => Ok(Form::Dense),
        1 if len >= HEADER_LEN => Ok(Form::Sparse),
        _ => Err(Invalid::NotHll),
    }
}

/// An empty HyperLogLog: sparse, estimate 0.
pub fn empty() -> Vec<u8> {
    let mut bytes = header(Form::Sparse);
    sparse::push_empty(&mut bytes);
    bytes
}

fn header(form: Form) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_LEN];
    bytes[..4].copy_from_slice(b"HYLL");
    bytes[4] = match form {
        Form::Dense => 0,
        Form::Sparse => 1,
    };
    bytes
}

/// The stored estimate, if the registers have not changed since.
pub fn cached(bytes: &[u8]) -> Option<u64> {
    let card = stored_estimate(bytes);
    (card & STALE == 0).then_some(card)
}

/// Stores an estimate.
pub fn set_cached(bytes: &mut [u8], cardinality: u64) {
    bytes[8..HEADER_LEN].copy_from_slice(&cardinality.to_le_bytes());
}

/// Marks the stored estimate as out of date. The other bits stay, as in Redis.
pub fn invalidate(bytes: &mut [u8]) {
    let card = stored_estimate(bytes);
    set_cached(bytes, card | STALE);
}

fn stored_estimate(bytes: &[u8]) -> u64 {
    let mut card = [0; 8];
    card.copy_from_slice(&bytes[8..HEADER_LEN]);
    u64::from_le_bytes(card)
}

/// The register of an element and the value that it asks for: the length of the run of zeros behind the index bits, plus one.
pub fn place(element: &[u8]) -> (usize, u8) {
    let hash = murmur64a(element);
    let rest = (hash >> INDEX_BITS) | (1 << (64 - INDEX_BITS));
    (
        (hash & (REGISTERS as u64 - 1)) as usize,
        rest.trailing_zeros() as u8 + 1,
    )
}

/// Adds an element; `true` when a register changed. `sparse_limit_bytes` is the longest sparse form; beyond it, and for values
/// above 32, the registers become dense. The stored estimate is marked as out of date when something changed.
pub fn add(
    bytes: &mut Vec<u8>,
    element: &[u8],
    sparse_limit_bytes: usize,
) -> Result<bool, Invalid> {
    let (index, value) = place(element);
    let changed = raise(bytes, index, value, sparse_limit_bytes)?;
    if changed {
        invalidate(bytes);
    }
    Ok(changed)
}

/// Raises one register to at least `value`.
pub fn raise(
    bytes: &mut Vec<u8>,
    index: usize,
    value: u8,
    sparse_limit_bytes: usize,
) -> Result<bool, Invalid> {
    if form(bytes)? == Form::Sparse {
        match sparse::set(bytes, HEADER_LEN, index, value, sparse_limit_bytes) {
            sparse::Set::Unchanged => return Ok(false),
            sparse::Set::Changed => return Ok(true),
            sparse::Set::Corrupted => return Err(Invalid::Corrupted),
            sparse::Set::Promote => to_dense(bytes)?,
        }
    }
    let registers = &mut bytes[HEADER_LEN..];
    if dense::get(registers, index) >= value {
        return Ok(false);
    }
    dense::set(registers, index, value);
    Ok(true)
}

/// Makes the registers dense; the stored estimate stays.
pub fn to_dense(bytes: &mut Vec<u8>) -> Result<(), Invalid> {
    if form(bytes)? == Form::Dense {
        return Ok(());
    }
    let mut out = header(Form::Dense);
    out[5..HEADER_LEN].copy_from_slice(&bytes[5..HEADER_LEN]);
    out.resize(DENSE_LEN, 0);
    let registers = &mut out[HEADER_LEN..];
    sparse::for_each(&bytes[HEADER_LEN..], |index, value| {
        dense::set(registers, index, value)
    })
    .ok_or(Invalid::Corrupted)?;
    *bytes = out;
    Ok(())
}

/// Estimates the cardinality from the registers.
pub fn count(bytes: &[u8]) -> Result<u64, Invalid> {
    let registers = &bytes[HEADER_LEN.min(bytes.len())..];
    let counts = match form(bytes)? {
        Form::Dense => dense::histogram(registers),
        Form::Sparse => sparse::histogram(registers).ok_or(Invalid::Corrupted)?,
    };
    Ok(estimate::cardinality(&counts))
}

/// The registers of a union, one byte each.
#[derive(Clone)]
pub struct Union {
    registers: Box<[u8]>,
}

impl Default for Union {
    fn default() -> Self {
        Self {
            registers: vec![0; REGISTERS].into_boxed_slice(),
        }
    }
}

impl Union {
    /// Takes the larger of each pair of registers. On `Corrupted` part of them may have been taken.
    pub fn merge(&mut self, bytes: &[u8]) -> Result<Form, Invalid> {
        let form = form(bytes)?;
        let max = &mut self.registers;
        let raise = |index: usize, value: u8| max[index] = max[index].max(value);
        match form {
            Form::Dense => dense::for_each(&bytes[HEADER_LEN..], raise),
            Form::Sparse => {
                sparse::for_each(&bytes[HEADER_LEN..], raise).ok_or(Invalid::Corrupted)?
            }
        }
        Ok(form)
    }

    /// The estimated cardinality of the union.
    pub fn count(&self) -> u64 {
        let mut counts: Histogram = [0; 64];
        for &value in &self.registers {
            counts[usize::from(value & 63)] += 1;
        }
        estimate::cardinality(&counts)
    }

    /// Raises the registers of `bytes` to these, in order, and marks its estimate as out of date. Dense when `dense`.
    pub fn write_to(
        &self,
        bytes: &mut Vec<u8>,
        dense: bool,
        sparse_limit_bytes: usize,
    ) -> Result<(), Invalid> {
        if dense {
            to_dense(bytes)?;
        }
        for (index, &value) in self.registers.iter().enumerate() {
            if value > 0 {
                raise(bytes, index, value, sparse_limit_bytes)?;
            }
        }
        invalidate(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
