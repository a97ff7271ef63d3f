//! The executor: the one way to run a tool.

use super::event::{Ended, ToolEvent, ToolEventKind};
use super::{CallError, Denial, Failure, Progress, State, Tool, ToolContext};
use futures_util::FutureExt;
use patter_core::library::{Library, ResolveError};
use patter_core::name::FullName;
use patter_core::permission::{Decision, Permissions, Verdict};
use patter_core::types::signature::Validator;
use serde_json::{Map, Value as Json};
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// The one way to run a tool: lookup, permission, validation of the arguments, the call itself, validation of the
/// result. Cheap to clone.
///
/// ```
/// use patter::permission::{Permissions, Rule};
/// use patter::tool::{Call, Definition, Executor, Failure, Implementation, Kind, Tool, ToolContext, Workspace, merge};
/// use patter::library::Layer;
/// use serde_json::{Value, json};
///
/// struct Double;
/// impl Implementation for Double {
///     fn call<'a>(&'a self, arguments: Value, _: &'a ToolContext) -> patter::tool::BoxFuture<'a, Result<Value, Failure>> {
///         Box::pin(async move { Ok(json!(arguments["number"].as_i64().unwrap_or(0) * 2)) })
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let definition = Definition::new("double", "Doubles a number", "(number::Int)==>(::Int)").unwrap();
/// let tool = Tool::new(definition, Kind::Native, Double);
/// let workspace = Workspace::builder().toolbox("math", |toolbox| toolbox.tool(tool)).build().unwrap();
/// let library = merge([(Layer::Project, workspace)]).unwrap();
/// let permissions = Permissions::default().with(Rule::parse("allow math/*", "this example").unwrap());
/// let executor = Executor::new(library.into(), permissions);
///
/// let result = executor.call(Call::new("math/double", json!({"number": 21}))).await;
/// assert_eq!(result.unwrap(), json!(42));
/// let error = executor.call(Call::new("math/double", json!({"number": "many"}))).await.unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the arguments of `math/double` are wrong: `number`: expected an Int, found \"many\""
/// );
/// # });
/// ```
#[derive(Clone)]
pub struct Executor {
    library: Arc<Library<Tool>>,
    permissions: Arc<Permissions>,
    state: State,
    listener: Option<Listener>,
}

type Listener = Arc<dyn Fn(&ToolEvent<'_>) + Send + Sync>;

/// The arguments of a call that has none.
static NONE: LazyLock<Map<String, Json>> = LazyLock::new(Map::new);

/// A call to make.
#[derive(Debug, Clone)]
pub struct Call {
    /// The tool, by its full or its bare name.
    pub tool: String,
    /// The arguments.
    pub arguments: Json,
    /// The name of the call.
    pub id: Arc<str>,
    /// Whether someone approved it.
    pub approval: Approval,
    /// What ends it early.
    pub cancellation: CancellationToken,
}

/// Whether someone approved a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// Nobody did.
    None,
    /// Someone did.
    Given,
}

impl Call {
    /// Returns a call that nobody approved, with an empty name.
    pub fn new(tool: impl Into<String>, arguments: Json) -> Self {
        Self {
            tool: tool.into(),
            arguments,
            id: "".into(),
            approval: Approval::None,
            cancellation: CancellationToken::new(),
        }
    }
}

impl Executor {
    /// Returns an executor of the tools of a library, under permissions.
    pub fn new(library: Arc<Library<Tool>>, permissions: Permissions) -> Self {
        Self { library, permissions: Arc::new(permissions), state: State::default(), listener: None }
    }

    /// Sets what tools share.
    #[must_use]
    pub fn with_state(mut self, state: State) -> Self {
        self.state = state;
        self
    }

    /// Sets who hears what happens.
    #[must_use]
    pub fn with_listener(mut self, listener: impl Fn(&ToolEvent<'_>) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// Returns the tools.
    pub fn library(&self) -> &Arc<Library<Tool>> {
        &self.library
    }

    /// Tells what would become of a call, before it is made.
    pub fn verdict(&self, tool: &str, arguments: &Json) -> Result<Verdict<'_>, ResolveError> {
        let entry = self.library.resolve(tool)?;
        let mut arguments = arguments.as_object().cloned().unwrap_or_default();
        entry.value.validator().inject(&mut arguments);
        Ok(self.decide(&entry.name, &entry.value, &arguments))
    }

    /// Tells what would become of the call of another agent, whose name stands for itself.
    pub(crate) fn verdict_for_agent(&self, agent: &FullName, arguments: &Json) -> Verdict<'_> {
        self.permissions.decide(agent, arguments.as_object().unwrap_or(&NONE))
    }

    /// Makes a call.
    pub async fn call(&self, call: Call) -> Result<Json, CallError> {
        let Call { tool, mut arguments, id, approval, cancellation } = call;
        let entry = self.library.resolve(&tool).map_err(|error| CallError::NotFound { error })?;
        let (name, tool) = (&entry.name, &entry.value);
        let mut steps = Steps { call_id: &id, tool: name, listener: self.listener.as_ref(), started: None };

        // Conditions see what the tool would see, so defaults come first.
        let validator = tool.validator();
        let defaults = arguments.as_object_mut().map_or(0, |arguments| validator.inject(arguments));
        if let Err(error) = self.permit(name, tool, &arguments, approval) {
            return steps.refused(error);
        }
        if let Err(mismatches) = validator.arguments(&arguments) {
            return steps.refused(CallError::InvalidInput { tool: name.clone(), mismatches });
        }
        steps.started(&arguments, defaults);
        let result = self.dispatch(name, tool, arguments, &id, &cancellation).await;
        steps.finished(result.and_then(|value| match validator.result(&value) {
            Ok(()) => Ok(value),
            Err(mismatches) => Err(CallError::InvalidOutput { tool: name.clone(), mismatches }),
        }))
    }

