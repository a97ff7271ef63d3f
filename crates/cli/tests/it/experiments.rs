//! `patter eval`, `patter ab` and `patter experiments`, with models that need no network.

use crate::folder::{Folder, repository_command};
use serde_json::{Value as Json, json};
use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// An agent, passing and failing cases, and two implementations of its tool.
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
        let printed = folder.run(&[&["eval", "a.gram", "--store", "none"], arguments].concat());
        assert!(
            printed.starts_with(&format!("exit {code}\n")) && printed.contains(expected),
            "{arguments:?}\n{printed}"
        );
    };
    check(&["-c", "good.jsonl"], 0, "ann  ✓\nbob  ✓\neve  ✓\n\npassed 3 of 3, 100.0% (95% CI 43.9–100.0%)\n");
    check(&["-c", "good.jsonl", "--repeats", "3"], 0, "ann  ✓✓✓\n");
    check(&["-c", "bad.jsonl"], 1, "wrong  ✗  the answer does not contain `Zoe`");
    check(&["-c", "bad.jsonl"], 1, "gate pass>=1 failed: pass is 0.75\n");
    check(&["-c", "bad.jsonl", "--gate", "pass>=75%"], 0, "gate pass>=0.75 passed: pass is 0.75\n");
    check(&["-c", "bad.jsonl", "--gate", "pass>=0.5", "--gate", "turns<=1"], 1, "gate turns<=1 failed: turns is 2\n");
    check(&["-c", "bad.jsonl", "--tag", "eve", "--tag", "bob"], 0, "passed 2 of 2");
    check(&["-c", "good.jsonl", "--rate", "6000/min", "--concurrency", "1"], 0, "passed 3 of 3");
    check(&["-c", "bad.jsonl", "--tag", "none"], 1, "no case has the tag `none`");
    check(&["-c", "good.jsonl", "-c", "bad.jsonl"], 1, "bad.jsonl:1: another file also has a case `ann`");
    check(&["-c", "none.jsonl"], 1, "no such file");
    check(&["-c", "a.txt"], 2, "`a.txt` is not a supported cases file");
    check(&["-c", "good.jsonl", "--gate", "speed>=1"], 2, "unknown metric `speed`; available metrics: pass,");
    check(&["-c", "good.jsonl", "--rate", "fast"], 2, "write a number and a unit of time, as in 60/min");
    check(&["-c", "good.jsonl", "--model", "scripted/no.json"], 1, "cannot read the script `no.json`");
}

#[test]
fn errors_are_not_quality() {
    let folder = project();
    folder.write("fails.json", json!([{"error": {"message": "out of order"}}]).to_string());
    let printed = folder.run(&["eval", "a.gram", "-c", "good.jsonl", "--model", "scripted/fails.json"]);
    assert!(
        printed.starts_with("exit 1\n") && printed.contains("ann  !  ") && printed.contains("out of order"),
        "{printed}"
    );
    assert!(printed.contains("no result, 3 errors\ngate pass>=1 undecided: pass is unknown"), "{printed}");
    let named = "error: cannot decide: all 3 runs of `agent` ended with an error: out of order";
    assert!(printed.contains(named), "{printed}");
    // An arm that only fails is neither worse nor better.
    let arms = ["--arm", "base", "--arm", "broken=model:scripted/fails.json"];
    let printed = folder.run(&[&["ab", "a.gram", "-c", "good.jsonl"], &arms[..]].concat());
    let expected = "cannot compare `broken` with `base`: all 3 runs of `broken` ended with an error: out of order\n";
    assert!(printed.starts_with("exit 1\n") && printed.contains(expected), "{printed}");
    assert!(
        !printed.contains("correct") && printed.contains("error: cannot decide: all 3 runs of `broken`"),
        "{printed}"
    );
    // A run that does not end within its limits is the agent's.
    let printed = folder.run(&["eval", "a.gram", "-c", "good.jsonl", "--max-turns", "1"]);
    assert!(printed.contains("passed 0 of 3, 0.0%") && printed.contains(", 3 without an answer\n"), "{printed}");
    assert!(!printed.contains("cannot decide"), "{printed}");
}

