//! Questions of tools, as requests to the client, and its answers.
//!
//! The person who uses the client answers questions, and the model of the client replies to prompts.

use patter::tool::{
    Answer, BoxFuture, FieldKind, FormField, Question, QuestionKind, Respondent, SampledReply, SamplingRequest,
};
use patter_core::message::conversation::Message;
use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value as Json, json};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

#[expect(deprecated, reason = "current clients offer sampling")]
use rmcp::model::{CreateMessageRequest, CreateMessageRequestParams};

/// How long a person may take to answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// What a tool does during a call.
pub(super) enum CallEvent {
    Progress { fraction: Option<f64>, message: String },
    Asked(Asked),
}

/// A question that waits for its answer.
pub(super) struct Asked {
    pub(super) question: Question,
    pub(super) reply: Reply,
}

/// Where the answer goes.
pub(super) enum Reply {
    Person(oneshot::Sender<Answer>),
    Model(Box<SamplingRequest>, oneshot::Sender<Result<SampledReply, String>>),
}

/// What a client must support to answer a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Capability {
    Form,
    Url,
    Sampling,
}

impl Capability {
    /// Returns whether the client of a request has it.
    pub(super) fn is_declared(self, context: &RequestContext<RoleServer>) -> bool {
        let Some(declared) = context.client_capabilities() else { return false };
        match (self, declared.elicitation) {
            (Capability::Sampling, _) => declared.sampling.is_some(),
            (_, None) => false,
            // Without details, forms are supported.
            (Capability::Form, Some(elicitation)) => elicitation.form.is_some() || elicitation.url.is_none(),
            (Capability::Url, Some(elicitation)) => elicitation.url.is_some(),
        }
    }

    /// Returns it as the capabilities that the client lacks.
    pub(super) fn required(self) -> ClientCapabilities {
        let required = match self {
            Capability::Form => json!({"elicitation": {"form": {}}}),
            Capability::Url => json!({"elicitation": {"url": {}}}),
            Capability::Sampling => json!({"sampling": {}}),
        };
        serde_json::from_value(required).unwrap_or_default()
    }
}

impl Asked {
    pub(super) fn capability(&self) -> Capability {
        match (&self.reply, &self.question.kind) {
            (Reply::Model(..), _) | (_, QuestionKind::Sampling { .. }) => Capability::Sampling,
            (_, QuestionKind::Url(_)) => Capability::Url,
            _ => Capability::Form,
        }
    }

    /// Returns the request to the client; `None` if it cannot be put into words.
    pub(super) fn request(&self) -> Option<InputRequest> {
        match &self.reply {
            Reply::Person(_) => elicitation(&self.question).map(|params| {
                let request = ElicitRequest::new(params);
                InputRequest::Elicitation(request)
            }),
            Reply::Model(request, _) => sampling(request).map(|params| {
                #[expect(deprecated, reason = "current clients offer sampling")]
                let request = CreateMessageRequest::new(params);
                InputRequest::CreateMessage(request)
            }),
        }
    }

    /// Asks the client of the older protocol, and passes on its answer.
    pub(super) async fn ask(self, context: &RequestContext<RoleServer>) {
        let response = match self.request() {
            Some(InputRequest::Elicitation(request)) => {
                let asked = context.peer.create_elicitation_with_timeout(request.params, Some(PATIENCE)).await;
                asked.ok().and_then(|result| serde_json::to_value(result).ok())
            }
            #[expect(deprecated, reason = "current clients offer sampling")]
            Some(InputRequest::CreateMessage(request)) => {
                let asked = tokio::time::timeout(PATIENCE, context.peer.create_message(request.params)).await;
                asked.ok().and_then(Result::ok).and_then(|result| serde_json::to_value(result).ok())
            }
            _ => None,
        };
        // What is not an answer is none.
        if let Err(asked) = self.answer(response.as_ref()) {
            asked.refuse();
        }
    }

    /// Passes on the answer of the client, or returns the question if it does not answer it.
    pub(super) fn answer(self, response: Option<&Json>) -> Result<(), Self> {
        let Some(response) = response else { return Err(self) };
        match (&self.reply, read_reply(response)) {
            (Reply::Model(..), None) => return Err(self),
            (Reply::Person(_), _) => {}
            (Reply::Model(..), Some(reply)) => {
                if let Reply::Model(_, sender) = self.reply {
                    let _ = sender.send(Ok(reply));
                }
                return Ok(());
            }
        }
        let Some(answer) = read_answer(&self.question, response) else { return Err(self) };
        if let Reply::Person(sender) = self.reply {
            let _ = sender.send(answer);
        }
        Ok(())
    }

    /// Answers for a client that cannot be asked.
    pub(super) fn refuse(self) {
        match self.reply {
            Reply::Person(sender) => drop(sender.send(Answer::Decline)),
            Reply::Model(_, sender) => drop(sender.send(Err("the client did not call its model".to_owned()))),
        }
    }
}

/// Passes the questions of a tool on to whoever follows the call.
pub(super) struct ForwardingRespondent(pub(super) mpsc::Sender<CallEvent>);

impl Respondent for ForwardingRespondent {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let (sender, answer) = oneshot::channel();
            let asked = Asked { question: question.clone(), reply: Reply::Person(sender) };
            let _ = self.0.send(CallEvent::Asked(asked)).await;
            answer.await.unwrap_or(Answer::Cancel)
        })
    }

    fn sample<'a>(
        &'a self,
        question: &'a Question,
        request: SamplingRequest,
    ) -> BoxFuture<'a, Result<SampledReply, String>> {
        Box::pin(async move {
            let (sender, reply) = oneshot::channel();
            let asked = Asked { question: question.clone(), reply: Reply::Model(Box::new(request), sender) };
            let _ = self.0.send(CallEvent::Asked(asked)).await;
            reply.await.unwrap_or_else(|_| Err("the client did not answer".to_owned()))
        })
    }
}

