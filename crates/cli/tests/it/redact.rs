//! `patter sessions redact`: contents are gone, and everything that reads sessions still works.

use crate::folder::Folder;
use serde_json::Value as Json;

const SECRET: &str = "Zebulon4711";

/// A project whose session `talk` has a secret.
fn project() -> Folder {
    let folder = Folder::new();
    folder.write("patter.toml", "");
    folder.write(
        "hello.gram",
        "[greeter:Agent { instruction: \"Greet with `sayHello`.\", model: \"demo\" } | sayHello]\n",
    );
    run(&folder, &["run", "hello.gram", &format!("Greet {SECRET}"), "--new", "--session", "talk"]);
    folder
}

/// Runs a command that succeeds, and returns what it prints to stdout.
fn run(folder: &Folder, arguments: &[&str]) -> String {
    let output = folder.output(arguments, "");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn error(folder: &Folder, arguments: &[&str]) -> String {
    let output = folder.output(arguments, "");
    assert!(!output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Returns whether a file of the store has the secret.
fn is_stored(folder: &Folder) -> bool {
    let files = std::fs::read_dir(folder.path().join(".patter")).unwrap();
    let mut contents = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
    contents.any(|bytes| bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()))
}

#[test]
fn contents_are_removed_and_the_shape_is_shown() {
    let folder = project();
    assert!(is_stored(&folder));
    let before: Json = serde_json::from_str(&run(&folder, &["sessions", "show", "talk", "--format", "json"])).unwrap();

    assert_eq!(run(&folder, &["sessions", "redact", "talk", "--dry-run"]), "talk\n");
    assert!(is_stored(&folder), "nothing has changed");
    let none = run(&folder, &["sessions", "redact", "--older-than", "1h", "--dry-run", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Json>(&none).unwrap()["wouldRedact"].as_array().unwrap().len(), 0);

    let done = run(&folder, &["sessions", "redact", "talk", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Json>(&done).unwrap()["redacted"][0], "talk");
    assert!(!is_stored(&folder), "contents are left in the store");

    let shown = run(&folder, &["sessions", "show", "talk", "--full"]);
    assert!(shown.contains("its contents were removed") && shown.contains("> [redacted]"), "{shown}");
    assert!(shown.contains("→ sayHello"), "{shown}");
    let after: Json = serde_json::from_str(&run(&folder, &["sessions", "show", "talk", "--format", "json"])).unwrap();
    assert_eq!(after["turns"][0]["usage"], before["turns"][0]["usage"]);
    assert_eq!(after["conversation"].as_array().unwrap().len(), before["conversation"].as_array().unwrap().len());
    for format in ["markdown", "json", "gram", "recording"] {
        let exported = run(&folder, &["sessions", "export", "talk", "--format", format]);
        assert!(exported.contains("[redacted]") && !exported.contains(SECRET), "{format}: {exported}");
    }
    assert!(run(&folder, &["sessions"]).contains("talk"));
}

#[test]
fn a_redacted_session_cannot_be_continued() {
    let folder = project();
    run(&folder, &["sessions", "redact", "talk"]);
    let removed = "cannot be continued: its contents were removed";
    let continued = error(&folder, &["run", "hello.gram", "And now?", "--session", "talk"]);
    assert!(continued.contains(removed), "{continued}");
    let forked = error(&folder, &["sessions", "fork", "talk"]);
    assert!(forked.contains(removed), "{forked}");
    let resumed = error(&folder, &["resume", "talk"]);
    assert!(resumed.contains(removed), "{resumed}");
    run(&folder, &["sessions", "export", "talk", "--format", "recording", "-o", "talk.jsonl"]);
    let compared = error(&folder, &["replay", "talk.jsonl", "--agent", "hello.gram"]);
    assert!(compared.contains("the contents of the session were removed, so it cannot be compared"), "{compared}");
    // A word that is not a session changes nothing.
    let missing = error(&folder, &["sessions", "redact", "talc"]);
    assert!(missing.contains("there is no session `talc`"), "{missing}");
}
