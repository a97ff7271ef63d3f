//! `patter sessions` and `patter resume`.

use crate::folder::Folder;
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader};

/// A project with an agent that greets, and one with a slow tool.
fn project() -> Folder {
    let folder = Folder::new();
    folder.write("patter.toml", "");
    folder.write(
        "hello.gram",
        "[greeter:Agent { instruction: \"Greet with `sayHello`.\", model: \"demo\" } | sayHello]\n",
    );
    let script = folder.path().join("work.json").display().to_string();
    let agents = r#"[worker:Agent { instruction: "Use `jobs/slow` and `jobs/quick`.", model: "scripted/SCRIPT" } |
  `jobs/slow`, `jobs/quick`
]
[jobs:Toolbox |
  [slow:Command { description: "Works", run: ["sh", "-c", "echo slow >> log; exec sleep 60"] } | ()==>(::Text)],
  [quick:Command { description: "Works", run: ["sh", "-c", "echo quick >> log; echo quick"] } | ()==>(::Text)]
]
"#;
    folder.write("work.gram", agents.replace("SCRIPT", &script));
    let script = json!([
        {"calls": [{"tool": "jobs/quick"}, {"tool": "jobs/slow"}]},
        {"text": "All is done.", "expect": {"results": ["quick", "its outcome is unknown"]}},
    ]);
    folder.write("work.json", script.to_string());
    folder
}