#[test]
fn an_answer_that_was_cut_off_is_not_judged() {
    let folder = project();
    folder.write("case.jsonl", json!({"id": "ann", "input": "Hello!", "checks": [{"contains": "Ann"}]}).to_string());
    folder.write("cut.json", json!([{"text": "Hello, Ann and", "finish": "length"}]).to_string());
    let printed = folder.run(&["eval", "a.gram", "-c", "case.jsonl", "--model", "scripted/cut.json"]);
    assert!(printed.starts_with("exit 1\n") && printed.contains("passed 0 of 1"), "{printed}");
    assert!(printed.contains("the reply was cut off at its length limit"), "{printed}");
}

#[test]
fn a_judge_that_fails_does_not_blame_the_agent() {
    let folder = project();
    folder.write(
        "judge.gram",
        "[judge:Agent { instruction: \"Judge.\", model: \"scripted/verdict.json\", returns: \"Verdict\" }]\n\
         [Verdict:Object | (passed::Bool), (why::Text)]\n",
    );
    folder.write("verdict.json", json!([{"error": {"message": "HTTP 400: no such model"}}]).to_string());
    let case = |id: &str, check: Json| json!({"id": id, "input": "Hello! My name is Ann.", "checks": [check]});
    let judged = |id| case(id, json!({"judge": {"agent": "judge.gram", "criteria": "Be kind"}}));
    folder.write("cases.jsonl", [judged("one"), judged("two")].map(|case| case.to_string()).join("\n"));
    let printed = folder.run(&["eval", "a.gram", "-c", "cases.jsonl", "--gate", "pass>=0.5"]);
    let why = "the judge `judge.gram` failed: HTTP 400: no such model";
    assert!(printed.contains(&format!("one  !  {why}\n")) && printed.contains("no result, 2 errors"), "{printed}");
    let named = format!("error: cannot decide: all 2 runs of `agent` ended with an error: {why}");
    assert!(printed.starts_with("exit 1\n") && printed.contains(&named), "{printed}");
    // The same for a program that cannot be started. One that exits with another code decides.
    let checks = [json!({"command": ["./none"]}), json!({"command": ["sh", "-c", "kill -9 $$"]})];
    let cases: Vec<_> = checks.into_iter().enumerate().map(|(id, check)| case(&id.to_string(), check)).collect();
    let cases: Vec<_> = cases.iter().map(Json::to_string).collect();
    folder.write("programs.jsonl", cases.join("\n"));
    let printed = folder.run(&["eval", "a.gram", "-c", "programs.jsonl"]);
    assert!(printed.contains("no result, 2 errors") && printed.contains("cannot start `./none`"), "{printed}");
    let failing = case("3", json!({"command": ["sh", "-c", "exit 3"]}));
    folder.write("failing.jsonl", failing.to_string());
    let printed = folder.run(&["eval", "a.gram", "-c", "failing.jsonl"]);
    assert!(printed.contains("passed 0 of 1, 0.0%") && !printed.contains("cannot decide"), "{printed}");
}

