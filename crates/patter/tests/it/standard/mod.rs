//! The pure tools of the standard library.

mod calculator;
mod date_time;
mod json;
mod text;

use patter::library::{Layer, MatchMode, bind};
use patter::project::Environment;
use patter::tool::standard::{standard_library, tools};
use patter::tool::{Effect, Tool, ToolContext, ToolResources, merge};
use serde_json::{Value as Json, json};

/// Returns a tool of the standard library by its full name.
fn tool(name: &str) -> Tool {
    let (toolbox, name) = name.split_once('/').map_or((None, name), |(toolbox, name)| (Some(toolbox), name));
    let found = tools().into_iter().find(|(its_box, tool)| *its_box == toolbox && tool.name() == name);
    found.unwrap_or_else(|| panic!("missing tool `{name}`")).1
}

/// Calls a tool, and checks that the arguments and the result match the schemas.
fn call_in(context: &ToolContext, name: &str, arguments: Json) -> Result<Json, String> {
    let tool = tool(name);
    let definition = &tool.definition;
    assert!(valid(&definition.input_schema(), &arguments), "{name} does not accept {arguments}");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let result = runtime.block_on(tool.implementation.call(arguments, context));
    let result = result.map_err(|failure| failure.message().to_owned())?;
    assert!(valid(&definition.output_schema(), &result), "{name} must not return {result}");
    Ok(result)
}

fn call(name: &str, arguments: Json) -> Result<Json, String> {
    call_in(&ToolContext::new("1"), name, arguments)
}

fn valid(schema: &Json, value: &Json) -> bool {
    jsonschema::is_valid(schema, value)
}

/// Calls a tool, and compares the result, or a part of the error message if the expected text starts with `!`.
fn check(name: &str, arguments: Json, expected: Json) {
    let result = call(name, arguments.clone());
    match (&result, expected.as_str().and_then(|text| text.strip_prefix('!'))) {
        (Err(message), Some(part)) => assert!(message.contains(part), "{name}{arguments}: {message}"),
        (Ok(value), None) => assert_eq!(*value, expected, "{name}{arguments}"),
        _ => panic!("{name}{arguments}: {result:?}, not {expected}"),
    }
}

#[test]
fn describes_all_tools() {
    let tools = tools();
    let full_name = |toolbox: &Option<&str>, tool: &Tool| match toolbox {
        Some(toolbox) => format!("{toolbox}/{}", tool.name()),
        None => tool.name().to_owned(),
    };
    let list = tools.iter().map(|(toolbox, tool)| {
        let name = full_name(toolbox, tool);
        let effect = tool.effect.name();
        let definition = &tool.definition;
        format!("{name} ({effect}, {})\n{definition}", tool.source)
    });
    let list: Vec<_> = list.collect();
    insta::assert_snapshot!(list.join("\n\n"));
    for (_, tool) in &tools {
        assert!(tool.effect <= Effect::Reads && tool.idempotent, "{}", tool.name());
        let (tree, diagnostics) = patter::gram::parse(&tool.definition.to_string());
        assert!(diagnostics.is_empty() && tree.patterns().count() == 1, "{}", tool.name());
    }
}

#[test]
fn say_hello_greets() {
    check("sayHello", json!({ "personName": "Ada" }), json!("Hello, Ada!"));
    check("sayHello", json!({}), json!("Hello, world!"));
    for nobody in ["", "  "] {
        check("sayHello", json!({ "personName": nobody }), json!("Hello, world!"));
    }
}

#[test]
fn say_hello_is_exactly_what_the_first_example_declares() {
    let text = "[hello_world_agent:Agent {instruction: 'Greet with `sayHello`.', model: 'demo'} |
      [sayHello:Tool {description: \"Returns a friendly greeting message for the given name\", exact: true} |
        (personName::Text {default:\"world\"})==>(::String)]]";
    let project = patter::project::Project::read([("hello.gram", text)]);
    let agent = project.main_agent(None).unwrap();
    let tools = standard_library(&ToolResources::new(".", Environment::default()));
    let library = merge([(Layer::Internal, tools)]).unwrap();
    let bound = bind(&agent, &project, &library, MatchMode::Compatible).unwrap();
    assert_eq!(bound.len(), 1);
}
