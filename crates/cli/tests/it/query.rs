//! `patter query`, and policies in `check` and before runs.

use crate::folder::Folder;
use serde_json::Value as Json;

const SHOP: &str = r#"[desk:Agent { description: "Answers", instruction: "Find with `shop/order`, and leave refunds to `refunds`.", model: "demo" } |
  `shop/order`, refunds
]
[refunds:Agent { description: "Refunds", instruction: "Refund with `shop/refund`.", model: "demo", ask: "shop/refund when amount > 100" } |
  `shop/refund`
]
"#;

const TOOLS: &str = r#"[shop:Toolbox |
  [order:Command { description: "Finds an order", run: ["echo", "{id}"], effect: "reads" } | (id::Text)==>(::Text)],
  [refund:Command { description: "Refunds an order", run: ["echo", "refunded {id} {amount}"] } | (id::Text)==>(amount::Int)==>(::Text)],
  [archive:Command { description: "Archives an order", run: ["echo", "{id}"] } | (id::Text)==>(::Text)]
]
"#;

const SILENT: &str = r#"(a:Agent)-[:may { decision: "allow", hops: 1... }]->(t:Tool { effect: "writes" })"#;

fn shop() -> Folder {
    let folder = Folder::new();
    folder.write("patter.toml", "[store]\nurl = \"s.db\"\n");
    folder.write("agents.gram", SHOP);
    folder.write("tools.gram", TOOLS);
    folder
}

fn json(folder: &Folder, arguments: &[&str]) -> Json {
    serde_json::from_slice(&folder.output(arguments, "").stdout).unwrap()
}

#[test]
fn questions_are_answered_in_all_formats() {
    let folder = shop();
    insta::assert_snapshot!("query_text", folder.run(&["query", SILENT]));
    insta::assert_snapshot!("query_paths", folder.run(&["query", SILENT, "--paths"]));
    insta::assert_snapshot!("query_relations", folder.run(&["query", "(a:Agent)-[r:may]->(t:Tool)"]));
    insta::assert_snapshot!("query_json", folder.run(&["query", SILENT, "--paths", "--format", "json"]));
    insta::assert_snapshot!("query_mermaid", folder.run(&["query", SILENT, "--format", "mermaid"]));
    let gram = folder.output(&["query", SILENT, "--paths", "--format", "gram"], "").stdout;
    let (tree, diagnostics) = patter::gram::parse(&String::from_utf8(gram).unwrap());
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    assert_eq!(tree.patterns().filter(|row| row.has_label("Row")).count(), 2);
    let svg = folder.run(&["query", SILENT, "--format", "svg", "-o", "answer.svg"]);
    assert!(svg.contains("2 rows"), "{svg}");
    assert!(folder.read("answer.svg").starts_with("<svg"));
    assert!(folder.run(&["query", SILENT, "--format", "dot"]).contains("digraph"));
}

#[test]
fn scripts_learn_from_the_exit_code_whether_there_are_rows() {
    let folder = shop();
    let nobody = "(t:Tool { layer: 'project' }) [:Not | (:Agent)-[:calls]->(t)]";
    for (query, option, code) in [
        (SILENT, "none", 1),
        (SILENT, "some", 0),
        (nobody, "none", 1),
        ("(a:Agent { name: 'x' })", "none", 0),
        ("(a:Agent { name: 'x' })", "some", 1),
    ] {
        let found = folder.run(&["query", query, "--expect", option]);
        assert!(found.starts_with(&format!("exit {code}")), "{query} {option}\n{found}");
    }
    assert!(folder.run(&["query", "(a:Agent { name: 'x' })"]).starts_with("exit 0"));
}

#[test]
fn mistakes_in_queries_have_a_place_and_a_hint() {
    let folder = shop();
    insta::assert_snapshot!("query_mistake", folder.run(&["query", "(a:Agent)-[:cals]->(t:Tool { efect: 'x' })"]));
    insta::assert_snapshot!("query_syntax", folder.run(&["query", "(a:Agent)-[:calls*]->(t:Tool)"]));
    insta::assert_snapshot!("query_missing", folder.run(&["query"]));
    insta::assert_snapshot!("query_drawn_sessions", folder.run(&["query", "--sessions", "(r:Run)", "--format", "svg"]));
    let error = json(&folder, &["query", "(a:Agnet)", "--format", "json"]);
    assert_eq!(error["error"]["details"][0]["code"], "P151");
    // Tools of the standard library, seven times.
    let product = "(:Tool) (:Tool) (:Tool) (:Tool) (:Tool) (:Tool) (:Tool)";
    insta::assert_snapshot!("query_stopped", folder.run(&["query", product]));
}

