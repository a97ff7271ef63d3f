//! Keys by which services recognise a call that is repeated.

use crate::store::SessionId;
use patter_core::types::definition::hash;
use std::sync::Arc;

/// The header, the variable of commands, and the entry of the metadata of MCP requests that contain the key.
pub(crate) const HEADER: &str = "idempotency-key";
pub(crate) const VARIABLE: &str = "PATTER_IDEMPOTENCY_KEY";
pub(crate) const META: &str = "patter/idempotencyKey";

/// A longer key is hashed: services limit their length.
const MAX_LENGTH: usize = 200;

/// The key of a call, in the state that the tool of the call shares with the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdempotencyKey(pub(crate) Arc<str>);

impl IdempotencyKey {
    /// Returns the key of a call: the session, the number of its run, and the calls that led to this one. A run that is resumed
    /// has the same number, and a message that was undone and sent again starts another run.
    pub(crate) fn new(session: &SessionId, run: u64, path: &[String], call_id: &str) -> Self {
        let mut key = format!("{session}/{run}");
        for part in path.iter().map(String::as_str).chain([call_id]) {
            key.push('/');
            key.push_str(part);
        }
        // Models and clients choose ids, which may contain anything.
        let is_plain = key.len() <= MAX_LENGTH && key.bytes().all(|byte| byte.is_ascii_graphic());
        let key = if is_plain { key } else { format!("{session}/{run}/{}", hash(key.as_bytes())) };
        Self(key.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &[&str], call: &str) -> String {
        let session = SessionId::parse("20260102-030405-ab").unwrap();
        let path: Vec<_> = path.iter().map(|part| (*part).to_owned()).collect();
        IdempotencyKey::new(&session, 3, &path, call).0.to_string()
    }

    #[test]
    fn keys_are_texts_that_headers_can_contain() {
        assert_eq!(key(&[], "call_1"), "20260102-030405-ab/3/call_1");
        assert_eq!(key(&["a"], "b"), "20260102-030405-ab/3/a/b");
        let odd = key(&[], "é\n");
        assert!(odd.is_ascii() && odd.starts_with("20260102-030405-ab/3/"), "{odd}");
        assert_ne!(odd, key(&[], "é\t"));
        assert!(key(&[], &"x".repeat(5000)).len() < MAX_LENGTH);
    }
}
