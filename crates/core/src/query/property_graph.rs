//! Vertices with labels and properties, and the relations between them.

use patter_gram::Span;
use serde_json::{Map, Value as Json};
use std::collections::HashMap;

/// A graph whose vertices and relations have properties.
///
/// ```
/// use patter_core::query::{PropertyGraph, Relation, Vertex};
/// let mut graph = PropertyGraph::default();
/// let desk = graph.add(Vertex::new("Agent", "agent:desk", "desk"));
/// let send = graph.add(Vertex::new("Tool", "tool:mail/send", "mail/send"));
/// graph.relate(Relation::new(desk, "calls", send));
/// assert_eq!(graph.find("agent:desk"), Some(desk));
/// assert_eq!(graph.relations().len(), 1);
/// ```
#[derive(Debug, Clone, Default)]
pub struct PropertyGraph {
    vertices: Vec<Vertex>,
    relations: Vec<Relation>,
    by_id: HashMap<String, VertexIndex>,
    by_label: HashMap<&'static str, Vec<VertexIndex>>,
    by_name: HashMap<&'static str, Vec<u32>>,
}

/// The position of a vertex in its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VertexIndex(pub(super) u32);

/// A vertex of a graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Vertex {
    /// Identifies the vertex in the graph.
    pub id: String,
    /// The labels, the main one first.
    pub labels: Vec<&'static str>,
    /// The name, for people. It is also the property `name`.
    pub name: String,
    /// The properties.
    pub properties: Map<String, Json>,
    /// Where it is declared, if that is in a file of the project.
    pub place: Option<FilePlace>,
    /// Where it comes from, for people: `shop.gram:2:1`, `built in`.
    pub source: Option<String>,
}

/// A place in a file of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FilePlace {
    /// The index of the file in [`Project::files`](crate::declare::project::Project::files).
    pub file: usize,
    /// The span in the file.
    pub span: Span,
}

/// A relation between two vertices.
#[derive(Debug, Clone, PartialEq)]
pub struct Relation {
    /// Where it starts.
    pub from: VertexIndex,
    /// The name, such as `calls`.
    pub name: &'static str,
    /// Where it ends.
    pub to: VertexIndex,
    /// The properties.
    pub properties: Map<String, Json>,
    /// Where it is written, if that is in a file of the project.
    pub place: Option<FilePlace>,
}

impl Vertex {
    /// Creates a vertex with a label.
    pub fn new(label: &'static str, id: impl Into<String>, name: impl Into<String>) -> Self {
        let name = name.into();
        let properties = Map::from_iter([("name".to_owned(), Json::String(name.clone()))]);
        Self { id: id.into(), labels: vec![label], name, properties, place: None, source: None }
    }

    /// Sets a property, unless the value is null.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.set(key, value);
        self
    }

    /// Sets a property, unless the value is null.
    pub fn set(&mut self, key: &str, value: impl Into<Json>) {
        let value = value.into();
        if !value.is_null() {
            self.properties.insert(key.to_owned(), value);
        }
    }

    /// Returns the main label.
    pub fn label(&self) -> &'static str {
        self.labels.first().copied().unwrap_or_default()
    }
}

impl Relation {
    /// Creates a relation without properties.
    pub fn new(from: VertexIndex, name: &'static str, to: VertexIndex) -> Self {
        Self { from, name, to, properties: Map::new(), place: None }
    }

    /// Sets a property, unless the value is null.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Json>) -> Self {
        let value = value.into();
        if !value.is_null() {
            self.properties.insert(key.to_owned(), value);
        }
        self
    }
}

impl PropertyGraph {
    /// Adds a vertex, unless there is one with its id, and returns where it is.
    pub fn add(&mut self, vertex: Vertex) -> VertexIndex {
        if let Some(known) = self.by_id.get(&vertex.id) {
            return *known;
        }
        let index = VertexIndex(position(self.vertices.len()));
        self.by_id.insert(vertex.id.clone(), index);
        for label in &vertex.labels {
            self.by_label.entry(label).or_default().push(index);
        }
        self.vertices.push(vertex);
        index
    }

    /// Adds a label to a vertex.
    pub fn add_label(&mut self, index: VertexIndex, label: &'static str) {
        let Some(vertex) = self.vertices.get_mut(index.0 as usize) else { return };
        if !vertex.labels.contains(&label) {
            vertex.labels.push(label);
            self.by_label.entry(label).or_default().push(index);
        }
    }

    /// Adds a relation between vertices of the graph.
    pub fn relate(&mut self, relation: Relation) {
        let last = position(self.vertices.len());
        if relation.from.0 < last && relation.to.0 < last {
            self.by_name.entry(relation.name).or_default().push(position(self.relations.len()));
            self.relations.push(relation);
        }
    }

    /// Returns the vertices.
    pub fn vertices(&self) -> &[Vertex] {
        &self.vertices
    }

    /// Returns the relations.
    pub fn relations(&self) -> &[Relation] {
        &self.relations
    }

    /// Returns a vertex.
    pub fn vertex(&self, index: VertexIndex) -> Option<&Vertex> {
        self.vertices.get(index.0 as usize)
    }

    /// Returns a vertex to change.
    pub fn vertex_mut(&mut self, index: VertexIndex) -> Option<&mut Vertex> {
        self.vertices.get_mut(index.0 as usize)
    }

    /// Finds a vertex by its id.
    pub fn find(&self, id: &str) -> Option<VertexIndex> {
        self.by_id.get(id).copied()
    }

    /// Returns the vertices with a label.
    pub fn labelled(&self, label: &str) -> &[VertexIndex] {
        self.by_label.get(label).map_or(&[], Vec::as_slice)
    }

    /// Returns the positions of the relations with a name.
    pub(super) fn named(&self, name: &str) -> &[u32] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Returns an index in 32 bits. Graphs are built from files of less than 4 GB, so nothing is cut off.
pub(super) fn position(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
