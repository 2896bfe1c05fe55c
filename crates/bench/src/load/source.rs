//! What one connection asks for next: an endless mix of reads and writes, or one sweep over a range of keys.

use super::encode::Encoder;
use super::keys::KeyPicker;
use std::ops::Range;

/// The shares of reads and writes, and the keys in each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mix {
    /// Reads in every `gets + sets` requests.
    pub gets: u64,
    /// Writes in every `gets + sets` requests.
    pub sets: u64,
    /// Keys per request: 1 gives GET and SET, more give MGET and MSET.
    pub keys_per_request: usize,
}

/// What a sweep does to each key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepAction {
    /// Writes every key.
    Set,
    /// Deletes every key but each n-th, which stays.
    DeleteExceptEvery(u64),
}

/// A connection's stream of requests.
#[derive(Debug, Clone)]
pub enum Source {
    /// Random requests without end.
    Mix {
        /// Draws keys and the choice between read and write.
        picker: KeyPicker,
        /// The shares.
        mix: Mix,
    },
    /// Each key of a range once, in order.
    Sweep {
        /// The keys still to come.
        range: Range<u64>,
        /// What happens to them.
        action: SweepAction,
    },
}

/// What one request asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Keys read, each of which should be a hit.
    pub reads: u64,
}

impl Source {
    /// Appends the next request, or returns `None` at the end of a sweep.
    pub fn append(&mut self, encoder: &Encoder, out: &mut Vec<u8>) -> Option<Asked> {
        match self {
            Self::Mix { picker, mix } => Some(append_mixed(picker, *mix, encoder, out)),
            Self::Sweep { range, action } => {
                let asked = Asked { reads: 0 };
                match action {
                    SweepAction::Set => encoder.set(out, range.next()?),
                    SweepAction::DeleteExceptEvery(stays) => {
                        let index = range.find(|index| !index.is_multiple_of(*stays))?;
                        encoder.delete(out, index);
                    }
                }
                Some(asked)
            }
        }
    }
}

fn append_mixed(picker: &mut KeyPicker, mix: Mix, encoder: &Encoder, out: &mut Vec<u8>) -> Asked {
    let keys = mix.keys_per_request as u64;
    let read = mix.sets == 0 || picker.rng().below(mix.gets + mix.sets) < mix.gets;
    match (read, mix.keys_per_request) {
        (true, 1) => encoder.get(out, picker.pick()),
        (false, 1) => encoder.set(out, picker.pick()),
        (true, count) => encoder.get_many(out, count, || picker.pick()),
        (false, count) => encoder.set_many(out, count, || picker.pick()),
    }
    Asked {
        reads: if read { keys } else { 0 },
    }
}

/// Cuts `range` into `parts` neighbouring pieces whose lengths differ by at most one.
pub fn split(range: Range<u64>, parts: u64) -> impl Iterator<Item = Range<u64>> {
    let total = u128::from(range.end.saturating_sub(range.start));
    let bound =
        move |part: u64| range.start + (total * u128::from(part) / u128::from(parts)) as u64;
    (0..parts).map(move |part| bound(part)..bound(part + 1))
}

#[cfg(test)]
mod tests {
    use super::super::encode::Protocol;
    use super::super::keys::{Distribution, KeyFormat};
    use super::super::values::{ValueKind, ValueSize, Values};
    use super::*;
    use std::sync::Arc;

    fn encoder() -> Encoder {
        let values = Values::new(ValueSize::fixed(1), ValueKind::Ascii, 1);
        let format = KeyFormat::new(15, 1_000).unwrap();
        Encoder::new(Protocol::Resp, format, Arc::new(values), None)
    }

    #[test]
    fn a_split_covers_the_range_once() {
        for parts in [1, 3, 7, 50] {
            let pieces: Vec<_> = split(10..110, parts).collect();
            assert_eq!(pieces.len() as u64, parts);
            let keys: Vec<u64> = pieces.into_iter().flatten().collect();
            assert_eq!(keys, (10..110).collect::<Vec<_>>());
        }
        assert_eq!(split(0..1, 4).map(|r| r.count()).sum::<usize>(), 1);
    }

    #[test]
    fn the_mix_keeps_its_ratio() {
        let mut source = Source::Mix {
            picker: KeyPicker::new(1_000, Distribution::Uniform, 4),
            mix: Mix {
                gets: 10,
                sets: 1,
                keys_per_request: 1,
            },
        };
        let (encoder, mut out, mut reads) = (encoder(), Vec::new(), 0);
        for _ in 0..110_000 {
            out.clear();
            let asked = source.append(&encoder, &mut out).unwrap();
            assert_eq!(out.starts_with(b"*2\r\n$3\r\nGET"), asked.reads == 1);
            reads += asked.reads;
        }
        assert!((reads as f64 - 100_000.0).abs() < 600.0, "{reads} reads");
    }

    #[test]
    fn a_sweep_ends_and_spares_what_it_should() {
        let mut source = Source::Sweep {
            range: 0..20,
            action: SweepAction::DeleteExceptEvery(10),
        };
        let (encoder, mut out) = (encoder(), Vec::new());
        let mut count = 0;
        while source.append(&encoder, &mut out).is_some() {
            count += 1;
        }
        assert_eq!(count, 18);
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains("key:00000000010") && text.contains("key:00000000011"));
    }
}
