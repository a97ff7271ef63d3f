//! Agents, run from the terminal with the models that need no network.

use crate::folder::{Folder, PATTER};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs an example with the demo model, in the root of the repository, and returns all that it said.
fn example(agent: &str, prompt: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(PATTER)
        .args(["run", &format!("examples/{agent}"), prompt, "--model", "demo"])
        .current_dir(root)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("exit {}\n{stdout}{stderr}", output.status.code().unwrap())
}

#[test]
fn examples_answer_with_the_demo_model() {
    let table = [
        ("hello.gram", "Hello! My name is Alice.", ["→ sayHello {\"personName\":\"Alice\"}", "Hello, Alice!"]),
        ("hello.gram", "What is the weather in Bern?", ["None of my tools fits that", "1 model call,"]),
        ("helloAndGoodbye.gram", "Say hello to Ann and goodbye to Bob", ["Hello, Ann!", "Goodbye, Bob!"]),
        ("textCommands.gram", "Count the words of \"to be or not to be\"", ["→ countWords", "6"]),
        ("support.gram", "Where is order AB123456?", ["→ findOrder {\"orderId\":\"AB123456\"}", "AB123456"]),
        ("newsroom.gram", "Ask the summarizer about this: gram is a notation", ["→ summarizer", "← "]),
    ];
    for (agent, prompt, expected) in table {
        let said = example(agent, prompt);
        assert!(said.starts_with("exit 0"), "{agent}\n{said}");
        for expected in expected {
            assert!(said.contains(expected), "{agent} does not say {expected}\n{said}");
        }
    }
    // What needs a server or a network stops before a token is spent, or says what failed.
    let files = example("files.gram", "List the directory 'docs'");
    assert!(
        files.starts_with("exit 1") && files.contains("nothing implements the tool `files/list_directory`"),
        "{files}"
    );
}

fn project() -> Folder {
    let folder = Folder::new();
    folder.write(
        "a.gram",
        "[greeter:Agent { instruction: \"Greet with `sayHello`.\", model: \"OpenAI/gpt-4o-mini\" } | sayHello]\n",
    );
    let script =
        json!([{"calls": [{"tool": "sayHello", "arguments": {"personName": "Ada"}}]}, {"text": "Ada was greeted."}]);
    folder.write("script.json", script.to_string());
    folder
}

#[test]
fn forms_of_output() {
    let folder = project();
    let run = |arguments: &[&str]| {
        folder.output(&[&["run", "a.gram", "hi", "--model", "scripted/script.json"], arguments].concat(), "")
    };
    let text = run(&[]);
    assert_eq!(String::from_utf8_lossy(&text.stdout), "Ada was greeted.\n");
    assert!(String::from_utf8_lossy(&text.stderr).trim_end().ends_with(" s, $0"), "{text:?}");
    let document: Json = serde_json::from_slice(&run(&["--output-format", "json"]).stdout).unwrap();
    assert_eq!((&document["content"], &document["model_calls"]), (&json!("Ada was greeted."), &json!(2)));
    assert_eq!(document["conversation"].as_array().unwrap().len(), 4);
    assert_eq!(document["cost_usd"], json!(0.0));
    assert_eq!(document["bindings"].as_str().unwrap().len(), 64);
    let lines = String::from_utf8(run(&["--output-format", "stream-json"]).stdout).unwrap();
    let events: Vec<Json> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names.first().zip(names.last()), Some((&"started", &"finished")));
    assert!(names.contains(&"tool_finished"), "{names:?}");
}

#[test]
fn what_goes_wrong() {
    let folder = project();
    folder.write("bad.gram", "[lost:Agent { instruction: \"Use `nothing`.\", model: \"demo\" } | nothing, nowhere]\n");
    let check = |arguments: &[&str], expected: &str| {
        let said = folder.run(&[&["run"], arguments].concat());
        assert!(said.starts_with("exit 1") && said.contains(expected), "{arguments:?}\n{said}");
    };
    check(&["a.gram", "hi"], "ConfigurationError: there is no key for OpenAI: `OPENAI_API_KEY` is not set");
    check(&["a.gram", "hi"], "`--model demo`");
    check(&["a.gram", " ", "--model", "demo"], "ValidationError: the input is empty");
    check(&["bad.gram", "hi"], "nothing implements the tool `nowhere`");
    check(&["a.gram#other", "hi", "--model", "demo"], "`a.gram` has no agent `other`");
    check(&["missing.gram", "hi"], "there is no such file");
    check(&["a.gram", "hi", "--model", "scripted/none.json"], "cannot read `none.json`");
    check(&["a.gram", "hi", "--model", "scripted/script.json", "--max-turns", "1"], "ToolError:");
    let denied = folder.run(&["run", "a.gram", "hi", "--model", "scripted/script.json", "--deny", "sayHello"]);
    assert!(denied.contains("not permitted") && denied.contains("`deny sayHello` in --deny"), "{denied}");
    let asked = folder.run(&["run", "a.gram", "hi", "--model", "scripted/script.json", "--ask", "sayHello"]);
    assert!(asked.contains("nobody to ask"), "{asked}");
    let approved =
        folder.run(&["run", "a.gram", "hi", "--model", "scripted/script.json", "--ask", "sayHello", "--yes"]);
    assert!(approved.contains("← sayHello Hello, Ada!"), "{approved}");
    assert!(folder.run(&["run", "a.gram", "hi", "--model", "OpnAI/x"]).contains("there is no provider `OpnAI`"));
    let piped = folder.run_with(&["run", "a.gram", "-", "--model", "demo"], "Hello! My name is Bob.");
    assert!(piped.contains("Hello, Bob!"), "{piped}");
}
