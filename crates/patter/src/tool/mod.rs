//! Tools: what agents touch the world with.
//!
//! A [`Tool`] is a [`Definition`] with one implementation. Where it comes from makes no difference to who calls it: a
//! Rust function, an HTTP endpoint, a command, a tool of an MCP server. The [`Executor`] is the one way to run one.

pub mod command;
mod context;
mod declared;
pub(crate) mod derived;
mod error;
mod event;
mod executor;
mod failure;
mod http;
pub mod mcp;
mod native;
mod readable;
pub(crate) mod secrets;
pub mod standard;
mod workspace;

pub use context::{Progress, State, ToolContext};
pub use declared::{Kit, declared};
pub use error::{CallError, Denial};
pub use event::{Ended, ToolEvent, ToolEventKind};
pub use executor::{Approval, Call, Executor};
pub use failure::Failure;
pub use futures_util::future::BoxFuture;
pub(crate) use http::http_failure;
pub use http::{Variables, http_tool};
pub use native::Shared;
pub use patter_core::declare::Effect;
pub use patter_core::types::definition::{Definition, DefinitionError};
pub use workspace::{Workspace, WorkspaceBuilder, WorkspaceError, merge};

pub use tokio_util::sync::CancellationToken;

use patter_core::library::Defined;
use patter_core::types::signature::Validator;
use serde_json::{Map, Value as Json};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long a call may take where nothing else is said.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// How a tool works.
///
/// The executor has checked the arguments against the signature, and put in the defaults, before it calls this; it
/// checks the result afterwards, and takes care of the time limit, of cancellation (by dropping the future) and of
/// panics. What must be undone on cancellation, such as a running process, is undone in `Drop`.
pub trait Implementation: Send + Sync + 'static {
    /// Performs a call. The arguments are an object.
    fn call<'a>(&'a self, arguments: Json, context: &'a ToolContext) -> BoxFuture<'a, Result<Json, Failure>>;

    /// Returns the arguments as rules are to see them, where what they name can be written in several ways: a file has
    /// many paths. Rules decide on these and on those that were given, and the stricter decision counts. The arguments
    /// are not validated yet.
    fn seen_by_rules(&self, arguments: &Map<String, Json>) -> Option<Map<String, Json>> {
        let _ = arguments;
        None
    }
}

/// A tool: what it is, and how it works. Cheap to clone.
#[derive(Clone)]
pub struct Tool {
    /// What it is.
    pub definition: Arc<Definition>,
    /// How it works.
    pub implementation: Arc<dyn Implementation>,
    /// What sort of implementation that is.
    pub kind: Kind,
    /// What a call touches.
    pub effect: Effect,
    /// Whether a call may be made again when it is not known how the first ended.
    pub idempotent: bool,
    /// How long a call may take.
    pub timeout: Duration,
    /// How many calls may run at once; no limit if there is none.
    pub concurrency: Option<usize>,
    /// Whether no other layer may put a tool in its place.
    pub sealed: bool,
    /// Where it comes from, for people: `weather.gram:2:3`, `built in`, `MCP server files`.
    pub source: Arc<str>,
    /// A hash of the text that says how it works, for tools that are declared in gram.
    pub revision: Option<Arc<str>>,
    /// Bounds the calls that run at once, over all clones.
    slots: Option<Arc<Semaphore>>,
    /// Checks arguments and results; made at the first call, for all clones.
    validator: Arc<OnceLock<Validator>>,
}

/// A sort of implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A Rust function.
    Native,
    /// A request to an HTTP server.
    Http,
    /// A process.
    Command,
    /// A tool of an MCP server.
    Mcp,
    /// Another agent.
    Agent,
}

impl Tool {
    /// Puts a definition and an implementation together. The tool is held to change something until
    /// [`Tool::effect`] says otherwise.
    pub fn new(definition: Definition, kind: Kind, implementation: impl Implementation) -> Self {
        Self {
            definition: Arc::new(definition),
            implementation: Arc::new(implementation),
            kind,
            effect: Effect::Writes,
            idempotent: false,
            timeout: DEFAULT_TIMEOUT,
            concurrency: None,
            sealed: false,
            source: "Rust".into(),
            revision: None,
            slots: None,
            validator: Arc::default(),
        }
    }

    /// Returns the name within its toolbox.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Says what a call touches. A tool that only computes or reads may be called again.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self.idempotent |= effect <= Effect::Reads;
        self
    }

    /// Says whether a call may be made again when it is not known how the first ended.
    #[must_use]
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Says how long a call may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Says how many calls may run at once; without a say there is no limit. Others wait, within their time limit.
    #[must_use]
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.concurrency = Some(calls);
        self.slots = Some(Arc::new(Semaphore::new(calls.clamp(1, Semaphore::MAX_PERMITS))));
        self
    }

    /// Forbids other layers to put a tool in its place.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.sealed = true;
        self
    }

    /// Says where it comes from.
    #[must_use]
    pub fn source(mut self, source: impl Into<Arc<str>>) -> Self {
        self.source = source.into();
        self
    }

    /// Says which text it was made from, so that a change of it is seen.
    #[must_use]
    pub fn revision_of(mut self, text: &str) -> Self {
        self.revision = Some(patter_core::types::definition::hash(text.as_bytes()).into());
        self
    }
}

impl Defined for Tool {
    fn definition(&self) -> &Definition {
        &self.definition
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool")
            .field("definition", &self.definition)
            .field("kind", &self.kind)
            .field("effect", &self.effect)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

impl Kind {
    /// Returns the name as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Native => "native",
            Kind::Http => "http",
            Kind::Command => "command",
            Kind::Mcp => "mcp",
            Kind::Agent => "agent",
        }
    }
}
