//! The settings of logins: the section `[mcp.NAME.oauth]`.

use super::super::config::without_defaults;
use super::super::config_error::ServerConfigError;
use super::super::settings::VariableExpander;
use super::error::{LoginError, foreign};
use super::web::{endpoint, is_loopback};
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use std::fmt;

/// How to log in at an MCP server with a URL, where its defaults do not suffice.
///
/// Texts may contain `${VAR}`.
///
/// ```
/// use patter::tool::mcp::ServerConfig;
/// let text = "url = 'https://mcp.example.com/mcp'\noauth = {client-id = 'abc', scopes = ['files:read']}";
/// let config: ServerConfig = toml::from_str(text).unwrap();
/// assert_eq!(config.oauth.unwrap().client_id.as_deref(), Some("abc"));
/// ```
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct OauthConfig {
    /// The id of a client that is registered at the authorization server. By default, a client is registered.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<String>,
    /// The authorization server to log in at. A server that names another one is refused. By default, any will do, but the
    /// secret goes only to one of the same origin as the server.
    pub issuer: Option<String>,
    /// The URL of a document that describes the client, for authorization servers that support it.
    pub client_metadata_url: Option<String>,
    /// The loopback URL that the authorization page redirects to, as registered: `http://127.0.0.1:8976/callback`.
    pub redirect_uri: Option<String>,
    /// The scopes to request instead of those that the server asks for.
    pub scopes: Vec<String>,
}

/// Hides the secret.
impl fmt::Debug for OauthConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OauthConfig")
            .field("client_id", &self.client_id)
            .field("issuer", &self.issuer)
            .field("client_metadata_url", &self.client_metadata_url)
            .field("redirect_uri", &self.redirect_uri)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// The validated settings of logins.
#[derive(Clone, Default)]
pub(in super::super) struct OauthSettings {
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<String>,
    pub(super) issuer: Option<String>,
    pub(super) client_metadata_url: Option<String>,
    pub(super) redirect_uri: Option<Url>,
    pub(super) scopes: Vec<String>,
    /// Servers that are not public and may be contacted all the same.
    pub(in super::super) allowed: Vec<String>,
}

impl OauthConfig {
    /// Returns the settings that decide how to log in, in a stable form. The secret does not: it may change at any time.
    pub(in super::super) fn decisive_settings(&self) -> Map<String, Json> {
        let Self { client_id, client_secret: _, issuer, client_metadata_url, redirect_uri, scopes } = self;
        without_defaults([
            ("client-id", json!(client_id)),
            ("issuer", json!(issuer)),
            ("client-metadata-url", json!(client_metadata_url)),
            ("redirect-uri", json!(redirect_uri)),
            ("scopes", json!(scopes)),
        ])
    }

    /// Validates the configuration and expands variables.
    pub(in super::super) fn settings(
        &self,
        expander: &mut VariableExpander<'_>,
    ) -> Result<OauthSettings, ServerConfigError> {
        let mut expand = |text: &Option<String>| text.as_deref().map(|text| expander.expand(text)).transpose();
        let client_id = expand(&self.client_id)?;
        let client_secret = expand(&self.client_secret)?;
        let issuer = expand(&self.issuer)?;
        let client_metadata_url = expand(&self.client_metadata_url)?;
        let redirect_uri = expand(&self.redirect_uri)?;
        if let Some(secret) = &client_secret {
            expander.add_secret(secret);
        }
        if client_secret.is_some() && client_id.is_none() {
            return Err(ServerConfigError::Oauth("has an `oauth.client-secret` without a `client-id`"));
        }
        if issuer.as_ref().is_some_and(|text| endpoint("issuer", text).is_err()) {
            return Err(ServerConfigError::Oauth("has an `oauth.issuer` that is not an `https` URL"));
        }
        let is_document = |text: &String| {
            endpoint("client-metadata-url", text).is_ok_and(|url| url.scheme() == "https" && url.path() != "/")
        };
        if client_metadata_url.as_ref().is_some_and(|text| !is_document(text)) {
            return Err(ServerConfigError::Oauth("has an `oauth.client-metadata-url` that is not an `https` URL"));
        }
        let redirect_uri = match redirect_uri.as_deref().map(Url::parse) {
            None => None,
            Some(Ok(url)) if url.scheme() == "http" && is_loopback(&url) && url.port().is_some() => Some(url),
            Some(_) => {
                let problem = "has an `oauth.redirect-uri` that is not like `http://127.0.0.1:8976/callback`";
                return Err(ServerConfigError::Oauth(problem));
            }
        };
        let scopes = self.scopes.clone();
        let allowed = Vec::new();
        Ok(OauthSettings { client_id, client_secret, issuer, client_metadata_url, redirect_uri, scopes, allowed })
    }
}

impl OauthSettings {
    /// Returns whether an authorization server is the configured one, if one is.
    pub(super) fn is_configured(&self, issuer: &str) -> bool {
        let same = |configured: &str| configured.trim_end_matches('/') == issuer.trim_end_matches('/');
        self.issuer.as_deref().is_some_and(same)
    }

    /// Checks that a login may use an authorization server. `server` is the URL of the MCP server, which names it and could
    /// name one that collects the secrets of clients.
    pub(super) fn check_issuer(&self, issuer: &str, server: &Url) -> Result<(), LoginError> {
        let named = foreign(issuer);
        if let Some(configured) = &self.issuer {
            if self.is_configured(issuer) {
                return Ok(());
            }
            let message = format!("the server names the authorization server `{named}`, which is not the `issuer`");
            return Err(LoginError::new(message).with_hint(format!("the `issuer` under `oauth` is {configured}")));
        }
        let is_own = Url::parse(issuer).is_ok_and(|issuer| issuer.origin() == server.origin());
        if self.client_secret.is_none() || is_own {
            return Ok(());
        }
        let message = format!("the server names the authorization server `{named}`, which would get the client secret");
        Err(LoginError::new(message).with_hint(format!(
            "if the client is registered there, set `issuer = \"{named}\"` under `oauth` of the server in patter.toml"
        )))
    }
}
