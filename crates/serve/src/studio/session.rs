//! The page of a session.

use super::page::{Page, PageError, Section, respond};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::Path;
use axum::http::HeaderMap;
use axum::response::Response;
use patter::html::html;

/// Shows a session.
pub(super) async fn show(
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let body = html!("<h1>{}</h1>", id);
    Ok(respond(&Page::new(Section::Runs, id, body).wide(), &headers))
}
