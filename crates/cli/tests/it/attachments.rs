//! Files and piped text beside a prompt: `run --attach`, `@path` in a chat, and stdin.

use crate::folder::Folder;
use serde_json::{Value as Json, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n....";
const PNG_URL: &str = "data:image/png;base64,iVBORw0KGgouLi4u";

/// A folder with an agent, and a provider that keeps the requests that it receives.
struct Desk {
    folder: Folder,
    address: String,
    requests: Arc<Mutex<Vec<Json>>>,
}

impl Desk {
    fn new(model: &str) -> Self {
        let folder = Folder::new();
        folder.write("a.gram", format!("[a:Agent {{ instruction: \"Look.\", model: \"{model}\" }}]\n"));
        folder.write("patter.toml", "");
        folder.write("photo.png", PNG);
        folder.write("my notes.md", "# Notes\n");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let address = provider(Arc::clone(&requests));
        Self { folder, address, requests }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.folder.command();
        command.env("OPENAI_API_KEY", "k3y").env("OPENAI_BASE_URL", &self.address).env("PATH", "/usr/bin:/bin");
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs the program, and returns its exit code, stdout and stderr.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        finish(self.command(arguments))
    }

    fn run_with(&self, arguments: &[&str], stdin: &[u8]) -> (Option<i32>, String, String) {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(stdin);
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    /// Returns the content of the last message of the last request.
    fn sent(&self) -> Json {
        let requests = self.requests.lock().unwrap();
        requests.last().expect("a request")["messages"].as_array().unwrap().last().unwrap()["content"].clone()
    }

    fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

fn finish(mut command: Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn provider(requests: Arc<Mutex<Vec<Json>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            requests.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
            let delta = json!({"choices": [{"index": 0, "delta": {"content": "Seen."}, "finish_reason": "stop"}]});
            let reply = format!("data: {delta}\n\ndata: [DONE]\n\n");
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n";
            let _ = write!(reader.get_mut(), "{head}content-length: {}\r\n\r\n{reply}", reply.len());
        }
    });
    format!("http://{address}")
}

fn image() -> Json {
    json!({"type": "image_url", "image_url": {"url": PNG_URL}})
}

fn text(text: &str) -> Json {
    json!({"type": "text", "text": text})
}

#[test]
fn files_are_attached_to_a_prompt() {
    let desk = Desk::new("OpenAI/gpt-4o");
    let run = desk.run(&["run", "a.gram", "What is this?", "--attach", "photo.png", "--attach", "my notes.md"]);
    assert_eq!((run.0, run.1.as_str()), (Some(0), "Seen.\n"), "{run:?}");
    let notes = "<attachment name=\"my notes.md\">\n# Notes\n\n</attachment>";
    assert_eq!(desk.sent(), json!([image(), text(notes), text("What is this?")]));

    // The conversation continues with them, and is shown with their names.
    assert_eq!(desk.run(&["run", "a.gram", "Sure?", "--continue"]).0, Some(0));
    assert_eq!(desk.requests.lock().unwrap()[1]["messages"][1]["content"][0], image());
    let shown = desk.run(&["sessions", "show", "latest"]).1;
    let names = "[attached: photo.png (image/png, 12 bytes), my notes.md (text/plain, 8 bytes)]";
    assert!(shown.contains(names), "{shown}");
    for format in ["markdown", "json", "gram", "recording"] {
        let exported = desk.run(&["sessions", "export", "latest", "--format", format]).1;
        assert!(exported.contains("photo.png") && !exported.contains("iVBORw0KGgo"), "{exported}");
    }

    // A fork and a copy have their own contents.
    assert_eq!(desk.run(&["sessions", "fork", "latest", "--id", "fork"]).0, Some(0));
    let copied = desk.run(&["store", "copy", "other.db"]);
    assert_eq!(copied.0, Some(0), "{copied:?}");
    let id = desk.run(&["sessions", "--format", "json"]).1;
    let sessions: Json = serde_json::from_str(&id).unwrap();
    for session in sessions["sessions"].as_array().or(sessions.as_array()).unwrap() {
        let id = session["id"].as_str().unwrap();
        if id != "fork" {
            assert_eq!(desk.run(&["sessions", "rm", id]).0, Some(0));
        }
    }
    assert_eq!(desk.run(&["run", "a.gram", "Still?", "--session", "fork"]).0, Some(0));
    assert_eq!(desk.requests.lock().unwrap().last().unwrap()["messages"][1]["content"][0], image());
    assert_eq!(desk.run(&["run", "a.gram", "Here?", "--session", "fork", "--store", "other.db"]).0, Some(0));
    assert_eq!(desk.requests.lock().unwrap().last().unwrap()["messages"][1]["content"][0], image());
}

#[test]
fn files_that_cannot_be_attached_are_reported_before_anything_is_sent() {
    let desk = Desk::new("OpenAI/gpt-4");
    desk.folder.write("empty.txt", "");
    desk.folder.write("data.zip", b"PK\x03\x04\0\0");
    let large = File::create(desk.folder.path().join("large.txt")).unwrap();
    large.set_len(21 << 20).unwrap();
    std::fs::create_dir(desk.folder.path().join("folder")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, desk.folder.path().join("pipe"), rustix::fs::Mode::RWXU).unwrap();
    let table = [
        ("missing.png", "cannot read `missing.png`: no such file"),
        ("fotos.png", "did you mean `photo.png`?"),
        ("folder", "cannot read `folder`: it is a folder\n  hint: name a file in it"),
        ("pipe", "it is a device, a pipe or a socket, not a file\n  hint: write it to a file, or pipe it to stdin"),
        ("/dev/zero", "it is a device, a pipe or a socket, not a file"),
        ("empty.txt", "ValidationError: `empty.txt` is empty"),
        (
            "data.zip",
            "`data.zip` is an archive or an office document, which models do not read\n  hint: export it as PDF",
        ),
        ("large.txt", "cannot read `large.txt`: it is larger than 20 MiB"),
        (
            "photo.png",
            "`OpenAI/gpt-4` does not read images, so `photo.png` cannot be sent to it\n  hint: use a model that",
        ),
    ];
    for (file, expected) in table {
        let start = Instant::now();
        let (exit, stdout, stderr) = desk.run(&["run", "a.gram", "What is this?", "--attach", file]);
        assert_eq!((exit, stdout.as_str()), (Some(1), ""), "{file}: {stderr}");
        let printed = stderr.replace("help: ", "hint: ");
        let is_there = expected.split("\n  hint: ").all(|part| printed.contains(part));
        assert!(is_there, "{file}: {stderr}");
        assert!(start.elapsed() < Duration::from_secs(10), "{file}");
    }
    assert_eq!(desk.count(), 0);
    let listed = desk.run(&["sessions"]);
    assert!(!listed.1.contains("What is this?"), "nothing is stored: {listed:?}");
}

#[test]
fn piped_text_is_added_to_a_prompt() {
    let desk = Desk::new("OpenAI/gpt-4o");
    let (exit, _, stderr) = desk.run_with(&["run", "a.gram", "Sum up"], b"one\ntwo\n");
    assert_eq!(exit, Some(0), "{stderr}");
    assert_eq!(desk.sent(), "Sum up\n\none\ntwo");
    assert!(stderr.contains("added 8 bytes from stdin to the prompt (`< /dev/null` prevents that)"), "{stderr}");

    // An image is attached, and nothing adds nothing.
    assert_eq!(desk.run_with(&["run", "a.gram", "What is this?"], PNG).0, Some(0));
    assert_eq!(desk.sent(), json!([image(), text("What is this?")]));
    for nothing in [&b""[..], b"\n"] {
        let (exit, _, stderr) = desk.run_with(&["run", "a.gram", "Hello"], nothing);
        assert!(exit == Some(0) && !stderr.contains("stdin"), "{stderr}");
        assert_eq!(desk.sent(), "Hello");
    }
    // As the prompt itself.
    assert_eq!(desk.run_with(&["run", "a.gram", "-", "--attach", "photo.png"], b"From stdin\n").0, Some(0));
    assert_eq!(desk.sent(), json!([image(), text("From stdin\n")]));
    let (exit, _, stderr) = desk.run_with(&["run", "a.gram", "What is this?"], b"\0\x01\x02");
    assert!(exit == Some(1) && stderr.contains("`stdin` is neither UTF-8 text nor a known format"), "{stderr}");

    // A file, unless somebody else reads from it.
    let mut command = desk.command(&["run", "a.gram", "Sum up"]);
    command.stdin(File::open(desk.folder.path().join("my notes.md")).unwrap());
    assert_eq!(finish(command).0, Some(0));
    assert_eq!(desk.sent(), "Sum up\n\n# Notes");
}

#[test]
fn a_loop_keeps_its_list() {
    let desk = Desk::new("OpenAI/gpt-4o");
    desk.folder.write("list", "one\ntwo\nthree\n");
    let script = format!("while read line; do {} run a.gram \"$line\"; done < list", crate::folder::PATTER);
    let mut command = Command::new("/bin/bash");
    command.args(["-c", &script]).current_dir(desk.folder.path()).env_clear();
    command.envs([("OPENAI_API_KEY", "k3y"), ("OPENAI_BASE_URL", &desk.address), ("PATTER_TRUST", "1")]);
    let (exit, stdout, stderr) = finish(command);
    assert_eq!((exit, stdout.as_str()), (Some(0), "Seen.\nSeen.\nSeen.\n"), "{stderr}");
    assert!(stderr.contains("stdin is not added to the prompt, because something else reads from it"), "{stderr}");
    assert_eq!((desk.count(), desk.sent()), (3, json!("three")));
}

#[test]
fn a_pipe_that_never_ends_does_not_hang() {
    let desk = Desk::new("OpenAI/gpt-4o");
    let mut command = desk.command(&["run", "a.gram", "Hello"]);
    let start = Instant::now();
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let _open = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(stderr.contains("nothing arrived on stdin within 3 s, so only the prompt is sent"), "{stderr}");
    assert_eq!(desk.sent(), "Hello");
}

#[test]
fn a_chat_attaches_what_is_mentioned() {
    let desk = Desk::new("OpenAI/gpt-4o");
    std::fs::create_dir(desk.folder.path().join("folder")).unwrap();
    let lines = [
        "What is @photo.png?",
        "See @\"my notes.md\" (and @photo.png).",
        "Hi @ada, mail ada@example.com about @folder and @nothing.png",
        "/messages",
    ];
    let (exit, stdout, stderr) = desk.run_with(&["chat", "a.gram"], lines.join("\n").as_bytes());
    assert_eq!((exit, stdout.as_str()), (Some(0), "Seen.\nSeen.\nSeen.\n"), "{stderr}");
    let requests = desk.requests.lock().unwrap().clone();
    let content = |request: usize, message: usize| requests[request]["messages"][message]["content"].clone();
    assert_eq!(content(0, 1), json!([image(), text("What is @photo.png?")]));
    let notes = text("<attachment name=\"my notes.md\">\n# Notes\n\n</attachment>");
    assert_eq!(content(1, 3), json!([notes, image(), text(lines[1])]));
    assert_eq!(content(2, 5), json!(lines[2]));
    for note in [
        "attached photo.png (image/png, 12 bytes)",
        "`@folder` is a folder, and is sent as text",
        "there is no file `nothing.png`, so `@nothing.png` is sent as text",
    ] {
        assert!(stderr.contains(note), "{stderr}");
    }
    assert!(!stderr.contains("no file `ada`") && !stderr.contains("no file `example.com`"), "{stderr}");

    // A file that cannot be attached is an error, and nothing is sent.
    desk.folder.write("data.zip", b"PK\x03\x04\0\0");
    let (exit, _, stderr) = desk.run_with(&["chat", "a.gram"], b"What is in @data.zip?\n");
    assert!(exit == Some(1) && stderr.contains("`data.zip` is an archive"), "{stderr}");
    assert_eq!(desk.count(), 3);
}

#[test]
fn the_demo_model_says_that_it_reads_no_attachments() {
    let desk = Desk::new("demo");
    let (exit, stdout, stderr) = desk.run(&["run", "a.gram", "What is this?", "--attach", "photo.png"]);
    assert_eq!(exit, Some(0), "{stderr}");
    assert!(
        stdout.ends_with("(The demo model does not read attachments: photo.png (image/png, 12 bytes).)\n"),
        "{stdout}"
    );
}
