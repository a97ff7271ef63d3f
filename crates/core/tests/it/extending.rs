//! Tests of agents that extend others.

use crate::library::library;
use crate::queries::rows;
use patter_core::check::{Options, check};
use patter_core::compile::{CompileError, CompiledAgent};
use patter_core::declare::MAX_BASES;
use patter_core::declare::project::{Finding, Project};
use patter_core::diff::{Judgement, diff};
use patter_core::edit::DeclarationEdit;
use patter_core::graph::{EdgeKind, Graph, GraphSource, Selection};
use patter_core::library::{Library, find_unbound, find_unused_rules};
use patter_core::name::FullName;
use patter_core::permission::Decision;
use patter_core::query::{FilePlace, ProjectGraph};
use std::fmt::Write;

const DESK: &str = "[desk:Agent {
  description: 'Answers customers', instruction: 'Answer with `findOrder`, and hand refunds to `payer`.',
  model: 'OpenAI/gpt-4o', temperature: 0.2, maxTurns: 5, ask: 'shop/mail'
} |
  [findOrder:Tool {description: 'Finds an order'} | (id::Text)==>(::Text)],
  [payer:Agent {description: 'Pays back', instruction: 'Pay.', model: 'demo'}]
]";
const NIGHT: &str = "[night:Agent {
  extends: 'desk', model: 'demo', instruction: 'Answer with `findOrder`, `payer` and `mail`.', deny: 'shop/mail when to = all'
} | mail]";

fn tools() -> Library<crate::library::Tool> {
    library(&[("findOrder", "(id::Text)==>(::Text)"), ("shop/mail", "(to::Text)==>(::Text)")])
}

fn options() -> Options<'static> {
    Options { library: &["findOrder", "shop/mail"], ..Options::default() }
}

fn findings(files: &[(&str, &str)]) -> Vec<Finding> {
    check(&Project::read(files.iter().copied()), &options())
}

/// Checks the code, the marked text, the message and the hint of the only finding of a text.
fn check_one(text: &str, code: &str, marked: &str, message: &str, hint: &str) {
    let found = findings(&[("a.gram", text)]);
    let [finding] = found.as_slice() else { panic!("{text}\n{found:#?}") };
    let found = &finding.diagnostic;
    assert_eq!((found.code, found.span.slice(text)), (code, marked), "{text}");
    assert_eq!(found.message, message);
    assert_eq!(found.hint.as_deref(), Some(hint));
}

fn compile(project: &Project, name: &str) -> Result<CompiledAgent, CompileError> {
    CompiledAgent::new(&project.find_agent(name).unwrap(), project, &tools(), None)
}

#[test]
fn an_agent_has_what_its_base_has_and_its_own_properties_win() {
    // The base may be in another file.
    let files = [("night.gram", NIGHT), ("desk.gram", DESK)];
    assert_eq!(findings(&files), []);
    let project = Project::read(files);
    let compiled = compile(&project, "night").unwrap();
    assert_eq!(compiled.instruction(), "Answer with `findOrder`, `payer` and `mail`.");
    assert_eq!((compiled.model().to_string().as_str(), compiled.settings().temperature), ("demo", Some(0.2)));
    assert_eq!(compiled.spec().limits.max_model_calls, 5);
    let names: Vec<_> = compiled.offered_tools().iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["mail", "findOrder", "payer"], "its own come first");
    assert_eq!(compiled.delegate("payer").unwrap().path().to_string(), "desk/payer");
    let agent = project.find_agent("night").unwrap();
    assert_eq!(agent.inherited_from("temperature").as_deref(), Some("desk"));
    assert_eq!(agent.inherited_from("model"), None);
}

