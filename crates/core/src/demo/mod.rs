//! The built-in offline model: deterministic, instant, and no language model.
//!
//! It makes it possible to try an agent without a key. It picks tools by matching the words of the last message with the
//! names, descriptions and parameters of the tools; fills arguments in from names, numbers, quoted texts, addresses and
//! dates in the message; remembers the name of who speaks; answers with what the tools return; asks for what it does not
//! find; and says what it can do where nothing fits. It speaks English only, and pays no heed to the instruction or to
//! the settings.
//!
//! Usage is counted in words, as white space divides them: of the instruction, the conversation and the descriptions of
//! the tools on the way in, of the text and the arguments on the way out.

mod fill;
mod find;
mod label;
mod person;
mod pick;
mod say;
mod schema;
mod word;

use crate::message::conversation::{Message, ToolCall, ToolOutcome, Usage};
use crate::message::request::{Finish, OfferedTool, Reply, Request};
use fill::{Source, fill, is_person};
use pick::{Picked, pick};
use serde_json::{Map, Value as Json};
use word::{Word, words};

/// What people should know before they use it.
pub const NOTICE: &str = "the demo model is no language model: it matches words with tools";

/// How many calls one reply makes at most.
pub const MAX_CALLS: usize = 8;

/// Returns the reply of the model to a request. Once what a person said has led to calls, the next reply is an answer.
///
/// ```
/// use patter_core::message::conversation::Message;
/// use patter_core::demo;
/// use patter_core::name::WireName;
/// use patter_core::message::request::{OfferedTool, Request, Settings};
/// let tools = [OfferedTool {
///     name: WireName::of("sayHello").unwrap(),
///     description: "Returns a friendly greeting".into(),
///     schema: serde_json::json!({"type": "object", "properties": {"personName": {"type": "string"}}}).into(),
///     is_strict: false,
/// }];
/// let request = Request {
///     model: &"demo".parse().unwrap(),
///     instruction: "Greet people.",
///     messages: &[Message::user("Hello! My name is Alice.")],
///     tools: &tools,
///     settings: &Settings::default(),
///     returns: None,
/// };
/// let reply = demo::reply(&request);
/// assert_eq!(reply.calls[0].tool, "sayHello");
/// assert_eq!(reply.calls[0].arguments, r#"{"personName":"Alice"}"#);
/// ```
pub fn reply(request: &Request<'_>) -> Reply {
    let conversation = Conversation::of(request.messages);
    let (text, calls) = match conversation.outcomes() {
        Some(outcomes) => (answer(&outcomes, request.returns), Vec::new()),
        None => respond(&conversation, request.tools),
    };
    let made = request.messages.iter().map(|message| match message {
        Message::Assistant { calls, .. } => calls.len(),
        _ => 0,
    });
    let made: usize = made.sum();
    let calls: Vec<ToolCall> = calls
        .into_iter()
        .enumerate()
        .map(|(index, (tool, arguments))| ToolCall {
            id: format!("demo_{}", made + index + 1),
            tool,
            arguments: Json::Object(arguments).to_string(),
        })
        .collect();
    let usage = usage(request, &text, &calls);
    Reply { text, calls, finish: Finish::Stop, usage, opaque: None }
}

/// The conversation, from the last message of a person on and before.
struct Conversation<'m> {
    before: &'m [Message],
    said: &'m str,
    after: &'m [Message],
}

impl<'m> Conversation<'m> {
    fn of(messages: &'m [Message]) -> Self {
        let last = messages.iter().rposition(|message| matches!(message, Message::User { .. }));
        let (before, rest) = messages.split_at(last.unwrap_or(0));
        match rest.split_first() {
            Some((Message::User { text }, after)) => Self { before, said: text, after },
            _ => Self { before, said: "", after: rest },
        }
    }

    /// Returns what came of the calls since a person spoke, if there were any.
    fn outcomes(&self) -> Option<Vec<(&'m str, &'m ToolOutcome)>> {
        let has_called = |message: &Message| matches!(message, Message::Assistant { calls, .. } if !calls.is_empty());
        let outcome = |message: &'m Message| match message {
            Message::Tool { tool, outcome, .. } => Some((tool.as_str(), outcome)),
            _ => None,
        };
        let outcomes: Vec<_> = self.after.iter().filter_map(outcome).collect();
        (!outcomes.is_empty() || self.after.iter().any(has_called)).then_some(outcomes)
    }

    /// Returns who speaks, by what they said last about it.
    fn speaker(&self) -> Option<String> {
        let said = self.before.iter().rev().filter_map(|message| match message {
            Message::User { text } => Some(text.as_str()),
            _ => None,
        });
        std::iter::once(self.said).chain(said).find_map(|text| person::introduced(&words(text)))
    }

    /// Returns the tool that arguments were asked for, with what was said at first and the answers since.
    fn pending(&self) -> Option<Pending<'m>> {
        let mut pending: Option<Pending<'m>> = None;
        let mut answer = self.said;
        for pair in self.before.rchunks_exact(2) {
            let [Message::User { text: said }, Message::Assistant { text, .. }] = pair else { break };
            let Some((tool, parameter)) = say::asked(text) else { break };
            let open = pending.get_or_insert_with(|| Pending { tool, said, given: Vec::new() });
            if open.tool != tool {
                break;
            }
            open.said = said;
            open.given.push((parameter.to_owned(), answer));
            answer = said;
        }
        pending
    }
}

