//! TLS: the certificates that are trusted.

use super::HttpError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;

/// Returns a configuration that trusts the roots that browsers trust, and the certificates of a file.
pub(crate) fn config(cert_file: Option<&str>) -> Result<ClientConfig, HttpError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(path) = cert_file {
        let unreadable = |error: &dyn std::fmt::Display| {
            HttpError::Setup(format!("cannot read the certificates in `{path}` (`SSL_CERT_FILE`): {error}"))
        };
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
            let certificate = certificate.map_err(|error| unreadable(&error))?;
            // A system bundle may contain certificates of an unsupported kind; the others still count.
            let _ = roots.add(certificate);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| HttpError::Setup(format!("cannot set up TLS: {error}")))?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
