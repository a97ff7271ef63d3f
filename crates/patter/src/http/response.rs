//! Responses, read within limits.

use super::HttpError;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use reqwest::header::HeaderMap;
use reqwest::{StatusCode, Url};
use std::fmt;

/// A response: its head, and its body as it arrives.
pub struct HttpResponse {
    url: Url,
    inner: Inner,
}

/// A response of either client.
enum Inner {
    Full(reqwest::Response),
    Direct(hyper::Response<Incoming>),
}

impl HttpResponse {
    pub(super) fn new(url: Url, response: reqwest::Response) -> Self {
        Self { url, inner: Inner::Full(response) }
    }

    pub(super) fn direct(url: Url, response: hyper::Response<Incoming>) -> Self {
        Self { url, inner: Inner::Direct(response) }
    }

    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        match &self.inner {
            Inner::Full(response) => response.status(),
            Inner::Direct(response) => response.status(),
        }
    }

    /// Returns the URL that the response comes from, after redirects.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns a header, if it is present and text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().get(name)?.to_str().ok()
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        match &self.inner {
            Inner::Full(response) => response.headers(),
            Inner::Direct(response) => response.headers(),
        }
    }

    /// Returns whether a header has a name that satisfies a condition.
    pub(crate) fn has_header(&self, is_wanted: impl Fn(&str) -> bool) -> bool {
        self.headers().keys().any(|name| is_wanted(name.as_str()))
    }

    /// Returns the next chunk of the decompressed body, or nothing at the end.
    ///
    /// A few compressed bytes may be gigabytes of chunks that are all there at once. Time limits and cancellation get
    /// their turn between them.
    pub async fn chunk(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>, HttpError> {
        tokio::task::consume_budget().await;
        match &mut self.inner {
            Inner::Full(response) => response.chunk().await.map_err(|error| HttpError::lost(&error, &self.url)),
            Inner::Direct(response) => next_chunk(response).await.map_err(|error| HttpError::lost(&error, &self.url)),
        }
    }

    /// Reads the whole decompressed body, which may have at most `limit` bytes.
    pub async fn read(mut self, limit: usize) -> Result<Vec<u8>, HttpError> {
        let (body, is_complete) = self.read_some(limit).await?;
        if is_complete { Ok(body) } else { Err(HttpError::TooLarge(limit)) }
    }

    /// Reads at most `limit` bytes of the body, and returns whether that is all of it.
    pub async fn read_some(&mut self, limit: usize) -> Result<(Vec<u8>, bool), HttpError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            let chunk = chunk.as_ref();
            let room = limit - body.len();
            if chunk.len() > room {
                body.extend_from_slice(chunk.get(..room).unwrap_or_default());
                return Ok((body, false));
            }
            body.extend_from_slice(chunk);
        }
        Ok((body, true))
    }
}

/// Returns the next chunk of a body.
async fn next_chunk(response: &mut hyper::Response<Incoming>) -> Result<Option<Bytes>, hyper::Error> {
    while let Some(frame) = response.body_mut().frame().await {
        // Other frames are trailers.
        if let Ok(chunk) = frame?.into_data() {
            return Ok(Some(chunk));
        }
    }
    Ok(None)
}

/// Shows neither the URL nor the headers, which may contain secrets.
impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponse").field("status", &self.status()).finish_non_exhaustive()
    }
}