#[test]
fn rules_add_up_so_that_no_rule_of_the_base_is_lost() {
    let project = Project::read([("a.gram", format!("{DESK} {NIGHT}"))]);
    let permissions = compile(&project, "night").unwrap().permissions([]);
    let mail = FullName::parse("shop/mail").unwrap();
    let decide = |to: &str| {
        let arguments = [("to".to_owned(), to.into())].into_iter().collect();
        permissions.decide(&mail, &arguments)
    };
    assert_eq!(decide("all").decision, Decision::Deny);
    let one = decide("ann");
    assert_eq!(one.decision, Decision::Ask, "an agent cannot drop a rule of its base");
    assert!(one.reason.to_string().contains("the agent `desk`"), "{}", one.reason);
    let allowing = NIGHT.replace("deny: 'shop/mail when to = all'", "allow: 'shop/mail'");
    let project = Project::read([("a.gram", format!("{DESK} {allowing}"))]);
    let permissions = compile(&project, "night").unwrap().permissions([]);
    assert_eq!(permissions.decide(&mail, &serde_json::Map::new()).decision, Decision::Ask);
}

#[test]
fn a_base_may_extend_another() {
    let text = format!("{DESK} {NIGHT} [sunday:Agent {{extends: 'night', description: 'On Sundays'}}]");
    assert_eq!(findings(&[("a.gram", &text)]), []);
    let project = Project::read([("a.gram", &text)]);
    let sunday = project.find_agent("sunday").unwrap();
    assert_eq!(sunday.bases().filter_map(patter_core::gram::Pattern::name).collect::<Vec<_>>(), ["night", "desk"]);
    assert_eq!(sunday.inherited_from("instruction").as_deref(), Some("night"));
    assert_eq!(sunday.inherited_from("temperature").as_deref(), Some("desk"));
    assert_eq!(compile(&project, "sunday").unwrap().offered_tools().len(), 3);
}

#[test]
fn bases_that_cannot_be_extended() {
    let agent = |name: &str, extends: &str| format!("[{name}:Agent {{extends: '{extends}', description: 'x'}}]");
    let text = |extends: &str, other: &str| format!("{} {DESK} {other}", agent("night", extends));
    check_one(&text("dsk", ""), "P146", "'dsk'", "no agent is named `dsk`", "did you mean `desk`?");
    check_one(&text("zzz", ""), "P146", "'zzz'", "no agent is named `zzz`", "declare it, or remove `extends`");
    check_one(
        &text("payer", ""),
        "P146",
        "'payer'",
        "no agent is named `payer`",
        "`desk/payer` is visible only inside of its agent; declare it at the top level of a file",
    );
    let only_agents = "name an agent that is declared at the top level of a file";
    let to_use = "to use it, add it to the elements of the agent";
    let workflow = "[flow:Workflow {description: 'x'} | (desk)]";
    let message = "`flow` is a workflow, and only agents can be extended";
    check_one(&text("flow", workflow), "P147", "'flow'", message, only_agents);
    let record = "[Order:Object | (id::Text)] [o:Agent {instruction: 'x', model: 'demo', returns: 'Order'}]";
    let message = "`Order` is a record type, and only agents can be extended";
    check_one(&text("Order", record), "P147", "'Order'", message, only_agents);
    // Tools of the library, whichever layer has them and whether they are sealed or not.
    let message = "`shop/mail` is a tool, and only agents can be extended";
    check_one(&text("shop/mail", ""), "P147", "'shop/mail'", message, to_use);
    let tool = "[box:Toolbox | [t:Command {description: 'x', run: ['true']} | ()==>(::Text)]]";
    let message = "`t` is a tool, and only agents can be extended";
    check_one(&text("t", tool), "P147", "'t'", message, to_use);
    let twice = format!("{} {DESK}", text("desk", ""));
    let codes: Vec<_> = findings(&[("a.gram", &twice)]).iter().map(|one| one.diagnostic.code).collect();
    assert!(codes.contains(&"P041"), "an ambiguous base: {codes:?}");
    check_one(
        "[w:Workflow {extends: 'desk', description: 'x'} | (desk)] [desk:Agent {description: 'd', instruction: 'x', model: 'demo'}]",
        "P004",
        "extends",
        "a workflow has no property `extends`",
        "known properties: description, takes, returns, maxModelCalls, maxTotalTokens, maxCost, timeout, allow, ask, deny",
    );
}

