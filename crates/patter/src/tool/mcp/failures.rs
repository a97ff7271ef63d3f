//! Why requests over a transport failed. The library that makes them passes on only texts.

use crate::http::ConnectionProblem;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The largest message of a server, in bytes.
pub(super) const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// An error of the HTTP transport.
pub(super) type TransportError = StreamableHttpError<reqwest::Error>;

/// The last failures of a transport. Cheap to clone; clones share the failures.
#[derive(Clone, Default)]
pub(super) struct TransportFailures(Arc<Mutex<LastFailures>>);

/// The cause of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FailureCause {
    /// The connection failed.
    Connection(ConnectionProblem),
    /// A message of the server exceeds [`MAX_MESSAGE_BYTES`].
    TooLarge,
}

#[derive(Default)]
struct LastFailures {
    /// The status with which the server denied access.
    denied: Option<u16>,
    /// The status with which the server rejected a request for another reason that is ours.
    rejected: Option<u16>,
    cause: Option<FailureCause>,
}

impl TransportFailures {
    /// Returns the status with which the server denied access, once it did.
    pub(super) fn refusal(&self) -> Option<u16> {
        self.last().denied
    }

    /// Returns whether the server rejected a request with a client error other than denied access, as servers do that do
    /// not know the transport.
    pub(super) fn is_rejected(&self) -> bool {
        let last = self.last();
        last.denied.is_none() && last.rejected.is_some()
    }

    /// Returns the cause of the last failure, once.
    pub(super) fn take_cause(&self) -> Option<FailureCause> {
        self.last().cause.take()
    }

    /// Notes that a message is too large.
    pub(super) fn set_too_large(&self) {
        self.last().cause = Some(FailureCause::TooLarge);
    }

    /// Notes the status of a response.
    pub(super) fn record_status(&self, status: u16) {
        let mut last = self.last();
        match status {
            401 | 403 => last.denied = Some(status),
            400..=499 => last.rejected = Some(status),
            _ => {}
        }
    }

    /// Notes a failed connection, and removes the URL from the error, which may contain secrets.
    pub(super) fn record(&self, error: reqwest::Error) -> reqwest::Error {
        self.last().cause = ConnectionProblem::find(&error).map(FailureCause::Connection);
        error.without_url()
    }

    fn last(&self) -> MutexGuard<'_, LastFailures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
