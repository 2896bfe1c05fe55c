//! From registers to a cardinality: Otmar Ertl, "New cardinality estimation algorithms for HyperLogLog sketches",
//! arXiv:1702.01284. The same floating-point operations in the same order as Redis, because the number is stored in the key.

use super::{Histogram, REGISTERS};

/// Bits of the hash beyond the register's index.
const Q: usize = 50;
/// 0.5 / ln 2.
const ALPHA_INF: f64 = 0.721_347_520_444_481_7;

/// The cardinality of registers with these values.
pub fn cardinality(counts: &Histogram) -> u64 {
    let m = REGISTERS as f64;
    let mut z = m * tau((m - f64::from(counts[Q + 1])) / m);
    for value in (1..=Q).rev() {
        z += f64::from(counts[value]);
        z *= 0.5;
    }
    z += m * sigma(f64::from(counts[0]) / m);
    (ALPHA_INF * m * m / z).round() as u64
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if before == z {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if before == z {
            return z / 3.0;
        }
    }
}
