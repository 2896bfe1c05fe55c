//! Which processors a thread, and what it starts, may run on.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::io;

/// Keeps the calling thread on `cores`; with an empty list it stays where it is.
///
/// # Errors
/// There is no such processor, or this process may not use it.
pub fn pin_this_thread(cores: &[usize]) -> io::Result<()> {
    if cores.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core)?;
    }
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// Reads a list of processors: numbers and ranges, such as `0,2-3`.
///
/// # Errors
/// Says what was expected.
pub fn parse_cores(text: &str) -> Result<Vec<usize>, String> {
    let expected = || format!("expected processors such as 0,2-3, got {text:?}");
    let number = |part: &str| part.trim().parse::<usize>().map_err(|_| expected());
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last || last >= CpuSet::count() {
            return Err(expected());
        }
        cores.extend(first..=last);
    }
    Ok(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors() {
        assert_eq!(parse_cores("0"), Ok(vec![0]));
        assert_eq!(parse_cores("0,2-4"), Ok(vec![0, 2, 3, 4]));
        for bad in ["", "a", "3-1", "0,", "99999999"] {
            assert!(parse_cores(bad).is_err(), "{bad}");
        }
    }
}