/// A call that arguments were asked for.
struct Pending<'m> {
    tool: &'m str,
    said: &'m str,
    given: Vec<(String, &'m str)>,
}

type Calls = Vec<(String, Map<String, Json>)>;

/// Says what came of calls: as JSON where the answer has a form, and one result is all there is.
fn answer(outcomes: &[(&str, &ToolOutcome)], returns: Option<&Json>) -> String {
    match (outcomes, returns) {
        ([], _) => "Nothing came of that.".to_owned(),
        ([(_, ToolOutcome::Value { value })], Some(schema)) if schema::kind(schema) != schema::Kind::Text => {
            value.to_string()
        }
        _ => say::outcomes(outcomes),
    }
}

/// Decides what to do about what a person said.
fn respond(conversation: &Conversation<'_>, tools: &[OfferedTool]) -> (String, Calls) {
    let said = conversation.said;
    let words = words(said);
    let speaker = conversation.speaker();
    let source = Source { text: said, words: &words, speaker: speaker.as_deref(), person: None, given: &[] };
    if asks_for_name(&words) {
        return (say::remembered(speaker.as_deref()), Vec::new());
    }
    let can_call = |tool: &OfferedTool| fill(&tool.schema, source).is_ok();
    let mut picked = pick(said, &words, tools, can_call);
    if let Some(pending) = conversation.pending() {
        let tool = tools.iter().find(|tool| tool.name.full_name() == pending.tool);
        // Who names another tool has changed the subject.
        let has_changed =
            picked.iter().any(|picked| picked.tool.name.full_name() != pending.tool && can_call(picked.tool));
        if let Some(tool) = tool.filter(|_| !has_changed) {
            let words = word::words(pending.said);
            let source = Source { text: pending.said, words: &words, given: &pending.given, ..source };
            return match fill(&tool.schema, source) {
                Ok(arguments) => (String::new(), vec![(tool.name.full_name(), arguments)]),
                Err(parameter) => (say::question(tool, &parameter), Vec::new()),
            };
        }
    }
    if picked.is_empty() && person::introduced(&words).is_some() {
        // Who introduces themselves is greeted, where a tool can.
        let hello = word::words("hello");
        let whole = 0..words.len();
        picked = pick("hello", &hello, tools, can_call);
        picked.iter_mut().for_each(|picked| picked.part = whole.clone());
    }
    let mut calls: Calls = Vec::new();
    for Picked { tool, part } in &picked {
        let is_all = picked.len() == 1;
        let words = words.get(part.clone()).unwrap_or_default();
        let text = if is_all { said } else { text_of(said, words) };
        match arguments(tool, Source { text, words, ..source }) {
            Ok(all) => calls.extend(all.into_iter().map(|arguments| (tool.name.full_name(), arguments))),
            // One of several tools may be said more about elsewhere.
            Err(parameter) => match fill(&tool.schema, source) {
                Ok(arguments) => calls.push((tool.name.full_name(), arguments)),
                Err(_) if !is_all => {}
                Err(_) => return (say::question(tool, &parameter), Vec::new()),
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
        return (String::new(), distinct);
    }
    let greets = words.iter().any(|word| word.stem == "hello") || person::introduced(&words).is_some();
    let greeting = greets.then(|| speaker.map_or_else(|| "Hello!".to_owned(), |name| format!("Hello, {name}!")));
    (say::abilities(tools, greeting), Vec::new())
}

/// Returns the arguments of the calls of one tool: one call for each person, where it is about one.
fn arguments(tool: &OfferedTool, source: Source<'_>) -> Result<Vec<Map<String, Json>>, String> {
    let parameters = schema::parameters(&tool.schema, &tool.schema);
    let about_people = parameters.iter().filter(|parameter| is_person(parameter)).count();
    let people = if about_people == 1 { person::addressed(source.words) } else { Vec::new() };
    if people.len() < 2 {
        return Ok(vec![fill(&tool.schema, source)?]);
    }
    people.iter().map(|person| fill(&tool.schema, Source { person: Some(person), ..source })).collect()
}

/// Returns the part of a text that words span.
fn text_of<'t>(text: &'t str, words: &[Word<'_>]) -> &'t str {
    let (Some(first), Some(last)) = (words.first(), words.last()) else { return "" };
    text.get(first.start..last.end).unwrap_or_default()
}

/// "What is my name?"
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
        Message::User { text } => count(text),
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
