//! Cases run under one or more arms, with the models that need no network.

use crate::folder::{Folder, PATTER};
use serde_json::{Value as Json, json};
use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// A greeter, cases that pass and one that does not, and two implementations of its tool.
fn project() -> Folder {
    let folder = Folder::new();
    folder.write(
        "a.gram",
        "[greeter:Agent { instruction: \"Greet with `sayHello`.\", model: \"demo\" } |\n  \
           [sayHello:Tool { description: \"Greets\" } | (personName::Text { default: \"world\" })==>(::Text)]]\n",
    );
    let case = |id: &str, name: &str| {
        let checks = json!([{"contains": name}, {"called": "sayHello"}]);
        json!({"id": id, "input": format!("Hello! My name is {name}."), "tags": [id], "checks": checks}).to_string()
    };
    let cases = [case("ann", "Ann"), case("bob", "Bob"), case("eve", "Eve")].join("\n");
    folder.write("good.jsonl", &cases);
    let wrong = json!({"id": "wrong", "input": "Hello! My name is Ann.", "checks": [{"contains": "Zoe"}]});
    folder.write("bad.jsonl", format!("{cases}\n{wrong}\n"));
    for (name, greeting) in [("loud", "HELLO, {personName}!"), ("mute", "Hello!")] {
        let text = format!(
            "[{name}:Toolbox | [sayHello:Command {{ description: \"Greets\", run: [\"echo\", \"{greeting}\"] }} |\n  \
               (personName::Text {{ default: \"world\" }})==>(::Text)]]\n"
        );
        folder.write(&format!("arms/{name}.gram"), text);
    }
    folder
}

