//! Traces: what is exported, to whom, and what happens if nobody takes it.

mod export;
mod outgoing;
mod receiver;
mod sessions;
mod settings;
