//! Redirects: where to, and what may go there.

use super::{HttpError, HttpRequest};
use reqwest::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, COOKIE, HeaderName, LOCATION};
use reqwest::{Method, Response, StatusCode};

pub(super) enum Redirect {
    /// The reply is no redirect.
    No,
    /// The request to make next.
    To(Box<HttpRequest>),
}

/// Tells what a reply asks to be done next.
pub(super) fn of(request: &HttpRequest, response: &Response) -> Result<Redirect, HttpError> {
    let becomes_get = match response.status() {
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => request.method == Method::POST,
        StatusCode::SEE_OTHER => !matches!(request.method, Method::GET | Method::HEAD),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => false,
        _ => return Ok(Redirect::No),
    };
    let place = response.headers().get(LOCATION).ok_or(HttpError::Redirect("without saying where"))?;
    let place = std::str::from_utf8(place.as_bytes()).ok().and_then(|place| request.url.join(place).ok());
    let url = place.filter(reqwest::Url::has_host).ok_or(HttpError::Redirect("to something that is no address"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(HttpError::Redirect("to an address that holds a user"));
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
            return Err(HttpError::Redirect("to another server, which may not read the body"));
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
    Ok(Redirect::To(Box::new(next)))
}
