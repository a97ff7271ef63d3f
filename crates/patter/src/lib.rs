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

pub mod openapi;
pub mod project;
pub mod tool;

pub use patter_core::{
    check, compatible, declare, definition, diff, gram, name, nearest, provider, rule, schema, signature,
};

// The Rust in the documents is compiled and run as part of the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/agents.md")]
struct AgentsGuide;
