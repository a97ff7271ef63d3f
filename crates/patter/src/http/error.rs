//! What can go wrong with a request.

use super::resolve::OutOfReach;
use reqwest::Url;
use std::error::Error;
use std::net::IpAddr;

/// Why a request got no reply, or a reply no end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The client cannot be set up.
    #[error("{0}")]
    Setup(String),
    /// Only HTTP is spoken.
    #[error("`{0}` addresses cannot be called, only `http` and `https`")]
    Scheme(String),
    /// The server is not public, and nothing allows it.
    #[error("`{host}` is not a public address, and nothing allows to reach it")]
    OutOfReach {
        /// The host as it was written.
        host: String,
        /// The port.
        port: u16,
        /// Where the name leads, where it is one.
        address: Option<IpAddr>,
    },
    /// There are too many redirects.
    #[error("the server redirects more than {0} times")]
    Redirects(usize),
    /// A redirect cannot be followed.
    #[error("the server redirects {0}")]
    Redirect(&'static str),
    /// A redirect asks for another method, with which the request means nothing.
    #[error("the address moved to `{place}`, and a {method} is not sent on to there")]
    Moved {
        /// The method of the request.
        method: String,
        /// Where it moved, without what may be secret in it.
        place: String,
    },
    /// There is no connection.
    #[error("there is no connection to `{host}`")]
    Connect {
        /// The host.
        host: String,
        /// What is behind it.
        cause: String,
    },
    /// The connection broke.
    #[error("the connection to `{host}` broke")]
    Broken {
        /// The host.
        host: String,
        /// What is behind it.
        cause: String,
    },
    /// The body of the reply is too large.
    #[error("the reply has more than {0} bytes")]
    TooLarge(usize),
}

impl HttpError {
    /// Returns what to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            HttpError::OutOfReach { host, port, .. } => {
                let entry = if matches!(port, 80 | 443) { host.clone() } else { format!("{host}:{port}") };
                Some(format!("to allow it, write `allow = [\"{entry}\"]` under `[http]` in patter.toml"))
            }
            HttpError::Moved { .. } => Some("write the address down as it is now".to_owned()),
            _ => None,
        }
    }

    /// Returns what is behind it, for the operator.
    pub fn cause(&self) -> Option<String> {
        match self {
            HttpError::Connect { cause, .. } | HttpError::Broken { cause, .. } => Some(cause.clone()),
            HttpError::OutOfReach { host, address: Some(address), .. } => Some(format!("`{host}` leads to {address}")),
            _ => None,
        }
    }

    /// Tells whether the request got no reply, so that another attempt may.
    pub fn is_passing(&self) -> bool {
        matches!(self, HttpError::Connect { .. } | HttpError::Broken { .. })
    }

    pub(super) fn of(error: reqwest::Error, url: &Url) -> Self {
        // The address may hold secrets.
        let error = error.without_url();
        let host = url.host_str().unwrap_or_default().to_owned();
        let mut cause = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            if let Some(OutOfReach { address, .. }) = inner.downcast_ref::<OutOfReach>() {
                let port = url.port_or_known_default().unwrap_or(0);
                return HttpError::OutOfReach { host, port, address: Some(*address) };
            }
            cause.push_str(": ");
            cause.push_str(&inner.to_string());
            source = inner.source();
        }
        if error.is_connect() { HttpError::Connect { host, cause } } else { HttpError::Broken { host, cause } }
    }
}
