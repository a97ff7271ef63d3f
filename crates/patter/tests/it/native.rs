//! Tools from functions and closures.

use patter::tool::{Effect, Shared, SharedState, Tool, ToolContext, ToolFailure, ToolKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Calls a tool without an executor. A failure is returned as its message and detail.
fn call_in(context: &ToolContext, tool: &Tool, arguments: Json) -> Result<Json, (String, Option<String>)> {
    let result = Runtime::new().unwrap().block_on(tool.implementation.call(arguments, context));
    result.map_err(|failure| (failure.message().to_owned(), failure.detail().map(str::to_owned)))
}

fn check(tool: &Tool, arguments: Json, expected: Result<Json, &str>) {
    let result = call_in(&ToolContext::new("1"), tool, arguments.clone());
    assert_eq!(result.map_err(|(message, _)| message), expected.map_err(str::to_owned), "{}{arguments}", tool.name());
}

/// Adds two numbers
#[patter::tool(effect = "pure")]
pub(crate) fn add(left: i64, right: i64) -> i64 {
    left + right
}

/// Returns the reciprocal of a number.
///
/// It is a number too.
///
/// # Errors
/// Zero has none.
#[patter::tool(name = "inverse", effect = "reads", timeout = "1500ms", concurrency = 4, sealed)]
async fn reciprocal(#[description = "not zero"] number: f64) -> Result<f64, ToolFailure> {
    if number == 0.0 { Err(ToolFailure::new("zero has no reciprocal")) } else { Ok(1.0 / number) }
}

/// Reads a number
#[patter::tool(idempotent)]
fn read_number(
    text: String,
    #[default = 10] number_base: u32,
    r#type: Option<String>,
) -> std::result::Result<i64, std::num::ParseIntError> {
    assert_ne!(std::thread::current().name(), Some("caller"), "the function runs on the thread of the caller");
    i64::from_str_radix(&text, number_base).map(|number| if r#type.is_some() { -number } else { number })
}

/// The temperature scale
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Scale {
    Celsius,
    Fahrenheit,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Detail {
    /// Only the essentials
    Short,
    /// Every detail
    VeryLong,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Place {
    city_name: String,
    country: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Weather {
    place: Place,
    degrees: f32,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// Returns the weather
#[patter::tool(effect = "network")]
async fn weather(place: Place, #[default = Scale::Celsius] scale: Scale, detail: Option<Detail>) -> Weather {
    let degrees = match scale {
        Scale::Celsius => 20.0,
        Scale::Fahrenheit => 68.0,
    };
    let note = detail.map(|detail| match detail {
        Detail::Short => "fine".to_owned(),
        Detail::VeryLong => "fine all day".to_owned(),
    });
    Weather { place, degrees, note }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Tree {
    name: String,
    branches: Vec<Tree>,
}

/// Counts the branches of a tree
#[patter::tool(effect = "pure")]
fn count_branches(tree: Tree) -> u64 {
    1 + tree.branches.into_iter().map(count_branches).sum::<u64>()
}

struct Prefix(&'static str);

/// Names the call
#[patter::tool(effect = "pure")]
fn name_call(prefix: Shared<Prefix>, context: &ToolContext, suffix: String) -> String {
    context.progress(Some(1.0), "named");
    format!("{}{}{suffix}", prefix.0, context.call_id())
}

/// Forgets
#[patter::tool]
fn forget(context: &ToolContext, things: Vec<String>) {
    drop((context.call_id().to_owned(), things));
}

/// Breaks
#[patter::tool]
fn break_down() -> i64 {
    panic!("the tool broke")
}

#[test]
fn prints_tools_as_gram() {
    let tools = [
        add::tool(),
        reciprocal::tool(),
        read_number::tool(),
        weather::tool(),
        count_branches::tool(),
        name_call::tool(),
        forget::tool(),
    ];
    let records = count_branches::tool().definition;
    let records = records.records.iter().map(|(name, record)| record.declaration(name));
    let printed: Vec<_> = tools.iter().map(|tool| tool.definition.to_string()).chain(records).collect();
    insta::assert_snapshot!(printed.join("\n"));
}

#[test]
fn derives_schemas_from_types() {
    let input = weather::tool().definition.input_schema();
    insta::assert_snapshot!(format!("{input:#}"));
}

#[test]
fn applies_options_to_the_tool() {
    let tool = reciprocal::tool();
    assert_eq!((tool.name(), tool.kind, tool.effect), ("inverse", ToolKind::Native, Effect::Reads));
    assert_eq!((tool.timeout, tool.concurrency, tool.sealed), (Duration::from_millis(1500), Some(4), true));
    assert_eq!(&*tool.source, "it::native::reciprocal");
    let tool = read_number::tool();
    assert_eq!((tool.effect, tool.idempotent, tool.sealed), (Effect::Writes, true, false));
    assert_eq!(forget::tool().effect, Effect::Writes);
    assert!(!forget::tool().idempotent);
}

#[test]
fn keeps_the_function_callable() {
    assert_eq!(add(1, 2), 3);
    assert_eq!(name_call(Shared::new(Prefix("a")), &ToolContext::new("b"), "c".to_owned()), "abc");
}

#[test]
fn converts_arguments_and_results() {
    check(&add::tool(), json!({ "left": 40, "right": 2 }), Ok(json!(42)));
    check(&add::tool(), json!({ "left": 40 }), Err("the argument `right` is missing"));
    check(&add::tool(), json!(null), Err("the argument `left` is missing"));
    let wrong = "invalid argument `right`: invalid type: string \"2\", expected i64";
    check(&add::tool(), json!({ "left": 40, "right": "2" }), Err(wrong));
    check(&reciprocal::tool(), json!({ "number": 4 }), Ok(json!(0.25)));
    check(&reciprocal::tool(), json!({ "number": 0 }), Err("zero has no reciprocal"));
    check(&read_number::tool(), json!({ "text": "12" }), Ok(json!(12)));
    check(&read_number::tool(), json!({ "text": "ff", "numberBase": 16, "type": "negative" }), Ok(json!(-255)));
    check(&read_number::tool(), json!({ "text": "12", "numberBase": null, "type": null }), Ok(json!(12)));
    check(&read_number::tool(), json!({ "text": "twelve" }), Err("the tool failed"));
    let place = json!({ "cityName": "Bern" });
    let expected = json!({ "place": { "cityName": "Bern", "country": null }, "degrees": 20.0 });
    check(&weather::tool(), json!({ "place": place }), Ok(expected));
    let expected = json!({ "place": { "cityName": "Bern", "country": null }, "degrees": 68.0, "note": "fine all day" });
    check(&weather::tool(), json!({ "place": place, "scale": "fahrenheit", "detail": "veryLong" }), Ok(expected));
    let tree = json!({ "name": "a", "branches": [{ "name": "b", "branches": [] }, { "name": "c", "branches": [] }] });
    check(&count_branches::tool(), json!({ "tree": tree }), Ok(json!(3)));
    check(&forget::tool(), json!({ "things": ["a"] }), Ok(json!(null)));
}

#[test]
fn hides_other_errors_from_the_model() {
    let result = call_in(&ToolContext::new("1"), &read_number::tool(), json!({ "text": "x" }));
    assert_eq!(result, Err(("the tool failed".to_owned(), Some("invalid digit found in string".to_owned()))));
}

#[test]
fn passes_context_and_shared_state() {
    let messages = Arc::new(std::sync::Mutex::new(Vec::new()));
    let listener = Arc::clone(&messages);
    let context = ToolContext::new("7")
        .with_state(SharedState::default().with(Prefix("call ")))
        .with_progress(Arc::new(move |progress| listener.lock().unwrap().push(progress.message)));
    assert_eq!(call_in(&context, &name_call::tool(), json!({ "suffix": "!" })), Ok(json!("call 7!")));
    assert_eq!(*messages.lock().unwrap(), ["named"]);
    let (message, detail) = call_in(&ToolContext::new("7"), &name_call::tool(), json!({ "suffix": "!" })).unwrap_err();
    assert_eq!(message, "this tool is not configured; ask the operator to configure it");
    assert_eq!(detail.unwrap(), "the shared state has no `it::native::Prefix`");
}

#[test]
fn runs_blocking_functions_on_another_thread_and_propagates_panics() {
    let caller = std::thread::Builder::new().name("caller".to_owned());
    let result = caller.spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let context = ToolContext::new("1");
            let read = read_number::tool().implementation.call(json!({ "text": "1" }), &context).await.unwrap();
            assert_eq!(read, 1);
        });
        runtime.block_on(break_down::tool().implementation.call(json!({}), &ToolContext::new("1")))
    });
    let panic = result.unwrap().join().unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the tool broke"));
}

#[test]
fn creates_tools_from_closures() {
    let tool =
        Tool::native("upper", "Writes in capitals", "(text::Text)==>(::Text)", |arguments, context| async move {
            match arguments["text"].as_str() {
                Some(text) => Ok(json!(format!("{} {}", context.call_id(), text.to_uppercase()))),
                None => Err(ToolFailure::new("there is no text")),
            }
        });
    let tool = tool.unwrap();
    assert_eq!((tool.name(), tool.kind, tool.effect), ("upper", ToolKind::Native, Effect::Writes));
    check(&tool, json!({ "text": "a" }), Ok(json!("1 A")));
    check(&tool, json!({}), Err("there is no text"));
    let error = Tool::native("upper", "", "(text::Txet)==>(::Text)", |_, _| async { Ok(Json::Null) }).unwrap_err();
    assert!(error.to_string().starts_with("tool `upper`: invalid signature"), "{error}");
}
