//! Declarations of workflows: paths of steps.
//!
//! The name of a node is the name of a step, and its label what the step calls: `(draft:writer)` calls `writer`, and
//! `(writer)` calls what it is named after. An arrow is an edge: what the step before it returned goes to the step after it.

use super::DeclarationKind;
use super::property::{duration, unknown_properties};
use crate::rule;
use crate::text::{milliseconds, nearest};
use crate::types::signature::value_to_json;
use indexmap::IndexMap;
use patter_gram::{Arrow, Diagnostic, Kind, Pattern, PatternKind, Property, Span, Syntax, Value};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::collections::HashSet;

/// The label of a step that calls something for each item of a list.
const EACH: &str = "Each";
/// The label of a step that a person performs.
const HUMAN: &str = "Human";
/// The label of a step that ends the workflow with a value.
const GIVE: &str = "Give";
/// The labels that steps can have besides what they call.
const STEP_LABELS: [&str; 3] = [EACH, HUMAN, GIVE];
/// The labels of edges.
const EDGE_LABELS: [&str; 5] = ["When", "Otherwise", "Failed", "Exhausted", "Handoff"];
/// The most items of an `Each` step, if it does not say how many.
pub const DEFAULT_ITEMS: u32 = 100;
/// How many items of an `Each` step are worked on at once, if it does not say how many.
pub const DEFAULT_WIDTH: u32 = 4;
/// The condition of an edge that is about the whole value, not one of its fields.
pub const WHOLE_VALUE: &str = "is";

/// Returns whether a pattern declares a workflow, or a pipe, which is one.
pub fn is_workflow(pattern: Pattern<'_>) -> bool {
    DeclarationKind::from_pattern(pattern) == Some(DeclarationKind::Agent)
        && pattern
            .labels()
            .find(|label| DeclarationKind::LABELS.contains(&label.as_ref()))
            .is_some_and(|label| matches!(label.as_ref(), "Workflow" | "Pipe"))
}

/// Returns the patterns that say what an agent may call: its elements, or the steps of a workflow, each callee once.
pub(crate) fn callable_elements(pattern: Pattern<'_>) -> Vec<Pattern<'_>> {
    if !is_workflow(pattern) {
        return pattern.elements().filter(|element| element.kind() != PatternKind::Node).collect();
    }
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let spec = WorkflowSpec::read(pattern);
    for declared in pattern.elements().filter(|element| element.kind() == PatternKind::Bracket) {
        seen.extend(declared.name());
        found.push(declared);
    }
    let nodes = spec.steps.iter().map(|step| step.node);
    found.extend(nodes.filter(|node| callee(*node).is_some_and(|callee| seen.insert(callee))));
    found
}

/// Returns what a node calls as a step of a workflow.
pub(crate) fn callee(node: Pattern<'_>) -> Option<Cow<'_, str>> {
    let mut labels = node.labels().filter(|label| !STEP_LABELS.contains(&label.as_ref()));
    match labels.next() {
        Some(label) => Some(label),
        None if node.labels().next().is_none() => node.name().filter(|name| !name.trim().is_empty()),
        None => None,
    }
}

/// A workflow as it is written, with what is wrong with its notation.
#[derive(Debug, Clone)]
pub struct WorkflowSpec<'p> {
    /// The steps, in the order in which they are first mentioned.
    pub steps: Vec<StepSpec<'p>>,
    /// The edges, in order.
    pub edges: Vec<EdgeSpec>,
    /// What is wrong with steps and edges by themselves.
    pub diagnostics: Vec<Diagnostic>,
}

/// A step of a workflow.
#[derive(Debug, Clone)]
pub struct StepSpec<'p> {
    /// The name.
    pub name: String,
    /// The node that declares the step: the one with a label or a record, or else the first one.
    pub node: Pattern<'p>,
    /// What the step does.
    pub kind: StepKind,
    /// What it calls that with, if it says so.
    pub input: Option<InputSpec>,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum StepKind {
    /// It calls an agent, a tool or a workflow.
    Call {
        /// The name of that.
        callee: String,
    },
    /// It calls something for each item of a list.
    Each {
        /// The name of that.
        callee: String,
        /// The placeholder of the list, as it is written.
        of: Text,
        /// How many items are worked on at once.
        width: u32,
        /// The most items.
        at_most: u32,
    },
    /// It asks a person.
    Human {
        /// The question, a text with placeholders.
        question: Text,
        /// How long the person has, in milliseconds.
        expires_ms: Option<u64>,
        /// The type of the answer, as it is written.
        returns: Option<Text>,
    },
    /// It ends the workflow with a value.
    Give {
        /// The value, a text with placeholders.
        value: Text,
    },
}

/// A text in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The text.
    pub text: String,
    /// Where it is.
    pub span: Span,
}

