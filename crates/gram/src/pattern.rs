//! Patterns, arrows and annotations: typed views of the tree.

use crate::{Kind, Property, Span, Syntax, Tree, Value};
use std::borrow::Cow;

impl Tree {
    /// Iterates over the patterns at the top level, in order.
    pub fn patterns(&self) -> impl Iterator<Item = Pattern<'_>> + Clone {
        self.root().children().filter_map(Pattern::cast)
    }
}

/// The shape of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatternKind {
    /// `(subject)`.
    Node,
    /// Nodes joined by arrows.
    Path,
    /// `[subject | elements]`.
    Bracket,
    /// A bare name among elements.
    Reference,
}

/// A pattern: a name, labels, properties and elements, all optional.
///
/// A view: every call reads the tree, nothing is cached.
///
/// ```
/// let (tree, _) = patter_gram::parse("[team:Team:Club {size: 2} | (ada:Person), grace]");
/// let team = tree.patterns().next().unwrap();
/// assert_eq!(team.name().as_deref(), Some("team"));
/// assert_eq!(team.labels().collect::<Vec<_>>(), ["Team", "Club"]);
/// assert_eq!(team.value("size"), Some(2.into()));
/// let names: Vec<_> = team.elements().filter_map(|element| element.name()).collect();
/// assert_eq!(names, ["ada", "grace"]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Pattern<'t> {
    /// The node that includes the annotations, if there are any.
    annotated: Option<Syntax<'t>>,
    syntax: Syntax<'t>,
}

impl<'t> Pattern<'t> {
    /// Views a node as a pattern, if it is one.
    pub fn cast(syntax: Syntax<'t>) -> Option<Self> {
        if syntax.kind() == Kind::Annotated {
            let inner = syntax.children().find(|child| child.kind().is_pattern())?;
            return Some(Self { annotated: Some(syntax), syntax: inner });
        }
        syntax.kind().is_pattern().then_some(Self { annotated: None, syntax })
    }

    /// Returns the syntax of the pattern, excluding annotations.
    pub fn syntax(self) -> Syntax<'t> {
        self.syntax
    }

    /// Returns the span of the pattern, including annotations.
    pub fn span(self) -> Span {
        self.annotated.unwrap_or(self.syntax).span()
    }

    /// Returns the shape of the pattern.
    pub fn kind(self) -> PatternKind {
        match self.syntax.kind() {
            Kind::Path => PatternKind::Path,
            Kind::Bracket => PatternKind::Bracket,
            Kind::Reference => PatternKind::Reference,
            _ => PatternKind::Node,
        }
    }

    /// Returns the syntax of the name.
    pub fn identifier(self) -> Option<Syntax<'t>> {
        match self.syntax.kind() {
            Kind::Reference => Some(self.syntax),
            _ => self.syntax.child(Kind::Identifier),
        }
    }

    /// Returns the name, without quotes.
    pub fn name(self) -> Option<Cow<'t, str>> {
        self.identifier().map(Syntax::unquoted)
    }

    /// Iterates over the labels, without colons or quotes.
    pub fn labels(self) -> impl Iterator<Item = Cow<'t, str>> + Clone {
        labels(self.syntax)
    }

    /// Returns whether the pattern has a label.
    pub fn has_label(self, label: &str) -> bool {
        self.labels().any(|found| found == label)
    }

    /// Returns the record of the pattern.
    pub fn record(self) -> Option<Syntax<'t>> {
        self.syntax.child(Kind::Record)
    }

    /// Iterates over the properties, in order.
    pub fn properties(self) -> impl Iterator<Item = Property<'t>> + Clone {
        self.record().into_iter().flat_map(Syntax::properties)
    }

    /// Returns the property with a key. If the key is repeated, the last one wins.
    pub fn property(self, key: &str) -> Option<Property<'t>> {
        self.properties().filter(|property| property.key() == key).last()
    }

    /// Returns the syntax of a property's value.
    pub fn get(self, key: &str) -> Option<Syntax<'t>> {
        self.property(key)?.value()
    }

    /// Reads the value of a property.
    pub fn value(self, key: &str) -> Option<Value> {
        Value::read(self.get(key)?)
    }

    /// Iterates over the direct inner patterns: the elements of a bracket pattern, the nodes of a path.
    pub fn elements(self) -> impl DoubleEndedIterator<Item = Pattern<'t>> + Clone {
        // Collected because the iterator is double-ended and the tree can only be walked forward.
        let elements: Vec<_> = self.syntax.children().filter_map(Pattern::cast).collect();
        elements.into_iter()
    }

    /// Iterates over the arrows of a path.
    pub fn arrows(self) -> impl Iterator<Item = Arrow<'t>> + Clone {
        self.syntax.children().filter(|child| child.kind() == Kind::Arrow).map(|syntax| Arrow { syntax })
    }

    /// Iterates over the annotations before the pattern.
    pub fn annotations(self) -> impl Iterator<Item = Annotation<'t>> + Clone {
        let children = self.annotated.into_iter().flat_map(Syntax::children);
        children.filter_map(|syntax| match syntax.kind() {
            Kind::Annotation => Some(Annotation::Property { syntax }),
            Kind::Header => Some(Annotation::Header { syntax }),
            _ => None,
        })
    }
}

/// An arrow of a path.
#[derive(Debug, Clone, Copy)]
pub struct Arrow<'t> {
    syntax: Syntax<'t>,
}

