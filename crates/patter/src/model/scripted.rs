//! A model that replies from a script, for reproducible tests and demonstrations.

use super::error::ModelError;
use super::interface::{DeltaSink, Model};
use super::stream::stream_reply;
use crate::os_error::describe;
use crate::tool::{BoxFuture, CancellationToken};
use crate::type_error::explain_type;
use patter_core::message::conversation::{Message, ToolCall, Usage};
use patter_core::message::request::{Delta, FinishReason, Reply, Request};
use patter_core::provider::Provider;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;
use serde_json::error::Category;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use thiserror::Error;
use tokio::io::AsyncReadExt;

/// The largest script, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// A model that replies from a script: a JSON list of replies, one for each request of a conversation.
///
/// The number of replies in the conversation determines the next one, so any number of conversations can use one script at
/// once. All fields of a reply are optional:
///
/// | field | |
/// |---|---|
/// | `text` | the text |
/// | `thought` | the reasoning before it, which is shown while the reply streams |
/// | `calls` | the tools to call: `{"tool", "arguments"}`; arguments that are a string are used unchanged, valid JSON or not |
/// | `finish` | the finish reason: `"stop"` (default), `"length"`, `"filtered"`, `"refused"`, `"malformed"` |
/// | `usage` | the token counts: `inputTokens`, `cachedTokens`, `outputTokens`, `reasoningTokens` |
/// | `delayMs` | the time until the reply, in milliseconds |
/// | `error` | an error instead of a reply: `{"message", "status"?}`; a retry gets the same error |
/// | `expect` | what the request must contain; otherwise it fails |
///
/// A list in place of a reply has replies to choose from: the first whose `expect` is met. So one script can play several
/// agents, or the same agent with several inputs.
///
/// | field of `expect` | |
/// |---|---|
/// | `user` | texts that the last message of the user contains |
/// | `instruction` | texts that the instruction contains |
/// | `tools` | names of tools that are offered |
/// | `results` | for each preceding call, in order, a text that its result contains; errors start with `error: ` |
///
/// ```
/// use patter::model::ScriptedModel;
/// let script = r#"[
///   {"calls": [{"tool": "sayHello", "arguments": {"personName": "Ada"}}], "expect": {"user": ["Ada"]}},
///   {"text": "Ada is greeted.", "expect": {"results": ["Hello, Ada!"]}}
/// ]"#;
/// assert!(ScriptedModel::parse("hello.json", script).is_ok());
/// let error = ScriptedModel::parse("hello.json", r#"[{"txt": "Hello"}]"#).unwrap_err();
/// assert!(error.to_string().starts_with("cannot read the script `hello.json`: unknown field `txt`"));
/// ```
#[derive(Debug)]
pub struct ScriptedModel {
    name: String,
    steps: Vec<Choice>,
}

/// The replies to choose from for one request: the first whose expectations are met. There is at least one.
#[derive(Debug)]
struct Choice(Vec<Step>);

impl<'de> Deserialize<'de> for Choice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ChoiceVisitor)
    }
}

struct ChoiceVisitor;

