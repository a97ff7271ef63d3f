//! The HTTP client for MCP servers that are reached by their address.

use rustls::{ClientConfig, RootCertStore, crypto::ring};
use std::sync::Arc;
use std::time::Duration;

/// How long it may take until a connection stands.
const CONNECT: Duration = Duration::from_secs(10);

/// Returns a client that checks certificates against the roots of Mozilla, and follows no redirects: they would carry
/// the headers, which may be secret, to somewhere else.
pub fn http_client() -> Result<reqwest::Client, Box<dyn std::error::Error + Send + Sync>> {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT)
        .build()?;
    Ok(client)
}
