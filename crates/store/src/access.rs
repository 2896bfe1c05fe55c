//! The 16 access bits of an entry: when it was last used (LRU), or how often (LFU).
//!
//! LRU: the top bit tells the unit of the other 15. 0: seconds (of the Unix time, modulo 2^15, so exact for 9 hours of
//! idleness). 1: minutes (modulo 2^15, 22 days). A use always writes seconds; the background walk, which must pass each
//! entry at least every few hours, turns stamps older than two hours into minutes and holds those older than 22 days at
//! 22 days, so that neither unit wraps around.
//!
//! LFU: as Redis, a logarithmic counter of 8 bits, and the time of its last decay, here in 8 bits of minutes (Redis has 16):
//! the same walk applies the decay before 256 minutes are over. A decay time above some two hours may so never be reached, and
//! then counts as never.
//!
//! No clock is read here; times come in.

const COARSE: u16 = 0x8000;
const STAMP: u16 = 0x7fff;
/// Idle seconds from which the walk turns seconds into minutes.
const COARSE_FROM_SECS: u64 = 2 * 3600;
/// The longest idle time that is told: 22 days.
const IDLE_MAX_MINUTES: u64 = 22 * 24 * 60;

/// What a new entry's LFU counter starts with, so that new keys are not evicted at once.
pub(crate) const LFU_INIT: u8 = 5;

/// How access is recorded; follows `maxmemory-policy`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccessPolicy {
    /// Count uses (LFU) instead of noting the time of the last one (LRU).
    pub lfu: bool,
    /// `lfu-log-factor`: how much slower the counter grows the higher it is.
    pub lfu_log_factor: u32,
    /// `lfu-decay-time`: minutes after which the counter loses one; 0 = never.
    pub lfu_decay_minutes: u32,
    /// Uses leave no trace (`CLIENT NO-TOUCH`).
    pub no_touch: bool,
}

impl Default for AccessPolicy {
    fn default() -> Self {
        Self {
            lfu: false,
            lfu_log_factor: 10,
            lfu_decay_minutes: 1,
            no_touch: false,
        }
    }
}

impl AccessPolicy {
    /// The access bits of an entry that is made now.
    #[inline]
    pub(crate) fn fresh(self, now_ms: i64) -> u16 {
        if self.lfu {
            lfu_bits(minutes(now_ms), LFU_INIT)
        } else {
            lru_now(now_ms)
        }
    }

    /// The access bits after a use; `random` decides whether a high LFU counter grows.
    #[inline]
    pub(crate) fn touched(self, bits: u16, now_ms: i64, random: u32) -> u16 {
        if self.no_touch {
            return bits;
        }
        if !self.lfu {
            return lru_now(now_ms);
        }
        let counter = self.decayed(bits, now_ms);
        let base = u64::from(counter.saturating_sub(LFU_INIT));
        let odds = base * u64::from(self.lfu_log_factor) + 1;
        let grown = if counter < u8::MAX && u64::from(random) * odds <= u64::from(u32::MAX) {
            counter + 1
        } else {
            counter
        };
        lfu_bits(minutes(now_ms), grown)
    }

    /// The bits that the background walk leaves behind (see the head of this file).
    pub(crate) fn aged(self, bits: u16, now_ms: i64) -> u16 {
        if self.lfu {
            let passed = (minutes(now_ms) as u8).wrapping_sub((bits >> 8) as u8);
            if passed < 64 {
                return bits;
            }
            // What is left of the last period counts on.
            let rest = u64::from(passed) % u64::from(self.lfu_decay_minutes.max(1));
            lfu_bits(
                minutes(now_ms).wrapping_sub(rest),
                self.decayed(bits, now_ms),
            )
        } else {
            let idle = lru_idle_secs(bits, now_ms);
            if bits & COARSE == 0 && idle < COARSE_FROM_SECS {
                bits
            } else {
                lru_of_idle(idle, now_ms)
            }
        }
    }

