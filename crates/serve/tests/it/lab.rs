//! A server with agents whose tools count their calls, and a client that sends exactly what a test says.

use patter::live::LiveProject;
use patter::project::Environment;
use patter::store::{self, StoreLocation};
use patter::tool::{CancellationToken, Tool};
use patter::trace::Tracer;
use patter_serve::{ServeSettings, Server};
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const AGENTS: &str = "
[greeter:Agent {instruction: 'Greet.', model: 'scripted/FOLDER/greeter.json'} | look]
[slow:Agent {instruction: 'Wait.', model: 'scripted/FOLDER/slow.json'} | pay]
[clerk:Agent {instruction: 'Pay.', model: 'scripted/FOLDER/clerk.json', ask: ['pay']} | pay]
[painter:Agent {instruction: 'Paint.', model: 'scripted/FOLDER/painter.json'} | look]
[boss:Agent {instruction: 'Delegate.', model: 'scripted/FOLDER/boss.json'} | clerk]
[counter:Agent {instruction: 'Count.', model: 'scripted/FOLDER/counter.json', returns: 'Count'}]
[broken:Agent {instruction: 'Fail.', model: 'scripted/FOLDER/broken.json'}]
[Count:Object | (count::Integer)]
";

/// An agent of another file.
const OTHER: &str = "[other:Agent {instruction: 'Greet.', model: 'scripted/FOLDER/counter.json'}]";

/// A server, and what its tools did.
pub(crate) struct Lab {
    pub(crate) folder: Arc<tempfile::TempDir>,
    pub(crate) address: SocketAddr,
    pub(crate) payments: Arc<AtomicUsize>,
    pub(crate) looks: Arc<AtomicUsize>,
    settings: ServeSettings,
    tracer: Option<Tracer>,
    stop: CancellationToken,
    server: Option<JoinHandle<()>>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the data of the server-sent events.
    pub(crate) fn data(&self) -> Vec<&str> {
        self.body.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub(crate) fn error(&self) -> String {
        format!("{} {}", self.status, self.json()["error"]["message"].as_str().unwrap_or_default())
    }
}

fn write_agents(folder: &Path) {
    let call = |tool: &str, arguments: Json| json!({"tool": tool, "arguments": arguments});
    let usage = json!({"inputTokens": 10, "cachedTokens": 4, "outputTokens": 3, "reasoningTokens": 1});
    let pay = call("pay", json!({"euros": 5}));
    let scripts = [
        (
            "greeter.json",
            json!([
                {"text": "Let me look.", "calls": [call("look", json!({}))], "usage": usage},
                {"text": "Hello!", "usage": usage},
                {"text": "Hello again!", "usage": usage},
            ]),
        ),
        ("slow.json", json!([{"calls": [pay]}, {"text": "Late.", "delayMs": 700}, {"text": "Later.", "delayMs": 700}])),
        ("clerk.json", json!([{"calls": [pay]}, {"text": "Done.", "expect": {}}])),
        (
            "painter.json",
            json!([
                {"calls": [call("look", json!({})), call("pick/color", json!({"of": "door"}))],
                 "expect": {"instruction": ["Paint.", "The door is old."]}},
                {"text": "Painted.", "expect": {"results": ["seen", "red"]}},
            ]),
        ),
        (
            "boss.json",
            json!([{"text": "I ask.", "thought": "Who pays?", "calls": [call("clerk", json!({"input": "Pay"}))]}, {"text": "All paid."}]),
        ),
        ("counter.json", json!([{"text": "{\"count\": 3}"}])),
        ("broken.json", json!([{"error": {"message": "out of order", "status": 400}}])),
    ];
    for (name, script) in scripts {
        std::fs::write(folder.join(name), script.to_string()).unwrap();
    }
    for (name, text) in [("a.gram", AGENTS), ("b.gram", OTHER)] {
        std::fs::write(folder.join(name), text.replace("FOLDER", &folder.display().to_string())).unwrap();
    }
    std::fs::write(folder.join("patter.toml"), "").unwrap();
}

impl Lab {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// Starts a server with other settings.
    pub(crate) async fn with(change: impl FnOnce(&mut ServeSettings)) -> Self {
        Self::configured(change, None).await
    }

    /// Starts a server that exports what happens.
    pub(crate) async fn traced(tracer: Tracer) -> Self {
        Self::configured(|_| {}, Some(tracer)).await
    }

    /// Starts a server with another file.
    pub(crate) async fn with_file(text: &str, change: impl FnOnce(&mut ServeSettings), tracer: Option<Tracer>) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let text = text.replace("FOLDER", &folder.path().display().to_string());
        std::fs::write(folder.path().join("more.gram"), text).unwrap();
        Self::in_folder(folder, change, tracer).await
    }

    async fn configured(change: impl FnOnce(&mut ServeSettings), tracer: Option<Tracer>) -> Self {
        Self::in_folder(Arc::new(tempfile::tempdir().unwrap()), change, tracer).await
    }

