//! The context of a call.

use super::idempotency::IdempotencyKey;
use super::wait::WaitClock;
use super::{Answer, CallHost, Question, QuestionKind, SampledReply, SamplingRequest};
use crate::trace::CallTrace;
use patter_core::message::conversation::Message;
use patter_core::name::FullName;
use patter_core::permission::{Decision, Permissions};
use patter_core::session::TraceParent;
use serde_json::{Map, Value as Json};
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The context of a call: its id, cancellation, shared state and progress.
///
/// ```
/// use patter::tool::{SharedState, ToolContext};
///
/// struct Database(&'static str);
///
/// let context = ToolContext::new("call-1").with_state(SharedState::default().with(Database("orders")));
/// assert_eq!(context.call_id(), "call-1");
/// assert_eq!(context.state::<Database>().unwrap().0, "orders");
/// assert!(!context.cancellation().is_cancelled());
/// context.progress(Some(0.5), "halfway");
/// ```
#[derive(Clone)]
pub struct ToolContext {
    call_id: Arc<str>,
    cancellation: CancellationToken,
    state: SharedState,
    progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    rules: Option<Arc<CallRules>>,
    /// The tool that is called, if an executor calls it.
    tool: Option<FullName>,
    clock: WaitClock,
}

/// The permission rules as they apply to a call that was permitted.
pub(super) struct CallRules {
    pub(super) permissions: Arc<Permissions>,
    pub(super) tool: FullName,
    /// The arguments of the call, in all forms that rules were applied to.
    pub(super) forms: Vec<Map<String, Json>>,
}

/// How a call accesses something that rules may be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The arguments name it: a file that is read.
    Named,
    /// It is part of what the arguments name: a file in a folder that is searched. An `allow` rule for the folder includes
    /// it.
    Within,
}

/// A function that looks up an environment variable.
pub type VariableLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The progress of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The completed fraction, from 0 to 1, if it is known.
    pub fraction: Option<f64>,
    /// A description for people.
    pub message: String,
}

/// Values that tools share, one per type. Cheap to clone.
#[derive(Clone, Default)]
pub struct SharedState {
    values: Arc<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl ToolContext {
    /// Creates the context of a call, with only the id of the call.
    pub fn new(call_id: impl Into<Arc<str>>) -> Self {
        Self {
            call_id: call_id.into(),
            cancellation: CancellationToken::new(),
            state: SharedState::default(),
            progress: None,
            rules: None,
            tool: None,
            clock: WaitClock::default(),
        }
    }

    /// Sets the shared state.
    #[must_use]
    pub fn with_state(mut self, state: SharedState) -> Self {
        self.state = state;
        self
    }

    /// Sets the token that cancels the call.
    #[must_use]
    pub fn with_cancellation(mut self, cancellation: CancellationToken) -> Self {
        self.cancellation = cancellation;
        self
    }

    /// Sets the listener for progress.
    #[must_use]
    pub fn with_progress(mut self, listener: Arc<dyn Fn(Progress) + Send + Sync>) -> Self {
        self.progress = Some(listener);
        self
    }

    /// Sets the rules that apply to what the call accesses.
    #[must_use]
    pub(super) fn with_rules(mut self, rules: Option<CallRules>) -> Self {
        self.rules = rules.map(Arc::new);
        self
    }

    /// Sets the tool that is called.
    #[must_use]
    pub(super) fn with_tool(mut self, tool: &FullName) -> Self {
        self.tool = Some(tool.clone());
        self
    }

    /// Returns the clock of the time that the call waits for others.
    pub(super) fn clock(&self) -> &WaitClock {
        &self.clock
    }

    /// Returns whether [`ToolContext::permits`] may return `false`.
    pub fn has_rules(&self) -> bool {
        self.rules.is_some()
    }

    /// Returns whether the permission rules let this call access something that its arguments do not name as such, for
    /// example a file that a search finds or that a link leads to. The arguments are those of a call that names it.
    ///
    /// An approval covers only what the rules ask for about the call itself.
    ///
    /// ```
    /// use patter::tool::{Access, ToolContext};
    /// let arguments = serde_json::json!({"path": "docs/secret.txt"});
    /// // Without an executor there are no rules.
    /// assert!(ToolContext::new("1").permits(arguments.as_object().unwrap(), Access::Within));
    /// ```
    pub fn permits(&self, arguments: &Map<String, Json>, access: Access) -> bool {
        let Some(rules) = &self.rules else { return true };
        let CallRules { permissions, tool, forms } = &**rules;
        let is_covered = match permissions.restriction(tool, arguments) {
            None => true,
            Some(rule) if rule.decision == Decision::Deny => false,
            Some(_) => {
                let asking = permissions.rules_for(tool).filter(|rule| rule.decision == Decision::Ask);
                let mut asking = asking.filter(|rule| rule.matches_arguments(arguments));
                asking.all(|rule| forms.iter().any(|form| rule.matches_arguments(form)))
            }
        };
        is_covered && (access == Access::Within || permissions.decide(tool, arguments).decision < Decision::Deny)
    }

    /// Returns the id of the call. It is the same if the call is repeated, so that work can be done only once.
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// Returns the token that is cancelled when the result is no longer needed. The future of the call is dropped then,
    /// so only work outside of the future needs the token.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Returns the shared value of a type.
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.state.get()
    }

