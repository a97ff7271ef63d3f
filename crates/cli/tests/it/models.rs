//! Providers and models: `patter models`, declared providers, reasoning and structured answers.

use crate::folder::Folder;
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A server of Chat Completions that always answers the same, and keeps the requests.
struct ChatServer {
    address: String,
    requests: Arc<Mutex<Vec<(String, Json)>>>,
}

impl ChatServer {
    fn start(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let log = Arc::clone(&log);
                std::thread::spawn(move || serve(&stream, answer, &log));
            }
        });
        Self { address, requests }
    }

    fn models(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|(_, body)| body["model"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// Answers one request, and closes the connection.
fn serve(mut stream: &TcpStream, answer: &str, log: &Mutex<Vec<(String, Json)>>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|read| read > 0) {}
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let reply = if path.ends_with("/models") {
        json!({ "object": "list", "data": [{ "id": "large" }, { "id": "small" }] })
    } else {
        let message = json!({ "role": "assistant", "content": answer, "reasoning_content": "Let me think." });
        let usage = json!({ "prompt_tokens": 5, "completion_tokens": 2 });
        json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }], "usage": usage })
    };
    log.lock().unwrap().push((path, serde_json::from_slice(&body).unwrap_or_default()));
    let reply = reply.to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ";
    let _ = stream.write_all(format!("{head}{}\r\n\r\n{reply}", reply.len()).as_bytes());
}

fn agent(model: &str) -> String {
    format!("[a:Agent {{ instruction: 'Answer.', model: '{model}' }}]\n")
}