impl<'de> Visitor<'de> for ChoiceVisitor {
    type Value = Choice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a reply, such as {\"text\": \"Hello!\"}")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Choice, A::Error> {
        Step::deserialize(MapAccessDeserializer::new(map)).map(|step| Choice(vec![step]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Choice, A::Error> {
        let mut steps = Vec::new();
        while let Some(step) = seq.next_element()? {
            steps.push(step);
        }
        if steps.is_empty() {
            Err(A::Error::custom("a list of replies to choose from is empty"))
        } else {
            Ok(Choice(steps))
        }
    }
}

/// The reason why a script cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot read the script `{name}`: {message}")]
pub struct ScriptError {
    name: String,
    message: String,
}

impl ScriptError {
    /// Returns what to do about it.
    pub const fn hint(&self) -> &'static str {
        "a script is a JSON list of replies, such as `[{\"text\": \"Hello!\"}]`"
    }
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "a reply, such as {\"text\": \"Hello!\"}")]
struct Step {
    text: String,
    thought: String,
    calls: Vec<ScriptedCall>,
    finish: FinishReason,
    usage: ScriptedUsage,
    delay_ms: u64,
    error: Option<ScriptedError>,
    expect: Expectation,
}

impl Default for Step {
    fn default() -> Self {
        Self {
            text: String::new(),
            thought: String::new(),
            calls: Vec::new(),
            finish: FinishReason::Stop,
            usage: ScriptedUsage::default(),
            delay_ms: 0,
            error: None,
            expect: Expectation::default(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a call, such as {\"tool\": \"sayHello\", \"arguments\": {}}")]
struct ScriptedCall {
    tool: String,
    #[serde(default)]
    arguments: Json,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "an object of token counts")]
struct ScriptedUsage {
    input_tokens: u64,
    cached_tokens: u64,
    output_tokens: u64,
    reasoning_tokens: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an error, such as {\"message\": \"overloaded\", \"status\": 529}")]
struct ScriptedError {
    message: String,
    status: Option<u16>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "an object of expectations, such as {\"user\": [\"Ada\"]}")]
struct Expectation {
    user: Vec<String>,
    instruction: Vec<String>,
    tools: Vec<String>,
    results: Option<Vec<String>>,
}

impl ScriptedModel {
    /// Reads a script from a file.
    pub async fn read(path: &Path) -> Result<Self, ScriptError> {
        let name = path.display().to_string();
        let script_error = |message: String| ScriptError { name: name.clone(), message };
        let file = tokio::fs::File::open(path).await.map_err(|error| script_error(describe(&error)))?;
        let mut text = String::new();
        let read = file.take(MAX_BYTES + 1).read_to_string(&mut text).await;
        let size = read.map_err(|error| script_error(describe(&error)))? as u64;
        if size > MAX_BYTES {
            return Err(script_error(format!("larger than {} MiB", MAX_BYTES >> 20)));
        }
        Self::parse(name, &text)
    }

    /// Parses a script. The name is used in messages.
    pub fn parse(name: impl Into<String>, text: &str) -> Result<Self, ScriptError> {
        let name = name.into();
        serde_json::from_str(text).map(|steps| Self { name: name.clone(), steps }).map_err(|error| {
            let message = match error.classify() {
                _ if text.trim().is_empty() => "it is empty".to_owned(),
                Category::Data if !text.trim_start().starts_with('[') => "it is not a list of replies".to_owned(),
                Category::Data | Category::Io => explain(&error),
                Category::Syntax | Category::Eof => {
                    format!("it is not valid JSON: line {}, column {}", error.line(), error.column())
                }
            };
            ScriptError { name, message }
        })
    }

    /// Finds the reply to a request by the number of replies in the conversation.
    fn find_step(&self, request: &Request<'_>) -> Result<(usize, &Step), ModelError> {
        let is_reply = |message: &&Message| matches!(message, Message::Assistant { .. });
        let position = request.messages.iter().filter(is_reply).count();
        let number = position + 1;
        let Some(Choice(steps)) = self.steps.get(position) else {
            let count = self.steps.len();
            let replies = if count == 1 { "reply" } else { "replies" };
            let message = format!("the script `{}` has {count} {replies}, but this is request {number}", self.name);
            return Err(ModelError::Api { status: None, message });
        };
        let mut mismatch = String::new();
        for step in steps {
            match step.expect.mismatch(request) {
                None => return Ok((position, step)),
                Some(found) => mismatch = found,
            }
        }
        let of_several = if steps.len() > 1 { "no reply fits; for the last one, " } else { "" };
        let message = format!("the script `{}`, request {number}: {of_several}{mismatch}", self.name);
        Err(ModelError::Api { status: None, message })
    }
}

impl Model for ScriptedModel {
    fn provider(&self) -> Provider {
        Provider::SCRIPTED
    }

