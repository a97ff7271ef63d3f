//! Requests to authorization servers, whose addresses foreign servers choose.

use super::error::LoginError;
use crate::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use crate::http::{HttpClient, HttpError, HttpRequest, Method, NetworkPolicy, StatusCode, Url, host_and_port};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use patter_core::text::format_duration;
use serde_json::Value as Json;
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::timeout;

/// The number of bytes that are read of a response.
const MAX_BODY: usize = 256 * 1024;
/// The addresses that a server on this machine may refer to.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.0/8", "::1"];

/// A client for the authorization server of one MCP server.
#[derive(Clone)]
pub(super) struct Web {
    client: HttpClient,
    /// The time limit of a request with its response.
    limit: Duration,
}

/// How a client proves its identity at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientProof<'c> {
    /// The id is part of the form.
    None,
    /// Id and secret are a header.
    Basic(&'c str, &'c str),
}

impl Web {
    /// Creates a client that can reach public servers, the host of the MCP server, and those that the project allows. Only
    /// a server on this machine may refer to others on this machine.
    pub(super) fn new(server: &Url, allowed: &[String], limit: Duration) -> Self {
        let host = server.host_str().unwrap_or_default();
        let mut entries: Vec<&str> = allowed.iter().map(String::as_str).collect();
        entries.push(host.trim_start_matches('[').trim_end_matches(']'));
        if is_loopback(server) {
            entries.extend(LOOPBACK);
        }
        // Invalid entries of the project are reported where its other tools are set up.
        entries.retain(|entry| NetworkPolicy::from_allow_list([*entry]).is_ok());
        let policy = NetworkPolicy::from_allow_list(entries).unwrap_or_default();
        // Only the user's own environment decides about proxies, not the `.env` of a project.
        Self { client: HttpClient::new(policy, |name| std::env::var(name).ok()), limit }
    }

    /// Fetches a JSON document. Returns nothing if there is none at the URL.
    pub(super) async fn get_json(&self, url: &Url) -> Result<Option<Json>, LoginError> {
        let mut request = HttpRequest::get(url.clone());
        request.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let (status, body) = self.send(request).await?;
        if status.is_client_error() {
            return Ok(None);
        }
        let server = host_and_port(url);
        if !status.is_success() {
            return Err(LoginError::new(format!("`{server}` responded with status {}", status.as_u16())));
        }
        // Servers that do not know the path may respond with a page.
        Ok(serde_json::from_slice(&body).ok().filter(Json::is_object))
    }

    /// Posts a JSON document, and returns the status with the JSON of the response.
    pub(super) async fn post_json(&self, url: &Url, body: &Json) -> Result<(StatusCode, Json), LoginError> {
        self.post(url, "application/json", body.to_string(), ClientProof::None).await
    }

    /// Posts a form, and returns the status with the JSON of the response.
    pub(super) async fn post_form(
        &self,
        url: &Url,
        fields: &[(&str, &str)],
        proof: ClientProof<'_>,
    ) -> Result<(StatusCode, Json), LoginError> {
        self.post(url, "application/x-www-form-urlencoded", form(fields), proof).await
    }

    async fn post(
        &self,
        url: &Url,
        content: &'static str,
        body: String,
        proof: ClientProof<'_>,
    ) -> Result<(StatusCode, Json), LoginError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content));
        if let ClientProof::Basic(id, secret) = proof {
            // Both are encoded as in a form before they are joined (RFC 6749, 2.3.1).
            let pair = format!("{}:{}", form_encode(id), form_encode(secret));
            let value = HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(pair)));
            let mut value = value.map_err(|_| LoginError::new("the client id cannot be sent"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let request = HttpRequest {
            method: Method::POST,
            headers,
            body: Some(body.into()),
            is_body_secret: true,
            keeps_method: true,
            ..HttpRequest::get(url.clone())
        };
        let (status, body) = self.send(request).await?;
        Ok((status, serde_json::from_slice(&body).unwrap_or(Json::Null)))
    }

    async fn send(&self, request: HttpRequest) -> Result<(StatusCode, Vec<u8>), LoginError> {
        let url = request.url.clone();
        check_url(&url)?;
        let server = host_and_port(&url);
        let failed = |error| match error {
            HttpError::ExcludedRedirect { server: other } => {
                LoginError::new(format!("`{server}` redirects to another server, `{other}`"))
            }
            error => LoginError::from_http(&format!("cannot log in at `{server}`"), &error),
        };
        // Metadata and tokens count only from the server that was asked (RFC 9728, 3.3 and 7.7), so that another one is not
        // even contacted. Within a server, redirects are followed as for any other request.
        let stays = |next: &Url| next.origin() == url.origin();
        let exchange = async {
            let response = self.client.send_if(request, stays).await.map_err(failed)?;
            let status = response.status();
            Ok((status, response.read(MAX_BODY).await.map_err(failed)?))
        };
        let slow = || LoginError::new(format!("`{server}` did not respond within {}", format_duration(self.limit)));
        timeout(self.limit, exchange).await.unwrap_or_else(|_| Err(slow()))
    }
}