/// What a step is called with, if it is not the value of the step before it.
#[derive(Debug, Clone, PartialEq)]
pub enum InputSpec {
    /// `ask`: a text with placeholders.
    Ask(Text),
    /// `with`: arguments by name, each with its placeholder or text.
    With {
        /// The arguments.
        fields: IndexMap<String, Text>,
        /// Where they are.
        span: Span,
    },
}

impl InputSpec {
    /// Returns the texts.
    pub fn texts(&self) -> Vec<&Text> {
        match self {
            InputSpec::Ask(text) => vec![text],
            InputSpec::With { fields, .. } => fields.values().collect(),
        }
    }
}

/// An edge of a workflow.
#[derive(Debug, Clone)]
pub struct EdgeSpec {
    /// The index of the step that it starts from.
    pub from: usize,
    /// The index of the step that it leads to.
    pub to: usize,
    /// When it is taken.
    pub kind: EdgeKind,
    /// The condition, if there is one.
    pub condition: Option<ConditionSpec>,
    /// How often it may be taken, if it leads back.
    pub at_most: Option<u32>,
    /// What the step is called with when it is reached along this edge.
    pub input: Option<InputSpec>,
    /// Where it is.
    pub span: Span,
}

/// When an edge is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeKind {
    /// When the step succeeded.
    Then,
    /// When the value of the step meets a condition.
    When,
    /// When no condition of the other edges is met.
    Otherwise,
    /// When the step failed.
    Failed,
    /// When an edge back from the step was taken as often as it may be.
    Exhausted,
    /// When the step succeeded; the next step continues its conversation.
    Handoff,
}

/// The condition of an edge.
#[derive(Debug, Clone)]
pub struct ConditionSpec {
    /// The field, or [`WHOLE_VALUE`].
    pub field: String,
    /// The values that meet it.
    pub values: Vec<Json>,
    /// Where the values are.
    pub span: Span,
    /// Where the field is.
    pub key_span: Span,
}

impl<'p> WorkflowSpec<'p> {
    /// Reads the steps and edges of a workflow.
    ///
    /// ```
    /// use patter_core::{declare::workflow::WorkflowSpec, gram::parse};
    /// let (tree, _) = parse("[w:Workflow | (plan)-->(write:author)-[:Failed]->(help:Human {question: 'What now?'})]");
    /// let spec = WorkflowSpec::read(tree.patterns().next().unwrap());
    /// let names: Vec<_> = spec.steps.iter().map(|step| step.name.as_str()).collect();
    /// assert_eq!(names, ["plan", "write", "help"]);
    /// assert_eq!((spec.edges.len(), spec.diagnostics.len()), (2, 0));
    /// ```
    pub fn read(pattern: Pattern<'p>) -> Self {
        let mut reader = Reader { nodes: IndexMap::new(), diagnostics: Vec::new() };
        let mut edges = Vec::new();
        for element in pattern.elements() {
            match element.kind() {
                PatternKind::Node => drop(reader.add_node(element)),
                PatternKind::Path => reader.read_path(element, &mut edges),
                PatternKind::Bracket if DeclarationKind::from_pattern(element).is_some() => {}
                PatternKind::Bracket | PatternKind::Reference => {
                    let message = "a workflow consists of paths of steps";
                    let found = rule::BAD_STEP.at(element.span(), message);
                    reader.diagnostics.push(found.with_hint("write `(first)-->(second)`"));
                }
            }
        }
        let Reader { nodes, mut diagnostics } = reader;
        let mut steps = Vec::new();
        for (name, node) in nodes {
            match read_step(&name, node, &mut diagnostics) {
                Some(step) => steps.push(step),
                // The edges count steps, so an invalid one keeps its place.
                None => {
                    let kind = StepKind::Call { callee: name.clone() };
                    steps.push(StepSpec { name, node, kind, input: None });
                }
            }
        }
        for step in steps.iter().filter(|step| matches!(step.kind, StepKind::Human { .. })) {
            if steps.iter().any(|other| other.callee() == Some(step.name.as_str())) {
                let message = format!("`{}` is asked of a person here, and called elsewhere", step.name);
                diagnostics.push(rule::BAD_STEP.at(step.node.span(), message).with_hint("give the step another name"));
            }
        }
        Self { steps, edges, diagnostics }
    }

    /// Iterates over the indices of the edges that start from a step.
    pub fn edges_from(&self, step: usize) -> impl Iterator<Item = &EdgeSpec> {
        self.edges.iter().filter(move |edge| edge.from == step)
    }
}