    /// Decides on the arguments as they are given, and as the tool takes them.
    fn decide(&self, name: &FullName, tool: &Tool, arguments: &Map<String, Json>) -> Verdict<'_> {
        let given = self.permissions.decide(name, arguments);
        let seen = tool.implementation.seen_by_rules(arguments);
        match seen.map(|seen| self.permissions.decide(name, &seen)) {
            Some(seen) if seen.decision > given.decision => seen,
            _ => given,
        }
    }

    fn permit(&self, name: &FullName, tool: &Tool, arguments: &Json, approval: Approval) -> Result<(), CallError> {
        let verdict = self.decide(name, tool, arguments.as_object().unwrap_or(&NONE));
        let because = || verdict.because.to_string();
        let denial = match (verdict.decision, approval) {
            (Decision::Allow, _) | (Decision::Ask, Approval::Given) => return Ok(()),
            (Decision::Ask, Approval::None) => Denial::NotApproved { because: because() },
            (Decision::Deny, _) => Denial::Denied { because: because() },
        };
        Err(CallError::PermissionDenied { tool: name.clone(), denial })
    }

    async fn dispatch(
        &self,
        name: &FullName,
        tool: &Tool,
        arguments: Json,
        id: &Arc<str>,
        cancellation: &CancellationToken,
    ) -> Result<Json, CallError> {
        let context = ToolContext::new(Arc::clone(id))
            .with_state(self.state.clone())
            .with_cancellation(cancellation.child_token());
        let context = match &self.listener {
            Some(listener) => context.with_progress(progress_listener(listener, id, name)),
            None => context,
        };
        // Whatever runs outside of the future hears that nobody waits any more, however this ends.
        let _guard = context.cancellation().clone().drop_guard();
        let work = async {
            let _slot = match &tool.slots {
                Some(slots) => slots.acquire().await.ok(),
                None => None,
            };
            tool.implementation.call(arguments, &context).await
        };
        let isolated = AssertUnwindSafe(work).catch_unwind();
        let timed = tokio::time::timeout(tool.timeout, isolated);
        let ended = tokio::select! {
            biased;
            () = cancellation.cancelled() => return Err(CallError::Cancelled { tool: name.clone() }),
            ended = timed => ended,
        };
        let failed = |failure| CallError::Failed { tool: name.clone(), failure };
        match ended {
            Err(_) => Err(CallError::TimedOut { tool: name.clone(), after: tool.timeout }),
            Ok(Err(panic)) => Err(failed(Failure::new("the tool panicked").with_detail(panic_text(&*panic)))),
            Ok(Ok(Err(failure))) => Err(failed(failure)),
            Ok(Ok(Ok(value))) => Ok(value),
        }
    }
}

impl Tool {
    pub(super) fn validator(&self) -> &Validator {
        self.validator.get_or_init(|| Validator::new(Arc::clone(&self.definition)))
    }
}

/// Tells the listener of one call what happens, if there is one.
struct Steps<'s> {
    call_id: &'s str,
    tool: &'s FullName,
    listener: Option<&'s Listener>,
    started: Option<Instant>,
}

impl Steps<'_> {
    fn tell(&self, kind: ToolEventKind<'_>) {
        if let Some(listener) = self.listener {
            listener(&ToolEvent { call_id: self.call_id, tool: self.tool, kind });
        }
    }

    fn started(&mut self, arguments: &Json, defaults: usize) {
        if self.listener.is_some() {
            self.started = Some(Instant::now());
            self.tell(ToolEventKind::Started { argument_bytes: size(arguments), defaults });
        }
    }

    fn refused(&self, error: CallError) -> Result<Json, CallError> {
        self.finished(Err(error))
    }

    fn finished(&self, result: Result<Json, CallError>) -> Result<Json, CallError> {
        if let Err(error) = &result {
            tracing::debug!(tool = %self.tool, call = self.call_id, %error, detail = error.detail(), "a call failed");
        }
        if self.listener.is_some() {
            let ended = match &result {
                Ok(value) => Ended::Value { bytes: size(value) },
                Err(error) => Ended::Error(error),
            };
            let duration = self.started.map(|started| started.elapsed()).unwrap_or_default();
            self.tell(ToolEventKind::Finished { duration, ended });
        }
        result
    }
}

fn progress_listener(listener: &Listener, id: &Arc<str>, name: &FullName) -> Arc<dyn Fn(Progress) + Send + Sync> {
    let (listener, id, name) = (Arc::clone(listener), Arc::clone(id), name.clone());
    Arc::new(move |progress| {
        listener(&ToolEvent { call_id: &id, tool: &name, kind: ToolEventKind::Progress(&progress) });
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Counts the bytes of a value as JSON, without writing them anywhere.
fn size(value: &Json) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => 0,
    }
}
