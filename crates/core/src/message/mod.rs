//! What is exchanged with a model: conversations, requests and replies.

mod media_type;
pub mod media;
pub mod conversation;
pub mod attachment;
pub mod context;
mod schema;
pub mod request;
pub mod redact;
pub(crate) mod shared;
