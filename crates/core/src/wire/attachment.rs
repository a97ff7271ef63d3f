//! Attachments of messages: how wires send them, and whether the model reads them at all.

use crate::message::attachment::{Attachment, AttachmentContents, MediaKind, attachments};
use crate::message::request::Request;
use crate::provider::{KnownModel, ModelRef, Wire};
use crate::text::Escaped;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;
use thiserror::Error;

/// The reason why a request with attachments cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AttachmentRefusal {
    /// The model is known not to read files of this kind.
    #[error("`{model}` does not read {}, so `{name}` cannot be sent to it", .kind.plural())]
    Model {
        /// The model.
        model: ModelRef,
        /// The name of the attachment.
        name: String,
        /// What the attachment is.
        kind: MediaKind,
    },
    /// The API of the provider does not accept files of this type.
    #[error("the API of {provider} does not accept files of the type `{media_type}`, such as `{name}`")]
    Api {
        /// The provider.
        provider: &'static str,
        /// The name of the attachment.
        name: String,
        /// The type of the attachment.
        media_type: String,
    },
    /// The content is not known.
    #[error("the content of the attachment `{name}` is not available")]
    Missing {
        /// The name of the attachment.
        name: String,
    },
}

impl AttachmentRefusal {
    /// Returns what to do about it.
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Model { kind: MediaKind::Image, .. } => {
                "use a model that reads images (`patter models` lists them), or start a new session without it"
            }
            Self::Model { .. } => {
                "use a model that reads documents (`patter models` lists them), or attach the text of the document"
            }
            Self::Api { .. } => "convert it to a format that the provider accepts, or use a model of another provider",
            Self::Missing { .. } => "attach it again in a new session",
        }
    }
}

/// Checks that a model reads attachments. What is not known about a model is left to its provider.
pub fn check_attachments<'a>(
    wire: Wire,
    model: &ModelRef,
    known: Option<&KnownModel>,
    attachments: impl IntoIterator<Item = &'a Attachment>,
) -> Result<(), AttachmentRefusal> {
    for attachment in attachments {
        let name = || attachment.name.clone();
        let Some(kind) = attachment.kind() else { continue };
        let reads = |known: &KnownModel| match kind {
            MediaKind::Image => known.images,
            MediaKind::Document => known.documents,
            MediaKind::Text => true,
        };
        if known.is_some_and(|known| !reads(known)) {
            return Err(AttachmentRefusal::Model { model: model.clone(), name: name(), kind });
        }
        let is_accepted = match wire {
            Wire::Chat | Wire::ChatFunctions | Wire::Responses | Wire::Anthropic => true,
            Wire::Gemini => attachment.media_type != "image/gif",
            Wire::Ollama => kind != MediaKind::Document,
        };
        if !is_accepted {
            let media_type = attachment.media_type.clone();
            return Err(AttachmentRefusal::Api { provider: model.provider.name(), name: name(), media_type });
        }
    }
    Ok(())
}

/// Checks that all attachments of a request can be sent.
pub(super) fn check_request(
    wire: Wire,
    request: &Request<'_>,
    known: Option<&KnownModel>,
) -> Result<(), AttachmentRefusal> {
    let attached = attachments(request.messages);
    check_attachments(wire, request.model, known, attached.iter().copied())?;
    match attached.into_iter().find(|attachment| request.contents.get(attachment).is_none()) {
        Some(missing) => Err(AttachmentRefusal::Missing { name: missing.name.clone() }),
        None => Ok(()),
    }
}

/// An attachment as it is sent.
pub(super) enum Part<'r> {
    /// An image in Base64.
    Image { media_type: &'r str, data: String },
    /// A document in Base64.
    Document { name: &'r str, media_type: &'r str, data: String },
    /// Text, which includes the name.
    Text(String),
}

/// Returns the attachments of a message as they are sent. What is not available is described.
pub(super) fn parts<'r>(attachments: &'r [Attachment], contents: &AttachmentContents) -> Vec<Part<'r>> {
    let part = |attachment: &'r Attachment| {
        let Attachment { name, media_type, .. } = attachment;
        match (attachment.kind(), contents.get(attachment)) {
            (Some(MediaKind::Image), Some(content)) => Part::Image { media_type, data: STANDARD.encode(content) },
            (Some(MediaKind::Document), Some(content)) => {
                Part::Document { name, media_type, data: STANDARD.encode(content) }
            }
            (Some(MediaKind::Text), Some(content)) => {
                let text = String::from_utf8_lossy(content);
                Part::Text(format!("<attachment name=\"{}\">\n{text}\n</attachment>", Escaped(name)))
            }
            (None, _) | (_, None) => Part::Text(format!("(The attachment {attachment} is not available.)")),
        }
    };
    attachments.iter().map(part).collect()
}

/// Returns the URL that contains a file.
pub(super) fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

/// Returns the origin under which the JSON of messages is kept. With contents, it differs from what is sent without them.
pub(super) fn cache_origin<'o>(origin: &'o str, contents: &AttachmentContents) -> Cow<'o, str> {
    if contents.is_empty() { Cow::Borrowed(origin) } else { Cow::Owned(format!("{origin}+attachments")) }
}
