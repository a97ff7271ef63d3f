//! What keeps an agent from running.

use super::{Drift, LOCK_FILE};
use crate::declare::project::AgentSelectionError;
use crate::library::BindError;
use crate::name::WireNameError;
use crate::provider::ModelRefError;
use crate::types::signature::SignatureError;
use patter_gram::Diagnostic;
use thiserror::Error;

/// An error that keeps an agent from running, found before a token is spent.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The agent is missing or ambiguous.
    #[error(transparent)]
    Selection(#[from] AgentSelectionError),
    /// A property is missing.
    #[error("the agent `{agent}` has no `{property}`")]
    Missing {
        /// The agent.
        agent: String,
        /// The property.
        property: &'static str,
    },
    /// The model is not a valid reference.
    #[error("invalid `model` of the agent `{agent}`: {error}")]
    Model {
        /// The agent.
        agent: String,
        /// What is wrong with the reference.
        error: ModelRefError,
    },
    /// Some tools cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A tool has a name that no provider accepts.
    #[error("the tool `{tool}` of `{agent}` cannot be offered to a model: {error}")]
    Name {
        /// The agent.
        agent: String,
        /// The tool.
        tool: String,
        /// What is wrong with the name.
        error: WireNameError,
    },
    /// The type of the answer is invalid.
    #[error("invalid `returns` of the agent `{agent}`: {error}")]
    Returns {
        /// The agent.
        agent: String,
        /// What is wrong with the type.
        error: SignatureError,
    },
    /// The type of the input is invalid.
    #[error("invalid `takes` of the agent `{agent}`: {error}")]
    Takes {
        /// The agent.
        agent: String,
        /// What is wrong with the type.
        error: SignatureError,
    },
    /// The file of the agent has errors. They may hide something that matters, such as a misspelt rule, so the agent does
    /// not run.
    #[error("`{file}` has errors: {}", findings.first().map(|first| first.message.as_ref()).unwrap_or_default())]
    Broken {
        /// The file.
        file: String,
        /// The errors.
        findings: Vec<Diagnostic>,
    },
    /// A permission is invalid, or about nothing that the library knows. It would protect nothing, so the agent does not
    /// run.
    #[error("invalid permissions of the agent `{agent}`: {}", findings.first().map(|first| first.message.as_ref()).unwrap_or_default())]
    Permission {
        /// The agent.
        agent: String,
        /// The file that the findings are in, if it is known.
        file: Option<String>,
        /// What is wrong with the permissions. There is at least one finding.
        findings: Vec<Diagnostic>,
    },
    /// The project is locked, and the agent or its tools are not as they were.
    #[error("the agent `{agent}` is not as `{LOCK_FILE}` records it")]
    Drift {
        /// The agent.
        agent: String,
        /// The differences.
        drift: Vec<Drift>,
    },
}
