//! The events of runs: what happened, for people and programs that watch. They are derived from the inputs of runs, so a
//! live run and the playback of its log emit the same.

mod log;
mod playback;

pub use log::EventLog;
pub use playback::Playback;

use crate::message::conversation::{ToolOutcome, Usage};
use crate::run::{Response, Run, RunOutcome};
use crate::session::RunPath;
use serde::Serialize;
use serde_json::Value as Json;

/// An event of a run. The terminal, JSON output and stores all show the same events.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunEvent {
    /// The agent.
    pub agent: String,
    /// How deep the run is nested in calls of agents; 0 for the outermost run.
    pub depth: u32,
    /// The calls of agents that lead to the run; empty for the outermost run.
    #[serde(default, skip_serializing_if = "RunPath::is_empty")]
    pub run: RunPath,
    /// The event.
    #[serde(flatten)]
    pub kind: RunEventKind,
}

/// The kind of an event, with its details.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RunEventKind {
    /// The run starts or resumes.
    Started {
        /// The model.
        model: String,
        /// The hash of the bindings of the tools.
        bindings: String,
        /// Whether the answer must match a schema, so that a reply may be rejected.
        #[serde(skip)]
        is_structured: bool,
    },
    /// The model is called.
    ModelCalled {
        /// The number of calls so far, including this one.
        number: u32,
    },
    /// A piece of the model's text.
    Text {
        /// The piece.
        text: String,
    },
    /// A piece of the model's reasoning.
    Thought {
        /// The piece.
        text: String,
    },
    /// The request to the model waits: it is retried after a failure, or the provider limits the rate.
    Waiting {
        /// The approximate wait in seconds.
        seconds: f64,
        /// The reason.
        because: String,
    },
    /// The model is not available, so another one is called, in this run from now on.
    FellBack {
        /// The model that is not available.
        from: String,
        /// The model that is called instead.
        to: String,
        /// The reason.
        because: String,
    },
    /// The conversation is too long for the model, so a part of it is no longer sent. The log keeps all of it.
    Compacted {
        /// The model.
        model: String,
        /// How many messages are no longer sent.
        left_out: usize,
        /// The summary that is sent instead; empty if there is none.
        summary: String,
        /// The length to which results of tools are shortened, in characters.
        #[serde(skip_serializing_if = "Option::is_none")]
        result_chars: Option<usize>,
        /// The tokens that the summary took.
        usage: Usage,
    },
    /// A request to the model was given up, so nobody knows what it cost.
    CostUnknown {
        /// The model.
        model: String,
    },
    /// The reply of the model is complete.
    Replied {
        /// The model.
        model: String,
        /// The tokens used.
        usage: Usage,
        /// The number of tool calls requested.
        calls: usize,
        /// Why the model stopped: `stop` if the reply is complete.
        finish: String,
    },
    /// A reply is not complete: the model stopped early, or the connection broke.
    Incomplete {
        /// Why the reply ended: `length`, `filtered`, `refused`, `interrupted`, or the name that the provider gives the
        /// reason.
        finish: String,
        /// What that means.
        message: String,
    },
    /// Approval of a call is requested.
    Asked {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// The arguments.
        arguments: Json,
        /// Why approval is needed.
        because: String,
    },
    /// A tool call starts.
    ToolStarted {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// The arguments.
        arguments: Json,
    },
    /// A tool reports progress.
    ToolProgress {
        /// The call.
        call_id: String,
        /// The completed fraction, from 0 to 1.
        fraction: Option<f64>,
        /// What the tool is doing.
        message: String,
    },
    /// A tool asked the model of the agent during a call that just ended.
    Sampled {
        /// The call.
        call_id: String,
        /// The model.
        model: String,
        /// The number of requests.
        model_calls: u32,
        /// The tokens used by all replies.
        usage: Usage,
    },
    /// A tool call ended.
    ToolFinished {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// The outcome.
        outcome: ToolOutcome,
        /// How long the call took.
        duration_ms: u64,
        /// The arguments as the model wrote them, if the call ended without starting.
        #[serde(skip)]
        unstarted: Option<String>,
    },
    /// The run ended.
    Finished {
        /// Why there is no answer, if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<FailureReport>,
        /// Why the model stopped, if there is an answer: with anything but `stop`, the answer may be incomplete.
        #[serde(skip_serializing_if = "Option::is_none")]
        finish: Option<String>,
        /// The number of model calls.
        model_calls: u32,
        /// The response.
        #[serde(flatten)]
        response: Response,
        /// The tokens used.
        usage: Usage,
    },
}

/// The name of the reason why a reply ended that was not received to its end.
pub const INTERRUPTED: &str = "interrupted";

/// Why a run has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailureReport {
    /// The kind: `LLMAPIError`, `ToolError`, `ConfigurationError`, `StoreError` or `Cancelled`.
    pub kind: &'static str,
    /// The message.
    pub message: String,
}

impl RunEvent {
    /// Returns an event of the run of an agent.
    pub fn new(agent: &str, run: &RunPath, kind: RunEventKind) -> Self {
        let depth = u32::try_from(run.len()).unwrap_or(u32::MAX);
        Self { agent: agent.to_owned(), depth, run: run.clone(), kind }
    }
}

impl FailureReport {
    /// Returns why a run has no answer, or `None` if it has one or is still under way.
    pub fn from_run(run: &Run) -> Option<Self> {
        match run.outcome()? {
            RunOutcome::Answer { .. } => None,
            RunOutcome::Failed(failure) => Some(Self { kind: failure.kind.name(), message: failure.message.clone() }),
            RunOutcome::Cancelled => Some(Self { kind: "Cancelled", message: "the run was stopped".to_owned() }),
        }
    }
}
