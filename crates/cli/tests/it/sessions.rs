//! Conversations that outlive the program.

use crate::folder::Folder;
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader};

/// A project with an agent that greets, and one whose tools take their time.
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
        {"text": "All is done.", "expect": {"results": ["quick", "nobody knows what came of it"]}},
    ]);
    folder.write("work.json", script.to_string());
    folder
}

/// Runs a command with `PATH`, so that tools find their programs.
fn said(folder: &Folder, arguments: &[&str]) -> (i32, String, String) {
    let output = folder.command().env("PATH", "/usr/bin:/bin").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Begins work and kills the program when the slow tool is under way and the quick one is done.
fn killed(folder: &Folder) {
    let mut command = folder.command();
    command.env("PATH", "/usr/bin:/bin").args(["run", "work.gram", "Go", "--output-format", "stream-json"]);
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_done = |line: &String| line.contains("tool_finished");
    lines.map(Result::unwrap).find(is_done).expect("the quick tool ends");
    // Its end is kept right after it is told.
    let is_kept =
        || said(folder, &["sessions", "export", "latest", "--format", "recording"]).1.contains("\"finished\"");
    while !is_kept() {}
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn conversations_go_on() {
    let folder = project();
    let say = |arguments: &[&str]| said(&folder, &[&["run", "hello.gram"], arguments].concat());
    say(&["Hello! My name is Bob.", "--new", "--session", "first"]);
    say(&["Hello! My name is Eve."]);
    let (_, answer, _) = say(&["Greet me again", "--session", "fir"]);
    assert_eq!(answer, "Hello, Bob!\n");
    // The last one that something was said in.
    let (_, answer, _) = say(&["And again, please greet me", "--continue"]);
    assert_eq!(answer, "Hello, Bob!\n");
    let (_, list, _) = said(&folder, &["sessions", "--json"]);
    let list: Json = serde_json::from_str(&list).unwrap();
    assert_eq!(list[0]["id"], "first");
    assert_eq!((list.as_array().unwrap().len(), &list[0]["agent"]), (2, &json!("greeter")));
    let (_, shown, _) = said(&folder, &["sessions", "show", "first"]);
    insta::assert_snapshot!("session_shown", shown);
    let (_, exported, _) = said(&folder, &["sessions", "export", "first"]);
    insta::assert_snapshot!("session_exported", exported);
    // A conversation forks at any message, also between a call and its result.
    for (at, id) in [("1", "one"), ("2", "two"), ("12", "all")] {
        assert_eq!(said(&folder, &["sessions", "fork", "first", "--at", at, "--id", id]).1, format!("{id}\n"));
        let (code, answer, errors) = say(&["Greet me", "--session", id]);
        assert_eq!((code, answer.as_str()), (0, "Hello, Bob!\n"), "{errors}");
    }
    let (code, _, errors) = said(&folder, &["sessions", "fork", "first", "--at", "13"]);
    assert!(code == 1 && errors.contains("there is no message 13: the conversation has 12"), "{errors}");
    assert_eq!(said(&folder, &["sessions", "rm", "one", "two"]).0, 0);
    assert_eq!(said(&folder, &["sessions", "show", "one"]).0, 1);
}

#[test]
fn a_killed_run_goes_on() {
    let folder = project();
    killed(&folder);
    let (code, _, errors) = said(&folder, &["run", "work.gram", "And?", "--continue"]);
    assert!(code == 1 && errors.contains("has not ended") && errors.contains("`patter resume`"), "{errors}");
    assert!(said(&folder, &["sessions"]).1.contains("  open  worker  Go\n"));
    // From elsewhere too: the session knows its file.
    std::fs::create_dir(folder.path().join("below")).unwrap();
    let mut command = folder.command();
    let output = command.current_dir(folder.path().join("below")).env("PATH", "/usr/bin:/bin").arg("resume").output();
    let output = output.unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        errors.contains("jobs/slow with {} was under way when the run was stopped, and is not called again"),
        "{errors}"
    );
    assert!(!errors.contains("quick"), "{errors}");
    assert_eq!(folder.read("log").lines().filter(|line| *line == "quick").count(), 1);
}

#[test]
fn a_killed_run_is_given_up() {
    let folder = project();
    killed(&folder);
    let (code, _, errors) = said(&folder, &["resume", "--abandon"]);
    assert!(code == 0 && errors.contains("is given up"), "{errors}");
    let (code, _, errors) = said(&folder, &["resume"]);
    assert!(code == 1 && errors.contains("there is no session with a run that has not ended"), "{errors}");
    let (_, shown, _) = said(&folder, &["sessions", "show", "latest"]);
    assert!(shown.contains("← jobs/quick quick\n") && shown.contains("← jobs/slow cancelled\n"), "{shown}");
}

#[test]
fn one_program_at_a_time_goes_on_with_a_session() {
    let folder = project();
    let mut command = folder.command();
    command.env("PATH", "/usr/bin:/bin").args(["run", "work.gram", "Go", "--new", "--session", "busy"]);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().contains("quick")).unwrap().unwrap();
    for arguments in [&["resume", "busy"] as &[&str], &["sessions", "rm", "busy"]] {
        let (code, _, errors) = said(&folder, arguments);
        assert!(code == 1 && errors.contains("session `busy` is in use by process "), "{errors}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(said(&folder, &["sessions", "rm", "busy"]).0, 0);
}

#[test]
fn what_goes_wrong_with_sessions() {
    let folder = project();
    let check = |arguments: &[&str], expected: &str| {
        let (code, _, errors) = said(&folder, arguments);
        assert!(code == 1 && errors.contains(expected), "{arguments:?}\n{errors}");
    };
    check(&["run", "hello.gram", "Hi", "--continue"], "there is no session with the agent `greeter` yet");
    check(&["run", "hello.gram", "Hi", "--session", "nothing"], "there is no session `nothing`");
    check(&["run", "hello.gram", "Hi", "--session", "Not One", "--new"], "`Not One` is no id of a session");
    check(&["run", "hello.gram", "Hi", "--continue", "--store", "none"], "there is no store of sessions");
    check(&["run", "hello.gram", "Hi", "--store", "mysql://x"], "sessions are kept in SQLite or PostgreSQL only");
    check(&["sessions", "show", "latest"], "there is no session yet");
    check(&["resume", "--store", "hello.gram"], "hello.gram");
    // A store that nobody asked for is no reason to say nothing.
    folder.write("patter.toml", "[store]\nurl = 'patter.toml/sessions.db'\n");
    let (code, answer, errors) = said(&folder, &["run", "hello.gram", "Hello! My name is Ada."]);
    assert!(code == 0 && answer.contains("Hello, Ada!"), "{errors}");
    assert!(errors.contains("warning: this conversation is not kept: "), "{errors}");
}
