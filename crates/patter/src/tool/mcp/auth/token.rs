//! Tokens: exchanged for a code, and renewed.

use super::challenge::split_scopes;
use super::error::{LoginError, foreign};
use super::registration::{Client, ClientAuth};
use super::web::{ClientProof, Web};
use crate::http::{StatusCode, Url};
use reqwest::header::HeaderValue;
use serde_json::Value as Json;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest lifetime of a token that is believed.
const MAX_LIFETIME: Duration = Duration::from_hours(24 * 365 * 10);
/// The longest token in bytes. Servers reject longer headers.
const MAX_TOKEN: usize = 16 * 1024;

/// Tokens as an authorization server issued them.
pub(super) struct Tokens {
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    /// When the access token expires, in seconds since 1970.
    pub(super) expires_at: Option<u64>,
    /// The scopes, if they differ from those requested.
    pub(super) scopes: Option<Vec<String>>,
}

/// Why there are no tokens.
pub(super) enum TokenError {
    /// The authorization server rejects the code or the refresh token.
    Rejected(LoginError),
    /// Something else; a later attempt may succeed.
    Failed(LoginError),
}

impl From<TokenError> for LoginError {
    fn from(error: TokenError) -> Self {
        let (TokenError::Rejected(error) | TokenError::Failed(error)) = error;
        error
    }
}

/// Requests tokens: `grant` has the fields of an authorization code or a refresh token.
pub(super) async fn request(
    web: &Web,
    endpoint: &Url,
    client: &Client,
    resource: &str,
    grant: &[(&str, &str)],
) -> Result<Tokens, TokenError> {
    let mut fields = grant.to_vec();
    fields.push(("resource", resource));
    let secret = client.secret.as_deref().unwrap_or_default();
    let proof = match client.auth {
        ClientAuth::ClientSecretBasic => ClientProof::Basic(&client.id, secret),
        ClientAuth::None | ClientAuth::ClientSecretPost => {
            fields.push(("client_id", &client.id));
            ClientProof::None
        }
    };
    if client.auth == ClientAuth::ClientSecretPost {
        fields.push(("client_secret", secret));
    }
    let (status, response) = web.post_form(endpoint, &fields, proof).await.map_err(TokenError::Failed)?;
    parse(status, &response)
}

fn parse(status: StatusCode, response: &Json) -> Result<Tokens, TokenError> {
    let text = |name: &str| response.get(name).and_then(Json::as_str).filter(|text| !text.is_empty());
    if !status.is_success() {
        let code = text("error").map(foreign);
        let reason = match (&code, text("error_description").map(foreign)) {
            (Some(code), Some(description)) => format!("{code}: {description}"),
            (Some(code), None) => code.clone(),
            _ => format!("status {}", status.as_u16()),
        };
        let error = LoginError::new(format!("the authorization server issued no token: {reason}"));
        let is_rejected = matches!(code.as_deref(), Some("invalid_grant" | "invalid_client" | "unauthorized_client"));
        return Err(if is_rejected { TokenError::Rejected(error) } else { TokenError::Failed(error) });
    }
    let invalid = |what: &str| TokenError::Failed(LoginError::new(format!("the authorization server sent {what}")));
    if !text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
        return Err(invalid("a token that is not a bearer token"));
    }
    let is_valid = |token: &&str| token.len() <= MAX_TOKEN && HeaderValue::from_str(token).is_ok();
    let access_token = text("access_token").filter(is_valid).ok_or_else(|| invalid("no usable token"))?;
    let lifetime = response.get("expires_in").and_then(|value| match value {
        // Some servers send a text.
        Json::String(text) => text.parse().ok(),
        value => value.as_f64(),
    });
    let lifetime = lifetime.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Ok(Tokens {
        access_token: access_token.to_owned(),
        refresh_token: text("refresh_token").filter(|token| token.len() <= MAX_TOKEN).map(str::to_owned),
        expires_at: lifetime.map(|lifetime| now().saturating_add(lifetime.min(MAX_LIFETIME).as_secs())),
        scopes: text("scope").map(split_scopes),
    })
}

/// Returns the time in seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
