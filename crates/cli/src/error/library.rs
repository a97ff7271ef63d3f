//! Errors of the library as errors of commands, with hints.

use super::{CommandError, ErrorKind};
use crate::place::Place;
use crate::setup::UNTRUSTED;
use crate::ui::{self, Excerpts};
use patter::case::CaseProblem;
use patter::compile::CompileError;
use patter::drive::JournalError;
use patter::experiment::StoredTrialsError;
use patter::gram::{Diagnostic, Dialect, parse_bytes};
use patter::library::{BindError, BindFailure, MergeError};
use patter::live::LiveProjectError;
use patter::model::ModelError;
use patter::os_error::describe;
use patter::permission::RuleError;
use patter::project::{AgentSelectionError, LoadError, ServerProblem, ToolsError};
use patter::run::StartError;
use patter::session::{LogError, RecordingError, SessionError};
use patter::store::StoreError;
use std::io;

const CONFIGURATION: ErrorKind = ErrorKind::named("ConfigurationError");
const TOOL: ErrorKind = ErrorKind::named("ToolError");
const STORE: ErrorKind = ErrorKind::named("StoreError");
const CHECK_HINT: &str = "run `patter check` for details";

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        Self::failure(describe(&error))
    }
}

impl From<LoadError> for CommandError {
    fn from(error: LoadError) -> Self {
        let message = error.to_string();
        match error {
            LoadError::Config { path, hint, .. } => Self::new(CONFIGURATION, message)
                .with_place(Place::file(path.display().to_string()))
                .with_hint(hint.unwrap_or_else(|| "docs/cli.md lists the settings".to_owned())),
            LoadError::Empty(_) => Self::failure(message).with_hint("name a file or another folder"),
        }
    }
}

impl From<ToolsError> for CommandError {
    fn from(error: ToolsError) -> Self {
        Self::new(CONFIGURATION, error.to_string()).with_hint_if(error.hint())
    }
}

impl From<&ServerProblem> for CommandError {
    fn from(problem: &ServerProblem) -> Self {
        Self::new(CONFIGURATION, problem.to_string()).with_hint_if(problem.hint())
    }
}

impl From<Vec<MergeError>> for CommandError {
    fn from(errors: Vec<MergeError>) -> Self {
        let hint = "rename one of the two, or remove it";
        let errors = errors.iter().map(|error| Self::new(CONFIGURATION, error.to_string()).with_hint(hint)).collect();
        Self::combine("the tools of the project conflict", errors)
    }
}

impl From<AgentSelectionError> for CommandError {
    fn from(error: AgentSelectionError) -> Self {
        Self::new(TOOL, error.to_string()).with_hint_if(error.hint())
    }
}

/// Rules that are written in `patter.toml`; those of the command line are usage errors.
impl From<RuleError> for CommandError {
    fn from(error: RuleError) -> Self {
        Self::new(CONFIGURATION, error.to_string()).with_hint(error.hint())
    }
}

impl From<BindError> for CommandError {
    fn from(error: BindError) -> Self {
        let failure = |failure: &BindFailure| Self::new(TOOL, failure.to_string()).with_hint_if(failure.hint());
        let failures = error.failures.iter().map(failure).collect();
        Self::combine(format!("the agent `{}` cannot run", error.agent), failures)
    }
}

impl From<CompileError> for CommandError {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Selection(error) => error.into(),
            CompileError::Bind(error) => error.into(),
            CompileError::Broken { file, findings } => {
                let message = format!("`{file}` has errors, so it was not run");
                Self::new(TOOL, message).with_hint(CHECK_HINT).with_excerpts(excerpts(&file, findings))
            }
            CompileError::Drift { ref drift, .. } => Self::drift(error.to_string(), drift),
            CompileError::Permission { agent, file: Some(file), findings } => {
                let message = format!("the agent `{agent}` has invalid permissions, so it was not run");
                Self::new(TOOL, message).with_hint(CHECK_HINT).with_excerpts(excerpts(&file, findings))
            }
            CompileError::Permission { file: None, ref findings, .. } => {
                let hint = findings.first().and_then(|first| first.hint.as_deref()).unwrap_or(CHECK_HINT);
                Self::new(TOOL, error.to_string()).with_hint(hint)
            }
            error => Self::new(TOOL, error.to_string()).with_hint(CHECK_HINT),
        }
    }
}

/// Returns diagnostics with excerpts of their file.
fn excerpts(file: &str, findings: Vec<Diagnostic>) -> Excerpts {
    let source = std::fs::read(file).unwrap_or_default();
    let (tree, _) = parse_bytes(&source, Dialect::Patter);
    Excerpts::new(findings, tree.source(), file, ui::Limit::default())
}

