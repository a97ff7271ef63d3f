//! Declarations of agents.

use super::workflow::{callable_elements, callee, is_workflow};
use super::{DeclarationKind, OwnedPattern, ToolSpec, format_text};
use crate::permission::{Decision, Rule};
use crate::provider::{ModelRef, ModelRefError};
use crate::rule;
use crate::types::signature::Signature;
use patter_gram::{Diagnostic, Kind, Pattern, PatternKind, Span, Value, format, parse, quote_name};
use std::borrow::Cow;
use std::sync::Arc;
use thiserror::Error;

/// The declaration of an agent: its name, instruction and model, and the tools and agents it may call.
///
/// ```
/// use patter_core::{declare::Agent, gram::parse};
/// let (tree, _) = parse("[hi:Agent {instruction: 'Greet.', model: 'demo'} | sayHello] // the first");
/// let agent = Agent::cast(tree.patterns().next().unwrap()).unwrap();
/// assert_eq!(agent.instruction().as_deref(), Some("Greet."));
/// let changed = agent.with_model("OpenAI/gpt-5");
/// assert_eq!(
///     changed.tree().to_string(),
///     "[hi:Agent {instruction: 'Greet.', model: \"OpenAI/gpt-5\"} | sayHello] // the first"
/// );
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    pub(super) pattern: OwnedPattern,
    /// What a pipe accepts and returns.
    pub(super) signature: Option<Arc<Signature>>,
}

/// The parts of an agent, to declare one in Rust.
#[derive(Debug, Clone, Default)]
pub struct AgentParts<'p> {
    /// The name.
    pub name: &'p str,
    /// The description.
    pub description: Option<&'p str>,
    /// The instruction for the model.
    pub instruction: &'p str,
    /// The model, such as `OpenAI/gpt-4o-mini`.
    pub model: &'p str,
    /// The tools.
    pub tools: &'p [ToolSpec],
}

/// An error when adding a tool to an agent or a toolbox that already has an element with its name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{owner}` already has a tool or agent named `{name}`")]
pub struct DuplicateElementError {
    /// The agent or toolbox.
    pub owner: String,
    /// The name.
    pub name: String,
}

/// A tool or agent that an agent may call.
#[derive(Debug, Clone, PartialEq)]
pub enum Element {
    /// A tool that is declared in place.
    Tool(ToolSpec),
    /// An agent that is declared in place.
    Agent(Agent),
    /// A tool or agent that is declared elsewhere.
    Reference {
        /// The name.
        name: String,
        /// The span of the reference.
        span: Span,
    },
}

declaration!(Agent);

impl Agent {
    /// DeclarationKind an agent from its parts.
    ///
    /// ```
    /// use patter_core::declare::{Agent, AgentParts, ToolSpec};
    /// let tools = [ToolSpec::new("sayHello", "Greets", "(name::Text)==>(::Text)").unwrap()];
    /// let parts = AgentParts { name: "hi", instruction: "Greet people.", model: "demo", tools: &tools, ..Default::default() };
    /// let agent = Agent::new(&parts);
    /// assert_eq!(agent.name().as_deref(), Some("hi"));
    /// assert_eq!(agent.elements().count(), 1);
    /// ```
    pub fn new(parts: &AgentParts<'_>) -> Self {
        let mut properties = Vec::new();
        if let Some(description) = parts.description {
            properties.push(format!("description: {}", format_text(description, "  ")));
        }
        properties.push(format!("instruction: {}", format_text(parts.instruction, "  ")));
        properties.push(format!("model: {}", Value::from(parts.model)));
        let tools: Vec<_> = parts.tools.iter().map(ToString::to_string).collect();
        let elements = if tools.is_empty() { String::new() } else { format!(" | {}", tools.join(", ")) };
        let text = format!("[{}:Agent {{ {} }}{elements}]", quote_name(parts.name), properties.join(", "));
        let (tree, _) = parse(&format(&text).unwrap_or(text));
        Self { pattern: OwnedPattern::first_in(tree), signature: None }
    }

