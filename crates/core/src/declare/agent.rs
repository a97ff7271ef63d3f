//! Agents.

use super::{Declares, Place, ToolSpec, written};
use crate::permission::{Decision, Rule};
use crate::provider::{ModelRef, ModelRefError};
use crate::rule;
use patter_gram::{Diagnostic, Pattern, PatternKind, Span, Value, format, parse, quote_name};
use std::borrow::Cow;

/// The declaration of an agent: a name, an instruction, a model, and what it may call.
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
    place: Place,
}

/// What an agent is made of, to declare one in Rust.
#[derive(Debug, Clone, Default)]
pub struct AgentParts<'p> {
    /// The name.
    pub name: &'p str,
    /// What it is for.
    pub description: Option<&'p str>,
    /// What it is told.
    pub instruction: &'p str,
    /// The model, such as `OpenAI/gpt-4o-mini`.
    pub model: &'p str,
    /// Its tools.
    pub tools: &'p [ToolSpec],
}

/// What an agent may call.
#[derive(Debug, Clone, PartialEq)]
pub enum Element {
    /// A tool, declared in place.
    Tool(ToolSpec),
    /// An agent, declared in place.
    Agent(Agent),
    /// A tool or an agent, declared elsewhere.
    Reference {
        /// Its name.
        name: String,
        /// Where it is referred to.
        span: Span,
    },
}

declaration!(Agent);

impl Agent {
    /// Declares an agent from its parts.
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
            properties.push(format!("description: {}", written(description, "  ")));
        }
        properties.push(format!("instruction: {}", written(parts.instruction, "  ")));
        properties.push(format!("model: {}", Value::from(parts.model)));
        let tools: Vec<_> = parts.tools.iter().map(ToString::to_string).collect();
        let elements = if tools.is_empty() { String::new() } else { format!(" | {}", tools.join(", ")) };
        let text = format!("[{}:Agent {{ {} }}{elements}]", quote_name(parts.name), properties.join(", "));
        let (tree, _) = parse(&format(&text).unwrap_or(text));
        Self { place: Place::first_of(tree) }
    }

    /// Views a pattern as an agent, if it has the label.
    pub fn cast(pattern: Pattern<'_>) -> Option<Self> {
        (Declares::of(pattern) == Some(Declares::Agent)).then(|| Self { place: Place::of(pattern) })
    }

    /// Returns the instruction.
    pub fn instruction(&self) -> Option<Cow<'_, str>> {
        self.place.text("instruction")
    }

    /// Reads the model; `None` where there is none.
    pub fn model(&self) -> Option<Result<ModelRef, ModelRefError>> {
        self.place.text("model").map(|model| model.parse())
    }

    /// Iterates over what it may call, in order.
    pub fn elements(&self) -> impl Iterator<Item = Element> {
        let elements: Vec<_> =
            self.pattern().into_iter().flat_map(Pattern::elements).filter_map(Element::cast).collect();
        elements.into_iter()
    }

    /// Iterates over the tools that are declared in place.
    pub fn tools(&self) -> impl Iterator<Item = ToolSpec> {
        self.elements().filter_map(|element| if let Element::Tool(tool) = element { Some(tool) } else { None })
    }

    /// Reads the rules of `allow`, `ask` and `deny`, with what is wrong with others. The origin is the file, for people.
    ///
    /// ```
    /// use patter_core::{declare::Agent, gram::parse};
    /// let (tree, _) = parse("[a:Agent {ask: 'fs/*', deny: ['shop/refund when amount > 100', 'fs//']}]");
    /// let agent = Agent::cast(tree.patterns().next().unwrap()).unwrap();
    /// let (rules, wrong) = agent.rules("a.gram");
    /// assert_eq!(rules[1].to_string(), "deny shop/refund when amount > 100");
    /// assert_eq!(wrong[0].message, "`fs//` names no tools");
    /// ```
    pub fn rules(&self, origin: &str) -> (Vec<Rule>, Vec<Diagnostic>) {
        let (mut rules, mut wrong) = (Vec::new(), Vec::new());
        for decision in [Decision::Allow, Decision::Ask, Decision::Deny] {
            let Some(property) = self.pattern().and_then(|pattern| pattern.get(decision.name())) else { continue };
            let texts = match Value::read(property) {
                Some(Value::String(text)) => vec![text],
                Some(Value::Array(items)) => {
                    let texts = items.into_iter().filter_map(|item| match item {
                        Value::String(text) => Some(text),
                        _ => None,
                    });
                    texts.collect()
                }
                _ => Vec::new(),
            };
            for text in texts {
                match Rule::of(decision, &text, origin) {
                    Ok(rule) => rules.push(rule),
                    Err(error) => {
                        let found = rule::BAD_PERMISSION.at(property.span(), error.to_string());
                        wrong.push(found.with_hint(error.hint()));
                    }
                }
            }
        }
        (rules, wrong)
    }

    /// Returns the agent with another instruction.
    #[must_use]
    pub fn with_instruction(&self, instruction: &str) -> Self {
        Self { place: self.place.with_text("instruction", instruction) }
    }

    /// Returns the agent with another model.
    #[must_use]
    pub fn with_model(&self, model: &str) -> Self {
        Self { place: self.place.with_text("model", model) }
    }

    /// Returns the agent with one tool more.
    #[must_use]
    pub fn with_tool(&self, tool: &ToolSpec) -> Self {
        Self { place: self.place.with_element(&tool.to_string()) }
    }

    /// Returns the agent without the tools and references of a name.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        Self { place: self.place.without_element(name) }
    }
}

impl Element {
    /// Views an element of an agent; `None` for what cannot be called.
    pub fn cast(pattern: Pattern<'_>) -> Option<Self> {
        match (pattern.kind(), Declares::of(pattern)) {
            (PatternKind::Reference, _) => {
                Some(Element::Reference { name: pattern.name()?.into_owned(), span: pattern.span() })
            }
            (_, Some(Declares::Agent)) => Agent::cast(pattern).map(Element::Agent),
            (_, Some(Declares::Tool | Declares::Implementation)) => ToolSpec::cast(pattern).map(Element::Tool),
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

    /// Returns where it stands in its file.
    pub fn span(&self) -> Span {
        match self {
            Element::Tool(tool) => tool.span(),
            Element::Agent(agent) => agent.span(),
            Element::Reference { span, .. } => *span,
        }
    }
}
