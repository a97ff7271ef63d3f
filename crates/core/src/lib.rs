//! Every decision of Patter, without I/O: no clock, no randomness, no network, no files.
//!
//! What an agent or a tool is, whether it can work, and what a run does next are decided here, from values that are
//! passed in, and tested without a runtime. The crate `patter` performs what is decided.
//!
//! Agents are written in a notation that has its own crate, [`gram`].
//!
//! The modules are listed in reading order: each uses only those above it. A test asserts that they form no cycle.

pub use patter_gram as gram;

pub mod parallel;
pub mod text;
pub mod name;
pub mod rule;
pub mod types;
pub mod permission;
pub mod provider;
pub mod message;
pub mod declare;
pub mod library;
pub mod schedule;
pub mod workflow;
pub mod run;
pub mod session;
pub mod trace;
pub mod event;
pub mod wire;
pub mod case;
pub mod query;
pub mod check;
pub mod edit;
pub mod graph;
pub mod diff;
pub mod compile;
pub mod serve;
pub mod stats;
pub mod experiment;
pub mod openapi;
pub mod demo;