impl StepSpec<'_> {
    /// Returns the span of the name, to mark the step.
    pub fn span(&self) -> Span {
        self.node.identifier().map_or(self.node.span(), Syntax::span)
    }

    /// Returns what the step calls, if it calls something.
    pub fn callee(&self) -> Option<&str> {
        match &self.kind {
            StepKind::Call { callee } | StepKind::Each { callee, .. } => Some(callee),
            StepKind::Human { .. } | StepKind::Give { .. } => None,
        }
    }
}

struct Reader<'p> {
    nodes: IndexMap<String, Pattern<'p>>,
    diagnostics: Vec<Diagnostic>,
}

impl<'p> Reader<'p> {
    /// Adds a node, and returns the index of its step.
    fn add_node(&mut self, node: Pattern<'p>) -> Option<usize> {
        let Some(name) = node.name().filter(|name| !name.trim().is_empty()) else {
            let found = rule::BAD_STEP.at(node.span(), "this step has no name");
            self.diagnostics.push(found.with_hint("write the name of an agent, a tool or a workflow: `(writer)`"));
            return None;
        };
        let name = name.into_owned();
        if matches!(name.as_str(), "takes" | "item") {
            let found = rule::BAD_STEP.at(node.span(), format!("a step cannot be named `{name}`"));
            let meaning = if name == "takes" { "the input of the workflow" } else { "an item of an `Each` step" };
            self.diagnostics.push(found.with_hint(format!("`{{{name}}}` stands for {meaning}; choose another name")));
        }
        let declares = |node: Pattern<'_>| node.labels().next().is_some() || node.record().is_some();
        if let Some(earlier) = self.nodes.get(&name).copied() {
            if declares(node) && declares(earlier) {
                let found = rule::BAD_STEP.at(node.span(), format!("the step `{name}` is declared twice"));
                let found = found.with_related(earlier.span(), "first declared here");
                self.diagnostics.push(found.with_hint("write its label and record once, and only its name elsewhere"));
            } else if declares(node) {
                self.nodes.insert(name.clone(), node);
            }
        } else {
            self.nodes.insert(name.clone(), node);
        }
        self.nodes.get_index_of(&name)
    }

    fn read_path(&mut self, path: Pattern<'p>, edges: &mut Vec<EdgeSpec>) {
        let steps: Vec<_> = path.elements().map(|node| self.add_node(node)).collect();
        for (ends, arrow) in steps.windows(2).zip(path.arrows()) {
            let [Some(before), Some(after)] = ends else { continue };
            let (from, to) = match (arrow.points_left(), arrow.points_right()) {
                (false, true) => (*before, *after),
                (true, false) => (*after, *before),
                (true, true) | (false, false) => {
                    let message = "an edge must point from one step to the next";
                    let found = rule::BAD_EDGE.at(arrow.syntax().span(), message);
                    self.diagnostics.push(found.with_hint("write `-->`"));
                    continue;
                }
            };
            edges.push(self.read_edge(arrow, from, to));
        }
    }