/// Parses the URL of an endpoint. It must use TLS, unless it is on this machine.
pub(super) fn endpoint(name: &str, text: &str) -> Result<Url, LoginError> {
    let url = Url::parse(text).map_err(|_| LoginError::new(format!("the `{name}` is not a valid URL")))?;
    check_url(&url).map_err(|error| LoginError::new(format!("the `{name}` cannot be used: {error}")))?;
    Ok(url)
}

/// Checks that what is sent to a URL cannot be read on the way.
pub(super) fn check_url(url: &Url) -> Result<(), LoginError> {
    let server = host_and_port(url);
    if !url.username().is_empty() || url.password().is_some() {
        return Err(LoginError::new(format!("the URL at `{server}` contains credentials")));
    }
    match url.scheme() {
        "https" if url.has_host() => Ok(()),
        "http" if is_loopback(url) => Ok(()),
        "http" => Err(LoginError::new(format!("`{server}` does not use TLS, so that tokens could be read on the way"))),
        scheme => Err(LoginError::new(format!("the scheme `{scheme}` is not supported"))),
    }
}

/// Returns the URL of a page that a server names, as it will be opened, if a person can be sent there.
pub(in super::super) fn safe_page(url: &str) -> Option<String> {
    endpoint("url", url).ok().map(String::from)
}

/// Returns whether a URL is on this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Encodes fields as a form.
fn form(fields: &[(&str, &str)]) -> String {
    let url = Url::parse_with_params("http://form", fields);
    url.ok().and_then(|url| url.query().map(str::to_owned)).unwrap_or_default()
}

fn form_encode(text: &str) -> String {
    form(&[("", text)]).trim_start_matches('=').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_use_tls_or_this_machine() {
        for good in ["https://a.example/x", "http://127.0.0.1:1/x", "http://localhost/x", "http://[::1]:8/"] {
            assert!(endpoint("token_endpoint", good).is_ok(), "{good}");
        }
        for bad in [
            "http://a.example/x",
            "http://127.0.0.1.evil.example/",
            "http://localhost.evil.example/",
            "http://10.0.0.1/",
            "https://user:secret@a.example/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "data:text/html,x",
            "/relative",
            "",
        ] {
            let error = endpoint("token_endpoint", bad).unwrap_err().to_string();
            assert!(error.starts_with("the `token_endpoint`") && !error.contains("secret"), "{bad}: {error}");
        }
    }

    #[tokio::test]
    async fn metadata_leads_to_no_private_address() {
        let limit = Duration::from_secs(10);
        let web = Web::new(&Url::parse("https://mcp.example.com/mcp").unwrap(), &[], limit);
        for target in [
            "https://127.0.0.1:1/",
            "http://localhost:1/",
            "https://localhost:1/",
            "https://10.0.0.1/",
            "https://192.168.1.1/",
            "https://169.254.169.254/latest/meta-data/",
            "https://[::1]:1/",
            "https://[::ffff:127.0.0.1]:1/",
            "https://[fd00::1]/",
            "https://0x7f000001:1/",
            "https://2130706433:1/",
        ] {
            let url = Url::parse(target).unwrap();
            let error = web.get_json(&url).await.unwrap_err().to_string();
            assert!(error.contains("private address"), "{target}: {error}");
            let posted = web.post_form(&url, &[("a", "b")], ClientProof::None).await;
            assert!(posted.unwrap_err().to_string().contains("private address"), "{target}");
        }
        // A server on this machine may refer to this machine, but not to the network or to the metadata of a cloud.
        let web = Web::new(&Url::parse("http://127.0.0.1:1/mcp").unwrap(), &[], limit);
        for target in ["https://10.0.0.1/", "https://169.254.169.254/", "https://192.168.1.1/"] {
            let error = web.get_json(&Url::parse(target).unwrap()).await.unwrap_err().to_string();
            assert!(error.contains("private address"), "{target}: {error}");
        }
    }

    #[test]
    fn forms_are_encoded() {
        assert_eq!(form(&[("a b", "c&d=é"), ("e", "+")]), "a+b=c%26d%3D%C3%A9&e=%2B");
        assert_eq!(form_encode("a=b c:"), "a%3Db+c%3A");
    }
}
