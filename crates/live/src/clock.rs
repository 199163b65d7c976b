//! The host's clock: the time since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time since 1970; none where the clock is set to before that.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The same in seconds, to the millisecond.
pub(crate) fn unix_s() -> f64 {
    (since_1970().as_secs_f64() * 1000.0).round() / 1000.0
}
