//! Questions that a tool asks while a call is in progress.

use super::BoxFuture;
use patter_core::message::conversation::{Conversation, Message, Usage};
use patter_core::message::request::FinishReason;
use serde_json::{Map, Value as Json};
use std::sync::Arc;

/// A question for the person who watches a call. All texts are foreign: they come from a tool or a server.
///
/// A tool asks with [`ToolContext::ask`](super::ToolContext::ask).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// Who asks, for people: "the tool `deploy`", "the MCP server `files`".
    pub asker: String,
    /// The name, which is the same if the question is asked again.
    pub name: String,
    /// What it says.
    pub message: String,
    /// What it asks for.
    pub kind: QuestionKind,
}

/// What a question asks for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum QuestionKind {
    /// The values of some fields.
    Form(Vec<FormField>),
    /// To open a page, where the person enters what the program must not see.
    Url(String),
    /// To say when what the pages before asked for is done, so that the call can be made again.
    Done,
    /// To call the agent's model with a prompt of the server.
    Sampling {
        /// The maximum number of tokens of the reply.
        max_tokens: u64,
    },
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FormField {
    /// The name.
    pub name: String,
    /// The name for people, if it differs.
    pub title: Option<String>,
    /// What to enter.
    pub description: Option<String>,
    /// The possible values.
    pub kind: FieldKind,
    /// Whether a value is required.
    pub required: bool,
    /// The value if none is entered.
    pub default: Option<Json>,
}

/// The possible values of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    /// A text, with a minimum and a maximum length.
    Text {
        /// The minimum number of characters.
        min: u64,
        /// The maximum number of characters.
        max: u64,
    },
    /// A number.
    Number {
        /// Whether it must be whole.
        is_integer: bool,
        /// The minimum.
        min: f64,
        /// The maximum.
        max: f64,
    },
    /// Yes or no.
    Boolean,
    /// One of some values, or several of them: each with a name for people.
    Choice {
        /// The values with their names.
        options: Vec<(String, String)>,
        /// Whether several may be chosen.
        is_multiple: bool,
    },
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The person agrees. The values of a form; empty for other questions.
    Accept(Map<String, Json>),
    /// The person does not agree.
    Decline,
    /// There is no answer.
    Cancel,
}

impl Question {
    /// Creates a question for the values of some fields.
    pub fn form(name: impl Into<String>, message: impl Into<String>, fields: Vec<FormField>) -> Self {
        let kind = QuestionKind::Form(fields);
        Self { asker: "a tool".to_owned(), name: name.into(), message: message.into(), kind }
    }

    pub(crate) fn of_server(server: &str, message: String, kind: QuestionKind) -> Self {
        let name = match &kind {
            QuestionKind::Form(_) => "input",
            QuestionKind::Url(_) => "page",
            QuestionKind::Done => "done",
            QuestionKind::Sampling { .. } => "sampling",
        };
        Self { asker: format!("the MCP server `{server}`"), name: name.to_owned(), message, kind }
    }
}

impl FormField {
    /// Returns the value that a person entered as text, or nothing if they left it out. The error says what is expected.
    ///
    /// ```
    /// # use patter::tool::{FieldKind, FormField};
    /// # let read = |kind: FieldKind, text: &str| FormField::new("field", kind).read(text);
    /// assert_eq!(read(FieldKind::Boolean, "yes").unwrap(), Some(true.into()));
    /// let number = FieldKind::Number { is_integer: true, min: 1.0, max: 9.0 };
    /// assert_eq!(read(number.clone(), " 7 ").unwrap(), Some(7.into()));
    /// assert_eq!(read(number, "12").unwrap_err(), "enter a whole number from 1 to 9");
    /// ```
    pub fn read(&self, text: &str) -> Result<Option<Json>, String> {
        let text = text.trim();
        if text.is_empty() {
            return match &self.default {
                None if self.required => Err("a value is required".to_owned()),
                default => Ok(default.clone()),
            };
        }
        self.kind.read(text).map(Some).ok_or_else(|| format!("enter {}", self.kind.expected()))
    }

    /// Creates a field that is optional and has no default.
    pub fn new(name: impl Into<String>, kind: FieldKind) -> Self {
        Self { name: name.into(), title: None, description: None, kind, required: false, default: None }
    }

    /// Requires a value.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Sets the value if none is entered.
    #[must_use]
    pub fn with_default(mut self, value: impl Into<Json>) -> Self {
        self.default = Some(value.into());
        self
    }

    /// Returns whether a value, if it is given, is a possible one.
    ///
    /// ```
    /// # use patter::tool::{FieldKind, FormField};
    /// let field = FormField::new("age", FieldKind::Number { is_integer: true, min: 0.0, max: 150.0 }).required();
    /// assert!(field.accepts(Some(&36.into())));
    /// assert!(!field.accepts(Some(&"36".into())) && !field.accepts(None));
    /// ```
    pub fn accepts(&self, value: Option<&Json>) -> bool {
        value.map_or(!self.required || self.default.is_some(), |value| self.kind.accepts(value))
    }
}

impl FieldKind {
    /// A text of any length.
    pub const TEXT: Self = FieldKind::Text { min: 0, max: u64::MAX };
    /// A number.
    pub const NUMBER: Self = FieldKind::Number { is_integer: false, min: f64::NEG_INFINITY, max: f64::INFINITY };
    /// A whole number.
    pub const INTEGER: Self = FieldKind::Number { is_integer: true, min: f64::NEG_INFINITY, max: f64::INFINITY };

