//! `patter sessions` and `patter resume`.

use crate::folder::Folder;
use crate::terminal::Terminal;
use patter::store::{self, NewSession, SessionId, SessionState, StoreLocation};
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
    assert!(code == 1 && errors.contains("session `first` has no message 13: its conversation has 12"), "{errors}");
    // A typo deletes nothing.
    assert_eq!(run(&folder, &["sessions", "rm", "one", "tow"]).0, 1);
    assert_eq!(run(&folder, &["sessions", "show", "one"]).0, 0);
    assert_eq!(run(&folder, &["sessions", "rm", "one", "two"]).0, 0);
    assert_eq!(run(&folder, &["sessions", "show", "one"]).0, 1);
}

/// The export in gram is a file like any other, and has what the JSON export has; the tests of the core crate compare all of it.
#[test]
fn sessions_are_exported_as_patterns() {
    let folder = project();
    run(&folder, &["run", "hello.gram", "Greet `Ada` \\ \"x\" ]|", "--new", "--session", "ada"]);
    let (code, _, errors) = run(&folder, &["sessions", "export", "ada", "--format", "gram", "-o", "ada.gram"]);
    assert_eq!(code, 0, "{errors}");
    let (code, report, errors) = run(&folder, &["check", "ada.gram"]);
    assert!(code == 0 && !report.contains("warning") && !errors.contains("warning"), "{report}{errors}");
    assert_eq!(run(&folder, &["fmt", "--check", "ada.gram"]).0, 0);
    let (_, json, _) = run(&folder, &["sessions", "export", "ada", "--format", "json"]);
    let json: Json = serde_json::from_str(&json).unwrap();
    let source = std::fs::read_to_string(folder.path().join("ada.gram")).unwrap();
    let (tree, _) = patter::gram::parse(&source);
    let session = tree.patterns().next().unwrap();
    let texts = |pattern: patter::gram::Pattern, key: &str| pattern.value(key).unwrap().as_str().unwrap().to_owned();
    assert_eq!(
        (session.name().unwrap(), texts(session, "title")),
        ("ada".into(), json["title"].as_str().unwrap().into())
    );
    let response = session.elements().next().unwrap();
    assert_eq!(texts(response, "content"), json["turns"][0]["outcome"]["answer"]["text"]);
    let message = response.elements().next().unwrap();
    assert_eq!(texts(message, "text"), json["conversation"][0]["text"]);
    let invocation = response.elements().nth(1).unwrap().elements().next().unwrap();
    assert_eq!(texts(invocation, "tool"), "sayHello");
    // The project is still the same: nothing in the file is a declaration.
    assert_eq!(run(&folder, &["run", "hello.gram", "Greet Eve"]).0, 0);
}

