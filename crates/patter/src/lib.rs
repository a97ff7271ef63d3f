//! LLM agents written as patterns: the library to embed.
//!
//! All effects live here; what to do is decided in `patter-core`. This crate has no terminal and no command line: the
//! program `patter` is built on it, and so can yours be.
//!
//! ```
//! let (tree, diagnostics) = patter::gram::parse("[greeter:Agent {model: 'demo'} | sayHello]");
//! assert!(diagnostics.is_empty());
//! assert_eq!(tree.patterns().count(), 1);
//! ```

// What `#[tool]` writes begins with `::patter`, here too.
extern crate self as patter;

pub mod project;
pub mod tool;
pub mod http;
pub mod model;
pub mod agent;
pub mod drive;
pub mod session;
pub mod store;
pub mod live;
pub mod lock;
pub mod experiment;
pub mod report;
pub mod openapi;

pub use patter_core::{
    case, check, declare, diff, gram, library, message, name, permission, provider, rule, run, stats, text, types, wire,
};

/// Makes a tool of a function.
///
/// The function stays as it is, to be called and tested. Beside it there is a type of the same name, whose `tool()`
/// returns the [`Tool`](tool::Tool); one `use` brings both. (So a module of that name has to be elsewhere.)
///
/// ```
/// use patter::tool::{Failure, ToolContext};
///
/// /// Returns a friendly greeting for the given name
/// #[patter::tool(effect = "pure")]
/// async fn say_hello(
///     /// Who to greet
///     #[default = "world"]
///     person_name: String,
/// ) -> Result<String, Failure> {
///     match person_name.trim() {
///         "" => Err(Failure::new("there is nobody to greet")),
///         name => Ok(format!("Hello, {name}!")),
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// assert_eq!(say_hello("Ada".to_owned()).await.unwrap(), "Hello, Ada!");
/// let tool = say_hello::tool();
/// assert_eq!(tool.name(), "sayHello");
/// assert_eq!(
///     tool.definition.signature.to_string(),
///     "(personName::Text { description: \"Who to greet\", default: \"world\" })==>(::Text)"
/// );
/// let result = tool.implementation.call(serde_json::json!({}), &ToolContext::new("1")).await;
/// assert_eq!(result.unwrap(), "Hello, world!");
/// # }
/// ```
///
/// **The signature** comes from the function. Names are written in camel case. The doc comment up to the first heading is
/// the description, and must be there; that of a parameter, or `#[description = "…"]`, describes the parameter. A
/// parameter is of any type that is `serde::Deserialize + schemars::JsonSchema`, and what is returned is
/// `serde::Serialize + schemars::JsonSchema`. An `Option<T>` may be left out; `#[default = value]` says what is taken
/// then. Types that contain themselves become record types.
///
/// **Not part of the signature** are parameters of type `&ToolContext`, and of type [`Shared<T>`](tool::Shared) for what
/// tools share.
///
/// **Failures**: a function may return `Result<T, E>`, where `E` is a [`Failure`](tool::Failure) or any error. The model
/// reads the message of a `Failure`; of other errors it learns only that the tool failed.
///
/// **Options**: `name = "…"`; `effect = "pure"`, `"reads"`, `"network"` or `"writes"`, which is held to be so if nothing
/// is said; `idempotent`; `timeout = "10s"`; `concurrency = 4`; `sealed`.
///
/// A function that is not `async` runs on a thread of its own, since it may block, unless it is `pure`: then it runs
/// where it is called, and should be quick, or say `blocking`. When nobody waits for its result any more, such a thread still runs to its
/// end; a long one looks at [`ToolContext::cancellation`](tool::ToolContext::cancellation).
pub use patter_macros::tool;

#[doc(hidden)]
pub mod __private {
    pub use crate::tool::derived::*;
    pub use serde_json::Value as Json;
}

// The Rust in the documents is compiled and run as part of the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/agents.md")]
struct AgentsGuide;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/tools.md")]
struct ToolsGuide;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
struct EmbeddingGuide;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/comparing.md")]
struct ComparingGuide;
