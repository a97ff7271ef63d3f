//! Workers on a real Restate server, which the tests install from npm.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

#[path = "../../../patter/tests/it/npm.rs"]
mod npm;
mod request;
mod world;
mod balancer;
mod database;
mod restate;
mod shop;
mod worker;
mod options;
mod registration;
mod turns;
mod battery;