    async fn in_folder(
        folder: Arc<tempfile::TempDir>,
        change: impl FnOnce(&mut ServeSettings),
        tracer: Option<Tracer>,
    ) -> Self {
        write_agents(folder.path());
        let mut settings = ServeSettings::default();
        settings.limits.disconnect_grace = Duration::from_millis(100);
        change(&mut settings);
        let address = ([127, 0, 0, 1], 0).into();
        let stop = CancellationToken::new();
        let payments = Arc::default();
        let looks = Arc::default();
        let mut lab = Self { folder, address, payments, looks, settings, tracer, stop, server: None };
        lab.start().await;
        lab
    }

    /// Starts another server with the same store, and the same tools.
    pub(crate) async fn beside(&self) -> Self {
        let mut lab = Self {
            folder: Arc::clone(&self.folder),
            address: ([127, 0, 0, 1], 0).into(),
            payments: Arc::clone(&self.payments),
            looks: Arc::clone(&self.looks),
            settings: self.settings.clone(),
            tracer: None,
            stop: CancellationToken::new(),
            server: None,
        };
        lab.start().await;
        lab
    }

    async fn start(&mut self) {
        let tool = |name, signature, calls: &Arc<AtomicUsize>, result: &'static str| {
            let calls = Arc::clone(calls);
            let tool = Tool::native(name, "Does it", signature, move |_, _| {
                calls.fetch_add(1, Ordering::SeqCst);
                async move { Ok(json!(result)) }
            });
            tool.unwrap()
        };
        let pay = tool("pay", "(euros::Integer)==>(::Text)", &self.payments, "paid");
        let look = tool("look", "()==>(::Text)", &self.looks, "seen");
        let project = LiveProject::open(self.folder.path().join("a.gram")).with_tools([pay, look]);
        let project = Arc::new(project.with_environment(Environment::default()).read().await.unwrap());
        let store = store::open(&StoreLocation::Sqlite(self.folder.path().join("s.db"))).await.unwrap();
        let server = Server::new(project, self.settings.clone()).with_store(store).with_tracer(self.tracer.clone());
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        self.stop = CancellationToken::new();
        let stop = self.stop.clone();
        self.server = Some(tokio::spawn(async move { server.serve(listener, stop).await.unwrap() }));
    }

    /// Stops the server, and starts another with the same store.
    pub(crate) async fn restart(&mut self) {
        self.shut_down().await;
        self.address.set_port(0);
        self.start().await;
    }

    /// Starts another server with the same store, at the same address.
    pub(crate) async fn start_again(&mut self) {
        self.start().await;
    }

    pub(crate) async fn shut_down(&mut self) {
        self.stop.cancel();
        self.server.take().unwrap().await.unwrap();
    }

    /// Tells the server to stop, without waiting.
    pub(crate) fn begin_shut_down(&self) {
        self.stop.cancel();
    }

    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.payments.load(Ordering::SeqCst), self.looks.load(Ordering::SeqCst))
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.request("GET", path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Json) -> Response {
        self.post_with(path, &[], body).await
    }

    pub(crate) async fn post_with(&self, path: &str, headers: &[(&str, &str)], body: &Json) -> Response {
        let headers: Vec<_> = headers.iter().copied().chain([("Content-Type", "application/json")]).collect();
        self.request("POST", path, &headers, &body.to_string()).await
    }

    pub(crate) async fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        self.raw(&self.head(method, path, headers, body)).await
    }

    /// Returns the bytes of a request.
    pub(crate) fn head(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            request += &format!("Content-Length: {}\r\n", body.len());
        }
        request + "\r\n" + body
    }

    /// Sends bytes, and reads a response to its end.
    pub(crate) async fn raw(&self, bytes: &str) -> Response {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        let mut response = Vec::new();
        // A server that refuses a request may reset the connection after its response.
        let read = stream.read_to_end(&mut response);
        let _ = tokio::time::timeout(Duration::from_secs(60), read).await.expect("the server does not answer");
        parse(&response)
    }

    /// Sends a request, and returns the open connection.
    pub(crate) async fn send(&self, path: &str, headers: &[(&str, &str)], body: &Json) -> TcpStream {
        let headers: Vec<_> = headers.iter().copied().chain([("Content-Type", "application/json")]).collect();
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(self.head("POST", path, &headers, &body.to_string()).as_bytes()).await.unwrap();
        stream
    }
}

/// Waits until something holds.
pub(crate) async fn until(mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..400 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("it never holds");
}

pub(crate) fn parse(bytes: &[u8]) -> Response {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
    let headers: HashMap<_, _> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let is_chunked = headers.get("transfer-encoding").is_some_and(|encoding| encoding == "chunked");
    let body = if is_chunked { unchunk(body) } else { body.to_owned() };
    Response { status: status.unwrap_or(0), headers, body }
}

fn unchunk(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || rest.len() < size {
            break;
        }
        text += &rest[..size];
        body = rest[size..].trim_start_matches("\r\n");
    }
    text
}