    /// The LFU counter now, after decay.
    #[inline]
    pub(crate) fn decayed(self, bits: u16, now_ms: i64) -> u8 {
        let counter = bits as u8;
        if self.lfu_decay_minutes == 0 {
            return counter;
        }
        let passed = (minutes(now_ms) as u8).wrapping_sub((bits >> 8) as u8);
        let periods = u32::from(passed) / self.lfu_decay_minutes;
        u32::from(counter).saturating_sub(periods) as u8
    }
}

#[inline]
fn lru_now(now_ms: i64) -> u16 {
    seconds(now_ms) as u16 & STAMP
}

/// Seconds since the last use.
pub(crate) fn lru_idle_secs(bits: u16, now_ms: i64) -> u64 {
    if bits & COARSE == 0 {
        u64::from((seconds(now_ms) as u16).wrapping_sub(bits) & STAMP)
    } else {
        u64::from((minutes(now_ms) as u16).wrapping_sub(bits) & STAMP) * 60
    }
}

/// The bits of an entry that was last used `idle_secs` ago.
pub(crate) fn lru_of_idle(idle_secs: u64, now_ms: i64) -> u16 {
    if idle_secs < COARSE_FROM_SECS {
        (seconds(now_ms) as u16).wrapping_sub(idle_secs as u16) & STAMP
    } else {
        let idle_minutes = (idle_secs / 60).min(IDLE_MAX_MINUTES);
        COARSE | ((minutes(now_ms) as u16).wrapping_sub(idle_minutes as u16) & STAMP)
    }
}

/// The bits of an entry with this LFU counter.
pub(crate) fn lfu_of_counter(counter: u8, now_ms: i64) -> u16 {
    lfu_bits(minutes(now_ms), counter)
}

#[inline]
fn lfu_bits(minutes: u64, counter: u8) -> u16 {
    (minutes as u16) << 8 | u16::from(counter)
}

#[inline]
fn seconds(now_ms: i64) -> u64 {
    (now_ms.max(0) as u64) / 1000
}

#[inline]
fn minutes(now_ms: i64) -> u64 {
    (now_ms.max(0) as u64) / 60_000
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;

    #[test]
    fn idle_seconds_are_exact_for_hours_and_minutes_afterwards() {
        let policy = AccessPolicy::default();
        let bits = policy.fresh(NOW);
        for idle in [0u64, 1, 2, 59, 60, 3600, 30_000] {
            assert_eq!(lru_idle_secs(bits, NOW + idle as i64 * 1000), idle);
        }
        let mut bits = bits;
        for hour in 1..=24 * 40u64 {
            let now = NOW + hour as i64 * 3_600_000;
            bits = policy.aged(bits, now);
            let idle = lru_idle_secs(bits, now);
            let told = (hour * 3600).min(IDLE_MAX_MINUTES * 60);
            assert!(
                idle.abs_diff(told) <= 24 * 40 * 60 && idle <= IDLE_MAX_MINUTES * 60,
                "hour {hour}: {idle} for {told}"
            );
            if hour <= 24 {
                assert!(idle.abs_diff(told) <= 120, "hour {hour}: {idle} for {told}");
            }
        }
    }

    #[test]
    fn idle_time_can_be_set() {
        for idle in [0, 5, 7000, 8000, 100_000, 1_000_000] {
            let told = lru_idle_secs(lru_of_idle(idle, NOW), NOW);
            assert!(told.abs_diff(idle) < 60, "{idle} {told}");
        }
    }

    #[test]
    fn lfu_grows_slowly_and_decays() {
        let policy = AccessPolicy {
            lfu: true,
            ..AccessPolicy::default()
        };
        let mut bits = policy.fresh(NOW);
        let mut seed = 1u32;
        for _ in 0..100_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bits = policy.touched(bits, NOW, seed);
        }
        let counter = policy.decayed(bits, NOW);
        assert!((100..=200).contains(&counter), "{counter}");
        assert_eq!(policy.decayed(bits, NOW + 60_000 * 10), counter - 10);
        let later = policy.aged(bits, NOW + 60_000 * 100);
        assert_eq!(
            policy.decayed(later, NOW + 60_000 * 300),
            counter
                .saturating_sub(255)
                .max(counter.saturating_sub(100).saturating_sub(200))
        );
    }
}
