//! Logging in: a token, once, becomes a cookie that only pages of this server send.
//!
//! The token is in the fragment of an address, which browsers do not send, or somebody types it. The cookie is not the token: it
//! says until when it is valid, and proves it by a key that the servers of a store share. So it is valid at all of them, and
//! after a restart, as long as the token is.

use super::page::{Page, respond};
use crate::guard::{is_own_origin, read_body};
use crate::host::{Host, api_error};
use crate::respond::ErrorResponse;
use crate::token::Token;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use patter::html::html;
use patter::store::Store;
use patter_core::serve::{ApiError, ApiErrorKind};
use serde::Deserialize;
use sha2::Sha256;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::OnceCell;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// How long a login is valid.
const LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// How servers recognise who logged in.
#[derive(Default)]
pub(crate) struct Logins {
    /// The key that signs cookies, once it is needed.
    key: OnceCell<String>,
}

impl Logins {
    /// Finds the key, which the servers of a store share.
    async fn prepare(&self, store: Option<&dyn Store>) -> Result<&str, ApiError> {
        let find = || async {
            let new = random_key()?;
            let Some(store) = store else { return Ok(new) };
            let shared = store.shared_secret(&new).await.map_err(|error| api_error(&error.into()))?;
            Ok(shared.unwrap_or(new))
        };
        Ok(self.key.get_or_try_init(find).await?)
    }

    /// Returns the value of a cookie that is valid until a moment, in seconds since 1970.
    async fn issue(&self, store: Option<&dyn Store>, token: &Token, until: u64) -> Result<String, ApiError> {
        let mac = sign(self.prepare(store).await?, token, until)?.finalize().into_bytes();
        Ok(format!("{until}.{}", URL_SAFE_NO_PAD.encode(mac)))
    }

    /// Returns the token that a cookie was issued for.
    fn find<'t>(&self, tokens: &'t [Token], value: &str, now: u64) -> Option<&'t Token> {
        let key = self.key.get()?;
        let (until, mac) = value.split_once('.')?;
        let until = until.parse().ok().filter(|until| now < *until && *until <= now + LIFETIME.as_secs())?;
        let mac = URL_SAFE_NO_PAD.decode(mac).ok()?;
        // All are compared, so that the time does not tell which one it is.
        let verify = |token: &Token| sign(key, token, until).is_ok_and(|signed| signed.verify_slice(&mac).is_ok());
        tokens.iter().fold(None, |found, token| if verify(token) { Some(token) } else { found })
    }
}

fn random_key() -> Result<String, ApiError> {
    let mut bytes = [0; 32];
    let failed = |_| ApiError::new(ApiErrorKind::Server, "there is no randomness");
    getrandom::fill(&mut bytes).map_err(failed)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Signs a login. It ends with its token: when the settings no longer have that, or another one of its name.
fn sign(key: &str, token: &Token, until: u64) -> Result<Hmac<Sha256>, ApiError> {
    let failed = |_| ApiError::new(ApiErrorKind::Server, "the key of logins is not valid");
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).map_err(failed)?;
    mac.update(format!("studio login\n{}\n{}\n{until}", token.name, token.hash).as_bytes());
    Ok(mac)
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Makes sure that cookies can be recognised, if a request has some.
pub(crate) async fn prepare_logins(host: &Host, has_cookies: bool) -> Result<(), ApiError> {
    if has_cookies && !host.settings.tokens.is_empty() {
        host.logins.prepare(host.store.as_deref()).await?;
    }
    Ok(())
}

/// Returns the token behind the cookie of a request, if a page of this server sent it, or a person who opened an address.
pub(crate) fn cookie_token<'h>(host: &'h Host, request: &Request) -> Option<&'h Token> {
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
    host.logins.find(&host.settings.tokens, value, unix_seconds())
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
    let seconds = LIFETIME.as_secs();
    let value = host.logins.issue(host.store.as_deref(), token, unix_seconds() + seconds).await?;
    let name = cookie_name(&headers);
    let cookie = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict");
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::TokenHash;

    fn tokens() -> [Token; 2] {
        [Token::new("one", TokenHash::of("1")), Token::new("two", TokenHash::of("2"))]
    }

    #[tokio::test]
    async fn a_cookie_is_of_its_token_until_it_expires() {
        let logins = Logins::default();
        let [_, two] = &tokens();
        let now = 1_000_000;
        let until = now + LIFETIME.as_secs();
        let cookie = logins.issue(None, two, until).await.unwrap();
        let found = |value: &str, now| logins.find(&tokens(), value, now).map(|token| token.name.clone());
        assert_eq!(found(&cookie, now).as_deref(), Some("two"));
        assert_eq!(found(&cookie, until - 1).as_deref(), Some("two"));
        assert_eq!(found(&cookie, until), None, "it has expired");
        assert_eq!(found(&cookie, now - 1), None, "nobody issues cookies that are valid for so long");
        // What it says cannot be changed.
        let (_, mac) = cookie.split_once('.').unwrap();
        for forged in [
            format!("{}.{mac}", until - 1),
            format!("{until}."),
            format!("{until}"),
            format!("{until}.{mac}A"),
            String::new(),
        ] {
            assert_eq!(found(&forged, now), None, "{forged}");
        }
        // It ends with its token, and other keys issue other cookies.
        let replaced = [Token::new("two", TokenHash::of("new"))];
        assert!(logins.find(&replaced, &cookie, now).is_none());
        let other = Logins::default();
        assert!(other.find(&tokens(), &cookie, now).is_none(), "the key is not known yet");
        other.prepare(None).await.unwrap();
        assert!(other.find(&tokens(), &cookie, now).is_none());
    }
}
