//! Tasks: calls that the server continues after it responded, and whose result is asked for later.

use super::connection::ConnectionHandle;
use crate::tool::ToolContext;
use patter_core::text::truncate;
use rmcp::model::{CallToolResult, CancelTaskParams, CreateTaskResult, ErrorData, GetTaskParams, Task, TaskPayload};
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::Value as Json;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

/// The pause between two requests for the state of a task, unless the server suggests another.
const PAUSE: Duration = Duration::from_secs(1);
/// The pauses that a server may suggest.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The time limit for cancelling a task.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of characters that are passed on of the message about a task.
const MAX_MESSAGE_CHARS: usize = 500;

/// A task that is cancelled at the server if it is dropped before it ends.
struct RunningTask {
    peer: Peer<RoleClient>,
    id: String,
    has_ended: bool,
    runtime: Handle,
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        if !self.has_ended && !self.peer.is_transport_closed() {
            let peer = self.peer.clone();
            let params = CancelTaskParams::new(self.id.clone());
            self.runtime.spawn(async move {
                let _ = timeout(CANCEL_TIMEOUT, peer.cancel_task(params)).await;
            });
        }
    }
}

/// Waits for the result of a task. The caller limits the time; then the task is cancelled.
pub(super) async fn result(
    connection: &ConnectionHandle,
    created: CreateTaskResult,
    context: &ToolContext,
) -> Result<CallToolResult, ServiceError> {
    let peer = connection.peer.clone();
    let mut task = created.task;
    let mut running =
        RunningTask { peer: peer.clone(), id: task.task_id.clone(), has_ended: false, runtime: Handle::current() };
    loop {
        report(connection, &task, context);
        sleep(pause(&task)).await;
        let state = peer.get_task(GetTaskParams::new(running.id.clone())).await?.task;
        if state.task.task_id != running.id {
            return Err(ServiceError::UnexpectedResponse);
        }
        running.has_ended = state.status().is_terminal();
        match state.payload {
            TaskPayload::Completed { result } => {
                return serde_json::from_value(Json::Object(result)).map_err(|_| ServiceError::UnexpectedResponse);
            }
            TaskPayload::Failed { error } => {
                let error: Result<ErrorData, _> = serde_json::from_value(Json::Object(error));
                return Err(error.map_or(ServiceError::UnexpectedResponse, ServiceError::McpError));
            }
            TaskPayload::Cancelled => {
                let error = ErrorData::internal_error("the server cancelled the call", None);
                return Err(ServiceError::McpError(error));
            }
            TaskPayload::InputRequired { .. } => {
                let error = ErrorData::internal_error("the call needs input that cannot be given", None);
                return Err(ServiceError::McpError(error));
            }
            _ => task = state.task,
        }
    }
}

/// Reports what the server says about a task.
fn report(connection: &ConnectionHandle, task: &Task, context: &ToolContext) {
    if let Some(message) = task.status_message.as_deref().filter(|message| !message.is_empty()) {
        context.progress(None, truncate(&connection.listener.redact(message), MAX_MESSAGE_CHARS));
    }
}

fn pause(task: &Task) -> Duration {
    task.poll_interval_ms.map_or(PAUSE, Duration::from_millis).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}
