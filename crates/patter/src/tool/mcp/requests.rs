//! Requests that a server makes while a call is in progress: for the input of a person, and for a reply of the model.
//!
//! Both are off unless the configuration of the server allows them, and are refused where nobody can be asked.

use super::auth::safe_page;
use super::error::MAX_MESSAGE_CHARS;
use super::settings::ServerSettings;
use crate::tool::redact::Redactor;
use crate::tool::wait::WaitClock;
use crate::tool::{Answer, CallHost, FieldKind, FormField, Question, QuestionKind, SamplingRequest};
use patter_core::message::conversation::Message;
use patter_core::message::request::FinishReason;
use patter_core::text::truncate;
use rmcp::model::{
    ClientCapabilities, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, ErrorCode,
    FormElicitationCapability, UrlElicitationCapability,
};
use rmcp::{ErrorData, ServiceError};
use serde_json::{Map, Value as Json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The time that a person has for an answer.
pub(super) const PERSON_TIMEOUT: Duration = Duration::from_mins(10);
/// The number of requests of a server at a time.
const MAX_REQUESTS: usize = 4;
/// The number of fields of a form.
const MAX_FIELDS: usize = 50;
/// The number of options of a field.
const MAX_OPTIONS: usize = 200;
/// The number of tokens that a reply may have at most.
const MAX_TOKENS: u64 = 16 * 1024;
/// The number of pages that a call may require a person to open.
const MAX_PAGES: usize = 5;
/// The error code for a call that requires a person to open pages first.
const PAGES_REQUIRED: i32 = -32042;
/// The error code for a request that a person refused.
const REFUSED: i32 = -1;

/// What a server may ask for, and the time that its questions take.
#[derive(Clone)]
pub(super) struct ServerRequests {
    server: Arc<str>,
    elicitation: bool,
    sampling: bool,
    redactor: Arc<Redactor>,
    slots: Arc<Semaphore>,
    clock: WaitClock,
}

/// A page that a person must open before a call can succeed.
pub(super) struct RequiredPage {
    /// What the server says about it.
    message: String,
    pub(super) url: String,
}

impl ServerRequests {
    pub(super) fn new(settings: &ServerSettings) -> Self {
        Self {
            server: Arc::clone(&settings.name),
            elicitation: settings.elicitation,
            sampling: settings.sampling,
            redactor: Arc::clone(&settings.redactor),
            slots: Arc::new(Semaphore::new(MAX_REQUESTS)),
            clock: WaitClock::default(),
        }
    }

    pub(super) fn clock(&self) -> &WaitClock {
        &self.clock
    }

    /// Adds what is allowed to the capabilities of the client.
    pub(super) fn add_capabilities(&self, capabilities: &mut ClientCapabilities) {
        if self.elicitation {
            let elicitation = ElicitationCapability::new().with_form(FormElicitationCapability::default());
            capabilities.elicitation = Some(elicitation.with_url(UrlElicitationCapability::default()));
        }
        if self.sampling {
            capabilities.sampling = Some(rmcp::model::SamplingCapability::default());
        }
    }

    /// Asks a person. Without a call in progress there is no host, and nobody to ask.
    pub(super) async fn elicit(
        &self,
        host: Option<CallHost>,
        params: ElicitRequestParams,
    ) -> Result<ElicitResult, ErrorData> {
        let declined = Ok(ElicitResult::new(ElicitationAction::Decline));
        let (Some(host), true) = (host, self.elicitation) else { return declined };
        let question = match params {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(requested_schema).unwrap_or_default();
                let fields = form(&schema).ok_or_else(|| invalid("the form has a field that cannot be asked for"))?;
                self.question(&message, QuestionKind::Form(fields))
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                let url = safe_page(&url).ok_or_else(|| invalid("the URL is not `https`"))?;
                self.question(&message, QuestionKind::Url(url))
            }
            _ => return declined,
        };
        let Ok(_slot) = self.slots.try_acquire() else { return declined };
        let _wait = self.clock.wait();
        let answer = timeout(PERSON_TIMEOUT, host.0.ask(&question)).await.unwrap_or(Answer::Cancel);
        Ok(match (answer, question.kind) {
            (Answer::Accept(values), QuestionKind::Form(fields)) => {
                let values = with_defaults(&fields, values);
                ElicitResult::new(ElicitationAction::Accept).with_content(Json::Object(values))
            }
            (Answer::Accept(_), _) => ElicitResult::new(ElicitationAction::Accept),
            (Answer::Decline, _) => ElicitResult::new(ElicitationAction::Decline),
            (Answer::Cancel, _) => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    /// Asks a person to open the pages that a call requires, and to say when they are done. Returns whether they are.
    pub(super) async fn open_pages(&self, host: Option<CallHost>, pages: &[RequiredPage]) -> bool {
        let (Some(host), true) = (host, self.elicitation && !pages.is_empty()) else { return false };
        let Ok(_slot) = self.slots.try_acquire() else { return false };
        let _wait = self.clock.wait();
        let pages = pages.iter().map(|page| self.question(&page.message, QuestionKind::Url(page.url.clone())));
        for question in pages.chain([self.question("", QuestionKind::Done)]) {
            let answer = timeout(PERSON_TIMEOUT, host.0.ask(&question)).await;
            if !matches!(answer, Ok(Answer::Accept(_))) {
                return false;
            }
        }
        true
    }

    /// Calls the model of the agent, if a person agrees.
    #[expect(deprecated, reason = "current servers ask for sampling")]
    pub(super) async fn sample(
        &self,
        host: Option<CallHost>,
        params: rmcp::model::CreateMessageRequestParams,
    ) -> Result<rmcp::model::CreateMessageResult, ErrorData> {
        use rmcp::model::{CreateMessageResult, SamplingMessage};
        let refused = |reason: &str| ErrorData::new(ErrorCode(REFUSED), reason.to_owned(), None);
        if !self.sampling {
            return Err(ErrorData::method_not_found::<rmcp::model::CreateMessageRequestMethod>());
        }
        let Some(host) = host else { return Err(refused("no call is in progress")) };
        if params.tools.is_some_and(|tools| !tools.is_empty()) {
            return Err(invalid("sampling with tools is not supported"));
        }
        let max_tokens = u64::from(params.max_tokens).clamp(1, MAX_TOKENS);
        let instruction = params.system_prompt.unwrap_or_default();
        let mut shown = instruction.clone();
        let mut messages = Vec::new();
        for message in &params.messages {
            let message = serde_json::to_value(message).unwrap_or_default();
            let (is_user, text) = plain_text(&message).ok_or_else(|| invalid("only text can be sampled from"))?;
            shown.push_str(&format!("\n{}: {text}", if is_user { "user" } else { "assistant" }));
            messages.push(if is_user { Message::user(text) } else { Message::assistant(text, Vec::new()) });
        }
        if !matches!(messages.last(), Some(Message::User { .. })) {
            return Err(invalid("the last message is not from the user"));
        }
        let question = self.question(shown.trim(), QuestionKind::Sampling { max_tokens });
        let Ok(_slot) = self.slots.try_acquire() else { return Err(refused("too many requests at a time")) };
        let _wait = self.clock.wait();
        let temperature = params.temperature.map(f64::from);
        let stop = params.stop_sequences.unwrap_or_default();
        let request = SamplingRequest { instruction, messages: messages.into(), max_tokens, temperature, stop };
        let reply = timeout(PERSON_TIMEOUT, host.0.sample(&question, request)).await;
        let reply = reply.map_err(|_| refused("nobody answered in time"))?.map_err(|reason| refused(&reason))?;
        let reason = match reply.finish {
            FinishReason::Length => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
            _ => CreateMessageResult::STOP_REASON_END_TURN,
        };
        let message = SamplingMessage::assistant_text(reply.text);
        Ok(CreateMessageResult::new(message, reply.model).with_stop_reason(reason))
    }

    fn question(&self, message: &str, kind: QuestionKind) -> Question {
        Question::of_server(&self.server, truncate(&self.redactor.redact(message), MAX_MESSAGE_CHARS), kind)
    }
}

/// Returns the pages that a person must open before a call can succeed, if that is why it failed.
pub(super) fn required_pages(error: &ServiceError) -> Option<Vec<RequiredPage>> {
    let ServiceError::McpError(error) = error else { return None };
    if error.code != ErrorCode(PAGES_REQUIRED) {
        return None;
    }
    let listed = error.data.as_ref().and_then(|data| data.get("elicitations")).and_then(Json::as_array);
    let page = |page: &Json| {
        let text = |key: &str| page.get(key).and_then(Json::as_str);
        Some(RequiredPage { message: text("message").unwrap_or_default().to_owned(), url: safe_page(text("url")?)? })
    };
    Some(listed.into_iter().flatten().take(MAX_PAGES).filter_map(page).collect())
}

fn invalid(message: &str) -> ErrorData {
    ErrorData::invalid_params(message.to_owned(), None)
}

/// Returns whether a message is from the user, and its text, if it has nothing else.
fn plain_text(message: &Json) -> Option<(bool, String)> {
    let content = message.get("content")?;
    let blocks = content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice);
    let texts: Option<Vec<_>> = blocks.iter().map(|block| block.get("text").and_then(Json::as_str)).collect();
    Some((message.get("role")? == "user", texts?.join("\n")))
}

/// Returns the fields of a form, if each can be asked for.
fn form(schema: &Json) -> Option<Vec<FormField>> {
    let properties = schema.get("properties").and_then(Json::as_object)?;
    let required: Vec<_> =
        schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect();
    if properties.len() > MAX_FIELDS {
        return None;
    }
    let field = |(name, property): (&String, &Json)| {
        let text = |key: &str| property.get(key).and_then(Json::as_str).map(str::to_owned);
        let mut field = FormField::new(name.as_str(), field_kind(property)?);
        field.title = text("title");
        field.description = text("description");
        field.required = required.contains(&name.as_str());
        field.default = property.get("default").filter(|value| !value.is_null()).cloned();
        Some(field)
    };
    properties.iter().map(field).collect()
}

fn field_kind(property: &Json) -> Option<FieldKind> {
    let whole = |key: &str| property.get(key).and_then(Json::as_u64);
    let number = |key: &str| property.get(key).and_then(Json::as_f64);
    let kind = property.get("type").and_then(Json::as_str)?;
    match kind {
        "string" => Some(match options(property) {
            Some(options) => FieldKind::Choice { options, is_multiple: false },
            None => {
                FieldKind::Text { min: whole("minLength").unwrap_or(0), max: whole("maxLength").unwrap_or(u64::MAX) }
            }
        }),
        "number" | "integer" => Some(FieldKind::Number {
            is_integer: kind == "integer",
            min: number("minimum").unwrap_or(f64::NEG_INFINITY),
            max: number("maximum").unwrap_or(f64::INFINITY),
        }),
        "boolean" => Some(FieldKind::Boolean),
        "array" => options(property.get("items")?).map(|options| FieldKind::Choice { options, is_multiple: true }),
        _ => None,
    }
}

/// Returns the options of a choice with their names.
fn options(schema: &Json) -> Option<Vec<(String, String)>> {
    let list = |key: &str| schema.get(key).and_then(Json::as_array);
    let text = |object: &Json, key: &str| object.get(key).and_then(Json::as_str).map(str::to_owned);
    let options: Vec<_> = if let Some(values) = list("enum") {
        let names = list("enumNames");
        let name = |index: usize| names.and_then(|names| names.get(index)).and_then(Json::as_str);
        let values = values.iter().filter_map(Json::as_str).enumerate();
        values.map(|(index, value)| (value.to_owned(), name(index).unwrap_or(value).to_owned())).collect()
    } else {
        let titled = list("oneOf").or_else(|| list("anyOf"))?.iter();
        titled
            .filter_map(|option| {
                let value = text(option, "const")?;
                Some((value.clone(), text(option, "title").unwrap_or(value)))
            })
            .collect()
    };
    (!options.is_empty() && options.len() <= MAX_OPTIONS).then_some(options)
}

/// Completes the values of a form with the defaults of the fields that were left out.
fn with_defaults(fields: &[FormField], mut values: Map<String, Json>) -> Map<String, Json> {
    for field in fields {
        if let (Some(default), false) = (&field.default, values.contains_key(&field.name)) {
            values.insert(field.name.clone(), default.clone());
        }
    }
    values
}
