//! What is exchanged with a model: conversations, requests and replies.

pub mod media;
pub mod conversation;
pub mod request;
mod shared;
