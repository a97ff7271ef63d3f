//! What is exchanged with a model: the conversation, one request and its reply, and the price of both.

pub mod conversation;
pub mod request;
pub mod price;
