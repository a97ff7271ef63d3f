//! Tools that are Rust functions.

use super::{BoxFuture, Definition, DefinitionError, Failure, Implementation, Kind, Tool, ToolContext};
use serde_json::Value as Json;
use std::ops::Deref;
use std::sync::Arc;

impl Tool {
    /// Makes a tool of a closure, which is given the arguments as an object. For functions there is
    /// [`macro@crate::tool`], which derives the signature.
    ///
    /// ```
    /// use patter::tool::{Effect, Failure, Tool, ToolContext};
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let double = Tool::native("double", "Doubles a number", "(number::Int)==>(::Int)", |arguments, _| async move {
    ///     let number = arguments["number"].as_i64().ok_or_else(|| Failure::new("`number` is too large"))?;
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
        R: Future<Output = Result<Json, Failure>> + Send + 'static,
    {
        let definition = Definition::new(name, description, signature)?;
        Ok(Self::new(definition, Kind::Native, Closure(function)))
    }
}

struct Closure<F>(F);

impl<F, R> Implementation for Closure<F>
where
    F: Fn(Json, ToolContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Json, Failure>> + Send + 'static,
{
    fn call<'a>(&'a self, arguments: Json, context: &'a ToolContext) -> BoxFuture<'a, Result<Json, Failure>> {
        Box::pin((self.0)(arguments, context.clone()))
    }
}

/// A value that tools share, as a parameter of a function that is a tool.
///
/// It comes from the [`State`](super::State) of the context; without it the call fails, and the operator reads which
/// type is missing.
///
/// ```
/// use patter::tool::{Shared, State, ToolContext};
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
/// let context = ToolContext::new("1").with_state(State::default().with(Greeting("Hi")));
/// let result = greet::tool().implementation.call(serde_json::json!({ "name": "Bo" }), &context).await;
/// assert_eq!(result.unwrap(), "Hi, Bo");
/// # }
/// ```
#[derive(Debug)]
pub struct Shared<T>(Arc<T>);

impl<T: Send + Sync + 'static> Shared<T> {
    /// Shares a value, to call the function of a tool without a context.
    pub fn new(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// Returns the value that the context has.
    pub fn of(context: &ToolContext) -> Result<Self, Failure> {
        let missing = || {
            let name = std::any::type_name::<T>();
            Failure::new("the tool is not set up").with_detail(format!("the shared state has no `{name}`"))
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
