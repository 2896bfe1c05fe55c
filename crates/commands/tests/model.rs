//! Strings against a plain `Vec<u8>`: whichever encoding holds the value (integer, packed, raw, grown, tree), the answers are the same.

mod common;

use common::Server;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Set(Vec<u8>),
    Append(Vec<u8>),
    SetRange(usize, Vec<u8>),
    GetRange(i64, i64),
    SetBit(usize, bool),
    GetBit(usize),
    Count(i64, i64, bool),
    Position(bool, i64, i64, bool),
    Field(usize, u8, i64),
    Not,
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any::<i64>().prop_map(|n| n.to_string().into_bytes()),
        "[ -~]{0,100}".prop_map(String::into_bytes),
        (4000usize..4200).prop_map(|len| (0..len).map(|i| b' ' + (i % 90) as u8).collect()),
        (0usize..20_000).prop_map(|len| (0..len).map(|i| (i % 256) as u8).collect()),
        proptest::collection::vec(any::<u8>(), 0..60),
        (0usize..9000).prop_map(|len| vec![0xff; len]),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let at = prop_oneof![0usize..200, 0usize..20_000];
    let place = || prop_oneof![-200i64..200, -20_000i64..20_000];
    prop_oneof![
        2 => value().prop_map(Op::Set),
        2 => value().prop_map(Op::Append),
        2 => (at.clone(), value()).prop_map(|(at, value)| Op::SetRange(at, value)),
        2 => (place(), place()).prop_map(|(start, end)| Op::GetRange(start, end)),
        2 => (at.clone(), any::<bool>()).prop_map(|(at, bit)| Op::SetBit(at * 7, bit)),
        1 => at.clone().prop_map(|at| Op::GetBit(at * 7)),
        2 => (place(), place(), any::<bool>()).prop_map(|(start, end, bits)| Op::Count(start, end, bits)),
        2 => (any::<bool>(), place(), place(), any::<bool>()).prop_map(|(bit, start, end, bits)| Op::Position(bit, start, end, bits)),
        1 => (at, 1u8..=64, any::<i64>()).prop_map(|(at, bits, value)| Op::Field(at * 3, bits, value)),
        1 => Just(Op::Not),
    ]
}

/// The positions that a range leaves, as for `GETRANGE` and `BITCOUNT` (`ordered`) or `BITPOS`.
fn inside(start: i64, end: i64, total: usize, ordered: bool) -> std::ops::Range<usize> {
    let total = total as i64;
    if ordered && start < 0 && end < 0 && start > end {
        return 0..0;
    }
    let from_end = |at: i64| if at < 0 { (at + total).max(0) } else { at };
    let (start, end) = (from_end(start), from_end(end).min(total - 1));
    if start > end {
        0..0
    } else {
        start as usize..end as usize + 1
    }
}

fn bit(model: &[u8], at: usize) -> bool {
    model
        .get(at / 8)
        .is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1)
}