#[test]
fn the_schema_is_printed() {
    let folder = Folder::new();
    assert!(folder.run(&["query", "--schema"]).contains("(Agent)-[:calls]->(Tool)"));
    assert!(folder.run(&["query", "--schema", "--sessions"]).contains("(Run)-[:made]->(Call)"));
    assert_eq!(json(&folder, &["query", "--schema", "--format", "json"])["labels"][0]["label"], "Agent");
}

#[test]
fn sessions_are_asked_for_calls_with_arguments() {
    let folder = shop();
    let refund =
        r#"[{"calls": [{"tool": "shop/refund", "arguments": {"id": "7", "amount": 250}}]}, {"text": "refunded"}]"#;
    folder.write("refund.json", refund);
    folder.write(
        "desk.json",
        r#"[{"calls": [{"tool": "refunds", "arguments": {"input": "refund 7"}}]}, {"text": "done"}]"#,
    );
    let agents = SHOP.replacen("\"demo\"", "\"scripted/desk.json\"", 1);
    folder.write("agents.gram", agents.replace("\"demo\"", "\"scripted/refund.json\""));
    let run = |message: &str| {
        let found = folder.run(&["run", "agents.gram#desk", message, "--yes"]);
        assert!(found.contains("done"), "{found}");
    };
    run("Refund 7");
    folder.write("refund.json", refund.replace("250", "20"));
    run("Refund 8");
    let asked = |query: &str| {
        let found = json(&folder, &["query", "--sessions", query, "--format", "json"]);
        found["rows"].as_array().unwrap().clone()
    };
    let high = r#"(r:Run)-[:made]->(c:Call { tool: "shop/refund", args: { amount: "> 100" } })"#;
    let rows = asked(high);
    assert_eq!(rows.len(), 1, "{rows:#?}");
    let call = &rows[0]["cells"]["c"]["properties"];
    assert_eq!(
        (&call["args"]["amount"], &call["outcome"], &call["asked"]),
        (&250.into(), &"value".into(), &true.into())
    );
    assert_eq!(rows[0]["cells"]["r"]["properties"]["agent"], "refunds");
    // The run that somebody started, and the run of the agent that it called.
    let started = format!("(s:Session)-[:has]->(o:Run)-[:made]->(:Call)-[:started]->(r) {high}");
    assert_eq!(asked(&started)[0]["cells"]["o"]["properties"]["answer"], "done");
    assert_eq!(asked("(c:Call { tool: 'shop/refund' }) [:Not | (c { asked: true })]").len(), 1);
    assert_eq!(asked("(s:Session)-[:has]->(r:Run { outcome: 'answer' })").len(), 2);
    assert!(folder.run(&["query", "--sessions", high]).contains("1 row"));
    let exported = folder.output(&["sessions", "export", "latest", "--format", "gram"], "").stdout;
    assert!(patter::gram::parse(&String::from_utf8(exported).unwrap()).1.is_empty());
}

fn policy(sealed: bool) -> String {
    format!(
        "[no_silent_writes:Policy {{ forbid: {SILENT:?}, because: \"somebody must approve changes\", sealed: {sealed} }}]\n"
    )
}

#[test]
fn a_broken_policy_fails_the_check_with_its_path() {
    let folder = shop();
    folder.write("policies.gram", policy(false));
    insta::assert_snapshot!("policy_broken", folder.run(&["check"]));
    let found = folder.output(&["check", "--format", "sarif"], "");
    assert_eq!(found.status.code(), Some(1));
    let sarif: Json = serde_json::from_slice(&found.stdout).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "P152");
    assert!(result["message"]["text"].as_str().unwrap().contains("somebody must approve changes"));
    let place = |related: &Json| {
        let location = &related["physicalLocation"];
        let line = &location["region"]["startLine"];
        format!("{}:{line} {}", location["artifactLocation"]["uri"], related["message"]["text"])
    };
    let related: Vec<_> = result["relatedLocations"].as_array().unwrap().iter().map(place).collect();
    assert_eq!(
        related,
        [
            r#""agents.gram":2 "desk -[may allow]-> refunds""#,
            r#""agents.gram":5 "refunds -[may allow]-> shop/refund""#,
            r#""agents.gram":1 "agent desk""#,
            r#""tools.gram":3 "tool shop/refund""#,
        ]
    );
    let found = json(&folder, &["check", "--format", "json"]);
    assert_eq!(found["findings"][0]["path"][0]["text"], "desk -[may allow]-> refunds");
    insta::assert_snapshot!("policy_refuses_run", folder.run(&["run", "agents.gram#desk", "hello"]));
    // Rules of the project can keep the policy.
    folder.write("patter.toml", "[permissions]\nask = [\"shop/refund\"]\n");
    assert!(folder.run(&["check"]).starts_with("exit 0"));
    assert!(folder.run(&["run", "agents.gram#desk", "hello", "--store", "none"]).starts_with("exit 0"));
}

