//! The executor, which runs tools.

use super::context::CallRules;
use super::event::{CallOutcome, ToolEvent, ToolEventKind};
use super::hook::{Hook, HookCall, HookOutcome, HookStage, HookVerdict};
use super::{CallError, Denial, Progress, SharedState, Tool, ToolContext, ToolFailure};
use futures_util::FutureExt;
use patter_core::library::{Library, ResolveError};
use patter_core::name::FullName;
use patter_core::permission::{Decision, ExplainedDecision, Permissions};
use serde_json::{Map, Value as Json};
use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Runs tools: looks them up, checks permissions, validates the arguments, makes the call and validates the result. Hooks
/// of the tool run before and after the call. Cheap to clone.
///
/// ```
/// use patter::permission::{Permissions, Rule};
/// use patter::tool::{CallRequest, Definition, Executor, ToolFailure, Implementation, ToolKind, Tool, ToolContext, Workspace, merge};
/// use patter::library::Layer;
/// use serde_json::{Value, json};
///
/// struct Double;
/// impl Implementation for Double {
///     fn call<'a>(&'a self, arguments: Value, _: &'a ToolContext) -> patter::tool::BoxFuture<'a, Result<Value, ToolFailure>> {
///         Box::pin(async move { Ok(json!(arguments["number"].as_i64().unwrap_or(0) * 2)) })
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let definition = Definition::new("double", "Doubles a number", "(number::Int)==>(::Int)").unwrap();
/// let tool = Tool::new(definition, ToolKind::Native, Double);
/// let workspace = Workspace::builder().toolbox("math", |toolbox| toolbox.tool(tool)).build().unwrap();
/// let library = merge([(Layer::Project, workspace)]).unwrap();
/// let permissions = Permissions::default().with(Rule::parse("allow math/*", "this example").unwrap());
/// let executor = Executor::new(library.into(), permissions);
///
/// let result = executor.call(CallRequest::new("math/double", json!({"number": 21}))).await;
/// assert_eq!(result.unwrap(), json!(42));
/// let error = executor.call(CallRequest::new("math/double", json!({"number": "many"}))).await.unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "invalid arguments for `math/double`: `number`: expected an Int, found \"many\""
/// );
/// # });
/// ```
#[derive(Clone)]
pub struct Executor {
    library: Arc<Library<Tool>>,
    permissions: Arc<Permissions>,
    state: SharedState,
    listener: Option<Listener>,
}

type Listener = Arc<dyn Fn(&ToolEvent<'_>) + Send + Sync>;

/// The arguments of a call without arguments.
static NO_ARGUMENTS: LazyLock<Map<String, Json>> = LazyLock::new(Map::new);

/// A request to call a tool.
#[derive(Debug, Clone)]
pub struct CallRequest {
    /// The tool, by its full or its bare name.
    pub tool: String,
    /// The arguments.
    pub arguments: Json,
    /// The id of the call.
    pub id: Arc<str>,
    /// Whether the call was approved.
    pub approval: Approval,
    /// The token that cancels the call.
    pub cancellation: CancellationToken,
}

/// Whether a call was approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// It was not approved.
    None,
    /// It was approved.
    Given,
}

impl CallRequest {
    /// Creates a request without approval and with an empty id.
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
    /// Creates an executor for the tools of a library, with permissions.
    pub fn new(library: Arc<Library<Tool>>, permissions: Permissions) -> Self {
        Self { library, permissions: Arc::new(permissions), state: SharedState::default(), listener: None }
    }

    /// Sets the shared state.
    #[must_use]
    pub fn with_state(mut self, state: SharedState) -> Self {
        self.state = state;
        self
    }

