//! Hooks: what runs before and after calls of tools, and may refuse them.
//!
//! Hooks belong to the tools of a library, so no executor can leave them out. They run in order, and the first refusal
//! ends the call. A hook that fails refuses: otherwise a broken hook would be no hook at all.

mod command;

pub use command::CommandHook;

use super::{BoxFuture, ToolFailure};
use futures_util::FutureExt;
use patter_core::name::FullName;
use patter_core::permission::{Decision, Rule, RuleError};
use patter_core::text::format_duration;
use serde_json::{Map, Value as Json};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// The default time limit of a hook.
pub const DEFAULT_HOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// Something that runs before or after calls, and may refuse them.
///
/// ```
/// use patter::library::Layer;
/// use patter::permission::{Permissions, Rule};
/// use patter::tool::{CallRequest, Executor, Hook, HookStage, HookVerdict, Workspace, merge, standard};
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let polite = Hook::native(HookStage::Before, "sayHello", "polite", |call| async move {
///     Ok(match call.arguments["personName"].as_str() {
///         Some("Voldemort") => HookVerdict::refuse("we do not say that name"),
///         _ => HookVerdict::Allow,
///     })
/// });
/// let workspace = Workspace::builder().toolbox("", |it| it.tool(standard::say_hello::tool())).build().unwrap();
/// let workspace = workspace.with_hook(&polite.unwrap());
/// let permissions = Permissions::default().with(Rule::parse("allow *", "this example").unwrap());
/// let executor = Executor::new(merge([(Layer::Project, workspace)]).unwrap().into(), permissions);
/// let call = |name: &str| executor.call(CallRequest::new("sayHello", json!({"personName": name})));
/// assert!(call("Harry").await.is_ok());
/// assert_eq!(
///     call("Voldemort").await.unwrap_err().to_string(),
///     "the call to `sayHello` is not permitted: the hook `polite` refused it: we do not say that name"
/// );
/// # }
/// ```
#[derive(Clone)]
pub struct Hook {
    /// When it runs.
    pub stage: HookStage,
    /// Its name, for people.
    pub name: Arc<str>,
    /// How long it may run.
    pub timeout: Duration,
    /// The calls that it runs for, like those of an `ask` rule.
    calls: Arc<Rule>,
    action: Arc<dyn HookAction>,
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HookStage {
    /// Before a call that is permitted and whose arguments are valid.
    Before,
    /// After a call that was made, with its result or its error.
    After,
}

/// A call, as a hook sees it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HookCall {
    /// When the hook runs.
    pub stage: HookStage,
    /// The tool.
    pub tool: FullName,
    /// The id of the call.
    pub call_id: Arc<str>,
    /// The arguments, with their defaults.
    pub arguments: Json,
    /// The result or the error message, after the call.
    pub outcome: Option<Result<Json, String>>,
}

/// What a hook decides about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookVerdict {
    /// The call is made, or its result is used.
    Allow,
    /// The call is not made, or its result is withheld.
    Refuse {
        /// The reason, for the model.
        reason: String,
    },
}

/// The outcome of a hook.
#[derive(Debug)]
pub enum HookOutcome {
    /// It decided.
    Verdict(HookVerdict),
    /// It failed, which refuses the call.
    Failed(ToolFailure),
}

/// The implementation of a hook.
pub trait HookAction: Send + Sync + 'static {
    /// Decides about a call. Dropping the future ends the hook.
    fn run<'a>(&'a self, call: &'a HookCall) -> BoxFuture<'a, Result<HookVerdict, ToolFailure>>;

    /// Returns why the hook cannot run, as far as that is known in advance.
    fn problem(&self) -> Option<String> {
        None
    }
}

