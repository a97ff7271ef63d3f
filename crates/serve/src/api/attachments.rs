//! The contents of attachments.

use crate::host::{Host, api_error};
use crate::respond::ErrorResponse;
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use patter::store::SessionId;
use patter_core::message::attachment::{Attachment, MediaKind, attachments};
use patter_core::message::conversation::{Conversation, Message, ToolOutcome};
use patter_core::message::media::stored;
use patter_core::serve::{ApiError, ApiErrorKind};
use std::sync::Arc;

/// Nothing in a file is run or loaded, whatever a browser takes it for.
const POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox");
/// Other sites cannot show the files.
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Returns the content of an attachment that the conversation of a session names.
pub(super) async fn read(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path((id, sha256)): Path<(String, String)>,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Read)?;
    let missing = || ApiError::new(ApiErrorKind::NotFound, format!("the session `{id}` has no such attachment"));
    let session = SessionId::parse(&id).map_err(|_| missing())?;
    host.find_session(&access, &session).await?.ok_or_else(missing)?;
    let (_, log) = host.read_session(&session).await?;
    let attachment = find(log.conversation(), &sha256).ok_or_else(missing)?;
    let content = host.require_store()?.attachment(&session, &sha256).await;
    let content = content.map_err(|error| api_error(&error.into()))?.ok_or_else(missing)?;
    Ok((headers(&attachment), content).into_response())
}

/// Returns what a conversation names by a hash: a file of the user, or an image or a document that a tool returned.
fn find(conversation: &Conversation, sha256: &str) -> Option<Attachment> {
    let of_user = attachments(conversation).into_iter().find(|attachment| attachment.sha256 == sha256);
    of_user.cloned().or_else(|| {
        let outcomes = conversation.iter().filter_map(|message| match message {
            Message::Tool { outcome: ToolOutcome::Value { value }, .. } => Some(value),
            _ => None,
        });
        outcomes.flat_map(stored).find(|media| media.sha256 == sha256)
    })
}

/// Returns the headers of a content. Images are shown; everything else is downloaded, so that a browser does not open it as a
/// page of this server.
fn headers(attachment: &Attachment) -> [(HeaderName, HeaderValue); 5] {
    let media_type = match attachment.kind() {
        Some(MediaKind::Text) => HeaderValue::from_static("text/plain; charset=utf-8"),
        Some(_) => HeaderValue::from_str(&attachment.media_type).unwrap_or(OCTETS),
        None => OCTETS,
    };
    let disposition = match attachment.kind() {
        Some(MediaKind::Image) => "inline",
        _ => "attachment",
    };
    let name: String = attachment.name.bytes().map(encoded).collect();
    let disposition = format!("{disposition}; filename*=UTF-8''{name}");
    [
        (header::CONTENT_TYPE, media_type),
        (
            header::CONTENT_DISPOSITION,
            HeaderValue::from_str(&disposition).unwrap_or(HeaderValue::from_static("attachment")),
        ),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (RESOURCE_POLICY, HeaderValue::from_static("same-origin")),
        // The content of a hash stays the same, but it is private, and may be removed.
        (header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=600")),
    ]
}

const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// Returns a byte of a file name as a header can have it.
fn encoded(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    }
}
