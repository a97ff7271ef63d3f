//! The server.

use crate::acp;
use crate::api::router;
use crate::experiment::ExperimentRunner;
use crate::host::Host;
use crate::listen;
use crate::mcp::{McpHandler, McpService};
use crate::settings::ServeSettings;
use axum::Router;
use patter::drive::Driver;
use patter::live::LiveProject;
use patter::project::ToolVariant;
use patter::store::Store;
use patter::tool::CancellationToken;
use patter::trace::Tracer;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

/// Serves the agents of a project.
pub struct Server {
    project: Arc<LiveProject>,
    store: Option<Arc<dyn Store>>,
    /// The agents to serve; `None` for all.
    agents: Option<Vec<String>>,
    tracer: Option<Tracer>,
    mcp_handler: Option<McpHandler>,
    experiments: Option<Arc<dyn ExperimentRunner>>,
    variants: BTreeMap<String, ToolVariant>,
    settings: ServeSettings,
    configure: Arc<dyn Fn(Driver) -> Driver + Send + Sync>,
    host: OnceLock<Arc<Host>>,
}

impl Server {
    /// Returns a server of the agents of a project. Without a store, sessions cannot be continued, and no run can wait.
    pub fn new(project: Arc<LiveProject>, settings: ServeSettings) -> Self {
        let configure = Arc::new(|driver| driver);
        Self {
            project,
            store: None,
            agents: None,
            tracer: None,
            mcp_handler: None,
            experiments: None,
            variants: BTreeMap::new(),
            settings,
            configure,
            host: OnceLock::new(),
        }
    }

    /// Serves only some agents. The others can still be called by these.
    #[must_use]
    pub fn with_agents(mut self, agents: Vec<String>) -> Self {
        self.agents = Some(agents);
        self
    }

    /// Exports the runs as spans, if there is a tracer. The header `traceparent` of a request, or
    /// its metadata in MCP, is the parent of its run.
    #[must_use]
    pub fn with_tracer(mut self, tracer: Option<Tracer>) -> Self {
        self.tracer = tracer;
        self
    }

    /// Adds the tools, prompts and resources of an application to the MCP server. Requests for what the project does not have
    /// are passed on to the handler, after the checks that apply to all requests; tokens that are limited to some agents do
    /// not reach it. Its lists have one page.
    ///
    /// ```
    /// # use patter::live::LiveProject;
    /// # use patter_serve::{ServeSettings, Server};
    /// use patter_serve::rmcp::model::{ListResourcesResult, PaginatedRequestParams, Resource};
    /// use patter_serve::rmcp::service::{RequestContext, RoleServer};
    /// use patter_serve::rmcp::{ErrorData, ServerHandler};
    ///
    /// struct Handbook;
    ///
    /// impl ServerHandler for Handbook {
    ///     async fn list_resources(
    ///         &self,
    ///         _: Option<PaginatedRequestParams>,
    ///         _: RequestContext<RoleServer>,
    ///     ) -> Result<ListResourcesResult, ErrorData> {
    ///         Ok(ListResourcesResult::with_all_items(vec![Resource::new("handbook://refunds", "refunds")]))
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("hello.gram");
    /// # std::fs::write(&path, "[hi:Agent {instruction: 'Greet.', model: 'demo'} | sayHello]").unwrap();
    /// # let project = LiveProject::open(&path).read().await.unwrap();
    /// let server = Server::new(project.into(), ServeSettings::default()).with_mcp_handler(Handbook);
    /// # drop(server);
    /// # }
    /// ```
    #[must_use]
    pub fn with_mcp_handler(mut self, handler: impl rmcp::ServerHandler) -> Self {
        self.mcp_handler = Some(Arc::new(handler));
        self
    }

