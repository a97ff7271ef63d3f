//! Agents that extend others, pipes of tools, and policies in `patter.lock`.

use crate::folder::Folder;
use crate::terminal::Terminal;
use serde_json::{Value as Json, json};

const DESK: &str = "[desk:Agent { description: \"Answers\", instruction: \"Answer with `sayHello`.\", model: \"demo\", maxTurns: 5, ask: [\"sayHello when personName is \\\"Bob\\\"\"] } |
  sayHello
]
";
const NIGHT: &str =
    "[night:Agent { extends: \"desk\", instruction: \"Greet with `sayHello`, and count with `text/words`.\" } |
  `text/words`
]
";
const TOOLS: &str = "[text:Toolbox |
  [words:Command { description: \"Counts words\", run: [\"wc\", \"-w\"], stdin: \"{a}\" } | (a::Text)==>(::Int)],
  [upper:Command { description: \"Shouts\", run: [\"tr\", \"a-z\", \"A-Z\"], stdin: \"{a}\" } | (a::Text)==>(::Text)],
  [double:Command { description: \"Doubles\", run: [\"sed\", \"s/.*/&&/\"], stdin: \"{b}\" } | (b::Text)==>(::Text)]
]
";

fn project() -> Folder {
    let folder = Folder::new();
    folder.write("patter.toml", "[store]\nurl = \"s.db\"\n");
    folder.write("desk.gram", DESK);
    folder.write("night.gram", NIGHT);
    folder.write("tools.gram", TOOLS);
    folder
}

#[test]
fn a_resolved_agent_is_shown_with_where_each_part_comes_from() {
    let folder = project();
    insta::assert_snapshot!("show_extending", folder.run(&["show", "night.gram"]));
    let shown = folder.output(&["show", "night.gram", "--format", "json"], "");
    let shown: Json = serde_json::from_slice(&shown.stdout).unwrap();
    let agent = &shown["agents"][0];
    assert_eq!(agent["extends"], json!(["desk"]));
    assert_eq!(agent["inherited"]["model"], "desk");
    assert_eq!(agent["tools"][1]["inherited"], "desk");
    let why = folder.run(&["why", "sayHello", "--agent", "night.gram"]);
    assert!(why.contains("inherited from `desk`"), "{why}");
    let checked = folder.run(&["check", "--deny-warnings"]);
    assert!(checked.starts_with("exit 0"), "{checked}");
}

#[test]
fn an_extending_agent_runs_and_keeps_the_rules_of_its_base() {
    let folder = project();
    let ann = folder.run(&["run", "night.gram", "Say hello to Ann", "--model", "demo"]);
    assert!(ann.starts_with("exit 0") && ann.contains("Hello, Ann!"), "{ann}");
    let bob = folder.run(&["run", "night.gram", "Say hello to Bob", "--model", "demo"]);
    assert!(!bob.contains("Hello, Bob!"), "nobody approved it: {bob}");
}

#[test]
fn a_change_of_the_base_is_a_change_for_the_lock() {
    let folder = project();
    assert!(folder.run(&["lock"]).starts_with("exit 0"));
    assert!(folder.read("patter.lock").contains("extends = \"desk\""), "{}", folder.read("patter.lock"));
    assert!(folder.run(&["lock", "--check"]).starts_with("exit 0"));
    folder.write("desk.gram", DESK.replace("maxTurns: 5", "maxTurns: 6"));
    let refused = folder.run(&["run", "night.gram", "hi", "--model", "demo", "--locked"]);
    assert!(refused.starts_with("exit 1") && refused.contains("agent `night`"), "{refused}");
}

#[test]
fn a_pipe_is_one_tool_whose_tools_are_logged_and_ruled() {
    let folder = project();
    let pipe = "[shouted:Pipe { description: \"Shouts it twice and counts words\" } |\n  (`text/upper`)-->(`text/double`)-->(`text/words`)\n]\n";
    let agent = |rule: &str| {
        format!(
            "[a:Agent {{ instruction: \"Use `shouted`.\", model: \"scripted/script.json\"{rule} }} | shouted]\n{pipe}"
        )
    };
    folder.write("p.gram", agent(""));
    let script = json!([{"calls": [{"tool": "shouted", "arguments": {"a": "to be"}}]}, {"text": "Done."}]);
    folder.write("script.json", script.to_string());
    let checked = folder.run(&["check", "p.gram"]);
    assert!(checked.starts_with("exit 0"), "{checked}");
    let direct = folder.run(&["run", "p.gram#shouted", "{\"a\": \"to be\"}"]);
    assert!(direct.starts_with("exit 0\n--- stdout\n3\n"), "{direct}");
    let run = folder.run(&["run", "p.gram#a", "Go"]);
    assert!(run.starts_with("exit 0") && run.contains("Done."), "{run}");
    for tool in ["shouted", "text/upper", "text/double", "text/words"] {
        assert!(run.contains(&format!("→ {tool}")), "{tool} is not in\n{run}");
    }
    // The rules of the caller hold for each tool of the pipe.
    folder.write("p.gram", agent(", deny: \"text/double\""));
    let denied = folder.run(&["run", "p.gram#a", "Go"]);
    assert!(denied.contains("text/double not permitted: `deny text/double` in p.gram"), "{denied}");
    assert!(!denied.contains("→ text/words"), "nothing follows what was denied: {denied}");
    // Types are checked along each arrow.
    folder.write("p.gram", agent("").replace("(`text/double`)-->(`text/words`)", "(`text/words`)-->(`text/double`)"));
    let wrong = folder.run(&["check", "p.gram"]);
    assert!(wrong.contains("P169") && wrong.contains("passes Int, but `text/double` takes (b::Text)"), "{wrong}");
}

const POLICY: &str =
    "[calm:Policy { forbid: \"(a:Agent { maxTurns: \\\"> 20\\\" })\", because: \"runs stay short\" }]\n";

#[test]
fn policies_are_locked() {
    let folder = project();
    folder.write("policies.gram", POLICY);
    assert!(folder.run(&["lock"]).starts_with("exit 0"));
    let locked = folder.read("patter.lock");
    assert!(locked.contains("[[policy]]") && locked.contains("name = \"calm\""), "{locked}");
    let run = |folder: &Folder| folder.run(&["run", "night.gram", "Say hello to Ann", "--model", "demo", "--locked"]);
    assert!(run(&folder).starts_with("exit 0"), "{}", run(&folder));
    // A reason is for people, and decides nothing.
    folder.write("policies.gram", POLICY.replace("runs stay short", "short runs are cheap"));
    assert!(run(&folder).starts_with("exit 0"), "{}", run(&folder));
    let changes = [
        (POLICY.replace("> 20", "> 2000"), "the forbid of the policy `calm` changed"),
        (POLICY.replace("because", "level: \"warning\", because"), "the level of the policy `calm` changed"),
        ("// nothing\n".to_owned(), "the policy `calm` is locked, but no longer there"),
        (POLICY.replace("calm", "quiet"), "the policy `quiet` is not locked"),
    ];
    for (text, message) in changes {
        folder.write("policies.gram", text);
        for printed in [run(&folder), folder.run(&["check", "--locked"])] {
            assert!(printed.starts_with("exit 1") && printed.contains(message), "{message}\n{printed}");
        }
    }
}

#[test]
fn a_person_answers_a_step_at_the_terminal() {
    let folder = Folder::new();
    folder.write(
        "w.gram",
        "[w:Workflow |\n  (many:Human { question: \"How many for {takes}?\", returns: \"Int\" })-->(done:Give { value: \"{many} it is.\" })\n]\n",
    );
    let mut terminal = Terminal::start(&folder, &["run", "w.gram", "Ada", "--store", "none"], 100);
    terminal.shows("How many for Ada?");
    // An answer of another type is rejected, and the question asked again.
    terminal.asks("answer (empty to answer later):").keys("some\r").shows("does not match its type");
    terminal.asks("answer (empty to answer later):").keys("7\r").shows("7 it is.");
    assert_eq!(terminal.ends(), Some(0));
}

/// A workflow has no conversation: each message is an input of its own.
#[test]
fn each_message_to_a_workflow_is_a_run_of_its_own() {
    let folder = Folder::new();
    folder.write("w.gram", "[w:Workflow |\n  (echo:Give { value: \"You said: {takes}\" })\n]\n");
    let printed = folder.run_with(&["chat", "w.gram", "--store", "none"], "first\nsecond\n");
    assert!(printed.contains("You said: first") && printed.contains("You said: second"), "{printed}");
    assert!(!printed.contains("first second") && !printed.contains("first\nsecond"), "{printed}");
}
