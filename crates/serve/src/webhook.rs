//! Webhooks: requests that report the end of a turn, signed as [Standard Webhooks](https://www.standardwebhooks.com) describe.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use patter::http::{Bytes, HttpClient, HttpError, HttpRequest, Method, NetworkPolicy, StatusCode, Url, header};
use sha2::Sha256;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// How secrets start.
const PREFIX: &str = "whsec_";
/// The fewest bytes of a secret.
const MIN_BYTES: usize = 24;
/// The most bytes of a secret.
const MAX_BYTES: usize = 64;
/// How long a receiver may take to answer.
const TIMEOUT: Duration = Duration::from_secs(15);

/// How the ends of turns are reported to other servers.
///
/// ```
/// use patter::http::NetworkPolicy;
/// use patter_serve::Webhooks;
/// let secret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
/// assert!(Webhooks::new(secret, NetworkPolicy::default(), |_| None).is_ok());
/// let error = Webhooks::new("secret", NetworkPolicy::default(), |_| None).unwrap_err();
/// assert_eq!(error.to_string(), "the webhook secret does not start with `whsec_`");
/// ```
#[derive(Clone)]
pub struct Webhooks {
    key: Arc<[u8]>,
    client: HttpClient,
}

/// A secret of webhooks that cannot be used. The message does not contain it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WebhookSecretError {
    /// It has another form.
    #[error("the webhook secret does not start with `whsec_`")]
    Prefix,
    /// It is not Base64.
    #[error("the webhook secret is not valid Base64 after `whsec_`")]
    Encoding,
    /// It is too short or too long.
    #[error("the webhook secret must have {MIN_BYTES} to {MAX_BYTES} bytes, in Base64")]
    Length,
}

impl WebhookSecretError {
    /// Returns a hint on how to fix the error.
    pub fn hint(&self) -> &'static str {
        "create one with `echo whsec_$(openssl rand -base64 32)`"
    }
}

/// A message that reports the end of a turn.
#[derive(Debug, Clone)]
pub(crate) struct WebhookMessage<'m> {
    /// Identifies the message: it is the same for each attempt.
    pub(crate) id: &'m str,
    pub(crate) url: &'m str,
    pub(crate) body: &'m str,
}

/// Why a message was not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeliveryError {
    pub(crate) message: String,
    /// Whether another attempt may succeed.
    pub(crate) is_transient: bool,
}

impl Webhooks {
    /// Returns webhooks that are signed with a secret, `whsec_` with Base64. The policy says which servers may be reached, and
    /// `variable` looks up environment variables, such as those of proxies.
    pub fn new(
        secret: &str,
        policy: NetworkPolicy,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, WebhookSecretError> {
        let encoded = secret.trim().strip_prefix(PREFIX).ok_or(WebhookSecretError::Prefix)?;
        let key = STANDARD.decode(encoded).map_err(|_| WebhookSecretError::Encoding)?;
        if !(MIN_BYTES..=MAX_BYTES).contains(&key.len()) {
            return Err(WebhookSecretError::Length);
        }
        Ok(Self { key: key.into(), client: HttpClient::new(policy, variable) })
    }

    /// Sends a message once. `now_ms` is the current time.
    pub(crate) async fn send(&self, message: &WebhookMessage<'_>, now_ms: u64) -> Result<(), DeliveryError> {
        let permanent = |message: String| DeliveryError { message, is_transient: false };
        let transient = |message: String| DeliveryError { message, is_transient: true };
        let url = parse_url(message.url).map_err(|reason| permanent(reason.to_owned()))?;
        let mut request = HttpRequest { method: Method::POST, accepts_compression: false, ..HttpRequest::get(url) };
        let timestamp = (now_ms / 1000).to_string();
        let signature = self.signature(message.id, &timestamp, message.body);
        let headers = [
            ("content-type", "application/json"),
            ("webhook-id", message.id),
            ("webhook-timestamp", &timestamp),
            ("webhook-signature", &signature),
        ];
        for (name, value) in headers {
            let value = header::HeaderValue::from_str(value).map_err(|error| permanent(error.to_string()))?;
            request.headers.insert(header::HeaderName::from_static(name), value);
        }
        request.body = Some(Bytes::from(message.body.to_owned()));
        let response = match tokio::time::timeout(TIMEOUT, self.client.send_once(&request)).await {
            Err(_) => return Err(transient(format!("no answer within {} seconds", TIMEOUT.as_secs()))),
            Ok(Err(error)) if error.is_transient() => return Err(transient(error.to_string())),
            Ok(Err(error)) => return Err(permanent(with_hint(&error))),
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let message = format!("the server answered with status {}", status.as_u16());
        match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => Err(transient(message)),
            status if status.is_server_error() => Err(transient(message)),
            status if status.is_redirection() => Err(permanent(format!("{message}: redirects are not followed"))),
            _ => Err(permanent(message)),
        }
    }

    /// Returns the header that proves where a message comes from.
    fn signature(&self, id: &str, timestamp: &str, body: &str) -> String {
        // A key of any length is valid.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else { return String::new() };
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body.as_bytes());
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// The secret is not shown.
impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhooks").finish_non_exhaustive()
    }
}

/// Parses the URL of a webhook.
pub(crate) fn parse_url(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).map_err(|_| "is not a valid URL")?;
    match url.scheme() {
        _ if !url.username().is_empty() || url.password().is_some() => Err("must not contain credentials"),
        "https" | "http" if url.has_host() => Ok(url),
        _ => Err("must start with `https://` or `http://`"),
    }
}

fn with_hint(error: &HttpError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}