impl From<ModelError> for CommandError {
    fn from(error: ModelError) -> Self {
        Self::new(CONFIGURATION, error.to_string()).with_hint_if(error.hint()).with_kind_shown()
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        // An id is malformed only where somebody typed it.
        let kind = if matches!(error, StoreError::Id { .. }) { ErrorKind::Usage } else { STORE };
        let hint = error.hint().or_else(|| match &error {
            StoreError::NotFound { .. } => Some("list sessions with `patter sessions`".to_owned()),
            StoreError::Empty => Some("start one with `patter run`".to_owned()),
            StoreError::Exists { id } => {
                Some(format!("choose another id, or delete it with `patter sessions rm {id}`"))
            }
            _ => None,
        });
        Self::new(kind, error.to_string()).with_hint_if(hint)
    }
}

impl From<LogError> for CommandError {
    fn from(error: LogError) -> Self {
        Self::new(STORE, error.to_string())
    }
}

impl From<JournalError> for CommandError {
    fn from(error: JournalError) -> Self {
        Self::new(STORE, error.to_string()).with_hint_if(error.hint)
    }
}

impl From<LiveProjectError> for CommandError {
    fn from(error: LiveProjectError) -> Self {
        match error {
            LiveProjectError::Load(error) => error.into(),
            LiveProjectError::Tools(error) => error.into(),
            LiveProjectError::Merge(errors) => errors.into(),
            error @ LiveProjectError::Untrusted(_) => Self::new(UNTRUSTED, error.to_string()),
            error => Self::new(CONFIGURATION, error.to_string()),
        }
    }
}

impl From<SessionError> for CommandError {
    fn from(error: SessionError) -> Self {
        let kind = ErrorKind::named(error.name());
        match error {
            SessionError::Project(error) => error.into(),
            SessionError::Compile(error) => error.into(),
            SessionError::Model(error) | SessionError::Attachments(error) => error.into(),
            SessionError::Store(error) => error.into(),
            SessionError::Log(error) => error.into(),
            SessionError::Journal(error) => error.into(),
            SessionError::Start(error) => {
                let hint = match &error {
                    StartError::Input { .. } => "pass the input as JSON, with the fields that the agent `takes`",
                    _ => "pass a prompt",
                };
                Self::new(kind, error.to_string()).with_hint(hint).with_kind_shown()
            }
            SessionError::UnfinishedRun => Self::new(kind, "the last run of this session has not finished")
                .with_hint("continue it with `patter resume`, or drop it with `patter resume --abandon`"),
            error @ SessionError::NoUnfinishedRun => Self::new(kind, error.to_string())
                .with_hint("continue the conversation with `patter run FILE PROMPT --session ID`"),
            error @ SessionError::Redacted(_) => Self::new(kind, error.to_string())
                .with_hint("start a new session; `patter sessions show` shows what is left of this one"),
            error @ (SessionError::AgentNotFound(_)
            | SessionError::ClientTool(_)
            | SessionError::NotWaiting(_)
            | SessionError::WrongAnswer(_)
            | SessionError::NoMessage { .. }) => Self::new(kind, error.to_string()),
        }
    }
}

impl From<RecordingError> for CommandError {
    fn from(error: RecordingError) -> Self {
        let hint = match &error {
            RecordingError::NotARecording => Some("record a run with `patter run --record FILE`"),
            RecordingError::Version(_) => Some("replay it with the version of Patter that recorded it"),
            RecordingError::Line { .. } => {
                Some("the lines before it are intact: truncate the file there to replay them")
            }
            RecordingError::File { .. } | RecordingError::TooLarge => None,
        };
        Self::failure(error.to_string()).with_hint_if(hint)
    }
}

impl From<StoredTrialsError> for CommandError {
    fn from(error: StoredTrialsError) -> Self {
        let hint = match &error {
            StoredTrialsError::PlanChanged { .. } => Some("omit --resume to start a new experiment"),
            StoredTrialsError::NotAnExperiment { .. } => Some("list experiments with `patter experiments`"),
            StoredTrialsError::Store(_) | StoredTrialsError::Damaged { .. } | StoredTrialsError::Unwritable(_) => None,
        };
        match error {
            StoredTrialsError::Store(error) => error.into(),
            error => Self::new(STORE, error.to_string()).with_hint_if(hint),
        }
    }
}

impl From<CaseProblem> for CommandError {
    fn from(problem: CaseProblem) -> Self {
        Self::failure(problem.message).with_place(Place::parse(&problem.location)).with_hint_if(problem.hint)
    }
}
