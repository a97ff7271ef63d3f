//! Random delays between retries.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Returns a random duration between half of `longest` and `longest`, so that clients do not retry in lockstep.
pub(crate) fn jittered(longest: Duration) -> Duration {
    let random = RandomState::new().hash_one(0_u8) % 512;
    longest / 2 + longest.mul_f64(random as f64 / 1024.0)
}
