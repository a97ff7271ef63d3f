//! Tests of the server, over real connections.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::needless_pass_by_value,
    missing_docs,
    reason = "tests"
)]

mod acp;
mod ag_ui;
mod approvals;
mod attachments;
mod attacks;
mod chat;
mod conformance;
mod fleet;
mod lab;
mod mcp;
mod mcp_tools;
#[path = "../../../patter/tests/it/npm.rs"]
mod npm;
mod open_responses;
mod openapi;
mod python;
mod responses;
mod retries;
mod schedules;
mod sdk;
mod sessions;
mod stopping;
mod studio;
mod traces;
mod webhooks;
mod workflows;
