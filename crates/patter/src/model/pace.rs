//! Limits of providers that requests of this process met, so that others which call the same providers learn about them, and
//! what others met.

use super::rate_limit::RateLimiter;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// A provider that accepts no requests for a time.
///
/// ```
/// use patter::model::{ProviderLimit, apply_limits};
/// use std::time::Duration;
/// let provider = "OpenAI at api.openai.com".to_owned();
/// apply_limits(&[ProviderLimit { provider, ends_in: Duration::from_secs(20), reason: "slow down".to_owned() }]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderLimit {
    /// The name of the provider, and the server that is called. Not the key.
    pub provider: String,
    /// After which time it accepts requests again.
    pub ends_in: Duration,
    /// The reason, without secrets.
    pub reason: String,
}

/// The limiters of this process, by provider and server.
static LIMITERS: Mutex<Vec<(String, Weak<RateLimiter>)>> = Mutex::new(Vec::new());

fn limiters() -> MutexGuard<'static, Vec<(String, Weak<RateLimiter>)>> {
    LIMITERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a limiter one whose limits are shared.
pub(super) fn register(provider: String, limiter: &Arc<RateLimiter>) {
    let mut limiters = limiters();
    limiters.retain(|(_, known)| known.strong_count() > 0 && !std::ptr::eq(known.as_ptr(), Arc::as_ptr(limiter)));
    limiters.push((provider, Arc::downgrade(limiter)));
}

/// Returns the limits that requests of this process met since the last time, and that have not ended.
pub fn new_limits() -> Vec<ProviderLimit> {
    let limiters = limiters();
    let found = limiters.iter().filter_map(|(provider, limiter)| {
        let delay = limiter.upgrade()?.take_new()?;
        Some(ProviderLimit { provider: provider.clone(), ends_in: delay.duration, reason: delay.reason })
    });
    found.collect()
}

/// Holds requests back, because others met limits of the same providers.
pub fn apply_limits(limits: &[ProviderLimit]) {
    for (provider, limiter) in limiters().iter() {
        let Some(limiter) = limiter.upgrade() else { continue };
        for limit in limits.iter().filter(|limit| limit.provider == *provider) {
            limiter.block_as_told(limit.ends_in, &limit.reason);
        }
    }
}
