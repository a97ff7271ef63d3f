//! Header names and media types.

/// Returns whether requests may set a header of this name.
pub(super) fn is_header(name: &str) -> bool {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.chars().all(is_token) && !is_automatic_header(name)
}

/// Returns whether a header is set automatically.
pub(super) fn is_automatic_header(name: &str) -> bool {
    let managed = ["host", "content-length", "transfer-encoding", "connection", "upgrade", "proxy-authorization"];
    managed.contains(&name.to_ascii_lowercase().as_str())
}

/// Returns whether documents may not declare a header as a parameter, because it has another source.
pub(super) fn is_reserved_header(name: &str) -> bool {
    ["accept", "content-type", "authorization"].contains(&name.to_ascii_lowercase().as_str())
}

/// Returns a media type without its parameters.
pub(super) fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

pub(super) fn is_json(media_type: &str) -> bool {
    matches!(media_type, "application/json" | "text/json" | "*/*" | "application/*") || media_type.ends_with("+json")
}

pub(super) fn is_form(media_type: &str) -> bool {
    media_type == "application/x-www-form-urlencoded"
}

pub(super) fn is_multipart(media_type: &str) -> bool {
    matches!(media_type, "multipart/form-data" | "multipart/*" | "multipart/form")
}

pub(super) fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/")
        || media_type == "application/xml"
        || media_type.ends_with("+xml")
        || media_type == "application/yaml"
}
