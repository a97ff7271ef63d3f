//! Tests of toolkits: named sets of tools, as elements of agents and in permission rules.

use crate::library::library;
use patter_core::check::{Options, check};
use patter_core::compile::CompiledAgent;
use patter_core::declare::project::Project;
use patter_core::diff::{Judgement, diff};
use patter_core::gram::format;
use patter_core::library::{MatchMode, bind, find_unused_rules};
use patter_core::name::FullName;
use patter_core::permission::{Decision, Rule};

const EDITING: &str = "[editing:Toolkit { description: \"Changes files\" } | reading, `fs/writeFile`]";
const READING: &str = "[reading:Toolkit | `fs/readFile`, list]";

fn agent(properties: &str, elements: &str) -> String {
    format!(
        "[a:Agent {{instruction: 'Use editing, reading, fs/readFile, list.', model: 'demo'{properties}}} | {elements}]"
    )
}

fn tools() -> patter_core::library::Library<crate::library::Tool> {
    library(&[
        ("fs/readFile", "(path::Text)==>(::Text)"),
        ("fs/writeFile", "(path::Text)==>(::Text)"),
        ("fs/list", "()==>(::Text)"),
        ("web/fetch", "()==>(::Text)"),
    ])
}

/// Returns the code and the marked text of each finding.
fn found(text: &str) -> Vec<(&'static str, String)> {
    let options = Options { library: &["fs/readFile", "fs/writeFile", "fs/list"], ..Options::default() };
    let findings = check(&Project::read([("a.gram", text)]), &options);
    findings.into_iter().map(|one| (one.diagnostic.code, one.diagnostic.span.slice(text).to_owned())).collect()
}

fn check_found(text: &str, code: &str, marked: &str) {
    assert_eq!(found(text), [(code, marked.to_owned())], "{text}");
}

#[test]
fn an_agent_has_the_tools_of_its_toolkits() {
    let text = format!("{} {EDITING} {READING}", agent("", "editing, `fs/readFile`, reading"));
    assert_eq!(found(&text), [], "toolkits may overlap");
    let project = Project::read([("a.gram", &text)]);
    let agent = project.main_agent(None).unwrap();
    let bindings = bind(&agent, &project, &tools(), MatchMode::Compatible).unwrap();
    let names: Vec<_> = bindings.iter().map(|binding| binding.name.as_str()).collect();
    assert_eq!(names, ["fs/readFile", "list", "fs/writeFile"]);
    let compiled = CompiledAgent::new(&agent, &project, &tools(), None).unwrap();
    assert_eq!(compiled.offered_tools().len(), 3);
    assert_eq!(compiled.bindings().agents[0].calls.len(), 3, "all are locked");
    let other = Project::read([("a.gram", text.replace(", list]", "]"))]);
    let changed = CompiledAgent::new(&other.main_agent(None).unwrap(), &other, &tools(), None).unwrap();
    assert_ne!(compiled.spec().hash, changed.spec().hash, "a changed toolkit is a changed agent");
}

#[test]
fn a_tool_of_a_toolkit_that_cannot_be_bound() {
    let text = format!("{} [editing:Toolkit | `fs/readFil`]", agent("", "editing"));
    let project = Project::read([("a.gram", &text)]);
    let error = bind(&project.main_agent(None).unwrap(), &project, &tools(), MatchMode::Compatible).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the agent `a` cannot run: nothing implements the tool `fs/readFil` (in the toolkit `editing`)"
    );
    assert_eq!(error.failures[0].span.slice(&text), "editing");
}

#[test]
fn mistakes() {
    let with = |toolkit: &str| format!("{} {toolkit}", agent("", "editing"));
    check_found(&with("[editing:Toolkit | `fs/readFil`]"), "P040", "`fs/readFil`");
    check_found(&with("[editing:Toolkit]"), "P084", "[editing:Toolkit");
    check_found(&with("[editing:Toolkit | list, list]"), "P007", "list");
    check_found(&with("[editing:Toolkit | editing, list]"), "P085", "[editing:Toolkit");
    let cycle = format!("{} [editing:Toolkit | reading] [reading:Toolkit | editing]", agent("", "editing"));
    assert_eq!(found(&cycle).iter().filter(|(code, _)| *code == "P085").count(), 2, "{:?}", found(&cycle));
    check_found(&with("[editing:Toolkit {desciption: 'x'} | list]"), "P004", "desciption");
    check_found(&with("[:Toolkit | list] [editing:Toolkit | list]"), "P001", "[:Toolkit");
    check_found(
        &format!(
            "{} [b:Agent {{description: 'b', instruction: 'x', model: 'demo'}}]",
            with("[editing:Toolkit | list, b]")
        ),
        "P010",
        "b",
    );
    check_found(&format!("{} {READING}", with("[editing:Toolkit | list]")), "P044", "reading");
    check_found(&agent("", "[editing:Toolkit | list]"), "P010", "[editing:Toolkit");
    let same = "[list:Tool {description: 'x'} | ()==>(::Text)]";
    check_found(&format!("{} [editing:Toolkit | {same}]", agent("", "editing, list")), "P007", "list");
}

