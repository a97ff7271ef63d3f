//! The clock that runs go by: milliseconds since 1970.

pub use patter_core::text::milliseconds;

use std::time::SystemTime;

/// Returns the current time in milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, milliseconds)
}