/// Each mistake names what is wrong and the way out.
#[test]
fn mistakes_about_sessions_and_recordings_have_hints() {
    let folder = project();
    folder.write("cases.jsonl", r#"{"id": "ann", "input": "Greet Ann", "checks": [{"contains": "Ann"}]}"#);
    let hello = |arguments: &[&str]| run(&folder, &[&["run", "hello.gram"], arguments].concat());
    let empty = run(&folder, &["sessions", "show", "latest"]);
    assert!(empty.2.contains("there are no sessions yet") && empty.2.contains("`patter run`"), "{}", empty.2);
    hello(&["Greet Ada", "--new", "--session", "ada"]);
    run(&folder, &["eval", "hello.gram", "-c", "cases.jsonl"]);
    let (_, listed, _) = run(&folder, &["experiments", "--format", "json"]);
    let experiment: Json = serde_json::from_str(&listed).unwrap();
    let experiment = experiment[0]["id"].as_str().unwrap();
    folder.write("taken.md", "");
    let table: [(&[&str], i32, &str, &str); 24] = [
        (&["sessions", "ada"], 2, "has no subcommand `ada`", "`patter sessions show ada`"),
        (&["sessions", "shwo", "ada"], 2, "has no subcommand `shwo`", "did you mean `patter sessions show`?"),
        (&["sessions", "show", ""], 2, "`` is not a session id", "1 to 64 characters"),
        (&["sessions", "show", "eve"], 1, "there is no session `eve`", "`patter sessions`"),
        (&["sessions", "show", "adda"], 1, "there is no session `adda`", "did you mean `ada`?"),
        (&["sessions", "export", "eve"], 1, "there is no session `eve`", "`patter sessions`"),
        (&["sessions", "export", "ada", "-o", "taken.md"], 1, "`taken.md`: the file already exists", "name another"),
        (&["sessions", "export", "ada", "-o", "no/ada.md"], 1, "its folder does not exist", "create the folder first"),
        (&["sessions", "export", "ada", "--format", "xml"], 2, "invalid value 'xml'", "recording, gram"),
        (&["sessions", "fork", "ada", "--id", "ada"], 1, "session `ada` already exists", "choose another id"),
        (&["sessions", "fork", "ada", "--id", "A b"], 2, "`A b` is not a session id", "1 to 64 characters"),
        (&["sessions", "fork", "ada", "--at", "99"], 1, "has no message 99", "`patter sessions show ada`"),
        (&["sessions", "fork", "ada", "--at", "-1"], 2, "invalid value '-1'", "write a whole number"),
        (&["sessions", "--limit", "0"], 2, "invalid value '0'", "from 1 to"),
        (&["sessions", "--limit", "some"], 2, "invalid value 'some'", "from 1 to"),
        (&["sessions", "--store", "no.db"], 2, "there is no session store `no.db`", "check the path"),
        (&["experiments", "--limit", "-1"], 2, "invalid value '-1'", "from 1 to"),
        (&["experiments", "--store", "no.db"], 2, "there is no session store `no.db`", "check the path"),
        (&["resume", "ada"], 1, "the last run has ended", "--session"),
        (&["resume", "eve"], 1, "there is no session `eve`", "`patter sessions`"),
        (&["replay", "ada"], 1, "cannot read `ada`: no such file", "--format recording"),
        (&["replay", "hello.gram"], 1, "cannot replay `hello.gram`: not a Patter recording", "--record"),
        (&["eval", "hello.gram", "-c", "cases.jsonl", "--repeats", "0"], 2, "'--repeats <N>'", "from 1 to"),
        (&["eval", "hello.gram", "-c", "cases.jsonl", "--seed", "-1"], 2, "'--seed <N>'", "write a whole number"),
    ];
    for (arguments, expected, cause, way_out) in table {
        let (code, _, errors) = run(&folder, arguments);
        assert_eq!(code, expected, "{arguments:?}: {errors}");
        assert!(errors.contains(cause) && errors.contains(way_out), "{arguments:?}: {errors}");
        assert!(!errors.contains("os error") && !errors.contains("digit"), "{arguments:?}: {errors}");
    }
    for arguments in
        [["sessions", "show", experiment], ["sessions", "export", experiment], ["sessions", "fork", experiment]]
    {
        let (code, _, errors) = run(&folder, &arguments);
        assert!(
            code == 1 && errors.contains("is an experiment") && errors.contains("`patter experiments x-"),
            "{errors}"
        );
    }
    let (code, _, errors) = run(&folder, &["resume", experiment]);
    assert!(code == 1 && errors.contains("is an experiment") && errors.contains("repeat the command"), "{errors}");
    let (code, _, errors) = hello(&["Greet me", "--session", "new-one"]);
    assert!(code == 1 && errors.contains("there is no session `new-one`") && errors.contains("add --new"), "{errors}");
    assert!(!folder.path().join("no.db").exists());
}

#[test]
fn lists_have_headers_and_fit_the_terminal() {
    let folder = project();
    let long = "Greet Ada, and tell her that this is a message that does not fit into a line of a terminal";
    run(&folder, &["run", "hello.gram", long, "--new", "--session", "ada"]);
    let (_, list, _) = run(&folder, &["sessions"]);
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines[0], "SESSION  CHANGED  STATE  AGENT    TITLE");
    assert!(
        lines[1].starts_with("ada ")
            && lines[1].contains("  idle   greeter  Greet Ada")
            && lines[1].ends_with("terminal")
    );
    let mut terminal = Terminal::start(&folder, &["sessions"], 80);
    terminal.until("the list", |screen| screen.contents().contains("SESSION  CHANGED"));
    terminal.until("the title is cut", |screen| {
        screen.contents().contains("Greet Ada, and tell") && screen.contents().contains('…')
    });
}

#[test]
fn a_killed_run_is_resumed() {
    let folder = project();
    killed(&folder);
    let (code, _, errors) = run(&folder, &["run", "work.gram", "And?", "--continue"]);
    assert!(code == 1 && errors.contains("has not finished") && errors.contains("`patter resume`"), "{errors}");
    assert!(run(&folder, &["sessions"]).1.contains("  open   worker  Go\n"));
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

#[tokio::test]
async fn a_session_without_files_needs_one() {
    let folder = project();
    let location = StoreLocation::Sqlite(folder.path().join(".patter/sessions.db"));
    let entries = vec![r#"{"entry":"opened","source":{"files":[]}}"#.to_owned()];
    let new = NewSession::new(SessionId::parse("embedded").unwrap(), "greeter", "Hi");
    let store = store::open(&location).await.unwrap();
    drop(store.create(new.with_entries(entries, SessionState::Running), 1).await.unwrap());
    let (code, _, errors) = run(&folder, &["resume", "embedded"]);
    let expected = "the session `embedded` does not say which files it was started with";
    assert!(code == 1 && errors.contains(expected) && errors.contains("--file"), "{errors}");
}

#[test]
fn missing_files_are_named() {
    let folder = project();
    killed(&folder);
    std::fs::remove_file(folder.path().join("work.gram")).unwrap();
    let (code, _, errors) = run(&folder, &["resume"]);
    assert!(
        code == 1 && errors.contains("work.gram`, which no longer exists") && errors.contains("--file"),
        "{errors}"
    );
    let (code, _, errors) = run(&folder, &["resume", "--file", "other.gram"]);
    assert!(code == 1 && errors.contains("other.gram") && !errors.contains("used"), "{errors}");
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
    check(&["run", "hello.gram", "Hi", "--store", "mysql://x"], 2, "--store: `mysql://` is not supported");
    check(&["sessions", "show", "latest"], 1, "there are no sessions yet");
    check(&["resume", "--store", "hello.gram"], 1, "hello.gram");
    // A default store that cannot be opened does not stop the run.
    folder.write("patter.toml", "[store]\nurl = 'patter.toml/sessions.db'\n");
    let (code, answer, errors) = run(&folder, &["run", "hello.gram", "Hello! My name is Ada."]);
    assert!(code == 0 && answer.contains("Hello, Ada!"), "{errors}");
    assert!(errors.contains("warning: this conversation will not be saved: "), "{errors}");
}
