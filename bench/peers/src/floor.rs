//! The hello turn written by hand on the HTTP client that Patter uses, without a framework.
//!
//! It sends the same requests as Patter with the same client settings, and checks the arguments of the call by
//! deserialising them.

use crate::harness::{Options, TurnError};
use crate::hello::{ANSWER, INSTRUCTION, MODEL, PROMPT, TOOL};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, Url};
use rustls::{ClientConfig, RootCertStore};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The limit that Patter has by default.
const MAX_MODEL_CALLS: usize = 10;

/// The declaration that Patter sends for the tool of `examples/hello.gram`.
const TOOLS: &str = r#"[{"type":"function","function":{"name":"sayHello","description":"Returns a friendly greeting for the given name","parameters":{"type":"object","properties":{"personName":{"type":["string","null"]}},"required":["personName"],"additionalProperties":false},"strict":true}}]"#;

/// A client of a provider that plays turns.
pub struct Floor {
    client: Client,
    url: Url,
    headers: HeaderMap,
    tools: Box<RawValue>,
    is_streaming: bool,
    /// How many turns a conversation has.
    session_turns: usize,
    /// The conversations that have fewer, with the number of their turns.
    open: Mutex<Vec<(Vec<Message>, usize)>>,
}

impl Floor {
    /// Creates a client.
    pub fn new(options: &Options) -> Result<Self, TurnError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer none"));
        Ok(Self {
            client: client()?,
            url: Url::parse(&format!("{}/chat/completions", options.base_url))?,
            headers,
            tools: RawValue::from_string(TOOLS.to_owned())?,
            is_streaming: options.is_streaming,
            session_turns: options.session_turns,
            open: Mutex::default(),
        })
    }

    /// Plays a turn and returns the number of tool calls. Text is passed on as it is streamed.
    pub async fn turn(&self, mut on_text: impl FnMut(&str)) -> Result<usize, TurnError> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let (mut messages, turns) = open.unwrap_or_else(|| (vec![Message::System { content: INSTRUCTION }], 0));
        messages.push(Message::User { content: PROMPT });
        let mut tool_calls = 0;
        for _ in 0..MAX_MODEL_CALLS {
            let reply = self.ask(&messages, &mut on_text).await?;
            if reply.tool_calls.is_empty() {
                if reply.content.as_deref() != Some(ANSWER) {
                    return Err(format!("unexpected answer {:?}", reply.content).into());
                }
                messages.push(Message::Assistant { content: reply.content, tool_calls: Vec::new() });
                if turns + 1 < self.session_turns {
                    self.open.lock().unwrap_or_else(PoisonError::into_inner).push((messages, turns + 1));
                }
                return Ok(tool_calls);
            }
            let mut results = Vec::with_capacity(reply.tool_calls.len());
            for call in &reply.tool_calls {
                results.push(Message::Tool { tool_call_id: call.id.clone(), content: perform(&call.function)? });
                tool_calls += 1;
            }
            messages.push(Message::Assistant { content: reply.content, tool_calls: reply.tool_calls });
            messages.append(&mut results);
        }
        Err("the model did not answer".into())
    }

    async fn ask(&self, messages: &[Message], on_text: &mut impl FnMut(&str)) -> Result<Reply, TurnError> {
        let request = Request {
            model: MODEL,
            messages,
            tools: &self.tools,
            stream: self.is_streaming.then_some(true),
            stream_options: self.is_streaming.then_some(StreamOptions { include_usage: true }),
        };
        let body = serde_json::to_vec(&request)?;
        let response = self.client.post(self.url.clone()).headers(self.headers.clone()).body(body).send().await?;
        let status = response.status();
        if !status.is_success() {
            return Err(format!("{status}: {}", response.text().await?).into());
        }
        if self.is_streaming { read_stream(response, on_text).await } else { read_whole(response).await }
    }
}

