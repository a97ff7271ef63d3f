//! Names of agents and tools mean the same to every command.

use crate::folder::Folder;
use serde_json::Value as Json;

/// `clerk` means the public `helper`; `boss` has its own, which may write files.
const HELPERS: &str = r#"[boss:Agent { instruction: "Ask `helper`.", model: "demo" } |
  [helper:Agent { description: "Writes files", instruction: "Use `fs/writeFile`.", model: "demo" } | `fs/writeFile`]
]
[clerk:Agent { instruction: "Ask `helper`.", model: "demo" } | helper]
[helper:Agent { description: "Answers questions", instruction: "Answer.", model: "demo" }]
"#;

#[test]
fn every_command_resolves_a_delegate_in_the_same_way() {
    let folder = Folder::new();
    folder.write("patter.toml", "");
    folder.write("a.gram", HELPERS);
    let show = folder.run(&["show", "a.gram", "clerk"]);
    assert!(show.contains("helper: Answers questions  a.gram:5:1"), "{show}");
    let why = folder.run(&["why", "helper", "--agent", "a.gram#clerk"]);
    assert!(why.contains("the agent `helper`"), "{why}");
    let why = folder.run(&["why", "helper", "--agent", "a.gram#boss"]);
    assert!(why.contains("the agent `boss/helper`"), "{why}");
    let check = folder.run(&["check", "a.gram"]);
    assert!(
        check.contains("warning[P047]: `helper` has two meanings: this agent, and the agent in a.gram:5:1"),
        "{check}"
    );
    assert!(folder.run(&["lock"]).starts_with("exit 0"));
    let lock = folder.read("patter.lock");
    let calls: Vec<_> = lock.lines().filter(|line| line.starts_with("calls = ")).collect();
    let expected = ["helper: agent boss/helper", "fs/writeFile: tool fs/writeFile", "helper: agent helper"];
    assert_eq!(calls.len(), expected.len(), "{lock}");
    // The descriptions of agents follow.
    let is_expected = |(line, call): (&&str, &str)| line.starts_with(&format!("calls = [\"{call}"));
    assert!(calls.iter().zip(expected).all(is_expected), "{lock}");
    assert!(folder.run(&["check", "--locked"]).starts_with("exit 0"));
    let run = folder.output(&["run", "a.gram#clerk", "Ask helper: who are you?", "--format", "stream-json"], "");
    let events = String::from_utf8(run.stdout).unwrap();
    let agents: Vec<Json> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = agents.iter().filter_map(|event| event["agent"].as_str()).collect();
    assert!(names.contains(&"helper") && !names.contains(&"boss/helper"), "{events}");
}

/// An agent with the name of a tool is what runs, and all commands say so.
#[test]
fn an_agent_hides_a_tool_of_the_library() {
    let folder = Folder::new();
    folder.write("patter.toml", "");
    folder.write(
        "a.gram",
        "[clerk:Agent { instruction: \"Ask `calculator`.\", model: \"demo\" } | calculator]\n\
         [calculator:Agent { description: \"Reckons\", instruction: \"Reckon.\", model: \"demo\" }]\n",
    );
    let check = folder.run(&["check", "a.gram"]);
    let expected = "warning[P047]: `calculator` has two meanings: the agent in a.gram:2:1, and the tool `calculator`";
    assert!(check.contains(expected), "{check}");
    let why = folder.run(&["why", "calculator", "--agent", "a.gram#clerk", "--deny", "calculator"]);
    assert!(why.starts_with("exit 0"), "{why}");
    assert!(why.contains("the agent `calculator`") && why.contains("not chosen: an agent has this name"), "{why}");
    assert!(!why.contains("chosen: the highest layer") && why.contains("deny: `deny calculator` in --deny"), "{why}");
    let why = folder.output(&["why", "calculator", "--agent", "a.gram#clerk", "--format", "json"], "");
    let why: Json = serde_json::from_slice(&why.stdout).unwrap();
    assert_eq!((&why["tool"], &why["candidates"][0]["chosen"]), (&Json::Null, &false.into()), "{why}");
}

#[test]
fn why_finds_a_tool_under_each_of_its_names() {
    let folder = Folder::new();
    folder.write("patter.toml", "");
    folder.write("a.gram", "[bare:Agent { instruction: 'x', model: 'demo' } | greet]\n[full:Agent { instruction: 'x', model: 'demo' } | `ours/greet`, missing]\n");
    folder
        .write("t.gram", "[ours:Toolbox | [greet:Command { description: 'Greets', run: ['echo'] } | ()==>(::Text)]]\n");
    for agent in ["bare", "full"] {
        for name in ["greet", "ours/greet"] {
            let found = folder.run(&["why", name, "--agent", &format!("a.gram#{agent}")]);
            assert!(found.starts_with("exit 0") && found.contains("compatible"), "{agent} {name}: {found}");
        }
    }
    let other = folder.run(&["why", "sayHello", "--agent", "a.gram#bare"]);
    assert!(other.contains("`bare` does not declare it"), "{other}");
}
