//! Questions about the project, whose answers the map highlights.

use super::page::PageError;
use super::view::ProjectView;
use crate::host::Host;
use crate::respond::json;
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::{Query as Parameters, State};
use axum::response::Response;
use patter::query::{Cell, Limits, PROJECT_SCHEMA, ProjectGraph, PropertyGraph, Query, Search, VertexIndex};
use patter_core::serve::{ApiError, ApiErrorKind};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// What a question of a page may cost: it is asked again with each change.
const LIMITS: Limits = Limits { steps: 2_000_000, rows: 10_000 };
/// The longest query.
const MAX_LENGTH: usize = 4000;

/// A question.
#[derive(Deserialize)]
pub(super) struct Question {
    #[serde(default)]
    q: String,
}

/// Returns the nodes of the map that a query finds, as their numbers, or why it finds nothing.
pub(super) async fn find(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Parameters(question): Parameters<Question>,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    // A query could tell what others are, even if they are not shown.
    if !access.may_reach_all() {
        return Err(ApiError::new(ApiErrorKind::Forbidden, "queries need access to all agents").into());
    }
    if question.q.len() > MAX_LENGTH {
        return Ok(json(&problem(&format!("the query has more than {MAX_LENGTH} characters"), None)));
    }
    let view = ProjectView::read(&host, &access).await?;
    let found = tokio::task::spawn_blocking(move || answer(&view, &question.q)).await;
    let found = found.map_err(|_| ApiError::new(ApiErrorKind::Server, "the query cannot be answered"))?;
    Ok(json(&found))
}

fn problem(message: &str, hint: Option<&str>) -> Json {
    json!({"nodes": [], "error": message, "hint": hint})
}

fn answer(view: &ProjectView, text: &str) -> Json {
    let query = match Query::parse(text, &PROJECT_SCHEMA) {
        Ok(query) => query,
        Err(errors) => {
            let first = errors.first();
            let message = first.map_or("the query is invalid", |error| error.message.as_ref());
            return problem(message, first.and_then(|error| error.hint.as_deref()));
        }
    };
    let driver = &view.driver;
    let source = ProjectGraph {
        project: driver.project(),
        library: driver.library(),
        rules: driver.rules(),
        findings: &view.findings,
    };
    let graph = source.build();
    let rows = Search::new(&graph, &query, LIMITS).and_then(|mut search| search.rows());
    let rows = match rows {
        Ok(rows) => rows,
        Err(stop) => return problem(&stop.to_string(), Some(stop.hint())),
    };
    let nodes: HashMap<_, _> =
        view.graph.nodes().iter().enumerate().map(|(index, node)| (node.id.as_str(), index)).collect();
    let mut found = BTreeSet::new();
    for cell in rows.into_iter().flatten() {
        let vertices = match cell {
            Cell::Vertex(vertex) => vec![vertex],
            Cell::Relation(relation) => {
                graph.relations().get(relation).map_or_else(Vec::new, |relation| vec![relation.from, relation.to])
            }
        };
        found.extend(vertices.into_iter().filter_map(|vertex| nodes.get(node_id(&graph, vertex)?).copied()));
    }
    json!({"nodes": found, "error": null, "hint": null})
}

/// Returns the id of the node of the map that shows a vertex: a step is part of its workflow.
fn node_id(graph: &PropertyGraph, vertex: VertexIndex) -> Option<&str> {
    let found = graph.vertex(vertex)?;
    if found.label() != "Step" {
        return Some(&found.id);
    }
    let owner = graph.relations().iter().find(|relation| relation.name == "has_step" && relation.to == vertex)?;
    graph.vertex(owner.from).map(|owner| owner.id.as_str())
}