/// Builds a client with the settings of Patter's.
fn client() -> Result<Client, TurnError> {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(Duration::from_secs(10))
        .user_agent("floor")
        .no_proxy();
    Ok(builder.build()?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Arguments {
    person_name: Option<String>,
}

/// Checks the arguments of a call and performs it.
fn perform(function: &Function) -> Result<String, TurnError> {
    if function.name != TOOL {
        return Err(format!("unknown tool `{}`", function.name).into());
    }
    let Arguments { person_name } = serde_json::from_str(&function.arguments)?;
    Ok(format!("Hello, {}!", person_name.as_deref().unwrap_or("world")))
}

async fn read_whole(response: Response) -> Result<Reply, TurnError> {
    let completion: Completion = serde_json::from_slice(&response.bytes().await?)?;
    let choice = completion.choices.into_iter().next().ok_or("the reply has no choice")?;
    Ok(choice.message)
}

/// Reads a stream of server-sent events to its end, so that the connection can be reused.
async fn read_stream(mut response: Response, on_text: &mut impl FnMut(&str)) -> Result<Reply, TurnError> {
    let mut reply = Reply::default();
    let mut pending = Vec::new();
    let mut is_done = false;
    while let Some(bytes) = response.chunk().await? {
        pending.extend_from_slice(&bytes);
        let mut rest = pending.as_slice();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(end);
            rest = after.get(1..).unwrap_or_default();
            match line.strip_prefix(b"data: ") {
                None => {}
                Some(b"[DONE]") => is_done = true,
                Some(data) => reply.extend(serde_json::from_slice(data)?, on_text),
            }
        }
        let consumed = pending.len() - rest.len();
        pending.drain(..consumed);
    }
    if is_done { Ok(reply) } else { Err("the stream ended early".into()) }
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: &'a [Message],
    tools: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message {
    System {
        content: &'static str,
    },
    User {
        content: &'static str,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    Tool {
        tool_call_id: String,
        content: String,
    },
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Reply,
}

#[derive(Default, Deserialize)]
struct Reply {
    content: Option<String>,
    #[serde(default)]
    tool_calls: Vec<ToolCall>,
}

#[derive(Default, Serialize, Deserialize)]
struct ToolCall {
    id: String,
    r#type: String,
    function: Function,
}

#[derive(Default, Serialize, Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

impl Reply {
    /// Adds what a chunk of a stream says.
    fn extend(&mut self, chunk: Chunk, on_text: &mut impl FnMut(&str)) {
        let Some(ChunkChoice { delta }) = chunk.choices.into_iter().next() else { return };
        if let Some(text) = delta.content.filter(|text| !text.is_empty()) {
            on_text(&text);
            self.content.get_or_insert_default().push_str(&text);
        }
        for piece in delta.tool_calls {
            if self.tool_calls.len() <= piece.index {
                self.tool_calls.resize_with(piece.index + 1, ToolCall::default);
            }
            let Some(call) = self.tool_calls.get_mut(piece.index) else { continue };
            if let Some(id) = piece.id {
                call.id = id;
                call.r#type = "function".to_owned();
            }
            if let Some(name) = piece.function.name {
                call.function.name = name;
            }
            call.function.arguments.push_str(piece.function.arguments.as_deref().unwrap_or_default());
        }
    }
}

#[derive(Deserialize)]
struct Chunk {
    choices: Vec<ChunkChoice>,
}

#[derive(Deserialize)]
struct ChunkChoice {
    delta: Delta,
}

#[derive(Deserialize)]
struct Delta {
    content: Option<String>,
    #[serde(default)]
    tool_calls: Vec<ToolCallPiece>,
}

#[derive(Deserialize)]
struct ToolCallPiece {
    index: usize,
    id: Option<String>,
    function: FunctionPiece,
}

#[derive(Deserialize)]
struct FunctionPiece {
    name: Option<String>,
    arguments: Option<String>,
}