#[test]
fn cycles_are_reported_once_and_nothing_runs() {
    let agent =
        |name: &str, extends: &str| format!("[{name}:Agent {{extends: '{extends}', instruction: 'x', model: 'demo'}}]");
    let hint = "remove `extends` from one of them";
    check_one(&agent("a", "a"), "P148", "'a'", "the agent `a` extends itself", hint);
    let cycle = format!("{} {} {}", agent("a", "b"), agent("b", "c"), agent("c", "a"));
    let message = "agents extend each other in a cycle: `a` → `b` → `c` → `a`";
    check_one(&cycle, "P148", "'b'", message, hint);
    let files = [("z.gram", agent("z", "a")), ("a.gram", agent("a", "b")), ("b.gram", agent("b", "a"))];
    let project = Project::read(files);
    for name in ["a", "b", "z"] {
        let error = compile(&project, name).unwrap_err();
        assert!(matches!(&error, CompileError::Broken { file, .. } if file == "a.gram"), "{name}: {error}");
    }
}

#[test]
fn long_chains_are_refused() {
    let mut text = "[a0:Agent {instruction: 'Use `t0`.', model: 'demo'} | t0]".to_owned();
    for number in 1..=1000 {
        let _ = write!(text, " [a{number}:Agent {{extends: 'a{}'}} | t{number}]", number - 1);
    }
    let project = Project::read([("a.gram", &text)]);
    let options = Options { library: &["t*", "*/*"], ..Options::default() };
    let found = check(&project, &options);
    let long = found.iter().filter(|one| one.diagnostic.code == "P149").count();
    assert_eq!(long, 1000 - MAX_BASES);
    let message = &found.iter().find(|one| one.diagnostic.code == "P149").unwrap().diagnostic.message;
    assert_eq!(message, "the agent `a9` extends more than 8 agents, one through the other");
    assert!(matches!(compile(&project, "a1000"), Err(CompileError::Broken { .. })));
    // One agent per file, so that no error is in the file of an agent by chance.
    let files: Vec<_> =
        text.split_inclusive("] ").enumerate().map(|(at, agent)| (format!("{at}.gram"), agent)).collect();
    let project = Project::read(files);
    assert!(matches!(compile(&project, "a1000"), Err(CompileError::Broken { .. })));
}

#[test]
fn a_long_cycle_ends() {
    let text: String = (0..100)
        .map(|at| format!("[a{at}:Agent {{extends: 'a{}', instruction: 'x', model: 'demo'}}] ", (at + 1) % 100))
        .collect();
    let found = findings(&[("a.gram", &text)]);
    assert_eq!(found.len(), 100);
    assert!(found.iter().all(|one| one.diagnostic.code == "P149"));
}

#[test]
fn an_element_that_differs_from_that_of_the_base_is_an_error_with_both_places() {
    let night = |element: &str| format!("{DESK} [night:Agent {{extends: 'desk', model: 'demo'}} | {element}]");
    let tool = |signature: &str| format!("[findOrder:Tool {{description: 'Finds it'}} | {signature}]");
    assert_eq!(findings(&[("a.gram", &night(&tool("(id::Text)==>(::Text)")))]), [], "described in another way");
    assert_eq!(findings(&[("a.gram", &night("findOrder"))]), [], "the same one");
    let hint = "rename one of them, or declare it as the base does";
    let text = night(&tool("(order::Int)==>(::Text)"));
    let message = "`findOrder` differs from that of `desk`: (order::Int)==>(::Text) instead of (id::Text)==>(::Text)";
    check_one(&text, "P156", "findOrder", message, hint);
    let finding = &findings(&[("a.gram", &text)])[0].diagnostic;
    assert_eq!(finding.related[0].span.start, u32::try_from(text.find("findOrder:Tool").unwrap()).unwrap());
    assert!(finding.span.start > finding.related[0].span.start, "the place in the agent itself is marked");
    let more = night(&tool("(id::Text)==>(more::Text {optional: true})==>(::Text)"));
    assert_eq!(findings(&[("a.gram", &more)])[0].diagnostic.code, "P156", "another parameter is another tool");
    let agent = "[findOrder:Agent {description: 'Finds', instruction: 'x', model: 'demo'}]";
    let found = findings(&[("a.gram", &night(agent))]);
    let found = found.iter().find(|one| one.diagnostic.code == "P156").unwrap();
    let message = "`findOrder` differs from that of `desk`: it is an agent here, and a tool there";
    assert_eq!(found.diagnostic.message, message);
    let payer = "[payer:Agent {description: 'Pays', instruction: 'x', model: 'demo'}]";
    let message = "`payer` differs from that of `desk`: they are different agents";
    check_one(&night(payer), "P156", "payer", message, hint);
    // In another file, the hint says where.
    let own = "[night:Agent {extends: 'desk', model: 'demo'} | [findOrder:Tool {description: 'x'} | ()==>(::Text)]]";
    let found = findings(&[("b.gram", own), ("a.gram", DESK)]);
    let hint = found[0].diagnostic.hint.as_deref().unwrap();
    assert_eq!(hint, "that of the base is in a.gram:5:4; rename one of them, or declare it as the base does");
}

