//! The protocols that Patter serves: requests of clients to inputs of runs, and events of runs to responses.
//!
//! Each protocol is a translation without I/O, like the protocols of providers in [`wire`](crate::wire), and has no state of
//! its own: what a client gets is a projection of the log of a session.

mod attachment;
mod client;
mod error;
mod read;
mod turn;
mod segment;
pub mod acp;
pub mod ag_ui;
pub mod chat;
pub mod mcp;
pub mod native;
pub mod responses;

pub use client::AnswerSchema;
pub use error::{ApiError, ApiErrorKind};
pub use segment::Segment;
pub use turn::{TurnEnd, TurnOutcome, Waiting};
