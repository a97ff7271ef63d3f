//! Schedules and webhooks, with `patter serve` as processes that are killed.

use crate::fleet::Database;
use crate::folder::Folder;
use crate::serving::{Served, World, shop};
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(90);
const SCHEDULE: &str = "[often:Schedule { agent: \"clerk\", at: \"* * * * * *\", input: \"tick\" }]\n";

/// Waits for something.
fn wait<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    while Instant::now() < deadline {
        if let Some(found) = find() {
            return found;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("{what} never came");
}

fn append(folder: &Folder, file: &str, more: &str) {
    let path = folder.path().join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    std::fs::write(path, text + more).unwrap();
}

fn read_json(folder: &Folder, arguments: &[&str]) -> Json {
    let output = folder.output(arguments, "");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Returns the ids of the sessions of the schedule, sorted.
fn sessions(folder: &Folder, store: &str) -> Vec<String> {
    let listed = read_json(folder, &["sessions", "--store", store, "--limit", "1000", "--format", "json"]);
    let listed = listed.as_array().or_else(|| listed["sessions"].as_array()).unwrap().clone();
    let mut ids: Vec<_> = listed.iter().map(|session| session["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

/// Lets several servers run a schedule for a while, one of which is killed.
fn each_tick_is_one_session(store: &str) {
    let (world, port) = World::start();
    let folder = shop(port);
    append(&folder, "a.gram", SCHEDULE);
    let mut servers: Vec<_> = (0..3).map(|_| Served::start(&folder, store)).collect();
    wait("the third tick", || (sessions(&folder, store).len() >= 3).then_some(()));
    servers.remove(0);
    let before = sessions(&folder, store).len();
    wait("a tick without the server", || (sessions(&folder, store).len() >= before + 3).then_some(()));
    let fleet = read_json(&folder, &["fleet", "--store", store, "--format", "json"]);
    assert_eq!(fleet["schedules"][0]["name"], "often", "{fleet}");
    assert_eq!(fleet["queue"]["parked"], 0, "{fleet}");
    let shown = folder.output(&["fleet", "--store", store], "");
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("1 schedule\n  often  clerk  * * * * * * UTC  "), "{shown}");
    // What has started ends, and nothing new starts.
    let text = std::fs::read_to_string(folder.path().join("a.gram")).unwrap();
    std::fs::write(folder.path().join("a.gram"), text.replace(SCHEDULE, "")).unwrap();
    for server in &mut servers {
        Command::new("kill").args(["-TERM", &server.child.id().to_string()]).status().unwrap();
        server.child.wait().unwrap();
    }
    let last = Served::start(&folder, store);
    wait("the end of all work", || {
        let fleet = read_json(&folder, &["fleet", "--store", store, "--format", "json"]);
        (fleet["work"] == json!([]) && fleet["schedules"] == json!([])).then_some(())
    });
    drop(last);
    let ids = sessions(&folder, store);
    let first = second_of(&ids[0]);
    let seconds: Vec<i64> = ids.iter().map(|id| (second_of(id) - first).rem_euclid(24 * 60 * 60)).collect();
    let expected: Vec<i64> = (0..).take(seconds.len()).collect();
    assert_eq!(seconds, expected, "each second has one session");
    let paid = *world.payments.lock().unwrap().get("tick").unwrap();
    // The server that was killed may have been about to pay.
    assert!(paid <= ids.len() && paid + 3 >= ids.len(), "{paid} payments in {} sessions", ids.len());
    world.end();
}

/// Returns the second of a tick within its day.
fn second_of(id: &str) -> i64 {
    let time = id.strip_prefix("schedule-often-").unwrap().split('-').nth(1).unwrap();
    let part = |range: std::ops::Range<usize>| time[range].parse::<i64>().unwrap();
    part(0..2) * 3600 + part(2..4) * 60 + part(4..6)
}

#[test]
fn ticks_run_once_with_a_file() {
    each_tick_is_one_session("s.db");
}

#[test]
fn ticks_run_once_with_a_database() {
    let Some(database) = Database::start() else { return };
    each_tick_is_one_session(&database.url());
}

/// A receiver of webhooks that fails at first.
#[derive(Default)]
struct Receiver {
    works: AtomicBool,
    /// The ids of the messages that came, with the status of the answer.
    messages: Mutex<Vec<(String, u16)>>,
}

impl Receiver {
    fn start() -> (Arc<Self>, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let receiver = Arc::new(Self::default());
        let shared = Arc::clone(&receiver);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let _ = shared.answer(&stream.unwrap());
            }
        });
        (receiver, port)
    }

    fn answer(&self, mut stream: &TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream);
        let mut headers = HashMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(": ") {
                headers.insert(name.to_lowercase(), value.trim().to_owned());
            }
        }
        let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
        reader.read_exact(&mut body).ok()?;
        let status = if self.works.load(Ordering::SeqCst) { 200 } else { 503 };
        self.messages.lock().unwrap().push((headers.get("webhook-id")?.clone(), status));
        stream
            .write_all(format!("HTTP/1.1 {status} x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").as_bytes())
            .ok()
    }

    fn messages(&self) -> Vec<(String, u16)> {
        self.messages.lock().unwrap().clone()
    }
}