fn json_of(folder: &Folder, arguments: &[&str]) -> Json {
    let output = folder.output(&[arguments, &["--format", "json"]].concat(), "");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn exit_codes_and_gates() {
    let folder = project();
    let check = |arguments: &[&str], code: u8, expected: &str| {
        let said = folder.run(&[&["eval", "a.gram", "--store", "none"], arguments].concat());
        assert!(said.starts_with(&format!("exit {code}\n")) && said.contains(expected), "{arguments:?}\n{said}");
    };
    check(&["-c", "good.jsonl"], 0, "ann  ✓\nbob  ✓\neve  ✓\n\npassed 3 of 3, 100.0 % (95 % sure: 43.9–100.0 %)\n");
    check(&["-c", "good.jsonl", "--repeats", "3"], 0, "ann  ✓✓✓\n");
    check(&["-c", "bad.jsonl"], 1, "wrong  ✗  the answer does not contain `Zoe`");
    check(&["-c", "bad.jsonl"], 1, "gate pass>=1 fails: pass is 0.75\n");
    check(&["-c", "bad.jsonl", "--gate", "pass>=75%"], 0, "gate pass>=0.75 holds: pass is 0.75\n");
    check(&["-c", "bad.jsonl", "--gate", "pass>=0.5", "--gate", "turns<=1"], 1, "gate turns<=1 fails: turns is 2\n");
    check(&["-c", "bad.jsonl", "--tag", "eve", "--tag", "bob"], 0, "passed 2 of 2");
    check(&["-c", "good.jsonl", "--rate", "6000/min", "--concurrency", "1"], 0, "passed 3 of 3");
    check(&["-c", "bad.jsonl", "--tag", "none"], 1, "no case has the tag `none`");
    check(&["-c", "good.jsonl", "-c", "bad.jsonl"], 1, "bad.jsonl:1: there is a case `ann` in another file");
    check(&["-c", "none.jsonl"], 1, "there is no such file");
    check(&["-c", "a.txt"], 1, "`a.txt` has not the ending of a file with cases");
    check(&["-c", "good.jsonl", "--gate", "speed>=1"], 2, "there is no metric `speed`; there are pass,");
    check(&["-c", "good.jsonl", "--rate", "fast"], 2, "write a number and a time, as in 60/min");
    check(&["-c", "good.jsonl", "--model", "scripted/no.json"], 1, "cannot read `no.json`");
}

#[test]
fn a_run_that_fails_is_no_pass() {
    let folder = project();
    folder.write("fails.json", json!([{"error": {"message": "out of order"}}]).to_string());
    let said = folder.run(&["eval", "a.gram", "-c", "good.jsonl", "--model", "scripted/fails.json"]);
    assert!(said.starts_with("exit 1\n") && said.contains("ann  !  ") && said.contains("out of order"), "{said}");
    assert!(said.contains("passed 0 of 3, 0.0 %") && said.contains(", 3 without an answer\n"), "{said}");
}

#[test]
fn junit_is_read_by_others() {
    let folder = project();
    folder.write(
        "odd.jsonl",
        json!({"id": "a<b", "input": "Hello! My name is Ann.", "checks": [{"contains": "\"&<>"}]}).to_string(),
    );
    let said = folder.output(&["eval", "a.gram", "-c", "bad.jsonl", "-c", "odd.jsonl", "--format", "junit"], "");
    let text = String::from_utf8(said.stdout).unwrap();
    let xml = roxmltree::Document::parse(&text).unwrap();
    let suites = xml.root_element();
    assert_eq!((suites.attribute("tests"), suites.attribute("failures")), (Some("5"), Some("2")));
    let tests: Vec<_> = suites.descendants().filter(|node| node.has_tag_name("testcase")).collect();
    let names: Vec<_> = tests.iter().filter_map(|test| test.attribute("name")).collect();
    assert_eq!(names, ["ann", "bob", "eve", "wrong", "a<b"]);
    let failure = tests[4].children().find(|node| node.has_tag_name("failure")).unwrap();
    assert!(failure.text().unwrap().contains("\"&<>"), "{text}");
}

#[test]
fn judges_and_programs() {
    let folder = project();
    folder.write(
        "cases/judge.gram",
        "[judge:Agent { instruction: \"Judge.\", model: \"scripted/verdict.json\", returns: \"Verdict\" }]\n\
         [Verdict:Object | (passed::Bool), (why::Text)]\n",
    );
    let verdict = json!({"passed": false, "why": "it is too short"});
    folder.write(
        "verdict.json",
        json!([{"text": verdict.to_string(), "expect": {"user": ["Be long", "Hello, Ann!"]}}]).to_string(),
    );
    let program = "read -r line; case $line in *Ann*) echo fine;; *) exit 3;; esac";
    let cases = [
        json!({"id": "judged", "input": "Hello! My name is Ann.", "checks": [{"judge": {"agent": "judge.gram", "criteria": "Be long"}}]}),
        json!({"id": "runs", "input": "Hello! My name is Ann.", "checks": [{"command": ["sh", "-c", program]}]}),
        json!({"id": "fails", "input": "Hello! My name is Bob.", "checks": [{"command": ["sh", "-c", program]}]}),
        json!({"id": "missing", "input": "Hello! My name is Bob.", "checks": [{"command": ["./none"]}]}),
    ];
    folder.write("cases/all.jsonl", cases.map(|case| case.to_string()).join("\n"));
    let report = json_of(&folder, &["eval", "a.gram", "-c", "cases/all.jsonl"]);
    let judged = |case: &str| {
        let trials = report["trials"].as_array().unwrap();
        let trial = trials.iter().find(|trial| trial["case"] == case).unwrap();
        (trial["passed"].as_bool().unwrap(), trial["judged"][0]["why"].as_str().unwrap().to_owned())
    };
    assert_eq!(judged("judged"), (false, "it is too short".to_owned()));
    assert_eq!(judged("runs"), (true, "fine".to_owned()));
    assert_eq!(judged("fails"), (false, "the program `sh` ended with exit status: 3".to_owned()));
    assert!(judged("missing").1.starts_with("the program `./none` could not be started"), "{report}");
    let judge = &report["judges"][0];
    assert_eq!((&judge["model"], &judge["instruction"]), (&json!("scripted/verdict.json"), &json!("Judge.")));
    folder.write("cases/judge.gram", "[judge:Agent { instruction: \"Judge.\", model: \"demo\" }]\n");
    let said = folder.run(&["eval", "a.gram", "-c", "cases/all.jsonl"]);
    assert!(said.contains("the agent `judge` cannot judge") && said.contains("returns: \"Verdict\""), "{said}");
}

/// Each run writes its case into a pipe, so that it is known which runs were made.
#[test]
fn killed_in_the_middle_and_resumed() {
    const CASES: usize = 30;
    let folder = project();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let case = |number: usize| {
        let program = format!("cat > /dev/null; echo c{number} > pipe");
        json!({"id": format!("c{number}"), "input": "Hello! My name is Ann.", "checks": [{"command": ["sh", "-c", program]}]})
    };
    let cases: Vec<_> = (0..CASES).map(|number| case(number).to_string()).collect();
    folder.write("cases.jsonl", cases.join("\n"));
    let command = ["eval", "a.gram", "-c", "cases.jsonl", "--store", "x.db", "--concurrency", "2", "--format", "json"];
    // Open at both ends, so that neither waits for the other to be there.
    let mut made = BufReader::new(OpenOptions::new().read(true).write(true).open(&pipe).unwrap());
    let mut next = || {
        let mut line = String::new();
        made.read_line(&mut line).unwrap();
        line.trim().to_owned()
    };
    let mut killed = folder.command().args(command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let before: Vec<_> = (0..8).map(|_| next()).collect();
    killed.kill().unwrap();
    killed.wait().unwrap();

    let changed = folder.run(&[&command[..], &["--seed", "7", "--resume", "latest"]].concat());
    assert!(changed.contains("cannot go on: the seed is another"), "{changed}");
    assert!(folder.run(&["experiments", "--store", "x.db"]).contains("  open  "));

    let output = folder.output(&command, "");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Json = serde_json::from_slice(&output.stdout).unwrap();
    let ids: HashSet<_> = report["trials"].as_array().unwrap().iter().map(|trial| trial["case"].to_string()).collect();
    assert_eq!((report["trials"].as_array().unwrap().len(), ids.len()), (CASES, CASES), "{said}");
    let kept: usize = said
        .split("going on with ")
        .nth(1)
        .unwrap()
        .split(": ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    // Two are under way at a time while one is written: all others that were made are kept, and not made again.
    assert!(kept + 3 >= before.len() && kept < CASES, "{said}");
    let again = folder.run(&["eval", "a.gram", "-c", "good.jsonl", "--store", "x.db"]);
    assert!(!again.contains("going on"), "{again}");
    assert!(folder.run(&["sessions", "--store", "x.db"]).contains("there are no sessions yet"));
    let listed = folder.run(&["experiments", "--store", "x.db"]);
    assert!(listed.contains("    30 runs  greeter\n") && !listed.contains("open"), "{listed}");
}

#[test]
fn arms_of_all_kinds() {
    let folder = project();
    folder.write("b.gram", "[terse:Agent { instruction: \"Say nothing.\", model: \"demo\" }]\n");
    folder.write("says.json", json!([{"text": "Ann, Bob, Eve"}]).to_string());
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(folder.path()).args(["-c", "user.name=a", "-c", "user.email=a@example.org"]);
        assert!(command.args(arguments).output().unwrap().status.success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "a.gram"]);
    git(&["commit", "-qm", "first"]);
    let now = folder.read("a.gram").replace("Greet with", "Greet all with");
    folder.write("a.gram", now);
    let report = json_of(
        &folder,
        &[
            "ab",
            "a.gram",
            "-c",
            "good.jsonl",
            "--arm",
            "base",
            "--arm",
            "loud=arms/loud.gram",
            "--arm",
            "mute=arms/mute.gram",
            "--arm",
            "other=agent:b.gram",
            "--arm",
            "said=model:scripted/says.json",
            "--arm",
            "old=git:HEAD",
        ],
    );
    let arms = report["arms"].as_array().unwrap();
    let arm = |name: &str| arms.iter().find(|arm| arm["name"] == name).unwrap();
    let rate = |name: &str| {
        let summaries = report["summaries"].as_array().unwrap();
        summaries.iter().find(|summary| summary["arm"] == name).unwrap()["pass_rate"].as_f64().unwrap()
    };
    assert_eq!(["base", "loud", "mute", "other", "said", "old"].map(rate), [1.0, 1.0, 0.0, 0.0, 0.0, 1.0], "{report}");
    let contents: HashSet<_> =
        report["trials"].as_array().unwrap().iter().map(|trial| trial["content"].as_str().unwrap()).collect();
    assert!(contents.contains("HELLO, Ann!") && contents.contains("Hello!"), "{contents:?}");
    assert_ne!(arm("base")["agent_hash"], arm("old")["agent_hash"]);
    assert_ne!(arm("base")["bindings_hash"], arm("loud")["bindings_hash"]);
    assert_eq!((&arm("other")["agent"], &arm("said")["model"]), (&json!("terse"), &json!("scripted/says.json")));
    let passes = |contrast: &&Json| contrast["metric"]["kind"] == "pass";
    assert_eq!(report["comparison"]["contrasts"].as_array().unwrap().iter().filter(passes).count(), 5);
    let check = |arms: &[&str], code: u8, expected: &str| {
        let said = folder.run(&[&["ab", "a.gram", "-c", "good.jsonl"], arms].concat());
        assert!(said.starts_with(&format!("exit {code}\n")) && said.contains(expected), "{arms:?}\n{said}");
    };
    check(&["--arm", "a"], 2, "a comparison needs two arms");
    check(&["--arm", "a", "--arm", "a=b.gram"], 2, "there are two arms `a`");
    check(&["--arm", "a", "--arm", "b=what"], 2, "`what` is none of a file with toolboxes, model:NAME");
    check(&["--arm", "a", "--arm", "b=b.gram"], 1, "`b.gram` has no toolbox");
    check(&["--arm", "a", "--arm", "b=git:none"], 1, "the revision `none` cannot be read: ");
    check(&["--arm", "a", "--arm", "b=recording:none"], 1, "there is no recording `none`");
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    check(&["--arm", "a", "--arm", "b=recording:empty"], 1, "there are no recordings in `empty`");
}

#[test]
fn recorded_arms_need_no_model() {
    let folder = project();
    folder.run(&["eval", "a.gram", "-c", "good.jsonl", "--record", "rec"]);
    let text = folder.read("a.gram").replace("\"demo\"", "\"OpenAI/gpt-4o-mini\"");
    folder.write("a.gram", text);
    let arms = ["--arm", "then=recording:rec/agent", "--arm", "mute=recording:rec/agent,arms/mute.gram"];
    let report = json_of(&folder, &[&["ab", "a.gram", "-c", "good.jsonl", "--repeats", "2"], &arms[..]].concat());
    let trials = report["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 12);
    // The replies are those of then; only what the tool gives is another.
    assert!(trials.iter().all(|trial| trial["passed"] == true), "{report}");
    let results: HashSet<_> = trials
        .iter()
        .filter(|trial| trial["arm"] == "mute")
        .map(|trial| trial["tools"][0]["result"].to_string())
        .collect();
    assert_eq!(results, HashSet::from(["\"Hello!\"".to_owned()]));
}

#[test]
fn baselines_and_pages() {
    let folder = project();
    let saved =
        folder.run(&["eval", "a.gram", "-c", "good.jsonl", "--save-baseline", "then.json", "--report", "a.html"]);
    assert!(saved.starts_with("exit 0"), "{saved}");
    assert!(folder.read("a.html").starts_with("<!doctype html>"));
    let arguments = ["eval", "a.gram", "-c", "bad.jsonl", "--baseline", "then.json", "--tools", "arms/mute.gram"];
    let said = folder.run(&arguments);
    assert!(said.contains("now against before\n  pass rate   100.0 % → 0.0 %"), "{said}");
    let wrong = folder.run(&["eval", "a.gram", "-c", "good.jsonl", "--baseline", "a.html"]);
    assert!(wrong.starts_with("exit 1") && wrong.contains("`a.html` is no report"), "{wrong}");
}

/// The example runs offline, and finds what is there to find.
#[test]
fn the_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(PATTER);
    command.args([
        "ab",
        "examples/ab/hello.gram",
        "--cases",
        "examples/ab/cases.gram",
        "--model",
        "demo",
        "--store",
        "none",
    ]);
    command.args(["--arm", "a=examples/ab/sayHelloA.gram", "--arm", "b=examples/ab/sayHelloB.gram"]);
    let output =
        command.current_dir(root).env_clear().env("PATH", "/usr/bin:/bin").stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("`b` is less correct by 17–61 points"), "{said}");
    assert!(said.contains("├───●────┤··│"), "{said}");
}

#[test]
fn stopping_early() {
    let folder = project();
    let case = |number: usize| {
        json!({"id": number.to_string(), "input": "Hello! My name is Ann.", "checks": [{"contains": "Ann"}]})
            .to_string()
    };
    folder.write("many.jsonl", (0..200).map(case).collect::<Vec<_>>().join("\n"));
    let arms = ["--arm", "a", "--arm", "b=arms/mute.gram", "--stop-early"];
    let report = json_of(&folder, &[&["ab", "a.gram", "-c", "many.jsonl"], &arms[..]].concat());
    let trials = report["trials"].as_array().unwrap().len();
    assert!((10..200).contains(&trials), "{trials}");
    let first = &report["comparison"]["contrasts"][0];
    assert_eq!((&first["test"]["method"], &first["verdict"]["finding"]), (&json!("anytime"), &json!("worse")));
}
