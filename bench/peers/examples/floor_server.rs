//! The floor of a server: streams hello turns written by hand, without sessions, limits, tokens, traces or a store.
//!
//! ```text
//! floor_server --base-url http://HOST:PORT/v1
//! ```
//!
//! It prints `{"listening":"HOST:PORT"}` once it accepts connections.
#![allow(clippy::print_stdout, reason = "the address is its output")]

use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use mimalloc::MiMalloc;
use patter_bench_peers::floor::Floor;
use patter_bench_peers::harness::{Options, TurnError};
use patter_bench_peers::hello::PROMPT;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::borrow::Cow;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpSocket;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// The allocator of `patter`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// How many connections may wait to be accepted: thousands of clients connect at once.
const BACKLOG: u32 = 4096;
/// How many chunks may wait for a slow client.
const MAX_PENDING: usize = 64;

type Body = UnsyncBoxBody<Bytes, Infallible>;

#[tokio::main]
async fn main() -> Result<(), TurnError> {
    let options = Options { is_streaming: true, ..Options::from_args()? };
    let floor = Arc::new(Floor::new(&options)?);
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let listener = socket.listen(BACKLOG)?;
    println!("{}", json!({ "listening": listener.local_addr()?.to_string() }));
    loop {
        let (connection, _) = listener.accept().await?;
        connection.set_nodelay(true)?;
        let floor = Arc::clone(&floor);
        tokio::spawn(async move {
            let service = service_fn(|request| serve(request, Arc::clone(&floor)));
            let connection =
                http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(connection), service);
            // Clients close connections whenever they end.
            let _ = connection.await;
        });
    }
}

/// The parts of a request that are read.
#[derive(Deserialize)]
struct ChatRequest<'a> {
    #[serde(borrow)]
    messages: Vec<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Cow<'a, str>,
}

#[derive(Serialize)]
struct Chunk<'a> {
    id: &'a str,
    object: &'a str,
    created: u64,
    model: &'a str,
    choices: [Choice<'a>; 1],
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    delta: Delta<'a>,
    finish_reason: Option<&'a str>,
}

#[derive(Serialize)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
}

async fn serve(request: Request<Incoming>, floor: Arc<Floor>) -> Result<Response<Body>, TurnError> {
    let body = request.into_body().collect().await?.to_bytes();
    let request: ChatRequest<'_> = serde_json::from_slice(&body)?;
    if request.messages.last().is_none_or(|message| message.content != PROMPT) {
        return Err("unexpected message".into());
    }
    let (sender, chunks) = mpsc::channel(MAX_PENDING);
    tokio::spawn(async move {
        // An answer has fewer pieces than may wait.
        let send = |bytes: Bytes| drop(sender.try_send(bytes));
        let turn = floor.turn(|text| send(chunk(Some(text), None))).await;
        match turn {
            Ok(_) => send(chunk(None, Some("stop"))),
            Err(error) => send(Bytes::from(format!("data: {}\n\n", json!({ "error": error.to_string() })))),
        }
        send(Bytes::from_static(b"data: [DONE]\n\n"));
    });
    let frames = ReceiverStream::new(chunks).map(|chunk| Ok(Frame::data(chunk)));
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

/// Returns an event of the stream.
fn chunk(content: Option<&str>, finish_reason: Option<&str>) -> Bytes {
    let chunk = Chunk {
        id: "chatcmpl-floor",
        object: "chat.completion.chunk",
        created: 0,
        model: "hello_world_agent",
        choices: [Choice { index: 0, delta: Delta { content }, finish_reason }],
    };
    Bytes::from(format!("data: {}\n\n", serde_json::to_string(&chunk).unwrap_or_default()))
}
