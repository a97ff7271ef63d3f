//! Chat completions, as the OpenAI protocol defines them: an agent is a model.
//!
//! Calls that Patter makes never appear as `tool_calls`, because clients would try to make them. A client may bring tools of
//! its own: then a run pauses at their calls, and the results resume it.

mod request;
mod response;
mod stream;

pub use request::{ChatInput, ChatRequest, ClientResult};
pub use response::{ChatMeta, call_id, completion, model, model_list, split_call_id};
pub use stream::ChatStream;
