//! The clock that runs go by: milliseconds since 1970.

use std::time::{Duration, SystemTime};

/// Returns the current time in milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, milliseconds)
}

/// Returns a duration in whole milliseconds.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(patter::drive::milliseconds(Duration::from_secs(2)), 2_000);
/// ```
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
