//! `patter replay`: replaying recordings, and comparing them with current agents.
//!
//! The recordings in `recordings/` were made once with `patter run --record`. Their snapshots show that neither the format
//! of recordings nor the output of runs changes by accident.

use crate::folder::{Folder, PATTER};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const FORMATS: [&str; 3] = ["text", "json", "stream-json"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn patter(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(PATTER);
    command.args(arguments).current_dir(folder).env_clear().env("PATH", "/usr/bin:/bin").env("PATTER_TRUST", "1");
    command.stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn recordings_are_replayed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/recordings");
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names.len(), 5);
    for name in names.iter().map(|name| name.to_str().unwrap()) {
        let shown = FORMATS.map(|format| {
            let output = patter(&folder, &["replay", name, "--format", format]);
            let code = output.status.code().unwrap();
            // In text format the tool calls are on stderr; the other formats have them on stdout.
            let stderr = if format == "text" { text(&output.stderr) } else { String::new() };
            format!("--- {format}: exit {code}\n{}{stderr}", text(&output.stdout))
        });
        insta::assert_snapshot!(format!("recording_{}", name.trim_end_matches(".jsonl")), shown.concat());
    }
}

#[test]
fn examples_are_recorded_and_replayed() {
    let folder = Folder::new();
    let examples = [
        ("hello.gram", "Hello! My name is Alice."),
        ("hello.gram", "What is the weather in Bern?"),
        ("helloAndGoodbye.gram", "Say hello to Ann and goodbye to Bob"),
        ("textCommands.gram", "Count the words of \"to be or not to be\""),
        ("support.gram", "Where is order AB123456?"),
        ("newsroom.gram", "Ask the summarizer about this: gram is a notation"),
    ];
    for (index, (agent, prompt)) in examples.into_iter().enumerate() {
        let agent = format!("examples/{agent}");
        // One format without a store, the others with one, where the session is part of the output.
        for (format, store) in FORMATS.into_iter().zip(["none", "sessions.db", "sessions.db"]) {
            let file = folder.path().join(format!("{index}-{format}.jsonl")).display().to_string();
            let store =
                if store == "none" { store.to_owned() } else { folder.path().join(store).display().to_string() };
            let options = ["--model", "demo", "--format", format, "--record", &file, "--store", &store];
            let live = patter(&root(), &[&["run", &agent, prompt], options.as_slice()].concat());
            let again = patter(folder.path(), &["replay", &file, "--format", format]);
            assert_eq!(text(&again.stdout), text(&live.stdout), "{agent} {format}\n{}", text(&live.stderr));
            assert_eq!(again.status, live.status, "{agent} {format}");
            let compared = patter(&root(), &["replay", &file, "--agent", &agent]);
            let printed = text(&compared.stdout);
            assert!(compared.status.success() && printed.starts_with("identical: "), "{agent}\n{printed}");
        }
    }
}

/// A project whose agent has a tool with a secret, and one that needs an approval.
fn project() -> Folder {
    let folder = Folder::new();
    folder.write(".env", "TOKEN=hush-hush-7\n");
    folder.write("patter.toml", "[permissions]\nask = [\"box/note\"]\n");
    let agent = r#"[clerk:Agent { instruction: "Help.", model: "demo" } | `box/reveal`, `box/note`]
[box:Toolbox |
  [reveal:Command { description: "Reveals", run: ["sh", "-c", "echo it is $TOKEN"], env: { TOKEN: "${TOKEN}" } } | ()==>(::Text)],
  [note:Command { description: "Notes", run: ["echo", "noted"] } | ()==>(::Text)]
]
"#;
    folder.write("a.gram", agent);
    let script = json!([{"calls": [{"tool": "box/reveal"}, {"tool": "box/note"}]}, {"text": "Done."}]);
    folder.write("script.json", script.to_string());
    folder
}

