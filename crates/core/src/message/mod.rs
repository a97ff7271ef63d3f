//! What is exchanged with a model: conversations, requests and replies.

pub mod media;
pub mod conversation;
pub mod context;
mod schema;
pub mod request;
pub(crate) mod shared;
