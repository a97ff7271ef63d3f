//! The cost of runs whose agents use several models.

use patter::drive::{Driver, RunEvent, RunEventKind, Tally, now_ms};
use patter::library::Layer;
use patter::model::{Model, ModelResolver, ScriptedModel};
use patter::project::{Environment, Project};
use patter::provider::price::Prices;
use patter::run::Run;
use patter::tool::{CancellationToken, ToolResources, merge, standard::standard_library};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// Runs an agent that calls another, each with its own model, and returns the cost.
async fn cost(outer: &str, inner: &str) -> Option<String> {
    let agents = format!(
        "[boss:Agent {{instruction: 'Ask `helper`.', model: '{outer}'}} | helper]
         [helper:Agent {{description: 'Helps', instruction: 'Help.', model: '{inner}'}}]"
    );
    let script =
        |script: Json| -> Arc<dyn Model> { Arc::new(ScriptedModel::parse("script", &script.to_string()).unwrap()) };
    let usage = json!({"inputTokens": 1000, "outputTokens": 100});
    let boss = script(json!([
        {"calls": [{"tool": "helper", "arguments": {"input": "help"}}], "usage": usage},
        {"text": "done", "usage": usage},
    ]));
    let helper = script(json!([{"text": "helped", "usage": {"inputTokens": 1000, "cachedTokens": 1000}}]));
    let helper_model = inner.to_owned();
    let models: ModelResolver =
        Arc::new(move |model| Ok(Arc::clone(if model.to_string() == helper_model { &helper } else { &boss })));
    let library =
        merge([(Layer::Internal, standard_library(&ToolResources::new(".", Environment::default())))]).unwrap();
    let tally = Arc::new(Tally::new(Prices::builtin()));
    let recorded = Arc::clone(&tally);
    let driver = Driver::new(Arc::new(Project::read([("a.gram", agents)])), library.into(), models)
        .with_listener(move |event| recorded.record(event));
    let compiled = driver.compile(&driver.project().find_agent("boss").unwrap()).unwrap();
    let run = Run::start(compiled.spec().clone(), Vec::new(), "hi", now_ms()).unwrap();
    let run = driver.drive(&compiled, run, &CancellationToken::new()).await;
    assert_eq!(run.response().content, "done");
    tally.cost().map(|cost| cost.to_string())
}

#[tokio::test]
async fn replies_are_priced_by_model() {
    assert_eq!(cost("OpenAI/gpt-4o-mini", "demo").await.as_deref(), Some("$0.00042"));
    assert_eq!(cost("OpenAI/gpt-4o-mini", "Anthropic/claude-sonnet-4-6").await.as_deref(), Some("$0.00072"));
    assert_eq!(cost("OpenAI/gpt-4o-mini", "OpenAI/unheard-of").await, None);
}

#[test]
fn an_interrupted_reply_of_a_paid_model_has_an_unknown_cost() {
    for (model, expected) in [("OpenAI/gpt-4o-mini", None), ("demo", Some("$0"))] {
        let tally = Tally::new(Prices::builtin());
        let interrupted = RunEventKind::Incomplete { finish: "interrupted".to_owned(), message: String::new() };
        for kind in [
            RunEventKind::Started { model: model.to_owned(), bindings: String::new(), is_structured: false },
            interrupted,
        ] {
            tally.record(&RunEvent::new("a", &vec![], kind));
        }
        assert_eq!(tally.cost().map(|cost| cost.to_string()).as_deref(), expected, "{model}");
    }
}
