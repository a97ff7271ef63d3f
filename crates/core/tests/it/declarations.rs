//! Tests of the typed views of agents and tools: getters, setters, and declarations created in Rust.

use patter_core::declare::{Agent, AgentParts, Element, ToolSpec, Toolbox};
use patter_core::gram::{Tree, parse};
use patter_core::types::signature::Records;
use serde_json::json;

const HELLO: &str = "// The first agent.
[hello_world_agent:Agent {
  description: \"Greets people by name\",
  instruction: ```
    You are friendly.
    Use `sayHello`.
  ```, // how to behave
  model: \"OpenAI/gpt-4o-mini\"
} |
  // greets
  [sayHello:Tool { description: \"Returns a greeting\" } |
    (personName::Text { default: \"world\" })==>(::String)
  ]
]

(other) // stays
";

fn tree(text: &str) -> Tree {
    let (tree, diagnostics) = parse(text);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    tree
}

fn agent(text: &str) -> Agent {
    Agent::cast(tree(text).patterns().next().unwrap()).unwrap()
}

#[test]
fn the_parts_of_an_agent_are_read() {
    let agent = agent(HELLO);
    assert_eq!(agent.name().as_deref(), Some("hello_world_agent"));
    assert_eq!(agent.description().as_deref(), Some("Greets people by name"));
    assert_eq!(agent.model().unwrap().unwrap().to_string(), "OpenAI/gpt-4o-mini");
    assert_eq!(agent.instruction().as_deref(), Some("You are friendly.\nUse `sayHello`."));
    let tools: Vec<_> = agent.tools().collect();
    assert_eq!(tools[0].name().as_deref(), Some("sayHello"));
    assert_eq!(tools[0].description().as_deref(), Some("Returns a greeting"));
}

#[test]
fn an_agent_may_have_no_tools() {
    assert_eq!(agent("[a:Agent {instruction: 'x', model: 'demo'}]").elements().count(), 0);
}

#[test]
fn a_setter_changes_nothing_else() {
    let agent = agent(HELLO);
    let check = |changed: Agent, old: &str, new: &str| {
        assert_eq!(changed.tree().to_string(), HELLO.replacen(old, new, 1));
    };
    check(agent.with_name("greeter"), "hello_world_agent", "greeter");
    check(agent.with_model("Anthropic/claude"), "OpenAI/gpt-4o-mini", "Anthropic/claude");
    check(agent.with_description("Greets"), "Greets people by name", "Greets");
    check(agent.with_instruction("Be kind."), "```\n    You are friendly.\n    Use `sayHello`.\n  ```", "\"Be kind.\"");
    let changed = agent.with_model("demo").with_name("b");
    assert_eq!(changed.name().as_deref(), Some("b"));
    assert_eq!(agent.name().as_deref(), Some("hello_world_agent"), "the original view is unchanged");
}

#[test]
fn a_multi_line_instruction_is_written_as_a_fence() {
    let text = "First.\n\n  - indented\nLast.";
    assert_eq!(agent(HELLO).with_instruction(text).instruction().as_deref(), Some(text));
    assert_eq!(agent(HELLO).with_instruction("a ``` b\nc").instruction().as_deref(), Some("a ``` b\nc"));
}

#[test]
fn tools_are_added_and_removed() {
    let tool = ToolSpec::new("add", "Adds", "(a::Int)==>(b::Int)==>(::Int)").unwrap();
    let with = agent(HELLO).with_tool(&tool).unwrap();
    let names: Vec<_> = with.elements().filter_map(|element| element.name().map(String::from)).collect();
    assert_eq!(names, ["sayHello", "add"]);
    assert_eq!(with.without("add"), agent(HELLO));
    assert!(with.tree().to_string().contains("// greets"));
    // A name that is in use is refused, whatever it belongs to.
    let error = with.with_tool(&tool).unwrap_err();
    assert_eq!(error.to_string(), "`hello_world_agent` already has a tool or agent named `add`");
    for element in
        ["add", "[add:Agent {instruction: 'x', model: 'demo'}]", "[add:Tool {description: 'x'} | ()==>(::Int)]"]
    {
        assert!(agent(&format!("[a:Agent | {element}]")).with_tool(&tool).is_err(), "{element}");
    }
    let toolbox = |text: &str| Toolbox::cast(parse(text).0.patterns().next().unwrap()).unwrap();
    let toolbox =
        toolbox("[b:Toolbox | [t:Command {description: 'x', run: ['x']} | ()==>(::Int)]]").with_tool(&tool).unwrap();
    assert_eq!(toolbox.tools().count(), 2);
    assert_eq!(toolbox.with_tool(&tool).unwrap_err().to_string(), "`b` already has a tool or agent named `add`");
}

#[test]
fn a_description_can_be_removed() {
    let without = agent(HELLO).without_description();
    assert_eq!(without.description(), None);
    assert_eq!(without.instruction(), agent(HELLO).instruction(), "everything else is kept");
    assert!(without.tree().to_string().contains("// greets"));
    assert_eq!(without.without_description(), without);
    let tool = ToolSpec::new("add", "Adds", "(a::Int)==>(::Int)").unwrap().without_description();
    assert_eq!(tool.to_string().replace(' ', ""), "[add:Tool{}|(a::Int)==>(::Int)]");
    let written = tool.with_description("Adds");
    assert_eq!(written.description().as_deref(), Some("Adds"));
}

#[test]
fn an_agent_created_in_rust_equals_the_parsed_one() {
    let tool =
        ToolSpec::new("sayHello", "Returns a greeting", "(personName::Text {default:\"world\"})==>(::String)").unwrap();
    let created = Agent::new(&AgentParts {
        name: "hello_world_agent",
        description: Some("Greets people by name"),
        instruction: "You are friendly.\nUse `sayHello`.",
        model: "OpenAI/gpt-4o-mini",
        tools: std::slice::from_ref(&tool),
    });
    assert_eq!(created, agent(HELLO), "{created}");
    assert_eq!(agent(HELLO).tools().next().unwrap(), tool);
}

#[test]
fn a_tool_needs_a_name_a_description_and_a_signature() {
    let reject = |name: &str, description: &str, signature: &str, message: &str| {
        assert_eq!(ToolSpec::new(name, description, signature).unwrap_err().to_string(), message);
    };
    reject("", "x", "()==>(::Text)", "a tool needs a name");
    reject("a", " ", "()==>(::Text)", "the tool `a` needs a description");
    reject(
        "a",
        "x",
        "(b)",
        "tool `a`: invalid signature: a signature must connect its parameters and its result with arrows",
    );
    assert!(ToolSpec::new("a", "x", "() (b)").is_err());
}

#[test]
fn a_tool_survives_conversion_to_json_and_back() {
    let text = "[sayHello:ToolSpecification {description: \"Returns a friendly greeting message for the given name\"} | (::Text {paramName:\"name\"})==>(::String)]";
    let tree = tree(text);
    let spec = ToolSpec::cast(tree.patterns().next().unwrap()).unwrap();
    let json = spec.to_json(&Records::default()).unwrap();
    assert_eq!(
        json,
        json!({
            "name": "sayHello",
            "description": "Returns a friendly greeting message for the given name",
            "typeSignature": "(::Text {paramName:\"name\"})==>(::String)",
            "schema": { "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] }
        })
    );
    let back = ToolSpec::from_json(&json).unwrap();
    assert_eq!(back.name(), spec.name());
    assert_eq!(back.schema(&Records::default()), spec.schema(&Records::default()));
}

#[test]
fn elements_are_tools_agents_and_references() {
    let agent = agent("[a:Agent | [t:Tool | ()==>(::Int)], [b:Agent {model: 'demo'}], c, (d)]");
    let elements: Vec<_> = agent.elements().collect();
    assert!(matches!(&elements[0], Element::Tool(tool) if tool.name().as_deref() == Some("t")));
    assert!(matches!(&elements[1], Element::Agent(agent) if agent.name().as_deref() == Some("b")));
    assert!(matches!(&elements[2], Element::Reference { name, .. } if name == "c"));
    assert_eq!(elements.len(), 3);
}
