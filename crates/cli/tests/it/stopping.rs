//! Signals: runs are cancelled or suspended, and no process of a tool or server is left.

use crate::folder::Folder;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value as Json, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Output};
use std::sync::mpsc;
use std::time::Duration;

/// The time that a tool may take to clean up, and more.
const CLEANUP: &str = "sleep 0.2; echo bye > goodbye; exit 1";

/// An agent with a tool that runs until it is asked to exit, and then cleans up. Its process writes its id to `pid`.
fn project(script: &str) -> Folder {
    let folder = Folder::new();
    folder.write("patter.toml", "[store]\nurl = \"s.db\"\n");
    folder.write("tool.sh", script);
    folder.write(
        "a.gram",
        "[worker:Agent { instruction: \"Use `wait`.\", model: \"scripted/script.json\" } | wait]\n\
         [t:Toolbox | [wait:Command { description: \"Waits\", run: [\"sh\", \"tool.sh\"], timeout: 10m } | ()==>(::Text)]]\n",
    );
    folder.write("script.json", json!([{"text": "Wait.", "calls": [{"tool": "wait"}]}, {"text": "Done."}]).to_string());
    folder
}

fn polite() -> String {
    format!("trap '{CLEANUP}' TERM; echo $$ > new; mv new pid; while :; do sleep 0.02; done")
}

/// A tool that does not react to SIGTERM, and neither does the process that it starts.
const STUBBORN: &str =
    "trap '' TERM; sh -c 'while :; do sleep 0.1; done' & echo $$ $! > new; mv new pid; while :; do sleep 0.1; done";

fn start(folder: &Folder, arguments: &[&str]) -> Child {
    folder.command().env("PATH", "/usr/bin:/bin").args(arguments).spawn().unwrap()
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id().try_into().unwrap()).unwrap(), signal).unwrap();
}

/// Waits until the tool runs, and returns the ids of its processes.
fn pids(folder: &Folder) -> Vec<i32> {
    let text = wait_for(|| std::fs::read_to_string(folder.path().join("pid")).ok());
    std::fs::remove_file(folder.path().join("pid")).unwrap();
    text.split_whitespace().map(|id| id.parse().unwrap()).collect()
}

