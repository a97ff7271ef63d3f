//! Queries: patterns with variables, read and checked against a schema.

use super::constraint::Constraint;
use super::schema::Schema;
use crate::rule;
use patter_gram::{Diagnostic, Pattern, Span, parse};

mod read;

/// The largest number of nodes and of arrows in a query.
pub const MAX_PARTS: usize = 64;

/// The largest number of steps that an arrow may ask for by number. Arrows without an upper bound have no such limit.
pub const MAX_HOPS: u32 = 1_000;

/// A pattern with variables that is searched for in a graph.
///
/// Names are variables: everywhere in a query, a name stands for the same vertex. Nodes without a name match any vertex
/// that has their labels and properties.
///
/// ```
/// use patter_core::query::{PROJECT_SCHEMA, Query};
/// let query = Query::parse("(a:Agent)-[:calls]->(t:Tool { effect: \"writes\" })", &PROJECT_SCHEMA).unwrap();
/// assert_eq!(query.columns().collect::<Vec<_>>(), ["a", "t"]);
/// let errors = Query::parse("(a:Agnet)", &PROJECT_SCHEMA).unwrap_err();
/// assert_eq!(errors[0].message, "there is no label `Agnet`");
/// assert_eq!(errors[0].hint.as_deref(), Some("did you mean `Agent`?"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub(super) group: Group,
    pub(super) columns: Vec<Column>,
}

/// A variable that an answer shows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) part: Part,
}

/// A part of a query that has a value in each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Vertex(usize),
    Arrow(usize),
}

/// Patterns that must be found together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Group {
    pub(super) vertices: Vec<VertexPattern>,
    pub(super) arrows: Vec<ArrowPattern>,
    /// Pairs of vertices that must differ.
    pub(super) different: Vec<(usize, usize)>,
    pub(super) absent: Vec<Absence>,
}

/// Patterns that must not be found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Absence {
    pub(super) group: Group,
    /// The vertices of the group around it that it is about, each with its place in the inner group.
    pub(super) shared: Vec<(usize, usize)>,
}

/// What is demanded of a vertex.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct VertexPattern {
    pub(super) name: Option<String>,
    pub(super) labels: Vec<&'static str>,
    pub(super) constraints: Vec<(String, Constraint)>,
}

/// What is demanded of the relations between two vertices.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ArrowPattern {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) direction: Direction,
    pub(super) name: Option<String>,
    /// The relations, any of which is enough; all if empty.
    pub(super) relations: Vec<&'static str>,
    /// What is demanded of each relation on the way.
    pub(super) constraints: Vec<(String, Constraint)>,
    pub(super) hops: Hops,
    pub(super) span: Span,
}

/// Whether relations are followed only forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Either,
}

/// How many relations an arrow stands for, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hops {
    pub(super) min: u32,
    pub(super) max: Option<u32>,
}

impl Hops {
    pub(super) const ONE: Hops = Hops { min: 1, max: Some(1) };
}

impl Query {
    /// Parses a query. Returns all errors at once.
    pub fn parse(text: &str, schema: &Schema) -> Result<Self, Vec<Diagnostic>> {
        let (tree, found) = parse(text);
        let mut errors: Vec<_> = found.into_iter().filter(Diagnostic::is_error).collect();
        if let Some(star) = text.find("*]") {
            let at = u32::try_from(star).unwrap_or(u32::MAX);
            if let Some(error) = errors.iter_mut().find(|error| error.span.start <= at && at <= error.span.end) {
                error.hint = Some("write `{ hops: 1... }` for one or more steps: `-[:calls { hops: 1... }]->`".into());
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        if let Some(record) = tree.record() {
            let found = rule::INVALID_QUERY.at(record.span(), "a query cannot start with a record");
            return Err(vec![found.with_hint("write properties inside of a node: `(a:Agent { … })`")]);
        }
        let patterns: Vec<Pattern<'_>> = tree.patterns().collect();
        if patterns.is_empty() {
            let found = rule::INVALID_QUERY.at(Span::new(0, tree.root().span().end), "the query is empty");
            return Err(vec![found.with_hint("for example, `(a:Agent)-[:calls]->(t:Tool)`")]);
        }
        let mut reader = read::Reader::new(schema);
        let group = reader.group(&patterns, &[], &[]);
        if group.vertices.is_empty() && reader.errors.is_empty() {
            let found = rule::INVALID_QUERY.at(Span::new(0, tree.root().span().end), "the query asks for nothing");
            return Err(vec![found.with_hint("name what to look for outside of `Not`, as in `(a:Agent) [:Not | …]`")]);
        }
        match reader.errors.is_empty() {
            true => Ok(Self { columns: columns(&group), group }),
            false => {
                reader.errors.sort_by_key(|error| error.span.start);
                reader.errors.dedup();
                Err(reader.errors)
            }
        }
    }

    /// Iterates over the names of the columns of an answer, in the order in which the query names them.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }
}

/// Returns the variables that an answer shows: those that do not start with `_`, or everything if nothing has a name.
fn columns(group: &Group) -> Vec<Column> {
    let vertices = group.vertices.iter().enumerate().map(|(index, vertex)| (Part::Vertex(index), vertex.name.clone()));
    let arrows = group.arrows.iter().enumerate().map(|(index, arrow)| (Part::Arrow(index), arrow.name.clone()));
    let named = vertices.chain(arrows).filter_map(|(part, name)| Some(Column { name: name?, part }));
    let named: Vec<_> = named.collect();
    if !named.is_empty() {
        return named.into_iter().filter(|column| !column.name.starts_with('_')).collect();
    }
    let mut columns: Vec<Column> = Vec::new();
    for (index, vertex) in group.vertices.iter().enumerate() {
        let label = vertex.labels.first().map_or_else(|| "node".to_owned(), |label| label.to_lowercase());
        let same = columns.iter().filter(|column| column.name.trim_end_matches(char::is_numeric) == label).count();
        let name = if same == 0 { label } else { format!("{label}{}", same + 1) };
        columns.push(Column { name, part: Part::Vertex(index) });
    }
    columns
}