    fn read_edge(&mut self, arrow: Arrow<'p>, from: usize, to: usize) -> EdgeSpec {
        let span = arrow.syntax().span();
        let mut labels = arrow.labels();
        let kind = match labels.next().as_deref() {
            None => EdgeKind::Then,
            Some("When") => EdgeKind::When,
            Some("Otherwise") => EdgeKind::Otherwise,
            Some("Failed") => EdgeKind::Failed,
            Some("Exhausted") => EdgeKind::Exhausted,
            Some("Handoff") => EdgeKind::Handoff,
            Some(other) => {
                let found = rule::BAD_EDGE.at(span, format!("an edge cannot have the label `{other}`"));
                self.diagnostics.push(found.with_hint(match nearest(other, EDGE_LABELS) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known labels: {}", EDGE_LABELS.join(", ")),
                }));
                EdgeKind::Then
            }
        };
        let is_known = arrow.labels().all(|label| EDGE_LABELS.contains(&label.as_ref()));
        let mut edge = EdgeSpec { from, to, kind, condition: None, at_most: None, input: None, span };
        let mut ask = None;
        let mut with = None;
        for property in arrow.properties() {
            match property.key().as_ref() {
                "atMost" => edge.at_most = self.read_count(property),
                "ask" => ask = read_property_text(property, &mut self.diagnostics),
                "with" => with = read_fields(property, &mut self.diagnostics),
                _ if kind == EdgeKind::When && edge.condition.is_none() => {
                    edge.condition = self.read_condition(property);
                }
                _ if !is_known => {}
                key => {
                    let message = match kind {
                        EdgeKind::When => format!("this edge has two conditions, and the second is about `{key}`"),
                        _ => format!("an edge has no property `{key}`"),
                    };
                    let found = rule::BAD_EDGE.at(property.syntax().span(), message);
                    self.diagnostics.push(found.with_hint(match kind {
                        EdgeKind::When => "test one field; put a second step in between to test another".to_owned(),
                        _ => match nearest(key, ["atMost", "ask", "with"]) {
                            Some(near) => format!("did you mean `{near}`?"),
                            None => {
                                "conditions need the label `When`; other properties are atMost, ask and with".to_owned()
                            }
                        },
                    }));
                }
            }
        }
        edge.input = self.choose_input(ask, with);
        if kind == EdgeKind::When && edge.condition.is_none() && arrow.properties().all(|it| it.key() == "atMost") {
            let found = rule::BAD_EDGE.at(span, "this edge has no condition");
            self.diagnostics
                .push(found.with_hint("write a field and its value, such as `:When { verdict: \"good\" }`"));
        }
        edge
    }

    fn choose_input(&mut self, ask: Option<Text>, with: Option<InputSpec>) -> Option<InputSpec> {
        choose_input(ask, with, &mut self.diagnostics)
    }

    fn read_count(&mut self, property: Property<'_>) -> Option<u32> {
        read_count(property, &mut self.diagnostics)
    }

    fn read_condition(&mut self, property: Property<'_>) -> Option<ConditionSpec> {
        let syntax = property.value()?;
        let value = Value::read(syntax)?;
        let items = match value {
            Value::Array(items) => items,
            other => vec![other],
        };
        let scalars: Vec<_> = items.iter().filter_map(scalar).collect();
        if scalars.len() < items.len() || scalars.is_empty() {
            let found =
                rule::BAD_EDGE.at(syntax.span(), "a condition compares a field with texts, numbers or booleans");
            self.diagnostics.push(found.with_hint("write a value, or a list of values"));
            return None;
        }
        let key_span = property.key_syntax().map_or(syntax.span(), Syntax::span);
        Some(ConditionSpec { field: property.key().into_owned(), values: scalars, span: syntax.span(), key_span })
    }
}

fn scalar(value: &Value) -> Option<Json> {
    match value {
        Value::Symbol(text) | Value::String(text) => Some(Json::from(text.as_str())),
        Value::Integer(_) | Value::Decimal(_) | Value::Boolean(_) => value_to_json(value),
        _ => None,
    }
}

fn read_step<'p>(name: &str, node: Pattern<'p>, diagnostics: &mut Vec<Diagnostic>) -> Option<StepSpec<'p>> {
    let labels: Vec<_> = node.labels().collect();
    let special = labels.iter().find(|label| STEP_LABELS.contains(&label.as_ref())).map(AsRef::as_ref);
    let mut callees = labels.iter().filter(|label| !STEP_LABELS.contains(&label.as_ref()));
    let called = callees.next().map(|label| label.as_ref().to_owned());
    if let Some(second) = callees.next() {
        let message = format!("the step `{name}` calls `{}` and `{second}`", called.unwrap_or_default());
        let found = rule::BAD_STEP.at(node.span(), message);
        diagnostics.push(found.with_hint("a step calls one agent, tool or workflow; write two steps"));
        return None;
    }
    let known: &[&str] = match special {
        None => &["ask", "with"],
        Some(EACH) => &["of", "width", "atMost", "ask", "with"],
        Some(HUMAN) => &["question", "returns", "expires"],
        Some(_) => &["value"],
    };
    let noun = special.map_or("step".to_owned(), |label| format!("`{label}` step"));
    diagnostics.extend(unknown_properties(node, &noun, known));
    let text = |key: &str, diagnostics: &mut Vec<Diagnostic>| {
        node.property(key).and_then(|property| read_property_text(property, diagnostics))
    };
    let ask = text("ask", diagnostics);
    let with = node.property("with").and_then(|property| read_fields(property, diagnostics));
    let input = choose_input(ask, with, diagnostics);
    let missing = |what: &str, hint: &str| {
        rule::BAD_STEP.at(node.span(), format!("the step `{name}` has no `{what}`")).with_hint(hint.to_owned())
    };
    let kind = match (special, called) {
        (None, called) => StepKind::Call { callee: called.unwrap_or_else(|| name.to_owned()) },
        (Some(EACH), called) => {
            let Some(of) = text("of", diagnostics) else {
                if node.property("of").is_none() {
                    diagnostics.push(missing("of", "say which list, such as `of: \"{takes.documents}\"`"));
                }
                return None;
            };
            let count = |key: &str, diagnostics: &mut Vec<Diagnostic>| {
                node.property(key).and_then(|property| read_count(property, diagnostics))
            };
            let width = count("width", diagnostics).unwrap_or(DEFAULT_WIDTH);
            let at_most = count("atMost", diagnostics).unwrap_or(DEFAULT_ITEMS);
            StepKind::Each { callee: called.unwrap_or_else(|| name.to_owned()), of, width, at_most }
        }
        (Some(other), Some(called)) => {
            let message = format!("the step `{name}` is `{other}`, so it cannot call `{called}`");
            diagnostics.push(rule::BAD_STEP.at(node.span(), message).with_hint("remove one of the labels"));
            return None;
        }
        (Some(HUMAN), None) => {
            let Some(question) = text("question", diagnostics) else {
                diagnostics.push(missing("question", "say what to ask, such as `question: \"Is this right?\"`"));
                return None;
            };
            let expires_ms = node.property("expires").and_then(|property| read_duration(property, diagnostics));
            StepKind::Human { question, expires_ms, returns: text("returns", diagnostics) }
        }
        (Some(_), None) => {
            let Some(value) = text("value", diagnostics) else {
                diagnostics.push(missing("value", "say what the workflow returns, such as `value: \"{writer}\"`"));
                return None;
            };
            StepKind::Give { value }
        }
    };
    Some(StepSpec { name: name.to_owned(), node, kind, input })
}