    /// Returns the span of this call, for the header `traceparent` of requests that the tool makes; `None` if the call is
    /// not traced. See [`trace`](crate::trace).
    pub fn traceparent(&self) -> Option<TraceParent> {
        self.state::<CallTrace>().map(|trace| trace.0)
    }

    /// Returns a key that is the same if this call is made again, after a retry or a restart, and different for every other
    /// call: for services that recognise repeated requests. `None` if the session is not stored, because then nothing is
    /// repeated after a restart.
    ///
    /// HTTP tools send it as the header `Idempotency-Key`, commands find it in the variable `PATTER_IDEMPOTENCY_KEY`, and MCP
    /// servers in `_meta` as `patter/idempotencyKey`.
    pub fn idempotency_key(&self) -> Option<Arc<str>> {
        self.state::<IdempotencyKey>().map(|key| Arc::clone(&key.0))
    }

    /// Asks the person who watches the call, and waits for the answer, which is not part of the time limit of the call.
    /// Where nobody can be asked, the answer is [`Answer::Decline`].
    ///
    /// ```
    /// use patter::tool::{Answer, FieldKind, FormField, Question, ToolContext};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let fields = vec![FormField::new("branch", FieldKind::TEXT).required()];
    /// let question = Question::form("branch", "Which branch should be deployed?", fields);
    /// assert_eq!(ToolContext::new("call-1").ask(question).await, Answer::Decline);
    /// # }
    /// ```
    pub async fn ask(&self, mut question: Question) -> Answer {
        let Some(host) = self.state::<CallHost>() else { return Answer::Decline };
        question.asker = self.asker();
        let _wait = self.clock.wait();
        host.0.ask(&question).await
    }

    /// Calls the model of the agent that makes the call, or of the client, if a person agrees. The error says why it is not
    /// called. The name is that of the question to the person.
    pub async fn sample(&self, name: &str, request: SamplingRequest) -> Result<SampledReply, String> {
        let Some(host) = self.state::<CallHost>() else { return Err("the caller has no model".to_owned()) };
        let mut shown = request.instruction.clone();
        for message in request.messages.iter() {
            match message {
                Message::User { text, .. } => shown.push_str(&format!("\nuser: {text}")),
                Message::Assistant { text, .. } => shown.push_str(&format!("\nassistant: {text}")),
                Message::Tool { .. } | Message::Compacted { .. } => {}
            }
        }
        let kind = QuestionKind::Sampling { max_tokens: request.max_tokens };
        let message = shown.trim().to_owned();
        let question = Question { asker: self.asker(), name: name.to_owned(), message, kind };
        let _wait = self.clock.wait();
        host.0.sample(&question, request).await
    }

    fn asker(&self) -> String {
        self.tool.as_ref().map_or_else(|| "a tool".to_owned(), |tool| format!("the tool `{tool}`"))
    }

    /// Reports progress. The fraction is between 0 and 1.
    pub fn progress(&self, fraction: Option<f64>, message: impl Into<String>) {
        if let Some(listener) = &self.progress {
            listener(Progress { fraction, message: message.into() });
        }
    }
}

impl SharedState {
    /// Adds a value, which replaces one of the same type.
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        Arc::make_mut(&mut self.values).insert(TypeId::of::<T>(), Arc::new(value));
        self
    }

    /// Sets the span that calls are a part of. See [`ToolContext::traceparent`].
    #[must_use]
    pub fn with_trace_parent(self, parent: TraceParent) -> Self {
        self.with(CallTrace(parent))
    }

    /// Sets the key of calls. See [`ToolContext::idempotency_key`].
    #[must_use]
    pub fn with_idempotency_key(self, key: impl Into<Arc<str>>) -> Self {
        self.with(IdempotencyKey(key.into()))
    }

    /// Returns the value of a type.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.values.get(&TypeId::of::<T>()).cloned().and_then(|value| value.downcast().ok())
    }
}
