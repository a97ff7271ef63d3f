//! The tests of what the crate does, against real servers, processes and files, in one binary.
//! The tests of what the crate does, against real servers, processes and files.
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

mod executor;

mod command;
mod native;
mod http;
mod fs;
mod mcp;
mod standard;
mod openapi;