#[test]
fn recordings_have_no_secrets_and_are_not_overwritten() {
    let folder = project();
    let run = |file: &str| {
        let model = ["--model", "scripted/script.json", "--record", file, "--store", "none"];
        patter(folder.path(), &[&["run", "a.gram", "Go"], model.as_slice()].concat())
    };
    let first = run("a.jsonl");
    assert!(first.status.success(), "{first:?}");
    let recorded = folder.read("a.jsonl");
    assert!(recorded.contains("it is ") && !recorded.contains("hush-hush-7"), "{recorded}");
    let second = run("a.jsonl");
    assert!(text(&second.stderr).contains("remove the file, or name another"), "{second:?}");
    assert_eq!(folder.read("a.jsonl"), recorded);
    // A run that never starts leaves no file behind, which would block the next recording.
    patter(folder.path(), &["run", "a.gram", " ", "--model", "demo", "--record", "none.jsonl", "--store", "none"]);
    assert!(!folder.path().join("none.jsonl").exists());
}

#[test]
fn differences_are_reported() {
    let folder = project();
    let model = ["--model", "scripted/script.json", "--record", "a.jsonl", "--store", "none"];
    patter(folder.path(), &[&["run", "a.gram", "Go"], model.as_slice()].concat());
    let agent = folder.read("a.gram");
    let mut shown = String::new();
    let edits: [(&str, &str, &[&str]); 5] = [
        ("", "", &[]),
        ("Help.", "Help.\\nBe kind.", &[]),
        ("Reveals", "Tells", &["--all"]),
        ("`box/reveal`, ", "", &["--all"]),
        ("", "", &["--deny", "box/note", "--format", "json"]),
    ];
    for (from, to, options) in edits {
        folder.write("a.gram", agent.replacen(from, to, 1));
        let output = patter(folder.path(), &[&["replay", "a.jsonl", "--agent", "a.gram"], options].concat());
        let code = output.status.code().unwrap();
        shown += &format!(
            "--- {from:?} → {to:?} {options:?}: exit {code}\n{}{}\n",
            text(&output.stdout),
            text(&output.stderr)
        );
    }
    insta::assert_snapshot!("replay_differences", shown);
}

#[test]
fn truncated_recordings_are_not_identical() {
    let folder = project();
    let model = ["--model", "scripted/script.json", "--record", "a.jsonl", "--store", "none"];
    patter(folder.path(), &[&["run", "a.gram", "Go"], model.as_slice()].concat());
    let recorded = folder.read("a.jsonl");
    let lines: Vec<&str> = recorded.lines().collect();
    let head = |count: usize| lines[..count].join("\n") + "\n";
    let compare = |text: String| {
        folder.write("cut.jsonl", text);
        let output = patter(folder.path(), &["replay", "cut.jsonl", "--agent", "a.gram"]);
        (output.status.code(), self::text(&output.stderr))
    };
    assert_eq!(compare(recorded.clone()), (Some(0), String::new()));
    let began = lines.iter().position(|line| line.contains("began")).unwrap();
    assert_eq!(compare(head(began)), (Some(1), "error: the recording contains no run\n".to_owned()));
    let cut =
        "error: the recording ends before the run does\n  help: the rest of the run could not be compared\n".to_owned();
    for text in [head(began + 1), recorded[..recorded.len() - 10].to_owned()] {
        assert_eq!(compare(text), (Some(1), cut.clone()));
    }
}

#[test]
fn invalid_recordings_are_rejected() {
    let folder = Folder::new();
    let check = |text: &str, expected: &str| {
        folder.write("a.jsonl", text);
        let printed = folder.run(&["replay", "a.jsonl"]);
        assert!(printed.starts_with("exit 1") && printed.contains(expected), "{printed}");
    };
    check(
        "",
        "not a Patter recording: the header line is missing\n  help: record a run with `patter run --record FILE`",
    );
    check("{\"patter_recording\":7}\n", "the recording has version 7, but only version 1 is supported");
    check("{\"patter_recording\":1}\n{\"entry\":\"x\"}\n", "line 2 of the recording is damaged: ");
    check("{\"patter_recording\":1}\n", "the recording contains no run");
    check("{\"patter_recording\":1}\n{\"entry\":\"op", "the recording ends before the run does");
    let told = json!({"entry": "told", "told": {"what": "cancelled", "at": 5}});
    check(&format!("{{\"patter_recording\":1}}\n{told}\n"), "the recording is damaged: log entry 1");
    let missing = folder.run(&["replay", "none.jsonl"]);
    assert!(missing.contains("cannot read `none.jsonl`: "), "{missing}");
}
