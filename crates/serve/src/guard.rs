//! The guard in front of all routes: it lets in only requests that are meant for this server.
//!
//! A web page that a person visits can send requests to servers on their machine. So the server accepts requests only for
//! names that it knows, from pages that it knows, and bodies only as JSON, which a page of another origin cannot send without
//! asking first.

use crate::host::Host;
use crate::respond::{ErrorResponse, add_common_headers};
use crate::studio;
use crate::token::Access;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use patter_core::serve::{ApiError, ApiErrorKind};
use std::net::IpAddr;
use std::sync::Arc;

/// The routes that need no token: they say nothing about agents.
const OPEN_ROUTES: [&str; 2] = ["/healthz", "/readyz"];

/// Lets a request in, or refuses it.
pub(crate) async fn guard(State(host): State<Arc<Host>>, mut request: Request, next: Next) -> Response {
    host.metrics.request();
    let origin = request.headers().get(header::ORIGIN).cloned();
    let has_cookies = request.headers().contains_key(header::COOKIE);
    let admitted = match studio::prepare_logins(&host, has_cookies).await {
        Ok(()) => admit(&host, &request),
        Err(error) => Err(error),
    };
    let mut response = match admitted {
        Err(error) => {
            host.metrics.refused();
            tracing::debug!(path = request.uri().path(), %error, "request refused");
            let page = if error.kind == ApiErrorKind::Unauthorized { studio::login_page(&request) } else { None };
            page.unwrap_or_else(|| ErrorResponse::from(error).into_response())
        }
        Ok(_) if is_preflight(&request) => StatusCode::NO_CONTENT.into_response(),
        Ok(access) => {
            request.extensions_mut().insert(access);
            next.run(request).await
        }
    };
    add_common_headers(response.headers_mut());
    if let Some(origin) = origin.filter(|origin| is_allowed_origin(&host, origin)) {
        add_cors_headers(response.headers_mut(), origin);
    }
    response
}

fn admit(host: &Host, request: &Request) -> Result<Access, ApiError> {
    let headers = request.headers();
    check_host(host, request)?;
    if let Some(origin) = headers.get(header::ORIGIN)
        && !is_allowed_origin(host, origin)
        && !is_own_origin(headers, origin)
    {
        let message = "requests of this web page are not accepted (see the option --cors)";
        return Err(ApiError::new(ApiErrorKind::Forbidden, message));
    }
    if is_preflight(request) {
        return Ok(Access::default());
    }
    let access = authenticate(host, request)?;
    if has_body(request) && !is_json(headers) {
        return Err(ApiError::new(ApiErrorKind::UnsupportedType, "the body must be `application/json`"));
    }
    Ok(access)
}

/// Checks that the request is for a name of this server: with DNS rebinding, a web page reaches it under another.
fn check_host(host: &Host, request: &Request) -> Result<(), ApiError> {
    let mut names = request.headers().get_all(header::HOST).iter();
    let name = match (names.next(), names.next()) {
        (Some(name), None) => name.to_str().ok(),
        _ => None,
    };
    let is_known = name.is_some_and(|name| {
        is_local_name(name)
            || host.settings.hosts.iter().any(|known| known == name || Some(known.as_str()) == without_port(name))
    });
    if is_known {
        return Ok(());
    }
    let name = name.unwrap_or_default();
    let message = format!("this server is not `{name}` (see the option --host)");
    Err(ApiError::new(ApiErrorKind::Forbidden, message))
}

/// Returns whether a name with a port is one of this machine.
fn is_local_name(name: &str) -> bool {
    let name = without_port(name).unwrap_or(name);
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn without_port(name: &str) -> Option<&str> {
    let (name, port) = name.rsplit_once(':')?;
    port.parse::<u16>().ok().map(|_| name)
}

fn is_allowed_origin(host: &Host, origin: &HeaderValue) -> bool {
    host.settings.origins.iter().any(|known| known.as_bytes() == origin.as_bytes())
}

/// Returns whether a page is of this server, under the name of the request, which was checked.
pub(crate) fn is_own_origin(headers: &HeaderMap, origin: &HeaderValue) -> bool {
    let name = headers.get(header::HOST).map(HeaderValue::as_bytes);
    let origin = origin.as_bytes();
    let page = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    page.is_some() && page == name
}

fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

fn add_cors_headers(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    let methods = HeaderValue::from_static("GET, POST, DELETE");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    let allowed = "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Patter-Session, X-Patter-Events";
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
}

fn authenticate(host: &Host, request: &Request) -> Result<Access, ApiError> {
    let path = request.uri().path();
    if host.settings.tokens.is_empty() || OPEN_ROUTES.contains(&path) || studio::is_open_route(request.method(), path) {
        return Ok(Access::default());
    }
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given =
        given.and_then(|value| value.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let Some((_, given)) = given else {
        if let Some(token) = studio::cookie_token(host, request) {
            return Ok(Access::with(token));
        }
        return Err(ApiError::new(ApiErrorKind::Unauthorized, "a token is needed: `Authorization: Bearer …`"));
    };
    match host.find_token(given.trim()) {
        Some(token) => Ok(Access::with(token)),
        None => Err(ApiError::new(ApiErrorKind::Unauthorized, "the token is not valid")),
    }
}

/// Returns whether a request has a body, or could have one that a page sends without asking.
fn has_body(request: &Request) -> bool {
    let headers = request.headers();
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let has_length = length.is_some_and(|length| length.trim() != "0");
    has_length || headers.contains_key(header::TRANSFER_ENCODING) || headers.contains_key(header::CONTENT_TYPE)
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

/// Reads the body of a request, up to the limits of size and time.
pub(crate) async fn read_body(host: &Host, body: Body) -> Result<Bytes, ApiError> {
    let limits = &host.settings.limits;
    match tokio::time::timeout(limits.body_timeout, to_bytes(body, limits.max_body)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => {
            let message = format!("the body is larger than {} bytes, or broke off", limits.max_body);
            Err(ApiError::new(ApiErrorKind::TooLarge, message))
        }
        Err(_) => Err(ApiError::new(ApiErrorKind::Invalid, "the body did not arrive in time")),
    }
}

/// Returns a header as text.
pub(crate) fn text_header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim).filter(|text| !text.is_empty())
}
