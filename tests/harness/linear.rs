//! A linearisability checker for histories of concurrent clients (after Wing and Gong, with the memory of Lowe): is there one order of the
//! operations, consistent with real time, in which a plain sequential store gives exactly the recorded replies?
//!
//! The search walks the operations that no unfinished operation precedes, applies one to the model, and backtracks. What makes it affordable is
//! remembering each pair (set of operations done, state of the model): two orders that lead to the same pair have the same future. With `c`
//! clients at most `c` operations are open at a time, so the number of pairs stays near (operations × 2^c × states).

use std::collections::HashSet;

/// What a client did. Keys are small numbers; values are integers or absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// `GET`
    Get(usize),
    /// `SET`
    Set(usize, i64),
    /// `INCR`
    Incr(usize),
    /// `DEL`
    Del(usize),
    /// `MSET`
    MSet(Vec<(usize, i64)>),
    /// `MGET`
    MGet(Vec<usize>),
    /// `MULTI ... EXEC`
    Exec(Vec<Op>),
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ret {
    /// `+OK`
    Ok,
    /// A value or nothing.
    Value(Option<i64>),
    /// The replies of `MGET` or `EXEC`.
    Many(Vec<Ret>),
}

/// One finished operation: its call and return times in any unit that only grows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When the client sent it.
    pub call: u64,
    /// When the client had its reply.
    pub done: u64,
    /// What it asked.
    pub op: Op,
    /// What it got.
    pub ret: Ret,
}

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// There is such an order.
    Linearisable,
    /// There is none; the longest order that was possible is given as indices.
    Wrong(Vec<usize>),
    /// The bound on steps was reached first.
    Undecided,
}

/// Steps of the search before it gives up.
const STEPS_MAX: usize = 5_000_000;

/// The sequential store.
fn apply(state: &mut [Option<i64>], op: &Op) -> Ret {
    match op {
        Op::Get(key) => Ret::Value(state[*key]),
        Op::Set(key, value) => {
            state[*key] = Some(*value);
            Ret::Ok
        }
        Op::Incr(key) => {
            let next = state[*key].unwrap_or(0) + 1;
            state[*key] = Some(next);
            Ret::Value(Some(next))
        }
        Op::Del(key) => Ret::Value(Some(i64::from(state[*key].take().is_some()))),
        Op::MSet(pairs) => {
            for (key, value) in pairs {
                state[*key] = Some(*value);
            }
            Ret::Ok
        }
        Op::MGet(keys) => Ret::Many(keys.iter().map(|key| Ret::Value(state[*key])).collect()),
        Op::Exec(ops) => Ret::Many(ops.iter().map(|op| apply(state, op)).collect()),
    }
}

/// Checks a history over `keys` keys that start empty.
pub fn check(history: &[Entry], keys: usize) -> Verdict {
    let mut order: Vec<usize> = (0..history.len()).collect();
    order.sort_by_key(|at| history[*at].call);
    let mut search = Search {
        history,
        order,
        seen: HashSet::new(),
        steps: 0,
        best: Vec::new(),
    };
    let mut done = vec![0u64; history.len().div_ceil(64)];
    let mut path = Vec::new();
    match search.walk(&mut done, &vec![None; keys], &mut path, 0) {
        Some(true) => Verdict::Linearisable,
        Some(false) => Verdict::Wrong(search.best),
        None => Verdict::Undecided,
    }
}

struct Search<'a> {
    history: &'a [Entry],
    /// Indices by call time.
    order: Vec<usize>,
    seen: HashSet<(Vec<u64>, Vec<Option<i64>>)>,
    steps: usize,
    best: Vec<usize>,
}

impl Search<'_> {
    /// `from`: every operation before it in `order` is done. `None` when the bound is reached.
    fn walk(
        &mut self,
        done: &mut Vec<u64>,
        state: &[Option<i64>],
        path: &mut Vec<usize>,
        mut from: usize,
    ) -> Option<bool> {
        while from < self.order.len() && is_set(done, self.order[from]) {
            from += 1;
        }
        if from == self.order.len() {
            return Some(true);
        }
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return None;
        }
        if !self.seen.insert((done.clone(), state.to_vec())) {
            return Some(false);
        }
        // An operation may come next if no other open operation had returned before it was called.
        let mut first_return = u64::MAX;
        for at in from..self.order.len() {
            let index = self.order[at];
            if is_set(done, index) {
                continue;
            }
            let entry = &self.history[index];
            if entry.call > first_return {
                break;
            }
            first_return = first_return.min(entry.done);
            let mut next = state.to_vec();
            if apply(&mut next, &entry.op) != entry.ret {
                continue;
            }
            done[index / 64] |= 1 << (index % 64);
            path.push(index);
            if path.len() > self.best.len() {
                self.best = path.clone();
            }
            let found = self.walk(done, &next, path, from);
            path.pop();
            done[index / 64] &= !(1 << (index % 64));
            if found != Some(false) {
                return found;
            }
        }
        Some(false)
    }
}

