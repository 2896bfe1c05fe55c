//! Where the engine reads clocks, apart from the reactor's reading at each wake-up.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Monotonic time.
#[inline]
pub fn now() -> Instant {
    Instant::now()
}

/// Unix time in ms; before 1970 counts as 0.
pub fn unix_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}

/// Unix time in µs; before 1970 counts as 0.
pub fn unix_us() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_micros() as i64)
}
