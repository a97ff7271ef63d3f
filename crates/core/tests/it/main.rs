//! Tests of the public interface, in one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    reason = "tests"
)]

mod acp;
mod attachments;
mod callables;
mod case_properties;
mod cases;
mod commands;
mod compatibility;
mod conversation;
mod declarations;
mod demo;
mod differences;
mod edits;
mod experiments;
mod extending;
mod findings;
#[path = "../../benches/fleet/mod.rs"]
mod fleet;
mod from_schema;
mod generate;
mod graph;
mod judgements;
mod library;
mod openapi;
mod permission;
mod policies;
mod price;
mod providers;
mod queries;
mod query_properties;
mod schema_dialects;
mod redact;
mod requests;
mod rules;
mod run;
mod schedules;
mod scopes;
mod signatures;
mod stats;
mod toolkits;
mod wire;
mod workflow;