#[test]
fn the_contract_of_the_base_is_kept() {
    let text = |base: &str, own: &str| {
        format!("[judge:Agent {{instruction: 'Judge.', model: 'demo'{base}}}] [critic:Agent {{extends: 'judge'{own}}}]")
    };
    let returns = |base: &str, own: &str| text(&format!(", returns: '{base}'"), &format!(", returns: '{own}'"));
    let takes = |base: &str, own: &str| text(&format!(", takes: '{base}'"), &format!(", takes: '{own}'"));
    for fine in [returns("Double", "Int"), takes("Int", "Double"), text("", ", returns: 'Int'"), text("", "")] {
        assert_eq!(findings(&[("a.gram", &fine)]), [], "{fine}");
    }
    let message = "`judge` returns Int, but this agent returns Double, which is not always one";
    let hint = "return only what the base returns, or do not extend it";
    check_one(&returns("Int", "Double"), "P155", "'Double'", message, hint);
    let message = "`judge` takes Double, but this agent takes Int, which does not accept that";
    let hint = "accept everything that the base accepts, or do not extend it";
    check_one(&takes("Double", "Int"), "P155", "'Int'", message, hint);
    let message = "`judge` takes Text, but this agent takes Int, which does not accept that";
    check_one(&text("", ", takes: 'Int'"), "P155", "'Int'", message, hint);
}

#[test]
fn what_is_inherited_is_checked_with_what_is_not() {
    let night =
        |properties: &str, elements: &str| format!("{DESK} [night:Agent {{extends: 'desk'{properties}}}{elements}]");
    check_one(
        &night(", instruction: 'Answer with `findOrder`.'", ""),
        "P061",
        "'desk'",
        "the instruction never mentions `payer`, which it inherits from `desk`",
        "say when to use `payer`, or deny it with `deny: \"payer\"`",
    );
    let hint = "say when to use `mail`, or remove it";
    check_one(&night("", " | mail"), "P061", "mail", "the instruction never mentions `mail`", hint);
    // An agent that its base calls would call itself.
    let text = "[desk:Agent {instruction: 'Ask `night`.', model: 'demo'} | night] [night:Agent {description: 'x', extends: 'desk', instruction: 'Ask `night`.'}]";
    let found = findings(&[("a.gram", text)]);
    assert!(found.iter().any(|one| one.diagnostic.message == "the agent `night` delegates to itself"), "{found:#?}");
    // What the base has wrong is reported there, once.
    let text = night("", "").replace("model: 'OpenAI/gpt-4o', ", "");
    let hint = "add `model: \"…\"` to its record";
    check_one(&text, "P002", "[desk:Agent", "the agent `desk` has no `model`", hint);
    let project = Project::read([("a.gram", night(", deny: 'mial'", ""))]);
    assert_eq!(find_unused_rules(&project, &tools()).len(), 1);
    let unbound = find_unbound(&Project::read([("a.gram", night("", ""))]), &library(&[]));
    assert_eq!(unbound.len(), 1, "only the base has the element: {unbound:#?}");
    let error = compile(&project, "night").unwrap_err();
    assert!(error.to_string().contains("mial"), "{error}");
    let project = Project::read([("a.gram", night("", ""))]);
    let error = CompiledAgent::new(
        &project.find_agent("night").unwrap(),
        &project,
        &library(&[("shop/mail", "()==>(::Text)")]),
        None,
    );
    let message = "the agent `night` cannot run: nothing implements the tool `findOrder` (inherited from `desk`)";
    assert_eq!(error.unwrap_err().to_string(), message);
}

