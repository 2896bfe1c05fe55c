//! Finds the keys among a command's arguments by its specification.

use crate::spec::{Begin, Find, KeySpec, Spec};
use pantala_protocol::Args;

/// Pushes the argument positions of the keys of `args` to `out`, in the order of the specification. Positions beyond the
/// arguments and malformed counts yield no keys: the handler will find the error and answer it.
pub fn positions(spec: &Spec, args: Args<'_>, out: &mut Vec<u32>) {
    if let Some(find) = spec.find_keys {
        find(args, out);
        return;
    }
    for rule in spec.keys {
        by_rule(rule, args, out);
    }
}

fn by_rule(rule: &KeySpec, args: Args<'_>, out: &mut Vec<u32>) {
    let argc = args.len();
    let begin = match rule.begin {
        Begin::Index(at) => usize::from(at),
        Begin::Keyword(word, from) => match after_keyword(args, word, from) {
            Some(at) => at,
            None => return,
        },
        Begin::Unknown => return,
    };
    match rule.find {
        Find::Range { last, step, limit } => {
            let step = usize::from(step.max(1));
            let last = if last >= 0 {
                begin + usize::from(last.unsigned_abs())
            } else if limit <= 1 {
                match (argc + 1).checked_sub(usize::from(last.unsigned_abs()) + 1) {
                    Some(last) => last,
                    None => return,
                }
            } else {
                begin
                    + (argc.saturating_sub(begin) / usize::from(limit) + 1)
                        .saturating_sub(usize::from(last.unsigned_abs()) + 1)
            };
            let mut at = begin;
            while at <= last && at < argc {
                out.push(at as u32);
                at += step;
            }
        }
        Find::KeyNum {
            count_at,
            first,
            step,
        } => {
            let Some(count) = args
                .get(begin + usize::from(count_at))
                .and_then(pantala_protocol::numbers::parse_i64)
            else {
                return;
            };
            let step = usize::from(step.max(1));
            let first = begin + usize::from(first);
            // A count that does not fit the arguments is the handler's to refuse.
            if count <= 0
                || (count as u64 - 1).saturating_mul(step as u64)
                    >= argc.saturating_sub(first) as u64
            {
                return;
            }
            out.extend((0..count as usize).map(|n| (first + n * step) as u32));
        }
        Find::Unknown => {}
    }
}

fn after_keyword(args: Args<'_>, word: &str, from: i16) -> Option<usize> {
    let matches = |at: usize| {
        args.get(at)
            .is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()))
    };
    let argc = args.len();
    let found = if from >= 0 {
        (usize::from(from.unsigned_abs())..argc).find(|&at| matches(at))
    } else {
        (1..=argc.checked_sub(usize::from(from.unsigned_abs()))?)
            .rev()
            .find(|&at| matches(at))
    };
    found.map(|at| at + 1)
}
