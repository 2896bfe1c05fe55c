//! Times to live as memcached's clients write them. No clock is read here.
//!
//! Memcached's clock has ticks of a second, so an item of one second may live between nothing and one second there; here it lives
//! the full time, to the millisecond.

/// Beyond this many seconds a time to live is a Unix time: 30 days.
const RELATIVE_MAX_S: i32 = 60 * 60 * 24 * 30;

/// When an item is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expiry {
    /// Never.
    Never,
    /// At this Unix time in milliseconds.
    At(i64),
    /// It is over before it begins.
    Past,
}

impl Expiry {
    /// What a client's number means: 0 is never, negative is over already, up to 30 days from now on, beyond that a Unix time in seconds.
    pub(super) fn from_client(exptime_s: i32, now_ms: i64) -> Self {
        let ms = i64::from(exptime_s) * 1000;
        let at_ms = match exptime_s {
            0 => return Self::Never,
            ..0 => return Self::Past,
            1..=RELATIVE_MAX_S => now_ms + ms,
            _ => ms,
        };
        if at_ms > now_ms {
            Self::At(at_ms)
        } else {
            Self::Past
        }
    }

    /// What an entry says.
    pub(super) fn from_entry(expiry_ms: Option<i64>) -> Self {
        expiry_ms.map_or(Self::Never, Self::At)
    }

    /// As the store keeps it; what is over already is not stored at all.
    pub(super) fn at_ms(self) -> Option<i64> {
        match self {
            Self::At(at_ms) => Some(at_ms),
            Self::Never | Self::Past => None,
        }
    }

    /// Seconds left, begun ones included; −1 for never.
    pub(super) fn ttl_s(self, now_ms: i64) -> i64 {
        match self {
            Self::Never => -1,
            Self::At(at_ms) => at_ms.saturating_sub(now_ms).saturating_add(999).max(0) / 1000,
            Self::Past => 0,
        }
    }

    /// Whether it comes before `limit`, at memcached's resolution of a second. Never comes before nothing, and nothing before never.
    pub(super) fn is_before(self, limit: Self, now_ms: i64) -> bool {
        match (self, limit) {
            (Self::At(_), Self::At(_)) => self.ttl_s(now_ms) < limit.ttl_s(now_ms),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000_500;

    #[test]
    fn what_a_number_means() {
        for (exptime_s, want) in [
            (0, Expiry::Never),
            (-1, Expiry::Past),
            (i32::MIN, Expiry::Past),
            (1, Expiry::At(NOW + 1000)),
            (RELATIVE_MAX_S, Expiry::At(NOW + 2_592_000_000)),
            (RELATIVE_MAX_S + 1, Expiry::Past),
            (1_700_000_000, Expiry::Past),
            (1_700_000_001, Expiry::At(1_700_000_001_000)),
            (i32::MAX, Expiry::At(2_147_483_647_000)),
        ] {
            assert_eq!(Expiry::from_client(exptime_s, NOW), want, "{exptime_s}");
        }
    }

    #[test]
    fn seconds_left() {
        for (expiry, want) in [
            (Expiry::Never, -1),
            (Expiry::Past, 0),
            (Expiry::At(NOW), 0),
            (Expiry::At(NOW + 1), 1),
            (Expiry::At(NOW + 1000), 1),
            (Expiry::At(NOW + 1001), 2),
            (Expiry::At(NOW - 5000), 0),
            (Expiry::At(i64::MAX), (i64::MAX - NOW + 999) / 1000),
        ] {
            assert_eq!(expiry.ttl_s(NOW), want, "{expiry:?}");
        }
        assert!(Expiry::At(NOW + 5000).is_before(Expiry::At(NOW + 6000), NOW));
        assert!(!Expiry::At(NOW + 5999).is_before(Expiry::At(NOW + 6000), NOW));
        assert!(!Expiry::Never.is_before(Expiry::At(NOW + 6000), NOW));
        assert!(!Expiry::At(NOW + 5000).is_before(Expiry::Never, NOW));
    }
}