#[test]
fn a_change_of_the_base_is_a_change_of_the_agent() {
    let project = |desk: &str| Project::read([("a.gram", format!("{desk} {NIGHT}"))]);
    let before = project(DESK);
    let after = project(&DESK.replace("maxTurns: 5", "maxTurns: 4").replace("[findOrder", "wave, [findOrder"));
    let changes: Vec<_> = diff(&before, &after).iter().map(|change| (change.judgement, change.to_string())).collect();
    let breaking = |text: &str| (Judgement::Breaking, text.to_owned());
    let expected = ["desk", "night"].map(|name| {
        [
            breaking(&format!("agent `{name}`: `maxTurns` changed from 5 to 4")),
            breaking(&format!("agent `{name}`: can now call `wave`")),
        ]
    });
    assert_eq!(changes, expected.concat());
    let locked = |project: &Project| compile(project, "night").unwrap();
    let fewer = project(&DESK.replace("maxTurns: 5", "maxTurns: 4"));
    assert_ne!(locked(&before).spec().hash, locked(&fewer).spec().hash, "a changed base is a changed agent");
    let compiled = locked(&before);
    let agent = &compiled.bindings().agents[0];
    assert_eq!(agent.extends.as_deref(), Some("desk"));
    assert_eq!(agent.permissions, ["deny shop/mail when to is \"all\"", "ask shop/mail"]);
    assert_eq!(agent.calls.len(), 3);
}

#[test]
fn queries_and_drawings_see_the_whole_agent() {
    let project = Project::read([("a.gram", format!("{DESK} {NIGHT}"))]);
    let library = tools();
    let graph = ProjectGraph { project: &project, library: &library, rules: &[], findings: &[] }.build();
    let found = |query: &str| rows(&graph, query).into_iter().map(|row| row.join(" ")).collect::<Vec<_>>();
    assert_eq!(found("(a:Agent)-[:extends]->(b:Agent)"), ["night desk"]);
    let calls = "(a:Agent {name: 'night'})-[:calls {inherited: 'desk'}]->(t)";
    assert_eq!(found(calls), ["night desk/payer", "night findOrder"]);
    assert_eq!(found("(a:Agent {temperature: 0.2})"), ["desk", "night"]);
    assert_eq!(found("(a:Agent {name: 'night'})-[:may {decision: 'ask'}]->(t:Tool)"), ["night shop/mail"]);
    let source = GraphSource { project: &project, library: &library, rules: &[], findings: &[] };
    let drawn = Graph::build(source, &Selection::Project);
    let of_night: Vec<_> = drawn.edges().iter().filter(|edge| edge.from == "agent:night").collect();
    let to = |kind: EdgeKind| {
        of_night.iter().filter(|edge| edge.kind == kind).map(|edge| edge.to.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(to(EdgeKind::Extends), ["agent:desk"]);
    assert_eq!(to(EdgeKind::Calls), ["tool:findOrder", "tool:shop/mail"]);
    assert_eq!(to(EdgeKind::DelegatesTo), ["agent:desk/payer"]);
}

#[test]
fn edits_change_only_the_agent_itself() {
    let text = format!("// base\n{DESK}\n// child\n{NIGHT} // end");
    let project = Project::read([("a.gram", &text)]);
    let agent = project.find_agent("night").unwrap();
    let changed = agent.with_description("At night");
    assert_eq!(changed.description().as_deref(), Some("At night"));
    assert_eq!(changed.inherited_from("temperature").as_deref(), Some("desk"), "it still extends its base");
    assert!(changed.tree().to_string().contains("// end"));
    let mut edit = DeclarationEdit::default();
    edit.set("extends=desc").unwrap();
    let place = FilePlace { file: 0, span: agent.span() };
    let error = edit.apply(&project, [place], &options()).unwrap_err();
    assert_eq!(error.to_string(), "the files would have errors, so nothing was changed");
    let mut edit = DeclarationEdit::default();
    edit.set("maxTurns=3").unwrap();
    let changed = edit.apply(&project, [FilePlace { file: 0, span: agent.span() }], &options()).unwrap();
    assert_eq!(changed[0].text.replace(", maxTurns: 3", ""), text, "nothing else changes");
}
