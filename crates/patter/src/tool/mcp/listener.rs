//! Notifications and requests that a server sends on its own.

use super::requests::ServerRequests;
use super::settings::ServerSettings;
use crate::tool::redact::Redactor;
use crate::tool::{CallHost, ToolContext};
use patter_core::text::truncate;
use reqwest::Url;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ExtensionCapabilities, Implementation,
    JsonObject, ProgressNotificationParam, ProgressToken, ProtocolVersion, RootsCapabilities, TASKS_EXTENSION_ID,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of characters that are passed on of a progress message.
const MAX_PROGRESS_CHARS: usize = 500;

/// Handles notifications and requests of a server.
#[derive(Clone)]
pub(super) struct ServerListener {
    redactor: Arc<Redactor>,
    /// The folders that the server may work on.
    roots: Arc<[Url]>,
    progress: Arc<Mutex<HashMap<ProgressToken, CallProgress>>>,
    calls: Arc<Mutex<OpenCalls>>,
    is_list_stale: Arc<AtomicBool>,
    requests: ServerRequests,
}

/// The context of a call, and the last progress that was reported to it.
struct CallProgress {
    context: ToolContext,
    last: f64,
}

/// Who answers questions during the calls in progress, oldest first.
#[derive(Default)]
struct OpenCalls {
    next: u64,
    hosts: BTreeMap<u64, CallHost>,
}

/// A call during which the server may ask questions, until this is dropped.
pub(super) struct OpenCall {
    number: u64,
    calls: Arc<Mutex<OpenCalls>>,
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).hosts.remove(&self.number);
    }
}

impl ServerListener {
    pub(super) fn new(settings: &ServerSettings) -> Self {
        Self {
            redactor: Arc::clone(&settings.redactor),
            roots: settings.roots.as_slice().into(),
            progress: Arc::default(),
            calls: Arc::default(),
            is_list_stale: Arc::default(),
            requests: ServerRequests::new(settings),
        }
    }

    /// Removes secrets from a text of the server.
    pub(super) fn redact(&self, text: &str) -> String {
        self.redactor.redact(text)
    }

    /// Returns what the server may ask for.
    pub(super) fn requests(&self) -> &ServerRequests {
        &self.requests
    }

    /// Lets the server ask questions. This is called before the request is sent, since a question can arrive at once.
    pub(super) fn open_call(&self, context: &ToolContext) -> OpenCall {
        let host = context.state::<CallHost>().map(|host| (*host).clone());
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let number = calls.next;
        calls.next += 1;
        calls.hosts.extend(host.map(|host| (number, host)));
        OpenCall { number, calls: Arc::clone(&self.calls) }
    }

    /// Returns who answers questions during the calls in progress. A server may not ask at other times.
    fn host(&self) -> Option<CallHost> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.hosts.values().next().cloned()
    }

    /// Returns whether the list of tools changed since the last call of this method.
    pub(super) fn take_stale(&self) -> bool {
        self.is_list_stale.swap(false, Ordering::AcqRel)
    }

    /// Notes that the list of tools changed.
    pub(super) fn set_stale(&self) {
        self.is_list_stale.store(true, Ordering::Release);
    }

    /// Reports progress with a token to the context of a call.
    pub(super) fn subscribe(&self, token: ProgressToken, context: &ToolContext) {
        self.progress().insert(token, CallProgress { context: context.clone(), last: f64::NEG_INFINITY });
    }

    /// Stops reporting progress with a token.
    pub(super) fn unsubscribe(&self, token: &ProgressToken) {
        self.progress().remove(token);
    }

    fn progress(&self) -> MutexGuard<'_, HashMap<ProgressToken, CallProgress>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientHandler for ServerListener {
    fn get_info(&self) -> ClientConfig {
        let client = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        // Later versions have no handshake, which we make with every server.
        let mut capabilities = ClientCapabilities::default();
        let tasks = ExtensionCapabilities::from_iter([(TASKS_EXTENSION_ID.to_owned(), JsonObject::new())]);
        capabilities.extensions = Some(tasks);
        self.requests.add_capabilities(&mut capabilities);
        // Some servers allow access to all roots, so they are only offered if the configuration says so.
        capabilities.roots = (!self.roots.is_empty()).then(RootsCapabilities::default);
        ClientConfig::new(capabilities, client).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.requests.elicit(self.host(), params).await
    }

    #[expect(deprecated, reason = "current servers ask for sampling")]
    async fn create_message(
        &self,
        params: rmcp::model::CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::CreateMessageResult, ErrorData> {
        self.requests.sample(self.host(), params).await
    }

    // The default handler returns an empty list of roots.
    #[expect(deprecated, reason = "current servers ask for roots")]
    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        if self.roots.is_empty() {
            return Err(ErrorData::method_not_found::<rmcp::model::ListRootsRequestMethod>());
        }
        let root = |url: &Url| rmcp::model::Root::new(url.as_str().trim_end_matches('/'));
        Ok(rmcp::model::ListRootsResult::new(self.roots.iter().map(root).collect()))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let mut progress = self.progress();
        let Some(call) = progress.get_mut(&params.progress_token) else { return };
        // Notifications may arrive out of order; progress never goes back.
        if params.progress <= call.last {
            return;
        }
        call.last = params.progress;
        let fraction = params.total.filter(|total| *total > 0.0).map(|total| (params.progress / total).clamp(0.0, 1.0));
        let message = self.redactor.redact(&params.message.unwrap_or_default());
        call.context.progress(fraction, truncate(&message, MAX_PROGRESS_CHARS));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.set_stale();
    }
}
