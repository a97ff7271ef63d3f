//! Files in requests: the contents of messages that are more than text.

use super::ApiError;
use super::read::Fields;
use crate::message::attachment::{Attachment, AttachmentContents, AttachmentError, UserInput};
use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value as Json;

/// Clients write Base64 with and without padding, in both alphabets.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

/// Where a part of a message has its file.
pub(super) enum FileSource<'j> {
    /// A URL that contains the file, in a field.
    Url {
        /// The name of the field.
        field: &'static str,
        /// The URL.
        url: &'j str,
    },
    /// The file in Base64, in a field.
    Base64 {
        /// The name of the field.
        field: &'static str,
        /// The data.
        data: &'j str,
    },
}

/// Reads the content of a message of the user: a text, or parts of it. The texts of parts of these types are joined; `file`
/// finds the file in a part of another type, with its name, unless the type is not known.
pub(super) fn user_content<'j>(
    fields: &Fields<'j>,
    name: &str,
    text_types: &[&str],
    contents: &mut AttachmentContents,
    file: impl Fn(&Fields<'j>, &str) -> Result<Option<(FileSource<'j>, Option<&'j str>)>, ApiError>,
) -> Result<UserInput, ApiError> {
    let parts = match fields.get(name) {
        None => return Ok(UserInput::default()),
        Some(Json::String(text)) => return Ok(text.into()),
        Some(_) => fields.list(name)?.unwrap_or_default(),
    };
    let mut texts = Vec::new();
    let mut attachments = Vec::new();
    for (index, value) in parts.iter().enumerate() {
        let part = Fields::new(value, fields.path(&format!("{name}[{index}]")))?;
        let kind = part.required_text("type")?;
        if text_types.contains(&kind) {
            texts.push(part.required_text("text")?.to_owned());
            continue;
        }
        let Some((source, file_name)) = file(&part, kind)? else {
            let message = format!("content of type `{kind}` is not supported; send text, images or documents");
            return Err(part.wrong("type", message));
        };
        attachments.push(attach(&part, &source, file_name, contents)?);
    }
    checked(UserInput { text: texts.join("\n"), attachments }, || fields.path(name))
}

/// Adds the file of a part to the contents, and returns the attachment that it is.
pub(super) fn attach(
    part: &Fields<'_>,
    source: &FileSource<'_>,
    name: Option<&str>,
    contents: &mut AttachmentContents,
) -> Result<Attachment, ApiError> {
    let (field, content) = match source {
        FileSource::Url { field, url } => (*field, from_url(url)),
        FileSource::Base64 { field, data } if data.starts_with("data:") => (*field, from_url(data)),
        FileSource::Base64 { field, data } => (*field, from_base64(data)),
    };
    let content = content.map_err(|message| part.wrong(field, message))?;
    contents.attach(name.unwrap_or("file"), content).map_err(|error| part.wrong(field, described(&error)))
}

/// Checks that a message has neither too many nor too large files.
pub(super) fn checked(input: UserInput, path: impl FnOnce() -> String) -> Result<UserInput, ApiError> {
    match input.check_limits() {
        Ok(()) => Ok(input),
        Err(error) => Err(ApiError::invalid(path(), error.to_string())),
    }
}

fn described(error: &AttachmentError) -> String {
    match error {
        AttachmentError::Unreadable { hint, .. } => format!("{error}; {hint}"),
        _ => error.to_string(),
    }
}

/// Returns the content of a URL that contains it. Others are refused: a server that fetches any address could be
/// made to reach what only it can.
fn from_url(url: &str) -> Result<Vec<u8>, &'static str> {
    let Some(rest) = url.strip_prefix("data:") else {
        return Err("must be a data URL: this server does not fetch files from other addresses");
    };
    let (kind, data) = rest.split_once(',').ok_or("is not a data URL")?;
    if !kind.ends_with(";base64") {
        return Err("must be a data URL in Base64");
    }
    from_base64(data)
}

fn from_base64(data: &str) -> Result<Vec<u8>, &'static str> {
    let engine = match data.contains(['-', '_']) {
        true => GeneralPurpose::new(&URL_SAFE, LENIENT),
        false => GeneralPurpose::new(&STANDARD, LENIENT),
    };
    engine.decode(data.trim()).map_err(|_| "is not valid Base64")
}
