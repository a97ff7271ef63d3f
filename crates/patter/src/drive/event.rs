//! What happens in the course of a run.

use patter_core::message::conversation::{self, Usage};
use patter_core::run::{Response, Run, RunOutcome};
use serde::Serialize;
use serde_json::Value as Json;
use std::sync::Arc;

/// Who hears what happens.
pub type Listener = Arc<dyn Fn(&RunEvent) + Send + Sync>;

/// Something that happened in the course of a run. The same events feed the terminal, machines and stores.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunEvent {
    /// The agent.
    pub agent: String,
    /// How many agents called one another until this one.
    pub depth: u32,
    /// What happened.
    #[serde(flatten)]
    pub kind: RunEventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEventKind {
    /// The run begins, or goes on.
    Started {
        /// The model.
        model: String,
        /// The hash of what the tools are bound to.
        bindings: String,
    },
    /// The model is called.
    ModelCalled {
        /// How often it was, this time included.
        number: u32,
    },
    /// The model said something.
    Text {
        /// The next piece.
        text: String,
    },
    /// The model thought something.
    Thought {
        /// The next piece.
        text: String,
    },
    /// The request to the model waits: it is made again after a failure, or the provider wants less at a time.
    Waiting {
        /// How long, more or less.
        seconds: f64,
        /// Why.
        because: String,
    },
    /// The reply of the model is complete.
    Replied {
        /// The model.
        model: String,
        /// What it cost.
        usage: Usage,
        /// How many calls it asks for.
        calls: usize,
    },
    /// Someone is asked about a call.
    Asked {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// The arguments.
        arguments: Json,
        /// Why someone is asked.
        because: String,
    },
    /// A tool is called.
    ToolStarted {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// The arguments.
        arguments: Json,
    },
    /// A tool told how far it is.
    ToolProgress {
        /// The call.
        call_id: String,
        /// The part that is done, from 0 to 1.
        fraction: Option<f64>,
        /// What is going on.
        message: String,
    },
    /// A call ended.
    ToolFinished {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// What came of it.
        outcome: conversation::ToolOutcome,
        /// How long it took.
        duration_ms: u64,
    },
    /// The run is done.
    Finished {
        /// Why there is no answer; nothing if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<RunFailure>,
        /// How often the model was called.
        model_calls: u32,
        /// What it gives.
        #[serde(flatten)]
        response: Response,
        /// What it cost.
        usage: Usage,
    },
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunFailure {
    /// The kind: `LLMAPIError`, `ToolError`, `ConfigurationError`, `StoreError` or `Cancelled`.
    pub kind: &'static str,
    /// What happened.
    pub message: String,
}

impl RunFailure {
    /// Returns why a run has no answer; nothing if it has one, or has not ended.
    pub fn of(run: &Run) -> Option<Self> {
        match run.outcome()? {
            RunOutcome::Answer { .. } => None,
            RunOutcome::Failed(failure) => Some(Self { kind: failure.kind.name(), message: failure.message.clone() }),
            RunOutcome::Cancelled => Some(Self { kind: "Cancelled", message: "the run was stopped".to_owned() }),
        }
    }
}

pub(super) fn tell(listener: &Listener, agent: &str, depth: u32, kind: RunEventKind) {
    listener(&RunEvent { agent: agent.to_owned(), depth, kind });
}
