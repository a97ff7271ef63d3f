//! Traces that commands export.

use crate::folder::Folder;
use crate::terminal::Terminal;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const HELLO: &str = "[hi:Agent {instruction: 'Greet with `sayHello`.', model: 'demo'} | sayHello]\n";

/// The heads and bodies of requests.
type Requests = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A receiver that accepts everything, and the requests that it got.
struct Receiver {
    base: String,
    requests: Requests,
}

impl Receiver {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests = Requests::default();
        let log = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    if stream.read_exact(&mut byte).is_err() {
                        break;
                    }
                    head.push(byte[0]);
                }
                let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
                let Some((_, rest)) = head.split_once("content-length: ") else { continue };
                let mut body = vec![0; rest.split("\r\n").next().unwrap().parse().unwrap()];
                stream.read_exact(&mut body).unwrap();
                log.lock().unwrap().push((head, body));
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
            }
        });
        Self { base, requests }
    }

    /// Returns all bodies so far.
    fn bodies(&self) -> Vec<Vec<u8>> {
        self.requests.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    }
}

fn hello() -> Folder {
    let folder = Folder::new();
    folder.write("patter.toml", "");
    folder.write("hello.gram", HELLO);
    folder
}

/// Runs a command, and returns its exit code and stderr.
fn run(folder: &Folder, arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
    let output = folder.command().args(arguments).envs(variables.iter().copied()).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn run_exports_what_its_session_has() {
    let folder = hello();
    let receiver = Receiver::start();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.base.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=s3cret"),
        ("OTEL_SERVICE_NAME", "shop"),
        ("TRACEPARENT", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ];
    let arguments = ["run", "hello.gram", "Hello! My name is Alice.", "--new", "--session", "alice", "-vvv"];
    let (code, stderr) = run(&folder, &arguments, &variables);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("traces exported exported=4 dropped=0"), "{stderr}");
    assert!(!stderr.contains("s3cret"), "a header was logged: {stderr}");
    let bodies = receiver.bodies();
    assert_eq!(bodies.len(), 1);
    assert!(receiver.requests.lock().unwrap()[0].0.contains("x-key: s3cret"));
    assert!(has(&bodies[0], "execute_tool sayHello") && has(&bodies[0], "shop"));
    assert!(!has(&bodies[0], "Alice"), "nobody asked for what was said");

    // Later, in a pipe or to a file, it is the same.
    let mut export = folder.command();
    export.args(["sessions", "export", "alice", "--format", "otlp"]).env("OTEL_SERVICE_NAME", "shop");
    assert_eq!(export.output().unwrap().stdout, bodies[0]);
    export.args(["-o", "trace.pb"]);
    assert!(export.output().unwrap().status.success());
    assert_eq!(std::fs::read(folder.path().join("trace.pb")).unwrap(), bodies[0]);
    let json = folder.run(&["sessions", "export", "alice", "--format", "otlp-json"]);
    assert!(json.contains(r#""traceId": "4bf92f3577b34da6a3ce929d0e0e4736""#), "{json}");
    assert!(json.contains(r#""parentSpanId": "00f067aa0ba902b7""#), "{json}");
}

#[test]
fn experiments_and_chats_are_exported() {
    let folder = hello();
    let receiver = Receiver::start();
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.base.as_str());
    let content = ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true");
    folder.write("cases.jsonl", "{\"id\": \"one\", \"input\": \"I am Ada\", \"checks\": [{\"contains\": \"Ada\"}]}\n");
    let (code, stderr) = run(&folder, &["eval", "hello.gram", "--cases", "cases.jsonl"], &[endpoint, content]);
    assert_eq!(code, 0, "{stderr}");
    let body = receiver.bodies().concat();
    for text in ["trial one", "invoke_agent hi", "gen_ai.evaluation.result", "patter.experiment.arm", "Hello, Ada!"] {
        assert!(has(&body, text), "{text}");
    }
    let mut chat = folder.command();
    chat.args(["chat", "hello.gram"]).env(endpoint.0, endpoint.1);
    let mut chat = chat.spawn().unwrap();
    chat.stdin.take().unwrap().write_all(b"I am Bob\nGreet me again\n").unwrap();
    assert!(chat.wait().unwrap().success());
    let body = receiver.bodies().concat();
    assert_eq!(body.windows(15).filter(|window| window == b"invoke_agent hi").count(), 3);
}

/// A project does not decide where conversations are sent.
#[test]
fn settings_of_a_project_are_ignored() {
    let folder = hello();
    let receiver = Receiver::start();
    folder.write(".env", format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\nOTEL_TRACES_EXPORTER=otlp\n", receiver.base));
    let (code, stderr) = run(&folder, &["run", "hello.gram", "Hello! My name is Alice."], &[]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(receiver.bodies().len(), 0);
    // Nor does it decide how much is sent to the receiver of the user.
    folder.write(".env", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true\nHTTP_PROXY=http://127.0.0.1:1\n");
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.base.as_str());
    let (code, stderr) = run(&folder, &["run", "hello.gram", "Hello! My name is Alice."], &[endpoint]);
    assert_eq!(code, 0, "{stderr}");
    assert!(receiver.bodies().len() == 1 && !has(&receiver.bodies()[0], "Alice"), "{stderr}");
}

#[test]
fn problems_are_warnings() {
    let folder = hello();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let base = format!("http://{address}");
    let arguments = ["run", "hello.gram", "Hello! My name is Alice."];
    let check = |variables: &[(&str, &str)], warning: &str| {
        let start = Instant::now();
        let (code, stderr) = run(&folder, &arguments, variables);
        assert_eq!(code, 0, "{stderr}");
        assert!(stderr.contains(warning), "{stderr}");
        start.elapsed()
    };
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", base.as_str());
    let warning = "warning: traces are not exported: `OTEL_EXPORTER_OTLP_PROTOCOL`: gRPC is not supported; use \
                   `http/protobuf`, which receivers usually offer on port 4318\n";
    check(&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], warning);
    // Nobody accepts the connection, so that there is no answer.
    let limit = ("OTEL_EXPORTER_OTLP_TIMEOUT", "300");
    let warning = format!("warning: 4 spans were not exported: `{address}` did not respond in time\n");
    let took = check(&[endpoint, limit], &warning);
    assert!(took < Duration::from_secs(5), "{took:?}");
    drop(listener);
    let warning =
        format!("warning: 4 spans were not exported: cannot connect to `{address}`: the connection was refused\n");
    let took = check(&[endpoint], &warning);
    assert!(took < Duration::from_secs(4), "{took:?}");
}

#[test]
fn protobuf_is_not_shown_at_a_terminal() {
    let folder = hello();
    let saved = run(&folder, &["run", "hello.gram", "Hello! My name is Alice.", "--new", "--session", "alice"], &[]);
    assert_eq!(saved.0, 0, "{}", saved.1);
    let mut terminal = Terminal::start(&folder, &["sessions", "export", "alice", "--format", "otlp"], 100);
    assert_eq!(terminal.ends(), Some(2));
    let screen = terminal.screen();
    assert!(screen.contains("error: protobuf cannot be shown at a terminal"), "{screen}");
    assert!(screen.contains("write it to a file with --output, or use `--format otlp-json`"), "{screen}");
}
