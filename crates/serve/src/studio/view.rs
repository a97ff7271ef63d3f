//! What pages know about a project, computed once for each version of it.

use super::page::{path_segment, reachable_agents};
use crate::host::Host;
use crate::token::Access;
use patter::drive::Driver;
use patter::graph::{Availability, Graph, GraphSource, Node, NodeKind, Selection, SvgOptions, SvgStyle};
use patter::library::Layer;
use patter::project::{Finding, ProjectCheck};
use patter_core::serve::{ApiError, ApiErrorKind};
use std::sync::{Arc, Mutex, PoisonError};

/// The project as pages show it.
pub(crate) struct ProjectView {
    /// The agents with the rules of the server.
    pub(super) driver: Driver,
    /// The findings of the check.
    pub(super) findings: Vec<Finding>,
    /// The agents that the reader may reach, and what they call.
    pub(super) graph: Graph,
    /// The drawing of the graph.
    pub(super) map: String,
}

/// The view of those who may see everything, for the version that was shown last.
#[derive(Default)]
pub(crate) struct ProjectViews {
    last: Mutex<Option<Arc<ProjectView>>>,
}

impl ProjectView {
    /// Returns the project as a reader may see it.
    pub(super) async fn read(host: &Arc<Host>, access: &Access) -> Result<Arc<Self>, ApiError> {
        let driver = host.driver();
        let sees_all = access.may_reach_all();
        if sees_all
            && let Some(view) = host.views.last()
            && view.driver.is_same(&driver)
        {
            return Ok(view);
        }
        let selection = match sees_all && host.serves_all() {
            true => Selection::Project,
            false => Selection::Agents {
                names: reachable_agents(host, access).into_iter().collect(),
                files: (0..driver.project().files().len()).collect(),
            },
        };
        let shared = Arc::clone(host);
        let view = tokio::task::spawn_blocking(move || Self::new(&shared, driver, &selection)).await;
        let view = view.map_err(|_| ApiError::new(ApiErrorKind::Server, "the project cannot be shown"))?;
        let view = Arc::new(view);
        if sees_all {
            host.views.set(Arc::clone(&view));
        }
        Ok(view)
    }

    fn new(host: &Host, driver: Driver, selection: &Selection) -> Self {
        let config = host.project.config();
        let project = driver.project();
        let findings = ProjectCheck::read(project, host.project.root(), config).findings(project, config);
        let source = GraphSource { project, library: driver.library(), rules: driver.rules(), findings: &findings };
        let graph = Graph::build(source, selection);
        let options = SvgOptions { title: "Map of the project", style: SvgStyle::Embedded, link: &page_of };
        let map = graph.to_svg(&options);
        Self { driver, findings, graph, map }
    }
}

impl ProjectViews {
    fn last(&self) -> Option<Arc<ProjectView>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, view: Arc<ProjectView>) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(view);
    }
}

/// Returns the address of the page of a node.
pub(super) fn page_of(node: &Node) -> Option<String> {
    match node.kind {
        NodeKind::Agent | NodeKind::Delegate => Some(agent_address(&node.name)),
        NodeKind::Tool if node.availability == Availability::Known => Some(tool_address(&node.name)),
        NodeKind::Tool | NodeKind::Model | NodeKind::Toolbox | NodeKind::Layer => None,
    }
}

/// Returns the address of the page of an agent, by its path.
pub(super) fn agent_address(path: &str) -> String {
    format!("/studio/agents/{}", path_segment(path))
}

/// Returns the address of the page of a tool, by its full name.
pub(super) fn tool_address(name: &str) -> String {
    format!("/studio/tools/{}", path_segment(name))
}

/// Describes a layer.
pub(super) fn layer_words(layer: Layer) -> &'static str {
    match layer {
        Layer::Internal => "the standard library",
        Layer::Org => "the organisation",
        Layer::Project => "this project",
    }
}
