//! A model that plays a file: for tests, demonstrations and recordings that must come out the same each time.

use super::stream::told;
use super::{Model, ModelError, Sink};
use crate::tool::{BoxFuture, CancellationToken};
use patter_core::message::conversation::{Message, ToolCall, Usage};
use patter_core::message::request::{Finish, Reply, Request};
use patter_core::provider::Provider;
use serde::Deserialize;
use serde_json::Value as Json;
use std::path::Path;
use std::time::Duration;
use thiserror::Error;
use tokio::io::AsyncReadExt;

/// The most that a script may have, in bytes.
const MOST_BYTES: u64 = 16 << 20;

/// A model that plays a script: a JSON list of replies, one for each request of a conversation.
///
/// Which one is next follows from the conversation alone, by the replies that it has already: so any number of
/// conversations play one script at once. All parts of a reply are optional:
///
/// | part | |
/// |---|---|
/// | `text` | what it says |
/// | `calls` | the tools that it calls: `{"tool", "arguments"}`; arguments that are a text go as they are, JSON or not |
/// | `finish` | why it stops: `"stop"` if nothing is said, `"length"`, `"filtered"`, `"refused"`, `"malformed"` |
/// | `usage` | what it costs: `inputTokens`, `cachedTokens`, `outputTokens`, `reasoningTokens` |
/// | `delayMs` | how long it takes |
/// | `error` | instead of a reply: `{"message", "status"?}`. A request that is sent again meets it again |
/// | `expect` | what the request must be like, or it is an error |
///
/// | part of `expect` | |
/// |---|---|
/// | `user` | texts that the last message of a person contains |
/// | `instruction` | texts that the instruction contains |
/// | `tools` | names of tools that are offered |
/// | `results` | for each call before, in order, a text that its result contains; errors begin with `error: ` |
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
    steps: Vec<Step>,
}

/// Why a script cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot read the script `{name}`: {message}")]
pub struct ScriptError {
    name: String,
    message: String,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Step {
    text: String,
    calls: Vec<ScriptedCall>,
    finish: Finish,
    usage: ScriptedUsage,
    delay_ms: u64,
    error: Option<ScriptedFailure>,
    expect: Expectation,
}

impl Default for Step {
    fn default() -> Self {
        let (text, calls, usage, delay_ms) = Default::default();
        Self { text, calls, finish: Finish::Stop, usage, delay_ms, error: None, expect: Expectation::default() }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedCall {
    tool: String,
    #[serde(default)]
    arguments: Json,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct ScriptedUsage {
    input_tokens: u64,
    cached_tokens: u64,
    output_tokens: u64,
    reasoning_tokens: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedFailure {
    message: String,
    status: Option<u16>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
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
        let failed = |message: String| ScriptError { name: name.clone(), message };
        let file = tokio::fs::File::open(path).await.map_err(|error| failed(error.to_string()))?;
        let mut text = String::new();
        let read = file.take(MOST_BYTES + 1).read_to_string(&mut text).await;
        let size = read.map_err(|error| failed(error.to_string()))? as u64;
        if size > MOST_BYTES {
            return Err(failed(format!("it has more than {MOST_BYTES} bytes")));
        }
        Self::parse(name, &text)
    }

    /// Reads the text of a script. The name is for messages.
    pub fn parse(name: impl Into<String>, text: &str) -> Result<Self, ScriptError> {
        let name = name.into();
        match serde_json::from_str(text) {
            Ok(steps) => Ok(Self { name, steps }),
            Err(error) => Err(ScriptError { name, message: error.to_string() }),
        }
    }

    /// Finds the reply to a request, by the replies that the conversation has.
    fn step(&self, request: &Request<'_>) -> Result<(usize, &Step), ModelError> {
        let is_reply = |message: &&Message| matches!(message, Message::Assistant { .. });
        let position = request.messages.iter().filter(is_reply).count();
        let wrong = |message: String| ModelError::Api { status: None, message };
        let Some(step) = self.steps.get(position) else {
            let (name, length, number) = (&self.name, self.steps.len(), position + 1);
            return Err(wrong(format!("the script `{name}` has {length} replies, and this is request {number}")));
        };
        match step.expect.mismatch(request) {
            None => Ok((position, step)),
            Some(mismatch) => Err(wrong(format!("the script `{}`, request {}: {mismatch}", self.name, position + 1))),
        }
    }
}

impl Model for ScriptedModel {
    fn provider(&self) -> Provider {
        Provider::SCRIPTED
    }

    fn call<'a>(
        &'a self,
        request: &'a Request<'a>,
        sink: Option<&'a Sink<'a>>,
        cancellation: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let (position, step) = self.step(request)?;
            if step.delay_ms > 0 {
                tokio::select! {
                    biased;
                    () = cancellation.cancelled() => return Err(ModelError::Cancelled),
                    () = tokio::time::sleep(Duration::from_millis(step.delay_ms)) => {}
                }
            }
            match &step.error {
                Some(error) => Err(ModelError::Api { status: error.status, message: error.message.clone() }),
                None => told(step.reply(position), sink, cancellation).await,
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
        }
    }
}

impl Expectation {
    /// Returns what of a request is not as expected.
    fn mismatch(&self, request: &Request<'_>) -> Option<String> {
        let missing = |texts: &[String], found: &str| texts.iter().find(|text| !found.contains(text.as_str())).cloned();
        let mut said = request.messages.iter().rev().filter_map(|message| match message {
            Message::User { text } => Some(text.as_str()),
            _ => None,
        });
        let said = said.next().unwrap_or_default();
        if let Some(text) = missing(&self.user, said) {
            return Some(format!("the user should say `{text}`, and says `{said}`"));
        }
        if let Some(text) = missing(&self.instruction, request.instruction) {
            return Some(format!("the instruction should contain `{text}`"));
        }
        let offered: Vec<String> = request.tools.iter().map(|tool| tool.name.full_name()).collect();
        if let Some(tool) = self.tools.iter().find(|tool| !offered.contains(tool)) {
            return Some(format!("the tool `{tool}` should be offered; offered are {}", listed(&offered)));
        }
        let expected = self.results.as_ref()?;
        let mut results: Vec<String> = request.messages.iter().rev().map_while(result).collect();
        results.reverse();
        let fits = |(expected, found): (&String, &String)| found.contains(expected.as_str());
        let are_as_expected = expected.len() == results.len() && expected.iter().zip(&results).all(fits);
        (!are_as_expected).then(|| format!("the results should be {}, and are {}", listed(expected), listed(&results)))
    }
}

fn result(message: &Message) -> Option<String> {
    match message {
        Message::Tool { outcome, .. } => Some(outcome.text()),
        _ => None,
    }
}

fn listed(texts: &[String]) -> String {
    match texts {
        [] => "none".to_owned(),
        _ => texts.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", "),
    }
}