/// Polls until there is a value, for up to 30 seconds.
fn wait_for<T>(mut poll: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3000 {
        if let Some(found) = poll() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("timed out");
}

/// Returns whether a process has ended. Without a reaper of orphans, it may stay as a zombie.
fn is_gone(id: i32) -> bool {
    let is_zombie = std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    is_zombie || test_kill_process(Pid::from_raw(id).unwrap()).is_err()
}

fn wait_until_gone(ids: &[i32]) {
    wait_for(|| ids.iter().all(|id| is_gone(*id)).then_some(()));
}

fn output(child: Child) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn said_goodbye(root: &Path) -> bool {
    std::fs::remove_file(root.join("goodbye")).is_ok()
}

#[test]
fn signals_other_than_ctrl_c_leave_a_run_that_can_be_resumed() {
    let folder = project(&polite());
    for (signal, name, code) in [(Signal::TERM, "SIGTERM", 143), (Signal::HUP, "SIGHUP", 129)] {
        let child = start(&folder, &["run", "a.gram", "hi"]);
        let pids = pids(&folder);
        send(&child, signal);
        let (exit, stdout, stderr) = output(child);
        assert_eq!((exit, stdout.as_str()), (Some(code), "Wait.\n"), "{stderr}");
        let message = format!("the run was stopped by {name}; resume it with `patter resume 20");
        assert!(stderr.contains(&message), "{stderr}");
        assert!(said_goodbye(folder.path()), "the tool was killed before it could clean up");
        assert!(is_gone(pids[0]), "the tool outlives the program");
        let shown = folder.run(&["sessions", "show", "latest"]);
        assert!(shown.contains("the last run has not finished; continue it with `patter resume`"), "{shown}");
        let resumed = folder.run(&["resume"]);
        assert!(resumed.starts_with("exit 0\n--- stdout\nDone.\n"), "{resumed}");
        assert!(
            resumed.contains("wait with {} was in progress when the run stopped, and is not repeated"),
            "{resumed}"
        );
    }
}

#[test]
fn ctrl_c_cancels_the_run() {
    let folder = project(&polite());
    let child = start(&folder, &["run", "a.gram", "hi"]);
    let pids = pids(&folder);
    send(&child, Signal::INT);
    let (exit, _, stderr) = output(child);
    assert_eq!(exit, Some(130), "{stderr}");
    assert!(stderr.contains("the run was stopped"), "{stderr}");
    assert!(said_goodbye(folder.path()), "the tool was killed before it could clean up");
    assert!(is_gone(pids[0]));
    assert!(folder.run(&["resume"]).contains("no session has an unfinished run"));
}

#[test]
fn machines_read_that_a_run_is_suspended() {
    let folder = project(&polite());
    let suspend = |format: &str| {
        let child = start(&folder, &["run", "a.gram", "hi", "--format", format]);
        let pids = pids(&folder);
        send(&child, Signal::TERM);
        let (exit, stdout, stderr) = output(child);
        assert_eq!(exit, Some(143), "{stderr}");
        wait_until_gone(&pids);
        stdout
    };
    let document: Json = serde_json::from_str(&suspend("json")).unwrap();
    assert_eq!(document["error"]["kind"], "Suspended");
    assert!(document["error"]["message"].as_str().unwrap().contains("resume it with `patter resume "), "{document}");
    assert_eq!((&document["model_calls"], &document["finish"]), (&json!(1), &Json::Null));
    let last: Json = serde_json::from_str(suspend("stream-json").lines().last().unwrap()).unwrap();
    assert_eq!((&last["event"], &last["error"]["kind"]), (&json!("error"), &json!("Suspended")));
    // Without a store there is nothing to resume, which is said.
    let child = start(&folder, &["run", "a.gram", "hi", "--store", "none"]);
    pids(&folder);
    send(&child, Signal::TERM);
    let (exit, _, stderr) = output(child);
    assert_eq!(exit, Some(143));
    assert!(stderr.contains("cannot be resumed because it is not stored"), "{stderr}");
}

#[test]
fn no_signal_leaves_processes() {
    let folder = project(&polite());
    let mut signals = vec![
        Signal::QUIT,
        Signal::USR1,
        Signal::USR2,
        Signal::ALARM,
        Signal::VTALARM,
        Signal::PROF,
        Signal::IO,
        Signal::XCPU,
        Signal::ABORT,
    ];
    #[cfg(target_os = "linux")]
    signals.extend([Signal::POWER, Signal::STKFLT]);
    for signal in signals {
        let child = start(&folder, &["run", "a.gram", "hi"]);
        let pids = pids(&folder);
        // The program ignores this one, as Rust programs do: writing to a closed pipe is an error.
        send(&child, Signal::PIPE);
        send(&child, signal);
        let (exit, _, stderr) = output(child);
        assert_eq!(exit, Some(128 + signal.as_raw()), "{signal:?} {stderr}");
        assert!(said_goodbye(folder.path()), "{signal:?}: the tool was killed before it could clean up");
        assert!(is_gone(pids[0]), "{signal:?}");
        assert!(stderr.contains("resume it with"), "{stderr}");
    }
}

/// `nohup` starts programs with SIGHUP ignored.
#[cfg(target_os = "linux")]
#[test]
fn an_ignored_hangup_stays_ignored() {
    let folder = project(&polite());
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" run a.gram hi", crate::folder::PATTER]);
    shell.current_dir(folder.path()).env_clear().env("PATH", "/usr/bin:/bin").env("PATTER_TRUST", "1");
    let null = std::process::Stdio::null;
    let mut child = shell.stdin(null()).stdout(null()).stderr(null()).spawn().unwrap();
    let pids = pids(&folder);
    send(&child, Signal::HUP);
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none() && !is_gone(pids[0]), "it ended");
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    wait_until_gone(&pids);
}

#[test]
fn repeated_signals_leave_no_process() {
    let folder = project(STUBBORN);
    let sequences = [
        [Signal::INT, Signal::INT, Signal::INT],
        [Signal::TERM, Signal::TERM, Signal::TERM],
        [Signal::INT, Signal::TERM, Signal::HUP],
    ];
    for (index, signals) in sequences.into_iter().cycle().take(9).enumerate() {
        let child = start(&folder, &["run", "a.gram", "hi"]);
        let pids = pids(&folder);
        for signal in signals {
            // The program may be gone already.
            let _ = kill_process(Pid::from_raw(child.id().try_into().unwrap()).unwrap(), signal);
            std::thread::sleep(Duration::from_millis(index as u64 % 3));
        }
        let (exit, _, _) = output(child);
        assert!(matches!(exit, Some(130 | 143)), "{exit:?}");
        wait_until_gone(&pids);
    }
}

/// One signal is enough for tools that do not react.
#[test]
fn a_tool_that_does_not_exit_is_killed() {
    let folder = project(STUBBORN);
    let child = start(&folder, &["run", "a.gram", "hi"]);
    let pids = pids(&folder);
    send(&child, Signal::TERM);
    assert_eq!(output(child).0, Some(143));
    wait_until_gone(&pids);
}

#[test]
fn a_tool_that_times_out_has_time_to_clean_up() {
    let folder = project(&polite());
    let tools = folder.read("a.gram").replace("10m", "500ms");
    folder.write("a.gram", tools);
    let printed = {
        let child = start(&folder, &["call", "wait", "--yes"]);
        let pids = pids(&folder);
        let (exit, _, stderr) = output(child);
        assert_eq!(exit, Some(7), "{stderr}");
        assert!(is_gone(pids[0]));
        stderr
    };
    assert!(printed.contains("did not finish within 500 ms"), "{printed}");
    assert!(said_goodbye(folder.path()), "the tool was killed before it could clean up");
}

