//! A login, from the challenge of the server to the stored tokens.

use super::super::McpServer;
use super::super::settings::{HttpTransport, ServerSettings, Transport};
use super::callback::{Callback, Expected};
use super::challenge::Challenge;
use super::discovery::{AuthorizationServer, discover, server_id};
use super::error::LoginError;
use super::registration::{Client, client};
use super::store::{LoginStatus, StoredLogin};
use super::token::{Tokens, request};
use super::web::{Web, check_url};
use crate::http::{ConnectionProblem, Url, host_and_port};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use reqwest::StatusCode;
use reqwest::header::{ACCEPT, AUTHORIZATION, WWW_AUTHENTICATE};
use rmcp::model::ProtocolVersion;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::time::Duration;
use tokio::time::timeout;

/// The scope that asks for a refresh token.
const OFFLINE_ACCESS: &str = "offline_access";

/// How to log in.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoginOptions {
    /// The scopes to request, in addition to those that were granted before. By default, those that the server asks for.
    pub scopes: Vec<String>,
    /// How long to wait for the person at the browser.
    pub timeout: Duration,
}

impl Default for LoginOptions {
    fn default() -> Self {
        Self { scopes: Vec::new(), timeout: Duration::from_mins(5) }
    }
}

/// The page where a person logs in.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LoginPage {
    /// The URL to open. It is ASCII, and `https`, or `http` on this machine.
    pub url: Url,
    /// The host of the page.
    pub host: String,
    /// The scopes that are requested.
    pub scopes: Vec<String>,
}

/// A completed login.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Login {
    /// The authorization server.
    pub issuer: String,
    /// The scopes that were granted, if any are known.
    pub scopes: Vec<String>,
}

impl McpServer {
    /// Logs in at a server with a URL, and stores the tokens. `open` shows the page to a person, without blocking.
    ///
    /// ```no_run
    /// use patter::tool::mcp::{LoginOptions, LoginStore, McpServer, ServerConfig, http_client};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let config: ServerConfig = toml::from_str("url = 'https://mcp.example.com/mcp'")?;
    /// let settings = config.settings("tickets", "patter.toml".as_ref(), &|_| None)?;
    /// let server = McpServer::new(settings.with_logins(LoginStore::of_user(), &[]), http_client()?);
    /// server.login(&LoginOptions::default(), |page| println!("open {}", page.url)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn login(&self, options: &LoginOptions, open: impl FnOnce(&LoginPage)) -> Result<Login, LoginError> {
        let settings = self.settings();
        let url = login_url(settings)?;
        let web = Web::new(url, &settings.oauth.allowed, settings.timeout);
        let challenge = self.challenge(url).await?;
        let discovered = discover(&web, url, &settings.oauth, challenge.as_ref()).await?;
        let previous = settings.logins.load(url).ok().flatten();
        let scopes = wanted_scopes(settings, options, &discovered.scopes, &discovered.server, previous.as_ref());
        let callback = Callback::bind(settings.oauth.redirect_uri.as_ref()).await?;
        let redirect = callback.redirect().to_owned();
        let client = client(&web, &discovered.server, &settings.oauth, &redirect, &scopes).await?;

        let state = random_text()?;
        let verifier = random_text()?;
        let page = page(&discovered.server, &client, &redirect, &discovered.resource, &scopes, &state, &verifier);
        let server = &discovered.server;
        let expected = Expected { state, issuer: server.issuer.clone(), needs_issuer: server.sends_issuer };
        open(&page);
        let code = callback.code(&expected, options.timeout).await?;

