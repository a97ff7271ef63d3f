//! Images and documents of tools in the log: their contents are stored beside it, under their hashes.

use super::LogEntry;
use crate::message::attachment::AttachmentContents;
use crate::message::conversation::{Message, ToolOutcome};
use crate::message::media::{detach, media, reattach, stored};
use crate::run::RunInput;
use serde_json::Value as Json;

impl LogEntry {
    /// Returns the entry with hashes in place of the images and documents that tools returned, and adds the contents to
    /// others. `None` if it has none.
    #[must_use]
    pub fn detach_media(&self, contents: &mut AttachmentContents) -> Option<Self> {
        if !self.results().any(|value| !media(value).is_empty()) {
            return None;
        }
        let mut detached = self.clone();
        let mut has_detached = false;
        for value in detached.results_mut() {
            has_detached |= detach(value, contents);
        }
        has_detached.then_some(detached)
    }

    /// Puts the contents that [`LogEntry::detach_media`] took out back, as far as they are known.
    pub fn reattach_media(&mut self, contents: &AttachmentContents) {
        for value in self.results_mut() {
            reattach(value, contents);
        }
    }

    /// Returns the hashes that stand for images and documents that tools returned.
    pub fn detached_media(&self) -> Vec<String> {
        self.results().flat_map(stored).map(|attachment| attachment.sha256).collect()
    }

    fn results(&self) -> impl Iterator<Item = &Json> {
        let (finished, messages) = match self {
            LogEntry::InputReceived { input: RunInput::CallFinished { outcome, .. }, .. } => (Some(outcome), &[][..]),
            LogEntry::Forked { messages, .. } => (None, messages.as_slice()),
            _ => (None, &[][..]),
        };
        let outcomes = finished.into_iter().chain(messages.iter().filter_map(|message| match message {
            Message::Tool { outcome, .. } => Some(outcome),
            _ => None,
        }));
        outcomes.filter_map(|outcome| match outcome {
            ToolOutcome::Value { value } => Some(value),
            _ => None,
        })
    }

    fn results_mut(&mut self) -> impl Iterator<Item = &mut Json> {
        let (finished, messages) = match self {
            LogEntry::InputReceived { input: RunInput::CallFinished { outcome, .. }, .. } => {
                (Some(outcome), &mut [][..])
            }
            LogEntry::Forked { messages, .. } => (None, messages.as_mut_slice()),
            _ => (None, &mut [][..]),
        };
        let outcomes = finished.into_iter().chain(messages.iter_mut().filter_map(|message| match message {
            Message::Tool { outcome, .. } => Some(outcome),
            _ => None,
        }));
        outcomes.filter_map(|outcome| match outcome {
            ToolOutcome::Value { value } => Some(value),
            _ => None,
        })
    }
}
