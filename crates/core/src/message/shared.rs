//! A conversation whose copies share their messages.

use super::context::SentMessages;
use super::conversation::{Message, ToolCall};
use crate::provider::Wire;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A conversation. Copies share their messages, and a copy that adds the message that another one added before shares that
/// too. So a run and the log of its session hold one conversation in memory, however long it is.
///
/// ```
/// use patter_core::message::conversation::{Conversation, Message};
/// let mut conversation = Conversation::from(vec![Message::user("Hello")]);
/// let mut copy = conversation.clone();
/// conversation.push(Message::user("one"));
/// copy.push(Message::user("other"));
/// assert_eq!(conversation.last(), Some(&Message::user("one")));
/// assert_eq!(copy.iter().count(), 2);
/// ```
#[derive(Clone, Default)]
pub struct Conversation {
    shared: Arc<Shared>,
    /// How many of the shared messages belong to this copy.
    len: usize,
    /// The number of messages at the start that need not be checked again. See [`Conversation::mark_checked`].
    checked: usize,
}

/// Messages that are never moved or removed, so that they can be read while others are added.
#[derive(Default)]
struct Shared {
    /// Each chunk is twice as long as the one before.
    chunks: [OnceLock<Box<[OnceLock<Message>]>>; CHUNKS],
    /// Locked while a message is added.
    index: Mutex<Index>,
    encoded: Mutex<Encoded>,
    sum: Mutex<Sum>,
    sent: Mutex<Option<SentMessages>>,
}

/// Where messages are.
#[derive(Default)]
struct Index {
    /// The first message with a call of that id.
    calls: HashMap<Box<str>, usize>,
    /// The compactions, in order.
    compactions: Vec<usize>,
    /// The messages with attachments, in order.
    attached: Vec<usize>,
}

/// The sum of a number of each of the first messages.
#[derive(Default)]
struct Sum {
    /// The number of messages.
    len: usize,
    total: u64,
}

/// The JSON of messages as they were sent last.
#[derive(Default)]
struct Encoded {
    wire: Option<Wire>,
    origin: String,
    /// The number of messages.
    len: usize,
    json: Vec<u8>,
}

/// The length of the first chunk.
const FIRST_CHUNK: usize = 4;
/// The number of messages from which on it pays to keep their JSON.
const MIN_ENCODED: usize = 16;
/// Enough for more messages than fit into memory.
const CHUNKS: usize = 26;

impl Conversation {
    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the message at an index.
    pub fn get(&self, index: usize) -> Option<&Message> {
        if index < self.len { self.shared.slot(index)?.get() } else { None }
    }

    /// Returns the first message.
    pub fn first(&self) -> Option<&Message> {
        self.get(0)
    }

    /// Returns the last message.
    pub fn last(&self) -> Option<&Message> {
        self.get(self.len.checked_sub(1)?)
    }

