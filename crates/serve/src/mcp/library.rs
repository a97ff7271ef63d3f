//! The tools of the library, for clients that call them without an agent.

use super::approval::{self, supports_questions};
use super::open_call::{RunningCall, WaitingCall};
use super::question::{Asked, CallEvent, Capability};
use super::{McpService, access, is_stateless, mcp_error, trace_parent};
use crate::token::{Access, Scope};
use patter::drive::now_ms;
use patter::permission::Decision;
use patter::tool::{Approval, CallError, CallRequest, Definition, Executor};
use patter_core::library::HasDefinition;
use patter_core::name::FullName;
use patter_core::serve::mcp::{offered_tools, result_json, tool_json};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, InputRequest, InputRequests,
    InputRequiredResult, InputResponses, ResultType, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value as Json};
use std::sync::Arc;

/// The key of the question whether a call is approved.
const APPROVAL: &str = "approve";

/// A call of a tool.
struct LibraryCall {
    executor: Executor,
    tool: FullName,
    definition: Arc<Definition>,
    arguments: Json,
    /// Which call of which client this is.
    binding: String,
}

/// Whether a call is made.
enum Approved {
    Yes(Approval),
    /// The response of the call instead.
    Not(Box<CallToolResponse>),
}

impl Approved {
    fn refused(message: &str) -> Self {
        Self::Not(Box::new(failure(message).into()))
    }
}

impl McpService {
    /// Returns the tools of the library that the client may call.
    pub(super) fn library_tools(&self, access: &Access) -> Vec<Tool> {
        let Some(executor) = self.host.tools(access) else { return Vec::new() };
        let offered = offered_tools(executor.library(), executor.permissions());
        let tools = offered.filter_map(|(name, entry)| serde_json::from_value(tool_json(&name, &entry.value)).ok());
        tools.collect()
    }

