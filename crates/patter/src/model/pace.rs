//! Limits of providers that requests of this process met, so that others which call the same providers learn about them, and
//! what others met.

use super::rate_limit::RateLimiter;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;

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

/// What this process knows about providers.
#[derive(Default)]
struct Pace {
    /// The limiters, by provider and server.
    limiters: Vec<(String, Weak<RateLimiter>)>,
    /// What others met, with its end: a model may be used for the first time before that.
    reported: Vec<(ProviderLimit, Instant)>,
}

static PACE: Mutex<Pace> = Mutex::new(Pace { limiters: Vec::new(), reported: Vec::new() });

fn pace() -> MutexGuard<'static, Pace> {
    PACE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a limiter one whose limits are shared.
pub(super) fn register(provider: String, limiter: &Arc<RateLimiter>) {
    let mut pace = pace();
    for (limit, until) in pace.reported.iter().filter(|(limit, _)| limit.provider == provider) {
        limiter.block_as_reported(until.saturating_duration_since(Instant::now()), &limit.reason);
    }
    let is_other = |known: &Weak<RateLimiter>| !std::ptr::eq(known.as_ptr(), Arc::as_ptr(limiter));
    pace.limiters.retain(|(_, known)| known.strong_count() > 0 && is_other(known));
    pace.limiters.push((provider, Arc::downgrade(limiter)));
}

/// Returns the limits that requests of this process met since the last time, and that have not ended.
pub fn new_limits() -> Vec<ProviderLimit> {
    let pace = pace();
    let found = pace.limiters.iter().filter_map(|(provider, limiter)| {
        let delay = limiter.upgrade()?.take_new()?;
        Some(ProviderLimit { provider: provider.clone(), ends_in: delay.duration, reason: delay.reason })
    });
    found.collect()
}

/// Holds requests back, because others met limits of the same providers. What was applied before no longer holds for models that
/// are used for the first time from now on.
pub fn apply_limits(limits: &[ProviderLimit]) {
    let now = Instant::now();
    let mut pace = pace();
    let ends = |limit: &ProviderLimit| Some((limit.clone(), now.checked_add(limit.ends_in)?));
    pace.reported = limits.iter().filter_map(ends).collect();
    for (provider, limiter) in &pace.limiters {
        let Some(limiter) = limiter.upgrade() else { continue };
        for limit in limits.iter().filter(|limit| limit.provider == *provider) {
            limiter.block_as_reported(limit.ends_in, &limit.reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_model_that_is_new_knows_what_others_met() {
        let limit = ProviderLimit {
            provider: "Test at pace.example".to_owned(),
            ends_in: Duration::from_secs(20),
            reason: "slow down".to_owned(),
        };
        apply_limits(std::slice::from_ref(&limit));
        let limiter = Arc::new(RateLimiter::default());
        register(limit.provider.clone(), &limiter);
        assert_eq!(limiter.delay().unwrap().duration, limit.ends_in);
        assert_eq!(new_limits(), [], "others know it");
        limiter.block(Duration::from_secs(30), "slower");
        let longer = ProviderLimit { ends_in: Duration::from_secs(30), reason: "slower".to_owned(), ..limit };
        assert_eq!(new_limits(), [longer]);
        assert_eq!(new_limits(), []);
    }
}
