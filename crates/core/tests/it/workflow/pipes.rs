//! Tests of pipes: tools in a row that are one tool for those who call them.

use crate::library::library;
use patter_core::check::{Options, check};
use patter_core::compile::CompiledAgent;
use patter_core::declare::project::{Finding, Project};
use patter_core::name::FullName;
use patter_core::permission::Decision;
use patter_core::workflow::{Accepts, Action};
use serde_json::json;

const TOOLS: &str = r#"
[find:Tool { description: "Finds an order" } | (id::Text)==>(year::Int { default: 2026 })==>(::Order)]
[mail:Tool { description: "Mails" } | (customer::Text)==>(status::Text)==>(::Bool)]
[shout:Tool { description: "Shouts" } | (text::Text)==>(::Text)]
[double:Tool { description: "Doubles" } | (number::Int)==>(::Int)]
[Order:Object | (customer::Text), (status::Text)]
"#;

fn found(pipe: &str) -> Vec<Finding> {
    let project = Project::read([("p.gram", pipe), ("tools.gram", TOOLS)]);
    let mut findings = check(&project, &Options::default());
    findings.retain(|finding| finding.diagnostic.code != "P044");
    findings
}

fn check_one(pipe: &str, code: &str, marked: &str, message: &str) {
    let findings = found(pipe);
    let [finding] = findings.as_slice() else { panic!("{pipe}\n{findings:#?}") };
    let found = &finding.diagnostic;
    assert_eq!((found.code, found.span.slice(pipe)), (code, marked), "{pipe}");
    assert_eq!(found.message, message);
    assert!(found.hint.is_some());
}

fn tools() -> patter_core::library::Library<crate::library::Tool> {
    library(&[
        (
            "find",
            "(id::Text)==>(year::Int { default: 2026 })==>(::Object { fields: { customer: \"Text\", status: \"Text\" } })",
        ),
        ("mail", "(customer::Text)==>(status::Text)==>(::Bool)"),
        ("shout", "(text::Text)==>(::Text)"),
        ("box/upper", "(text::Text)==>(::Text)"),
    ])
}

#[test]
fn types_are_checked_along_each_arrow() {
    assert_eq!(found("[p:Pipe {description: 'Finds and mails'} | (find)-->(mail)]"), []);
    assert_eq!(found("[p:Pipe {description: 'x'} | (shout)-->(again:shout)]"), []);
    let with = "[p:Pipe {description: 'x'} | (find)-->(shout {with: {text: '{find.status}'}})]";
    assert_eq!(found(with), [], "arguments can be named");
    check_one(
        "[p:Pipe {description: 'x'} | (shout)-->(double)]",
        "P169",
        "-->",
        "`shout` passes Text, but `double` takes (number::Int)",
    );
    check_one(
        "[p:Pipe {description: 'x'} | (shout)-->(mail)]",
        "P169",
        "-->",
        "`shout` passes Text, but `mail` takes (customer::Text)==>(status::Text)",
    );
}

#[test]
fn a_pipe_is_a_path_of_tools() {
    let pipe = |path: &str| format!("[p:Pipe {{description: 'x'}} | {path}]");
    check_one(&pipe("(find)"), "P178", "[p:Pipe", "a pipe has at least two tools");
    let message = "a pipe consists of tools, but `sure` is a question to a person";
    check_one(&pipe("(find)-->(sure:Human {question: 'Sure?'})"), "P178", "sure", message);
    let message = "a pipe is one path of tools, each called once with the result of the one before";
    check_one(&pipe("(shout)-[:Failed]->(find)"), "P178", "-[:Failed]->", message);
    check_one(&pipe("(shout)-->(find), (shout)-->(mail)"), "P178", "-->", message);
    check_one(&pipe("(shout)-->(double)-->(shout)"), "P178", "-->", message);
    check_one(&pipe("(shout), (find)"), "P178", "[p:Pipe", message);
    let agent =
        "[p:Pipe {description: 'x'} | (shout)-->(a)] [a:Agent {description: 'a', instruction: 'x', model: 'demo'}]";
    check_one(agent, "P178", "a", "a pipe consists of tools, but `a` is an agent");
    let message = "a pipe has no property `takes`";
    check_one("[p:Pipe {description: 'x', takes: 'Text'} | (shout)-->(again:shout)]", "P004", "takes", message);
    // A pipe that calls itself is found, and nothing loops.
    let text = "[p:Pipe {description: 'x'} | (p)-->(shout)]";
    assert!(found(text).iter().any(|one| one.diagnostic.code == "P178"), "{:?}", found(text));
    let project = Project::read([("p.gram", text), ("tools.gram", TOOLS)]);
    assert!(CompiledAgent::new(&project.find_agent("p").unwrap(), &project, &tools(), None).is_err());
}

