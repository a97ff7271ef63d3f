//! Responses, as Open Responses defines them: an agent is a model whose tool calls are visible.
//!
//! A response is a segment of a session: a run, or the part of it between two waits for somebody. Its id says which one, so a
//! response that is read again is read from the log. Calls that Patter made are pairs of `function_call` and
//! `function_call_output`; a `function_call` without an output is for the client, and calls that need approval are
//! `mcp_approval_request`s. The next request answers them.

mod id;
mod input;
mod request;
mod response;
mod stream;

pub use id::{ResponseId, approval_id};
pub use input::{ClientAnswer, ResponsesInput};
pub use request::{PreviousState, ResponsesRequest};
pub use response::ResponseMeta;
pub use stream::ResponseStream;
