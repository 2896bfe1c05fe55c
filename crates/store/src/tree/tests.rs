//! Byte trees against vectors.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::heap::Heap;
use proptest::prelude::*;

fn heap() -> HeapRef {
    Heap::new(1, 1 << 30).unwrap().handle(0)
}

fn bytes(tree: &ByteTree) -> Vec<u8> {
    let mut out = Vec::new();
    tree.view().copy_to(0..u64::MAX, &mut out);
    out
}

#[derive(Clone, Debug)]
enum Step {
    Write(usize, usize, u8),
    Append(usize, u8),
    Truncate(usize),
    Grow(usize),
    Flip(usize, usize),
    Read(usize, usize),
    Share,
    Free(u64),
}

const MAX: usize = LEAF_BYTES * 600;

fn place() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 0..LEAF_BYTES * 4, 1 => 0..MAX, 1 => (0usize..4, 0usize..3).prop_map(|(leaf, d)| leaf * LEAF_BYTES + d)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (place(), 0usize..10_000, any::<u8>()).prop_map(|(at, length, byte)| Step::Write(at, length, byte)),
        3 => (0usize..10_000, any::<u8>()).prop_map(|(length, byte)| Step::Append(length, byte)),
        2 => place().prop_map(Step::Truncate),
        1 => place().prop_map(Step::Grow),
        2 => (place(), 0usize..9_000).prop_map(|(at, length)| Step::Flip(at, length)),
        2 => (place(), 0usize..9_000).prop_map(|(at, length)| Step::Read(at, length)),
        2 => Just(Step::Share),
        1 => (1u64..50).prop_map(Step::Free),
    ]
}

fn apply(tree: &mut ByteTree, model: &mut Vec<u8>, step: &Step) {
    match *step {
        Step::Write(at, length, byte) => {
            let data: Vec<u8> = (0..length).map(|i| byte.wrapping_add(i as u8)).collect();
            tree.edit().write(at as u64, &data);
            if length > 0 {
                model.resize(model.len().max(at + length), 0);
                model[at..at + length].copy_from_slice(&data);
            }
        }
        Step::Append(length, byte) => {
            tree.edit().append(&vec![byte; length]);
            model.resize(model.len() + length, byte);
        }
        Step::Truncate(length) => {
            tree.edit().truncate(length as u64);
            model.truncate(length);
        }
        Step::Grow(length) => {
            tree.edit().grow(length as u64);
            model.resize(model.len().max(length), 0);
        }
        Step::Flip(at, length) => {
            let mut seen = at.min(model.len()) as u64;
            tree.edit()
                .for_each_mut(at as u64..(at + length) as u64, |place, piece| {
                    assert_eq!(place, seen);
                    seen += piece.len() as u64;
                    piece.iter_mut().for_each(|byte| *byte = !*byte);
                });
            let end = (at + length).min(model.len());
            model[at.min(end)..end]
                .iter_mut()
                .for_each(|byte| *byte = !*byte);
        }
        Step::Read(at, length) => {
            let mut out = Vec::new();
            tree.view()
                .copy_to(at as u64..(at + length) as u64, &mut out);
            let end = (at + length).min(model.len());
            assert_eq!(out, &model[at.min(end)..end]);
            assert_eq!(tree.view().byte(at as u64), model.get(at).copied());
        }
        Step::Share => {}
        Step::Free(leaves) => {
            let done = tree.free_bite(leaves);
            let left = model.len().saturating_sub(leaves as usize * LEAF_BYTES);
            // A shared or empty one goes at once.
            model.truncate(if done { 0 } else { left });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: if cfg!(miri) { 2 } else { 60 }, ..ProptestConfig::default() })]

    #[test]
    fn trees_behave_like_vectors_and_shares_never_change(steps in proptest::collection::vec(step(), 1..40)) {
        let heap = heap();
        let mut tree = ByteTree::new(heap.clone());
        let mut model = Vec::new();
        let mut shares: Vec<(ByteTree, Vec<u8>)> = Vec::new();
        for step in &steps {
            if matches!(step, Step::Share) {
                shares.push((tree.share(), model.clone()));
            }
            apply(&mut tree, &mut model, step);
            prop_assert_eq!(tree.len(), model.len() as u64);
        }
        prop_assert!(bytes(&tree) == model);
        if shares.is_empty() {
            prop_assert_eq!(tree.view().memory_bytes(), heap.heap().used_bytes());
        }
        for (share, frozen) in &shares {
            prop_assert!(bytes(share) == *frozen);
        }
        drop(tree);
        for (share, frozen) in &shares {
            prop_assert!(bytes(share) == *frozen);
        }
        drop(shares);
        prop_assert_eq!(heap.heap().used_bytes(), 0);
    }
}

#[test]
fn a_byte_far_away_costs_a_path_and_not_the_gap() {
    let heap = heap();
    let mut tree = ByteTree::new(heap.clone());
    tree.edit().write(512 << 20, b"x");
    assert_eq!(tree.len(), (512 << 20) + 1);
    assert!(tree.view().memory_bytes() < 20_000);
    assert_eq!(tree.view().byte(512 << 20), Some(b'x'));
    assert_eq!(tree.view().byte(100), Some(0));
    assert_eq!(heap.heap().used_bytes(), tree.view().memory_bytes());
}

#[test]
fn overhead_is_small_at_every_length() {
    let heap = heap();
    for length in [4_097usize, 5_000, 10_000, 100_000, 1_000_000] {
        let mut tree = ByteTree::new(heap.clone());
        tree.edit().append(&vec![1; length]);
        let bytes = tree.view().memory_bytes();
        assert!(
            bytes as usize <= length + length / 8 + 64,
            "{bytes} for {length}"
        );
    }
    assert_eq!(heap.heap().used_bytes(), 0);
}

#[test]
fn a_cut_makes_only_written_nodes_double() {
    let heap = heap();
    let mut tree = ByteTree::new(heap.clone());
    tree.edit().append(&vec![1; 4_000_000]);
    let alone = heap.heap().used_bytes();
    let share = tree.share();
    assert_eq!(heap.heap().used_bytes(), alone);
    tree.edit().write(2_000_000, b"changed");
    let extra = heap.heap().used_bytes() - alone;
    assert!(extra <= 4 * 4096, "{extra}");
    assert_eq!(share.view().byte(2_000_000), Some(1));
    assert_eq!(tree.view().byte(2_000_000), Some(b'c'));
}