        let grant = [
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("redirect_uri", redirect.as_str()),
            ("code_verifier", verifier.as_str()),
        ];
        let tokens = request(&web, &server.token_endpoint, &client, &discovered.resource, &grant).await?;
        let Tokens { access_token, refresh_token, expires_at, scopes: granted } = tokens;
        let login = StoredLogin {
            server: server_id(url),
            issuer: server.issuer.clone(),
            token_endpoint: server.token_endpoint.to_string(),
            resource: discovered.resource,
            client,
            access_token,
            refresh_token,
            expires_at,
            scopes: granted.unwrap_or(scopes),
            missing_scopes: Vec::new(),
        };
        settings.logins.save(url, &login)?;
        Ok(Login { issuer: login.issuer, scopes: login.scopes })
    }

    /// Removes the tokens of a server, and returns whether there were any.
    pub fn logout(&self) -> Result<bool, LoginError> {
        let settings = self.settings();
        settings.logins.remove(login_url(settings)?)
    }

    /// Returns whether the user is logged in, or nothing if the server has no logins: it is a process, or `headers`
    /// contain an authorization.
    pub fn login_status(&self) -> Option<Result<LoginStatus, LoginError>> {
        let settings = self.settings();
        login_url(settings).ok().map(|url| settings.logins.status(url))
    }

    /// Returns what the server demands of a request without a token, or nothing if it responds.
    async fn challenge(&self, url: &Url) -> Result<Option<Challenge>, LoginError> {
        let Transport::Http(HttpTransport { headers, .. }) = &self.settings().transport else { return Ok(None) };
        let server = host_and_port(url);
        let initialize = json!({
            "jsonrpc": "2.0",
            "id": 0,
            "method": "initialize",
            "params": {
                "protocolVersion": ProtocolVersion::LATEST_WITH_INITIALIZE,
                "capabilities": {},
                "clientInfo": {"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")},
            },
        });
        let mut request = self.http_client().post(url.clone()).json(&initialize);
        request = request.header(ACCEPT, "application/json, text/event-stream");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let slow = || LoginError::new(format!("`{server}` did not respond in time"));
        let response = timeout(self.settings().timeout, request.send()).await.map_err(|_| slow())?;
        let response = response.map_err(|error| {
            let problem = ConnectionProblem::find(&error);
            let hint = problem.as_ref().and_then(ConnectionProblem::hint);
            let reason = problem.as_ref().map_or_else(|| "the request failed".to_owned(), ToString::to_string);
            let error = LoginError::new(format!("cannot connect to `{server}`: {reason}"));
            if let Some(hint) = hint { error.with_hint(hint) } else { error }
        })?;
        if !matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Ok(None);
        }
        let header = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        Ok(Some(Challenge::parse(header.unwrap_or_default())))
    }
}

/// Returns the URL of a server where a user can log in.
fn login_url(settings: &ServerSettings) -> Result<&Url, LoginError> {
    let name = &settings.name;
    match &settings.transport {
        Transport::Process { .. } => {
            let message = format!("the MCP server `{name}` is a program on this machine, which has no login");
            Err(LoginError::new(message).with_hint("pass credentials to it with `env`"))
        }
        Transport::Http(HttpTransport { headers, .. }) if headers.iter().any(|(name, _)| name == AUTHORIZATION) => {
            let message = format!("the MCP server `{name}` is used with the `Authorization` of its `headers`");
            Err(LoginError::new(message).with_hint("remove that header to log in instead"))
        }
        Transport::Http(HttpTransport { url, .. }) => {
            let hint = "change the `url` of the server to `https`";
            check_url(url).map_err(|error| LoginError::new(error.to_string()).with_hint(hint))?;
            Ok(url)
        }
    }
}

/// Returns the scopes to request: those that are configured, or those that the server asks for. Scopes that were granted
/// before, or that were missing since, are requested again, so that a new login never allows less.
fn wanted_scopes(
    settings: &ServerSettings,
    options: &LoginOptions,
    asked: &[String],
    server: &AuthorizationServer,
    previous: Option<&StoredLogin>,
) -> Vec<String> {
    let base = if settings.oauth.scopes.is_empty() { asked } else { &settings.oauth.scopes };
    let missing = previous.into_iter().filter(|login| login.issuer == server.issuer).flat_map(|login| {
        // What was granted matters only if more is needed now.
        let granted = login.scopes.iter().filter(|_| !login.missing_scopes.is_empty());
        granted.chain(&login.missing_scopes)
    });
    let offline = server.scopes.iter().filter(|scope| *scope == OFFLINE_ACCESS);
    let mut scopes: Vec<String> = Vec::new();
    for scope in base.iter().chain(&options.scopes).chain(missing).chain(offline) {
        if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
    scopes
}

fn page(
    server: &AuthorizationServer,
    client: &Client,
    redirect: &str,
    resource: &str,
    scopes: &[String],
    state: &str,
    verifier: &str,
) -> LoginPage {
    let mut url = server.authorization_endpoint.clone();
    url.set_fragment(None);
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
    {
        let mut query = url.query_pairs_mut();
        query.append_pair("response_type", "code");
        query.append_pair("client_id", &client.id);
        query.append_pair("redirect_uri", redirect);
        query.append_pair("state", state);
        query.append_pair("code_challenge", &challenge);
        query.append_pair("code_challenge_method", "S256");
        query.append_pair("resource", resource);
        if !scopes.is_empty() {
            query.append_pair("scope", &scopes.join(" "));
        }
        // OpenID Connect grants offline access only with consent.
        if scopes.iter().any(|scope| scope == OFFLINE_ACCESS) {
            query.append_pair("prompt", "consent");
        }
    }
    let host = url.host_str().unwrap_or_default().to_owned();
    LoginPage { url, host, scopes: scopes.to_vec() }
}

/// Returns a text that nobody can guess.
fn random_text() -> Result<String, LoginError> {
    let mut bytes = [0; 32];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| LoginError::new("the system provides no random numbers"))?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}
