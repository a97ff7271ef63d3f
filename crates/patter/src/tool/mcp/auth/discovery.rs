//! Finding the authorization server of an MCP server.

use super::challenge::{Challenge, split_scopes};
use super::error::{LoginError, foreign};
use super::settings::OauthSettings;
use super::web::{Web, check_url, endpoint};
use crate::http::Url;
use serde_json::Value as Json;

/// The number of scopes and methods that are used of a list.
const MAX_ITEMS: usize = 100;

/// What is known about a protected server before a login.
#[derive(Debug)]
pub(super) struct Discovered {
    pub(super) server: AuthorizationServer,
    /// The resource that tokens are requested for.
    pub(super) resource: String,
    /// The scopes that the server asks for.
    pub(super) scopes: Vec<String>,
}

/// The metadata of an authorization server.
#[derive(Debug)]
pub(super) struct AuthorizationServer {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Url,
    pub(super) token_endpoint: Url,
    pub(super) registration_endpoint: Option<Url>,
    /// The ways to authenticate at the token endpoint, if they are known.
    pub(super) auth_methods: Vec<String>,
    pub(super) scopes: Vec<String>,
    /// Whether a client id may be the URL of a document.
    pub(super) accepts_metadata_url: bool,
    /// Whether it names itself in its answers (RFC 9207).
    pub(super) sends_issuer: bool,
}

/// Finds the authorization server. `challenge` is what the server responded to a request without a token, if it denied it.
pub(super) async fn discover(
    web: &Web,
    url: &Url,
    oauth: &OauthSettings,
    challenge: Option<&Challenge>,
) -> Result<Discovered, LoginError> {
    let metadata = resource_metadata(web, url, challenge).await?;
    let challenged = challenge.map(|challenge| challenge.scopes.clone()).unwrap_or_default();
    let Some(metadata) = metadata else {
        // Before protected resources had metadata, a server was its own authorization server.
        let server = match own_metadata(web, url).await? {
            Some(server) => server,
            None if challenge.is_some() => default_endpoints(url)?,
            None => {
                let message = format!("`{}` does not ask for a login", url.host_str().unwrap_or_default());
                return Err(LoginError::new(message).with_hint("check the `url` of the server"));
            }
        };
        oauth.check_issuer(&server.issuer, url)?;
        return Ok(Discovered { server, resource: server_id(url), scopes: challenged });
    };
    let resource = metadata.get("resource").and_then(Json::as_str).unwrap_or_default();
    if !covers(resource, url) {
        let message = format!("the server's metadata is about another resource, `{}`", foreign(resource));
        return Err(LoginError::new(message).with_hint("check the `url` of the server, or ask its operator"));
    }
    let issuers = texts(&metadata, "authorization_servers");
    let issuer = issuers.iter().find(|issuer| oauth.is_configured(issuer)).or(issuers.first());
    let issuer = issuer.ok_or_else(|| LoginError::new("the server's metadata names no authorization server"))?;
    oauth.check_issuer(issuer, url)?;
    let server = authorization_server(web, issuer).await?;
    let server = server
        .ok_or_else(|| LoginError::new(format!("the authorization server `{}` has no metadata", foreign(issuer))))?;
    let scopes = if challenged.is_empty() { texts(&metadata, "scopes_supported") } else { challenged };
    Ok(Discovered { server, resource: resource.to_owned(), scopes })
}

/// Returns the URL of a server without query and fragment: what tokens are bound to.
pub(super) fn server_id(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let text = url.to_string();
    if url.path() == "/" { text.trim_end_matches('/').to_owned() } else { text }
}

/// Fetches the metadata of the protected resource: where the challenge says, or at the well-known places.
async fn resource_metadata(web: &Web, url: &Url, challenge: Option<&Challenge>) -> Result<Option<Json>, LoginError> {
    if let Some(named) = challenge.and_then(|challenge| challenge.resource_metadata.as_deref()) {
        let place = endpoint("resource_metadata", named)?;
        return match web.get_json(&place).await? {
            Some(metadata) => Ok(Some(metadata)),
            None => Err(LoginError::new(format!("there is no metadata at `{}`", foreign(named)))),
        };
    }
    for place in well_known(url, "oauth-protected-resource") {
        if let Some(metadata) = web.get_json(&place).await? {
            return Ok(Some(metadata));
        }
    }
    Ok(None)
}

/// Returns whether metadata about a resource applies to a URL: same origin, and the path is at or below that of the resource.
fn covers(resource: &str, url: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let base = resource.path().trim_end_matches('/');
    let is_below = url.path().strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    resource.origin() == url.origin() && resource.origin().is_tuple() && is_below && resource.query().is_none()
}

/// Fetches the metadata of an authorization server.
async fn authorization_server(web: &Web, issuer: &str) -> Result<Option<AuthorizationServer>, LoginError> {
    let url = endpoint("authorization server", issuer)?;
    let mut places = well_known(&url, "oauth-authorization-server");
    places.truncate(1);
    places.extend(well_known(&url, "openid-configuration").into_iter().take(1));
    if url.path() != "/" {
        let path = format!("{}/.well-known/openid-configuration", url.path().trim_end_matches('/'));
        places.extend(url.join(&path).ok());
    }
    for place in places {
        if let Some(metadata) = web.get_json(&place).await? {
            check_issuer(&metadata, issuer)?;
            return parse(&metadata).map(Some);
        }
    }
    Ok(None)
}

