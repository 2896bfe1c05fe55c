//! Makes command sequences from grammars, and spoils some of them on purpose: missing, doubled, extra and odd arguments, and changed case.

use crate::grammar::Grammar;
use crate::rng::Rng;
use crate::values::{ODD_ARGUMENTS, ODD_NUMBERS, Pool};

/// One step: a command for one of two connections, or a directive of the runner (`@sleep`, `@scanall`, `@dumpcross`, `@state`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// 0 or 1.
    pub conn: usize,
    /// Command name and arguments.
    pub args: Vec<Vec<u8>>,
}

impl Step {
    /// From the arguments as a grammar or a regression file writes them: a leading `@b` means the second connection.
    pub fn new(mut args: Vec<Vec<u8>>) -> Self {
        let second = args.first().is_some_and(|a| a == b"@b");
        if second {
            args.remove(0);
        }
        Self {
            conn: usize::from(second),
            args,
        }
    }

    /// The line that a regression file would hold.
    pub fn line(&self) -> String {
        let mut words: Vec<String> = if self.conn == 1 {
            vec!["@b".into()]
        } else {
            Vec::new()
        };
        for (at, arg) in self.args.iter().enumerate() {
            // Directives and the prefix are the only unquoted words with an @.
            let directive = at == 0 && arg.starts_with(b"@");
            words.push(if directive {
                String::from_utf8_lossy(arg).into_owned()
            } else {
                crate::quote::quote(arg)
            });
        }
        words.join(" ")
    }
}

/// How many of 100 commands are spoilt.
const SPOIL_PERCENT: usize = 12;

/// Draws a sequence of at least `length` steps: four of five forms from `family`, the others from `common`.
pub fn sequence(
    family: &Grammar,
    common: &Grammar,
    length: usize,
    rng: &mut Rng,
    pool: &mut Pool,
) -> Vec<Step> {
    let mut steps = Vec::new();
    while steps.len() < length {
        let grammar = if rng.chance(80) { family } else { common };
        let mut drawn = grammar.draw(rng, pool);
        // A form of several steps depends on each of them (a wait after a short expiry): it stays as it is.
        if let [only] = drawn.as_mut_slice()
            && rng.chance(SPOIL_PERCENT)
        {
            spoil(only, rng);
        }
        steps.extend(drawn.into_iter().map(Step::new));
    }
    steps
}

/// Changes a command in one of the ways in which a client can be wrong.
fn spoil(args: &mut Vec<Vec<u8>>, rng: &mut Rng) {
    if args.first().is_some_and(|a| a.starts_with(b"@")) {
        return;
    }
    // The command name itself stays, except for its case: wrong names have a form of their own.
    let at = 1 + rng.below(args.len().saturating_sub(1));
    match rng.below(7) {
        0 if at < args.len() => {
            args.remove(at);
        }
        1 if at < args.len() => {
            let twice = args[at].clone();
            args.insert(at, twice);
        }
        2 => args.push(rng.pick(ODD_ARGUMENTS).to_vec()),
        3 if at < args.len() => args[at] = rng.pick(ODD_NUMBERS).to_vec(),
        4 if at < args.len() => args[at] = rng.pick(ODD_ARGUMENTS).to_vec(),
        5 => {
            for arg in args.iter_mut() {
                if arg.iter().all(u8::is_ascii_uppercase) && rng.chance(70) {
                    arg.iter_mut().for_each(|b| {
                        if rng.chance(50) {
                            b.make_ascii_lowercase();
                        }
                    });
                }
            }
        }
        _ => {
            let end = at.min(args.len());
            args.truncate(end.max(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_read_back_from_its_line() {
        for args in [
            vec![b"@b".to_vec(), b"GET".to_vec(), b"@b".to_vec()],
            vec![b"@sleep".to_vec(), b"5".to_vec()],
            vec![b"SET".to_vec(), b"".to_vec()],
        ] {
            let step = Step::new(args);
            let again = crate::quote::split(&step.line()).map(Step::new);
            assert_eq!(again, Ok(step));
        }
    }

    #[test]
    fn spoiling_never_removes_the_name() {
        let mut rng = Rng::new(5);
        for _ in 0..2000 {
            let mut args = vec![b"GET".to_vec(), b"k".to_vec()];
            spoil(&mut args, &mut rng);
            assert!(args[0].eq_ignore_ascii_case(b"GET"));
        }
    }
}