fn is_set(done: &[u64], index: usize) -> bool {
    done[index / 64] & (1 << (index % 64)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn entry(call: u64, done: u64, op: Op, ret: Ret) -> Entry {
        Entry {
            call,
            done,
            op,
            ret,
        }
    }

    #[test]
    fn overlapping_operations_may_take_either_order() {
        let history = [
            entry(0, 10, Op::Set(0, 1), Ret::Ok),
            entry(1, 5, Op::Get(0), Ret::Value(None)),
            entry(2, 6, Op::Get(0), Ret::Value(None)),
            entry(7, 9, Op::Get(0), Ret::Value(Some(1))),
        ];
        assert_eq!(check(&history, 1), Verdict::Linearisable);
    }

    #[test]
    fn a_stale_read_is_wrong() {
        let history = [
            entry(0, 1, Op::Set(0, 1), Ret::Ok),
            entry(2, 3, Op::Get(0), Ret::Value(None)),
        ];
        assert_eq!(check(&history, 1), Verdict::Wrong(vec![0]));
    }

    #[test]
    fn a_value_that_goes_back_is_wrong() {
        let history = [
            entry(0, 100, Op::Set(0, 1), Ret::Ok),
            entry(1, 5, Op::Get(0), Ret::Value(Some(1))),
            entry(6, 9, Op::Get(0), Ret::Value(None)),
        ];
        assert!(matches!(check(&history, 1), Verdict::Wrong(_)));
    }

    #[test]
    fn a_torn_multi_key_write_is_wrong() {
        let history = [
            entry(0, 100, Op::MSet(vec![(0, 1), (1, 1)]), Ret::Ok),
            entry(
                1,
                50,
                Op::MGet(vec![0, 1]),
                Ret::Many(vec![Ret::Value(Some(1)), Ret::Value(None)]),
            ),
        ];
        assert!(matches!(check(&history, 2), Verdict::Wrong(_)));
    }

    #[test]
    fn a_lost_increment_is_wrong() {
        let history = [
            entry(0, 10, Op::Incr(0), Ret::Value(Some(1))),
            entry(0, 10, Op::Incr(0), Ret::Value(Some(1))),
        ];
        assert!(matches!(check(&history, 1), Verdict::Wrong(_)));
    }

    /// Histories made from a real sequential run are right; after one reply is changed to a value that nobody wrote, they are wrong.
    #[test]
    fn seeded_histories_right_and_spoilt() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let mut state = vec![None; 3];
            let mut history = Vec::new();
            for at in 0..60u64 {
                let op = random_op(&mut rng, at as i64);
                let ret = apply(&mut state, &op);
                // The moment of effect is at * 10; call and return lie around it and overlap the neighbours.
                history.push(entry(
                    (at * 10).saturating_sub(rng.below(25) as u64),
                    at * 10 + rng.below(25) as u64,
                    op,
                    ret,
                ));
            }
            assert_eq!(check(&history, 3), Verdict::Linearisable, "seed {seed}");
            let reads: Vec<usize> = (0..60)
                .filter(|at| matches!(history[*at].ret, Ret::Value(_)))
                .collect();
            if !reads.is_empty() {
                history[*rng.pick(&reads)].ret = Ret::Value(Some(-77));
                assert!(
                    matches!(check(&history, 3), Verdict::Wrong(_)),
                    "seed {seed}"
                );
            }
        }
    }

    fn random_op(rng: &mut Rng, value: i64) -> Op {
        let key = rng.below(3);
        match rng.below(6) {
            0 => Op::Set(key, value),
            1 => Op::Incr(key),
            2 => Op::MGet(vec![0, 1, 2]),
            3 => Op::MSet(vec![(0, value), (2, value)]),
            4 => Op::Exec(vec![Op::Get(key), Op::Incr(0)]),
            _ => Op::Get(key),
        }
    }
}
