//! Local test servers.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::Response;
use patter::declare::{HttpSpec, ToolSpec};
use patter::http::{HttpClient, NetworkPolicy};
use patter::tool::{Progress, Tool, ToolContext, ToolFailure, http_tool};
use patter::types::signature::Records;
use serde_json::{Value as Json, json};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A server, and the requests that it received.
pub(super) struct Server {
    pub(super) base: String,
    pub(super) requests: Arc<Mutex<Vec<Json>>>,
}

impl Server {
    /// Starts a server that responds with the result of a function of the number and content of each request.
    pub(super) async fn start(respond: impl Fn(usize, &Json) -> Response<Body> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        let respond = Arc::new(respond);
        let app = axum::Router::new().fallback(move |request: Request| {
            let log = Arc::clone(&log);
            let respond = Arc::clone(&respond);
            async move {
                let seen = describe(request).await;
                let number = {
                    let mut log = log.lock().unwrap();
                    log.push(seen.clone());
                    log.len() - 1
                };
                respond(number, &seen)
            }
        });
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { base, requests }
    }

    /// Starts a server that responds with the request.
    pub(super) async fn echo() -> Self {
        Self::start(|_, seen| reply(200, &[("content-type", "application/json")], seen.to_string())).await
    }

    pub(super) fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    pub(super) fn request(&self, number: usize) -> Json {
        self.requests.lock().unwrap()[number].clone()
    }

    /// Returns host and port.
    pub(super) fn host(&self) -> &str {
        self.base.strip_prefix("http://").unwrap()
    }
}

async fn describe(request: Request) -> Json {
    let (head, body) = request.into_parts();
    let body = String::from_utf8(to_bytes(body, usize::MAX).await.unwrap().to_vec()).unwrap();
    let headers = head.headers.iter();
    let headers: serde_json::Map<_, _> = headers
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned().into()))
        .collect();
    json!({"method": head.method.as_str(), "target": head.uri.to_string(), "headers": headers, "body": body})
}

pub(super) fn reply(status: u16, headers: &[(&str, &str)], body: impl Into<Body>) -> Response<Body> {
    let mut builder = Response::builder().status(status);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(body.into()).unwrap()
}

/// Starts a server that reads the head of each request and then calls a function. Returns its base URL.
pub(super) async fn raw<F: Future<Output = ()> + Send>(
    write: impl Fn(TcpStream) -> F + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            write(stream).await;
        }
    });
    base
}

/// Writes a text, and then the same bytes until the client is gone.
pub(super) async fn write_endlessly(mut stream: TcpStream, head: &str, bytes: &[u8]) {
    stream.write_all(head.as_bytes()).await.unwrap();
    while stream.write_all(bytes).await.is_ok() {}
}

/// Creates a client that allows the address of this machine.
pub(super) fn client() -> HttpClient {
    HttpClient::new(NetworkPolicy::from_allow_list(["127.0.0.1"]).unwrap(), |_| None)
}

/// Creates a tool from a record and a signature. `BASE` in the record is replaced by the URL of the server.
pub(crate) fn tool(base: &str, record: &str, signature: &str) -> Tool {
    tool_with(&client(), base, record, signature, &[])
}

/// Creates a tool like [`tool`], with a client and environment variables.
pub(super) fn tool_with(
    client: &HttpClient,
    base: &str,
    record: &str,
    signature: &str,
    variables: &'static [(&str, &str)],
) -> Tool {
    let text = format!("[t:Http {{description: 'Tests', {}}} | {signature}]", record.replace("BASE", base));
    let (tree, diagnostics) = patter::gram::parse(&text);
    assert!(diagnostics.is_empty(), "{text}\n{diagnostics:?}");
    let spec = ToolSpec::cast(tree.patterns().next().unwrap()).unwrap();
    let definition = spec.definition(&Arc::new(Records::default())).unwrap();
    let spec = HttpSpec::read(spec.pattern().unwrap(), &definition.signature)
        .unwrap_or_else(|found| panic!("{text}\n{found:?}"));
    let variable =
        move |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    http_tool(definition, spec, client, Arc::new(variable))
}

pub(super) async fn call(tool: &Tool, arguments: Json) -> Result<Json, ToolFailure> {
    tool.implementation.call(arguments, &ToolContext::new("call")).await
}

/// Calls a tool, and also returns its progress messages.
pub(super) async fn call_listening(tool: &Tool, arguments: Json) -> (Result<Json, ToolFailure>, Vec<String>) {
    let messages = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&messages);
    let listen = move |progress: Progress| listener.lock().unwrap().push(progress.message);
    let context = ToolContext::new("call").with_progress(Arc::new(listen));
    let result = tool.implementation.call(arguments, &context).await;
    let messages = messages.lock().unwrap().clone();
    (result, messages)
}

/// Calls a tool that fails, and returns the message.
pub(super) async fn failure(tool: &Tool, arguments: Json) -> String {
    call(tool, arguments).await.unwrap_err().message().to_owned()
}