#[test]
fn junit_is_valid_xml() {
    let folder = project();
    folder.write(
        "odd.jsonl",
        json!({"id": "a<b", "input": "Hello! My name is Ann.", "checks": [{"contains": "\"&<>"}]}).to_string(),
    );
    let output = folder.output(&["eval", "a.gram", "-c", "bad.jsonl", "-c", "odd.jsonl", "--format", "junit"], "");
    let text = String::from_utf8(output.stdout).unwrap();
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
fn cases_are_judged_by_agents_and_programs() {
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
    assert_eq!(judged("fails"), (false, "`sh` ended with exit status: 3".to_owned()));
    assert!(judged("missing").1.starts_with("cannot start `./none`"), "{report}");
    let judge = &report["judges"][0];
    assert_eq!((&judge["model"], &judge["instruction"]), (&json!("scripted/verdict.json"), &json!("Judge.")));
    folder.write("cases/judge.gram", "[judge:Agent { instruction: \"Judge.\", model: \"demo\" }]\n");
    let printed = folder.run(&["eval", "a.gram", "-c", "cases/all.jsonl"]);
    assert!(
        printed.contains("the agent `judge` cannot judge") && printed.contains("returns: \"Verdict\""),
        "{printed}"
    );
}

/// Each run writes its case to a pipe, so that the test knows which cases were run.
#[test]
fn a_killed_experiment_is_resumed() {
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
    // Opened for both reading and writing, so that opening does not block.
    let mut runs = BufReader::new(OpenOptions::new().read(true).write(true).open(&pipe).unwrap());
    let mut next = || {
        let mut line = String::new();
        runs.read_line(&mut line).unwrap();
        line.trim().to_owned()
    };
    let mut killed = folder.command().args(command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let before: Vec<_> = (0..8).map(|_| next()).collect();
    killed.kill().unwrap();
    killed.wait().unwrap();

    let shown = folder.run(&["experiments", "latest", "--store", "x.db"]);
    assert!(
        shown.contains("interrupted after ") && shown.contains(" of 30 runs: these results are provisional"),
        "{shown}"
    );
    let changed = folder.run(&[&command[..], &["--seed", "7", "--resume", "latest"]].concat());
    assert!(changed.contains(": the seed changed"), "{changed}");
    assert!(folder.run(&["experiments", "--store", "x.db"]).contains("  open  "));

    let output = folder.output(&command, "");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Json = serde_json::from_slice(&output.stdout).unwrap();
    let ids: HashSet<_> = report["trials"].as_array().unwrap().iter().map(|trial| trial["case"].to_string()).collect();
    assert_eq!((report["trials"].as_array().unwrap().len(), ids.len()), (CASES, CASES), "{printed}");
    let stored: usize = printed
        .split("resuming ")
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
    // Two runs are in progress while one is stored: all others that finished are stored, and not repeated.
    assert!(stored + 3 >= before.len() && stored < CASES, "{printed}");
    let again = folder.run(&["eval", "a.gram", "-c", "good.jsonl", "--store", "x.db"]);
    assert!(!again.contains("resuming"), "{again}");
    assert!(folder.run(&["sessions", "--store", "x.db"]).contains("no sessions yet"));
    let listed = folder.run(&["experiments", "--store", "x.db"]);
    assert!(listed.contains("  idle     30  greeter\n") && !listed.contains("open"), "{listed}");
}

#[test]
fn arms_of_all_kinds() {
    let folder = project();
    folder.write("b.gram", "[terse:Agent { instruction: \"Say nothing.\", model: \"demo\" }]\n");
    folder.write("reply.json", json!([{"text": "Ann, Bob, Eve"}]).to_string());
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
            "reply=model:scripted/reply.json",
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
    assert_eq!(["base", "loud", "mute", "other", "reply", "old"].map(rate), [1.0, 1.0, 0.0, 0.0, 0.0, 1.0], "{report}");
    let contents: HashSet<_> =
        report["trials"].as_array().unwrap().iter().map(|trial| trial["content"].as_str().unwrap()).collect();
    assert!(contents.contains("HELLO, Ann!") && contents.contains("Hello!"), "{contents:?}");
    assert_ne!(arm("base")["agent_hash"], arm("old")["agent_hash"]);
    assert_ne!(arm("base")["bindings_hash"], arm("loud")["bindings_hash"]);
    assert_eq!((&arm("other")["agent"], &arm("reply")["model"]), (&json!("terse"), &json!("scripted/reply.json")));
    let passes = |contrast: &&Json| contrast["metric"]["kind"] == "pass";
    assert_eq!(report["comparison"]["contrasts"].as_array().unwrap().iter().filter(passes).count(), 5);
    let check = |arms: &[&str], code: u8, expected: &str| {
        let printed = folder.run(&[&["ab", "a.gram", "-c", "good.jsonl"], arms].concat());
        assert!(printed.starts_with(&format!("exit {code}\n")) && printed.contains(expected), "{arms:?}\n{printed}");
    };
    check(&["--arm", "a"], 2, "a comparison needs two arms");
    check(&["--arm", "a", "--arm", "a=b.gram"], 2, "the arm `a` is given twice");
    check(&["--arm", "a", "--arm", "b=what"], 2, "`what` is not a file with toolboxes, model:NAME");
    check(&["--arm", "a", "--arm", "b=b.gram"], 1, "`b.gram` has no toolbox");
    check(&["--arm", "a", "--arm", "b=git:none"], 1, "cannot read the revision `none`: ");
    check(&["--arm", "a", "--arm", "b=recording:none"], 1, "no recording at `none`");
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    check(&["--arm", "a", "--arm", "b=recording:empty"], 1, "no recordings in `empty`");
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
    // The replies are the recorded ones; only the results of the tool differ.
    assert!(trials.iter().all(|trial| trial["passed"] == true), "{report}");
    let results: HashSet<_> = trials
        .iter()
        .filter(|trial| trial["arm"] == "mute")
        .map(|trial| trial["tools"][0]["result"].to_string())
        .collect();
    assert_eq!(results, HashSet::from(["\"Hello!\"".to_owned()]));
}

#[test]
fn baselines_and_html_reports() {
    let folder = project();
    let saved =
        folder.run(&["eval", "a.gram", "-c", "good.jsonl", "--save-baseline", "then.json", "--report", "a.html"]);
    assert!(saved.starts_with("exit 0"), "{saved}");
    assert!(folder.read("a.html").starts_with("<!doctype html>"));
    let arguments = ["eval", "a.gram", "-c", "bad.jsonl", "--baseline", "then.json", "--tools", "arms/mute.gram"];
    let printed = folder.run(&arguments);
    assert!(printed.contains("now against before\n  pass rate   100.0% → 0.0%"), "{printed}");
    let wrong = folder.run(&["eval", "a.gram", "-c", "good.jsonl", "--baseline", "a.html"]);
    assert!(wrong.starts_with("exit 1") && wrong.contains("`a.html` is not a report"), "{wrong}");
}

/// The example runs offline, and finds the difference.
#[test]
fn the_example() {
    let mut command = repository_command();
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
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("`b` is less correct by 17–61 points"), "{printed}");
    assert!(printed.contains("├───●────┤··│"), "{printed}");
}

#[test]
fn cases_in_tables_are_checked() {
    let folder = project();
    let check = |arguments: &[&str], code: u8, expected: &str| {
        let printed = folder.run(&[&["check"], arguments].concat());
        assert!(
            printed.starts_with(&format!("exit {code}\n")) && printed.contains(expected),
            "{arguments:?}\n{printed}"
        );
    };
    check(&["good.jsonl"], 0, "checked 1 file, 3 cases: no problems found");
    check(&["a.gram", "bad.jsonl"], 0, "checked 2 files, 1 agent, 1 tool, 4 cases: no problems found");
    folder.write("cases.csv", "id,input,contains,called\nann,Hello!,Ann,sayHelo\nbob,,Bob,\n");
    check(&["cases.csv"], 1, "cases.csv:3: this case has no input");
    check(&["a.gram", "cases.csv"], 1, "cases.csv:2: no agent of this project has the tool `sayHelo`");
    check(&["a.gram", "cases.csv"], 1, "did you mean `sayHello`?");
    folder.write("odd.jsonl", "{\"input\": \"Hi\", \"checks\": [{\"contain\": \"x\"}]}\n{oops\n");
    check(&["odd.jsonl"], 1, "odd.jsonl:2: this line is not valid JSON");
    check(&["odd.jsonl"], 1, "did you mean `contains`?");
    check(&["odd.jsonl", "--format", "json"], 1, "\"line\": 2");
    check(&["none.jsonl"], 1, "none.jsonl");
}

#[test]
fn impossible_gates_are_refused() {
    let folder = project();
    for (gate, expected) in [
        ("pass>=95", "`95` is not a pass rate, which is from 0 to 1; write `95%`, or `0.95`"),
        ("latency_p95<=50%", "`50%` is not a latency; write a time, as in `latency_p95<=2s`"),
    ] {
        let printed = folder.run(&["eval", "a.gram", "-c", "good.jsonl", "--gate", gate]);
        assert!(printed.starts_with("exit 2\n") && printed.contains(expected), "{printed}");
    }
}

#[test]
fn experiments_are_not_called_sessions() {
    let folder = project();
    folder.run(&["eval", "a.gram", "-c", "good.jsonl", "--store", "x.db"]);
    for arguments in [&["experiments", "nope"][..], &["eval", "a.gram", "-c", "good.jsonl", "--resume", "nope"]] {
        let printed = folder.run(&[arguments, &["--store", "x.db"]].concat());
        let expected = "there is no experiment `nope`\n  help: `patter experiments` lists them\n";
        assert!(printed.starts_with("exit 1\n") && printed.contains(expected), "{printed}");
    }
}

#[test]
fn a_few_cases_have_no_silly_intervals() {
    let folder = project();
    let replies = |tokens: [u64; 2]| {
        json!(tokens.map(|tokens| json!({"text": "Ann", "usage": {"inputTokens": tokens, "outputTokens": 1}})))
            .to_string()
    };
    folder.write("short.json", replies([10, 10]));
    folder.write("long.json", replies([20, 2000]));
    let cases = [json!({"id": "one", "input": "Hi"}), json!({"id": "two", "input": ["Hi", "Again"]})];
    folder.write("two.jsonl", cases.map(|case| case.to_string()).join("\n"));
    let arms = ["--arm", "a=model:scripted/short.json", "--arm", "b=model:scripted/long.json"];
    let printed = folder.run(&[&["ab", "a.gram", "-c", "two.jsonl"], &arms[..]].concat());
    assert!(printed.contains("(too few cases)") && printed.contains(": too few cases for a conclusion"), "{printed}");
    assert!(!printed.contains("000%") && !printed.contains("-100.0"), "{printed}");
}

/// A report that cannot be written leaves the experiment open, like one that was killed at that point.
#[test]
fn an_experiment_is_open_until_its_report_is_written() {
    let folder = project();
    let program = "cat > /dev/null; echo run >> runs.log";
    let case = |id: usize| json!({"id": id.to_string(), "input": "Hello! My name is Ann.", "checks": [{"command": ["sh", "-c", program]}]});
    folder.write("cases.jsonl", (0..5).map(|id| case(id).to_string()).collect::<Vec<_>>().join("\n"));
    let command = ["eval", "a.gram", "-c", "cases.jsonl", "--store", "x.db"];
    let runs = || folder.read("runs.log").lines().count();
    let broken = folder.run(&[&command[..], &["-o", "none/report.txt"]].concat());
    assert!(broken.starts_with("exit 1\n") && runs() == 5, "{broken}");
    let resumed = folder.run(&command);
    assert!(resumed.starts_with("exit 0\n") && resumed.contains(": 5 of 5 runs are done"), "{resumed}");
    assert!(resumed.contains("passed 5 of 5") && runs() == 5, "{resumed}");
    // Now it is finished, so the same command starts anew.
    let again = folder.run(&command);
    assert!(!again.contains("resuming") && runs() == 10, "{again}");
}

#[test]
fn runs_of_different_setups_are_not_mixed() {
    let folder = project();
    folder.write("script.sh", "echo \"Hello, $1!\"\n");
    folder.write(
        "arms/script.gram",
        "[script:Toolbox | [sayHello:Command { description: \"Greets\", run: [\"sh\", \"script.sh\", \"{personName}\"] } |\n  \
           (personName::Text { default: \"world\" })==>(::Text)]]\n",
    );
    folder.write("check.sh", "cat > /dev/null\n");
    folder.write("replies.json", json!([{"text": "Ann"}]).to_string());
    let case = json!({"id": "ann", "input": "Hello! My name is Ann.", "checks": [{"command": ["sh", "check.sh"]}]});
    folder.write("cases.jsonl", case.to_string());
    let arms = ["--arm", "base", "--arm", "script=arms/script.gram", "--arm", "replies=model:scripted/replies.json"];
    let base = [&["ab", "a.gram", "-c", "cases.jsonl", "--store", "x.db"], &arms[..]].concat();
    // Leaves an experiment behind that can be resumed.
    let interrupt = || folder.run(&[&base[..], &["--new", "-o", "none/report.txt"]].concat());
    let resumes = |arguments: &[&str]| {
        let printed = folder.run(&[&base[..], arguments].concat());
        assert!(printed.contains("against base"), "{printed}");
        printed.contains("resuming ")
    };
    interrupt();
    assert!(!resumes(&["--timeout", "20s"]) && !resumes(&["--max-turns", "5"]) && !resumes(&["--yes"]));
    assert!(!resumes(&["--deny", "fs/*"]));
    let explicit = folder.run(&[&base[..], &["--timeout", "20s", "--resume", "latest"]].concat());
    assert!(explicit.contains(": the limits of the arm `base` changed"), "{explicit}");
    assert!(resumes(&[]));
    for (file, text) in [
        ("script.sh", "echo \"Bye, $1!\"\n".to_owned()),
        ("check.sh", "cat > /dev/null; exit 0\n".to_owned()),
        ("replies.json", json!([{"text": "Bob"}]).to_string()),
    ] {
        interrupt();
        let before = folder.read(file);
        folder.write(file, text);
        assert!(!resumes(&[]), "{file}");
        folder.write(file, before);
        assert!(resumes(&[]), "{file}");
    }
}

#[test]
fn baselines_are_compared_only_where_they_can_be() {
    let folder = project();
    let case = |id: usize, text: &str| {
        json!({"id": id.to_string(), "input": "Hello! My name is Ann.", "checks": [{"contains": text}]}).to_string()
    };
    let cases = |text: fn(usize) -> &'static str| (0..12).map(|id| case(id, text(id))).collect::<Vec<_>>().join("\n");
    folder.write("cases.jsonl", cases(|_| "Ann"));
    let eval = |arguments: &[&str]| {
        folder.run(
            &[&["eval", "a.gram", "-c", "cases.jsonl", "--store", "none", "--gate", "pass>=0"], arguments].concat(),
        )
    };
    let saved = eval(&["--save-baseline", "last.json"]);
    assert!(saved.starts_with("exit 0\n"), "{saved}");
    let good = folder.read("last.json");
    let mute = ["--tools", "arms/mute.gram"];
    // A regression is reported, fails the command if asked to, and does not become the baseline.
    let worse = "warning: regression: `now` is less correct by ";
    let printed = eval(&[&["--baseline", "last.json"], &mute[..]].concat());
    assert!(printed.starts_with("exit 0\n") && printed.contains(worse), "{printed}");
    let printed = eval(&[&["--baseline", "last.json", "--fail-on", "regression"], &mute[..]].concat());
    assert!(printed.starts_with("exit 1\n") && printed.contains(worse), "{printed}");
    for arguments in
        [&["--save-baseline", "last.json"][..], &["--baseline", "last.json", "--save-baseline", "new.json"]]
    {
        let printed = eval(&[arguments, &mute[..]].concat());
        let refused = "is not saved: the results are worse than the baseline";
        assert!(printed.starts_with("exit 1\n") && printed.contains(refused), "{printed}");
    }
    assert!(folder.read("last.json") == good && !folder.path().join("new.json").exists());
    let printed = eval(&["--baseline", "last.json", "--fail-on", "regression", "--save-baseline", "last.json"]);
    assert!(printed.starts_with("exit 0\n") && !printed.contains("warning"), "{printed}");
    assert!(folder.run(&["eval", "a.gram", "-c", "cases.jsonl", "--fail-on", "regression"]).starts_with("exit 2\n"));
    // Results that say nothing are no baseline either.
    folder.write("fails.json", json!([{"error": {"message": "out of order"}}]).to_string());
    let printed = eval(&["--model", "scripted/fails.json", "--save-baseline", "broken.json"]);
    assert!(printed.contains("`broken.json` is not saved: too many runs ended with an error"), "{printed}");
    // Changed checks are not compared.
    folder.write("cases.jsonl", cases(|id| if id < 2 { "Bob" } else { "Ann" }));
    let printed = eval(&["--baseline", "last.json"]);
    let warned = "warning: 2 cases changed since the baseline `last.json`, and will not be compared: `0`, `1`\n";
    assert!(printed.contains(warned) && printed.contains("pass rate   100.0% → 100.0%"), "{printed}");
    folder.write("cases.jsonl", cases(|_| "Hello"));
    let printed = eval(&["--baseline", "last.json"]);
    let refused = "error: all cases changed since the baseline `last.json`: `0`, `1`, `2`, `3`, `4` and 7 more";
    assert!(printed.starts_with("exit 1\n") && printed.contains(refused) && !printed.contains("passed"), "{printed}");
    // Both arms run a command, as a function would be faster.
    folder.write("arms/polite.gram", folder.read("arms/loud.gram").replace("HELLO", "Hello"));
    let arms = ["--arm", "a=arms/polite.gram", "--arm", "b=arms/mute.gram", "--fail-on", "regression"];
    let compare = || folder.run(&[&["ab", "a.gram", "-c", "cases.jsonl"], &arms[..]].concat());
    let compared = compare();
    assert!(compared.starts_with("exit 0\n"), "{compared}");
    folder.write("cases.jsonl", cases(|_| "Ann"));
    let compared = compare();
    assert!(compared.starts_with("exit 1\n") && compared.contains("regression: `b` is less correct"), "{compared}");
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
    assert_eq!(report["completion"], "stopped_early");
}