/// Runs a command with a `PATH` for the programs of tools.
fn run(folder: &Folder, arguments: &[&str]) -> (i32, String, String) {
    let output = folder.command().env("PATH", "/usr/bin:/bin").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Starts a run, and kills the program while the slow tool runs and after the quick one finished.
fn killed(folder: &Folder) {
    let mut command = folder.command();
    command.env("PATH", "/usr/bin:/bin").args(["run", "work.gram", "Go", "--format", "stream-json"]);
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_done = |line: &String| line.contains("tool_finished");
    lines.map(Result::unwrap).find(is_done).expect("the quick tool ends");
    // The result is stored right after it is printed.
    let is_stored =
        || run(folder, &["sessions", "export", "latest", "--format", "recording"]).1.contains("\"finished\"");
    while !is_stored() {}
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn conversations_continue() {
    let folder = project();
    let run_hello = |arguments: &[&str]| run(&folder, &[&["run", "hello.gram"], arguments].concat());
    run_hello(&["Hello! My name is Bob.", "--new", "--session", "first"]);
    run_hello(&["Hello! My name is Eve."]);
    let (_, answer, _) = run_hello(&["Greet me again", "--session", "fir"]);
    assert_eq!(answer, "Hello, Bob!\n");
    // The session that was used last.
    let (_, answer, _) = run_hello(&["And again, please greet me", "--continue"]);
    assert_eq!(answer, "Hello, Bob!\n");
    let (_, list, _) = run(&folder, &["sessions", "--format", "json"]);
    let list: Json = serde_json::from_str(&list).unwrap();
    assert_eq!(list[0]["id"], "first");
    assert_eq!((list.as_array().unwrap().len(), &list[0]["agent"]), (2, &json!("greeter")));
    let (_, shown, _) = run(&folder, &["sessions", "show", "first"]);
    insta::assert_snapshot!("session_shown", shown);
    let (_, exported, _) = run(&folder, &["sessions", "export", "first"]);
    insta::assert_snapshot!("session_exported", exported);
    // A conversation can be forked at any message, even between a call and its result.
    for (at, id) in [("1", "one"), ("2", "two"), ("12", "all")] {
        assert_eq!(run(&folder, &["sessions", "fork", "first", "--at", at, "--id", id]).1, format!("{id}\n"));
        let (code, answer, errors) = run_hello(&["Greet me", "--session", id]);
        assert_eq!((code, answer.as_str()), (0, "Hello, Bob!\n"), "{errors}");
    }
    let (code, _, errors) = run(&folder, &["sessions", "fork", "first", "--at", "13"]);
    assert!(code == 1 && errors.contains("no message 13: the conversation has 12"), "{errors}");
    assert_eq!(run(&folder, &["sessions", "rm", "one", "two"]).0, 0);
    assert_eq!(run(&folder, &["sessions", "show", "one"]).0, 1);
}

#[test]
fn a_killed_run_is_resumed() {
    let folder = project();
    killed(&folder);
    let (code, _, errors) = run(&folder, &["run", "work.gram", "And?", "--continue"]);
    assert!(code == 1 && errors.contains("has not finished") && errors.contains("`patter resume`"), "{errors}");
    assert!(run(&folder, &["sessions"]).1.contains("  open  worker  Go\n"));
    // From another folder too, as the session records its file.
    std::fs::create_dir(folder.path().join("below")).unwrap();
    let mut command = folder.command();
    let output = command.current_dir(folder.path().join("below")).env("PATH", "/usr/bin:/bin").arg("resume").output();
    let output = output.unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("jobs/slow with {} was in progress when the run stopped, and is not repeated"), "{errors}");
    assert!(!errors.contains("quick"), "{errors}");
    assert_eq!(folder.read("log").lines().filter(|line| *line == "quick").count(), 1);
}

#[test]
fn a_killed_run_is_abandoned() {
    let folder = project();
    killed(&folder);
    let (code, _, errors) = run(&folder, &["resume", "--abandon"]);
    assert!(code == 0 && errors.contains("abandoned the run of session 20"), "{errors}");
    let (code, _, errors) = run(&folder, &["resume"]);
    assert!(code == 1 && errors.contains("no session has an unfinished run"), "{errors}");
    let (_, shown, _) = run(&folder, &["sessions", "show", "latest"]);
    assert!(shown.contains("← jobs/quick quick\n") && shown.contains("← jobs/slow cancelled\n"), "{shown}");
}

#[test]
fn a_session_is_used_by_one_process_at_a_time() {
    let folder = project();
    let mut command = folder.command();
    command.env("PATH", "/usr/bin:/bin").args(["run", "work.gram", "Go", "--new", "--session", "busy"]);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().contains("quick")).unwrap().unwrap();
    for arguments in [&["resume", "busy"] as &[&str], &["sessions", "rm", "busy"]] {
        let (code, _, errors) = run(&folder, arguments);
        assert!(code == 1 && errors.contains("session `busy` is in use by process "), "{errors}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(run(&folder, &["sessions", "rm", "busy"]).0, 0);
}

#[test]
fn session_errors_are_reported() {
    let folder = project();
    let check = |arguments: &[&str], expected_code: i32, expected: &str| {
        let (code, _, errors) = run(&folder, arguments);
        assert!(code == expected_code && errors.contains(expected), "{arguments:?}\n{errors}");
    };
    check(&["run", "hello.gram", "Hi", "--continue"], 1, "the agent `greeter` has no sessions yet");
    check(&["run", "hello.gram", "Hi", "--session", "nothing"], 1, "there is no session `nothing`");
    check(&["run", "hello.gram", "Hi", "--session", "Not One", "--new"], 2, "`Not One` is not a session id");
    check(&["run", "hello.gram", "Hi", "--continue", "--store", "none"], 2, "sessions are disabled (`--store none`)");
    check(
        &["run", "hello.gram", "Hi", "--store", "mysql://x"],
        2,
        "only SQLite and PostgreSQL are supported as session stores",
    );
    check(&["sessions", "show", "latest"], 1, "there are no sessions yet");
    check(&["resume", "--store", "hello.gram"], 1, "hello.gram");
    // A default store that cannot be opened does not stop the run.
    folder.write("patter.toml", "[store]\nurl = 'patter.toml/sessions.db'\n");
    let (code, answer, errors) = run(&folder, &["run", "hello.gram", "Hello! My name is Ada."]);
    assert!(code == 0 && answer.contains("Hello, Ada!"), "{errors}");
    assert!(errors.contains("warning: this conversation will not be saved: "), "{errors}");
}
