//! The client id that a login uses.

use super::discovery::AuthorizationServer;
use super::error::{LoginError, foreign};
use super::settings::OauthSettings;
use super::web::Web;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

/// A client of an authorization server.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<String>,
    pub(super) auth: ClientAuth,
}

/// How a client authenticates at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClientAuth {
    None,
    ClientSecretBasic,
    ClientSecretPost,
}

impl ClientAuth {
    fn name(self) -> &'static str {
        match self {
            ClientAuth::None => "none",
            ClientAuth::ClientSecretBasic => "client_secret_basic",
            ClientAuth::ClientSecretPost => "client_secret_post",
        }
    }

    /// Chooses the first of some ways that a server supports. A server that lists none supports the default.
    fn choose(wanted: &[ClientAuth], server: &AuthorizationServer, default: ClientAuth) -> Result<Self, LoginError> {
        if server.auth_methods.is_empty() {
            return Ok(default);
        }
        let is_supported = |auth: &&ClientAuth| server.auth_methods.iter().any(|method| method == auth.name());
        wanted.iter().find(is_supported).copied().ok_or_else(|| {
            let methods = foreign(&server.auth_methods.join(", "));
            LoginError::new(format!("the authorization server supports only clients with {methods}"))
        })
    }
}

/// Returns the client to log in with: the configured one, one that is described by a document, or a new one.
pub(super) async fn client(
    web: &Web,
    server: &AuthorizationServer,
    settings: &OauthSettings,
    redirect: &str,
    scopes: &[String],
) -> Result<Client, LoginError> {
    use ClientAuth::{ClientSecretBasic, ClientSecretPost, None as Public};
    if let Some(id) = &settings.client_id {
        let auth = match &settings.client_secret {
            Some(_) => ClientAuth::choose(&[ClientSecretBasic, ClientSecretPost], server, ClientSecretBasic)?,
            None => Public,
        };
        return Ok(Client { id: id.clone(), secret: settings.client_secret.clone(), auth });
    }
    if let Some(url) = settings.client_metadata_url.as_ref().filter(|_| server.accepts_metadata_url) {
        return Ok(Client { id: url.clone(), secret: None, auth: Public });
    }
    let Some(endpoint) = &server.registration_endpoint else {
        let message = "the authorization server does not register clients by itself";
        return Err(LoginError::new(message)
            .with_hint("register one there, and set `client-id` under `oauth` of the server in patter.toml"));
    };
    let auth = ClientAuth::choose(&[Public, ClientSecretPost, ClientSecretBasic], server, Public)?;
    let mut request = json!({
        "client_name": "Patter",
        "application_type": "native",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": auth.name(),
    });
    if let (Some(fields), false) = (request.as_object_mut(), scopes.is_empty()) {
        fields.insert("scope".to_owned(), Json::String(scopes.join(" ")));
    }
    let (status, response) = web.post_json(endpoint, &request).await?;
    let text = |name: &str| response.get(name).and_then(Json::as_str).filter(|text| !text.is_empty());
    let Some(id) = text("client_id").filter(|_| status.is_success()) else {
        let reason = text("error_description").or(text("error")).map(foreign);
        let reason = reason.unwrap_or_else(|| format!("status {}", status.as_u16()));
        return Err(LoginError::new(format!("the authorization server did not register a client: {reason}"))
            .with_hint("register one there, and set `client-id` under `oauth` of the server in patter.toml"));
    };
    let secret = text("client_secret").map(str::to_owned);
    let auth = match (text("token_endpoint_auth_method"), &secret) {
        (_, None) => Public,
        (Some("client_secret_basic"), Some(_)) => ClientSecretBasic,
        (Some("client_secret_post"), Some(_)) => ClientSecretPost,
        (Some("none"), Some(_)) => Public,
        (_, Some(_)) => ClientAuth::choose(&[ClientSecretBasic, ClientSecretPost, Public], server, ClientSecretBasic)?,
    };
    Ok(Client { id: id.to_owned(), secret, auth })
}