    /// Sets the listener for events.
    #[must_use]
    pub fn with_listener(mut self, listener: impl Fn(&ToolEvent<'_>) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// Returns the shared state.
    pub fn state(&self) -> &SharedState {
        &self.state
    }

    /// Returns the permissions.
    pub fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    /// Returns the library of tools.
    pub fn library(&self) -> &Arc<Library<Tool>> {
        &self.library
    }

    /// Returns the permission decision for a call, without making it.
    pub fn verdict(&self, tool: &str, arguments: &Json) -> Result<ExplainedDecision<'_>, ResolveError> {
        let entry = self.library.resolve(tool)?;
        let mut arguments = arguments.as_object().cloned().unwrap_or_default();
        entry.value.validator().fill_defaults(&mut arguments);
        Ok(self.decide(&entry.name, &entry.value, &arguments))
    }

    /// Checks the arguments of a call, without making it.
    pub fn check_arguments(&self, tool: &str, arguments: &Json) -> Result<(), CallError> {
        let entry = self.library.resolve(tool).map_err(|error| CallError::NotFound { error })?;
        let validator = entry.value.validator();
        let mut arguments = arguments.clone();
        if let Some(arguments) = arguments.as_object_mut() {
            validator.fill_defaults(arguments);
        }
        let invalid = |mismatches| CallError::InvalidInput { tool: entry.name.clone(), mismatches };
        validator.check_arguments(&arguments).map_err(invalid)
    }

    /// Returns the permission decision for a call to another agent.
    pub(crate) fn verdict_for_agent(&self, agent: &FullName, arguments: &Json) -> ExplainedDecision<'_> {
        self.permissions.decide(agent, arguments.as_object().unwrap_or(&NO_ARGUMENTS))
    }

    /// Calls a tool.
    pub async fn call(&self, call: CallRequest) -> Result<Json, CallError> {
        let CallRequest { tool, mut arguments, id, approval, cancellation } = call;
        let entry = self.library.resolve(&tool).map_err(|error| CallError::NotFound { error })?;
        let name = &entry.name;
        let tool = &entry.value;
        let mut reporter = CallReporter { call_id: &id, tool: name, listener: self.listener.as_ref(), started: None };

        // Rules apply to the arguments that the tool receives, so defaults are filled in first.
        let validator = tool.validator();
        let defaults = arguments.as_object_mut().map_or(0, |arguments| validator.fill_defaults(arguments));
        if let Err(error) = self.check_permission(name, tool, &arguments, approval) {
            return reporter.finished(Err(error));
        }
        if let Err(mismatches) = validator.check_arguments(&arguments) {
            return reporter.finished(Err(CallError::InvalidInput { tool: name.clone(), mismatches }));
        }
        let hooks = HookedCall::new(name, tool, &arguments, &id, &cancellation);
        if let Some(hooks) = &hooks
            && let Err(error) = hooks.run(HookStage::Before, None, &reporter).await
        {
            return reporter.finished(Err(error));
        }
        reporter.started(&arguments, defaults);
        let result = self.dispatch(name, tool, arguments, &id, &cancellation).await;
        let mut result = result.and_then(|value| match validator.check_result(&value) {
            Ok(()) => Ok(value),
            Err(mismatches) => Err(CallError::InvalidOutput { tool: name.clone(), mismatches }),
        });
        if let Some(hooks) = &hooks
            && let Err(error) = hooks.run(HookStage::After, Some(&result), &reporter).await
        {
            result = Err(error);
        }
        reporter.finished(result)
    }