    /// Calls a tool of the library; `None` if there is no such tool for the client.
    pub(super) async fn call_library(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<CallToolResponse, ErrorData>> {
        let access = access(context);
        let executor = self.host.tools(&access)?;
        let mut offered = offered_tools(executor.library(), executor.permissions());
        let (tool, definition) = offered.find(|(name, _)| name.as_str() == request.name).map(|(_, entry)| {
            let definition = Arc::new(entry.value.definition().clone());
            (entry.name.clone(), definition)
        })?;
        drop(offered);
        let arguments = Json::Object(request.arguments.clone().unwrap_or_default());
        let binding = format!("{}\n{tool}\n{}", access.name(), sorted(&arguments));
        let call = LibraryCall { executor, tool, definition, arguments, binding };
        let responses = request.input_responses.clone().unwrap_or_default();
        Some(match &request.request_state {
            None => self.start(call, &access, responses, context).await,
            Some(state) => self.continue_call(call, &access, state, responses, context).await,
        })
    }

    async fn start(
        &self,
        call: LibraryCall,
        access: &Access,
        responses: InputResponses,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // Nobody is asked about a call that cannot be made.
        if let Err(error) = call.executor.check_arguments(call.tool.as_str(), &call.arguments) {
            return Ok(failure(&error.to_string()).into());
        }
        match self.approval(&call, access, context).await? {
            Approved::Yes(approval) => self.run(call, approval, responses, context).await,
            Approved::Not(response) => Ok(*response),
        }
    }

    async fn continue_call(
        &self,
        call: LibraryCall,
        access: &Access,
        state: &str,
        responses: InputResponses,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match self.waiting.take(state, &call.binding)? {
            WaitingCall::Approval => {
                access.require(Scope::Approve).map_err(|error| mcp_error(&error))?;
                match responses.get(APPROVAL).map(approval::is_approved) {
                    None => self.ask_approval(&call),
                    Some(false) => Ok(failure(&not_approved(&call.tool)).into()),
                    Some(true) => self.run(call, Approval::Given, InputResponses::new(), context).await,
                }
            }
            WaitingCall::Questions(running, asked) => {
                let unanswered = asked.into_iter().filter_map(|(key, asked)| {
                    let response = responses.get(&key);
                    asked.answer(response).err().map(|asked| (key, asked))
                });
                let unanswered: Vec<_> = unanswered.collect();
                match unanswered.is_empty() {
                    true => self.follow(call, *running, InputResponses::new(), context).await,
                    false => self.ask_again(&call, *running, unanswered),
                }
            }
        }
    }

    /// Finds out whether a call may be made.
    async fn approval(
        &self,
        call: &LibraryCall,
        access: &Access,
        context: &RequestContext<RoleServer>,
    ) -> Result<Approved, ErrorData> {
        let verdict = call.executor.verdict(call.tool.as_str(), &call.arguments);
        let asking = verdict.ok().filter(|verdict| verdict.decision == Decision::Ask);
        let Some(because) = asking.map(|verdict| verdict.reason.to_string()) else {
            return Ok(Approved::Yes(Approval::None));
        };
        let tool = &call.tool;
        if access.require(Scope::Approve).is_err() {
            let message =
                format!("`{tool}` needs an approval ({because}), and the token does not have the scope `approve`");
            return Ok(Approved::refused(&message));
        }
        match (supports_questions(context), is_stateless(context)) {
            (true, true) => self.ask_approval(call).map(|response| Approved::Not(Box::new(response))),
            (true, false) => {
                let question = approval::library_question(tool, &call.arguments, &because);
                Ok(match approval::ask_one(context, question).await {
                    true => Approved::Yes(Approval::Given),
                    false => Approved::refused(&not_approved(tool)),
                })
            }
            (false, true) => Err(ErrorData::missing_required_client_capability(Capability::Form.required())),
            (false, false) => {
                let message = format!("`{tool}` needs an approval ({because}), and the client cannot ask for it");
                Ok(Approved::refused(&message))
            }
        }
    }

    /// Returns the question whether a call is approved.
    fn ask_approval(&self, call: &LibraryCall) -> Result<CallToolResponse, ErrorData> {
        let verdict = call.executor.verdict(call.tool.as_str(), &call.arguments);
        let because = verdict.map(|verdict| verdict.reason.to_string()).unwrap_or_default();
        let question = approval::library_question(&call.tool, &call.arguments, &because);
        let request = InputRequest::Elicitation(ElicitRequest::new(question));
        let state = self.waiting.add(&self.host, WaitingCall::Approval, &call.binding)?;
        let requests = InputRequests::from([(APPROVAL.to_owned(), request)]);
        Ok(InputRequiredResult::new(Some(requests), Some(state)).into())
    }

    /// Makes a call.
    async fn run(
        &self,
        call: LibraryCall,
        approval: Approval,
        responses: InputResponses,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut request = CallRequest::new(call.tool.as_str(), call.arguments.clone());
        request.id = format!("mcp-{}", patter::store::SessionId::unique(now_ms())).into();
        request.approval = approval;
        let mut state = call.executor.state().clone();
        if let Some(parent) = trace_parent(context) {
            state = state.with_trace_parent(parent);
        }
        let running = RunningCall::start(&self.host, call.executor.clone(), state, request);
        let running = running.map_err(|error| mcp_error(&error))?;
        self.follow(call, running, responses, context).await
    }

    /// Waits for the end of a call, reports its progress, and asks its questions.
    async fn follow(
        &self,
        call: LibraryCall,
        mut running: RunningCall,
        mut responses: InputResponses,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut reporter = self.reporter(context);
        let mut lacking = None;
        loop {
            let event = tokio::select! {
                biased;
                () = context.ct.cancelled() => return Ok(failure("the call was cancelled").into()),
                Some(event) = running.events.recv() => event,
                end = &mut running.end => return end_of(&call, end, lacking, context),
            };
            let mut asked = match event {
                CallEvent::Progress { fraction, message } => {
                    reporter.report(fraction, message).await;
                    continue;
                }
                CallEvent::Asked(asked) => vec![asked],
            };
            if is_stateless(context) {
                // What a tool asks at once is asked at once.
                tokio::task::yield_now().await;
                while let Ok(event) = running.events.try_recv() {
                    match event {
                        CallEvent::Progress { fraction, message } => reporter.report(fraction, message).await,
                        CallEvent::Asked(one) => asked.push(one),
                    }
                }
            }
            let mut unanswered = Vec::new();
            for one in asked {
                let capability = one.capability();
                if !capability.is_declared(context) {
                    lacking = Some(capability);
                    one.refuse();
                } else if one.request().is_none() {
                    one.refuse();
                } else if is_stateless(context) {
                    // A client may answer before it is asked.
                    let response = responses.remove(&one.question.name);
                    unanswered.extend(one.answer(response.as_ref()).err());
                } else {
                    one.ask(context).await;
                }
            }
            if !unanswered.is_empty() {
                return self.ask_again(&call, running, with_keys(unanswered));
            }
        }
    }

    /// Returns the questions of a call, which waits for the answers.
    fn ask_again(
        &self,
        call: &LibraryCall,
        running: RunningCall,
        asked: Vec<(String, Asked)>,
    ) -> Result<CallToolResponse, ErrorData> {
        let requests = asked.iter().filter_map(|(key, asked)| Some((key.clone(), asked.request()?)));
        let requests: InputRequests = requests.collect();
        let waiting = WaitingCall::Questions(Box::new(running), asked);
        let state = self.waiting.add(&self.host, waiting, &call.binding)?;
        Ok(InputRequiredResult::new(Some(requests), Some(state)).into())
    }
}

/// Returns the response to a call that ended.
fn end_of(
    call: &LibraryCall,
    end: Result<Result<Json, CallError>, tokio::sync::oneshot::error::RecvError>,
    lacking: Option<Capability>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let error = match end {
        Ok(Ok(value)) => {
            let result = serde_json::from_value::<CallToolResult>(result_json(&call.definition, &value));
            let mut result = result.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            result.result_type = Some(ResultType::COMPLETE);
            return Ok(result.into());
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the server stopped during the call".to_owned(),
    };
    match lacking {
        Some(lacking) if is_stateless(context) => {
            Err(ErrorData::missing_required_client_capability(lacking.required()))
        }
        _ => Ok(failure(&error).into()),
    }
}

/// Returns the keys of questions: their names, and numbers if there are several of a name.
fn with_keys(asked: Vec<Asked>) -> Vec<(String, Asked)> {
    let mut keyed: Vec<(String, Asked)> = Vec::new();
    for asked in asked {
        let name = asked.question.name.clone();
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let key =
            std::iter::once(name.clone()).chain(numbered).find(|key| !keyed.iter().any(|(known, _)| known == key));
        keyed.push((key.unwrap_or(name), asked));
    }
    keyed
}

fn failure(message: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(message)])
}

fn not_approved(tool: &FullName) -> String {
    format!("the user did not approve the call of `{tool}`")
}

/// Returns a value with the members of objects in a fixed order.
fn sorted(value: &Json) -> Json {
    match value {
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            members.sort_by(|(a, _), (b, _)| a.cmp(b));
            Json::Object(members.into_iter().collect::<Map<_, _>>())
        }
        Json::Array(items) => items.iter().map(sorted).collect(),
        value => value.clone(),
    }
}
