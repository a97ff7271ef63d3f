//! Workflows at the command line: the examples, which run offline, and runs that wait for a person.

use crate::folder::{Folder, repository_command};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Runs a command in the root of the repository.
fn repository(arguments: &[&str]) -> Output {
    repository_command().args(arguments).output().unwrap()
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs an example with its script.
fn example(name: &str, input: &str, others: &[&str]) -> Output {
    let file = format!("examples/workflows/{name}.gram");
    let model = format!("scripted/examples/workflows/{name}.json");
    repository(&[&["run", &file, input, "--model", &model], others].concat())
}

#[test]
fn examples_run_offline() {
    let documents = r#"{"documents": ["Tea is…", "Coffee is…", "Water is…"]}"#;
    let table = [
        (
            "triage",
            r#"{"customer": "Ada", "question": "Where is order 7?"}"#,
            "Dear Ada, your order 7 left our warehouse",
        ),
        ("article", "the history of tea", "Dutch ships brought it to Europe in 1610."),
        ("digest", documents, "Leaves make tea, beans make coffee, and water needs neither."),
    ];
    for (name, input, expected) in table {
        let output = example(name, input, &[]);
        let stdout = text(&output.stdout);
        assert!(output.status.success() && stdout.contains(expected), "{name}\n{stdout}{}", text(&output.stderr));
    }
    let wrong = example("triage", r#"{"customer": "Ada"}"#, &[]);
    let stderr = text(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(stderr.contains("the input does not match what `triage` takes: `question`"), "{stderr}");
    assert!(stderr.contains("pass the input as JSON"), "{stderr}");
}

#[test]
fn a_run_waits_for_a_person() {
    let folder = Folder::new();
    let store = folder.path().join("sessions.db");
    let store = store.to_str().unwrap();
    let refund = r#"{"customer": "Ada", "question": "I want my money back"}"#;
    let waiting = example("triage", refund, &["--store", store]);
    let stderr = text(&waiting.stderr);
    assert_eq!(waiting.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("`decide` waits for an answer: Ada wants a refund: I want my money back"), "{stderr}");
    assert!(stderr.contains("answer with `patter resume "), "{stderr}");
    let listed = text(&repository(&["sessions", "--store", store]).stdout);
    assert!(listed.contains("waiting"), "{listed}");
    let answered = repository(&["resume", "--store", store, "--answer", "Send it back, and we refund it."]);
    assert!(answered.status.success(), "{}", text(&answered.stderr));
    assert_eq!(text(&answered.stdout).trim(), "Send it back, and we refund it.");
    let without = example("triage", refund, &["--store", "none"]);
    assert!(text(&without.stderr).contains("the run is not stored"), "{}", text(&without.stderr));
}

#[test]
fn a_question_expires() {
    let folder = Folder::new();
    folder.write(
        "w.gram",
        "[w:Workflow |\n  (ask:Human { question: \"Really?\", expires: 1s })-[:Failed]->(late:Give { value: \"Nobody answered.\" })\n]\n",
    );
    let waiting = folder.run(&["run", "w.gram", "hi", "--store", "s.db"]);
    assert!(waiting.starts_with("exit 1\n") && waiting.contains("`ask` waits for an answer: Really?"), "{waiting}");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let late = folder.run(&["resume", "--store", "s.db"]);
    assert!(late.starts_with("exit 0\n") && late.contains("Nobody answered."), "{late}");
}

#[test]
fn a_recorded_workflow_is_compared_with_an_edited_one() {
    let folder = Folder::new();
    let recording = folder.path().join("run.jsonl");
    let recording = recording.to_str().unwrap();
    assert!(example("article", "tea", &["--record", recording, "--store", "none"]).status.success());
    let played = repository(&["replay", recording]);
    assert!(text(&played.stdout).contains("Dutch ships"), "{}", text(&played.stdout));
    let model = "scripted/examples/workflows/article.json";
    let same = repository(&["replay", recording, "--agent", "examples/workflows/article.gram", "--model", model]);
    assert!(same.status.success() && text(&same.stdout).contains("identical: 5 model calls"), "{}", text(&same.stdout));
    let file = std::fs::read_to_string(root().join("examples/workflows/article.gram")).unwrap();
    let edited = folder.write("edited.gram", file.replace("Write about {takes}", "Write on {takes}"));
    let changed = repository(&["replay", recording, "--agent", edited.to_str().unwrap(), "--model", model]);
    let stdout = text(&changed.stdout);
    assert!(changed.status.code() == Some(1) && stdout.contains("step `write-1` changed from write("), "{stdout}");
}

#[test]
fn one_agent_is_compared_with_a_workflow() {
    let output = repository(&[
        "ab",
        "examples/workflows/author.gram",
        "--arm",
        "team=agent:examples/workflows/article.gram",
        "--cases",
        "examples/workflows/cases.gram",
        "--model",
        "scripted/examples/workflows/article.json",
        "--store",
        "none",
        "--format",
        "json",
    ]);
    let report: Json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}\n{}{}", text(&output.stdout), text(&output.stderr)));
    let rate = |arm: &str| {
        let summaries = report["summaries"].as_array().unwrap();
        summaries.iter().find(|summary| summary["arm"] == arm).unwrap()["pass_rate"].as_f64().unwrap()
    };
    assert_eq!((rate("base"), rate("team")), (0.25, 1.0));
    let team = report["arms"].as_array().unwrap().iter().find(|arm| arm["name"] == "team").unwrap();
    assert_eq!((&team["agent"], &team["model"]), (&Json::from("article"), &Json::from("workflow")));
}

#[test]
fn the_documents_draw_the_examples_as_the_program_does() {
    let guide = std::fs::read_to_string(root().join("docs/workflows.md")).unwrap();
    for name in ["article", "triage", "digest"] {
        let file = format!("examples/workflows/{name}.gram");
        let chart = text(&repository(&["graph", &file, "--steps"]).stdout);
        assert!(chart.starts_with("flowchart TD\n"), "{chart}");
        assert!(guide.contains(&format!("```mermaid\n{chart}```")), "{name} is drawn differently:\n{chart}");
    }
    let none = repository(&["graph", "examples/hello.gram", "--steps"]);
    assert!(text(&none.stderr).contains("there is no workflow here"), "{}", text(&none.stderr));
}