/// A server that ignores that its stdin is closed, and needs a moment to exit.
const SERVER: &str = r#"
trap 'sleep 0.2; echo bye > goodbye; exit 0' TERM
echo $$ > new; mv new pid
while read -r line; do
  case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}';;
    *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}';;
  esac
done
while :; do sleep 0.02; done
"#;

#[test]
fn servers_have_time_to_exit() {
    let folder = Folder::new();
    folder.write("server.sh", SERVER);
    folder.write("patter.toml", "[mcp.slow]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n");
    let child = start(&folder, &["tools", "sayHello"]);
    let pids = pids(&folder);
    let (exit, _, stderr) = output(child);
    assert_eq!(exit, Some(0), "{stderr}");
    assert!(said_goodbye(folder.path()), "the server was killed before it could exit");
    assert!(is_gone(pids[0]));
}

/// A session with a server that was not started here is deleted before the program ends.
#[test]
fn sessions_with_servers_are_deleted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let sender = sender.clone();
            std::thread::spawn(move || respond(&stream.unwrap(), &sender));
        }
    });
    let folder = Folder::new();
    folder.write("patter.toml", format!("[mcp.far]\nurl = \"http://127.0.0.1:{port}/mcp\"\n"));
    let (exit, _, stderr) = output(start(&folder, &["tools", "sayHello"]));
    assert_eq!(exit, Some(0), "{stderr}");
    let requests: Vec<_> = requests.try_iter().collect();
    assert_eq!(requests.last().map(String::as_str), Some("DELETE s1"), "{requests:?}");
}

/// Responds to a request of a client of MCP, and passes on its method and session.
fn respond(mut stream: &TcpStream, requests: &mpsc::Sender<String>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|count| count > 0) {}
    let header = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    };
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    let message: Json = serde_json::from_slice(&body).unwrap_or_default();
    let method = head.split(' ').next().unwrap_or_default();
    requests.send(format!("{method} {}", header("mcp-session-id"))).unwrap();
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "far", "version": "1"},
        }),
        Some("tools/list") => json!({"tools": []}),
        _ => Json::Null,
    };
    let (status, body) = match (method, &result) {
        ("GET", _) => ("405 Method Not Allowed", String::new()),
        (_, Json::Null) => ("202 Accepted", String::new()),
        _ => ("200 OK", json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string()),
    };
    let length = body.len();
    let head = "content-type: application/json\r\nmcp-session-id: s1\r\nconnection: close";
    write!(stream, "HTTP/1.1 {status}\r\n{head}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
}

/// Opening the session first must not stop the servers of the run that resumes.
#[test]
fn a_resumed_run_starts_its_servers_once() {
    let folder = project(&polite());
    // The agent needs a tool of the server, so that it is started.
    folder.write("a.gram", folder.read("a.gram").replace("| wait]", "| wait, `slow/rest`]"));
    let server = SERVER.replace("echo $$ > new; mv new pid", "echo started >> starts");
    folder.write("server.sh", server.replace("[]", r#"[{"name":"rest","inputSchema":{"type":"object"}}]"#));
    folder.write("patter.toml", "[store]\nurl = \"s.db\"\n[mcp.slow]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n");
    let child = start(&folder, &["run", "a.gram", "hi"]);
    let pids = pids(&folder);
    send(&child, Signal::TERM);
    assert_eq!(output(child).0, Some(143));
    wait_until_gone(&pids);
    assert!(said_goodbye(folder.path()));
    std::fs::remove_file(folder.path().join("starts")).unwrap();
    let (exit, stdout, stderr) = output(start(&folder, &["resume"]));
    assert_eq!((exit, stdout.as_str()), (Some(0), "Done.\n"), "{stderr}");
    assert_eq!(folder.read("starts"), "started\n");
}

#[test]
fn a_suspended_chat_is_resumed() {
    let folder = project(&polite());
    let mut child = start(&folder, &["chat", "a.gram"]);
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"hi\n").unwrap();
    let pids = pids(&folder);
    send(&child, Signal::TERM);
    let (exit, _, stderr) = output(child);
    assert_eq!(exit, Some(143), "{stderr}");
    assert!(stderr.contains("the turn is not finished; resume it with `patter resume 20"), "{stderr}");
    wait_until_gone(&pids);
    let resumed = folder.run(&["resume"]);
    assert!(resumed.contains("Done.\n"), "{resumed}");
}

/// What fails or is stopped prints nothing on stdout.
#[test]
fn runs_without_an_answer_print_no_line() {
    let folder = project(&polite());
    folder.write("script.json", json!([{"error": {"message": "overloaded"}}]).to_string());
    let failed = folder.output(&["run", "a.gram", "hi"], "");
    assert_eq!((failed.status.code(), failed.stdout.as_slice()), (Some(1), b"".as_slice()));
    folder.write("script.json", json!([{"calls": [{"tool": "wait"}]}]).to_string());
    let child = start(&folder, &["run", "a.gram", "hi"]);
    pids(&folder);
    send(&child, Signal::INT);
    let (exit, stdout, _) = output(child);
    assert_eq!((exit, stdout.as_str()), (Some(130), ""));
}
