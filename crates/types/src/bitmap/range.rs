//! The start and end of `BITCOUNT`, `BITPOS` and `GETRANGE`: negative positions count from the end, and what lies outside is cut.

/// An inclusive range of positions inside a sequence of `total`, or `None` when nothing is left of it. Two positions from the
/// end in the wrong order are nothing, even where both lie before the beginning.
pub fn inside(start: i64, end: i64, total: u64) -> Option<(u64, u64)> {
    if start < 0 && end < 0 && start > end {
        None
    } else {
        clamped(start, end, total)
    }
}

/// The same, except that positions before the beginning become 0 before they are compared, as `BITPOS` does.
pub fn clamped(start: i64, end: i64, total: u64) -> Option<(u64, u64)> {
    let total = i64::try_from(total).unwrap_or(i64::MAX);
    let from_end = |at: i64| if at < 0 { (total + at).max(0) } else { at };
    let (start, end) = (from_end(start), from_end(end).min(total - 1));
    (start <= end).then_some((start as u64, end as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges() {
        assert_eq!(inside(0, -1, 10), Some((0, 9)));
        assert_eq!(inside(-1, -2, 10), None);
        assert_eq!(inside(-100, -50, 10), Some((0, 0)));
        assert_eq!(inside(-100, -200, 10), None);
        assert_eq!(clamped(-100, -200, 10), Some((0, 0)));
        assert_eq!(clamped(-10, -11, 10), Some((0, 0)));
        assert_eq!(clamped(-1, -2, 10), None);
        assert_eq!(inside(5, 100, 10), Some((5, 9)));
        assert_eq!(inside(10, 100, 10), None);
        assert_eq!(inside(0, -1, 0), None);
        assert_eq!(inside(i64::MIN, i64::MAX, 10), Some((0, 9)));
    }
}