    /// Views a pattern as an agent, if it has the right label.
    pub fn cast(pattern: Pattern<'_>) -> Option<Self> {
        (DeclarationKind::from_pattern(pattern) == Some(DeclarationKind::Agent))
            .then(|| Self { pattern: OwnedPattern::new(pattern), signature: None })
    }

    /// Returns the agent with the agents that it extends, nearest first.
    pub(super) fn extending<'b>(self, bases: impl IntoIterator<Item = Pattern<'b>>) -> Self {
        Self { pattern: self.pattern.with_bases(bases), ..self }
    }

    /// Returns whether it is a workflow: its elements are paths of steps, and it has no model of its own.
    pub fn is_workflow(&self) -> bool {
        self.pattern().is_some_and(is_workflow)
    }

    /// Returns the instruction.
    pub fn instruction(&self) -> Option<Cow<'_, str>> {
        self.pattern.text("instruction")
    }

    /// Parses the model, if there is one.
    pub fn model(&self) -> Option<Result<ModelRef, ModelRefError>> {
        self.pattern.text("model").map(|model| model.parse())
    }

    /// Iterates over its own elements: tools and agents that it may call, in order. [`Project::members`] also returns what it
    /// inherits.
    ///
    /// [`Project::members`]: super::project::Project::members
    pub fn elements(&self) -> impl Iterator<Item = Element> {
        let elements: Vec<_> =
            self.pattern().into_iter().flat_map(callable_elements).filter_map(Element::cast).collect();
        elements.into_iter()
    }

    /// Iterates over the tools that are declared in place.
    pub fn tools(&self) -> impl Iterator<Item = ToolSpec> {
        self.elements().filter_map(|element| if let Element::Tool(tool) = element { Some(tool) } else { None })
    }

    /// Parses the permission rules in `allow`, `ask` and `deny`, its own and those that it inherits, and returns diagnostics
    /// for invalid ones. The origin is the file, for people.
    ///
    /// ```
    /// use patter_core::{declare::Agent, gram::parse};
    /// let (tree, _) = parse("[a:Agent {ask: 'fs/*', deny: ['shop/refund when amount > 100', 'fs//']}]");
    /// let agent = Agent::cast(tree.patterns().next().unwrap()).unwrap();
    /// let (rules, errors) = agent.rules("a.gram");
    /// assert_eq!(rules[1].to_string(), "deny shop/refund when amount > 100");
    /// assert_eq!(errors[0].message, "`fs//` is not a tool name or pattern");
    /// ```
    pub fn rules(&self, origin: &str) -> (Vec<Rule>, Vec<Diagnostic>) {
        let (rules, errors) = self.rules_with_spans(origin);
        (rules.into_iter().map(|(rule, _)| rule).collect(), errors)
    }

    /// Returns whether it has permission rules, valid or not, its own or inherited ones.
    pub(crate) fn has_rules(&self) -> bool {
        let decisions = [Decision::Allow, Decision::Ask, Decision::Deny];
        decisions.iter().any(|decision| self.pattern.property(decision.name()).is_some())
    }

    /// Parses the permission rules like [`Agent::rules`], each with its span in the file of the agent that has it.
    pub(crate) fn rules_with_spans(&self, origin: &str) -> (Vec<(Rule, Span)>, Vec<Diagnostic>) {
        let (mut rules, mut errors) = self.pattern().map_or_else(Default::default, |pattern| rules_of(pattern, origin));
        for base in self.bases() {
            let origin = format!("the agent `{}`", base.name().unwrap_or_default());
            let (inherited, invalid) = rules_of(base, &origin);
            rules.extend(inherited);
            errors.extend(invalid);
        }
        (rules, errors)
    }

    /// Returns the agent with a different instruction.
    #[must_use]
    pub fn with_instruction(&self, instruction: &str) -> Self {
        Self { pattern: self.pattern.with_text("instruction", instruction), ..self.clone() }
    }

    /// Returns the agent with a different model.
    #[must_use]
    pub fn with_model(&self, model: &str) -> Self {
        Self { pattern: self.pattern.with_text("model", model), ..self.clone() }
    }

    /// Returns the agent with another tool. Models tell tools apart by name, so no element may have its name already.
    ///
    /// ```
    /// use patter_core::declare::{Agent, AgentParts, ToolSpec};
    /// let agent = Agent::new(&AgentParts { name: "hi", instruction: "Greet.", model: "demo", ..Default::default() });
    /// let tool = ToolSpec::new("sayHello", "Greets", "(name::Text)==>(::Text)").unwrap();
    /// let agent = agent.with_tool(&tool).unwrap();
    /// assert_eq!(agent.with_tool(&tool).unwrap_err().to_string(), "`hi` already has a tool or agent named `sayHello`");
    /// ```
    pub fn with_tool(&self, tool: &ToolSpec) -> Result<Self, DuplicateElementError> {
        let name = tool.name().unwrap_or_default();
        if self.elements().any(|element| element.name().as_deref() == Some(name.as_ref())) {
            let agent = self.name().unwrap_or_default().into_owned();
            return Err(DuplicateElementError { owner: agent, name: name.into_owned() });
        }
        Ok(Self { pattern: self.pattern.with_element(&tool.to_string()), ..self.clone() })
    }

    /// Returns the agent without the elements with a name.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        Self { pattern: self.pattern.without_element(name), ..self.clone() }
    }
}

