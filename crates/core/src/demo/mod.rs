//! The built-in offline model: deterministic and instant, but not a language model.
//!
//! It allows trying an agent without an API key. It selects tools by matching the words of the last message against the
//! names, descriptions and parameters of the tools; extracts arguments from names, numbers, quoted texts, addresses and
//! dates in the message; remembers the user's name; answers with the results of the tools; asks for missing arguments; and
//! describes its tools if none matches. It supports English only, and ignores the instruction and the settings.
//!
//! Usage is counted in words separated by white space: input is the instruction, the conversation and the descriptions of
//! the tools; output is the text and the arguments.

mod word;
mod schema;
mod person;
mod find;
mod label;
mod fill;
mod pick;
mod say;

use crate::message::attachment::Attachment;
use crate::message::conversation::{Conversation, Message, Messages, Opaque, ToolCall, ToolOutcome, Usage};
use crate::message::request::{FinishReason, OfferedTool, Reply, Request};
use fill::{ArgumentSource, fill, is_person};
use pick::{ToolMatch, pick};
use serde_json::{Map, Value as Json, json};
use word::{Word, words};

/// A notice to show before the model is used.
pub const NOTICE: &str = "the demo model is not a language model; it matches words in your prompt to tools";

/// The maximum number of calls in one reply.
pub const MAX_CALLS: usize = 8;

/// The owner of the model's opaque data.
const WIRE: &str = "demo";

/// Returns the reply of the model to a request. After the calls for a message, the next reply is an answer.
///
/// ```
/// use patter_core::message::conversation::Message;
/// use patter_core::demo;
/// use patter_core::name::WireName;
/// use patter_core::message::attachment::AttachmentContents;
/// use patter_core::message::request::{OfferedTool, Request, Settings};
/// let tools = [OfferedTool {
///     name: WireName::from_full_name("sayHello").unwrap(),
///     description: "Returns a friendly greeting".into(),
///     schema: serde_json::json!({"type": "object", "properties": {"personName": {"type": "string"}}}).into(),
///     strict_schema: None,
/// }];
/// let request = Request {
///     model: &"demo".parse().unwrap(),
///     instruction: "Greet people.",
///     messages: &vec![Message::user("Hello! My name is Alice.")].into(),
///     contents: AttachmentContents::NONE,
///     tools: &tools,
///     settings: &Settings::default(),
///     returns: None,
/// };
/// let reply = demo::reply(&request);
/// assert_eq!(reply.calls[0].tool, "sayHello");
/// assert_eq!(reply.calls[0].arguments, r#"{"personName":"Alice"}"#);
/// ```
pub fn reply(request: &Request<'_>) -> Reply {
    let conversation = SplitConversation::new(request.messages);
    let response = match conversation.outcomes() {
        Some(outcomes) => Response::Text(answer(&outcomes, request.returns)),
        None => respond(&conversation, request.tools),
    };
    let (text, calls, opaque) = match response {
        Response::Text(text) => (with_note(text, &conversation, request), Vec::new(), None),
        Response::Question { text, tool, parameter } => {
            let data = json!({ "asks": { "tool": tool, "parameter": parameter } });
            (text, Vec::new(), Some(Opaque { wire: WIRE.to_owned(), origin: String::new(), data }))
        }
        Response::Calls(calls) => (String::new(), calls, None),
    };
    let previous: usize = request.messages.iter().map(|message| message.calls().len()).sum();
    let calls: Vec<ToolCall> = calls
        .into_iter()
        .enumerate()
        .map(|(index, (tool, arguments))| ToolCall {
            id: format!("demo_{}", previous + index + 1),
            tool,
            arguments: Json::Object(arguments).to_string(),
        })
        .collect();
    let usage = usage(request, &text, &calls);
    Reply { text, calls, finish: FinishReason::Stop, usage, opaque, thought: String::new() }
}

/// What the model does about a message.
enum Response {
    Text(String),
    /// It asks for an argument, and recognizes the answer by the opaque data of the question.
    Question {
        text: String,
        tool: String,
        parameter: String,
    },
    Calls(Calls),
}

/// The conversation, split at the last user message.
struct SplitConversation<'m> {
    before: Messages<'m>,
    message: &'m str,
    attachments: &'m [Attachment],
    after: Messages<'m>,
}

impl<'m> SplitConversation<'m> {
    fn new(messages: &'m Conversation) -> Self {
        let last = messages.iter().rposition(|message| matches!(message, Message::User { .. }));
        let last = last.unwrap_or(0);
        let before = messages.range(0..last);
        match messages.get(last) {
            Some(Message::User { text, attachments }) => {
                Self { before, message: text, attachments, after: messages.since(last + 1) }
            }
            _ => Self { before, message: "", attachments: &[], after: messages.since(last) },
        }
    }

