//! Requests that are sent again: they join the turn of the first one, instead of running tools twice.

use super::turn::Turn;
use patter::store::SessionId;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a request can be joined.
const WINDOW: Duration = Duration::from_secs(10 * 60);
/// How many requests can be joined at most.
const MAX_REQUESTS: usize = 10_000;

/// What identifies a request: who sent what, or the key that the client chose.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RequestKey(String);

impl RequestKey {
    /// Returns the key of a request.
    pub(crate) fn new(token: &str, route: &str, body: &[u8]) -> Self {
        Self::hash(&[token.as_bytes(), route.as_bytes(), body])
    }

    /// Returns the key that a client chose.
    pub(crate) fn named(token: &str, route: &str, key: &str) -> Self {
        Self::hash(&[token.as_bytes(), route.as_bytes(), b"Idempotency-Key", key.as_bytes()])
    }

    fn hash(parts: &[&[u8]]) -> Self {
        Self(hash_of(parts, 6))
    }

    /// Returns the key as the last part of the id of its session, so that the session is found after a restart.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the id of the session that a request with a key of the client starts in the background: the same each time, and
/// different for every other request.
pub(crate) fn background_session(token: &str, route: &str, key: &str) -> Option<SessionId> {
    let hash = hash_of(&[token.as_bytes(), route.as_bytes(), b"background", key.as_bytes()], 20);
    SessionId::parse(&format!("request-{hash}")).ok()
}

fn hash_of(parts: &[&[u8]], bytes: usize) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}

/// The turns of recent requests.
#[derive(Default)]
pub(crate) struct RecentRequests(Mutex<Recent>);

#[derive(Default)]
struct Recent {
    turns: HashMap<RequestKey, Arc<Turn>>,
    order: VecDeque<(Instant, RequestKey)>,
}

impl RecentRequests {
    /// Returns the turn of a request.
    pub(crate) fn get(&self, key: &RequestKey) -> Option<Arc<Turn>> {
        self.recent(|recent| recent.turns.get(key).cloned())
    }

    /// Remembers the turn of a request.
    pub(crate) fn insert(&self, key: RequestKey, turn: Arc<Turn>) {
        self.recent(|recent| {
            recent.order.push_back((Instant::now(), key.clone()));
            recent.turns.insert(key, turn);
        });
    }

    fn recent<T>(&self, work: impl FnOnce(&mut Recent) -> T) -> T {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let result = work(&mut recent);
        while let Some((at, _)) = recent.order.front() {
            if at.elapsed() < WINDOW && recent.order.len() <= MAX_REQUESTS {
                break;
            }
            if let Some((_, key)) = recent.order.pop_front() {
                recent.turns.remove(&key);
            }
        }
        result
    }
}
