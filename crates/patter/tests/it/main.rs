//! The tests of what the crate does, against real servers, processes and files, in one binary.
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

mod attachments;
mod cassettes;
mod ceilings;
mod command;
mod context;
mod cost;
mod crash;
mod delegates;
mod drive;
mod executor;
mod experiment;
mod fs;
mod hooks;
mod idempotency;
mod http;
mod mcp;
mod model;
mod native;
mod npm;
mod openapi;
mod pace;
mod reasoning;
mod recorder;
mod processes;
mod protection;
mod providers;
mod pypi;
mod replay;
mod report;
mod session;
mod settings;
mod standard;
mod store;
mod suspend;
mod trace;