    /// Decides on the given arguments and on their other forms; the strictest decision counts.
    fn decide(&self, name: &FullName, tool: &Tool, arguments: &Map<String, Json>) -> ExplainedDecision<'_> {
        let given = self.permissions.decide(name, arguments);
        let forms = tool.implementation.canonical_arguments(arguments);
        forms
            .iter()
            .map(|form| self.permissions.decide(name, form))
            .fold(given, |strictest, other| if other.decision > strictest.decision { other } else { strictest })
    }

    /// Returns the rules for what a call accesses, if they can differ from those for its arguments.
    fn call_rules(&self, name: &FullName, tool: &Tool, arguments: &Json) -> Option<CallRules> {
        if self.permissions.rules_for(name).all(|rule| rule.conditions.is_empty()) {
            return None;
        }
        let arguments = arguments.as_object()?;
        let mut forms = tool.implementation.canonical_arguments(arguments);
        forms.push(arguments.clone());
        Some(CallRules { permissions: Arc::clone(&self.permissions), tool: name.clone(), forms })
    }

    fn check_permission(
        &self,
        name: &FullName,
        tool: &Tool,
        arguments: &Json,
        approval: Approval,
    ) -> Result<(), CallError> {
        let verdict = self.decide(name, tool, arguments.as_object().unwrap_or(&NO_ARGUMENTS));
        let because = || verdict.reason.to_string();
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
            .with_rules(self.call_rules(name, tool, &arguments))
            .with_tool(name)
            .with_cancellation(cancellation.child_token());
        let context = match &self.listener {
            Some(listener) => context.with_progress(progress_listener(listener, id, name)),
            None => context,
        };
        // Work outside of the future is cancelled too, however the call ends.
        let _guard = context.cancellation().clone().drop_guard();
        let work = async {
            let _slot = match &tool.slots {
                Some(slots) => slots.acquire().await.ok(),
                None => None,
            };
            tool.implementation.call(arguments, &context).await
        };
        let isolated = AssertUnwindSafe(work).catch_unwind();
        let timed = context.clock().timeout(tool.timeout, isolated);
        let result = tokio::select! {
            biased;
            () = cancellation.cancelled() => return Err(CallError::Cancelled { tool: name.clone() }),
            result = timed => result,
        };
        let failed = |failure| CallError::Failed { tool: name.clone(), failure };
        match result {
            None => Err(CallError::TimedOut { tool: name.clone(), after: tool.timeout, detail: None }),
            Some(Err(panic)) => Err(failed(ToolFailure::new("the tool panicked").with_detail(panic_message(&*panic)))),
            Some(Ok(Err(failure))) => Err(match failure.time_limit() {
                Some(after) => {
                    CallError::TimedOut { tool: name.clone(), after, detail: failure.detail().map(str::to_owned) }
                }
                None => failed(failure),
            }),
            Some(Ok(Ok(value))) => Ok(value),
        }
    }
}

/// A call for which hooks run.
struct HookedCall<'c> {
    hooks: Vec<&'c Hook>,
    call: HookCall,
    cancellation: &'c CancellationToken,
}

impl<'c> HookedCall<'c> {
    /// Returns the call with the hooks that apply to it, or nothing if there are none.
    fn new(
        name: &FullName,
        tool: &'c Tool,
        arguments: &Json,
        id: &Arc<str>,
        cancellation: &'c CancellationToken,
    ) -> Option<Self> {
        if tool.hooks().is_empty() {
            return None;
        }
        let given = arguments.as_object().unwrap_or(&NO_ARGUMENTS);
        let other = tool.implementation.canonical_arguments(given);
        let applies = |hook: &&Hook| hook.applies_to(other.iter().chain([given]));
        let hooks: Vec<_> = tool.hooks().iter().filter(applies).collect();
        let call = HookCall {
            stage: HookStage::Before,
            tool: name.clone(),
            call_id: Arc::clone(id),
            arguments: arguments.clone(),
            outcome: None,
        };
        (!hooks.is_empty()).then_some(Self { hooks, call, cancellation })
    }

