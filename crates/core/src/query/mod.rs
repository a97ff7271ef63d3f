//! Questions about a project and its sessions, written as patterns.
//!
//! [`ProjectGraph`] and [`SessionGraph`] turn what is known into a [`PropertyGraph`]. A [`Query`] is a pattern with
//! variables, checked against the [`Schema`] of that graph, and a [`Search`] finds everything it matches, within
//! [`Limits`]. A [`Policy`] is a query that must have no answer.

mod property_graph;
mod schema;
mod constraint;
mod pattern;
mod adjacency;
mod search;
mod project;
mod session;
mod policy;
mod answer;

pub use answer::{Answer, AnswerCell, AnswerPath, AnswerRow, Paths};
pub use pattern::{MAX_HOPS, MAX_PARTS, Query};
pub(crate) use policy::{PROPERTIES as POLICY_PROPERTIES, query_errors};
pub use policy::{PathPart, Policy, PolicyError, Violation, describe_path, find_violations};
pub use project::ProjectGraph;
pub use property_graph::{FilePlace, PropertyGraph, Relation, Vertex, VertexIndex};
pub use schema::{LabelSchema, PROJECT_SCHEMA, PropertySchema, RelationSchema, SESSION_SCHEMA, Schema};
pub use search::{Cell, Evidence, Limits, Search, Stop};
pub use session::SessionGraph;
