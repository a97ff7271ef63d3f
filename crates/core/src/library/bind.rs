//! Binding: which tools of a library serve the declarations of an agent.

use super::{Entry, Library, ResolveError};
use crate::declare::project::{Finding, Project};
use crate::declare::{Agent, Declares, Element, ToolSpec};
use crate::name::FullName;
use crate::rule;
use crate::types::compatible::{Difference, Incompatibility, compatible, exact};
use crate::types::definition::{Definition, DefinitionError};
use patter_gram::{Diagnostic, Span, Syntax};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// What has a definition, so that it can be bound.
pub trait Defined {
    /// Returns what it is.
    fn definition(&self) -> &Definition;
}

/// How much a tool must agree with its declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Matching {
    /// It takes all that the declaration can produce, and gives what the declaration promises.
    #[default]
    Compatible,
    /// Name, description and schemas are equal.
    Exact,
}

/// Something that an agent may call, and what serves it.
#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    /// The name by which the agent calls it.
    pub name: String,
    /// What serves it.
    pub target: Target,
}

/// What serves a declaration.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// A tool of the library.
    Tool {
        /// Its full name.
        name: FullName,
        /// What the agent's file says of it, which is what the model gets to see; what the tool says of itself where
        /// the file has nothing but the name.
        declared: Box<Definition>,
    },
    /// Another agent of the project, by name.
    Agent {
        /// Its name.
        name: String,
    },
}

/// Why an agent cannot be bound: every reason at once.
#[derive(Debug, Clone, PartialEq, Error)]
pub struct BindError {
    /// The agent.
    pub agent: String,
    /// What could not be bound, in order.
    pub failures: Vec<BindFailure>,
}

/// A declaration that nothing serves.
#[derive(Debug, Clone, PartialEq)]
pub struct BindFailure {
    /// The name by which the agent would call it.
    pub name: String,
    /// Where it stands in the file of the agent.
    pub span: Span,
    /// Why nothing serves it.
    pub reason: Unbound,
}

/// Why nothing serves a declaration.
#[derive(Debug, Clone, PartialEq)]
pub enum Unbound {
    /// The name stands for nothing in the library, or for too much.
    Unresolved(ResolveError),
    /// The declaration itself is wrong.
    Undefined(DefinitionError),
    /// The tool is not compatible.
    Incompatible {
        /// The tool.
        tool: FullName,
        /// All the reasons.
        reasons: Vec<Incompatibility>,
    },
    /// The tool is not exactly what is declared.
    Different {
        /// The tool.
        tool: FullName,
        /// All the differences.
        differences: Vec<Difference>,
    },
    /// The project declares several of the name.
    Ambiguous,
}

impl BindFailure {
    /// Returns what to do about it.
    pub fn hint(&self) -> Option<String> {
        match &self.reason {
            Unbound::Unresolved(error @ ResolveError::NotFound { nearest, .. }) => Some(match nearest {
                Some(_) => error.hint()?,
                None => "declare it in a toolbox, or register a native tool of that name".to_owned(),
            }),
            Unbound::Unresolved(error) => error.hint(),
            Unbound::Incompatible { .. } => Some("change the declaration, or bind another tool".to_owned()),
            Unbound::Different { .. } => Some("copy what the tool says, or declare it without `exact`".to_owned()),
            Unbound::Undefined(_) | Unbound::Ambiguous => Some("`patter check` says more".to_owned()),
        }
    }
}

impl fmt::Display for BindFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.reason {
            Unbound::Unresolved(ResolveError::NotFound { .. }) => write!(f, "nothing implements the tool `{name}`"),
            Unbound::Unresolved(error) => write!(f, "{error}"),
            Unbound::Undefined(error) => write!(f, "{error}"),
            Unbound::Incompatible { tool, reasons } => {
                write!(f, "the tool `{tool}` cannot serve the declared `{name}`: {}", joined(reasons))
            }
            Unbound::Different { tool, differences } => {
                write!(f, "the tool `{tool}` is not exactly the declared `{name}`: {}", joined(differences))
            }
            Unbound::Ambiguous => write!(f, "the project declares `{name}` more than once"),
        }
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the agent `{}` cannot run: {}", self.agent, joined(&self.failures))
    }
}

