//! What is exchanged with a model: conversations, requests and replies.

pub mod media;
pub mod conversation;
mod schema;
pub mod request;
pub(crate) mod shared;
