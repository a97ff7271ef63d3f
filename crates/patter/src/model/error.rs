//! Errors of requests to models.

use patter_core::provider::Provider;
use patter_core::wire::AttachmentRefusal;
use std::time::Duration;
use thiserror::Error;

/// The reason why a model did not reply.
///
/// ```
/// use patter::model::ModelError;
/// use patter::provider::Provider;
/// let error = ModelError::missing_key(Provider::GOOGLE, &["GOOGLE_API_KEY", "GEMINI_API_KEY"]);
/// assert_eq!(error.to_string(), "there is no key for Google: neither `GOOGLE_API_KEY` nor `GEMINI_API_KEY` is set");
/// assert!(error.hint().unwrap().contains("`--model demo`"));
/// assert!(!error.is_transient());
/// assert!(ModelError::Api { status: Some(529), message: "overloaded".into() }.is_transient());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ModelError {
    /// Something must be configured first, such as a key.
    #[error("{message}")]
    Configuration {
        /// What is missing or wrong.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The provider rejected the request, or failed.
    #[error("{}{message}", status.map(|status| format!("status {status}: ")).unwrap_or_default())]
    Api {
        /// The HTTP status, if there is one.
        status: Option<u16>,
        /// The message of the provider.
        message: String,
    },
    /// The provider is overloaded or out of service, and retries did not help.
    #[error("{message}")]
    Unavailable {
        /// The message of the provider.
        message: String,
    },
    /// The request has more tokens than the model accepts.
    #[error("{message}")]
    TooLong {
        /// The message of the provider.
        message: String,
    },
    /// The provider could not be reached, so nothing was sent.
    #[error("{message}")]
    Unreachable {
        /// What went wrong.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The connection to the provider broke, or was refused for another reason.
    #[error("{message}")]
    Network {
        /// What went wrong.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The request was cancelled.
    #[error("the request to the model was cancelled")]
    Cancelled,
    /// The request took too long.
    #[error("the model did not reply within {} s", .after.as_secs_f64())]
    TimedOut {
        /// The time limit.
        after: Duration,
    },
    /// The reply is malformed.
    #[error("malformed reply: {message}")]
    Malformed {
        /// What is wrong with it.
        message: String,
    },
}

impl ModelError {
    /// Returns the error for a provider whose key is not set in any of the variables that may contain it.
    pub fn missing_key(provider: Provider, variables: &[&str]) -> Self {
        let names: Vec<String> = variables.iter().map(|name| format!("`{name}`")).collect();
        let unset = match names.as_slice() {
            [name] => format!("{name} is not set"),
            _ => format!("neither {} is set", names.join(" nor ")),
        };
        ModelError::Configuration {
            message: format!("there is no key for {}: {unset}", provider.name()),
            hint: Some(format!(
                "set {} in the environment or in `.env`, or try the built-in model with `--model demo`",
                names.first().map_or("a key", String::as_str)
            )),
        }
    }

    /// Returns a configuration error without a hint.
    pub(super) fn config(message: String) -> Self {
        ModelError::Configuration { message, hint: None }
    }

    /// Returns the error for attachments that cannot be sent to a model.
    pub(super) fn attachments(refusal: &AttachmentRefusal) -> Self {
        ModelError::Configuration { message: refusal.to_string(), hint: Some(refusal.hint().to_owned()) }
    }

    /// Returns what to do about the error.
    pub fn hint(&self) -> Option<&str> {
        match self {
            ModelError::Configuration { hint, .. }
            | ModelError::Unreachable { hint, .. }
            | ModelError::Network { hint, .. } => hint.as_deref(),
            _ => None,
        }
    }

    /// Returns whether the same request may succeed later.
    pub const fn is_transient(&self) -> bool {
        match self {
            ModelError::Api { status, .. } => matches!(status, Some(408 | 409 | 429 | 500..=599)),
            ModelError::Unavailable { .. }
            | ModelError::Unreachable { .. }
            | ModelError::Network { .. }
            | ModelError::TimedOut { .. } => true,
            ModelError::Configuration { .. }
            | ModelError::TooLong { .. }
            | ModelError::Cancelled
            | ModelError::Malformed { .. } => false,
        }
    }

    /// Returns whether the provider may charge for a request that it did not reply to.
    pub const fn may_be_charged(&self) -> bool {
        match self {
            ModelError::Network { .. }
            | ModelError::TimedOut { .. }
            | ModelError::Cancelled
            | ModelError::Malformed { .. } => true,
            ModelError::Configuration { .. }
            | ModelError::Api { .. }
            | ModelError::TooLong { .. }
            | ModelError::Unavailable { .. }
            | ModelError::Unreachable { .. } => false,
        }
    }

    /// Returns the kind of the error as one word, for machines.
    pub const fn kind(&self) -> &'static str {
        match self {
            ModelError::Configuration { .. } => "configuration",
            ModelError::Api { .. } | ModelError::TooLong { .. } | ModelError::Unavailable { .. } => "api",
            ModelError::Unreachable { .. } | ModelError::Network { .. } => "network",
            ModelError::Cancelled => "cancelled",
            ModelError::TimedOut { .. } => "timed_out",
            ModelError::Malformed { .. } => "malformed",
        }
    }
}
