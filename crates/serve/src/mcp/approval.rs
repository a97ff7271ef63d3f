//! Approvals as questions to the person who uses the client.

use crate::host::{Answer, Host, api_error};
use patter::session::{CallAnswer, Log};
use patter::store::SessionId;
use patter_core::serve::{ApiError, TurnEnd, Waiting};
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequests, InputResponses,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a person may take to answer.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// Returns whether the client can ask its user.
pub(super) fn supports_questions(context: &RequestContext<RoleServer>) -> bool {
    context.client_capabilities().is_some_and(|capabilities| capabilities.elicitation.is_some())
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
    let stored = host.require_store()?.read(session).await.map_err(|error| api_error(&error.into()))?;
    let log = Log::read(&stored.entries).map_err(|error| api_error(&error.into()))?;
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
        let asked = context.peer.create_elicitation_with_timeout(question(call), Some(PATIENCE)).await;
        let result = asked.unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel));
        answers.push(answer(call.clone(), &result));
    }
    answers
}

fn question(call: &Waiting) -> ElicitRequestParams {
    let because = call.because.as_deref().unwrap_or_default();
    let message =
        format!("The agent `{}` wants to call `{}` with {} ({because})", call.agent, call.tool, call.arguments);
    let schema = ElicitationSchema::builder().required_bool("approve").build();
    let schema = schema.unwrap_or_else(|_| ElicitationSchema::new(BTreeMap::new()));
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema: schema }
}

fn answer(call: Waiting, result: &ElicitResult) -> Answer {
    let approves = result.content.as_ref().and_then(|content| content.get("approve")).and_then(Json::as_bool);
    let answer = match (&result.action, approves) {
        (ElicitationAction::Accept, Some(true)) => CallAnswer::Approve,
        _ => CallAnswer::Refuse("the user did not approve the call".to_owned()),
    };
    Answer { run: call.run, call_id: call.call_id, hash: Some(call.hash), answer }
}

/// Returns what identifies a call among those that wait.
fn key(call: &Waiting) -> String {
    call.run.iter().chain([&call.call_id]).map(String::as_str).collect::<Vec<_>>().join("/")
}
