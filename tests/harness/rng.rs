//! Seeded pseudo-random numbers (SplitMix64), so that one printed seed repeats a whole run. Never used for anything but tests.

/// A small generator; the same seed gives the same numbers on every machine.
#[derive(Debug, Clone)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// Starts from `seed`; every seed is fine, 0 included.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 {
            0
        } else {
            (self.next_u64() % bound as u64) as usize
        }
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = (high.wrapping_sub(low) as u64).saturating_add(1);
        low.wrapping_add((self.next_u64() % span) as i64)
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One element of a list that is not empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Puts the elements into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// The seed when none is asked for: the same at each run, so that a run tests the change and not its luck.
const USUAL_SEED: u64 = 20_261_130;

/// The seed of this run: `PANTALA_SEED=n`; `PANTALA_SEED=random` makes one from the clock, to search for new faults. Printed, so that a failure
/// can be repeated.
pub fn seed_of_run(suite: &str) -> u64 {
    let wanted = std::env::var("PANTALA_SEED").unwrap_or_default();
    let seed = match wanted.trim() {
        "random" => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(1, |since| since.as_nanos() as u64 % 1_000_000_007)
        }
        text => text.parse().unwrap_or(USUAL_SEED),
    };
    println!("{suite}: PANTALA_SEED={seed}");
    seed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence() {
        let draw = |seed| {
            let mut rng = Rng::new(seed);
            (0..10).map(|_| rng.next_u64()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn bounds_hold() {
        let mut rng = Rng::new(1);
        for _ in 0..1000 {
            assert!(rng.below(3) < 3);
            assert!((-2..=2).contains(&rng.between(-2, 2)));
        }
        assert_eq!(rng.below(0), 0);
        let _ = rng.between(i64::MIN, i64::MAX);
    }
}
