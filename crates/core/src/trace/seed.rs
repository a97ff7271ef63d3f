//! Ids that are derived from what they name, so that they are the same whenever they are computed.

use crate::session::{SpanId, TraceId};
use sha2::{Digest, Sha256};

/// What ids are derived from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seed([u8; 32]);

impl Seed {
    /// Returns the seed of something that has several names.
    pub(super) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self([0; 32]).join(names)
    }

    /// Returns the seed of a part.
    pub(super) fn join<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        for name in names {
            // The length keeps `ab`, `c` and `a`, `bc` apart.
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name.as_bytes());
        }
        Self(hash.finalize().into())
    }

    pub(super) fn trace_id(&self) -> TraceId {
        let id: [u8; 16] = self.first();
        // An id of zeros is invalid.
        TraceId(if id == [0; 16] { [1; 16] } else { id })
    }

    pub(super) fn span_id(&self) -> SpanId {
        let id: [u8; 8] = self.join(["span"]).first();
        SpanId(if id == [0; 8] { [1; 8] } else { id })
    }

    fn first<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.iter_mut().zip(self.0).for_each(|(byte, from)| *byte = from);
        bytes
    }
}
