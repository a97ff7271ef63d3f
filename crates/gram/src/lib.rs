//! Gram notation: a lossless, fast, forgiving reader and writer.
//!
//! Gram writes patterns as text: nodes `(a:Person)`, paths `(a)-->(b)` and bracket patterns `[team:Team | a, b]`, each
//! with a name, labels and a record of properties. Patter writes its agents and tools in it. This crate turns text into
//! a tree and back, and knows nothing of agents.
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
//! # What holds for every text
//! - [`parse`] returns a tree, whatever the text; printing the tree gives the same bytes.
//! - It reports all mistakes at once, each with its place and, where it helps, a hint. See [`Diagnostic`].
//! - It needs time and memory in proportion to the text, and neither panics nor overflows the stack.
//! - [`format`](fn@format) keeps meaning and comments, and formatting twice changes nothing.

mod code;
mod diagnostic;
mod edit;
mod equality;
mod format;
mod json;
mod number;
mod outline;
mod parse;
mod pattern;
mod query;
mod render;
mod sexp;
mod span;
mod text;
mod tree;
mod value;

pub use code::{RULES, Rule};
pub use diagnostic::{Diagnostic, RelatedSpan, Severity};
pub use edit::{Edit, EditError};
pub use format::{LINE_WIDTH, format};
pub use json::{JsonError, from_json, to_json};
pub use number::{Decimal, Integer, Number};
pub use outline::outline;
pub use parse::{Dialect, MAX_DEPTH, parse, parse_bytes, parse_dialect};
pub use pattern::{Annotation, Arrow, ArrowStroke, Pattern, PatternKind};
pub use query::{Query, QueryError};
pub use render::{Rendering, render};
pub use sexp::to_sexp;
pub use span::{LineIndex, Span};
pub use text::{dedent, is_symbol, quote, quote_name};
pub use tree::{Children, Comment, Kind, Syntax, SyntaxId, Tree};
pub use value::{Property, Value};
