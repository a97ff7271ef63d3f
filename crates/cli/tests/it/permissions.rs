//! Permission rules that are about nothing: nothing runs with them.

use crate::folder::Folder;

const AGENT: &str = "[a:Agent { instruction: 'Use `readFile`.', model: 'demo' } | `fs/readFile`]\n";
const CASES: &str = "[:Cases | [c:Case { input: 'hi' } | (:Contains { text: 'x' })]]\n";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("a.gram", AGENT);
    folder.write("cases.gram", CASES);
    folder.write("dangling.gram", "[z:Agent { instruction: 'z', model: 'demo' } | `fs/listFoldr`]\n");
    folder.write("patter.toml", "");
    folder
}

/// The commands that run something.
fn commands() -> Vec<Vec<&'static str>> {
    vec![
        vec!["run", "a.gram", "hi"],
        vec!["chat", "a.gram"],
        vec!["eval", "a.gram", "--cases", "cases.gram"],
        vec!["ab", "a.gram", "--cases", "cases.gram", "--arm", "x=base", "--arm", "y=model:demo"],
        vec!["call", "sayHello"],
    ]
}

#[test]
fn nothing_runs_with_a_misspelt_rule() {
    let folder = folder();
    for (rule, hint) in [
        ("fs/writeFil", "did you mean `fs/writeFile`?"),
        ("writeFil", "did you mean `fs/writeFile`?"),
        ("fss/*", "did you mean `fs/*`?"),
        ("files/writeFile", "did you mean `fs/writeFile`?"),
        ("fs/writeFile when pth is 'x'", "did you mean `path`?"),
        // That an agent refers to a tool says nothing about its parameters, nor that it exists.
        ("fs/readFile when pth is 'x'", "did you mean `path`?"),
        ("fs/* when pth is 'x'", "did you mean `path`?"),
        ("fs/listFoldr", "did you mean `fs/listFolder`?"),
    ] {
        for decision in ["allow", "ask", "deny"] {
            let option = format!("--{decision}");
            let output = folder.run(&["run", "a.gram", "hi", &option, rule]);
            assert!(output.starts_with("exit 2") && output.contains(hint), "{output}");
        }
    }
    for mut command in commands() {
        command.extend(["--deny", "fs/writeFil"]);
        let output = folder.run(&command);
        assert!(
            output.starts_with("exit 2") && output.contains("did you mean `fs/writeFile`?"),
            "{command:?} {output}"
        );
        command.truncate(command.len() - 2);
        command.extend(["--deny", "fs/writeFile"]);
        let output = folder.run(&command);
        assert!(!output.contains("matches no tool"), "{command:?} {output}");
    }
}

#[test]
fn a_misspelt_rule_of_the_project_is_found() {
    let folder = folder();
    folder.write("patter.toml", "[permissions]\ndeny = [\"sayHello when x is 'y'\",\n  \"fs/writeFil\"]\n");
    for command in commands() {
        let output = folder.run(&command);
        assert!(output.starts_with("exit 1") || output.starts_with("exit 2"), "{command:?} {output}");
        assert!(output.contains("patter.toml:3:4") && output.contains("did you mean `fs/writeFile`?"), "{output}");
    }
    for options in [&["check"][..], &["check", "--bind"]] {
        let output = folder.run(options);
        assert!(output.starts_with("exit 1") && output.contains("patter.toml:3:4"), "{output}");
        assert!(output.contains("`deny fs/writeFil` matches no tool"), "{output}");
        assert!(output.contains("has the parameter `x`"), "{output}");
    }
    for command in ["doctor", "lock"] {
        let output = folder.run(&[command]);
        assert!(output.starts_with("exit 1") && output.contains("did you mean `fs/writeFile`?"), "{output}");
    }
    // Tools that no agent of this project uses are fine, as long as they are known.
    let rules = "[permissions]\nask = [\"fs/*\", \"fetch\"]\ndeny = [\"*\", \"sayHello when personName is 'x'\"]\n";
    folder.write("patter.toml", rules);
    let output = folder.run(&["run", "a.gram", "hi"]);
    assert!(output.starts_with("exit 0"), "{output}");
}