fn choose_input(ask: Option<Text>, with: Option<InputSpec>, diagnostics: &mut Vec<Diagnostic>) -> Option<InputSpec> {
    if let (Some(_), Some(InputSpec::With { span, .. })) = (&ask, &with) {
        let found = rule::BAD_STEP.at(*span, "a step cannot have both `ask` and `with`");
        diagnostics.push(found.with_hint("`ask` is a text, and `with` are arguments; remove one of them"));
    }
    ask.map(InputSpec::Ask).or(with)
}

fn read_property_text(property: Property<'_>, diagnostics: &mut Vec<Diagnostic>) -> Option<Text> {
    let syntax = property.value()?;
    match syntax.read_text() {
        Some(text) => Some(Text { text: text.into_owned(), span: syntax.span() }),
        None => {
            let found = rule::WRONG_VALUE.at(syntax.span(), format!("`{}` must be a string", property.key()));
            diagnostics.push(found.with_hint("put quotes around it"));
            None
        }
    }
}

fn read_fields(property: Property<'_>, diagnostics: &mut Vec<Diagnostic>) -> Option<InputSpec> {
    let syntax = property.value()?;
    if syntax.kind() != Kind::Map {
        let found = rule::WRONG_VALUE.at(syntax.span(), "`with` must be a map");
        diagnostics.push(found.with_hint("write arguments by name: `with: { query: \"{takes.question}\" }`"));
        return None;
    }
    let fields = syntax
        .properties()
        .filter_map(|field| Some((field.key().into_owned(), read_property_text(field, diagnostics)?)));
    Some(InputSpec::With { fields: fields.collect(), span: syntax.span() })
}

fn read_count(property: Property<'_>, diagnostics: &mut Vec<Diagnostic>) -> Option<u32> {
    let syntax = property.value()?;
    let count = match Value::read(syntax) {
        Some(Value::Integer(count)) => count.to_i64().and_then(|count| u32::try_from(count).ok()),
        _ => None,
    };
    if count.is_none_or(|count| count == 0) {
        let message = format!("`{}` must be a whole number, at least 1", property.key());
        diagnostics.push(rule::WRONG_VALUE.at(syntax.span(), message));
        return None;
    }
    count
}

/// Reads a duration, which may be written in days.
fn read_duration(property: Property<'_>, diagnostics: &mut Vec<Diagnostic>) -> Option<u64> {
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;
    let syntax = property.value()?;
    let value = Value::read(syntax)?;
    let days = match &value {
        Value::Measurement { amount, unit } if unit == "d" => {
            amount.to_i64().and_then(|days| u64::try_from(days).ok()).filter(|days| *days > 0)
        }
        _ => None,
    };
    let found = days.map(|days| days.saturating_mul(DAY_MS)).or_else(|| duration(&value).map(milliseconds));
    if found.is_none() {
        let found = rule::WRONG_VALUE.at(syntax.span(), format!("`{}` must be a duration", property.key()));
        diagnostics.push(found.with_hint("write a number with m, h or d, such as `2d`"));
    }
    found
}
