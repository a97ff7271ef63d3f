//! Files that a user attaches to a message.
//!
//! A message, and the log of a session with it, names an attachment by the hash of its content. The contents are kept
//! elsewhere, and are passed beside the messages to what needs them: the protocols of providers.

pub use super::media_type::MediaKind;

use super::conversation::{Conversation, Message};
use super::media_type::media_type;
use crate::text::{format_size, is_disguise, truncate};
use crate::types::definition::hash;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// The maximum size of an attachment, in bytes.
pub const MAX_FILE_BYTES: usize = 20 << 20;
/// The maximum size of all attachments of a message, in bytes.
pub const MAX_MESSAGE_BYTES: u64 = 32 << 20;
/// The maximum number of attachments of a message.
pub const MAX_FILES: usize = 20;
/// The maximum length of the name of an attachment, in characters.
const MAX_NAME: usize = 200;

/// A file that belongs to a message, without its content.
///
/// ```
/// use patter_core::message::attachment::{Attachment, MediaKind};
/// let notes = Attachment::new("docs/notes.md", b"# Notes").unwrap();
/// assert_eq!(notes.to_string(), "notes.md (text/plain, 7 bytes)");
/// assert_eq!(notes.kind(), Some(MediaKind::Text));
/// let error = Attachment::new("a.zip", b"PK\x03\x04").unwrap_err();
/// assert_eq!(error.to_string(), "`a.zip` is an archive or an office document, which models do not read");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The name of the file, without its folder.
    pub name: String,
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The hash of the content.
    pub sha256: String,
}

/// What a user says: a text, files, or both.
///
/// ```
/// use patter_core::message::attachment::UserInput;
/// let input = UserInput::from("Hello");
/// assert!(input.attachments.is_empty() && !input.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserInput {
    /// The text.
    pub text: String,
    /// The files.
    pub attachments: Vec<Attachment>,
}

/// The contents of attachments, by their hashes. Copies share them.
///
/// ```
/// use patter_core::message::attachment::AttachmentContents;
/// let mut contents = AttachmentContents::default();
/// let notes = contents.attach("notes.md", b"# Notes".to_vec()).unwrap();
/// assert_eq!(contents.get(&notes), Some(&b"# Notes"[..]));
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct AttachmentContents {
    by_hash: BTreeMap<String, Arc<[u8]>>,
}

/// The reason why a file cannot be attached.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AttachmentError {
    /// The file is empty.
    #[error("`{name}` is empty")]
    Empty {
        /// The name of the file.
        name: String,
    },
    /// Models do not read files of this kind.
    #[error("`{name}` is {what}, which models do not read")]
    Unreadable {
        /// The name of the file.
        name: String,
        /// What the file is.
        what: &'static str,
        /// What to do about it.
        hint: &'static str,
    },
    /// The file is too large.
    #[error("`{name}` is larger than {} MiB", MAX_FILE_BYTES >> 20)]
    TooLarge {
        /// The name of the file.
        name: String,
    },
    /// The files of a message are too large together.
    #[error("the attachments of a message are larger than {} MiB", MAX_MESSAGE_BYTES >> 20)]
    TooLargeTogether,
    /// There are too many files.
    #[error("a message has more than {MAX_FILES} attachments")]
    TooMany,
}

impl Attachment {
    /// Returns the attachment that a file is, by its content. The name may be a path, of which the last part is used.
    pub fn new(name: &str, content: &[u8]) -> Result<Self, AttachmentError> {
        let name = file_name(name);
        if content.is_empty() {
            return Err(AttachmentError::Empty { name });
        }
        if content.len() > MAX_FILE_BYTES {
            return Err(AttachmentError::TooLarge { name });
        }
        match media_type(content) {
            Ok(media_type) => {
                let media_type = media_type.to_owned();
                Ok(Self { name, media_type, bytes: content.len() as u64, sha256: hash(content) })
            }
            Err((what, hint)) => Err(AttachmentError::Unreadable { name, what, hint }),
        }
    }

    /// Returns what kind of file it is, if models read it.
    pub fn kind(&self) -> Option<MediaKind> {
        MediaKind::of_type(&self.media_type)
    }
}

impl fmt::Display for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.name, self.media_type, format_size(self.bytes))
    }
}

impl UserInput {
    /// Returns whether there is neither a text nor a file.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.attachments.is_empty()
    }

    /// Checks that the files are neither too many nor too large together.
    pub fn check_limits(&self) -> Result<(), AttachmentError> {
        if self.attachments.len() > MAX_FILES {
            return Err(AttachmentError::TooMany);
        }
        let bytes = self.attachments.iter().map(|attachment| attachment.bytes).fold(0, u64::saturating_add);
        if bytes > MAX_MESSAGE_BYTES { Err(AttachmentError::TooLargeTogether) } else { Ok(()) }
    }

    /// Returns the text in one line as a title, or the names of the files if there is none.
    pub fn title(&self) -> String {
        match self.text.trim() {
            "" => self.attachments.iter().map(|attachment| attachment.name.as_str()).collect::<Vec<_>>().join(", "),
            text => text.to_owned(),
        }
    }

    /// Adds what another input says.
    pub fn append(&mut self, other: Self) {
        if !self.text.is_empty() && !other.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(&other.text);
        self.attachments.extend(other.attachments);
    }
}

