//! The tokens that requests to a server carry, renewed when they expire.

use super::challenge::Challenge;
use super::discovery::server_id;
use super::error::LoginError;
use super::store::{LoginStore, StoredLogin};
use super::token::{TokenError, request};
use super::web::{Web, check_url, endpoint};
use crate::http::Url;
use crate::tool::redact::Redactor;
use reqwest::header::HeaderValue;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number of seconds before the end of a token at which it is renewed.
const MARGIN: u64 = 30;

/// The tokens of a user for one server.
pub(in super::super) struct Credentials {
    url: Url,
    store: LoginStore,
    web: Web,
    redactor: Arc<Redactor>,
    /// Why the server denied access last.
    denial: Mutex<Option<Denial>>,
    /// Held while tokens are renewed: a refresh token may be used only once.
    renewal: tokio::sync::Mutex<()>,
}

/// Why a server denied access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Denial {
    /// The user is not logged in.
    LoggedOut,
    /// The token that the user has is not accepted.
    Rejected,
    /// The token does not include these scopes.
    Scopes(Vec<String>),
    /// The token cannot be renewed.
    Failed(LoginError),
}

impl Credentials {
    /// Returns the credentials for a URL, if tokens may be sent to it.
    pub(in super::super) fn new(
        url: &Url,
        store: &LoginStore,
        allowed: &[String],
        limit: Duration,
        redactor: &Arc<Redactor>,
    ) -> Option<Arc<Self>> {
        check_url(url).ok()?;
        Some(Arc::new(Self {
            url: url.clone(),
            store: store.clone(),
            web: Web::new(url, allowed, limit),
            redactor: Arc::clone(redactor),
            denial: Mutex::default(),
            renewal: tokio::sync::Mutex::default(),
        }))
    }

    /// Returns why the server denied access last, once.
    pub(in super::super) fn take_denial(&self) -> Option<Denial> {
        self.denial().take()
    }

    /// Returns the access token for a request, which is renewed if it is about to expire. Returns nothing if the user is not
    /// logged in.
    pub(super) async fn token(&self) -> Result<Option<String>, LoginError> {
        match self.load()? {
            Some(login) if !login.is_fresh(MARGIN) => self.renew(&login.access_token).await,
            login => Ok(login.map(|login| login.access_token)),
        }
    }

    /// Returns the header for a connection that stays open, and whose requests cannot be repeated.
    pub(in super::super) async fn header(&self) -> Option<HeaderValue> {
        let token = match self.token().await {
            Ok(token) => token?,
            Err(error) => {
                self.deny(Denial::Failed(error));
                return None;
            }
        };
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Renews a token that the server rejected, or that is about to expire. Returns nothing if a person has to log in.
    pub(super) async fn renew(&self, old: &str) -> Result<Option<String>, LoginError> {
        let _renewal = self.renewal.lock().await;
        let _lock = self.store.lock(&self.url).await?;
        let Some(mut login) = self.load()? else { return Ok(None) };
        if login.access_token != old {
            // Someone else renewed it meanwhile.
            return Ok(Some(login.access_token));
        }
        let Some(refresh_token) = login.refresh_token.clone() else { return Ok(None) };
        let place = endpoint("token_endpoint", &login.token_endpoint)?;
        let scope = login.scopes.join(" ");
        let mut grant = vec![("grant_type", "refresh_token"), ("refresh_token", refresh_token.as_str())];
        if !scope.is_empty() {
            grant.push(("scope", &scope));
        }
        match request(&self.web, &place, &login.client, &login.resource, &grant).await {
            Ok(tokens) => {
                login.access_token = tokens.access_token;
                login.refresh_token = tokens.refresh_token.or(Some(refresh_token));
                login.expires_at = tokens.expires_at;
                login.scopes = tokens.scopes.unwrap_or(login.scopes);
                self.store.save(&self.url, &login)?;
                self.hide(&login);
                Ok(Some(login.access_token))
            }
            Err(TokenError::Rejected(error)) => {
                tracing::debug!(server = server_id(&self.url), %error, "the login is no longer valid");
                login.refresh_token = None;
                self.store.save(&self.url, &login)?;
                Ok(None)
            }
            Err(TokenError::Failed(error)) => Err(error),
        }
    }

    /// Notes that the server denied access, and the scopes that the next login has to request.
    pub(in super::super) fn deny(&self, denial: Denial) {
        // Tokens that another process renews meanwhile must not be replaced by the old ones.
        if let Denial::Scopes(scopes) = &denial
            && let Some(_lock) = self.store.try_lock(&self.url)
            && let Ok(Some(mut login)) = self.store.load(&self.url)
            && login.missing_scopes != *scopes
        {
            login.missing_scopes.clone_from(scopes);
            if let Err(error) = self.store.save(&self.url, &login) {
                tracing::debug!(%error, "cannot note the missing scopes");
            }
        }
        *self.denial() = Some(denial);
    }

    /// Reads the login. Its secrets are hidden from here on wherever the server might repeat them.
    fn load(&self) -> Result<Option<StoredLogin>, LoginError> {
        let login = self.store.load(&self.url)?;
        if let Some(login) = &login {
            self.hide(login);
        }
        Ok(login)
    }

    fn hide(&self, login: &StoredLogin) {
        let secrets = [Some(&login.access_token), login.refresh_token.as_ref(), login.client.secret.as_ref()];
        for secret in secrets.into_iter().flatten() {
            self.redactor.hide(secret);
        }
    }

    fn denial(&self) -> MutexGuard<'_, Option<Denial>> {
        self.denial.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Denial {
    /// Returns the scopes that a denied request needs, if the challenge says so.
    pub(super) fn from_forbidden(header: &str) -> Option<Self> {
        let challenge = Challenge::parse(header);
        let is_about_scopes = challenge.error.as_deref() == Some("insufficient_scope");
        is_about_scopes.then_some(Denial::Scopes(challenge.scopes))
    }
}
