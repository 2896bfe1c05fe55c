//! Medians and spreads over the passes of a cell.

/// The middle of some numbers (the mean of the two middle ones for an even count); `None` for none.
pub fn median(numbers: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = numbers.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some((sorted[middle - 1] + upper) / 2.0)
}

/// The distance between the largest and the smallest number, as a share of the median; 0 for fewer than two.
pub fn spread(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let all: Vec<f64> = numbers.into_iter().collect();
    let middle = median(all.iter().copied()).unwrap_or(0.0);
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if all.len() < 2 || middle == 0.0 {
        0.0
    } else {
        (high - low) / middle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_odd_and_even_counts() {
        assert_eq!(median([]), None);
        assert_eq!(median([3.0]), Some(3.0));
        assert_eq!(median([9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median([9.0, 1.0, 5.0, 7.0]), Some(6.0));
    }

    #[test]
    fn the_spread_is_a_share_of_the_median() {
        assert_eq!(spread([]), 0.0);
        assert_eq!(spread([4.0]), 0.0);
        assert_eq!(spread([9.0, 10.0, 12.0]), 0.3);
    }
}