impl Hook {
    /// Creates a hook for the calls that a permission rule without its decision describes: `fs/*`, or
    /// `fs/writeFile when path matches 'src/*'`.
    pub fn new(
        stage: HookStage,
        calls: &str,
        name: impl Into<Arc<str>>,
        action: impl HookAction,
    ) -> Result<Self, RuleError> {
        let calls = Arc::new(Rule::with_decision(Decision::Ask, calls, "a hook")?);
        Ok(Self { stage, name: name.into(), timeout: DEFAULT_HOOK_TIMEOUT, calls, action: Arc::new(action) })
    }

    /// Creates a hook that is a Rust function.
    pub fn native<F, R>(
        stage: HookStage,
        calls: &str,
        name: impl Into<Arc<str>>,
        function: F,
    ) -> Result<Self, RuleError>
    where
        F: Fn(HookCall) -> R + Send + Sync + 'static,
        R: Future<Output = Result<HookVerdict, ToolFailure>> + Send + 'static,
    {
        Self::new(stage, calls, name, Function(function))
    }

    /// Sets how long the hook may run.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Returns the calls that the hook runs for, like those of an `ask` rule.
    pub fn calls(&self) -> &Rule {
        &self.calls
    }

    /// Returns why the hook cannot run, as far as that is known in advance.
    pub fn problem(&self) -> Option<String> {
        self.action.problem()
    }

    /// Returns whether the hook runs for a call, given all forms of its arguments.
    pub(super) fn applies_to<'f>(&self, mut forms: impl Iterator<Item = &'f Map<String, Json>>) -> bool {
        forms.any(|form| self.calls.matches_arguments(form))
    }

    /// Runs the hook, within its time limit.
    pub(super) async fn run(&self, call: &HookCall) -> HookOutcome {
        let isolated = AssertUnwindSafe(self.action.run(call)).catch_unwind();
        match tokio::time::timeout(self.timeout, isolated).await {
            Ok(Ok(Ok(verdict))) => HookOutcome::Verdict(verdict),
            Ok(Ok(Err(failure))) => HookOutcome::Failed(failure),
            Ok(Err(_)) => HookOutcome::Failed(ToolFailure::new("it panicked")),
            Err(_) => {
                let limit = format_duration(self.timeout);
                HookOutcome::Failed(ToolFailure::new(format!("it did not finish within {limit}")))
            }
        }
    }
}

impl HookStage {
    /// Returns the lowercase name.
    pub const fn name(self) -> &'static str {
        match self {
            HookStage::Before => "before",
            HookStage::After => "after",
        }
    }
}

impl HookVerdict {
    /// Returns a refusal.
    pub fn refuse(reason: impl Into<String>) -> Self {
        HookVerdict::Refuse { reason: reason.into() }
    }
}

impl HookCall {
    /// Returns the call as the JSON document that commands receive.
    pub fn to_json(&self) -> Json {
        let outcome = self.outcome.as_ref().map(|outcome| match outcome {
            Ok(result) => ("result", result.clone()),
            Err(error) => ("error", error.as_str().into()),
        });
        let call = [
            ("version", 1.into()),
            ("stage", self.stage.name().into()),
            ("tool", self.tool.as_str().into()),
            ("callId", (*self.call_id).into()),
            ("arguments", self.arguments.clone()),
        ];
        call.into_iter().chain(outcome).map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
    }
}

impl fmt::Display for HookOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HookOutcome::Verdict(HookVerdict::Allow) => f.write_str("allowed"),
            HookOutcome::Verdict(HookVerdict::Refuse { reason }) => write!(f, "refused: {reason}"),
            HookOutcome::Failed(failure) => write!(f, "failed: {}", failure.message()),
        }
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook").field("stage", &self.stage).field("name", &self.name).finish_non_exhaustive()
    }
}

struct Function<F>(F);

impl<F, R> HookAction for Function<F>
where
    F: Fn(HookCall) -> R + Send + Sync + 'static,
    R: Future<Output = Result<HookVerdict, ToolFailure>> + Send + 'static,
{
    fn run<'a>(&'a self, call: &'a HookCall) -> BoxFuture<'a, Result<HookVerdict, ToolFailure>> {
        Box::pin((self.0)(call.clone()))
    }
}
