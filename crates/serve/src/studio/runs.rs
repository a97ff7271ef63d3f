//! Runs.

use super::page::{Page, PageError, Section, respond};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::http::HeaderMap;
use axum::response::Response;
use patter::html::html;

/// Shows the page.
pub(super) async fn list(Extension(access): Extension<Access>, headers: HeaderMap) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let body = html!("<h1>Runs</h1>");
    Ok(respond(&Page::new(Section::Runs, "Runs", body), &headers))
}
