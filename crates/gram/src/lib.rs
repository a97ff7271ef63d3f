//! Gram notation: a lossless, fast, error-tolerant parser, editor and formatter.
//!
//! Gram writes patterns as text: nodes `(a:Person)`, paths `(a)-->(b)` and bracket patterns `[team:Team | a, b]`, each
//! with a name, labels and a record of properties. Patter's agents and tools are written in gram. This crate turns text
//! into a tree and back; it knows nothing about agents.
//!
//! ```
//! let text = "[greeter:Agent {model: 'demo'} | sayHello] // the first one";
//! let (tree, diagnostics) = patter_gram::parse(text);
//! assert!(diagnostics.is_empty());
//!
//! let agent = tree.patterns().next().unwrap();
//! assert_eq!(agent.name().as_deref(), Some("greeter"));
//! assert_eq!(agent.elements().count(), 1);
//!
//! let mut edit = tree.edit();
//! edit.set_property(agent, "model", &"openai/gpt-5".into());
//! let (tree, _) = edit.apply();
//! assert_eq!(tree.to_string(), "[greeter:Agent {model: \"openai/gpt-5\"} | sayHello] // the first one");
//! ```
//!
//! # Guarantees
//! - [`parse`] returns a tree for any text, and printing the tree reproduces the same bytes.
//! - It reports all errors in one pass, each with its position and, where useful, a hint. See [`Diagnostic`].
//! - It runs in linear time and memory, and neither panics nor overflows the stack.
//! - [`format`](fn@format) preserves meaning and comments, and is idempotent.

// Text to tree.
mod parse;
mod span;
mod tree;

// Diagnostics.
pub mod code;
mod diagnostic;
mod render;

// Typed views of the tree.
mod pattern;
mod value;

mod number;
mod text;

// Searching and comparing.
mod equality;
mod query;

// Changing and writing.
mod edit;
mod format;

mod json;
mod outline;
mod sexp;

pub use parse::{Dialect, MAX_DEPTH, parse, parse_bytes, parse_dialect};
pub use span::{LineIndex, Span};
pub use tree::{Children, Comment, Kind, Syntax, SyntaxId, Tree};

pub use code::{RULES, Rule};
pub use diagnostic::{Diagnostic, RelatedSpan, Severity};
pub use render::{Rendering, render};

pub use pattern::{Annotation, Arrow, ArrowStroke, Pattern, PatternKind};
pub use value::{Property, Value};

pub use number::{Decimal, Integer, Number};
pub use text::{dedent, is_symbol, quote, quote_name};

pub use query::{Query, QueryError};

pub use edit::{Edit, EditError};
pub use format::{LINE_WIDTH, format};

pub use json::{JsonError, from_json, to_json};
pub use outline::outline;
pub use sexp::to_sexp;