#[test]
fn an_instruction_mentions_a_toolkit_or_its_tools() {
    let with =
        |instruction: &str| format!("[a:Agent {{instruction: '{instruction}', model: 'demo'}} | reading] {READING}");
    for instruction in ["Look with `reading`.", "Look with `list`.", "Use the `readFile` tool."] {
        assert_eq!(found(&with(instruction)), [], "{instruction}");
    }
    check_found(&with("Look."), "P061", "reading");
}

#[test]
fn rules_name_toolkits() {
    let decide = |properties: &str, others: &[&str], tool: &str| {
        let text = format!("{} {EDITING} {READING}", agent(properties, "editing"));
        let project = Project::read([("a.gram", &text)]);
        assert_eq!(find_unused_rules(&project, &tools()), []);
        let compiled = CompiledAgent::new(&project.main_agent(None).unwrap(), &project, &tools(), None).unwrap();
        let others = others.iter().map(|rule| Rule::parse(rule, "here").unwrap());
        let permissions = compiled.permissions(others);
        let decided = permissions.decide(&FullName::parse(tool).unwrap(), &Default::default());
        (decided.decision, decided.reason.to_string())
    };
    assert_eq!(decide("", &[], "fs/list").0, Decision::Allow);
    let asked = decide(", ask: 'reading'", &[], "fs/list");
    assert_eq!(asked, (Decision::Ask, "`ask reading` in a.gram".to_owned()));
    assert_eq!(decide(", ask: 'reading'", &[], "fs/writeFile").0, Decision::Allow);
    assert_eq!(decide("", &["deny editing"], "fs/readFile").0, Decision::Deny, "also tools of included toolkits");
    assert_eq!(decide("", &["deny editing"], "web/fetch").0, Decision::Deny, "it is not declared");
    // A rule that allows only the toolkit allows a tool that the toolkit names without its toolbox.
    assert_eq!(decide("", &["allow reading"], "fs/list").0, Decision::Allow);
    assert_eq!(decide("", &["allow reading when path is 'x'"], "fs/readFile").0, Decision::Deny);
}

#[test]
fn changes() {
    let before = format!("{} {EDITING} {READING}", agent("", "editing"));
    let changes = |after: &str| -> Vec<_> {
        let old = Project::read([("a.gram", &before)]);
        let changes = diff(&old, &Project::read([("a.gram", after)]));
        changes.into_iter().map(|change| (change.judgement, change.to_string())).collect()
    };
    let breaking = |text: &str| (Judgement::Breaking, text.to_owned());
    assert_eq!(
        changes(&before.replace(", list]", ", list, find]")),
        [
            breaking("agent `a`: can now call `find`"),
            breaking("toolkit `editing`: now contains `find`"),
            breaking("toolkit `reading`: now contains `find`"),
        ]
    );
    assert_eq!(
        changes(&before.replace(", list]", "]")),
        [
            breaking("agent `a`: can no longer call `list`"),
            breaking("toolkit `editing`: no longer contains `list`"),
            breaking("toolkit `reading`: no longer contains `list`"),
        ]
    );
    // The same tools without the toolkit.
    let inlined = format!("{} {EDITING} {READING}", agent("", "`fs/readFile`, list, `fs/writeFile`"));
    assert!(changes(&inlined).iter().all(|(judgement, _)| *judgement < Judgement::Breaking), "{:?}", changes(&inlined));
}

#[test]
fn the_formatter_lays_out_toolkits() {
    let text = "[reading:Toolkit|`fs/readFile`,list]";
    assert_eq!(format(text).unwrap(), "[reading:Toolkit | `fs/readFile`, list]\n");
}
