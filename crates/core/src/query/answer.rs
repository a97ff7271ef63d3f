//! Answers of queries, as data.

use super::pattern::Query;
use super::policy::describe_path;
use super::property_graph::{PropertyGraph, Relation, Vertex};
use super::search::{Cell, Evidence, Limits, Search, Stop};
use crate::types::signature::json_to_value;
use patter_gram::{Value, quote_name};
use serde_json::{Map, Value as Json, json};

/// The rows that a query finds, with what is known about each cell. It does not depend on the graph, so that the answers
/// of several graphs can be joined.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<AnswerRow>,
}

/// A row of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerRow {
    /// What the columns stand for.
    pub cells: Vec<AnswerCell>,
    /// The part of the graph that makes it an answer, if that was asked for.
    pub path: Option<AnswerPath>,
}

/// The part of a graph that makes a row an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerPath {
    /// The path, in a line: `desk -[calls]-> mail/send`.
    pub text: String,
    /// The ids of the vertices on it.
    pub vertices: Vec<String>,
}

/// Whether an answer says what makes each row an answer, which takes as long as finding the rows, or longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paths {
    /// Rows have their path.
    Find,
    /// Rows have no path.
    Skip,
}

/// What a column of a row stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerCell {
    /// A vertex.
    Vertex(Vertex),
    /// A relation between two vertices.
    Relation {
        /// Where it starts.
        from: Box<Vertex>,
        /// The relation.
        relation: Relation,
        /// Where it ends.
        to: Box<Vertex>,
    },
}

impl Answer {
    /// Answers a query.
    pub fn new(graph: &PropertyGraph, query: &Query, limits: Limits, paths: Paths) -> Result<Self, Stop> {
        let mut search = Search::new(graph, query, limits)?;
        let mut rows = Vec::new();
        for row in search.rows()? {
            let path = match paths {
                Paths::Find => Some(AnswerPath::new(graph, &search.evidence(&row)?)),
                Paths::Skip => None,
            };
            let cells = row.iter().filter_map(|cell| AnswerCell::new(graph, *cell)).collect();
            rows.push(AnswerRow { cells, path });
        }
        Ok(Self { columns: query.columns().map(str::to_owned).collect(), rows })
    }

    /// Removes the properties of all vertices, which names and places do not need.
    pub fn forget_properties(&mut self) {
        for cell in self.rows.iter_mut().flat_map(|row| &mut row.cells) {
            if let AnswerCell::Vertex(vertex) = cell {
                vertex.properties = Map::new();
            }
        }
    }

    /// Returns the answer as JSON.
    pub fn to_json(&self) -> Json {
        let row = |row: &AnswerRow| {
            let cells = self.columns.iter().zip(&row.cells).map(|(name, cell)| (name.clone(), cell.to_json()));
            let mut document = json!({"cells": cells.collect::<Map<_, _>>()});
            if let (Json::Object(document), Some(path)) = (&mut document, &row.path) {
                document.insert("path".to_owned(), path.text.as_str().into());
            }
            document
        };
        json!({"version": 1, "columns": self.columns, "rows": self.rows.iter().map(row).collect::<Vec<_>>()})
    }

    /// Returns the answer as gram: a pattern for each row, whose elements are the columns.
    pub fn to_gram(&self) -> String {
        let mut out = String::new();
        for row in &self.rows {
            let cells: Vec<_> = row.cells.iter().map(AnswerCell::to_gram).collect();
            let elements = if cells.is_empty() { String::new() } else { format!(" | {}", cells.join(", ")) };
            let path = row.path.as_ref().map(|path| format!(" {{ path: {} }}", Value::from(path.text.as_str())));
            out.push_str(&format!("[:Row{}{elements}]\n", path.unwrap_or_default()));
        }
        patter_gram::format(&out).unwrap_or(out)
    }
}

impl AnswerPath {
    fn new(graph: &PropertyGraph, evidence: &Evidence) -> Self {
        let relations = evidence.walks.iter().flatten().filter_map(|index| graph.relations().get(*index));
        let ends = relations.flat_map(|relation| [relation.from, relation.to]);
        let vertices = evidence.vertices.iter().copied().chain(ends);
        let mut vertices: Vec<_> = vertices.filter_map(|vertex| Some(graph.vertex(vertex)?.id.clone())).collect();
        vertices.sort();
        vertices.dedup();
        Self { text: describe_path(graph, evidence), vertices }
    }
}

impl AnswerCell {
    fn new(graph: &PropertyGraph, cell: Cell) -> Option<Self> {
        Some(match cell {
            Cell::Vertex(vertex) => AnswerCell::Vertex(graph.vertex(vertex)?.clone()),
            Cell::Relation(index) => {
                let relation = graph.relations().get(index)?.clone();
                let end = |vertex| graph.vertex(vertex).cloned().map(Box::new);
                AnswerCell::Relation { from: end(relation.from)?, to: end(relation.to)?, relation }
            }
        })
    }

    /// Returns the text for people: the name of a vertex, or a relation with its decision.
    pub fn text(&self) -> String {
        match self {
            AnswerCell::Vertex(vertex) => vertex.name.clone(),
            AnswerCell::Relation { relation, .. } => {
                let text = |key: &str| relation.properties.get(key).and_then(Json::as_str);
                let decision = text("decision").map(|decision| format!(" {decision}")).unwrap_or_default();
                let when = text("when").map(|when| format!(" when {when}")).unwrap_or_default();
                format!("{}{decision}{when}", relation.name)
            }
        }
    }

    /// Returns where it comes from, for people.
    pub fn source(&self) -> Option<&str> {
        match self {
            AnswerCell::Vertex(vertex) => vertex.source.as_deref(),
            AnswerCell::Relation { from, .. } => from.source.as_deref(),
        }
    }

    fn to_json(&self) -> Json {
        match self {
            AnswerCell::Vertex(vertex) => json!({
                "id": vertex.id,
                "labels": vertex.labels,
                "source": vertex.source,
                "properties": vertex.properties,
            }),
            AnswerCell::Relation { from, relation, to } => json!({
                "relation": relation.name,
                "from": from.id,
                "to": to.id,
                "properties": relation.properties,
            }),
        }
    }

    fn to_gram(&self) -> String {
        match self {
            AnswerCell::Vertex(vertex) => format!("({})", subject(&vertex.id, &vertex.labels, &vertex.properties)),
            AnswerCell::Relation { from, relation, to } => {
                let inner = subject("", &[relation.name], &relation.properties);
                format!("({})-[{inner}]->({})", quote_name(&from.id), quote_name(&to.id))
            }
        }
    }
}

fn subject(id: &str, labels: &[&str], properties: &Map<String, Json>) -> String {
    let name = if id.is_empty() { String::new() } else { quote_name(id).into_owned() };
    let labels: String = labels.iter().map(|label| format!(":{label}")).collect();
    let values = properties.iter().map(|(key, value)| {
        let tagged = || Value::Tagged { tag: "json".to_owned(), text: value.to_string() };
        format!("{}: {}", quote_name(key), json_to_value(value).unwrap_or_else(tagged))
    });
    let values: Vec<_> = values.collect();
    if values.is_empty() { format!("{name}{labels}") } else { format!("{name}{labels} {{ {} }}", values.join(", ")) }
}
