//! The world outside: a model, and a shop whose tools count what was done.

use crate::request::{self, Request};
use serde_json::{Value as Json, json};
use std::collections::{BTreeSet, HashMap};
use std::io::{BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// How long a call and a reply take: long enough that faults hit them.
const CALL: Duration = Duration::from_millis(30);
const REPLY: Duration = Duration::from_millis(60);

/// What happened outside.
#[derive(Default)]
pub(crate) struct World {
    orders: Mutex<HashMap<String, Order>>,
    changed: Condvar,
    /// Whether the model does not answer now.
    is_silent: Mutex<bool>,
}

/// What happened to an order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Order {
    /// How often each tool was called.
    pub(crate) calls: HashMap<String, usize>,
    /// The idempotency keys of the calls of each tool.
    pub(crate) keys: HashMap<String, BTreeSet<String>>,
    /// How many results each request to the model had, in the order of the requests.
    pub(crate) results: Vec<usize>,
}

impl Order {
    pub(crate) fn calls(&self, tool: &str) -> usize {
        self.calls.get(tool).copied().unwrap_or_default()
    }
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
                thread::spawn(move || world.serve(&stream.unwrap()));
            }
        });
        (world, port)
    }

    fn serve(&self, mut stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(request) = request::read(&mut reader) {
            let body = match request.path.strip_prefix("/tool/") {
                Some(tool) => self.call(tool, &request),
                None => self.reply(&request.body),
            };
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
            let response = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
            if stream.write_all(response.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn change(&self, order: &str, change: impl FnOnce(&mut Order)) {
        change(self.orders.lock().unwrap().entry(order.to_owned()).or_default());
        self.changed.notify_all();
    }

    fn call(&self, tool: &str, request: &Request) -> String {
        let order = request.body["order"].as_str().unwrap();
        self.change(order, |done| {
            *done.calls.entry(tool.to_owned()).or_default() += 1;
            done.keys.entry(tool.to_owned()).or_default().extend(request.key.clone());
        });
        thread::sleep(CALL);
        json!({"done": format!("{tool} {order}")}).to_string()
    }

    /// Replies as the model: two calls at the same time, another one, and an answer.
    fn reply(&self, request: &Json) -> String {
        let messages = request["messages"].as_array().unwrap();
        let order = messages.iter().find(|message| message["role"] == "user").unwrap()["content"].as_str().unwrap();
        let results: Vec<_> = messages.iter().filter(|message| message["role"] == "tool").collect();
        self.change(order, |done| done.results.push(results.len()));
        thread::sleep(REPLY);
        while *self.is_silent.lock().unwrap() {
            thread::sleep(Duration::from_millis(10));
        }
        let call = |tool: &str| {
            let function = json!({"name": tool, "arguments": json!({"order": order}).to_string()});
            json!({"id": format!("{tool}-{order}"), "type": "function", "function": function})
        };
        let calls = |calls: &[Json]| json!({"role": "assistant", "content": null, "tool_calls": calls});
        let message = match results.len() {
            0 => calls(&[call("pay"), call("look")]),
            2 => calls(&[call("ship")]),
            _ => {
                let is_done = |result: &&Json| result["content"].as_str().unwrap().contains("done");
                let done = results.iter().filter(|result| is_done(result)).count();
                json!({"role": "assistant", "content": format!("{done} of 3 {order}")})
            }
        };
        let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
        let finish = if message["content"].is_null() { "tool_calls" } else { "stop" };
        json!({"id": "r", "object": "chat.completion", "created": 0, "model": "m", "usage": usage,
               "choices": [{"index": 0, "message": message, "finish_reason": finish}]})
        .to_string()
    }

    pub(crate) fn order(&self, order: &str) -> Order {
        self.orders.lock().unwrap().get(order).cloned().unwrap_or_default()
    }

    /// Lets the model answer, or not.
    pub(crate) fn set_silent(&self, is_silent: bool) {
        *self.is_silent.lock().unwrap() = is_silent;
    }

    /// Waits until something was done with an order.
    pub(crate) fn wait(&self, order: &str, is_done: impl Fn(&Order) -> bool) {
        let orders = self.orders.lock().unwrap();
        let limit = Duration::from_secs(60);
        let waited = self
            .changed
            .wait_timeout_while(orders, limit, |orders| !is_done(orders.get(order).unwrap_or(&Order::default())));
        assert!(!waited.unwrap().1.timed_out(), "{order}");
    }
}