fn joined(parts: &[impl fmt::Display]) -> String {
    parts.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Finds what serves each declaration of an agent, in order, or tells all that cannot be served.
///
/// ```
/// use patter_core::types::definition::Definition;
/// use patter_core::library::{Defined, Entry, Layer, Library, Matching, Sealing, bind};
/// use patter_core::{name::FullName, declare::project::Project};
///
/// struct Tool(Definition);
/// impl Defined for Tool {
///     fn definition(&self) -> &Definition {
///         &self.0
///     }
/// }
///
/// let project = Project::read([("hi.gram", "[hi:Agent {instruction: 'Greet.', model: 'demo'} | sayHello, wave]")]);
/// let tool = Tool(Definition::new("sayHello", "Greets", "(name::Text)==>(::Text)").unwrap());
/// let name = FullName::parse("sayHello").unwrap();
/// let entry = Entry { name, layer: Layer::Internal, sealing: Sealing::Open, value: tool };
/// let library = Library::merge([entry]).unwrap();
/// let (_, agent) = project.agents().next().unwrap();
/// let error = bind(&agent, &project, &library, Matching::Compatible).unwrap_err();
/// assert_eq!(error.to_string(), "the agent `hi` cannot run: nothing implements the tool `wave`");
/// ```
pub fn bind<T: Defined>(
    agent: &Agent,
    project: &Project,
    library: &Library<T>,
    matching: Matching,
) -> Result<Vec<Binding>, BindError> {
    let binder = Binder { project, library, matching, records: Arc::new(project.records().clone()) };
    let mut bindings = Vec::new();
    let mut failures = Vec::new();
    for element in agent.elements() {
        let name = element.name().unwrap_or_default().into_owned();
        match binder.target(&element) {
            Ok(target) => bindings.push(Binding { name, target }),
            Err(reason) => failures.push(BindFailure { name, span: element.span(), reason }),
        }
    }
    if failures.is_empty() {
        return Ok(bindings);
    }
    Err(BindError { agent: agent.name().unwrap_or_default().into_owned(), failures })
}

/// Returns a finding for each declaration, of any agent of a project, that nothing in a library serves, and for each rule
/// of an agent that names nothing in it.
///
/// ```
/// use patter_core::{types::definition::Definition, library::{Defined, Library, unbound}, declare::project::Project};
/// struct Tool(Definition);
/// impl Defined for Tool {
///     fn definition(&self) -> &Definition {
///         &self.0
///     }
/// }
/// let project = Project::read([("hi.gram", "[hi:Agent {instruction: 'Greet.', model: 'demo'} | sayHello]")]);
/// let findings = unbound(&project, &Library::<Tool>::default());
/// assert_eq!(findings[0].diagnostic.message, "nothing implements the tool `sayHello`");
/// ```
pub fn unbound<T: Defined>(project: &Project, library: &Library<T>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in project.files().iter().enumerate() {
        for agent in source.tree.walk().filter_map(Agent::cast) {
            findings.extend(idle_rules(&agent, library).into_iter().map(|diagnostic| Finding { file, diagnostic }));
            let Err(error) = bind(&agent, project, library, Matching::Compatible) else { continue };
            for failure in error.failures {
                let diagnostic = rule::UNBOUND.at(failure.span, failure.to_string());
                let diagnostic = match failure.hint() {
                    Some(hint) => diagnostic.with_hint(hint),
                    None => diagnostic,
                };
                findings.push(Finding { file, diagnostic });
            }
        }
    }
    findings
}

/// Returns the rules of an agent that can never decide anything.
fn idle_rules<T: Defined>(agent: &Agent, library: &Library<T>) -> Vec<Diagnostic> {
    let tools = || library.entries().map(|entry| (&entry.name, entry.value.definition()));
    // Agents are called by name like tools, and are not in the library.
    let agents: Vec<_> = agent.elements().filter_map(|element| FullName::parse(&element.name()?).ok()).collect();
    let (rules, _) = agent.rules("");
    let rules = rules.iter().filter(|rule| !agents.iter().any(|name| rule.names_tool(name)));
    let found = rules.filter_map(|rule| {
        let idle = rule.idle(tools())?;
        let property = agent.pattern().and_then(|pattern| pattern.get(rule.decision.name()));
        let span = property.map_or(agent.span(), Syntax::span);
        Some(rule::IDLE_PERMISSION.at(span, idle.to_string()).with_hint(idle.hint()))
    });
    found.collect()
}

struct Binder<'b, T> {
    project: &'b Project,
    library: &'b Library<T>,
    matching: Matching,
    records: Arc<crate::types::signature::Records>,
}

impl<T: Defined> Binder<'_, T> {
    fn target(&self, element: &Element) -> Result<Target, Unbound> {
        match element {
            Element::Tool(spec) => self.declared(spec),
            Element::Agent(agent) => Ok(Target::Agent { name: agent.name().unwrap_or_default().into_owned() }),
            Element::Reference { name, .. } => self.reference(name),
        }
    }

    fn reference(&self, name: &str) -> Result<Target, Unbound> {
        let found = self.project.find(name);
        let callable = found.iter().filter(|found| matches!(found.declares, Declares::Agent | Declares::Tool));
        let declared: Vec<_> = callable.collect();
        match declared.as_slice() {
            [] => {
                let entry = self.library.resolve(name).map_err(Unbound::Unresolved)?;
                let declared = Box::new(entry.value.definition().clone());
                Ok(Target::Tool { name: entry.name.clone(), declared })
            }
            [one] if one.declares == Declares::Agent => Ok(Target::Agent { name: one.name.clone() }),
            [one] => match self.project.pattern(one).and_then(ToolSpec::cast) {
                Some(spec) => self.declared(&spec),
                None => Err(Unbound::Undefined(DefinitionError::Unnamed)),
            },
            _ => Err(Unbound::Ambiguous),
        }
    }

    fn declared(&self, spec: &ToolSpec) -> Result<Target, Unbound> {
        let declared = spec.definition(&self.records).map_err(Unbound::Undefined)?;
        let entry = self.library.resolve(&declared.name).map_err(Unbound::Unresolved)?;
        let matching = if spec.is_exact() { Matching::Exact } else { self.matching };
        agrees(&declared, entry, matching)?;
        Ok(Target::Tool { name: entry.name.clone(), declared: Box::new(declared) })
    }
}

fn agrees<T: Defined>(declared: &Definition, entry: &Entry<T>, matching: Matching) -> Result<(), Unbound> {
    let tool = entry.value.definition();
    match matching {
        Matching::Compatible => {
            let sides = ((&declared.signature, &*declared.records), (&tool.signature, &*tool.records));
            compatible(sides.0, sides.1).map_err(|reasons| Unbound::Incompatible { tool: entry.name.clone(), reasons })
        }
        Matching::Exact => exact(declared.contract(), tool.contract())
            .map_err(|differences| Unbound::Different { tool: entry.name.clone(), differences }),
    }
}