    /// Iterates over the messages.
    pub fn iter(&self) -> Messages<'_> {
        self.range(0..self.len)
    }

    /// Iterates over a part of the messages; indices beyond the end are ignored.
    pub fn range(&self, range: Range<usize>) -> Messages<'_> {
        let end = range.end.min(self.len);
        Messages { conversation: self, range: range.start.min(end)..end }
    }

    /// Iterates over the messages from an index on.
    pub fn since(&self, begin: usize) -> Messages<'_> {
        self.range(begin..self.len)
    }

    /// Returns a copy of the messages that shares nothing.
    pub fn to_vec(&self) -> Vec<Message> {
        self.iter().cloned().collect()
    }

    /// Returns whether a message has a call with this id.
    pub fn has_call(&self, id: &str) -> bool {
        self.shared.lock_index().calls.get(id).is_some_and(|first| *first < self.len)
    }

    /// Returns the index of the last compaction.
    pub(crate) fn last_compaction(&self) -> Option<usize> {
        let index = self.shared.lock_index();
        let before = index.compactions.partition_point(|compaction| *compaction < self.len);
        index.compactions.get(before.checked_sub(1)?).copied()
    }

    /// Returns the messages that have attachments.
    pub(super) fn attached(&self) -> Vec<&Message> {
        self.shared.lock_index().attached.iter().filter_map(|index| self.get(*index)).collect()
    }

    /// Returns what is kept of the messages that were sent last, by this copy or another one. It is locked meanwhile.
    pub(super) fn sent(&self) -> MutexGuard<'_, Option<SentMessages>> {
        self.shared.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message.
    pub fn push(&mut self, message: Message) {
        if let Some(message) = self.shared.set(self.len, message) {
            // Another copy went on differently.
            let shared = Arc::new(Shared::default());
            for (index, message) in self.iter().cloned().chain([message]).enumerate() {
                let _ = shared.set(index, message);
            }
            self.shared = shared;
        }
        self.len += 1;
    }

    /// Removes the messages from an index on.
    pub fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        self.len = len;
        // The last calls may have lost results. What precedes a message of the user is complete.
        let last = self.range(0..self.checked).rposition(|message| matches!(message, Message::User { .. }));
        self.checked = last.unwrap_or(0);
    }

    /// Adds up a number of each message, which must be the same function each time. What was added up before is not read again,
    /// so the cost does not grow with the conversation.
    pub(crate) fn sum(&self, number: fn(&Message) -> u64) -> u64 {
        let mut sum = self.shared.sum.lock().unwrap_or_else(PoisonError::into_inner);
        if sum.len > self.len {
            // Another copy is longer.
            drop(sum);
            return self.iter().map(number).sum();
        }
        sum.total += self.since(sum.len).map(number).sum::<u64>();
        sum.len = self.len;
        sum.total
    }

    /// Appends the first `len` messages to a list in the JSON of a request. What an earlier request over the same wire and to
    /// the same origin contained is copied from there. `write` appends a part of the messages as items that are separated by
    /// commas; where it is cut must not matter.
    pub(crate) fn encode(
        &self,
        len: usize,
        wire: Wire,
        origin: &str,
        json: &mut Vec<u8>,
        write: impl Fn(&mut Vec<u8>, Messages<'_>),
    ) {
        let len = len.min(self.len);
        if len < MIN_ENCODED {
            return write(json, self.range(0..len));
        }
        let mut encoded = self.shared.encoded.lock().unwrap_or_else(PoisonError::into_inner);
        if encoded.wire != Some(wire) || encoded.origin != origin {
            *encoded = Encoded { wire: Some(wire), origin: origin.to_owned(), ..Encoded::default() };
        }
        // Another copy may have more messages.
        if encoded.len > len {
            drop(encoded);
            return write(json, self.range(0..len));
        }
        let Encoded { len: known_len, json: known, .. } = &mut *encoded;
        append_part(known, |json| write(json, self.range(*known_len..len)));
        *known_len = len;
        json.extend_from_slice(known);
    }

    /// Returns the number of messages at the start of which [`Conversation::mark_checked`] was called.
    pub(crate) fn checked(&self) -> usize {
        self.checked
    }

    /// Marks all messages as checked: each call has a result, and each result a call.
    pub(crate) fn mark_checked(&mut self) {
        self.checked = self.len;
    }
}

impl Shared {
    /// Returns the place of a message, which may be empty.
    fn slot(&self, index: usize) -> Option<&OnceLock<Message>> {
        let (chunk, offset) = place(index);
        self.chunks.get(chunk)?.get()?.get(offset)
    }

    /// Sets a message. If its place has a different one, returns the message.
    fn set(&self, index: usize, message: Message) -> Option<Message> {
        let (chunk, offset) = place(index);
        let slots = || (0..FIRST_CHUNK << chunk).map(|_| OnceLock::new()).collect();
        let Some(slot) = self.chunks.get(chunk).and_then(|chunk| chunk.get_or_init(slots).get(offset)) else {
            return Some(message);
        };
        let mut known = self.lock_index();
        match slot.get() {
            Some(other) => (*other != message).then_some(message),
            None => {
                for ToolCall { id, .. } in message.calls() {
                    known.calls.entry(id.as_str().into()).or_insert(index);
                }
                if matches!(message, Message::Compacted { .. }) {
                    known.compactions.push(index);
                }
                if !message.attachments().is_empty() {
                    known.attached.push(index);
                }
                slot.set(message).err()
            }
        }
    }

