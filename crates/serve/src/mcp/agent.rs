//! Calls of the tools that ask agents.

use super::approval::{self, Answered, answers_of, supports_questions};
use super::report::Reporter;
use super::{McpService, access, invalid, is_stateless, mcp_error, trace_parent};
use crate::host::{Choice, Follower, Lifetime, SessionChoice, TurnItem, TurnRequest, WhenBusy};
use patter::drive::now_ms;
use patter::store::SessionId;
use patter_core::compile::CompiledAgent;
use patter_core::event::RunEventKind;
use patter_core::message::attachment::AttachmentContents;
use patter_core::serve::{ApiError, ApiErrorKind, TurnEnd, TurnOutcome, Waiting};
use rmcp::ErrorData;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, InputRequiredResult};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value as Json, json};

impl McpService {
    /// Asks an agent.
    pub(super) async fn call_agent(
        &self,
        agent: &CompiledAgent,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let access = access(context);
        let mut follower = match &request.request_state {
            Some(state) => {
                let session = SessionId::parse(state).map_err(|error| invalid(&error))?;
                let responses = request.input_responses.unwrap_or_default();
                let answers = answers_of(&self.host, &access, &session, responses).await;
                match answers.map_err(|error| mcp_error(&error))? {
                    Answered::Answers(answers) => {
                        self.host.answer(&access, &session, answers, Lifetime::Attached).await
                    }
                    Answered::AskAgain(requests) => {
                        return Ok(InputRequiredResult::new(Some(requests), Some(state.clone())).into());
                    }
                    Answered::Declined(calls) => return Ok(waiting(&calls, Some(&session)).into()),
                }
            }
            None => {
                let arguments = request.arguments.unwrap_or_default();
                let text = |name: &str| arguments.get(name).and_then(Json::as_str);
                let Some(input) = text("message").filter(|message| !message.trim().is_empty()) else {
                    return Err(ErrorData::invalid_params("`message` is missing", None));
                };
                let session = match text("session") {
                    Some(id) => SessionChoice::Named(SessionId::parse(id).map_err(|error| invalid(&error))?),
                    None => SessionChoice::New(SessionId::unique(now_ms())),
                };
                let turn = TurnRequest {
                    agent: agent.name().to_owned(),
                    session,
                    history: Vec::new(),
                    client: None,
                    input: input.into(),
                    contents: AttachmentContents::default(),
                    choice: Choice::default(),
                    lifetime: Lifetime::Attached,
                    when_busy: WhenBusy::Enqueue,
                    parent: trace_parent(context),
                    webhook: None,
                };
                self.host.start(&access, turn).await
            }
        }
        .map_err(|error| mcp_error(&error))?;
        let mut reporter = self.reporter(context);
        loop {
            let session = follower.turn().session.clone();
            let end = follow(&mut follower, context, &mut reporter).await.map_err(|error| mcp_error(&error))?;
            let calls = approval::askable(&end, &access);
            let (true, Some(id)) = (!calls.is_empty() && supports_questions(context), session.clone()) else {
                return Ok(result(&end, session.as_ref()).into());
            };
            if is_stateless(context) {
                return Ok(InputRequiredResult::new(Some(approval::requests(&calls)), Some(id.to_string())).into());
            }
            let answers = approval::ask(context, &calls).await;
            if answers.is_empty() {
                return Ok(result(&end, session.as_ref()).into());
            }
            let resumed = self.host.answer(&access, &id, answers, Lifetime::Attached).await;
            follower = resumed.map_err(|error| mcp_error(&error))?;
        }
    }
}

/// Waits for the end of a turn, and reports its progress.
async fn follow(
    follower: &mut Follower,
    context: &RequestContext<RoleServer>,
    reporter: &mut Reporter<'_>,
) -> Result<TurnEnd, ApiError> {
    loop {
        let item = tokio::select! {
            item = follower.next() => item,
            () = context.ct.cancelled() => return Err(ApiError::new(ApiErrorKind::Run, "the call was cancelled")),
        };
        let event = match item {
            Some(TurnItem::End(end)) => return end,
            None => return Err(ApiError::new(ApiErrorKind::Server, "the turn ended without a result")),
            Some(TurnItem::Event(event)) => event,
        };
        let message = match &event.kind {
            RunEventKind::ModelCalled { number } => format!("{}: model call {number}", event.agent),
            RunEventKind::ToolStarted { tool, .. } => format!("{}: calls {tool}", event.agent),
            // What a part of the run has completed says nothing about all of it.
            RunEventKind::ToolProgress { message, .. } => message.clone(),
            _ => continue,
        };
        reporter.report(None, message).await;
    }
}

/// Returns the result of a call.
fn result(end: &TurnEnd, session: Option<&SessionId>) -> CallToolResult {
    match &end.outcome {
        TurnOutcome::Answered { text, value, .. } => {
            let session = session.map(ToString::to_string);
            let structured = match value {
                Some(value @ Json::Object(_)) => value.clone(),
                Some(value) => json!({"value": value, "session": session}),
                None => json!({"text": text, "session": session}),
            };
            let mut result = CallToolResult::structured(structured);
            result.content = vec![ContentBlock::text(text.clone())];
            result
        }
        TurnOutcome::Failed(failure) => CallToolResult::error(vec![ContentBlock::text(failure.to_string())]),
        TurnOutcome::Cancelled => CallToolResult::error(vec![ContentBlock::text("the run was cancelled")]),
        TurnOutcome::Waiting(calls) => waiting(calls, session),
    }
}

/// Returns the result of a call that waits for somebody.
fn waiting(calls: &[Waiting], session: Option<&SessionId>) -> CallToolResult {
    let lines: Vec<_> = calls.iter().map(Waiting::line).collect();
    let session = session.map(ToString::to_string).unwrap_or_default();
    let text = format!("the session `{session}` is {}", lines.join(", and "));
    CallToolResult::error(vec![ContentBlock::text(text)])
}