/// The stroke of an arrow. Patter treats all strokes alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArrowStroke {
    /// `--`.
    Single,
    /// `==`.
    Double,
    /// `~~`.
    Wavy,
}

impl<'t> Arrow<'t> {
    /// Views a node as an arrow, if it is one.
    pub fn cast(syntax: Syntax<'t>) -> Option<Self> {
        (syntax.kind() == Kind::Arrow).then_some(Self { syntax })
    }

    /// Returns the syntax of the arrow.
    pub fn syntax(self) -> Syntax<'t> {
        self.syntax
    }

    /// Returns the stroke of the arrow.
    pub fn stroke(self) -> ArrowStroke {
        match self.syntax.text().trim_start_matches('<').bytes().next() {
            Some(b'=') => ArrowStroke::Double,
            Some(b'~') => ArrowStroke::Wavy,
            _ => ArrowStroke::Single,
        }
    }

    /// Returns whether the arrow points at the node before it.
    pub fn points_left(self) -> bool {
        self.syntax.text().starts_with('<')
    }

    /// Returns whether the arrow points at the node after it.
    pub fn points_right(self) -> bool {
        self.syntax.text().ends_with('>')
    }

    /// Returns the arrow without its subject, such as `==>`.
    pub fn glyph(self) -> &'static str {
        match (self.stroke(), self.points_left(), self.points_right()) {
            (ArrowStroke::Single, false, false) => "--",
            (ArrowStroke::Single, false, true) => "-->",
            (ArrowStroke::Single, true, false) => "<--",
            (ArrowStroke::Single, true, true) => "<-->",
            (ArrowStroke::Double, false, false) => "==",
            (ArrowStroke::Double, false, true) => "==>",
            (ArrowStroke::Double, true, false) => "<==",
            (ArrowStroke::Double, true, true) => "<==>",
            (ArrowStroke::Wavy, false, false) => "~~",
            (ArrowStroke::Wavy, false, true) => "~~>",
            (ArrowStroke::Wavy, true, false) => "<~~",
            (ArrowStroke::Wavy, true, true) => "<~~>",
        }
    }

    /// Returns the name, without quotes.
    pub fn name(self) -> Option<Cow<'t, str>> {
        self.syntax.child(Kind::Identifier).map(Syntax::unquoted)
    }

    /// Iterates over the labels, without colons or quotes.
    pub fn labels(self) -> impl Iterator<Item = Cow<'t, str>> + Clone {
        labels(self.syntax)
    }

    /// Iterates over the properties, in order.
    pub fn properties(self) -> impl Iterator<Item = Property<'t>> + Clone {
        self.syntax.child(Kind::Record).into_iter().flat_map(Syntax::properties)
    }
}

/// An annotation before a pattern.
#[derive(Debug, Clone, Copy)]
pub enum Annotation<'t> {
    /// `@key(value)`.
    Property {
        /// The syntax of the annotation.
        syntax: Syntax<'t>,
    },
    /// `@@id:Label`.
    Header {
        /// The syntax of the annotation.
        syntax: Syntax<'t>,
    },
}

impl<'t> Annotation<'t> {
    /// Returns the syntax of the annotation.
    pub fn syntax(self) -> Syntax<'t> {
        match self {
            Annotation::Property { syntax } | Annotation::Header { syntax } => syntax,
        }
    }

    /// Returns the key of `@key(value)`.
    pub fn key(self) -> Option<Cow<'t, str>> {
        self.syntax().child(Kind::Key).map(Syntax::unquoted)
    }

    /// Returns the syntax of the value of `@key(value)`.
    pub fn value(self) -> Option<Syntax<'t>> {
        self.syntax().children().find(|child| child.kind().is_value())
    }

    /// Returns the name in `@@name:Label`.
    pub fn name(self) -> Option<Cow<'t, str>> {
        self.syntax().child(Kind::Identifier).map(Syntax::unquoted)
    }

    /// Iterates over the labels in `@@name:Label`.
    pub fn labels(self) -> impl Iterator<Item = Cow<'t, str>> + Clone {
        labels(self.syntax())
    }
}

/// Iterates over the labels of any node that has labels.
pub(crate) fn labels<'t>(syntax: Syntax<'t>) -> impl Iterator<Item = Cow<'t, str>> + Clone {
    syntax.children().filter(|child| child.kind() == Kind::Label).map(label_name)
}

/// Returns the name in a label, without colons, trivia or quotes.
pub(crate) fn label_name(label: Syntax<'_>) -> Cow<'_, str> {
    let name = label_text(label);
    crate::text::unquote(name, label.flags())
}

/// Returns the name in a label as written, with its quotes.
pub(crate) fn label_text(label: Syntax<'_>) -> &str {
    let text = label.text().trim_start_matches(':');
    if text.starts_with(|c: char| c == '`' || c == '_' || c.is_ascii_alphabetic()) {
        return text;
    }
    let comments = label.tree().comment_spans();
    let first = comments.partition_point(|comment| comment.start < label.span().start);
    let inside = comments.iter().skip(first).take_while(|comment| comment.end <= label.span().end);
    let from = inside.last().map_or(label.span().end - crate::span::offset(text.len()), |last| last.end);
    Span::new(from, label.span().end).slice(label.tree().source()).trim_start()
}
