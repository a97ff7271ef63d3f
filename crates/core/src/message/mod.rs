//! What is exchanged with a model: the conversation, and one request with its reply.

pub mod conversation;
pub mod request;
