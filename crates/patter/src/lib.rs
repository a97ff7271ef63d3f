//! LLM agents written as patterns: the library to embed.
//!
//! Every effect is here; decisions are made in `patter-core`, whose modules are re-exported. This crate has no terminal
//! and no command line: the program `patter` is built on it, and yours can be too.
//!
//! ```
//! let (tree, diagnostics) = patter::gram::parse("[greeter:Agent {model: 'demo'} | sayHello]");
//! assert!(diagnostics.is_empty());
//! assert_eq!(tree.patterns().count(), 1);
//! ```

// The code that `#[tool]` generates starts with `::patter`, in this crate too.
extern crate self as patter;

pub mod project;
pub mod tool;
pub mod http;
pub mod model;
pub mod trace;
pub mod drive;
pub mod session;
pub mod store;
pub mod live;
pub mod experiment;
pub mod html;
pub mod report;
pub mod openapi;
pub mod file;
pub mod os_error;
mod type_error;

pub use tool::process::launch;

pub use patter_core::{
    case, check, compile, declare, diff, edit, gram, graph, library, message, name, permission, provider, query, rule,
    run, schedule, stats, text, types, wire,
};

/// Turns a function into a tool.
///
/// The function stays unchanged, so it can be called and tested. Beside it there is a type of the same name, whose
/// `tool()` returns the [`Tool`](tool::Tool); one `use` imports both. (A module of that name has to be elsewhere.)
///
/// ```
/// use patter::tool::{ToolFailure, ToolContext};
///
/// /// Returns a friendly greeting for the given name
/// #[patter::tool(effect = "pure")]
/// async fn say_hello(
///     /// Who to greet
///     #[default = "world"]
///     person_name: String,
/// ) -> Result<String, ToolFailure> {
///     match person_name.trim() {
///         "" => Err(ToolFailure::new("there is nobody to greet")),
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
/// **The signature** is derived from the function. Names are converted to camel case. The doc comment up to the first
/// heading is the description, and is required; the doc comment of a parameter, or `#[description = "…"]`, describes the
/// parameter. Parameters may have any type that is `serde::Deserialize + schemars::JsonSchema`, and results any type that
/// is `serde::Serialize + schemars::JsonSchema`. A parameter of type `Option<T>` may be omitted; `#[default = value]` sets
/// the value that is used then. Recursive types become record types.
///
/// **Not part of the signature** are parameters of type `&ToolContext`, and of type [`Shared<T>`](tool::Shared) for state
/// that tools share.
///
/// **Failures**: a function may return `Result<T, E>`, where `E` is a [`ToolFailure`](tool::ToolFailure) or any error. The
/// model sees the message of a `ToolFailure`; of other errors it only learns that the tool failed.
///
/// **Options**: `name = "…"`; `effect = "pure"`, `"reads"`, `"network"` or `"writes"` (the default); `idempotent`;
/// `timeout = "10s"`; `concurrency = 4`; `sealed`.
///
/// A function that is not `async` runs on its own thread, because it may block, unless it is `pure`: then it runs in place,
/// and should be quick or have the option `blocking`. Such a thread runs to its end even if its result is no longer needed;
/// a long-running function should check [`ToolContext::cancellation`](tool::ToolContext::cancellation).
pub use patter_macros::tool;

#[doc(hidden)]
pub mod __private {
    pub use crate::tool::derived::*;
    pub use serde_json::Value as Json;
}

// The Rust examples in the documents are compiled and run as doc tests.
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