    /// Lets people start experiments from the studio. Needs a store.
    ///
    /// ```
    /// # use patter::live::LiveProject;
    /// use patter::store::SessionId;
    /// use patter::tool::{BoxFuture, CancellationToken};
    /// use patter_serve::{ExperimentRequest, ExperimentRunner, ServeSettings, Server};
    /// use tokio::sync::oneshot;
    ///
    /// struct NotNow;
    ///
    /// impl ExperimentRunner for NotNow {
    ///     fn run(
    ///         &self,
    ///         _: ExperimentRequest,
    ///         _: oneshot::Sender<SessionId>,
    ///         _: CancellationToken,
    ///     ) -> BoxFuture<'_, Result<(), String>> {
    ///         Box::pin(async { Err("not before the weekend".to_owned()) })
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("hello.gram");
    /// # std::fs::write(&path, "[hi:Agent {instruction: 'Greet.', model: 'demo'} | sayHello]").unwrap();
    /// # let project = LiveProject::open(&path).read().await.unwrap();
    /// let server = Server::new(project.into(), ServeSettings::default()).with_experiments(NotNow);
    /// # drop(server);
    /// # }
    /// ```
    #[must_use]
    pub fn with_experiments(mut self, runner: impl ExperimentRunner + 'static) -> Self {
        self.experiments = Some(Arc::new(runner));
        self
    }

    /// Adds tools that a conversation in the studio may use instead of those of the project with the same names.
    #[must_use]
    pub fn with_variant(mut self, name: impl Into<String>, tools: ToolVariant) -> Self {
        self.variants.insert(name.into(), tools);
        self
    }

    /// Sets where sessions are stored.
    #[must_use]
    pub fn with_store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// Sets a function that configures the driver of all runs: rules, lock and model. Its listener and approver are those of
    /// the server.
    #[must_use]
    pub fn with_driver(mut self, configure: impl Fn(Driver) -> Driver + Send + Sync + 'static) -> Self {
        self.configure = Arc::new(configure);
        self
    }

    /// Returns the routes, to be part of an application. They check requests as [`Server::serve`] does, except for the bounds
    /// on connections, which are up to the application.
    pub fn router(&self) -> Router {
        router(self.host())
    }

    /// Accepts connections until `stop` is cancelled. Then the turns under way may end; those that take too long are suspended,
    /// and can be resumed.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) -> io::Result<()> {
        let host = Arc::clone(self.host());
        let address = listener.local_addr().ok().map(|address| format!("http://{address}"));
        let expiring = tokio::spawn(Arc::clone(&host).expire_approvals());
        let reporting = tokio::spawn(Arc::clone(&host).report_alive(address));
        let taking = tokio::spawn(Arc::clone(&host).take_work());
        let sharing = tokio::spawn(Arc::clone(&host).share_limits());
        let scheduling = tokio::spawn(Arc::clone(&host).keep_schedules());
        let limits = self.settings.limits;
        let served = listen::serve(listener, self.router(), limits, stop, host.drain()).await;
        host.leave().await;
        for task in [expiring, reporting, taking, sharing, scheduling] {
            task.abort();
        }
        served
    }

    /// Serves the agents as tools of an MCP server over stdin and stdout, until stdin ends or `stop` is cancelled. The client is
    /// the user who started the program, so it may do everything.
    pub async fn serve_mcp(self, stop: CancellationToken) -> io::Result<()> {
        let host = Arc::clone(self.host());
        let service = McpService::new(Arc::clone(&host));
        let served = rmcp::serve_server(service, rmcp::transport::stdio());
        let Some(served) = stop.run_until_cancelled(served).await else { return Ok(()) };
        let running = served.map_err(io::Error::other)?;
        let _ = stop.run_until_cancelled(running.waiting()).await;
        host.drain().await;
        Ok(())
    }

    /// Serves the agents to an editor, which speaks the Agent Client Protocol over stdin and stdout, until stdin ends or `stop` is
    /// cancelled. The client is the user who started the program, so it may do everything. Needs a store.
    pub async fn serve_acp(self, stop: CancellationToken) -> io::Result<()> {
        self.serve_acp_over(tokio::io::stdin(), tokio::io::stdout(), stop).await
    }

    /// Does the same as [`Server::serve_acp`] over other streams.
    pub async fn serve_acp_over(
        self,
        reader: impl AsyncRead + Unpin,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        stop: CancellationToken,
    ) -> io::Result<()> {
        acp::serve(Arc::clone(self.host()), reader, writer, &stop).await
    }

    fn host(&self) -> &Arc<Host> {
        self.host.get_or_init(|| {
            let store = self.store.clone();
            let configure = Arc::clone(&self.configure);
            let host =
                Host::new(Arc::clone(&self.project), store, self.settings.clone(), configure, self.variants.clone());
            Arc::new(
                host.with_agents(self.agents.clone())
                    .with_tracer(self.tracer.clone())
                    .with_mcp_handler(self.mcp_handler.clone())
                    .with_experiments(self.experiments.clone()),
            )
        })
    }
}
