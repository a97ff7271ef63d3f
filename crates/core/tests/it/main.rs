//! Tests of the decisions from outside, in one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    reason = "tests"
)]

mod case_promises;
mod cases;
mod commands;
mod compatibility;
mod declarations;
mod demo;
mod differences;
mod experiment;
mod findings;
mod from_schema;
mod generate;
mod judgements;
mod library;
mod openapi;
mod permission;
mod price;
mod provider_views;
mod requests;
mod rules;
mod run;
mod signatures;
mod wire;