    /// Returns the outcomes of the calls since the last user message, if there were any.
    fn outcomes(&self) -> Option<Vec<(&'m str, &'m ToolOutcome)>> {
        let has_called = |message: &Message| matches!(message, Message::Assistant { calls, .. } if !calls.is_empty());
        let outcome = |message: &'m Message| match message {
            Message::Tool { tool, outcome, .. } => Some((tool.as_str(), outcome)),
            _ => None,
        };
        let outcomes: Vec<_> = self.after.clone().filter_map(outcome).collect();
        (!outcomes.is_empty() || self.after.clone().any(has_called)).then_some(outcomes)
    }

    /// Returns the user's name, from their latest introduction.
    fn speaker(&self) -> Option<String> {
        let earlier = self.before.clone().rev().filter_map(|message| match message {
            Message::User { text, .. } => Some(text.as_str()),
            _ => None,
        });
        std::iter::once(self.message).chain(earlier).find_map(|text| person::introduced(&words(text)))
    }

    /// Returns the tool that the model asked arguments for, with the original message and the answers since.
    fn pending(&self) -> Option<PendingCall<'m>> {
        let mut pending: Option<PendingCall<'m>> = None;
        let mut answer = self.message;
        let mut before = self.before.clone().rev();
        while let Some(Message::Assistant { opaque: Some(opaque), .. }) = before.next()
            && let Some(Message::User { text, .. }) = before.next()
        {
            let Some((tool, parameter)) = asked_argument(opaque) else { break };
            let open = pending.get_or_insert_with(|| PendingCall { tool, message: text, answers: Vec::new() });
            if open.tool != tool {
                break;
            }
            open.message = text;
            open.answers.push((parameter.to_owned(), answer));
            answer = text;
        }
        pending
    }
}

/// Adds to an answer that the model did not read the attachments, unless the answer has to match a schema.
fn with_note(mut text: String, conversation: &SplitConversation<'_>, request: &Request<'_>) -> String {
    if !conversation.attachments.is_empty() && request.returns.is_none() {
        let names: Vec<_> = conversation.attachments.iter().map(ToString::to_string).collect();
        text.push_str(&format!("\n\n(The demo model does not read attachments: {}.)", names.join(", ")));
    }
    text
}

/// A call that the model asked arguments for.
struct PendingCall<'m> {
    tool: &'m str,
    message: &'m str,
    answers: Vec<(String, &'m str)>,
}

/// Returns the tool and the parameter that a message of the model asked for.
fn asked_argument(opaque: &Opaque) -> Option<(&str, &str)> {
    let asks = opaque.data.get("asks").filter(|_| opaque.wire == WIRE)?;
    Some((asks.get("tool")?.as_str()?, asks.get("parameter")?.as_str()?))
}

type Calls = Vec<(String, Map<String, Json>)>;

/// Describes the outcomes of calls, or returns a single result as JSON if the answer is structured.
fn answer(outcomes: &[(&str, &ToolOutcome)], returns: Option<&Json>) -> String {
    match (outcomes, returns) {
        ([], _) => "There are no results.".to_owned(),
        ([(_, ToolOutcome::Value { value })], Some(schema)) if schema::kind(schema) != schema::ParameterKind::Text => {
            value.to_string()
        }
        _ => say::describe_outcomes(outcomes),
    }
}