    /// Returns whether a value is a possible one.
    fn accepts(&self, value: &Json) -> bool {
        match self {
            FieldKind::Text { min, max } => {
                value.as_str().is_some_and(|text| (*min..=*max).contains(&(text.chars().count() as u64)))
            }
            FieldKind::Number { is_integer, min, max } => {
                let is_whole = |number: f64| !is_integer || number.fract() == 0.0;
                value.as_f64().is_some_and(|number| (*min..=*max).contains(&number) && is_whole(number))
            }
            FieldKind::Boolean => value.is_boolean(),
            FieldKind::Choice { options, is_multiple } => {
                let is_option =
                    |value: &Json| value.as_str().is_some_and(|text| options.iter().any(|(one, _)| one == text));
                match is_multiple {
                    true => value.as_array().is_some_and(|values| values.iter().all(is_option)),
                    false => is_option(value),
                }
            }
        }
    }

    /// Returns what can be entered, in words.
    pub fn expected(&self) -> String {
        match self {
            FieldKind::Text { min: 0, max: u64::MAX } => "a text".to_owned(),
            FieldKind::Text { min, max: u64::MAX } => format!("at least {min} characters"),
            FieldKind::Text { min, max } => format!("{min} to {max} characters"),
            FieldKind::Number { is_integer, min, max } => {
                let kind = if *is_integer { "a whole number" } else { "a number" };
                match (min.is_finite(), max.is_finite()) {
                    (true, true) => format!("{kind} from {min} to {max}"),
                    (true, false) => format!("{kind} from {min}"),
                    (false, true) => format!("{kind} up to {max}"),
                    (false, false) => kind.to_owned(),
                }
            }
            FieldKind::Boolean => "yes or no".to_owned(),
            FieldKind::Choice { options, is_multiple } => {
                let names: Vec<_> = options.iter().map(|(value, _)| value.as_str()).collect();
                let kind = if *is_multiple { "some of" } else { "one of" };
                format!("{kind} {}", names.join(", "))
            }
        }
    }

    fn read(&self, text: &str) -> Option<Json> {
        match self {
            FieldKind::Text { min, max } => {
                let length = text.chars().count() as u64;
                (*min..=*max).contains(&length).then(|| text.into())
            }
            FieldKind::Number { is_integer, min, max } => {
                let number: f64 = text.parse().ok().filter(|number| (*min..=*max).contains(number))?;
                match is_integer {
                    true => text.parse::<i64>().ok().map(Json::from),
                    false => serde_json::Number::from_f64(number).map(Json::Number),
                }
            }
            FieldKind::Boolean => match text.to_lowercase().as_str() {
                "y" | "yes" | "true" => Some(true.into()),
                "n" | "no" | "false" => Some(false.into()),
                _ => None,
            },
            FieldKind::Choice { options, is_multiple } => {
                let find = |text: &str| {
                    let text = text.trim();
                    let found = options.iter().find(|(value, name)| value == text || name.eq_ignore_ascii_case(text));
                    found.map(|(value, _)| Json::from(value.as_str()))
                };
                match is_multiple {
                    true => text.split(',').map(find).collect::<Option<Vec<_>>>().map(Json::Array),
                    false => find(text),
                }
            }
        }
    }
}

/// A prompt for the model of the agent whose call is in progress, or of the client that makes the call.
///
/// A tool sends it with [`ToolContext::sample`](super::ToolContext::sample).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SamplingRequest {
    /// The instruction.
    pub instruction: String,
    /// The conversation.
    pub messages: Conversation,
    /// The maximum number of tokens of the reply.
    pub max_tokens: u64,
    /// The randomness of the reply.
    pub temperature: Option<f64>,
    /// Texts at which the reply stops.
    pub stop: Vec<String>,
}

/// The reply of a model to a prompt.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SampledReply {
    /// The text.
    pub text: String,
    /// The model.
    pub model: String,
    /// Why the model stopped.
    pub finish: FinishReason,
    /// The tokens that it used.
    pub usage: Usage,
}

impl SamplingRequest {
    /// Creates a prompt that is one message.
    pub fn new(text: impl Into<String>, max_tokens: u64) -> Self {
        let messages = vec![Message::user(text)].into();
        Self { instruction: String::new(), messages, max_tokens, temperature: None, stop: Vec::new() }
    }
}

impl SampledReply {
    /// Creates a complete reply, of which the tokens are not known.
    pub fn new(text: impl Into<String>, model: impl Into<String>) -> Self {
        Self { text: text.into(), model: model.into(), finish: FinishReason::Stop, usage: Usage::default() }
    }
}

/// What answers the questions of a tool.
pub trait Respondent: Send + Sync {
    /// Asks the person who watches the call. Where there is nobody, the answer is [`Answer::Decline`].
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer>;

    /// Calls the model of the agent, after the person agreed to `question`. The error says why it is not called.
    fn sample<'a>(
        &'a self,
        question: &'a Question,
        request: SamplingRequest,
    ) -> BoxFuture<'a, Result<SampledReply, String>> {
        let _ = (question, request);
        Box::pin(async { Err("there is no agent whose model could be called".to_owned()) })
    }
}

/// Answers the questions of a tool. It is part of the [`SharedState`](super::SharedState) of a call.
#[derive(Clone)]
pub struct CallHost(pub Arc<dyn Respondent>);
