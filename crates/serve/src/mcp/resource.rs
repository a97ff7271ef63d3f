//! Agents, sessions and experiments as resources, and instructions as prompts.

use crate::host::Host;
use crate::token::Access;
use patter::experiment::StoredTrials;
use patter::session::Log;
use patter::store::{SessionId, SessionSummary};
use patter_core::serve::native::log_json;
use rmcp::ErrorData;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, GetPromptRequestParams, GetPromptResult, Prompt,
    PromptArgument, PromptMessage, ReadResourceResult, Reference, Resource, ResourceContents, ResourceTemplate, Role,
};
use serde_json::json;

const AGENTS: &str = "patter://agents/";
const SESSIONS: &str = "patter://sessions/";
const EXPERIMENTS: &str = "patter://experiments/";

/// Returns the agents as resources: the files that declare them.
pub(super) fn resources(host: &Host, access: &Access) -> Vec<Resource> {
    let agents = host.agents().into_iter().filter(|(name, _)| access.may_reach(name));
    let resource = |(name, _): (String, u64)| {
        let mut resource = Resource::new(format!("{AGENTS}{name}.gram"), name.clone());
        resource.description = Some(format!("The declaration of the agent {name}"));
        resource.mime_type = Some("text/plain".to_owned());
        resource
    };
    agents.map(resource).collect()
}

/// Returns how sessions and experiments are addressed.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |prefix: &str, name: &str, description: &str| {
        let mut template = ResourceTemplate::new(format!("{prefix}{{id}}"), name);
        template.description = Some(description.to_owned());
        template.mime_type = Some("application/json".to_owned());
        template
    };
    vec![
        template(SESSIONS, "session", "A conversation with an agent"),
        template(EXPERIMENTS, "experiment", "The report of an experiment"),
    ]
}

/// Returns whether a resource is one of Patter.
pub(super) fn is_own(uri: &str) -> bool {
    uri.starts_with("patter:")
}

/// Returns the error for a resource that does not exist.
pub(super) fn missing(uri: &str) -> ErrorData {
    ErrorData::resource_not_found(format!("there is no resource `{uri}`"), Some(json!({"uri": uri})))
}

/// Completes the id of a session or an experiment; `None` for anything else.
pub(super) async fn complete(host: &Host, access: &Access, request: &CompleteRequestParams) -> Option<CompleteResult> {
    /// How many sessions are searched, the newest first.
    const MAX_SESSIONS: usize = 1000;
    let Reference::Resource(template) = &request.r#ref else { return None };
    let is_experiment = match template.uri.strip_suffix("{id}")? {
        SESSIONS => false,
        EXPERIMENTS => true,
        _ => return None,
    };
    let sessions = match &host.store {
        Some(store) => store.list_in_state(None, MAX_SESSIONS).await.unwrap_or_default(),
        None => Vec::new(),
    };
    let is_meant = |session: &&SessionSummary| {
        session.is_experiment() == is_experiment
            && (is_experiment || access.may_reach(&session.agent))
            && session.id.as_str().starts_with(&request.argument.value)
    };
    let ids = sessions.iter().filter(is_meant).map(|session| session.id.to_string());
    let values = CompletionInfo::new(ids.take(CompletionInfo::MAX_VALUES).collect()).ok()?;
    Some(CompleteResult::new(values))
}

/// Reads a resource.
pub(super) async fn read(host: &Host, access: &Access, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let missing = || missing(uri);
    let (text, kind) = if let Some(name) = uri.strip_prefix(AGENTS).and_then(|rest| rest.strip_suffix(".gram")) {
        let compiled = host.compile_for(access, name).map_err(|_| missing())?;
        (compiled.declaration().to_string(), "text/plain")
    } else if let Some(id) = uri.strip_prefix(SESSIONS) {
        let id = SessionId::parse(id).map_err(|_| missing())?;
        let store = host.store.as_ref().ok_or_else(missing)?;
        let stored = store.read(&id).await.map_err(|_| missing())?;
        let is_visible = !stored.summary.is_experiment() && access.may_reach(&stored.summary.agent);
        let log = Log::read(&stored.entries).ok().filter(|_| is_visible).ok_or_else(missing)?;
        (log_json(&log).to_string(), "application/json")
    } else if let Some(id) = uri.strip_prefix(EXPERIMENTS) {
        let id = SessionId::parse(id).map_err(|_| missing())?;
        let store = host.require_store().map_err(|_| missing())?;
        let report = StoredTrials::read(&*store, &id).await.map_err(|_| missing())?;
        (json!(report).to_string(), "application/json")
    } else {
        return Err(missing());
    };
    let contents = ResourceContents::text(text, uri.to_owned()).with_mime_type(kind);
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Returns the instructions of agents as prompts.
pub(super) fn prompts(host: &Host, access: &Access) -> Vec<Prompt> {
    let agents = host.agents().into_iter().filter(|(name, _)| access.may_reach(name));
    let prompt = |(name, _): (String, u64)| {
        let mut message = PromptArgument::new("message");
        message.description = Some("What to ask".to_owned());
        message.required = Some(false);
        let description = format!("The instruction of the agent {name}");
        Prompt::new(name, Some(description), Some(vec![message]))
    };
    agents.map(prompt).collect()
}

/// Returns the instruction of an agent, followed by a message.
pub(super) fn prompt(
    host: &Host,
    access: &Access,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let missing = || ErrorData::invalid_params(format!("there is no prompt `{}`", request.name), None);
    let compiled = host.compile_for(access, &request.name).map_err(|_| missing())?;
    let message = request.arguments.as_ref().and_then(|arguments| arguments.get("message"));
    let message = message.and_then(|message| message.as_str()).map(|message| format!("\n\n{message}"));
    let text = format!("{}{}", compiled.instruction(), message.unwrap_or_default());
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}
