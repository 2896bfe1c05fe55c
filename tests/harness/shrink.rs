//! Makes a failing sequence small (delta debugging): removes ever smaller pieces while the failure stays. The number of tries is bounded.

/// The smallest sequence found that still `fails`, in at most `tries` calls. The order of elements never changes.
pub fn shrink<T: Clone>(items: &[T], tries: usize, mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut best = items.to_vec();
    let mut left = tries;
    let mut piece = best.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let mut removed = false;
        while at < best.len() && left > 0 {
            let end = (at + piece).min(best.len());
            let mut fewer = best.clone();
            fewer.drain(at..end);
            left -= 1;
            if !fewer.is_empty() && fails(&fewer) {
                best = fewer;
                removed = true;
            } else {
                at = end;
            }
        }
        if left == 0 || (piece == 1 && !removed) {
            return best;
        }
        piece = piece.div_ceil(2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::shrink;

    #[test]
    fn finds_the_two_that_matter() {
        let all: Vec<u32> = (0..100).collect();
        assert_eq!(
            shrink(&all, 1000, |s| s.contains(&17) && s.contains(&83)),
            [17, 83]
        );
    }

    #[test]
    fn stops_after_its_tries() {
        let mut calls = 0;
        let all: Vec<u32> = (0..100).collect();
        let _ = shrink(&all, 10, |_| {
            calls += 1;
            false
        });
        assert_eq!(calls, 10);
    }
}
