//! Tests of the program from outside, in one binary.
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
mod architecture;
mod attachments;
mod chat;
mod conformance;
mod declarations;
mod delegates;
mod docs;
mod doctor;
mod errors;
mod experiments;
mod fleet;
mod folder;
mod import;
mod llama_cpp;
mod lock;
mod mcp_clients;
mod mistakes;
mod models;
mod new;
mod notation;
#[path = "../../../patter/tests/it/npm.rs"]
mod npm;
mod patterns;
mod permissions;
mod poison;
mod processes;
#[path = "../../../serve/tests/it/python.rs"]
mod python;
mod query;
mod questions;
mod redact;
mod replay;
mod run;
mod sandbox;
mod schedules;
mod secrets;
mod serving;
mod sessions;
mod shell;
mod stopping;
mod store;
mod streams;
mod terminal;
mod studio;
mod tools;
mod traces;
mod trust;
mod voice;
mod workflows;