fn write(model: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if !bytes.is_empty() {
        model.resize(model.len().max(at + bytes.len()), 0);
        model[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

fn set_bit(model: &mut Vec<u8>, at: usize, on: bool) {
    model.resize(model.len().max(at / 8 + 1), 0);
    let mask = 0x80 >> (at % 8);
    if on {
        model[at / 8] |= mask
    } else {
        model[at / 8] &= !mask
    }
}

fn bits_in(range: &std::ops::Range<usize>, in_bits: bool) -> std::ops::Range<usize> {
    if in_bits {
        range.clone()
    } else {
        range.start * 8..range.end * 8
    }
}

/// What the command answers, from the model.
fn expect(op: &Op, model: &mut Vec<u8>) -> (Vec<Vec<u8>>, Vec<u8>) {
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| word.as_bytes().to_vec())
            .collect::<Vec<_>>()
    };
    let integer = |n: i64| format!(":{n}\r\n").into_bytes();
    let unit = |in_bits: bool| if in_bits { "BIT" } else { "BYTE" };
    match op {
        Op::Set(value) => {
            model.clone_from(value);
            (
                vec![b"SET".to_vec(), b"k".to_vec(), value.clone()],
                b"+OK\r\n".to_vec(),
            )
        }
        Op::Append(value) => {
            model.extend_from_slice(value);
            (
                vec![b"APPEND".to_vec(), b"k".to_vec(), value.clone()],
                integer(model.len() as i64),
            )
        }
        Op::SetRange(at, value) => {
            write(model, *at, value);
            let command = vec![
                b"SETRANGE".to_vec(),
                b"k".to_vec(),
                at.to_string().into_bytes(),
                value.clone(),
            ];
            (command, integer(model.len() as i64))
        }
        Op::GetRange(start, end) => {
            let part = &model[inside(*start, *end, model.len(), true)];
            let reply = [format!("${}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat();
            (
                words(&["GETRANGE", "k", &start.to_string(), &end.to_string()]),
                reply,
            )
        }
        Op::SetBit(at, on) => {
            let before = bit(model, *at);
            set_bit(model, *at, *on);
            (
                words(&["SETBIT", "k", &at.to_string(), if *on { "1" } else { "0" }]),
                integer(i64::from(before)),
            )
        }
        Op::GetBit(at) => (
            words(&["GETBIT", "k", &at.to_string()]),
            integer(i64::from(bit(model, *at))),
        ),
        Op::Count(start, end, in_bits) => {
            let total = model.len() * if *in_bits { 8 } else { 1 };
            let range = bits_in(&inside(*start, *end, total, true), *in_bits);
            let ones = range.filter(|&at| bit(model, at)).count();
            (
                words(&[
                    "BITCOUNT",
                    "k",
                    &start.to_string(),
                    &end.to_string(),
                    unit(*in_bits),
                ]),
                integer(ones as i64),
            )
        }
        Op::Position(on, start, end, in_bits) => {
            let total = model.len() * if *in_bits { 8 } else { 1 };
            let mut range = bits_in(&inside(*start, *end, total, false), *in_bits);
            let place = range
                .find(|&at| bit(model, at) == *on)
                .map_or(-1, |at| at as i64);
            let on = if *on { "1" } else { "0" };
            (
                words(&[
                    "BITPOS",
                    "k",
                    on,
                    &start.to_string(),
                    &end.to_string(),
                    unit(*in_bits),
                ]),
                integer(place),
            )
        }
        Op::Field(at, bits, value) => {
            let read = (0..usize::from(*bits))
                .fold(0u64, |field, i| field << 1 | u64::from(bit(model, at + i)));
            let unused = 64 - u32::from(*bits);
            let before = ((read << unused) as i64) >> unused;
            for i in 0..usize::from(*bits) {
                set_bit(
                    model,
                    at + i,
                    value >> (usize::from(*bits) - 1 - i) & 1 == 1,
                );
            }
            let reply = format!("*1\r\n:{before}\r\n").into_bytes();
            (
                words(&[
                    "BITFIELD",
                    "k",
                    "SET",
                    &format!("i{bits}"),
                    &at.to_string(),
                    &value.to_string(),
                ]),
                reply,
            )
        }
        Op::Not => {
            model.iter_mut().for_each(|byte| *byte = !*byte);
            (
                words(&["BITOP", "NOT", "k", "k"]),
                integer(model.len() as i64),
            )
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn every_encoding_answers_alike(first in value(), ops in proptest::collection::vec(op(), 1..40)) {
        let mut server = Server::new();
        let mut model = Vec::new();
        for op in std::iter::once(Op::Set(first)).chain(ops) {
            if model.is_empty() && matches!(op, Op::Not) {
                // An empty result removes the key.
                continue;
            }
            let (command, reply) = expect(&op, &mut model);
            let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(server.run(&words).reply, reply, "{:?}", words.iter().map(|w| String::from_utf8_lossy(&w[..w.len().min(30)]).into_owned()).collect::<Vec<_>>());
            let held = [format!("${}\r\n", model.len()).as_bytes(), &model, b"\r\n"].concat();
            prop_assert!(server.run(&[b"GET", b"k"]).reply == held, "after {:?}", words[0]);
        }
    }
}