#[test]
fn a_sealed_policy_can_be_neither_replaced_nor_ignored() {
    let folder = shop();
    let toml = "[org]\ntools = [\"shared\"]\n[check]\nignore = [\"P152\", \"P153\"]\n";
    folder.write("patter.toml", toml);
    folder.write(".gitignore", "shared\n");
    folder.write("shared/policies.gram", policy(false));
    assert!(folder.run(&["check"]).starts_with("exit 0"), "an open policy can be ignored");
    folder.write("shared/policies.gram", policy(true));
    assert!(folder.run(&["check"]).contains("P152"));
    let other = "[no_silent_writes:Policy { forbid: \"(m:Model { name: \\\"x\\\" })\", because: \"nothing\" }]\n";
    folder.write("own.gram", other);
    let found = folder.run(&["check"]);
    assert!(found.contains("P153") && found.contains("P152") && found.starts_with("exit 1"), "{found}");
    folder.write("shared/policies.gram", "[broken:Policy { forbid: \"(a:Agnet)\", because: \"x\" }]\n");
    insta::assert_snapshot!("policy_invalid", folder.run(&["check"]));
    assert!(folder.run(&["run", "agents.gram#desk", "hello"]).contains("the policy `broken` is invalid"));
    std::fs::remove_dir_all(folder.path().join("shared")).unwrap();
    let found = folder.run(&["check"]);
    assert!(found.starts_with("exit 1") && found.contains("cannot read the organisation's tools"), "{found}");
}

#[test]
fn everything_that_a_query_finds_is_edited() {
    let folder = shop();
    let limits = ["edit", "(a:Agent) [:Not | (a { maxCost: _ })]", "--set", "maxCost=0.5"];
    insta::assert_snapshot!("edit_diff", folder.run(&limits));
    assert_eq!(folder.read("agents.gram"), SHOP, "by default nothing is written");
    let written = folder.run(&[&limits[..], &["--write"]].concat());
    assert!(written.contains("changed 2 declarations in 1 file"), "{written}");
    assert_eq!(folder.read("agents.gram").matches("maxCost: 0.5").count(), 2);
    assert!(folder.run(&limits).contains("nothing changes"));
    let swap = [
        "edit",
        "(t:Tool { name: 'shop/refund' })<-[:calls]-(a)",
        "--of",
        "a",
        "--remove",
        "shop/refund",
        "--add",
        "shop/archive",
        "--write",
    ];
    assert!(folder.run(&swap).starts_with("exit 0"));
    assert!(folder.read("agents.gram").contains("`shop/archive`"));
    let tool = ["edit", "(t:Tool { name: 'shop/order' })", "--set", "timeout=5s", "--write", "--format", "json"];
    assert_eq!(json(&folder, &tool)["files"][0]["file"], "tools.gram");
    assert!(folder.read("tools.gram").contains("timeout: 5s"));
}

#[test]
fn edits_that_cannot_be_made_change_nothing() {
    let folder = shop();
    insta::assert_snapshot!("edit_error", folder.run(&["edit", "(a:Agent)", "--set", "modle=demo", "--write"]));
    insta::assert_snapshot!("edit_nothing", folder.run(&["edit", "(a:Agent)"]));
    insta::assert_snapshot!("edit_variable", folder.run(&["edit", "(a:Agent)", "--of", "b", "--set", "seed=1"]));
    insta::assert_snapshot!("edit_form", folder.run(&["edit", "(a:Agent)", "--set", "seed", "--write"]));
    insta::assert_snapshot!(
        "edit_elsewhere",
        folder.run(&["edit", "(t:Tool { name: 'sayHello' })", "--set", "sealed=true"])
    );
    folder.write("broken.gram", "[x:Agent { instruction: 'X.', model: 'demo' ");
    let found = folder.run(&["edit", "(a:Agent)", "--set", "seed=1", "--write"]);
    assert!(found.contains("`broken.gram` has errors, so nothing was changed"), "{found}");
    assert_eq!(folder.read("agents.gram"), SHOP);
}