    fn call<'a>(
        &'a self,
        request: &'a Request<'a>,
        sink: Option<&'a DeltaSink<'a>>,
        cancellation: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let (position, step) = self.find_step(request)?;
            if step.delay_ms > 0 {
                tokio::select! {
                    biased;
                    () = cancellation.cancelled() => return Err(ModelError::Cancelled),
                    () = tokio::time::sleep(Duration::from_millis(step.delay_ms)) => {}
                }
            }
            match &step.error {
                Some(error) => Err(ModelError::Api { status: error.status, message: error.message.clone() }),
                None => {
                    if let Some(sink) = sink.filter(|_| !step.thought.is_empty()) {
                        sink.receive(Delta::Thought { text: step.thought.clone() });
                    }
                    stream_reply(step.reply(position), sink, cancellation).await
                }
            }
        })
    }
}

impl Step {
    fn reply(&self, position: usize) -> Reply {
        let call = |(index, call): (usize, &ScriptedCall)| ToolCall {
            id: format!("scripted_{}_{}", position + 1, index + 1),
            tool: call.tool.clone(),
            arguments: match &call.arguments {
                Json::Null => String::new(),
                Json::String(text) => text.clone(),
                arguments => arguments.to_string(),
            },
        };
        let ScriptedUsage { input_tokens, cached_tokens, output_tokens, reasoning_tokens } = self.usage;
        Reply {
            text: self.text.clone(),
            calls: self.calls.iter().enumerate().map(call).collect(),
            finish: self.finish.clone(),
            usage: Usage { input_tokens, cached_tokens, output_tokens, reasoning_tokens, ..Usage::default() },
            opaque: None,
            thought: self.thought.clone(),
        }
    }
}

impl Expectation {
    /// Returns how a request differs from the expectation.
    fn mismatch(&self, request: &Request<'_>) -> Option<String> {
        let missing = |texts: &[String], found: &str| texts.iter().find(|text| !found.contains(text.as_str())).cloned();
        let last_user_text = request.messages.iter().rev().find_map(|message| match message {
            Message::User { text, .. } => Some(text.as_str()),
            _ => None,
        });
        let user = last_user_text.unwrap_or_default();
        if let Some(text) = missing(&self.user, user) {
            return Some(format!("expected `{text}` in the message of the user, found `{user}`"));
        }
        if let Some(text) = missing(&self.instruction, request.instruction) {
            return Some(format!("expected `{text}` in the instruction"));
        }
        let offered: Vec<String> = request.tools.iter().map(|tool| tool.name.full_name()).collect();
        if let Some(tool) = self.tools.iter().find(|tool| !offered.contains(tool)) {
            return Some(format!("expected the tool `{tool}`, found {}", quote_all(&offered)));
        }
        let expected = self.results.as_ref()?;
        let mut results: Vec<String> = request.messages.iter().rev().map_while(result_text).collect();
        results.reverse();
        let contains = |(expected, found): (&String, &String)| found.contains(expected.as_str());
        let matches = expected.len() == results.len() && expected.iter().zip(&results).all(contains);
        (!matches).then(|| format!("expected the results {}, found {}", quote_all(expected), quote_all(&results)))
    }
}

/// Describes a value that does not belong into a script.
fn explain(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    match explain_type(message.strip_suffix(&place).unwrap_or(&message)) {
        Some(message) => format!("line {}, column {}: {message}", error.line(), error.column()),
        None => message,
    }
}

fn result_text(message: &Message) -> Option<String> {
    match message {
        Message::Tool { outcome, .. } => Some(outcome.text()),
        _ => None,
    }
}

fn quote_all(texts: &[String]) -> String {
    match texts {
        [] => "none".to_owned(),
        _ => texts.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", "),
    }
}
