//! Reading queries, and checking them against a schema.

use super::{Absence, ArrowPattern, Direction, Group, Hops, MAX_HOPS, MAX_PARTS, VertexPattern};
use crate::query::constraint::Constraint;
use crate::query::schema::{PropertySchema, Schema};
use crate::rule;
use crate::text::nearest;
use patter_gram::{Arrow, Diagnostic, Kind, Number, Pattern, PatternKind, Property, Span, Syntax, Value};

pub(super) struct Reader<'s> {
    schema: &'s Schema,
    pub(super) errors: Vec<Diagnostic>,
    parts: usize,
}

impl<'s> Reader<'s> {
    pub(super) fn new(schema: &'s Schema) -> Self {
        Self { schema, errors: Vec::new(), parts: 0 }
    }

    fn report(&mut self, span: Span, message: impl Into<String>, hint: impl Into<String>) {
        self.errors.push(rule::INVALID_QUERY.at(span, message.into()).with_hint(hint.into()));
    }

    /// Reads patterns that must be found together. `outer` are the named vertices of the group around it, and `arrows` the
    /// names of arrows.
    pub(super) fn group(&mut self, patterns: &[Pattern<'_>], outer: &[VertexPattern], arrow_names: &[String]) -> Group {
        let mut group = Group::default();
        // A group inside this one may be about a vertex that only the group around this one names.
        for pattern in patterns.iter().flat_map(|pattern| pattern.walk()) {
            let known = outer.iter().find(|vertex| vertex.name.as_deref() == pattern.name().as_deref());
            if let (Some(known), PatternKind::Node | PatternKind::Reference) = (known, pattern.kind()) {
                let is_new = |vertex: &VertexPattern| vertex.name != known.name;
                if known.name.is_some() && group.vertices.iter().all(is_new) {
                    let labels = known.labels.clone();
                    group.vertices.push(VertexPattern { name: known.name.clone(), labels, ..VertexPattern::default() });
                }
            }
        }
        let inner = |pattern: &Pattern<'_>| pattern.kind() == PatternKind::Bracket && pattern.has_label("Not");
        for pattern in patterns.iter().filter(|pattern| !inner(pattern)) {
            self.pattern(&mut group, *pattern);
        }
        for pattern in patterns.iter().filter(|pattern| inner(pattern)) {
            self.absence(&mut group, *pattern, arrow_names);
        }
        self.check_names(&group, patterns, arrow_names);
        for arrow in &group.arrows {
            self.check_ends(&group, arrow);
        }
        group
    }

    fn pattern(&mut self, group: &mut Group, pattern: Pattern<'_>) {
        if let Some(annotation) = pattern.annotations().next() {
            let span = annotation.syntax().span();
            self.report(span, "a query cannot have annotations", "remove the annotation");
        }
        match pattern.kind() {
            PatternKind::Node | PatternKind::Reference => {
                self.vertex(group, pattern);
            }
            PatternKind::Path => self.path(group, pattern),
            PatternKind::Bracket if pattern.has_label("Different") => self.different(group, pattern),
            PatternKind::Bracket => {
                let labels: Vec<_> = pattern.labels().collect();
                let near = labels.iter().find_map(|label| nearest(label, ["Not", "Different"]));
                let hint = match near {
                    Some(near) => format!("did you mean `[:{near} | …]`?"),
                    None => "write nodes and arrows: `(a:Agent)-[:calls]->(t:Tool)`".to_owned(),
                };
                let span = crate::declare::head_span(pattern);
                self.report(span, "brackets in a query are `[:Not | …]` or `[:Different | …]`", hint);
            }
        }
    }

    /// Reads `[:Not | …]`.
    fn absence(&mut self, group: &mut Group, pattern: Pattern<'_>, arrow_names: &[String]) {
        let elements: Vec<_> = pattern.elements().collect();
        self.check_bracket(pattern, "Not", elements.is_empty());
        let mut names = arrow_names.to_vec();
        names.extend(group.arrows.iter().filter_map(|arrow| arrow.name.clone()));
        let inner = self.group(&elements, &group.vertices, &names);
        let shared = inner.vertices.iter().enumerate().filter_map(|(index, vertex)| {
            let outer = group.vertices.iter().position(|outer| outer.name.is_some() && outer.name == vertex.name)?;
            Some((outer, index))
        });
        let shared = shared.collect();
        group.absent.push(Absence { group: inner, shared });
    }

    /// Reads `[:Different | a, b]`.
    fn different(&mut self, group: &mut Group, pattern: Pattern<'_>) {
        let elements: Vec<_> = pattern.elements().collect();
        self.check_bracket(pattern, "Different", elements.len() < 2);
        let mut vertices = Vec::new();
        for element in elements {
            match element.kind() {
                PatternKind::Node | PatternKind::Reference => vertices.push(self.vertex(group, element)),
                PatternKind::Path | PatternKind::Bracket => {
                    self.report(element.span(), "`Different` lists names", "for example, `[:Different | a, b]`");
                }
            }
        }
        for (index, one) in vertices.iter().enumerate() {
            group.different.extend(vertices.iter().skip(index + 1).map(|other| (*one, *other)));
        }
    }

    fn check_bracket(&mut self, pattern: Pattern<'_>, label: &str, is_short: bool) {
        let is_plain = pattern.labels().count() == 1 && pattern.name().is_none() && pattern.record().is_none();
        let span = crate::declare::head_span(pattern);
        if !is_plain {
            let message = format!("`{label}` has no name, no other labels and no properties");
            self.report(span, message, format!("write `[:{label} | …]`"));
        } else if is_short {
            let example = if label == "Not" { "[:Not | (a)-[:calls]->(:Tool)]" } else { "[:Different | a, b]" };
            self.report(span, format!("`{label}` has too few elements"), format!("for example, `{example}`"));
        }
    }

    /// Reads a node, and returns the vertex of the group that it stands for.
    fn vertex(&mut self, group: &mut Group, pattern: Pattern<'_>) -> usize {
        let name = pattern.name().map(std::borrow::Cow::into_owned).filter(|name| name != "_");
        let known = group.vertices.iter().position(|vertex| name.is_some() && vertex.name == name);
        let index = known.unwrap_or(group.vertices.len());
        if known.is_none() {
            self.count(pattern.span());
            group.vertices.push(VertexPattern { name, ..VertexPattern::default() });
        }
        let mut labels = Vec::new();
        let parts = pattern.syntax().children().filter(|part| part.kind() == Kind::Label);
        for (syntax, label) in parts.zip(pattern.labels()) {
            match self.schema.label(&label) {
                Some(known) => labels.push(known.name),
                None => self.unknown("label", &label, syntax.span(), self.schema.labels.iter().map(|it| it.name)),
            }
        }
        let Some(vertex) = group.vertices.get_mut(index) else { return index };
        labels.retain(|label| !vertex.labels.contains(label));
        vertex.labels.extend(labels);
        let known = vertex_properties(self.schema, &vertex.labels);
        let noun = vertex.labels.first().map_or("", |label| *label).to_owned();
        let found: Vec<_> =
            pattern.properties().filter_map(|property| self.property(property, &known, &noun, false)).collect();
        if let Some(vertex) = group.vertices.get_mut(index) {
            vertex.constraints.extend(found);
        }
        index
    }

    fn path(&mut self, group: &mut Group, pattern: Pattern<'_>) {
        let vertices: Vec<_> = pattern.elements().map(|node| self.vertex(group, node)).collect();
        for (ends, arrow) in vertices.windows(2).zip(pattern.arrows()) {
            let [left, right] = ends else { continue };
            let read = self.arrow(arrow, *left, *right);
            group.arrows.extend(read);
        }
    }

    fn arrow(&mut self, arrow: Arrow<'_>, left: usize, right: usize) -> Option<ArrowPattern> {
        self.count(arrow.syntax().span());
        let direction = match arrow.points_left() == arrow.points_right() {
            true => Direction::Either,
            false => Direction::Forward,
        };
        let (from, to) = if arrow.points_left() && !arrow.points_right() { (right, left) } else { (left, right) };
        let mut relations = Vec::new();
        let parts = arrow.syntax().children().filter(|part| part.kind() == Kind::Label);
        let mut is_known = true;
        for (syntax, label) in parts.zip(arrow.labels()) {
            match self.schema.relation(&label) {
                Some(known) => relations.push(known.name),
                None => {
                    is_known = false;
                    self.unknown("relation", &label, syntax.span(), self.schema.relations.iter().map(|it| it.name));
                }
            }
        }
        let known = relation_properties(self.schema, &relations);
        let noun = relations.first().map_or("", |name| *name).to_owned();
        let mut hops = Hops::ONE;
        let mut constraints = Vec::new();
        for property in arrow.properties() {
            match property.key().as_ref() {
                "hops" => hops = self.hops(property)?,
                _ => constraints.extend(self.property(property, &known, &noun, true)),
            }
        }
        let name = arrow.name().map(std::borrow::Cow::into_owned).filter(|name| name != "_");
        let span = arrow.syntax().span();
        if let Some(name) = name.as_ref().filter(|_| hops != Hops::ONE) {
            let message = format!("`{name}` would stand for several relations");
            self.report(span, message, "remove the name, or `hops`");
        }
        let arrow = ArrowPattern { from, to, direction, name, relations, constraints, hops, span };
        is_known.then_some(arrow)
    }

    /// Reads `hops`, the number of steps.
    fn hops(&mut self, property: Property<'_>) -> Option<Hops> {
        let span = property.syntax().span();
        let count = |number: Option<&Number>| match number {
            Some(Number::Integer(whole)) => whole.to_i64().and_then(|whole| u32::try_from(whole).ok()).ok_or(()),
            _ => Err(()),
        };
        let hops = match property.value().and_then(Value::read) {
            Some(Value::Integer(whole)) => {
                count(Some(&Number::Integer(whole))).map(|count| Hops { min: count, max: Some(count) })
            }
            Some(Value::Range { lower, upper }) => {
                let min = lower.as_ref().map_or(Ok(1), |lower| count(Some(lower)));
                let max = upper.as_ref().map_or(Ok(None), |upper| count(Some(upper)).map(Some));
                min.and_then(|min| max.map(|max| Hops { min, max }))
            }
            _ => Err(()),
        };
        match hops {
            Ok(hops) if hops.max.is_some_and(|max| max < hops.min) => {
                self.report(span, "`hops` ends before it starts", "write the smaller number first");
                None
            }
            Ok(hops) if hops.min.max(hops.max.unwrap_or(0)) > MAX_HOPS => {
                let message = format!("`hops` is limited to {MAX_HOPS}");
                self.report(span, message, "leave the end open for any number of steps: `hops: 1...`");
                None
            }
            Ok(hops) => Some(hops),
            Err(()) => {
                self.report(
                    span,
                    "`hops` must be a whole number or a range of them",
                    "for example, `hops: 2`, `hops: 1..3`, or `hops: 1...` for one or more",
                );
                None
            }
        }
    }

    /// Reads a property, and reports one that the schema does not have.
    fn property(
        &mut self,
        property: Property<'_>,
        known: &[PropertySchema],
        noun: &str,
        is_relation: bool,
    ) -> Option<(String, Constraint)> {
        let key = property.key();
        if !known.iter().any(|(name, _)| *name == key) {
            let span = property.key_syntax().map_or(property.syntax().span(), Syntax::span);
            let names = known.iter().map(|(name, _)| *name).chain(is_relation.then_some("hops"));
            let hint = match nearest(&key, names.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if noun.is_empty() => "`patter query --schema` lists all properties".to_owned(),
                None => format!("known properties: {}", names.collect::<Vec<_>>().join(", ")),
            };
            let message = match (noun, is_relation) {
                ("", false) => format!("no node has a property `{key}`"),
                ("", true) => format!("no relation has a property `{key}`"),
                _ => format!("`{noun}` has no property `{key}`"),
            };
            self.report(span, message, hint);
            return None;
        }
        match Constraint::read(property.value()?) {
            Ok(constraint) => Some((key.into_owned(), constraint)),
            Err(error) => {
                self.report(error.span, error.message, error.hint);
                None
            }
        }
    }

    fn unknown(&mut self, noun: &str, name: &str, span: Span, known: impl Iterator<Item = &'static str> + Clone) {
        let hint = match nearest(name, known.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the {noun}s are {}", known.collect::<Vec<_>>().join(", ")),
        };
        self.report(span, format!("there is no {noun} `{name}`"), hint);
    }

    fn count(&mut self, span: Span) {
        self.parts += 1;
        if self.parts == MAX_PARTS + 1 {
            let message = format!("the query has more than {MAX_PARTS} nodes and arrows");
            self.report(span, message, "ask several questions instead");
        }
    }

    /// Reports names that stand for a vertex and a relation, or for several relations.
    fn check_names(&mut self, group: &Group, patterns: &[Pattern<'_>], outer: &[String]) {
        let mut seen: Vec<&String> = outer.iter().collect();
        for arrow in &group.arrows {
            let Some(name) = &arrow.name else { continue };
            let is_vertex = group.vertices.iter().any(|vertex| vertex.name.as_ref() == Some(name));
            if is_vertex || seen.contains(&name) {
                let message = format!("`{name}` already stands for something else");
                self.report(arrow.span, message, "give the relation another name");
            }
            seen.push(name);
        }
        for pattern in patterns.iter().flat_map(|pattern| pattern.walk()) {
            let name = pattern.name().filter(|_| pattern.kind() != PatternKind::Bracket);
            if name.is_some_and(|name| outer.iter().any(|other| *other == name)) {
                let name = pattern.name().unwrap_or_default();
                let message = format!("`{name}` stands for a relation");
                self.report(pattern.span(), message, "give the node another name");
            }
        }
    }

    /// Reports an arrow that no relation can match, because none leads from one label to the other.
    fn check_ends(&mut self, group: &Group, arrow: &ArrowPattern) {
        let labels = |index: usize| group.vertices.get(index).map_or(&[][..], |vertex| vertex.labels.as_slice());
        let from = labels(arrow.from);
        let to = labels(arrow.to);
        let is_one = |labels: &[&str], end: &str| labels.is_empty() || labels.iter().any(|label| kind(label) == end);
        let relations = self.schema.relations.iter();
        let relations = relations.filter(|it| arrow.relations.is_empty() || arrow.relations.contains(&it.name));
        let ends: Vec<_> = relations.flat_map(|relation| relation.ends).collect();
        let is_single = arrow.hops == Hops::ONE;
        let leads = |from: &[&str], to: &[&str]| match is_single {
            true => ends.iter().any(|(start, end)| is_one(from, start) && is_one(to, end)),
            false => {
                arrow.hops.min == 0
                    || (ends.iter().any(|(start, _)| is_one(from, start))
                        && ends.iter().any(|(_, end)| is_one(to, end)))
            }
        };
        let is_possible = leads(from, to) || (arrow.direction == Direction::Either && leads(to, from));
        if is_possible {
            return;
        }
        let show = |labels: &[&str]| labels.first().map_or_else(|| "node".to_owned(), |label| (*label).to_owned());
        let name = arrow.relations.first().map_or_else(|| "relation".to_owned(), |name| format!("`{name}`"));
        let message = format!("no {name} leads from {} to {}", show(from), show(to));
        let hint = match ends.first() {
            _ if leads(to, from) => "turn the arrow around".to_owned(),
            Some((start, end)) => {
                let relation = arrow.relations.first().copied().unwrap_or_default();
                format!(
                    "for example, `(:{start})-[:{relation}]->(:{end})`; `patter query --schema` lists all relations"
                )
            }
            None => "`patter query --schema` lists all relations".to_owned(),
        };
        self.report(arrow.span, message, hint);
    }
}

/// Returns the label that the relations of a schema use for a vertex.
fn kind(label: &str) -> &str {
    if matches!(label, "Delegate" | "Workflow" | "Pipe") { "Agent" } else { label }
}

/// Returns the properties that a vertex with some labels may have.
fn vertex_properties(schema: &Schema, labels: &[&str]) -> Vec<PropertySchema> {
    let is_asked = |name: &str| labels.is_empty() || labels.iter().any(|label| kind(label) == name);
    let labels = schema.labels.iter().filter(|label| is_asked(label.name));
    without_repeats(labels.flat_map(|label| label.properties))
}

/// Returns the properties that some relations may have.
fn relation_properties(schema: &Schema, names: &[&str]) -> Vec<PropertySchema> {
    let relations = schema.relations.iter().filter(|it| names.is_empty() || names.contains(&it.name));
    without_repeats(relations.flat_map(|relation| relation.properties))
}

fn without_repeats<'p>(properties: impl Iterator<Item = &'p PropertySchema>) -> Vec<PropertySchema> {
    let mut found: Vec<PropertySchema> = Vec::new();
    for property in properties {
        if !found.iter().any(|(name, _)| *name == property.0) {
            found.push(*property);
        }
    }
    found
}
