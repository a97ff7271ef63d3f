//! Requests.

use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Method, Url};
use std::fmt;

/// An HTTP request.
///
/// A redirect to another server drops the headers that are marked as sensitive.
#[derive(Clone)]
pub struct HttpRequest {
    /// The method.
    pub method: Method,
    /// The URL.
    pub url: Url,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, shared by retries and redirects.
    pub body: Option<Bytes>,
    /// Whether the body contains secrets, so that it is not sent to another server on a redirect.
    pub is_body_secret: bool,
    /// Whether a redirect that changes the method is an error.
    pub keeps_method: bool,
    /// Whether the server may compress the response. Without, requests are sent faster.
    pub accepts_compression: bool,
}

impl HttpRequest {
    /// Creates a GET request without headers.
    pub fn get(url: Url) -> Self {
        Self {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            body: None,
            is_body_secret: false,
            keeps_method: false,
            accepts_compression: true,
        }
    }
}

/// Shows neither path, query, headers nor body, which may contain secrets.
impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = self.url.origin().ascii_serialization();
        f.debug_struct("HttpRequest").field("method", &self.method).field("origin", &origin).finish_non_exhaustive()
    }
}
