//! A tool: its definition, its implementation, and how calls are made.

use super::{Hook, ToolContext, ToolFailure};
use futures_util::future::BoxFuture;
use patter_core::declare::sandbox::Sandbox;
use patter_core::declare::{Effect, ToolOptions};
use patter_core::library::{HasDefinition, LibraryTool, ToolFacts};
use patter_core::types::definition::Definition;
use patter_core::types::validator::Validator;
use serde_json::{Map, Value as Json};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Semaphore;

/// The default time limit of a call.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The implementation of a tool.
///
/// The executor fills in defaults and validates the arguments before it calls this, and validates the result afterwards.
/// It also enforces the time limit, cancels calls by dropping the future, and catches panics. An implementation cleans
/// up in `Drop`, for example by ending a process.
pub trait Implementation: Send + Sync + 'static {
    /// Performs a call. The arguments are an object.
    fn call<'a>(&'a self, arguments: Json, context: &'a ToolContext) -> BoxFuture<'a, Result<Json, ToolFailure>>;

    /// Returns other forms of the arguments, if they can be written in several ways: a file has many paths. Rules are
    /// applied to all forms, and the strictest decision counts. The arguments are not validated yet.
    ///
    /// What a call accesses beyond its arguments is checked with [`ToolContext::permits`].
    fn canonical_arguments(&self, arguments: &Map<String, Json>) -> Vec<Map<String, Json>> {
        let _ = arguments;
        Vec::new()
    }

    /// Returns the files whose content decides what a call does, such as a script, in a fixed order.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Returns the scripts that calls run, each with the hash of its content when the tool was created. A call fails if one
    /// has changed since.
    fn scripts(&self) -> Vec<(PathBuf, String)> {
        Vec::new()
    }

    /// Returns what a call does, as far as that is known before. The effect is that of the [`Tool`].
    fn facts(&self) -> ToolFacts {
        ToolFacts::default()
    }
}

/// A tool: a definition with an implementation. Cheap to clone.
#[derive(Clone)]
pub struct Tool {
    /// The definition.
    pub definition: Arc<Definition>,
    /// The implementation.
    pub implementation: Arc<dyn Implementation>,
    /// The kind of implementation.
    pub kind: ToolKind,
    /// The effect of a call.
    pub effect: Effect,
    /// Whether a call may be repeated when the outcome of the first is unknown.
    pub idempotent: bool,
    /// The time limit of a call.
    pub timeout: Duration,
    /// The number of calls that may run concurrently, or nothing for no limit.
    pub concurrency: Option<usize>,
    /// Whether other layers must not override the tool.
    pub sealed: bool,
    /// The origin, for people: `weather.gram:2:3`, `built in`, `MCP server files`.
    pub source: Arc<str>,
    /// A hash of the declaration, for tools declared in gram.
    pub revision: Option<Arc<str>>,
    /// What the process of the tool may do, if it has one.
    pub sandbox: Option<Arc<Sandbox>>,
    /// What runs before and after calls, in order.
    hooks: Vec<Hook>,
    /// Limits concurrent calls, shared by all clones.
    pub(super) slots: Option<Arc<Semaphore>>,
    /// Validates arguments and results; created by the first call, shared by all clones.
    validator: Arc<OnceLock<Validator>>,
}

/// A kind of implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ToolKind {
    /// A Rust function.
    Native,
    /// An HTTP request.
    Http,
    /// A command of this machine.
    Command,
    /// A tool of an MCP server.
    Mcp,
    /// Another agent.
    Agent,
}

impl Tool {
    /// Creates a tool. Its effect is [`Effect::Writes`] until [`Tool::effect`] sets another one.
    pub fn new(definition: Definition, kind: ToolKind, implementation: impl Implementation) -> Self {
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
            sandbox: None,
            hooks: Vec::new(),
            slots: None,
            validator: Arc::default(),
        }
    }

    /// Returns the name within its toolbox.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Sets the effect of a call. A tool that only computes or reads becomes idempotent.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self.idempotent |= effect <= Effect::Reads;
        self
    }

    /// Sets whether a call may be repeated when the outcome of the first is unknown.
    #[must_use]
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Sets the time limit of a call.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the number of calls that may run concurrently. Further calls wait, within their time limit.
    #[must_use]
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.concurrency = Some(calls);
        self.slots = Some(Arc::new(Semaphore::new(calls.clamp(1, Semaphore::MAX_PERMITS))));
        self
    }

    /// Forbids other layers to override the tool.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.sealed = true;
        self
    }

    /// Sets the origin.
    #[must_use]
    pub fn source(mut self, source: impl Into<Arc<str>>) -> Self {
        self.source = source.into();
        self
    }

    /// Sets what the process of the tool may do.
    #[must_use]
    pub(super) fn sandboxed(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Some(Arc::new(sandbox));
        self
    }

    /// Sets the revision to the hash of a declaration, so that changes are noticed.
    #[must_use]
    pub fn revision_from(mut self, text: &str) -> Self {
        self.revision = Some(patter_core::types::definition::hash(text.as_bytes()).into());
        self
    }
}

impl Tool {
    /// Returns what runs before and after calls, in order.
    pub fn hooks(&self) -> &[Hook] {
        &self.hooks
    }

    /// Adds a hook.
    #[must_use]
    pub(super) fn with_hook(mut self, hook: Hook) -> Self {
        self.hooks.push(hook);
        self
    }

    pub(super) fn validator(&self) -> &Validator {
        self.validator.get_or_init(|| Validator::new(Arc::clone(&self.definition)))
    }

    /// Applies the settings of a declaration, with a default effect.
    pub(super) fn with_conduct(self, conduct: &ToolOptions, effect: Effect) -> Self {
        let mut tool = self.effect(conduct.effect.unwrap_or(effect));
        tool.idempotent = conduct.idempotent.unwrap_or(tool.idempotent);
        tool.timeout = conduct.timeout.unwrap_or(tool.timeout);
        tool.sealed = conduct.sealed;
        match conduct.concurrency {
            Some(calls) => tool.concurrency(calls),
            None => tool,
        }
    }
}

impl LibraryTool for Tool {
    fn is_idempotent(&self) -> bool {
        self.idempotent
    }

    fn kind_name(&self) -> &str {
        self.kind.name()
    }

    fn source(&self) -> &str {
        &self.source
    }

    fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_deref()
    }

    fn facts(&self) -> ToolFacts {
        ToolFacts { effect: self.effect.name().to_owned(), ..self.implementation.facts() }
    }
}

impl HasDefinition for Tool {
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

impl ToolKind {
    /// Returns the lowercase name.
    pub const fn name(self) -> &'static str {
        match self {
            ToolKind::Native => "native",
            ToolKind::Http => "http",
            ToolKind::Command => "command",
            ToolKind::Mcp => "mcp",
            ToolKind::Agent => "agent",
        }
    }
}