impl From<&str> for UserInput {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<&String> for UserInput {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

impl From<String> for UserInput {
    fn from(text: String) -> Self {
        Self { text, attachments: Vec::new() }
    }
}

impl AttachmentContents {
    /// No contents.
    pub const NONE: &'static Self = &Self { by_hash: BTreeMap::new() };

    /// Adds the content of a file, and returns the attachment that it is.
    pub fn attach(&mut self, name: &str, content: Vec<u8>) -> Result<Attachment, AttachmentError> {
        let attachment = Attachment::new(name, &content)?;
        self.by_hash.entry(attachment.sha256.clone()).or_insert_with(|| content.into());
        Ok(attachment)
    }

    /// Adds a content, whatever it is, and returns its hash.
    pub fn add(&mut self, content: Vec<u8>) -> String {
        let sha256 = hash(&content);
        self.by_hash.entry(sha256.clone()).or_insert_with(|| content.into());
        sha256
    }

    /// Adds a content that was kept under its hash. Returns whether the hash is the right one; if not, nothing is added.
    pub fn insert(&mut self, sha256: &str, content: Arc<[u8]>) -> bool {
        let is_right = hash(&content) == sha256;
        if is_right {
            self.by_hash.insert(sha256.to_owned(), content);
        }
        is_right
    }

    /// Adds all contents of another one.
    pub fn extend(&mut self, other: &Self) {
        self.by_hash.extend(other.by_hash.iter().map(|(hash, content)| (hash.clone(), Arc::clone(content))));
    }

    /// Returns the content of an attachment.
    pub fn get(&self, attachment: &Attachment) -> Option<&[u8]> {
        self.by_hash.get(&attachment.sha256).map(|content| &**content)
    }

    /// Returns the content with a hash, to be shared.
    pub fn shared(&self, sha256: &str) -> Option<Arc<[u8]>> {
        self.by_hash.get(sha256).map(Arc::clone)
    }

    /// Iterates over the hashes and the contents.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<[u8]>)> {
        self.by_hash.iter().map(|(hash, content)| (hash.as_str(), content))
    }

    /// Returns whether there are no contents.
    pub fn is_empty(&self) -> bool {
        self.by_hash.is_empty()
    }

    /// Returns the contents of the attachments of a conversation, as far as they are among these.
    #[must_use]
    pub fn of_messages(&self, conversation: &Conversation) -> Self {
        let attachments = attachments(conversation).into_iter();
        let found = attachments.filter_map(|one| Some((one.sha256.clone(), self.shared(&one.sha256)?)));
        Self { by_hash: found.collect() }
    }
}

/// Sizes only: contents are private, and long.
impl fmt::Debug for AttachmentContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.by_hash.iter().map(|(hash, content)| (hash, content.len()))).finish()
    }
}

/// In Base64, by hash.
impl Serialize for AttachmentContents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(hash, content)| (hash, STANDARD.encode(content))))
    }
}

impl<'de> Deserialize<'de> for AttachmentContents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut contents = Self::default();
        for (hash, data) in BTreeMap::<String, String>::deserialize(deserializer)? {
            let content = STANDARD.decode(data).map_err(D::Error::custom)?;
            if !contents.insert(&hash, content.into()) {
                return Err(D::Error::custom(format!("the content of {hash} is damaged")));
            }
        }
        Ok(contents)
    }
}

/// Returns the attachments of a conversation, each content once.
pub fn attachments(conversation: &Conversation) -> Vec<&Attachment> {
    let mut found: Vec<&Attachment> = Vec::new();
    for attachment in conversation.attached().into_iter().flat_map(Message::attachments) {
        if !found.iter().any(|other| other.sha256 == attachment.sha256) {
            found.push(attachment);
        }
    }
    found
}

/// Returns a message as people read it: its text, and the names of its files in a line of their own.
pub fn readable(text: &str, attachments: &[Attachment]) -> String {
    if attachments.is_empty() {
        return text.to_owned();
    }
    let names: Vec<_> = attachments.iter().map(ToString::to_string).collect();
    let names = format!("[attached: {}]", names.join(", "));
    if text.trim().is_empty() { names } else { format!("{text}\n\n{names}") }
}

/// Returns the last part of a path as a name that can be shown.
fn file_name(path: &str) -> String {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    let name: String = name.chars().map(|c| if is_disguise(c) { '\u{fffd}' } else { c }).collect();
    match name.trim() {
        "" => "file".to_owned(),
        name => truncate(name, MAX_NAME),
    }
}
