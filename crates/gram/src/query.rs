//! Walking, folding and matching patterns.

use crate::{Arrow, Diagnostic, Pattern, PatternKind, Tree, Value, parse};
use std::fmt;

impl<'t> Pattern<'t> {
    /// Iterates over this pattern and all patterns inside it, in reading order.
    ///
    /// Combine it with the usual adaptors, such as `filter`, `find` and `map`.
    ///
    /// ```
    /// let (tree, _) = patter_gram::parse("[a:Agent | [t:Tool | (x::Text)==>(::Int)], other]");
    /// let agent = tree.patterns().next().unwrap();
    /// let tool = agent.walk().find(|pattern| pattern.has_label("Tool")).unwrap();
    /// assert_eq!(tool.name().as_deref(), Some("t"));
    /// assert_eq!(agent.walk().count(), 6);
    /// ```
    pub fn walk(self) -> impl Iterator<Item = Pattern<'t>> {
        let inner = self.syntax().descendants().skip(1).filter(|part| part.kind().is_pattern());
        std::iter::once(self).chain(inner.filter_map(Pattern::cast))
    }

    /// Computes a result bottom-up: `step` receives a pattern and the results of its elements.
    ///
    /// ```
    /// let (tree, _) = patter_gram::parse("[a | [b | (c)], (d)]");
    /// let depth = tree.patterns().next().unwrap().fold(&mut |_, inner: Vec<u32>| {
    ///     1 + inner.into_iter().max().unwrap_or(0)
    /// });
    /// assert_eq!(depth, 3);
    /// ```
    pub fn fold<R>(self, step: &mut impl FnMut(Pattern<'t>, Vec<R>) -> R) -> R {
        // Patterns nest at most `MAX_DEPTH` deep, so recursion is safe.
        let inner = self.elements().map(|element| element.fold(step)).collect();
        step(self, inner)
    }
}

impl Tree {
    /// Iterates over all patterns, top-level and nested, in reading order.
    pub fn walk(&self) -> impl Iterator<Item = Pattern<'_>> {
        self.patterns().flat_map(Pattern::walk)
    }

    /// Iterates over all patterns that match a query, in reading order.
    ///
    /// ```
    /// use patter_gram::{Query, parse};
    /// let (tree, _) = parse("[a:Agent | [t:Tool | ()==>(::Int)]] [b:Agent | x]");
    /// let query = Query::parse("[:Agent | [:Tool]]").unwrap();
    /// let names: Vec<_> = tree.find(&query).filter_map(|agent| agent.name()).collect();
    /// assert_eq!(names, ["a"]);
    /// ```
    pub fn find(&self, query: &Query) -> impl Iterator<Item = Pattern<'_>> {
        self.walk().filter(|pattern| query.matches(*pattern))
    }

    /// Replaces patterns: `step` receives every pattern, outermost first, and returns new text for those it changes.
    /// Everything else is kept, including comments. The inside of a replaced pattern is not visited.
    ///
    /// ```
    /// let (tree, _) = patter_gram::parse("[a | (b), c] // c is old");
    /// let (tree, _) = tree.map(|pattern| {
    ///     (pattern.name().as_deref() == Some("c")).then(|| "(d:New)".to_owned())
    /// });
    /// assert_eq!(tree.to_string(), "[a | (b), (d:New)] // c is old");
    /// ```
    pub fn map(&self, mut step: impl FnMut(Pattern<'_>) -> Option<String>) -> (Tree, Vec<Diagnostic>) {
        let mut edit = self.edit();
        let mut replaced_up_to = 0;
        for pattern in self.walk() {
            if pattern.span().start < replaced_up_to {
                continue;
            }
            if let Some(text) = step(pattern) {
                replaced_up_to = pattern.span().end;
                edit.replace(pattern, &text);
            }
        }
        edit.apply()
    }
}

/// A pattern to search for, written as a pattern.
///
/// A pattern matches if it has the same shape, the name (if the query has one), all labels and all properties of the
/// query, and, in order, an element for each element of the query. Extra parts are allowed, except in paths, whose
/// nodes and arrow directions must correspond one to one. The property value `_` in a query matches any value.
///
/// ```
/// use patter_gram::{Query, parse};
/// let (tree, _) = parse("(age::Int {default: 18})==>(::String)");
/// let path = tree.patterns().next().unwrap();
/// assert!(Query::parse("(::Int {default: _})-->()").unwrap().matches(path));
/// assert!(!Query::parse("(::Int)-->()-->()").unwrap().matches(path));
/// ```
#[derive(Debug, Clone)]
pub struct Query {
    tree: Tree,
}

impl Query {
    /// Parses a query, which is a single pattern.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let (tree, diagnostics) = parse(text);
        if let Some(first) = diagnostics.into_iter().find(Diagnostic::is_error) {
            return Err(QueryError::Malformed(first));
        }
        match tree.patterns().count() {
            1 => Ok(Self { tree }),
            count => Err(QueryError::NotSinglePattern { count }),
        }
    }

    /// Returns whether a pattern matches.
    pub fn matches(&self, pattern: Pattern<'_>) -> bool {
        self.tree.patterns().next().is_some_and(|query| matches(query, pattern))
    }
}

fn matches(query: Pattern<'_>, pattern: Pattern<'_>) -> bool {
    let same_shape = query.kind() == pattern.kind();
    let same_name = query.name().is_none_or(|name| pattern.name() == Some(name));
    let has_labels = query.labels().all(|label| pattern.has_label(&label));
    let has_properties = query.properties().all(|wanted| {
        let found = pattern.value(&wanted.key());
        let value = wanted.value().and_then(Value::read);
        let is_any = value == Some(Value::Symbol("_".into()));
        found.is_some() && (is_any || found == value)
    });
    if !(same_shape && same_name && has_labels && has_properties) {
        return false;
    }
    if query.kind() == PatternKind::Path {
        return query.elements().count() == pattern.elements().count()
            && query.elements().zip(pattern.elements()).all(|(query, node)| matches(query, node))
            && query.arrows().zip(pattern.arrows()).all(|(query, arrow)| same_direction(query, arrow));
    }
    // Each element of the query matches the first candidate after the previous match. Greedy matching is enough: the
    // earliest match leaves the most candidates for the rest.
    let mut elements = pattern.elements();
    query.elements().all(|wanted| elements.any(|element| matches(wanted, element)))
}

fn same_direction(query: Arrow<'_>, arrow: Arrow<'_>) -> bool {
    query.points_left() == arrow.points_left() && query.points_right() == arrow.points_right()
}

/// An error that occurs when a query is parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueryError {
    /// The text is not well-formed.
    Malformed(Diagnostic),
    /// The text is not a single pattern.
    NotSinglePattern {
        /// The number of patterns in the text.
        count: usize,
    },
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::Malformed(diagnostic) => write!(f, "{}", diagnostic.message),
            QueryError::NotSinglePattern { count } => write!(f, "a query must be a single pattern, found {count}"),
        }
    }
}

impl std::error::Error for QueryError {}