    fn lock_index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Appends items to those of a list, which may be empty, as may be what is appended.
pub(crate) fn append_part(list: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let end = list.len();
    let is_first = list.last().is_none_or(|last| *last == b'[');
    if !is_first {
        list.push(b',');
    }
    let start = list.len();
    write(list);
    if list.len() == start {
        list.truncate(end);
    }
}

/// Returns the chunk of a message and its offset in it.
fn place(index: usize) -> (usize, usize) {
    let chunk = (index / FIRST_CHUNK + 1).ilog2() as usize;
    (chunk, index + FIRST_CHUNK - (FIRST_CHUNK << chunk))
}

/// An iterator over messages of a [`Conversation`].
#[derive(Debug, Clone)]
pub struct Messages<'c> {
    conversation: &'c Conversation,
    range: Range<usize>,
}

impl<'c> Iterator for Messages<'c> {
    type Item = &'c Message;

    fn next(&mut self) -> Option<Self::Item> {
        self.conversation.get(self.range.next()?)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }

    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        self.conversation.get(self.range.nth(n)?)
    }
}

impl DoubleEndedIterator for Messages<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.conversation.get(self.range.next_back()?)
    }
}

impl ExactSizeIterator for Messages<'_> {}

impl<'c> IntoIterator for &'c Conversation {
    type Item = &'c Message;
    type IntoIter = Messages<'c>;

    fn into_iter(self) -> Messages<'c> {
        self.iter()
    }
}

impl Extend<Message> for Conversation {
    fn extend<T: IntoIterator<Item = Message>>(&mut self, messages: T) {
        messages.into_iter().for_each(|message| self.push(message));
    }
}

impl FromIterator<Message> for Conversation {
    fn from_iter<T: IntoIterator<Item = Message>>(messages: T) -> Self {
        let mut conversation = Self::default();
        conversation.extend(messages);
        conversation
    }
}

impl From<Vec<Message>> for Conversation {
    fn from(messages: Vec<Message>) -> Self {
        messages.into_iter().collect()
    }
}

impl From<&[Message]> for Conversation {
    fn from(messages: &[Message]) -> Self {
        messages.iter().cloned().collect()
    }
}

impl PartialEq for Conversation {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && (Arc::ptr_eq(&self.shared, &other.shared) || self.iter().eq(other))
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl Serialize for Conversation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

impl<'de> Deserialize<'de> for Conversation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::Conversation;
    use crate::message::context::{message_bytes, sent_messages};
    use crate::message::conversation::Message;

    /// Copies that are extended, cut and continued differently have the sums of their own messages, and what is sent of them
    /// is what would be sent of the same messages without anything that is kept.
    #[test]
    fn what_is_kept_is_that_of_the_copy() {
        let mut copies = vec![Conversation::default()];
        let mut random: u32 = 7;
        let mut compacted = 0;
        for step in 0..4000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let chosen = (random >> 8) as usize % copies.len();
            let mut copy = copies[chosen].clone();
            match random >> 28 {
                0 => copy.truncate(copy.len() / 2),
                1 => copy.truncate(copy.len().saturating_sub(1)),
                2 if copies.len() < 8 => {}
                3 => {
                    let kept_from = copy.len() * 2 / 3;
                    copy.push(Message::Compacted { summary: format!("{step}"), kept_from, result_chars: None });
                }
                4..=7 => copy.push(Message::user("x".repeat(step % 13))),
                _ => copy.push(Message::assistant("y".repeat(step % 13), vec![])),
            }
            assert_eq!(copy.sum(message_bytes), copy.iter().map(message_bytes).sum::<u64>(), "step {step}");
            let alone = Conversation::from(copy.to_vec());
            let sent = sent_messages(&copy).into_owned();
            assert_eq!(sent, sent_messages(&alone).into_owned(), "step {step}");
            assert_eq!(sent.sum(message_bytes), sent.iter().map(message_bytes).sum::<u64>(), "step {step}");
            compacted += usize::from(alone.last_compaction().is_some());
            if random >> 28 == 2 && copies.len() < 8 { copies.push(copy) } else { copies[chosen] = copy }
        }
        assert!(compacted > 1000, "{compacted}");
    }
}
