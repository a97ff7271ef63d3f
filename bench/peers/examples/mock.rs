//! A mock provider: speaks OpenAI's chat completions, whole and streamed, and plays the model of the hello turn.
//!
//! ```text
//! mock [--port PORT] [--delay-ms MS] [--chunk-delay-ms MS]
//! ```
//!
//! It prints `{"listening":"HOST:PORT"}` once it accepts connections. It is stateless: the last message of a request
//! decides what it replies. A request that is not part of the hello turn is answered with status 400.
#![allow(clippy::print_stdout, reason = "the address is its output")]

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use patter_bench_peers::hello::{ANSWER, ARGUMENTS, GREETING, MODEL, TOOL};
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::convert::Infallible;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpSocket;

/// How many connections may wait to be accepted: thousands of clients connect at once.
const BACKLOG: u32 = 4096;

type Body = UnsyncBoxBody<Bytes, Infallible>;

// One thread, since the benchmark gives it one core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::from_args()?;
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, options.port)))?;
    let listener = socket.listen(BACKLOG)?;
    println!("{}", json!({ "listening": listener.local_addr()?.to_string() }));
    loop {
        let connection = match listener.accept().await {
            Ok((connection, _)) => connection,
            Err(error) => {
                eprintln!("error: cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        connection.set_nodelay(true)?;
        tokio::spawn(async move {
            let service = service_fn(|request| serve(request, options));
            let connection =
                http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(connection), service);
            // Clients close connections whenever they end.
            let _ = connection.await;
        });
    }
}

#[derive(Debug, Clone, Copy)]
struct Options {
    port: u16,
    /// How long a reply takes to begin.
    delay: Duration,
    /// The pause before each chunk of a streamed reply.
    chunk_delay: Duration,
}

impl Options {
    fn from_args() -> Result<Self, Box<dyn Error>> {
        let mut options = Self { port: 0, delay: Duration::ZERO, chunk_delay: Duration::ZERO };
        let mut args = std::env::args().skip(1);
        while let Some(flag) = args.next() {
            let value = args.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
            match flag.as_str() {
                "--port" => options.port = value.parse()?,
                "--delay-ms" => options.delay = Duration::from_millis(value.parse()?),
                "--chunk-delay-ms" => options.chunk_delay = Duration::from_millis(value.parse()?),
                _ => return Err(format!("unknown option `{flag}`").into()),
            }
        }
        Ok(options)
    }
}

async fn serve(request: Request<Incoming>, options: Options) -> Result<Response<Body>, hyper::Error> {
    if request.uri().path() != "/v1/chat/completions" {
        return Ok(refuse(StatusCode::NOT_FOUND, "unknown path"));
    }
    if request.method() != Method::POST {
        return Ok(refuse(StatusCode::METHOD_NOT_ALLOWED, "use POST"));
    }
    let body = request.into_body().collect().await?.to_bytes();
    if !options.delay.is_zero() {
        tokio::time::sleep(options.delay).await;
    }
    let request: ChatRequest<'_> = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => return Ok(refuse(StatusCode::BAD_REQUEST, &error.to_string())),
    };
    let reply = match request.reply() {
        Ok(reply) => reply,
        Err(problem) => return Ok(refuse(StatusCode::BAD_REQUEST, problem)),
    };
    // Tokens are estimated at four bytes each, so that usage differs between requests as it does in life.
    let prompt_tokens = body.len() / 4;
    Ok(if request.stream {
        let has_usage = request.stream_options.is_some_and(|options| options.include_usage);
        respond_in_chunks(&reply, has_usage.then_some(prompt_tokens), options.chunk_delay)
    } else {
        respond(StatusCode::OK, &reply.completion(prompt_tokens))
    })
}

/// The parts of a request that decide the reply.
#[derive(Deserialize)]
struct ChatRequest<'a> {
    #[serde(borrow)]
    messages: Vec<Message<'a>>,
    #[serde(borrow, default)]
    tools: Vec<Tool<'a>>,
    #[serde(default)]
    stream: bool,
    stream_options: Option<StreamOptions>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_calls: Vec<ToolCall<'a>>,
    #[serde(borrow)]
    tool_call_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

impl ChatRequest<'_> {
    fn reply(&self) -> Result<Reply, &'static str> {
        let last = self.messages.last().ok_or("there are no messages")?;
        match last.role.as_ref() {
            "user" if self.tools.iter().any(|tool| tool.function.name == TOOL) => Ok(Reply::call()),
            // A conversation to be summarized.
            "user" if self.tools.is_empty() => Ok(Reply::Answer),
            "user" => Err("the tool is not declared"),
            "tool" => {
                let calls = self.messages.iter().flat_map(|message| &message.tool_calls);
                if !calls.into_iter().any(|call| last.tool_call_id.as_deref() == Some(call.id.as_ref())) {
                    return Err("the tool result answers no call");
                }
                if !last.content.as_deref().is_some_and(|content| content.contains(GREETING)) {
                    return Err("the tool result is not the greeting");
                }
                Ok(Reply::Answer)
            }
            _ => Err("the last message must come from the user or a tool"),
        }
    }
}

