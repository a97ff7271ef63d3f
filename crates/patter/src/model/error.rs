//! How a request to a model ends badly.

use patter_core::provider::Provider;
use std::time::Duration;
use thiserror::Error;

/// Why a model gave no reply.
///
/// ```
/// use patter::model::ModelError;
/// use patter::provider::Provider;
/// let error = ModelError::missing_key(Provider::GOOGLE, &["GOOGLE_API_KEY", "GEMINI_API_KEY"]);
/// assert_eq!(error.to_string(), "there is no key for Google: neither `GOOGLE_API_KEY` nor `GEMINI_API_KEY` is set");
/// assert!(error.hint().unwrap().contains("`--model demo`"));
/// assert!(!error.is_passing());
/// assert!(ModelError::Api { status: Some(529), message: "overloaded".into() }.is_passing());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ModelError {
    /// Something has to be set up first, such as a key.
    #[error("{message}")]
    Configuration {
        /// What is missing or wrong.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// Whoever runs the model refused or failed.
    #[error("{}{message}", status.map(|status| format!("status {status}: ")).unwrap_or_default())]
    Api {
        /// The HTTP status, where there is one.
        status: Option<u16>,
        /// What they say.
        message: String,
    },
    /// They could not be reached, or the connection broke.
    #[error("{message}")]
    Network {
        /// What went wrong.
        message: String,
    },
    /// Nobody waits for the reply any more.
    #[error("the request to the model was cancelled")]
    Cancelled,
    /// It took too long.
    #[error("the model did not reply within {} s", .after.as_secs_f64())]
    TimedOut {
        /// The time that it had.
        after: Duration,
    },
    /// What came back cannot be read.
    #[error("the reply of the model cannot be read: {message}")]
    Malformed {
        /// What is wrong with it.
        message: String,
    },
}

impl ModelError {
    /// Returns that no key of a provider is set, in any of the variables that may hold one.
    pub fn missing_key(provider: Provider, variables: &[&str]) -> Self {
        let names: Vec<String> = variables.iter().map(|name| format!("`{name}`")).collect();
        let unset = match names.as_slice() {
            [one] => format!("{one} is not set"),
            _ => format!("neither {} is set", names.join(" nor ")),
        };
        ModelError::Configuration {
            message: format!("there is no key for {}: {unset}", provider.name()),
            hint: Some(format!(
                "set {} in the environment or in `.env`, or try the built-in model with `--model demo`",
                names.first().map_or("one", String::as_str)
            )),
        }
    }

    /// Returns what to do about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            ModelError::Configuration { hint, .. } => hint.as_deref(),
            _ => None,
        }
    }

    /// Tells whether the same request may succeed later.
    pub const fn is_passing(&self) -> bool {
        match self {
            ModelError::Api { status, .. } => matches!(status, Some(408 | 409 | 429 | 500..=599)),
            ModelError::Network { .. } | ModelError::TimedOut { .. } => true,
            ModelError::Configuration { .. } | ModelError::Cancelled | ModelError::Malformed { .. } => false,
        }
    }

    /// Returns the sort of error in one word, for machines.
    pub const fn kind(&self) -> &'static str {
        match self {
            ModelError::Configuration { .. } => "configuration",
            ModelError::Api { .. } => "api",
            ModelError::Network { .. } => "network",
            ModelError::Cancelled => "cancelled",
            ModelError::TimedOut { .. } => "timed_out",
            ModelError::Malformed { .. } => "malformed",
        }
    }
}
