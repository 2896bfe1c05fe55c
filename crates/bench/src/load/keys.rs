//! Which key comes next, and how its number is spelled: the random numbers, the distributions and the key format.
//! Nothing here allocates once a run has started, and every sequence follows from its seed alone.

use serde::Serialize;

/// A small, fast random generator (xoshiro256++), seeded by one number.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// A generator whose whole sequence follows from `seed`; any seed is good, 0 too.
    pub fn new(seed: u64) -> Self {
        // The generator must not start from four zeros; mixing a running counter cannot give four.
        let mut counter = seed;
        let state = std::array::from_fn(|_| {
            counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(counter)
        });
        Self { state }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = &mut self.state;
        let result = s0.wrapping_add(*s3).rotate_left(23).wrapping_add(*s0);
        let shifted = *s1 << 17;
        *s2 ^= *s0;
        *s3 ^= *s1;
        *s1 ^= *s2;
        *s0 ^= *s3;
        *s2 ^= shifted;
        *s3 = s3.rotate_left(45);
        result
    }

    /// A number in `0..bound` (0 when `bound` is 0), by multiplication: the bias is below `bound / 2^64`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `0.0..1.0` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// Spreads the bits of a number over all 64 (the finaliser of splitmix64); a bijection.
pub fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// How often each key is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Every key equally often.
    Uniform,
    /// The key of rank r in proportion to `1 / r^theta`; the ranks are scattered over the key numbers.
    Zipf {
        /// The exponent, above 0; 0.99 is the usual one of YCSB.
        theta: f64,
    },
}

/// Draws key numbers for one connection.
#[derive(Debug, Clone)]
pub struct KeyPicker {
    rng: Rng,
    keys: u64,
    zipf: Option<Zipf>,
}

impl KeyPicker {
    /// Draws from `0..keys` by `distribution`; the sequence follows from `seed`.
    pub fn new(keys: u64, distribution: Distribution, seed: u64) -> Self {
        let zipf = match distribution {
            Distribution::Uniform => None,
            Distribution::Zipf { theta } => Some(Zipf::new(keys, theta)),
        };
        Self {
            rng: Rng::new(seed),
            keys,
            zipf,
        }
    }

    /// The next key number.
    pub fn pick(&mut self) -> u64 {
        match &self.zipf {
            None => self.rng.below(self.keys),
            Some(zipf) => scatter(zipf.rank(&mut self.rng), self.keys),
        }
    }

    /// The generator behind the draws, for the other choices that this connection makes.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }
}

/// Sends rank `0..keys` to a key number by a bijection, so that hot keys are not neighbours.
fn scatter(rank: u64, keys: u64) -> u64 {
    // A multiplier that shares no factor with `keys` permutes the numbers below `keys`. One of these primes always
    // qualifies: their product is above 2^64, so no 64-bit number has all three as factors.
    const PRIMES: [u64; 3] = [2_654_435_761, 4_294_967_291, 4_294_967_279];
    let multiplier = PRIMES
        .into_iter()
        .find(|prime| !keys.is_multiple_of(*prime))
        .unwrap_or(1);
    ((u128::from(rank) * u128::from(multiplier)) % u128::from(keys.max(1))) as u64
}

/// Zipf ranks by rejection-inversion (Hörmann and Derflinger 1996): constant time and no table, at any number of keys.
#[derive(Debug, Clone)]
struct Zipf {
    keys: u64,
    theta: f64,
    integral_first: f64,
    integral_last: f64,
    shortcut: f64,
}