#[test]
fn a_misspelt_rule_of_an_agent_is_found() {
    let folder = folder();
    folder.write("a.gram", AGENT.replace("model:", "deny: ['fetch', 'fs/writeFil'], model:"));
    for command in commands().into_iter().filter(|command| command[0] != "call" && command[0] != "chat") {
        let output = folder.run(&command);
        assert!(output.contains("did you mean `fs/writeFile`?"), "{command:?} {output}");
        assert!(!output.starts_with("exit 0"), "{output}");
    }
    let output = folder.run(&["check"]);
    assert!(output.starts_with("exit 1") && output.contains("P046"), "{output}");
    // All of them are reported at once, with their places.
    folder.write("a.gram", AGENT.replace("model:", "deny: ['fs/writeFil', 'fetc'], model:"));
    let output = folder.run(&["run", "a.gram", "hi"]);
    assert!(output.matches("error[P046]").count() == 2 && output.contains("a.gram:1:"), "{output}");
    // Also a rule of an agent that would be called.
    folder.write(
        "a.gram",
        "[a:Agent { instruction: 'Ask `b`.', model: 'demo' } | b]
         [b:Agent { description: 'b', instruction: 'x', model: 'demo', ask: 'fs/writeFil' }]\n",
    );
    let output = folder.run(&["run", "a.gram", "hi"]);
    assert!(output.starts_with("exit 1") && output.contains("`b`") && output.contains("fs/writeFile"), "{output}");
}

#[test]
fn tools_of_servers_that_did_not_start_may_have_rules() {
    let folder = folder();
    let rules = "deny = [\"files/*\", \"files/delete\", \"deleteEverything\"]";
    folder.write("patter.toml", format!("[permissions]\n{rules}\n[mcp.files]\ncommand = \"no-such-program\"\n"));
    for command in [vec!["run", "a.gram", "hi", "--no-mcp"], vec!["call", "sayHello"], vec!["check"]] {
        let output = folder.run(&command);
        assert!(output.starts_with("exit 0"), "{output}");
    }
    folder.write("patter.toml", "[permissions]\ndeny = [\"writeFil\"]\n[mcp.files]\ncommand = \"no-such-program\"\n");
    let output = folder.run(&["run", "a.gram", "hi", "--no-mcp"]);
    assert!(output.contains("did you mean `fs/writeFile`?"), "{output}");
}

#[test]
fn toolkits_are_shown_and_apply_in_rules() {
    let folder = Folder::new();
    folder.write("patter.toml", "[permissions]\nask = [\"reading\"]\n");
    folder.write(
        "a.gram",
        "[a:Agent { instruction: 'Use `reading`.', model: 'demo' } | reading]
         [reading:Toolkit { description: 'Looks' } | `fs/readFile`, sayHello]\n",
    );
    assert!(folder.run(&["check", "--bind"]).contains("no problems found"), "{}", folder.run(&["check", "--bind"]));
    let show = folder.run(&["show", "a.gram"]);
    assert!(show.contains("sayHello") && show.contains("from the toolkit reading"), "{show}");
    let tools = folder.run(&["tools", "--layer", "project"]);
    assert!(tools.contains("toolkits\n  reading  fs/readFile, sayHello\n"), "{tools}");
    let why = folder.run(&["why", "sayHello", "--agent", "a.gram"]);
    assert!(why.contains("from the toolkit `reading`") && why.contains("ask: `ask reading` in `patter.toml`"), "{why}");
    let call = folder.run(&["call", "sayHello"]);
    assert!(call.starts_with("exit 4"), "the rule of the toolkit applies: {call}");
    let run = folder.run(&["run", "a.gram", "Say hello to Ada"]);
    assert!(run.contains("sayHello") && !run.contains("Hello, Ada!"), "nobody approved it: {run}");
    let run = folder.run(&["run", "a.gram", "Say hello to Ada", "--yes"]);
    assert!(run.contains("Hello, Ada!"), "{run}");
    folder.run(&["lock"]);
    assert!(folder.read("patter.lock").contains("\"sayHello: tool sayHello\""));
    folder.write("a.gram", folder.read("a.gram").replace(", sayHello", ""));
    let locked = folder.run(&["check", "--locked"]);
    assert!(locked.contains("the tool `sayHello` is locked, but no longer there"), "{locked}");
}

