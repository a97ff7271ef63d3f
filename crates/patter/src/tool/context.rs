//! The context of a call.

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

    /// Returns the value of a type.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.values.get(&TypeId::of::<T>()).cloned().and_then(|value| value.downcast().ok())
    }
}
