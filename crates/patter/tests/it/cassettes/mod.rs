//! The cassettes of protocols, replayed over HTTP by a server that checks the requests, and the recorder that makes them.

mod player;
mod recorder;

use patter::message::attachment::AttachmentContents;
use patter::message::conversation::Message;
use patter::message::request::{OfferedTool, Reply, Request as ModelRequest, Settings};
use patter::model::{DeltaSink, HttpModel, Model, ModelError};
use patter::name::WireName;
use patter::project::{Config, Environment};
use patter::provider::ModelRef;
use patter::tool::CancellationToken;
use player::play;
use serde_json::{Value as Json, json};

/// The wires, with the header of their keys and the paths of their requests.
const WIRES: [(&str, &str, &str); 5] = [
    ("chat", "authorization", "/chat/completions"),
    ("responses", "authorization", "/responses"),
    ("anthropic", "x-api-key", "/v1/messages"),
    ("gemini", "x-goog-api-key", "/v1beta/models/"),
    ("ollama", "authorization", "/api/chat"),
];

/// Whether a reply is requested at once or as a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Whole,
    Streamed,
}

/// Asks a model of a declared provider.
async fn ask(
    wire: &str,
    base: &str,
    model: &str,
    key: &str,
    question: &Question,
    form: Form,
) -> Result<Reply, ModelError> {
    let text = format!("[models.tape-{wire}]\napi = '{wire}'\nurl = '{base}'\nkey = 'TAPE_KEY'\ntimeout = 60\n");
    let config = Config::parse(&text).unwrap();
    let environment = Environment::from_variables([("TAPE_KEY", key)]);
    let id: ModelRef = format!("tape-{wire}/{model}").parse().unwrap();
    let model = HttpModel::with_config(&id, &environment, &config.models).unwrap();
    let messages = vec![Message::user(question.text)].into();
    let settings = Settings::default();
    let request = ModelRequest {
        model: &id,
        instruction: "Be kind.",
        messages: &messages,
        contents: AttachmentContents::NONE,
        tools: &question.tools,
        settings: &settings,
        returns: None,
    };
    let sink = |_| {};
    let sink = (form == Form::Streamed).then_some(&sink as &DeltaSink<'_>);
    model.call(&request, sink, &CancellationToken::new()).await
}

/// What a model is asked.
struct Question {
    case: &'static str,
    text: &'static str,
    tools: Vec<OfferedTool>,
}

impl Question {
    fn plain() -> Self {
        Self { case: "plain", text: "Say hello in one word.", tools: Vec::new() }
    }

    fn calls() -> Self {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        let tool = OfferedTool {
            name: WireName::from_full_name("weather/current").unwrap(),
            description: "Returns the weather of a city".into(),
            schema: schema.into(),
            strict_schema: None,
        };
        Self { case: "calls", text: "What is the weather in Paris, and in Rome?", tools: vec![tool] }
    }
}

/// Checks a reply against what a cassette expects.
fn check(found: &Result<Reply, ModelError>, expected: &Json, place: &str) {
    match found {
        Ok(reply) => {
            let found = (reply.text.as_str(), reply.finish.name(), reply.thought.as_str());
            let text = |name: &str| expected[name].as_str().unwrap_or_default();
            assert_eq!(found, (text("text"), text("finish"), text("thought")), "{place}");
            assert_eq!(reply.calls.len(), expected["calls"].as_array().unwrap().len(), "{place}");
        }
        Err(error) => {
            let message = expected["error"].as_str().unwrap_or_else(|| panic!("{place}: {error}"));
            let shown = format!("{error} {error:?}");
            assert!(shown.contains(message) && !shown.contains("k3y-secret"), "{place}: {shown}");
        }
    }
}

#[tokio::test]
async fn declared_providers_of_every_wire_play_all_cassettes() {
    for (wire, ..) in WIRES {
        let path = format!("{}/../core/tests/wire/cassettes/{wire}.json", env!("CARGO_MANIFEST_DIR"));
        let cassettes: Vec<Json> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        assert!(cassettes.len() > 5, "{wire}");
        for cassette in cassettes {
            let place = format!("{wire} {}", cassette["case"]);
            let (base, wrong) = play(wire, cassette.clone()).await;
            for form in [Form::Whole, Form::Streamed] {
                let question = Question { tools: Vec::new(), ..Question::plain() };
                let found = ask(wire, &base, "m", "k3y-secret", &question, form).await;
                check(&found, &cassette["expected"], &format!("{place}, {form:?}"));
            }
            assert_eq!(*wrong.lock().unwrap(), [""; 0], "{place}");
        }
    }
}
