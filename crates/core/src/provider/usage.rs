//! The tokens of requests.

use serde::{Deserialize, Serialize};

/// What requests cost, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// What was read, cached or not.
    pub input_tokens: u64,
    /// What of it came from a cache.
    pub cached_tokens: u64,
    /// What of it went to a cache, where the provider says so.
    pub cache_write_tokens: u64,
    /// What was written, thoughts included.
    pub output_tokens: u64,
    /// What of it were thoughts.
    pub reasoning_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
    }
}
