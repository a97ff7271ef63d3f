//! `patter serve` as a process that is killed while many clients use it.

use crate::folder::Folder;
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const CLIENTS: usize = 40;
/// How long everything may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A model and a cash desk: the model pays for the order that it is asked about, and says how that went.
#[derive(Default)]
pub(crate) struct World {
    /// How often each order was paid.
    pub(crate) payments: Mutex<HashMap<String, usize>>,
    pub(crate) paid: AtomicUsize,
    /// When the model was called.
    pub(crate) model_calls: Mutex<Vec<Instant>>,
    /// The seconds after which the next call of the model is to be repeated, instead of an answer; 0 for an answer.
    pub(crate) retry_after: AtomicUsize,
    is_over: AtomicBool,
}

/// A request of either side.
struct Request {
    path: String,
    body: Json,
}

fn read_request(reader: &mut impl BufRead) -> Option<Request> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|length| *length > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    Some(Request { path, body: serde_json::from_slice(&body).unwrap_or_default() })
}

impl World {
    pub(crate) fn start() -> (Arc<Self>, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let world = Arc::new(Self::default());
        let shared = Arc::clone(&world);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let world = Arc::clone(&shared);
                if world.is_over.load(Ordering::SeqCst) {
                    return;
                }
                thread::spawn(move || world.serve(&stream.unwrap()));
            }
        });
        (world, port)
    }

    /// Ends it with the next connection.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    fn serve(&self, mut stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(request) = read_request(&mut reader) {
            let mut status = "200 OK".to_owned();
            let body = match request.path.as_str() {
                "/pay" => self.pay(request.body["order"].as_str().unwrap()),
                _ => {
                    self.model_calls.lock().unwrap().push(Instant::now());
                    match self.retry_after.swap(0, Ordering::SeqCst) {
                        0 => reply(&request.body),
                        seconds => {
                            status = format!("429 Too Many Requests\r\nRetry-After: {seconds}");
                            json!({"error": {"message": "slow down"}}).to_string()
                        }
                    }
                }
            };
            let length = body.len();
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
            if stream.write_all((head + &body).as_bytes()).is_err() {
                return;
            }
        }
    }

    fn pay(&self, order: &str) -> String {
        *self.payments.lock().unwrap().entry(order.to_owned()).or_default() += 1;
        self.paid.fetch_add(1, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(20));
        json!({"receipt": order}).to_string()
    }
}

