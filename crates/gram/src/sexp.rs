//! The S-expression form used by other gram tools.

use crate::{Arrow, Kind, Span, Syntax, Tree};
use std::fmt::Write;

/// Writes a tree as an S-expression, in the shape of `tree-sitter-gram` 0.6.1: long paths nest to the right.
///
/// ```
/// let (tree, _) = patter_gram::parse("(a)-->(:B)");
/// let flat = patter_gram::to_sexp(&tree).split_whitespace().collect::<Vec<_>>().join(" ");
/// assert_eq!(
///     flat,
///     "(gram_pattern (relationship_pattern left: (node_pattern identifier: (symbol)) \
///      kind: (right_arrow) right: (node_pattern labels: (labels (symbol)))))"
/// );
/// ```
pub fn to_sexp(tree: &Tree) -> String {
    let mut writer = Writer { tree, out: String::new(), depth: 0, comment: 0 };
    writer.file();
    writer.out.push('\n');
    writer.out
}

/// The maximum indentation; without one, the output for a long path would grow quadratically.
const MAX_INDENT: usize = 60;

struct Writer<'t> {
    tree: &'t Tree,
    out: String,
    depth: usize,
    /// The next comment to write.
    comment: usize,
}

impl<'t> Writer<'t> {
    fn file(&mut self) {
        let root = self.tree.root();
        self.open("", "gram_pattern");
        for child in root.children() {
            self.comments_before(child.span().start);
            match child.kind() {
                Kind::Record => self.record("root: ", child),
                _ => self.part("", child),
            }
        }
        self.close(root.span().end);
    }

    fn open(&mut self, field: &str, name: &str) {
        if !self.out.is_empty() {
            self.out.push('\n');
            let indent = self.depth.min(MAX_INDENT) * 2;
            let _ = write!(self.out, "{:indent$}", "");
        }
        let _ = write!(self.out, "{field}({name}");
        self.depth += 1;
    }

    /// Closes an expression that ends at `end`, after the comments inside it.
    fn close(&mut self, end: u32) {
        self.comments_before(end);
        self.out.push(')');
        self.depth -= 1;
    }

    fn leaf(&mut self, field: &str, name: &str) {
        self.open(field, name);
        self.out.push(')');
        self.depth -= 1;
    }

    fn comments_before(&mut self, at: u32) {
        while let Some(span) = self.tree.comment_spans().get(self.comment).filter(|span| span.start < at) {
            let is_doc = span.slice(self.tree.source()).starts_with("/*");
            self.comment += 1;
            self.leaf("", if is_doc { "doc_comment" } else { "comment" });
        }
    }

    fn part(&mut self, field: &str, syntax: Syntax<'t>) {
        self.comments_before(syntax.span().start);
        match syntax.kind() {
            Kind::Node => self.subject_expression(field, "node_pattern", syntax),
            Kind::Bracket => self.bracket(field, syntax),
            Kind::Path => self.path(field, syntax),
            Kind::Reference => {
                self.open(field, "pattern_reference");
                self.name("identifier: ", syntax, syntax.text());
                self.close(syntax.span().end);
            }
            Kind::Annotated => self.annotated(field, syntax),
            Kind::Error => self.leaf(field, "ERROR"),
            _ => self.value(field, syntax),
        }
    }

    fn bracket(&mut self, field: &str, bracket: Syntax<'t>) {
        self.open(field, "subject_pattern");
        self.subject(bracket);
        let mut elements = bracket.children().filter(|child| child.kind().is_pattern());
        if let Some(first) = elements.next() {
            let last = elements.last().unwrap_or(first);
            self.comments_before(first.span().start);
            self.open("elements: ", "subject_pattern_elements");
            for child in bracket.children() {
                if child.kind().is_pattern() || child.kind() == Kind::Error {
                    self.part("", child);
                }
            }
            self.close(last.span().end);
        } else {
            self.errors(bracket);
        }
        self.close(bracket.span().end);
    }

    fn subject_expression(&mut self, field: &str, name: &str, syntax: Syntax<'t>) {
        self.open(field, name);
        self.subject(syntax);
        self.errors(syntax);
        self.close(syntax.span().end);
    }

    fn errors(&mut self, syntax: Syntax<'t>) {
        for error in syntax.children().filter(|child| child.kind() == Kind::Error) {
            self.part("", error);
        }
    }

    fn subject(&mut self, syntax: Syntax<'t>) {
        if let Some(identifier) = syntax.child(Kind::Identifier) {
            self.comments_before(identifier.span().start);
            self.name("identifier: ", identifier, identifier.text());
        }
        let mut labels = syntax.children().filter(|child| child.kind() == Kind::Label);
        if let Some(first) = labels.next() {
            let last = labels.last().unwrap_or(first);
            self.comments_before(first.span().start);
            self.open("labels: ", "labels");
            for label in syntax.children().filter(|child| child.kind() == Kind::Label) {
                let name = crate::pattern::label_text(label);
                self.comments_before(label.span().end);
                self.name("", label, name);
            }
            self.close(last.span().end);
        }
        if let Some(record) = syntax.child(Kind::Record) {
            self.comments_before(record.span().start);
            self.record("record: ", record);
        }
    }

    fn name(&mut self, field: &str, syntax: Syntax<'t>, text: &str) {
        match text.bytes().next() {
            Some(b'`') => self.content_expression(field, "quoted_name", syntax.span()),
            Some(b'"') => self.content_expression(field, "double_quoted_name", syntax.span()),
            Some(b'-' | b'0'..=b'9') => self.leaf(field, "integer"),
            _ => self.leaf(field, "symbol"),
        }
    }