/// Rules over lists of objects apply, and are checked.
#[test]
fn rules_apply_to_lists_of_objects() {
    let folder = Folder::new();
    folder.write(
        "tools.gram",
        "[t:Toolbox | [pack:Command { description: 'Packs', run: ['echo', 'packed'], effect: 'pure' } |\n\
         (items::Array { elementType: 'Object', fields: { path: 'Text' } })==>(::Text)]]\n",
    );
    folder.write("patter.toml", "[permissions]\ndeny = [\"t/pack when items.path matches 'secret*'\"]\n");
    let call = |path: &str| folder.run(&["call", "t/pack", &format!("{{\"items\": [{{\"path\": \"{path}\"}}]}}")]);
    assert!(call("open.txt").contains("packed"), "{}", call("open.txt"));
    assert!(call("secret.txt").starts_with("exit 4"), "{}", call("secret.txt"));
    folder.write("patter.toml", "[permissions]\ndeny = [\"t/pack when items.pth matches 'secret*'\"]\n");
    for command in [&["check"][..], &["call", "t/pack", "{\"items\": []}"]] {
        let output = folder.run(command);
        assert!(!output.starts_with("exit 0") && output.contains("did you mean `items.path`?"), "{output}");
    }
}

/// Hooks are shown, checked, and run for every call.
#[test]
fn hooks_refuse_calls_and_are_shown() {
    let folder = folder();
    folder.write("notes.txt", "text");
    folder.write("hook.sh", "grep -q notes.txt && { echo 'not this file' >&2; exit 2; }\nexit 0\n");
    folder.write("patter.toml", "[[hooks]]\nbefore = [\"fs/* when path matches '*.txt'\"]\nrun = ['sh', 'hook.sh']\n");
    let output = folder.run(&["call", "fs/readFile", "{\"path\": \"notes.txt\"}"]);
    assert!(output.starts_with("exit 4"), "{output}");
    assert!(output.contains("the hook `sh hook.sh` refused it: not this file"), "{output}");
    let output = folder.run(&["call", "fs/readFile", "{\"path\": \"hook.sh\"}"]);
    assert!(output.starts_with("exit 0"), "{output}");
    let output = folder.run(&["why", "fs/readFile"]);
    assert!(output.contains("hooks\n  before  sh hook.sh  for fs/* when path matches \"*.txt\"\n"), "{output}");
    let output = folder.run(&["doctor", "--offline"]);
    assert!(output.contains("the program of the hook `sh hook.sh` was found"), "{output}");
    let output = folder.run(&["run", "a.gram", "read the file 'notes.txt' with readFile", "--format", "stream-json"]);
    assert!(output.contains("hook `sh hook.sh` before the call refused: not this file"), "{output}");

    // A hook that never runs protects nothing.
    folder.write("patter.toml", "[[hooks]]\nbefore = ['fs/readFil']\nrun = ['./missing']\n");
    for command in [&["check"][..], &["call", "sayHello"], &["run", "a.gram", "hi"], &["doctor", "--offline"]] {
        let output = folder.run(command);
        assert!(!output.starts_with("exit 0"), "{output}");
        assert!(output.contains("the hook `./missing`: `before fs/readFil` matches no tool"), "{command:?} {output}");
    }
    let output = folder.run(&["doctor", "--offline"]);
    let expected = "the hook `./missing` cannot run, so it refuses all calls: the program `./missing` does not exist";
    assert!(output.contains(expected), "{output}");
}

#[test]
fn a_rule_about_one_tool_that_writes_leaves_no_other_open_unnoticed() {
    let folder = Folder::new();
    folder.write(
        "a.gram",
        "[a:Agent { instruction: 'Use `editFile`.', model: 'demo' } | `fs/editFile`, `fs/readFile`]\n",
    );
    for (rules, is_reported) in [
        ("deny = ['fs/writeFile']", true),
        ("deny = ['writeFile']", true),
        ("ask = [\"fs/writeFile when path matches '*.md'\"]", true),
        ("allow = ['fs/*']\ndeny = ['fs/writeFile']", true),
        ("deny = ['fs/readFile']", false),
        ("deny = ['fs/*']", false),
        ("ask = ['fs/*']\ndeny = ['fs/writeFile']", false),
        ("deny = ['fs/writeFile']\nask = ['editFile']", false),
        ("allow = ['fs/editFile']\ndeny = ['fs/writeFile']", false),
    ] {
        folder.write("patter.toml", format!("[permissions]\n{rules}\n"));
        let output = folder.run(&["check", "a.gram"]);
        assert_eq!(output.contains("does not apply to `fs/editFile`"), is_reported, "{rules}\n{output}");
    }
    folder.write("patter.toml", "[permissions]\ndeny = ['fs/writeFile']\n");
    let output = folder.run(&["check", "a.gram"]);
    assert!(output.contains("`deny fs/writeFile` does not apply to `fs/editFile`"), "{output}");
    assert!(output.contains("add `deny fs/editFile`, or `allow fs/editFile` if that is intended"), "{output}");
}