impl Element {
    /// Returns whether a pattern can be called as an element of an agent.
    pub(crate) fn can_cast(pattern: Pattern<'_>) -> bool {
        match pattern.kind() {
            PatternKind::Reference => pattern.identifier().is_some(),
            PatternKind::Node => callee(pattern).is_some(),
            _ => matches!(
                DeclarationKind::from_pattern(pattern),
                Some(DeclarationKind::Agent | DeclarationKind::Tool | DeclarationKind::Implementation)
            ),
        }
    }

    /// Views a pattern as an element of an agent, if it can be called.
    pub fn cast(pattern: Pattern<'_>) -> Option<Self> {
        match (pattern.kind(), DeclarationKind::from_pattern(pattern)) {
            (PatternKind::Reference, _) => {
                Some(Element::Reference { name: pattern.name()?.into_owned(), span: pattern.span() })
            }
            (PatternKind::Node, _) => {
                Some(Element::Reference { name: callee(pattern)?.into_owned(), span: pattern.span() })
            }
            (_, Some(DeclarationKind::Agent)) => Agent::cast(pattern).map(Element::Agent),
            (_, Some(DeclarationKind::Tool | DeclarationKind::Implementation)) => {
                ToolSpec::cast(pattern).map(Element::Tool)
            }
            _ => None,
        }
    }

    /// Returns the name by which it is called.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        match self {
            Element::Tool(tool) => tool.name(),
            Element::Agent(agent) => agent.name(),
            Element::Reference { name, .. } => Some(Cow::Borrowed(name)),
        }
    }

    /// Returns the span in the file.
    pub fn span(&self) -> Span {
        match self {
            Element::Tool(tool) => tool.span(),
            Element::Agent(agent) => agent.span(),
            Element::Reference { span, .. } => *span,
        }
    }
}

/// Parses the permission rules of one pattern, each with its span.
fn rules_of(pattern: Pattern<'_>, origin: &str) -> (Vec<(Rule, Span)>, Vec<Diagnostic>) {
    let mut rules = Vec::new();
    let mut errors = Vec::new();
    for decision in [Decision::Allow, Decision::Ask, Decision::Deny] {
        let Some(property) = pattern.get(decision.name()) else { continue };
        let items = if property.kind() == Kind::Array { property.children().collect() } else { vec![property] };
        for item in items {
            let Some(Value::String(text)) = Value::read(item) else { continue };
            match Rule::with_decision(decision, &text, origin) {
                Ok(rule) => rules.push((rule, item.span())),
                Err(error) => {
                    let found = rule::BAD_PERMISSION.at(item.span(), error.to_string());
                    errors.push(found.with_hint(error.hint()));
                }
            }
        }
    }
    (rules, errors)
}