/// What the model says.
enum Reply {
    Call { id: String },
    Answer,
}

impl Reply {
    /// Returns a call of the tool with an id of its own.
    fn call() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self::Call { id: format!("call_{:08}", NEXT.fetch_add(1, Ordering::Relaxed)) }
    }

    fn finish_reason(&self) -> &'static str {
        match self {
            Self::Call { .. } => "tool_calls",
            Self::Answer => "stop",
        }
    }

    fn usage(&self, prompt_tokens: usize) -> Value {
        let completion_tokens = match self {
            Self::Call { .. } => ARGUMENTS.len() / 4,
            Self::Answer => ANSWER.len() / 4,
        };
        json!({
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        })
    }

    fn completion(&self, prompt_tokens: usize) -> Value {
        let message = match self {
            Self::Call { id } => {
                let function = json!({ "name": TOOL, "arguments": ARGUMENTS });
                let call = json!({ "id": id, "type": "function", "function": function });
                json!({ "role": "assistant", "content": null, "tool_calls": [call] })
            }
            Self::Answer => json!({ "role": "assistant", "content": ANSWER }),
        };
        json!({
            "id": "chatcmpl-mock",
            "object": "chat.completion",
            "created": 0,
            "model": MODEL,
            "choices": [{ "index": 0, "message": message, "finish_reason": self.finish_reason() }],
            "usage": self.usage(prompt_tokens),
        })
    }

    /// Returns the deltas of a streamed reply. Arguments and text are split as a provider would, into short pieces.
    fn deltas(&self) -> Vec<Value> {
        match self {
            Self::Call { id } => {
                let function = json!({ "name": TOOL, "arguments": "" });
                let call = json!({ "index": 0, "id": id, "type": "function", "function": function });
                let mut deltas = vec![json!({ "role": "assistant", "content": null, "tool_calls": [call] })];
                deltas.extend(
                    ARGUMENTS
                        .split_inclusive(['"', ':'])
                        .map(|piece| json!({ "tool_calls": [{ "index": 0, "function": { "arguments": piece } }] })),
                );
                deltas
            }
            Self::Answer => {
                let mut deltas = vec![json!({ "role": "assistant", "content": "" })];
                deltas.extend(ANSWER.split_inclusive(' ').map(|word| json!({ "content": word })));
                deltas
            }
        }
    }

    /// Returns the server-sent events of a streamed reply, one chunk each.
    fn events(&self, usage_of: Option<usize>) -> Vec<Bytes> {
        let event = |choices: Value, usage: Value| {
            let chunk = json!({
                "id": "chatcmpl-mock",
                "object": "chat.completion.chunk",
                "created": 0,
                "model": MODEL,
                "choices": choices,
                "usage": usage,
            });
            Bytes::from(format!("data: {chunk}\n\n"))
        };
        let choice = |delta: Value, finish: Option<&str>| {
            event(json!([{ "index": 0, "delta": delta, "finish_reason": finish }]), Value::Null)
        };
        let mut events: Vec<_> = self.deltas().into_iter().map(|delta| choice(delta, None)).collect();
        events.push(choice(json!({}), Some(self.finish_reason())));
        if let Some(prompt_tokens) = usage_of {
            events.push(event(json!([]), self.usage(prompt_tokens)));
        }
        events.push(Bytes::from_static(b"data: [DONE]\n\n"));
        events
    }
}

fn respond(status: StatusCode, body: &Value) -> Response<Body> {
    let body = Full::new(Bytes::from(body.to_string())).boxed_unsync();
    with_type(status, "application/json", body)
}

fn refuse(status: StatusCode, message: &str) -> Response<Body> {
    respond(status, &json!({ "error": { "message": message, "type": "invalid_request_error" } }))
}

fn respond_in_chunks(reply: &Reply, usage_of: Option<usize>, delay: Duration) -> Response<Body> {
    let chunks = stream::iter(reply.events(usage_of)).then(move |chunk| async move {
        if delay.is_zero() {
            // Without a pause the chunks would leave in one packet, which no provider does.
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(delay).await;
        }
        Ok(Frame::data(chunk))
    });
    with_type(StatusCode::OK, "text/event-stream", StreamBody::new(chunks).boxed_unsync())
}

fn with_type(status: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