impl Zipf {
    fn new(keys: u64, theta: f64) -> Self {
        let mut zipf = Self {
            keys: keys.max(1),
            theta,
            integral_first: 0.0,
            integral_last: 0.0,
            shortcut: 0.0,
        };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(zipf.keys as f64 + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// A rank from 0 (the hottest) to keys − 1.
    fn rank(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.integral_last + rng.unit() * (self.integral_first - self.integral_last);
            let x = self.inverse(u);
            let k = x.round().clamp(1.0, self.keys as f64);
            if k - x <= self.shortcut || u >= self.integral(k + 0.5) - self.density(k) {
                return k as u64 - 1;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// The integral of the density, `(x^(1-θ) - 1) / (1-θ)`, which is `ln x` at θ = 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let exponent = (1.0 - self.theta) * log;
        if exponent.abs() < 1e-8 {
            log * (1.0 + exponent / 2.0)
        } else {
            exponent.exp_m1() / exponent * log
        }
    }

    fn inverse(&self, y: f64) -> f64 {
        let product = (y * (1.0 - self.theta)).max(-1.0);
        let log = if product.abs() < 1e-8 {
            y * (1.0 - product / 2.0)
        } else {
            product.ln_1p() / product * y
        };
        log.exp()
    }
}

/// How a key number is spelled: `key:` and the number with leading zeros, always the same length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyFormat {
    size_bytes: usize,
}

/// What stands in front of the number.
const PREFIX: &[u8] = b"key:";
/// Memcached's limit; Redis has none that matters here.
const KEY_BYTES_MAX: usize = 250;

impl KeyFormat {
    /// Keys of `size_bytes`, of which there are `keys`.
    ///
    /// # Errors
    /// Says what was expected when the number does not fit or the key is longer than memcached takes.
    pub fn new(size_bytes: usize, keys: u64) -> Result<Self, String> {
        let digits = keys.saturating_sub(1).max(1).ilog10() as usize + 1;
        if size_bytes < PREFIX.len() + digits || size_bytes > KEY_BYTES_MAX {
            return Err(format!(
                "key size: expected {} to {KEY_BYTES_MAX} bytes for {keys} keys, got {size_bytes}",
                PREFIX.len() + digits
            ));
        }
        Ok(Self { size_bytes })
    }

    /// Bytes of every key.
    pub fn size_bytes(self) -> usize {
        self.size_bytes
    }

    /// Appends the key of number `index`.
    pub fn append(self, out: &mut Vec<u8>, index: u64) {
        let start = out.len();
        out.extend_from_slice(PREFIX);
        out.resize(start + self.size_bytes, b'0');
        let mut rest = index;
        for digit in out[start + PREFIX.len()..].iter_mut().rev() {
            if rest == 0 {
                break;
            }
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_have_one_length_and_their_number() {
        let format = KeyFormat::new(15, 1_000_000).unwrap();
        let mut out = Vec::new();
        format.append(&mut out, 0);
        format.append(&mut out, 987_654);
        assert_eq!(out, b"key:00000000000key:00000987654");
    }

    #[test]
    fn a_key_size_that_cannot_hold_the_numbers_is_refused() {
        assert!(KeyFormat::new(9, 100_000).is_ok());
        assert!(KeyFormat::new(9, 100_001).is_err());
        assert!(KeyFormat::new(5, 1).is_ok());
        assert!(KeyFormat::new(251, 1).is_err());
    }

    #[test]
    fn uniform_draws_reach_every_key_about_equally_often() {
        let mut picker = KeyPicker::new(100, Distribution::Uniform, 1);
        let mut counts = [0u32; 100];
        for _ in 0..100_000 {
            counts[picker.pick() as usize] += 1;
        }
        // 1,000 expected; the standard deviation is 31.
        assert!(
            counts.iter().all(|&count| (800..1_200).contains(&count)),
            "{counts:?}"
        );
    }

    #[test]
    fn different_seeds_give_different_sequences_and_equal_seeds_equal_ones() {
        let draw = |seed| {
            let mut picker = KeyPicker::new(1_000_000, Distribution::Uniform, seed);
            (0..20).map(|_| picker.pick()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn zipf_follows_its_law() {
        for theta in [0.5, 0.99, 1.0, 1.3] {
            let zipf = Zipf::new(1_000, theta);
            let mut rng = Rng::new(3);
            let mut counts = vec![0f64; 1_000];
            let draws = 400_000;
            for _ in 0..draws {
                counts[zipf.rank(&mut rng) as usize] += 1.0;
            }
            let norm: f64 = (1..=1_000).map(|r| f64::from(r).powf(-theta)).sum();
            for rank in [1usize, 2, 3, 10, 100] {
                let expected = f64::from(draws) * (rank as f64).powf(-theta) / norm;
                let got = counts[rank - 1];
                let slack = 5.0 * expected.sqrt() + 1.0;
                assert!(
                    (got - expected).abs() < slack,
                    "theta {theta} rank {rank}: expected {expected:.0}, got {got}"
                );
            }
        }
    }

    #[test]
    fn zipf_stays_in_range_for_few_keys() {
        for keys in 1..5 {
            let mut picker = KeyPicker::new(keys, Distribution::Zipf { theta: 0.99 }, 5);
            assert!((0..1_000).all(|_| picker.pick() < keys));
        }
    }

    #[test]
    fn scatter_is_a_permutation() {
        for keys in [1u64, 2, 1_000, 4_096, 99_991] {
            let seen: HashSet<u64> = (0..keys).map(|rank| scatter(rank, keys)).collect();
            assert_eq!(seen.len() as u64, keys);
        }
    }
}
