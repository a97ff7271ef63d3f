//! Every decision of Patter, and no I/O: no clock, no randomness, no network, no files.
//!
//! What an agent or a tool is, whether it can work, what a run does next: all that is decided here, from values that
//! are passed in, and tested without a runtime. The crate `patter` performs what is decided.
//!
//! The notation that agents are written in has a crate of its own, [`gram`].

pub mod case;
pub mod check;
pub mod compatible;
pub mod conversation;
pub mod declare;
pub mod definition;
pub mod demo;
pub mod diff;
pub mod experiment;
mod keyword;
pub mod library;
pub mod name;
pub mod openapi;
pub mod permission;
pub mod price;
pub mod project;
mod property;
pub mod provider;
pub mod replay;
pub mod request;
pub mod rule;
pub mod run;
pub mod schema;
pub mod session;
pub mod signature;
mod suggest;
pub mod template;
pub mod wire;

pub use patter_gram as gram;
pub use suggest::nearest;
