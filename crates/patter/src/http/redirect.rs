//! Redirects: the next request, and what it may contain.

use super::HttpResponse;
use super::{HttpError, HttpRequest};
use reqwest::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, COOKIE, HeaderName, LOCATION};
use reqwest::{Method, StatusCode};

/// Returns the request that a redirect asks for, or nothing if the response is not a redirect.
pub(super) fn next_request(request: &HttpRequest, response: &HttpResponse) -> Result<Option<HttpRequest>, HttpError> {
    let becomes_get = match response.status() {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => request.method == Method::POST,
        StatusCode::SEE_OTHER => !matches!(request.method, Method::GET | Method::HEAD),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => false,
        _ => return Ok(None),
    };
    let location = response.headers().get(LOCATION).ok_or(HttpError::InvalidRedirect("the server sent no location"))?;
    let url = std::str::from_utf8(location.as_bytes()).ok().and_then(|location| request.url.join(location).ok());
    let url =
        url.filter(reqwest::Url::has_host).ok_or(HttpError::InvalidRedirect("the location is not a valid URL"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(HttpError::InvalidRedirect("the location contains credentials"));
    }
    if becomes_get && request.keeps_method {
        let place = format!("{}{}", url.origin().ascii_serialization(), url.path());
        return Err(HttpError::Moved { method: request.method.to_string(), place });
    }
    let mut next = HttpRequest { url, ..request.clone() };
    if becomes_get {
        next.method = Method::GET;
        next.body = None;
        for name in [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE] {
            next.headers.remove(name);
        }
    }
    if next.url.origin() != request.url.origin() {
        if next.body.is_some() && next.is_body_secret {
            return Err(HttpError::InvalidRedirect("it leads to another server, and the body contains a secret"));
        }
        let private: Vec<HeaderName> = next
            .headers
            .iter()
            .filter(|(name, value)| value.is_sensitive() || [AUTHORIZATION, COOKIE].contains(name))
            .map(|(name, _)| name.clone())
            .collect();
        for name in private {
            next.headers.remove(name);
        }
    }
    Ok(Some(next))
}