#[test]
fn an_agent_sees_the_parameters_of_the_first_tool() {
    let text = "[a:Agent {instruction: 'Use `notify`.', model: 'demo', ask: 'mail', deny: 'shout'} | notify]
        [notify:Pipe {description: 'Tells the customer'} | (find)-->(mail)]";
    assert_eq!(found(text), []);
    let project = Project::read([("p.gram", text), ("tools.gram", TOOLS)]);
    let agent = CompiledAgent::new(&project.find_agent("a").unwrap(), &project, &tools(), None).unwrap();
    let offered = &agent.offered_tools()[0];
    assert_eq!((offered.name.as_str(), offered.description.as_str()), ("notify", "Tells the customer"));
    let schema: serde_json::Value = serde_json::from_str(offered.schema.text()).unwrap();
    assert_eq!(schema["required"], json!(["id"]));
    assert_eq!(schema["properties"]["year"]["default"], 2026);
    assert!(agent.check_arguments("notify", &mut json!({"id": 7})).is_err());
    let mut arguments = json!({"id": "A7"});
    agent.check_arguments("notify", &mut arguments).unwrap();
    let pipe = CompiledAgent::new(&project.find_agent("notify").unwrap(), &project, &tools(), None).unwrap();
    assert_eq!(pipe.returns().unwrap()["type"], "boolean");
    let plan = pipe.spec().workflow.clone().unwrap();
    assert!(matches!(&plan.steps[0].action, Action::Call { accepts: Accepts::Fields, .. }));
    // The rules of the agent hold for the tools of the pipe, as if it called them.
    let mail = FullName::parse("mail").unwrap();
    let decide = |compiled: &CompiledAgent| compiled.permissions([]).decide(&mail, &serde_json::Map::new()).decision;
    assert_eq!(decide(&pipe), Decision::Allow);
    assert_eq!(decide(&pipe.called_by(&agent)), Decision::Ask);
    assert_eq!(decide(&agent.called_by(&pipe)), decide(&agent), "only pipes take over rules");
}

#[test]
fn tools_that_only_the_library_has() {
    let text = "[p:Pipe {description: 'x'} | (upper)-->(shout)]";
    let options = Options { library: &["box/upper", "shout"], ..Options::default() };
    let project = Project::read([("p.gram", text)]);
    assert_eq!(check(&project, &options), []);
    let pipe = CompiledAgent::new(&project.find_agent("p").unwrap(), &project, &tools(), None).unwrap();
    assert_eq!(pipe.spec().takes.as_ref().unwrap()["required"], json!(["text"]));
    assert_eq!(pipe.returns(), None, "the result is a text");
}

/// A record whose fields are the arguments of a tool with one parameter is not that argument.
#[test]
fn an_object_is_passed_as_arguments_unless_the_parameter_is_one() {
    let text = "[p:Workflow {description: 'x'} | (find {ask: '{takes}'})-->(tell)] [tell:Tool {description: 'x'} | (status::Text)==>(::Text)]";
    let plan = super::plan(&text.replace("(find {ask: '{takes}'})", "(planner)").replace("status", "title"));
    assert!(
        matches!(&plan.steps[1].action, Action::Call { accepts: Accepts::ArgumentOrFields(name), .. } if name == "title")
    );
}

#[test]
fn a_tool_without_parameters_is_called_with_nothing() {
    let plan = super::plan("[w:Workflow | (writer)-->(now)] [now:Tool {description: 'x'} | ()==>(::Text)]");
    assert!(matches!(&plan.steps[1].action, Action::Call { accepts: Accepts::Nothing, .. }));
}
