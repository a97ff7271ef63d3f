//! Approvals as questions to the person who uses the client.

use super::question::{Capability, PATIENCE};
use crate::host::{Answer, Host};
use patter::session::CallAnswer;
use patter::store::SessionId;
use patter_core::name::FullName;
use patter_core::serve::{ApiError, TurnEnd, Waiting};
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequests, InputResponses,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Returns whether the client can ask its user.
pub(super) fn supports_questions(context: &RequestContext<RoleServer>) -> bool {
    Capability::Form.is_declared(context)
}

/// Returns the questions about the calls that wait for approval, by the key of each call.
pub(super) fn approval_requests(end: &TurnEnd) -> InputRequests {
    let request = |call: &Waiting| (key(call), InputRequest::Elicitation(ElicitRequest::new(question(call))));
    end.approvals().map(request).collect()
}

/// Returns the answers of the client to those questions.
pub(super) async fn answers_of(
    host: &Host,
    session: &SessionId,
    responses: InputResponses,
) -> Result<Vec<Answer>, ApiError> {
    let (_, log) = host.read_session(session).await?;
    let calls = Waiting::all(&log);
    let answers = calls.into_iter().filter_map(|call| {
        let response = responses.get(&key(&call))?;
        let result = serde_json::from_value::<ElicitResult>(response.clone()).ok()?;
        Some(answer(call, &result))
    });
    Ok(answers.collect())
}

/// Asks the client about each call, one after the other. Without an answer a call is refused.
pub(super) async fn ask(context: &RequestContext<RoleServer>, end: &TurnEnd) -> Vec<Answer> {
    let mut answers = Vec::new();
    for call in end.approvals() {
        answers.push(answer(call.clone(), &elicit(context, question(call)).await));
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

fn question(call: &Waiting) -> ElicitRequestParams {
    let because = call.because.as_deref().unwrap_or_default();
    let message =
        format!("The agent `{}` wants to call `{}` with {} ({because})", call.agent, call.tool, call.arguments);
    approval_form(message)
}

fn approval_form(message: String) -> ElicitRequestParams {
    let schema = ElicitationSchema::builder().required_bool("approve").build();
    let schema = schema.unwrap_or_else(|_| ElicitationSchema::new(BTreeMap::new()));
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema: schema }
}

fn answer(call: Waiting, result: &ElicitResult) -> Answer {
    let answer = match approves(result) {
        true => CallAnswer::Approve,
        false => CallAnswer::Refuse("the user did not approve the call".to_owned()),
    };
    Answer { run: call.run, call_id: call.call_id, hash: Some(call.hash), answer }
}

fn approves(result: &ElicitResult) -> bool {
    let approves = result.content.as_ref().and_then(|content| content.get("approve")).and_then(Json::as_bool);
    result.action == ElicitationAction::Accept && approves == Some(true)
}

/// Returns what identifies a call among those that wait.
fn key(call: &Waiting) -> String {
    call.run.iter().chain([&call.call_id]).map(String::as_str).collect::<Vec<_>>().join("/")
}