/// Returns the reply of the model.
fn reply(request: &Json) -> String {
    thread::sleep(Duration::from_millis(100));
    let messages = request["messages"].as_array().unwrap();
    let order = messages.iter().find(|message| message["role"] == "user").unwrap()["content"].as_str().unwrap();
    let result = messages.iter().find(|message| message["role"] == "tool");
    let message = match result {
        None => {
            let function = json!({"name": "pay", "arguments": json!({"order": order}).to_string()});
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": format!("c{order}"), "type": "function", "function": function}]})
        }
        Some(result) => {
            let is_paid = result["content"].as_str().unwrap().contains("receipt");
            json!({"role": "assistant", "content": format!("{} {order}", if is_paid { "paid" } else { "unknown" })})
        }
    };
    let finish = if result.is_none() { "tool_calls" } else { "stop" };
    json!({"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
    .to_string()
}

/// A server that may be killed.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) port: u16,
}

impl Served {
    pub(crate) fn start(folder: &Folder, store: &str) -> Self {
        let mut command = folder.command();
        command.args(["serve", "a.gram", "--listen", "127.0.0.1:0", "--takeover-after", "2s", "--store", store]);
        command.env("OPENAI_API_KEY", "none");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut port = None;
        let mut said = String::new();
        for output in [Box::new(child.stderr.take().unwrap()) as Box<dyn Read>, Box::new(child.stdout.take().unwrap())]
        {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                said.push_str(&line);
                port = line.split("http://127.0.0.1:").nth(1).and_then(|rest| rest.trim().parse().ok());
                if port.is_some() {
                    break;
                }
            }
            if port.is_some() {
                break;
            }
        }
        Self { child, port: port.unwrap_or_else(|| panic!("{said}")) }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a project whose agent pays for orders with the model and the cash desk at a port.
pub(crate) fn shop(port: u16) -> Folder {
    let folder = Folder::new();
    folder.write(
        "patter.toml",
        format!("[models.OpenAI]\nbase-url = \"http://127.0.0.1:{port}/v1\"\napi = \"chat\"\n[http]\nallow = [\"127.0.0.1\"]\n"),
    );
    folder.write(
        "a.gram",
        format!(
            "[clerk:Agent {{ instruction: \"Pay.\", model: \"OpenAI/m\" }} | pay]\n\
             [pay:Http {{ description: \"Pays\", method: \"POST\", url: \"http://127.0.0.1:{port}/pay\", body: {{ order: \"{{order}}\" }}, retries: 0 }} |\n  \
             (order::Text)==>(::Text)]\n"
        ),
    );
    folder
}

/// Sends a request once. Returns nothing if the server is gone, or about to be.
fn ask(port: u16, order: &str) -> Option<Json> {
    let body = json!({"model": "clerk", "messages": [{"role": "user", "content": order}]}).to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
         Idempotency-Key: key-{order}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    let (head, body) = response.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?;
    match status {
        "200" => serde_json::from_str(body).ok(),
        "503" => None,
        _ => panic!("{order}: {response}"),
    }
}

#[test]
fn nothing_is_lost_or_repeated_when_the_server_is_killed() {
    let (world, port) = World::start();
    let folder = shop(port);
    let served = Arc::new(Mutex::new(Served::start(&folder, "s.db")));
    let deadline = Instant::now() + LIMIT;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let served = Arc::clone(&served);
            thread::spawn(move || {
                // They do not all come at once.
                thread::sleep(Duration::from_millis(u64::try_from(number).unwrap() * 15));
                let order = format!("order{number}");
                while Instant::now() < deadline {
                    let port = served.lock().unwrap().port;
                    if let Some(answer) = ask(port, &order) {
                        return answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
                    }
                    thread::sleep(Duration::from_millis(50));
                }
                panic!("{order} was not answered");
            })
        })
        .collect();
    for paid in [CLIENTS / 3, 2 * CLIENTS / 3] {
        while world.paid.load(Ordering::SeqCst) < paid && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        let mut served = served.lock().unwrap();
        served.child.kill().unwrap();
        served.child.wait().unwrap();
        *served = Served::start(&folder, "s.db");
    }
    let answers: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    let payments = world.payments.lock().unwrap();
    let mut unknown = 0;
    for (number, answer) in answers.iter().enumerate() {
        let order = format!("order{number}");
        let count = payments.get(&order).copied().unwrap_or_default();
        // A payment whose result did not arrive before the end of the process is not made again: the model learns that nobody knows.
        match answer == &format!("paid {order}") {
            true => assert_eq!(count, 1, "{order}"),
            false => {
                assert_eq!((answer, count <= 1), (&format!("unknown {order}"), true));
                unknown += 1;
            }
        }
    }
    assert!(unknown < CLIENTS, "{answers:?}");
    let listed = folder.output(&["sessions", "--store", "s.db", "--limit", "1000", "--format", "json"], "");
    let listed: Json = serde_json::from_slice(&listed.stdout).unwrap();
    let sessions = listed.as_array().or_else(|| listed["sessions"].as_array()).unwrap();
    assert_eq!(sessions.len(), CLIENTS, "{listed}");
    assert!(sessions.iter().all(|session| session["state"] == "idle"), "{listed}");
    world.end();
    let mut served = served.lock().unwrap();
    served.child.kill().unwrap();
    served.child.wait().unwrap();
}