/// Runs the program, and returns what it prints.
fn run(folder: &Folder, arguments: &[&str]) -> (i32, String, String) {
    let output = folder.output(arguments, "");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn two_declared_providers_are_compared() {
    let yes = ChatServer::start("yes");
    let no = ChatServer::start("no");
    let folder = Folder::new();
    let section = |name: &str, server: &ChatServer| {
        format!(
            "[models.{name}]\napi = 'chat'\nurl = '{}/v1'\n[prices.'{name}/m']\ninput = 1\noutput = 2\n",
            server.address
        )
    };
    folder.write("patter.toml", section("alpha", &yes) + &section("beta", &no));
    folder.write("a.gram", agent("alpha/m"));
    let case = |id: u32| json!({"id": id.to_string(), "input": "Well?", "checks": [{"equals": "yes"}]}).to_string();
    folder.write("cases.jsonl", (0..6).map(case).collect::<Vec<_>>().join("\n"));
    let arms = ["--arm", "a=model:alpha/m", "--arm", "b=model:beta/m"];
    let arguments = [&["ab", "a.gram", "--cases", "cases.jsonl", "--format", "json", "--store", "none"], &arms[..]];
    let (_, stdout, stderr) = run(&folder, &arguments.concat());
    let report: Json = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"));
    let shown = report.to_string();
    assert!(shown.contains("alpha/m") && shown.contains("beta/m"), "{shown}");
    assert_eq!(yes.models(), ["m"; 6]);
    assert_eq!(no.models(), ["m"; 6]);
}

#[test]
fn models_are_listed_with_their_keys() {
    let server = ChatServer::start("hi");
    let folder = Folder::new();
    let text = format!(
        "[models.house]\napi = 'chat'\nurl = '{}/v1'\nwindow = 32000\n[models.house.models.large]\nimages = true\n\
         [prices.'house/large']\ninput = 0.5\noutput = 1\n",
        server.address
    );
    folder.write("patter.toml", text);
    let (code, stdout, stderr) = run(&folder, &["models"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let groq = stdout.lines().find(|line| line.starts_with("Groq ")).unwrap_or_default();
    let words: Vec<_> = groq.split_whitespace().collect();
    assert_eq!(words.join(" "), "Groq no key: set GROQ_API_KEY https://api.groq.com/openai/v1");
    assert!(stdout.contains("\n  large  32k in, tools, images, $0.50/$1.00\n"), "{stdout}");
    let output = folder.command().env("GROQ_API_KEY", "k3y-secret").args(["models", "--provider", "groq"]).output();
    let stdout = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(stdout.starts_with("Groq  key from GROQ_API_KEY  https://api.groq.com/openai/v1\n"), "{stdout}");
    assert!(stdout.contains("  llama-3.3-70b-versatile  131k in, 33k out, tools, $0.59/$0.79\n"), "{stdout}");
    let (_, stdout, stderr) = run(&folder, &["models", "--provider", "house", "--live", "--format", "json"]);
    let listed: Json = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    let models = &listed["providers"][0]["models"];
    assert_eq!((&models[0]["id"], &models[0]["images"]), (&json!("large"), &json!(true)));
    assert_eq!((&models[1]["id"], &models[1]["window"]), (&json!("small"), &json!(32_000)));
    let (code, _, stderr) = run(&folder, &["models", "--provider", "hous"]);
    assert_eq!(code, 2);
    assert!(stderr.starts_with("error: unknown provider `hous`\n  help: did you mean `house`?"), "{stderr}");
    assert_eq!(run(&folder, &["models", "--live"]).0, 2);
}

#[test]
fn only_the_accepted_answer_reaches_stdout() {
    let folder = Folder::new();
    folder.write(
        "a.gram",
        "[Count:Object | (n::Int)]\n[a:Agent { instruction: 'Count.', model: 'scripted/r.json', returns: 'Count' }]\n",
    );
    let accepted = json!({ "thought": "It is three.\nSure.", "text": "```json\n{\"n\": 3}\n```" });
    folder.write("r.json", json!([{ "text": "{\"n\": \"three\"}" }, accepted]).to_string());
    for arguments in
        [&["run", "a.gram", "Go", "--store", "none", "--record", "r.jsonl"] as &[_], &["replay", "r.jsonl"]]
    {
        let (code, stdout, stderr) = run(&folder, arguments);
        assert_eq!((code, stdout.as_str()), (0, "{\"n\": 3}\n"), "{stderr}");
        assert!(
            stderr.starts_with("this answer does not match the required schema:\n  {\"n\": \"three\"}\n"),
            "{stderr}"
        );
        assert!(!stderr.contains("It is three."), "{stderr}");
    }
    let (_, stdout, stderr) = run(&folder, &["run", "a.gram", "Go", "--store", "none", "--thinking"]);
    assert_eq!(stdout, "{\"n\": 3}\n");
    assert!(stderr.contains("\n  It is three.\n  Sure.\n"), "{stderr}");
    // A run without an answer prints none.
    folder.write("r.json", json!([{ "text": "a" }, { "text": "b" }, { "text": "c" }, { "text": "d" }]).to_string());
    let (code, stdout, stderr) = run(&folder, &["run", "a.gram", "Go", "--store", "none"]);
    assert_eq!(stdout, "", "{code} {stderr}");
    assert_ne!(code, 0);
}

#[test]
fn reasoning_is_kept_in_the_log_and_not_sent_again() {
    let server = ChatServer::start("Hi");
    let folder = Folder::new();
    folder.write("patter.toml", format!("[models.house]\napi = 'chat'\nurl = '{}/v1'\n", server.address));
    folder.write("a.gram", agent("house/m"));
    let (_, stdout, stderr) = run(&folder, &["run", "a.gram", "One", "--store", "s.db", "--thinking"]);
    assert_eq!(stdout, "Hi\n");
    assert!(stderr.contains("  Let me think.\n"), "{stderr}");
    let (_, stdout, _) = run(&folder, &["run", "a.gram", "Two", "--store", "s.db", "--continue"]);
    assert_eq!(stdout, "Hi\n");
    let requests = server.requests.lock().unwrap();
    assert!(!requests[1].1.to_string().contains("Let me think."), "{}", requests[1].1);
    drop(requests);
    let (_, sessions, _) = run(&folder, &["sessions", "--store", "s.db", "--format", "json"]);
    let sessions: Json = serde_json::from_str(&sessions).unwrap();
    let id = sessions.pointer("/0/id").or_else(|| sessions.pointer("/sessions/0/id")).and_then(Json::as_str).unwrap();
    let (_, exported, stderr) = run(&folder, &["sessions", "export", id, "--store", "s.db", "--format", "recording"]);
    assert!(exported.contains("Let me think."), "{exported}{stderr}");
}