#[test]
fn a_webhook_survives_its_server() {
    let (world, port) = World::start();
    let (receiver, hook) = Receiver::start();
    let folder = shop(port);
    append(&folder, "patter.toml", "[serve]\nwebhook-secret = \"HOOK_SECRET\"\n");
    append(&folder, ".env", "HOOK_SECRET=whsec_MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3BxcnN0dXY=\n");
    let first = Served::start(&folder, "s.db");
    let url = format!("http://127.0.0.1:{hook}/hook");
    let body = json!({"agent": "clerk", "message": "order1", "session": "order1", "webhook": {"url": url}}).to_string();
    let head = format!(
        "POST /api/sessions?background=true HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        first.port,
        body.len()
    );
    // The server takes work once others know about it.
    wait("the queue", || {
        let mut stream = TcpStream::connect(("127.0.0.1", first.port)).unwrap();
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response.starts_with("HTTP/1.1 202").then_some(())
    });
    wait("the first attempt", || receiver.messages().first().cloned());
    // It is killed.
    drop(first);
    receiver.works.store(true, Ordering::SeqCst);
    let second = Served::start(&folder, "s.db");
    wait("the message", || receiver.messages().iter().any(|(_, status)| *status == 200).then_some(()));
    let messages = receiver.messages();
    assert!(messages.iter().all(|(id, _)| *id == messages[0].0), "{messages:?}");
    wait("the end of all work", || {
        let fleet = read_json(&folder, &["fleet", "--store", "s.db", "--format", "json"]);
        (fleet["work"] == json!([])).then_some(())
    });
    assert_eq!(world.payments.lock().unwrap().get("order1"), Some(&1));
    drop(second);
    world.end();
}

#[test]
fn servers_refuse_schedules_and_secrets_that_are_wrong() {
    let agent = "[hi:Agent { instruction: \"Greet.\", model: \"demo\" }]\n";
    let serve = |schedule: &str, config: &str, secret: &str| {
        let folder = Folder::new();
        folder.write("a.gram", agent);
        folder.write("b.gram", schedule);
        folder.write("patter.toml", config);
        let mut command = folder.command();
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", "s.db"]).env("HOOK_SECRET", secret);
        let output = command.output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let secret = "[serve]\nwebhook-secret = \"HOOK_SECRET\"\n";
    let bad_time = "[s:Schedule { agent: \"hi\", at: \"99 * * * *\", input: \"Hi\" }]";
    let shown = serve(bad_time, "", "");
    assert!(shown.contains("the schedule `s` is not valid"), "{shown}");
    let hook = "[s:Schedule { agent: \"hi\", at: \"@daily\", input: \"Hi\", webhook: \"https://example.com\" }]";
    let shown = serve(hook, "", "");
    assert!(shown.contains("the webhook of the schedule `s` needs a secret"), "{shown}");
    let shown = serve("", secret, "");
    assert!(shown.contains("the webhook secret is missing: `HOOK_SECRET` is not set"), "{shown}");
    let shown = serve("", secret, "hunter2");
    assert!(shown.contains("`HOOK_SECRET`: the webhook secret does not start with `whsec_`"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
    let shown = serve("", "[serve]\nwebhook-secret = \"whsec_hunter2\"\n", "");
    assert!(shown.contains("`webhook-secret` is the name of a variable, and not the secret itself"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}
