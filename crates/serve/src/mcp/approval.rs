//! Approvals, and the questions of workflows, as questions to the person who uses the client.

use super::question::{Capability, PATIENCE};
use crate::host::{Answer, Host};
use crate::token::{Access, Scope};
use patter::session::CallAnswer;
use patter::store::SessionId;
use patter_core::message::conversation::ToolOutcome;
use patter_core::name::FullName;
use patter_core::serve::{ApiError, TurnEnd, Waiting};
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequests, InputResponses,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// How often a question is asked whose answers have another type.
const MAX_ATTEMPTS: usize = 3;
/// The field of a form with one answer.
const ANSWER: &str = "answer";

/// Returns whether the client can ask its user.
pub(super) fn supports_questions(context: &RequestContext<RoleServer>) -> bool {
    Capability::Form.is_declared(context)
}

/// What the client returned about the calls that wait.
pub(super) enum Answered {
    Answers(Vec<Answer>),
    /// These were answered with something else than what was asked for.
    AskAgain(InputRequests),
    /// These were not answered.
    Declined(Vec<Waiting>),
}

/// Returns the calls that the user of a client may decide about or answer.
pub(super) fn askable<'e>(end: &'e TurnEnd, access: &Access) -> Vec<&'e Waiting> {
    let may_approve = access.require(Scope::Approve).is_ok();
    end.calls_for_people().filter(|call| may_approve || call.question.is_some()).collect()
}

/// Returns the questions about calls that wait, by the key of each call.
pub(super) fn requests(calls: &[&Waiting]) -> InputRequests {
    calls.iter().map(|call| request(call, None)).collect()
}

/// Returns the answers of the client to those questions.
pub(super) async fn answers_of(
    host: &Host,
    access: &Access,
    session: &SessionId,
    responses: InputResponses,
) -> Result<Answered, ApiError> {
    host.find_session(access, session).await?;
    let (_, log) = host.read_session(session).await?;
    let mut answers = Vec::new();
    let mut wrong = InputRequests::new();
    let mut declined = Vec::new();
    for call in Waiting::all(&log) {
        let response = responses.get(&key(&call));
        let result = response.and_then(|response| serde_json::from_value::<ElicitResult>(response.clone()).ok());
        let Some(result) = result else { continue };
        if call.because.is_some() {
            access.require(Scope::Approve)?;
        }
        match answer(&call, &result) {
            Ok(Some(answer)) => answers.push(answer),
            Ok(None) => declined.push(call),
            Err(problem) => wrong.extend([request(&call, Some(&problem))]),
        }
    }
    Ok(match (wrong.is_empty(), answers.is_empty() && !declined.is_empty()) {
        (false, _) => Answered::AskAgain(wrong),
        (true, true) => Answered::Declined(declined),
        (true, false) => Answered::Answers(answers),
    })
}

/// Asks the client about each call, one after the other. Without an approval a call is refused; a question that is not
/// answered waits.
pub(super) async fn ask(context: &RequestContext<RoleServer>, calls: &[&Waiting]) -> Vec<Answer> {
    let mut answers = Vec::new();
    for call in calls {
        let mut problem = None;
        for _ in 0..MAX_ATTEMPTS {
            match answer(call, &elicit(context, question(call, problem.as_deref())).await) {
                Ok(answer) => {
                    answers.extend(answer);
                    break;
                }
                Err(wrong) => problem = Some(wrong),
            }
        }
    }
    answers
}

/// Asks the client about a call that it makes itself, and returns whether its user approves it.
pub(super) async fn ask_one(context: &RequestContext<RoleServer>, question: ElicitRequestParams) -> bool {
    approves(&elicit(context, question).await)
}

/// Returns whether a response to such a question approves the call.
pub(super) fn is_approved(response: &Json) -> bool {
    serde_json::from_value::<ElicitResult>(response.clone()).is_ok_and(|result| approves(&result))
}

