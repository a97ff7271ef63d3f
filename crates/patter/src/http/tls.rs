//! How servers prove who they are.

use super::HttpError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;

/// Returns the settings of TLS: the roots that browsers trust, and those of a file.
pub(crate) fn config(cert_file: Option<&str>) -> Result<ClientConfig, HttpError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(path) = cert_file {
        let unreadable = |error: &dyn std::fmt::Display| {
            HttpError::Setup(format!("SSL_CERT_FILE, `{path}`, cannot be read: {error}"))
        };
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
            let certificate = certificate.map_err(|error| unreadable(&error))?;
            // A system's file may hold certificates of a kind that cannot be read; the others still count.
            let _ = roots.add(certificate);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| HttpError::Setup(format!("TLS cannot be set up: {error}")))?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