/// Decides what to do about a user message.
fn respond(conversation: &SplitConversation<'_>, tools: &[OfferedTool]) -> Response {
    let message = conversation.message;
    let words = words(message);
    let speaker = conversation.speaker();
    let source =
        ArgumentSource { text: message, words: &words, speaker: speaker.as_deref(), person: None, answers: &[] };
    if asks_for_name(&words) {
        return Response::Text(say::recall_name(speaker.as_deref()));
    }
    let can_call = |tool: &OfferedTool| fill(&tool.schema, source).is_ok();
    let mut picked = pick(message, &words, tools, can_call);
    if let Some(pending) = conversation.pending() {
        let tool = tools.iter().find(|tool| tool.name.full_name() == pending.tool);
        // A message that clearly refers to another tool changes the subject.
        let has_changed =
            picked.iter().any(|picked| picked.tool.name.full_name() != pending.tool && can_call(picked.tool));
        if let Some(tool) = tool.filter(|_| !has_changed) {
            let words = word::words(pending.message);
            let source = ArgumentSource { text: pending.message, words: &words, answers: &pending.answers, ..source };
            return match fill(&tool.schema, source) {
                Ok(arguments) => Response::Calls(vec![(tool.name.full_name(), arguments)]),
                Err(parameter) => ask(tool, parameter),
            };
        }
    }
    if picked.is_empty() && person::introduced(&words).is_some() {
        // An introduction is answered with a greeting, if there is a tool for that.
        let hello = word::words("hello");
        let whole = 0..words.len();
        picked = pick("hello", &hello, tools, can_call);
        picked.iter_mut().for_each(|picked| picked.part = whole.clone());
    }
    let mut calls: Calls = Vec::new();
    for ToolMatch { tool, part } in &picked {
        let is_only = picked.len() == 1;
        let words = words.get(part.clone()).unwrap_or_default();
        let text = if is_only { message } else { spanned_text(message, words) };
        match arguments(tool, ArgumentSource { text, words, ..source }) {
            Ok(all) => calls.extend(all.into_iter().map(|arguments| (tool.name.full_name(), arguments))),
            // The arguments of one of several tools may be in another part of the message.
            Err(parameter) => match fill(&tool.schema, source) {
                Ok(arguments) => calls.push((tool.name.full_name(), arguments)),
                Err(_) if !is_only => {}
                Err(_) => return ask(tool, parameter),
            },
        }
    }
    let mut distinct: Calls = Vec::new();
    for call in calls.into_iter().take(MAX_CALLS) {
        if !distinct.contains(&call) {
            distinct.push(call);
        }
    }
    if !distinct.is_empty() {
        return Response::Calls(distinct);
    }
    let greets = words.iter().any(|word| word.stem == "hello") || person::introduced(&words).is_some();
    let greeting = greets.then(|| speaker.map_or_else(|| "Hello!".to_owned(), |name| format!("Hello, {name}!")));
    Response::Text(say::list_tools(tools, greeting))
}

fn ask(tool: &OfferedTool, parameter: String) -> Response {
    Response::Question { text: say::ask_argument(tool, &parameter), tool: tool.name.full_name(), parameter }
}

/// Returns the arguments of the calls to one tool: one call per person, if the tool is about a person.
fn arguments(tool: &OfferedTool, source: ArgumentSource<'_>) -> Result<Vec<Map<String, Json>>, String> {
    let parameters = schema::parameters(&tool.schema, &tool.schema);
    let about_people = parameters.iter().filter(|parameter| is_person(parameter)).count();
    let people = if about_people == 1 { person::addressed(source.words) } else { Vec::new() };
    if people.len() < 2 {
        return Ok(vec![fill(&tool.schema, source)?]);
    }
    people.iter().map(|person| fill(&tool.schema, ArgumentSource { person: Some(person), ..source })).collect()
}

/// Returns the part of a text that the words span.
fn spanned_text<'t>(text: &'t str, words: &[Word<'_>]) -> &'t str {
    let (Some(first), Some(last)) = (words.first(), words.last()) else { return "" };
    text.get(first.start..last.end).unwrap_or_default()
}

/// Returns whether the user asks for their own name: "What is my name?"
fn asks_for_name(words: &[Word<'_>]) -> bool {
    let has = |stems: &[&str]| words.iter().any(|word| stems.contains(&word.stem.as_str()));
    let pairs = || words.iter().zip(words.iter().skip(1)).map(|(a, b)| (a.stem.as_str(), b.stem.as_str()));
    let my_name =
        pairs().any(|pair| pair == ("my", "nam")) && has(&["what", "remember", "know", "recall", "forget", "forgot"]);
    let who_am_i = pairs().any(|pair| pair == ("am", "i")) && has(&["who"]);
    (my_name || who_am_i) && person::introduced(words).is_none()
}

fn usage(request: &Request<'_>, text: &str, calls: &[ToolCall]) -> Usage {
    let count = |text: &str| text.split_whitespace().count() as u64;
    let messages = request.messages.iter().map(|message| match message {
        Message::User { text, .. } | Message::Compacted { summary: text, .. } => count(text),
        Message::Assistant { text, calls, .. } => {
            count(text) + calls.iter().map(|call| count(&call.arguments)).sum::<u64>()
        }
        Message::Tool { outcome, .. } => count(&outcome.text()),
    });
    let tools = request.tools.iter().map(|tool| count(&tool.description));
    Usage {
        input_tokens: count(request.instruction) + messages.sum::<u64>() + tools.sum::<u64>(),
        output_tokens: count(text) + calls.iter().map(|call| count(&call.arguments)).sum::<u64>(),
        ..Usage::default()
    }
}