/// Fetches the metadata of a server that is its own authorization server. Nobody named its issuer, so that any of the same
/// origin will do.
async fn own_metadata(web: &Web, url: &Url) -> Result<Option<AuthorizationServer>, LoginError> {
    let origin = url.origin().ascii_serialization();
    let Some(place) = url.join("/.well-known/oauth-authorization-server").ok() else { return Ok(None) };
    let Some(metadata) = web.get_json(&place).await? else { return Ok(None) };
    let issuer = issuer(&metadata);
    if !Url::parse(issuer).is_ok_and(|issuer| issuer.origin() == url.origin()) {
        check_issuer(&metadata, &origin)?;
    }
    parse(&metadata).map(Some)
}

/// Returns the endpoints of a server that is its own authorization server and has no metadata.
fn default_endpoints(url: &Url) -> Result<AuthorizationServer, LoginError> {
    check_url(url)?;
    let at = |path: &str| url.join(path).map_err(|_| LoginError::new("the `url` of the server has no origin"));
    Ok(AuthorizationServer {
        issuer: url.origin().ascii_serialization(),
        authorization_endpoint: at("/authorize")?,
        token_endpoint: at("/token")?,
        registration_endpoint: Some(at("/register")?),
        auth_methods: Vec::new(),
        scopes: Vec::new(),
        accepts_metadata_url: false,
        sends_issuer: false,
    })
}

/// Returns the well-known places for metadata about a URL, the more specific first.
fn well_known(url: &Url, name: &str) -> Vec<Url> {
    let path = url.path().trim_end_matches('/');
    let mut places = vec![format!("/.well-known/{name}{path}")];
    if !path.is_empty() {
        places.push(format!("/.well-known/{name}"));
    }
    let mut base = url.clone();
    base.set_query(None);
    base.set_fragment(None);
    places.iter().filter_map(|place| base.join(place).ok()).collect()
}

fn issuer(metadata: &Json) -> &str {
    metadata.get("issuer").and_then(Json::as_str).unwrap_or_default()
}

/// Checks that metadata is about the authorization server that it was requested for.
fn check_issuer(metadata: &Json, expected: &str) -> Result<(), LoginError> {
    let named = issuer(metadata);
    if named.trim_end_matches('/') == expected.trim_end_matches('/') {
        return Ok(());
    }
    let expected = foreign(expected);
    let message =
        format!("the metadata of the authorization server `{expected}` is about another one, `{}`", foreign(named));
    Err(LoginError::new(message).with_hint("ask the operator of the server"))
}

fn parse(metadata: &Json) -> Result<AuthorizationServer, LoginError> {
    let text = |name: &str| metadata.get(name).and_then(Json::as_str);
    let required = |name: &str| {
        let value = text(name).ok_or_else(|| LoginError::new(format!("the authorization server has no `{name}`")))?;
        endpoint(name, value)
    };
    if !texts(metadata, "code_challenge_methods_supported").iter().any(|method| method == "S256") {
        return Err(LoginError::new("the authorization server does not support PKCE with S256"));
    }
    Ok(AuthorizationServer {
        issuer: issuer(metadata).to_owned(),
        authorization_endpoint: required("authorization_endpoint")?,
        token_endpoint: required("token_endpoint")?,
        registration_endpoint: text("registration_endpoint")
            .map(|value| endpoint("registration_endpoint", value))
            .transpose()?,
        auth_methods: texts(metadata, "token_endpoint_auth_methods_supported"),
        scopes: texts(metadata, "scopes_supported"),
        accepts_metadata_url: metadata.get("client_id_metadata_document_supported") == Some(&Json::Bool(true)),
        sends_issuer: metadata.get("authorization_response_iss_parameter_supported") == Some(&Json::Bool(true)),
    })
}

/// Returns the texts of a list. Scopes contain no spaces, so that a list cannot smuggle in more of them.
fn texts(metadata: &Json, name: &str) -> Vec<String> {
    let items = metadata.get(name).and_then(Json::as_array).into_iter().flatten();
    items.filter_map(Json::as_str).flat_map(split_scopes).take(MAX_ITEMS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn well_known_places_keep_the_path() {
        let places =
            |text: &str| well_known(&url(text), "x").iter().map(|place| place.path().to_owned()).collect::<Vec<_>>();
        assert_eq!(places("https://a.example/mcp/?q=1"), ["/.well-known/x/mcp", "/.well-known/x"]);
        assert_eq!(places("https://a.example/"), ["/.well-known/x"]);
    }

    #[test]
    fn metadata_must_be_about_the_server() {
        let server = url("https://a.example/tenant/mcp");
        for good in
            ["https://a.example", "https://a.example/", "https://a.example/tenant", "https://a.example/tenant/mcp"]
        {
            assert!(covers(good, &server), "{good}");
        }
        for bad in [
            "https://b.example/tenant/mcp",
            "http://a.example/tenant/mcp",
            "https://a.example:8443/",
            "https://a.example/ten",
            "https://a.example/tenant/mcp/more",
            "https://a.example/tenant?x",
            "a.example",
            "",
        ] {
            assert!(!covers(bad, &server), "{bad}");
        }
    }

    #[test]
    fn a_server_is_its_url_without_query() {
        assert_eq!(server_id(&url("https://A.example:443/mcp?key=1#x")), "https://a.example/mcp");
        assert_eq!(server_id(&url("https://a.example/")), "https://a.example");
    }
}