    /// Runs the hooks of a stage. The first refusal is the error.
    async fn run(
        &self,
        stage: HookStage,
        result: Option<&Result<Json, CallError>>,
        reporter: &CallReporter<'_>,
    ) -> Result<(), CallError> {
        let hooks: Vec<&Hook> = self.hooks.iter().copied().filter(|hook| hook.stage == stage).collect();
        if hooks.is_empty() {
            return Ok(());
        }
        let outcome = result.map(|result| result.as_ref().cloned().map_err(ToString::to_string));
        let call = HookCall { stage, outcome, ..self.call.clone() };
        for hook in hooks {
            let started = Instant::now();
            let outcome = tokio::select! {
                biased;
                () = self.cancellation.cancelled() => {
                    return Err(CallError::Cancelled { tool: call.tool.clone() });
                }
                outcome = hook.run(&call) => outcome,
            };
            reporter.hook(hook, &outcome, started.elapsed());
            let (reason, detail) = match &outcome {
                HookOutcome::Verdict(HookVerdict::Allow) => continue,
                HookOutcome::Verdict(HookVerdict::Refuse { reason }) => (format!("refused it: {reason}"), None),
                HookOutcome::Failed(failure) => {
                    (format!("failed: {}", failure.message()), failure.detail().map(str::to_owned))
                }
            };
            let tool = call.tool.clone();
            let hook = hook.name.to_string();
            return Err(match stage {
                HookStage::Before => {
                    CallError::PermissionDenied { tool, denial: Denial::Hook { hook, reason, detail } }
                }
                HookStage::After => {
                    let message = format!("the call was made, but its result is withheld: the hook `{hook}` {reason}");
                    let failure = ToolFailure::new(message);
                    CallError::Failed { tool, failure: detail.into_iter().fold(failure, ToolFailure::with_detail) }
                }
            });
        }
        Ok(())
    }
}

/// Reports the events of one call to the listener and the log.
struct CallReporter<'r> {
    call_id: &'r str,
    tool: &'r FullName,
    listener: Option<&'r Listener>,
    started: Option<Instant>,
}

impl CallReporter<'_> {
    fn emit(&self, kind: ToolEventKind<'_>) {
        if let Some(listener) = self.listener {
            listener(&ToolEvent { call_id: self.call_id, tool: self.tool, kind });
        }
    }

    fn started(&mut self, arguments: &Json, defaults: usize) {
        tracing::debug!(tool = %self.tool, call = self.call_id, defaults, "tool call started");
        self.started = Some(Instant::now());
        if self.listener.is_some() {
            self.emit(ToolEventKind::Started { argument_bytes: json_size(arguments), defaults });
        }
    }

    fn hook(&self, hook: &Hook, outcome: &HookOutcome, duration: Duration) {
        tracing::debug!(
            tool = %self.tool,
            call = self.call_id,
            hook = &*hook.name,
            stage = hook.stage.name(),
            %outcome,
            ?duration,
            "hook finished"
        );
        self.emit(ToolEventKind::Hook { hook, outcome, duration });
    }

    fn finished(&self, result: Result<Json, CallError>) -> Result<Json, CallError> {
        let duration = self.started.map(|started| started.elapsed()).unwrap_or_default();
        let kind = result.as_ref().map_or_else(CallError::kind, |_| "ok");
        let error = result.as_ref().err();
        tracing::debug!(
            tool = %self.tool,
            call = self.call_id,
            outcome = kind,
            ?duration,
            error = error.map(tracing::field::display),
            detail = error.and_then(CallError::detail),
            "tool call finished"
        );
        if self.listener.is_some() {
            let outcome = match &result {
                Ok(value) => CallOutcome::Value { bytes: json_size(value) },
                Err(error) => CallOutcome::Error(error),
            };
            self.emit(ToolEventKind::Finished { duration, outcome });
        }
        result
    }
}

fn progress_listener(listener: &Listener, id: &Arc<str>, name: &FullName) -> Arc<dyn Fn(Progress) + Send + Sync> {
    let listener = Arc::clone(listener);
    let id = Arc::clone(id);
    let name = name.clone();
    Arc::new(move |progress| {
        listener(&ToolEvent { call_id: &id, tool: &name, kind: ToolEventKind::Progress(&progress) });
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Returns the size of a value as JSON, in bytes.
fn json_size(value: &Json) -> usize {
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
