//! The answer of the authorization page, received on a loopback port.

use super::error::{LoginError, foreign};
use crate::http::Url;
use crate::os_error::describe;
use patter_core::text::format_duration;
use std::collections::HashMap;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

/// The number of bytes that are read of a request.
const MAX_REQUEST: usize = 16 * 1024;
/// The time limit of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The number of connections at a time. Browsers open more than they use.
const MAX_CONNECTIONS: usize = 32;
/// The default path of the redirect URI.
const PATH: &str = "/callback";

/// A port that waits for the redirect of the authorization page.
pub(super) struct Callback {
    listener: TcpListener,
    redirect: Url,
}

/// What a redirect must contain.
#[derive(Clone)]
pub(super) struct Expected {
    pub(super) state: String,
    pub(super) issuer: String,
    /// Whether the redirect must name the issuer.
    pub(super) needs_issuer: bool,
}

impl Callback {
    /// Listens at a configured redirect URI, or on any free port.
    pub(super) async fn bind(configured: Option<&Url>) -> Result<Self, LoginError> {
        let port = configured.and_then(Url::port).unwrap_or(0);
        let host = configured.and_then(Url::host_str).filter(|host| *host != "localhost").unwrap_or("127.0.0.1");
        let unusable = |error| {
            let place = if port == 0 { "a port".to_owned() } else { format!("port {port}") };
            LoginError::new(format!("cannot listen on {place} of this machine: {}", describe(&error)))
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let listener = TcpListener::bind((host, port)).await.map_err(unusable)?;
        let port = listener.local_addr().map_err(unusable)?.port();
        let redirect = match configured {
            Some(url) => url.clone(),
            None => Url::parse(&format!("http://127.0.0.1:{port}{PATH}"))
                .map_err(|error| LoginError::new(error.to_string()))?,
        };
        Ok(Self { listener, redirect })
    }

    /// Returns the redirect URI.
    pub(super) fn redirect(&self) -> &str {
        self.redirect.as_str()
    }

    /// Waits for the code. A request that is not the expected redirect is refused, and does not end the wait: any page in
    /// the browser can send one.
    pub(super) async fn code(self, expected: &Expected, limit: Duration) -> Result<String, LoginError> {
        let deadline = Instant::now() + limit;
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = sleep_until(deadline) => {
                    let message = format!("nobody logged in within {}", format_duration(limit));
                    return Err(LoginError::new(message).with_hint("try again, and open the URL in a browser"));
                }
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    if let Ok((stream, _)) = accepted {
                        let path = self.redirect.path().to_owned();
                        let expected = expected.clone();
                        connections.spawn(async move {
                            timeout(REQUEST_TIMEOUT, serve(stream, &path, &expected)).await.ok().flatten()
                        });
                    }
                }
                Some(answer) = connections.join_next() => {
                    if let Ok(Some(answer)) = answer {
                        return answer;
                    }
                }
            }
        }
    }
}

/// Serves a request. Returns the result of the login, if the request is about it.
async fn serve(mut stream: TcpStream, path: &str, expected: &Expected) -> Option<Result<String, LoginError>> {
    let target = read_target(&mut stream).await;
    let answer = target.as_deref().and_then(|target| check(target, path, expected));
    let (status, text) = match &answer {
        Some(Ok(_)) => ("200 OK", "Patter received the answer. You can close this page and return to the terminal."),
        Some(Err(_)) => ("200 OK", "The login failed. Return to the terminal for the reason."),
        None => ("404 Not Found", "There is nothing here."),
    };
    let body = format!("<!doctype html><meta charset=utf-8><title>Patter</title><p>{text}</p>\n");
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\ncontent-security-policy: default-src 'none'\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    // The answer counts even if the browser does not want to read the page.
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
    let _ = stream.shutdown().await;
    answer
}

/// Reads the head of a request, and returns the target of a GET request.
async fn read_target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut chunk = [0; 2048];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        head.extend_from_slice(chunk.get(..count)?);
        if head.len() > MAX_REQUEST {
            return None;
        }
    }
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    (words.next() == Some("GET")).then(|| words.next().map(str::to_owned))?
}

/// Checks the target of a redirect. Returns nothing if it is not the answer to this login.
fn check(target: &str, path: &str, expected: &Expected) -> Option<Result<String, LoginError>> {
    // A target that starts with two slashes names another host.
    if !target.starts_with('/') || target.starts_with("//") {
        return None;
    }
    let url = Url::parse("http://127.0.0.1").ok()?.join(target).ok()?;
    if url.path() != path {
        return None;
    }
    let mut values = HashMap::new();
    for (name, value) in url.query_pairs() {
        // A parameter must not be repeated (RFC 6749, 3.1).
        if values.insert(name.into_owned(), value.into_owned()).is_some() {
            return None;
        }
    }
    if values.get("state") != Some(&expected.state) {
        return None;
    }
    match values.get("iss") {
        Some(issuer) if issuer != &expected.issuer => return None,
        None if expected.needs_issuer => return None,
        _ => {}
    }
    if let Some(code) = values.get("error") {
        let reason = values.get("error_description").map_or_else(|| foreign(code), |text| foreign(text));
        return Some(Err(LoginError::new(format!("the authorization server refused the login: {reason}"))));
    }
    values.remove("code").filter(|code| !code.is_empty()).map(Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_expected_redirect_counts() {
        let expected = Expected { state: "s1".into(), issuer: "https://as".into(), needs_issuer: false };
        let check = |target: &str| check(target, "/callback", &expected);
        assert_eq!(check("/callback?code=c&state=s1"), Some(Ok("c".to_owned())));
        assert_eq!(check("/callback?code=c&state=s1&iss=https%3A%2F%2Fas"), Some(Ok("c".to_owned())));
        for other in [
            "/callback?code=c",
            "/callback?code=c&state=s2",
            "/callback?code=c&state=",
            "/callback?code=c&state=s1&state=s1",
            "/callback?code=c&code=d&state=s1",
            "/callback?code=&state=s1",
            "/callback?state=s1",
            "/callback?code=c&state=s1&iss=https://evil",
            "/other?code=c&state=s1",
            "http://127.0.0.1/callback?code=c&state=s1",
            "//evil/callback?code=c&state=s1",
            "*",
            "",
        ] {
            assert_eq!(check(other), None, "{other}");
        }
        let refused = check("/callback?error=access_denied&error_description=no%1b[31m&state=s1").unwrap();
        assert_eq!(refused.unwrap_err().to_string(), "the authorization server refused the login: no [31m");
    }

    #[test]
    fn an_announced_issuer_is_required() {
        let expected = Expected { state: "s1".into(), issuer: "https://as".into(), needs_issuer: true };
        assert_eq!(check("/callback?code=c&state=s1", "/callback", &expected), None);
        let named = check("/callback?code=c&state=s1&iss=https://as", "/callback", &expected);
        assert_eq!(named, Some(Ok("c".to_owned())));
    }
}