/// Returns a question as a request for the input of a person.
fn elicitation(question: &Question) -> Option<ElicitRequestParams> {
    let message = match question.message.trim() {
        "" => format!("{} asks for input", question.asker),
        message => message.to_owned(),
    };
    let params = match &question.kind {
        QuestionKind::Form(fields) => json!({"mode": "form", "message": message, "requestedSchema": form(fields)}),
        QuestionKind::Url(url) => {
            json!({"mode": "url", "message": message, "url": url, "elicitationId": question.name})
        }
        QuestionKind::Done => {
            let message = "Answer when you are done on the page that was opened, so that the call is made again.";
            json!({"mode": "form", "message": message, "requestedSchema": form(&[])})
        }
        _ => return None,
    };
    serde_json::from_value(params).ok()
}

/// Returns the schema of a form.
fn form(fields: &[FormField]) -> Json {
    let required: Vec<_> = fields.iter().filter(|field| field.required).map(|field| field.name.as_str()).collect();
    let properties: Map<_, _> = fields.iter().map(|field| (field.name.clone(), property(field))).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if let (Some(schema), false) = (schema.as_object_mut(), required.is_empty()) {
        schema.insert("required".to_owned(), required.into());
    }
    schema
}

fn property(field: &FormField) -> Json {
    let mut schema = match &field.kind {
        FieldKind::Text { min, max } => {
            let mut schema = json!({"type": "string"});
            put(&mut schema, "minLength", (*min > 0).then(|| (*min).into()));
            put(&mut schema, "maxLength", (*max < u64::MAX).then(|| (*max).into()));
            schema
        }
        FieldKind::Number { is_integer, min, max } => {
            let mut schema = json!({"type": if *is_integer { "integer" } else { "number" }});
            put(&mut schema, "minimum", min.is_finite().then(|| (*min).into()));
            put(&mut schema, "maximum", max.is_finite().then(|| (*max).into()));
            schema
        }
        FieldKind::Boolean => json!({"type": "boolean"}),
        FieldKind::Choice { options, is_multiple } => {
            let values: Vec<_> = options.iter().map(|(value, _)| value.as_str()).collect();
            let titled: Vec<_> = options.iter().map(|(value, title)| json!({"const": value, "title": title})).collect();
            let has_titles = options.iter().any(|(value, title)| value != title);
            match (is_multiple, has_titles) {
                (false, false) => json!({"type": "string", "enum": values}),
                (false, true) => json!({"type": "string", "oneOf": titled}),
                (true, false) => json!({"type": "array", "items": {"type": "string", "enum": values}}),
                (true, true) => json!({"type": "array", "items": {"anyOf": titled}}),
            }
        }
    };
    put(&mut schema, "title", field.title.as_deref().map(Json::from));
    put(&mut schema, "description", field.description.as_deref().map(Json::from));
    put(&mut schema, "default", field.default.clone());
    schema
}

fn put(schema: &mut Json, key: &str, value: Option<Json>) {
    if let (Some(schema), Some(value)) = (schema.as_object_mut(), value) {
        schema.insert(key.to_owned(), value);
    }
}

/// Returns a prompt as a request to the model of the client.
#[expect(deprecated, reason = "current clients offer sampling")]
fn sampling(request: &SamplingRequest) -> Option<CreateMessageRequestParams> {
    let message = |message: &Message| {
        let (role, text) = match message {
            Message::User { text, .. } => ("user", text),
            Message::Assistant { text, .. } => ("assistant", text),
            Message::Tool { .. } | Message::Compacted { .. } => return None,
        };
        Some(json!({"role": role, "content": {"type": "text", "text": text}}))
    };
    let messages: Vec<_> = request.messages.iter().filter_map(message).collect();
    let max_tokens = request.max_tokens.min(u64::from(u32::MAX));
    let mut params = json!({"messages": messages, "maxTokens": max_tokens});
    let instruction = Some(request.instruction.as_str()).filter(|text| !text.is_empty());
    put(&mut params, "systemPrompt", instruction.map(Json::from));
    put(&mut params, "temperature", request.temperature.map(Json::from));
    put(&mut params, "stopSequences", (!request.stop.is_empty()).then(|| request.stop.clone().into()));
    serde_json::from_value(params).ok()
}

/// Reads the answer of a person. Values that the form does not accept are no answer.
fn read_answer(question: &Question, response: &Json) -> Option<Answer> {
    let result = serde_json::from_value::<ElicitResult>(response.clone()).ok()?;
    let values = match result.content {
        Some(Json::Object(values)) => values,
        _ => Map::new(),
    };
    match (result.action, &question.kind) {
        (ElicitationAction::Accept, QuestionKind::Form(fields)) => {
            fields.iter().all(|field| field.accepts(values.get(&field.name))).then_some(Answer::Accept(values))
        }
        (ElicitationAction::Accept, _) => Some(Answer::Accept(values)),
        (ElicitationAction::Decline, _) => Some(Answer::Decline),
        (ElicitationAction::Cancel, _) => Some(Answer::Cancel),
        _ => None,
    }
}

/// Reads the reply of a model.
fn read_reply(response: &Json) -> Option<SampledReply> {
    let content = response.get("content")?;
    let blocks = content.as_array().map_or(std::slice::from_ref(content), Vec::as_slice);
    let texts: Vec<_> = blocks.iter().filter_map(|block| block.get("text").and_then(Json::as_str)).collect();
    let model = response.get("model").and_then(Json::as_str).unwrap_or_default();
    (!texts.is_empty()).then(|| SampledReply::new(texts.join("\n"), model))
}
