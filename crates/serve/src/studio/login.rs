//! Logging in: a token, once, becomes a cookie that only pages of this server send.
//!
//! The token is in the fragment of an address, which browsers do not send, or somebody types it. The cookie is not the token: it
//! is valid until the server stops, or for some hours.

use super::page::{Page, respond};
use crate::guard::{is_own_origin, read_body};
use crate::host::Host;
use crate::respond::ErrorResponse;
use crate::token::{Token, TokenHash};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use patter::html::html;
use patter_core::serve::{ApiError, ApiErrorKind};
use serde::Deserialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// How long a login is valid.
const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// How many logins are remembered. The oldest is forgotten first.
const MAX_LOGINS: usize = 1000;

/// Who logged in.
#[derive(Default)]
pub(crate) struct Logins(Mutex<VecDeque<Login>>);

struct Login {
    /// The hash of the cookie.
    hash: TokenHash,
    token: Token,
    at: Instant,
}

impl Logins {
    /// Remembers who logged in, and returns the value of the cookie.
    fn add(&self, token: &Token) -> Result<String, ApiError> {
        let mut bytes = [0; 32];
        let failed = |_| ApiError::new(ApiErrorKind::Server, "there is no randomness");
        getrandom::fill(&mut bytes).map_err(failed)?;
        let value: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut logins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while logins.len() >= MAX_LOGINS {
            logins.pop_front();
        }
        logins.push_back(Login { hash: TokenHash::of(&value), token: token.clone(), at: Instant::now() });
        Ok(value)
    }

    fn find(&self, value: &str) -> Option<Token> {
        let mut logins = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logins.retain(|login| login.at.elapsed() < LIFETIME);
        // All are compared, as tokens are.
        let matching =
            logins.iter().fold(None, |found, login| if login.hash.matches(value) { Some(login) } else { found });
        matching.map(|login| login.token.clone())
    }
}

/// Returns the token behind the cookie of a request, if a page of this server sent it, or a person who opened an address.
pub(crate) fn cookie_token(host: &Host, request: &Request) -> Option<Token> {
    let headers = request.headers();
    let is_reading = matches!(*request.method(), Method::GET | Method::HEAD);
    let is_own = match headers.get(FETCH_SITE).map(HeaderValue::as_bytes) {
        Some(b"same-origin") => true,
        Some(b"none") => is_reading,
        Some(_) => false,
        // Browsers leave it out for addresses that are not secure. The cookie is not sent across sites either way.
        None => match headers.get(header::ORIGIN) {
            Some(origin) => is_own_origin(headers, origin),
            None => is_reading,
        },
    };
    if !is_own {
        return None;
    }
    let name = cookie_name(headers);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(found, _)| *found == name)?;
    host.logins.find(value)
}

/// Returns the name of the cookie. Browsers share cookies among the ports of a machine, so it names the port.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| port.parse::<u16>().is_ok());
    format!("patter-studio-{}", port.unwrap_or("default"))
}

/// Returns whether a route needs no token: it says nothing about the project.
pub(crate) fn is_open_route(method: &Method, path: &str) -> bool {
    path.starts_with("/studio/assets/") || (path == "/studio/login" && method == Method::POST)
}

/// Returns the page that asks for a token, if a person opens a page without one.
pub(crate) fn login_page(request: &Request) -> Option<Response> {
    let path = request.uri().path();
    let is_page = path == "/" || path.starts_with("/studio/");
    let accepts = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if request.method() != Method::GET || !is_page || !accepts.contains("text/html") {
        return None;
    }
    let body = html!(
        "<form class=\"login\" id=\"login\" method=\"post\" action=\"/studio/login\"><h1>Log in to Patter</h1>\
         <p>This server needs a token. <code>patter studio</code> prints an address that contains it.</p>\
         <label>Token <input name=\"token\" type=\"password\" autocomplete=\"current-password\" required autofocus></label>\
         <button class=\"primary\">Log in</button><p class=\"bad\" role=\"alert\" id=\"login-error\"></p>\
         <noscript><p class=\"bad\">Logging in needs JavaScript.</p></noscript></form>"
    );
    let mut response = respond(&Page::bare("Log in", body).with_module("login.js"), request.headers());
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    Some(response)
}

#[derive(Deserialize)]
struct LoginRequest {
    token: String,
}

/// Exchanges a token for a cookie.
pub(super) async fn log_in(
    State(host): State<Arc<Host>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    let body = read_body(&host, body).await?;
    let request: LoginRequest =
        serde_json::from_slice(&body).map_err(|_| ApiError::invalid("token", "must be a text"))?;
    let token = host.find_token(&request.token);
    let token = token.ok_or_else(|| ApiError::new(ApiErrorKind::Unauthorized, "the token is not valid"))?;
    let value = host.logins.add(token)?;
    let name = cookie_name(&headers);
    let seconds = LIFETIME.as_secs();
    let cookie = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict");
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}