/// Returns the question about a call that the client makes itself.
pub(super) fn library_question(tool: &FullName, arguments: &Json, because: &str) -> ElicitRequestParams {
    approval_form(format!("Call `{tool}` with {arguments}? ({because})"))
}

async fn elicit(context: &RequestContext<RoleServer>, question: ElicitRequestParams) -> ElicitResult {
    let asked = context.peer.create_elicitation_with_timeout(question, Some(PATIENCE)).await;
    asked.unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel))
}

fn request(call: &Waiting, problem: Option<&str>) -> (String, InputRequest) {
    (key(call), InputRequest::Elicitation(ElicitRequest::new(question(call, problem))))
}

/// Returns the question about a call. `problem` says what was wrong with the answer before.
fn question(call: &Waiting, problem: Option<&str>) -> ElicitRequestParams {
    if let Some(question) = &call.question {
        let message = match problem {
            Some(problem) => format!("{question}\n\nThe answer was not accepted: {problem}"),
            None => question.clone(),
        };
        return form(message, AnswerForm::new(call).schema);
    }
    let because = call.because.as_deref().unwrap_or_default();
    let message =
        format!("The agent `{}` wants to call `{}` with {} ({because})", call.agent, call.tool, call.arguments);
    approval_form(message)
}

fn approval_form(message: String) -> ElicitRequestParams {
    let schema = ElicitationSchema::builder().required_bool("approve").build();
    form(message, schema.unwrap_or_else(|_| ElicitationSchema::new(BTreeMap::new())))
}

fn form(message: String, requested_schema: ElicitationSchema) -> ElicitRequestParams {
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }
}

/// The form for the answer to a question.
struct AnswerForm {
    schema: ElicitationSchema,
    /// Whether the answer is the whole form, and not its only field.
    is_whole: bool,
}

impl AnswerForm {
    /// Returns the form for the type of an answer. What a form cannot have is a text in JSON.
    fn new(call: &Waiting) -> Self {
        let read = |schema: Json| serde_json::from_value::<ElicitationSchema>(schema).ok();
        let whole = call
            .returns
            .clone()
            .filter(|schema| schema.get("type").is_some_and(|kind| kind == "object"))
            .and_then(read);
        if let Some(schema) = whole.filter(|schema| !schema.properties.is_empty()) {
            return Self { schema, is_whole: true };
        }
        let with_field =
            |field: &Json| read(json!({"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]}));
        let text = json!({"type": "string", "title": "Answer"});
        let schema = call.returns.as_ref().and_then(with_field).or_else(|| with_field(&text));
        Self { schema: schema.unwrap_or_else(|| ElicitationSchema::new(BTreeMap::new())), is_whole: false }
    }
}

/// Returns the answer about a call; `None` if a question was not answered. An answer of another type is an error.
fn answer(call: &Waiting, result: &ElicitResult) -> Result<Option<Answer>, String> {
    let answer = match (&call.question, approves(result)) {
        (Some(_), _) => {
            if result.action != ElicitationAction::Accept {
                return Ok(None);
            }
            let content = result.content.clone().unwrap_or_default();
            let field = || content.get(ANSWER).cloned().ok_or_else(|| format!("`{ANSWER}` is missing"));
            let value = if AnswerForm::new(call).is_whole { content } else { field()? };
            call.check_answer(&value)?;
            CallAnswer::Result(ToolOutcome::Value { value })
        }
        (None, true) => CallAnswer::Approve,
        (None, false) => CallAnswer::Refuse("the user did not approve the call".to_owned()),
    };
    Ok(Some(Answer::to(call, answer)))
}

fn approves(result: &ElicitResult) -> bool {
    let approves = result.content.as_ref().and_then(|content| content.get("approve")).and_then(Json::as_bool);
    result.action == ElicitationAction::Accept && approves == Some(true)
}

/// Returns what identifies a call among those that wait.
fn key(call: &Waiting) -> String {
    call.run.iter().chain([&call.call_id]).map(String::as_str).collect::<Vec<_>>().join("/")
}
