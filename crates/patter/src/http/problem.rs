//! Why connections fail, in words.

use super::resolve::LookupError;
use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};

/// The reason why a connection failed.
///
/// ```
/// use patter::http::ConnectionProblem;
/// assert_eq!(ConnectionProblem::Refused.to_string(), "the connection was refused");
/// assert!(ConnectionProblem::Refused.hint().unwrap().contains("is the server running"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionProblem {
    /// Nothing listens on the port.
    Refused,
    /// The host name does not exist, or cannot be looked up.
    UnknownHost,
    /// There is no route to the server.
    Unreachable,
    /// The server did not answer in time.
    TimedOut,
    /// The server does not speak TLS.
    NotTls,
    /// The certificate of the server is not valid.
    Certificate(String),
    /// Another error of the encryption.
    Tls(String),
    /// The server closed the connection too early.
    Closed,
    /// The server does not speak HTTP.
    NotHttp,
    /// Another reason, in the words of the library that found it.
    Other(String),
}

impl ConnectionProblem {
    /// Finds the reason in an error and its causes; `None` if none of them is known.
    pub(crate) fn find(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(problem) = Self::recognise(error) {
                return Some(problem);
            }
            next = error.source();
        }
        None
    }

    /// Finds the reason in an error and its causes, or returns the innermost cause.
    pub(super) fn find_or_innermost(error: &(dyn Error + 'static)) -> Self {
        Self::find(error).unwrap_or_else(|| {
            let mut innermost = error;
            while let Some(source) = innermost.source() {
                innermost = source;
            }
            ConnectionProblem::Other(innermost.to_string())
        })
    }

    /// Returns advice on how to fix it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            ConnectionProblem::Refused => "is the server running, and is the port right?",
            ConnectionProblem::UnknownHost => "check the host name and the network connection",
            ConnectionProblem::Unreachable => "check the address and the network connection",
            ConnectionProblem::TimedOut => "check the address, and whether a firewall blocks it",
            ConnectionProblem::NotTls => "if the server does not use TLS, write `http` instead of `https`",
            ConnectionProblem::Certificate(_) => {
                "to trust its certificate, name the file of the authority that issued it in `SSL_CERT_FILE`"
            }
            ConnectionProblem::Closed => "try again; if it happens often, look into the log of the server",
            ConnectionProblem::NotHttp => "check the port, and whether the server uses `https`",
            ConnectionProblem::Tls(_) | ConnectionProblem::Other(_) => return None,
        })
    }

    fn recognise(error: &(dyn Error + 'static)) -> Option<Self> {
        if error.is::<LookupError>() {
            return Some(ConnectionProblem::UnknownHost);
        }
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return Some(Self::from_tls(error));
        }
        if error.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_timeout) {
            return Some(ConnectionProblem::TimedOut);
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            // The source of such an error is the source of the error inside, so that one is looked at here.
            let inner = error.get_ref().and_then(|inner| Self::recognise(inner));
            return inner.or_else(|| Self::from_io(error.kind()));
        }
        let text = error.to_string();
        match text.as_str() {
            // The library that parses responses is not ours to name, so its errors are known by their text.
            _ if text.starts_with("invalid HTTP") => Some(ConnectionProblem::NotHttp),
            "connection closed before message completed" | "end of file before message length reached" => {
                Some(ConnectionProblem::Closed)
            }
            _ => None,
        }
    }

    fn from_io(kind: ErrorKind) -> Option<Self> {
        Some(match kind {
            ErrorKind::ConnectionRefused => ConnectionProblem::Refused,
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::AddrNotAvailable => {
                ConnectionProblem::Unreachable
            }
            ErrorKind::TimedOut => ConnectionProblem::TimedOut,
            ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::UnexpectedEof
            | ErrorKind::NotConnected => ConnectionProblem::Closed,
            _ => return None,
        })
    }

    fn from_tls(error: &rustls::Error) -> Self {
        use rustls::CertificateError;
        match error {
            rustls::Error::InvalidCertificate(wrong) => ConnectionProblem::Certificate(match wrong {
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".to_owned(),
                CertificateError::UnknownIssuer => "its issuer is not known".to_owned(),
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    "it belongs to another host".to_owned()
                }
                other => other.to_string(),
            }),
            rustls::Error::InvalidMessage(_) => ConnectionProblem::NotTls,
            other => ConnectionProblem::Tls(other.to_string()),
        }
    }
}

impl fmt::Display for ConnectionProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectionProblem::Refused => f.write_str("the connection was refused"),
            ConnectionProblem::UnknownHost => f.write_str("the host name was not found"),
            ConnectionProblem::Unreachable => f.write_str("there is no route to it"),
            ConnectionProblem::TimedOut => f.write_str("it did not answer in time"),
            ConnectionProblem::NotTls => f.write_str("the server does not speak TLS"),
            ConnectionProblem::Certificate(wrong) => write!(f, "its certificate is not valid: {wrong}"),
            ConnectionProblem::Tls(wrong) => write!(f, "encryption failed: {wrong}"),
            ConnectionProblem::Closed => f.write_str("the server closed it too early"),
            ConnectionProblem::NotHttp => f.write_str("the server does not speak HTTP"),
            ConnectionProblem::Other(text) => f.write_str(text),
        }
    }
}
