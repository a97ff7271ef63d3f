//! HTTP errors.

use super::problem::ConnectionProblem;
use super::resolve::PrivateAddressError;
use reqwest::Url;
use std::error::Error;
use std::net::IpAddr;

/// The error of an HTTP request without a complete response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The client cannot be set up.
    #[error("{0}")]
    Setup(String),
    /// The URL has a scheme other than `http` or `https`.
    #[error("unsupported scheme `{0}`: only `http` and `https` URLs can be requested")]
    Scheme(String),
    /// The server is not public, and the policy does not allow it.
    #[error("`{host}` is a private address, which is blocked by default")]
    PrivateAddress {
        /// The host as written in the URL.
        host: String,
        /// The port.
        port: u16,
        /// The address that the host name resolves to.
        address: Option<IpAddr>,
    },
    /// The host name cannot be looked up, so nobody would check what a proxy reaches by it.
    #[error("cannot look up `{host}`, and only public servers are requested through the proxy in `{proxy}`")]
    UnknownBehindProxy {
        /// The host as written in the URL.
        host: String,
        /// The port.
        port: u16,
        /// The variable of the proxy.
        proxy: &'static str,
    },
    /// A redirect leads to a URL that permission rules exclude.
    #[error("the server redirects to `{server}`, which permission rules exclude")]
    ExcludedRedirect {
        /// The host and the port.
        server: String,
    },
    /// There are too many redirects.
    #[error("the server redirected more than {0} times")]
    TooManyRedirects(usize),
    /// A redirect cannot be followed.
    #[error("cannot follow the redirect: {0}")]
    InvalidRedirect(&'static str),
    /// A redirect would change the method of a request that requires its own.
    #[error("the endpoint moved to `{place}`, and {method} requests are not redirected")]
    Moved {
        /// The method of the request.
        method: String,
        /// The new URL, without the parts that may be secret.
        place: String,
    },
    /// The connection cannot be established.
    #[error("cannot connect to `{server}`: {problem}")]
    Connect {
        /// The host and the port.
        server: String,
        /// The reason.
        problem: ConnectionProblem,
        /// The variable of the proxy for such requests.
        proxy: Option<&'static str>,
    },
    /// The connection failed before the response was complete.
    #[error("lost the connection to `{server}`: {problem}")]
    ConnectionLost {
        /// The host and the port.
        server: String,
        /// The reason.
        problem: ConnectionProblem,
    },
    /// The body of the response is too large.
    #[error("the response is larger than {0} bytes")]
    TooLarge(usize),
}

impl HttpError {
    /// Returns advice on how to fix the error.
    pub fn hint(&self) -> Option<String> {
        match self {
            HttpError::PrivateAddress { host, port, .. } | HttpError::UnknownBehindProxy { host, port, .. } => {
                let entry = if matches!(port, 80 | 443) { host.clone() } else { format!("{host}:{port}") };
                Some(format!("to allow it, add `allow = [\"{entry}\"]` under `[http]` in patter.toml"))
            }
            HttpError::Moved { .. } => Some("use the new URL".to_owned()),
            HttpError::Connect { proxy: Some(proxy), .. } => {
                Some(format!("check the proxy in `{proxy}`, or list the host in `NO_PROXY`"))
            }
            error => error.problem()?.hint().map(str::to_owned),
        }
    }

    /// Returns why the connection failed, if that is the error.
    pub fn problem(&self) -> Option<&ConnectionProblem> {
        match self {
            HttpError::Connect { problem, .. } | HttpError::ConnectionLost { problem, .. } => Some(problem),
            _ => None,
        }
    }

    /// Returns the underlying error, for the operator.
    pub fn cause(&self) -> Option<String> {
        match self {
            HttpError::PrivateAddress { host, address: Some(address), .. } => {
                Some(format!("`{host}` resolves to {address}"))
            }
            _ => None,
        }
    }

    /// Returns whether a retry may succeed, since there was no complete response.
    pub fn is_transient(&self) -> bool {
        matches!(self, HttpError::Connect { .. } | HttpError::ConnectionLost { .. })
    }

    /// Returns the error of a connection that failed before a response came.
    pub(super) fn connection(
        error: &(dyn Error + 'static),
        is_connect: bool,
        url: &Url,
        proxy: Option<&'static str>,
    ) -> Self {
        let mut source = error.source();
        while let Some(inner) = source {
            if let Some(PrivateAddressError { address, .. }) = inner.downcast_ref::<PrivateAddressError>() {
                let host = url.host_str().unwrap_or_default().to_owned();
                let port = url.port_or_known_default().unwrap_or(0);
                return HttpError::PrivateAddress { host, port, address: Some(*address) };
            }
            source = inner.source();
        }
        if !is_connect {
            return Self::lost(error, url);
        }
        let problem = ConnectionProblem::find_or_innermost(error);
        HttpError::Connect { server: host_and_port(url), problem, proxy }
    }

    /// Returns the error of a connection that failed later.
    pub(super) fn lost(error: &(dyn Error + 'static), url: &Url) -> Self {
        let problem = ConnectionProblem::find_or_innermost(error);
        HttpError::ConnectionLost { server: host_and_port(url), problem }
    }
}

/// Returns the host and the port of a URL, whose other parts may contain secrets.
pub(crate) fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}
