//! Tools that are Rust functions.

use super::{BoxFuture, Definition, DefinitionError, Implementation, Tool, ToolContext, ToolFailure, ToolKind};
use serde_json::Value as Json;
use std::ops::Deref;
use std::sync::Arc;

impl Tool {
    /// Creates a tool from a closure, which receives the arguments as an object. For functions use
    /// [`macro@crate::tool`], which derives the signature.
    ///
    /// ```
    /// use patter::tool::{Effect, ToolFailure, Tool, ToolContext};
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let double = Tool::native("double", "Doubles a number", "(number::Int)==>(::Int)", |arguments, _| async move {
    ///     let number = arguments["number"].as_i64().ok_or_else(|| ToolFailure::new("`number` is too large"))?;
    ///     Ok(json!(number * 2))
    /// });
    /// let double = double.unwrap().effect(Effect::Pure);
    /// let result = double.implementation.call(json!({ "number": 21 }), &ToolContext::new("1")).await;
    /// assert_eq!(result.unwrap(), 42);
    /// # }
    /// ```
    pub fn native<F, R>(name: &str, description: &str, signature: &str, function: F) -> Result<Self, DefinitionError>
    where
        F: Fn(Json, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Json, ToolFailure>> + Send + 'static,
    {
        let definition = Definition::new(name, description, signature)?;
        Ok(Self::new(definition, ToolKind::Native, Closure(function)))
    }
}

struct Closure<F>(F);

impl<F, R> Implementation for Closure<F>
where
    F: Fn(Json, ToolContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Json, ToolFailure>> + Send + 'static,
{
    fn call<'a>(&'a self, arguments: Json, context: &'a ToolContext) -> BoxFuture<'a, Result<Json, ToolFailure>> {
        Box::pin((self.0)(arguments, context.clone()))
    }
}

/// A value that tools share, as a parameter of a tool function.
///
/// It comes from the [`SharedState`](super::SharedState) of the context. If it is missing, the call fails with a detail for
/// the operator.
///
/// ```
/// use patter::tool::{Shared, SharedState, ToolContext};
///
/// struct Greeting(&'static str);
///
/// /// Greets
/// #[patter::tool(effect = "pure")]
/// fn greet(greeting: Shared<Greeting>, name: String) -> String {
///     format!("{}, {name}", greeting.0)
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// assert_eq!(greet(Shared::new(Greeting("Salut")), "Ada".to_owned()), "Salut, Ada");
/// let context = ToolContext::new("1").with_state(SharedState::default().with(Greeting("Hi")));
/// let result = greet::tool().implementation.call(serde_json::json!({ "name": "Bo" }), &context).await;
/// assert_eq!(result.unwrap(), "Hi, Bo");
/// # }
/// ```
#[derive(Debug)]
pub struct Shared<T>(Arc<T>);

impl<T: Send + Sync + 'static> Shared<T> {
    /// Wraps a value, to call a tool function without a context.
    pub fn new(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// Returns the value from the state of a context.
    pub fn from_context(context: &ToolContext) -> Result<Self, ToolFailure> {
        let missing = || {
            let name = std::any::type_name::<T>();
            ToolFailure::new("this tool is not configured; ask the operator to configure it")
                .with_detail(format!("the shared state has no `{name}`"))
        };
        context.state().map(Self).ok_or_else(missing)
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
