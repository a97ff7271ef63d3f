//! What a tool is given beside its arguments.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What a tool is given beside its arguments.
///
/// ```
/// use patter::tool::{State, ToolContext};
///
/// struct Database(&'static str);
///
/// let context = ToolContext::new("call-1").with_state(State::default().with(Database("orders")));
/// assert_eq!(context.call_id(), "call-1");
/// assert_eq!(context.state::<Database>().unwrap().0, "orders");
/// assert!(!context.cancellation().is_cancelled());
/// context.progress(Some(0.5), "half way");
/// ```
#[derive(Clone)]
pub struct ToolContext {
    call_id: Arc<str>,
    cancellation: CancellationToken,
    state: State,
    progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The part that is done, from 0 to 1, if it is known.
    pub fraction: Option<f64>,
    /// What is going on.
    pub message: String,
}

/// Values that tools share, one of a type. Cheap to clone.
#[derive(Clone, Default)]
pub struct State {
    values: Arc<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl ToolContext {
    /// Returns the context of a call, with nothing but the name of the call.
    pub fn new(call_id: impl Into<Arc<str>>) -> Self {
        Self {
            call_id: call_id.into(),
            cancellation: CancellationToken::new(),
            state: State::default(),
            progress: None,
        }
    }

    /// Sets what tools share.
    #[must_use]
    pub fn with_state(mut self, state: State) -> Self {
        self.state = state;
        self
    }

    /// Sets what ends the call early.
    #[must_use]
    pub fn with_cancellation(mut self, cancellation: CancellationToken) -> Self {
        self.cancellation = cancellation;
        self
    }

    /// Sets who hears of progress.
    #[must_use]
    pub fn with_progress(mut self, listener: Arc<dyn Fn(Progress) + Send + Sync>) -> Self {
        self.progress = Some(listener);
        self
    }

    /// Returns the name of the call: the same if the call is made again, so that work is not done twice.
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// Returns what is cancelled when nobody waits for the result any more. The future of the call is dropped then, so
    /// only what runs outside of it needs this.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Returns the shared value of a type.
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.state.get()
    }

    /// Tells how far the call is. The fraction goes from 0 to 1.
    pub fn progress(&self, fraction: Option<f64>, message: impl Into<String>) {
        if let Some(listener) = &self.progress {
            listener(Progress { fraction, message: message.into() });
        }
    }
}

impl State {
    /// Adds a value. It takes the place of one of the same type.
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        Arc::make_mut(&mut self.values).insert(TypeId::of::<T>(), Arc::new(value));
        self
    }

    /// Returns the value of a type.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.values.get(&TypeId::of::<T>()).cloned().and_then(|value| value.downcast().ok())
    }
}
