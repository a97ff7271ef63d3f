//! OpenAI Chat Completions, which compatible servers support too. Those deviate from it in what they send, and replies are
//! read with tolerance for all of it; what they accept is data of a [`Server`](crate::provider::Server).

mod echo;
mod usage;
mod request;
mod reply;

pub(super) use reply::ChatParser;
pub(super) use request::{ToolStyle, encode, strict_answer, strict_tools};
pub(super) use usage::count_output;