    fn content_expression(&mut self, field: &str, name: &str, span: Span) {
        self.open(field, name);
        self.leaf("content: ", "string_content");
        self.close(span.end);
    }

    /// Writes a path of n nodes as n - 1 relationships, each nested in the right side of the previous one.
    fn path(&mut self, field: &str, path: Syntax<'t>) {
        let parts: Vec<_> = path.children().collect();
        let mut relationships = 0;
        for (index, part) in parts.iter().enumerate() {
            let arrow_follows = parts.get(index + 1).is_some_and(|next| next.kind() == Kind::Arrow);
            match part.kind() {
                Kind::Arrow => {
                    self.comments_before(part.span().start);
                    let name = match Arrow::cast(*part).map(|arrow| (arrow.points_left(), arrow.points_right())) {
                        Some((true, true)) => "bidirectional_arrow",
                        Some((true, false)) => "left_arrow",
                        Some((false, true)) => "right_arrow",
                        _ => "undirected_arrow",
                    };
                    self.subject_expression("kind: ", name, *part);
                }
                _ => {
                    let field = if relationships == 0 { field } else { "right: " };
                    if arrow_follows {
                        self.comments_before(part.span().start);
                        self.open(field, "relationship_pattern");
                        relationships += 1;
                        self.part("left: ", *part);
                    } else {
                        self.part(field, *part);
                    }
                }
            }
        }
        for _ in 0..relationships {
            self.close(path.span().end);
        }
    }

    fn annotated(&mut self, field: &str, annotated: Syntax<'t>) {
        self.open(field, "annotated_pattern");
        let is_annotation = |child: &Syntax<'t>| matches!(child.kind(), Kind::Annotation | Kind::Header);
        let last = annotated.children().filter(is_annotation).last();
        self.open("annotations: ", "annotations");
        for annotation in annotated.children().filter(is_annotation) {
            self.comments_before(annotation.span().start);
            if annotation.kind() == Kind::Header {
                self.subject_expression("", "identified_annotation", annotation);
            } else {
                self.property("", "property_annotation", annotation);
            }
        }
        self.close(last.map_or(annotated.span().start, |last| last.span().end));
        for child in annotated.children().filter(|child| !is_annotation(child)) {
            self.part("elements: ", child);
        }
        self.close(annotated.span().end);
    }

    fn record(&mut self, field: &str, record: Syntax<'t>) {
        self.open(field, "record");
        self.properties(record, "record_property");
    }

    fn properties(&mut self, record: Syntax<'t>, name: &str) {
        for child in record.children() {
            self.comments_before(child.span().start);
            match child.kind() {
                Kind::Property => self.property("", name, child),
                _ => self.part("", child),
            }
        }
        self.close(record.span().end);
    }

    fn property(&mut self, field: &str, name: &str, property: Syntax<'t>) {
        self.open(field, name);
        for child in property.children() {
            self.comments_before(child.span().start);
            match child.kind() {
                Kind::Key => self.name("key: ", child, child.text()),
                Kind::Error => self.leaf("", "ERROR"),
                _ => self.value("value: ", child),
            }
        }
        self.close(property.span().end);
    }

    fn value(&mut self, field: &str, value: Syntax<'t>) {
        match value.kind() {
            Kind::String => self.content_expression(field, "string_literal", value.span()),
            Kind::Fence => {
                self.open(field, "string_literal");
                self.fence_content(value);
            }
            Kind::Tagged => {
                self.open(field, "tagged_string");
                if let Some(tag) = value.child(Kind::Tag) {
                    self.comments_before(tag.span().start);
                    self.leaf("tag: ", "symbol");
                }
                if value.text().starts_with("```") {
                    self.fence_content(value);
                } else {
                    self.comments_before(value.span().end);
                    self.leaf("content: ", "string_content");
                    self.close(value.span().end);
                }
            }
            Kind::Range => {
                self.open(field, "range");
                for bound in value.children() {
                    self.comments_before(bound.span().start);
                    let is_lower = bound.span().start == value.span().start;
                    self.value(if is_lower { "lower: " } else { "upper: " }, bound);
                }
                self.close(value.span().end);
            }
            Kind::Array => {
                self.open(field, "array");
                for item in value.children() {
                    self.part("", item);
                }
                self.close(value.span().end);
            }
            Kind::Map => {
                self.open(field, "map");
                self.properties(value, "map_entry");
            }
            Kind::Integer => self.leaf(field, "integer"),
            Kind::Decimal => self.leaf(field, "decimal"),
            Kind::Hexadecimal => self.leaf(field, "hexadecimal"),
            Kind::Octal => self.leaf(field, "octal"),
            Kind::Measurement => self.leaf(field, "measurement"),
            Kind::Boolean => self.leaf(field, "boolean_literal"),
            Kind::Symbol => self.leaf(field, "symbol"),
            _ => self.leaf(field, "ERROR"),
        }
    }

    /// Writes the content of a fence. Other tools have no node for blank content.
    fn fence_content(&mut self, fence: Syntax<'t>) {
        self.comments_before(fence.span().end);
        if fence.fence_content().is_some_and(|content| !content.trim().is_empty()) {
            self.leaf("content: ", "string_content");
        }
        self.close(fence.span().end);
    }
}
