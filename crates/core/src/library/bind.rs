//! Binding: finding the tools in a library that implement the declarations of an agent.

use super::{Entry, Library, ResolveError};
use crate::declare::project::{Finding, Project};
use crate::declare::sandbox::Sandbox;
use crate::declare::scope::{Candidate, Scope};
use crate::declare::{Agent, DeclarationKind, Element, ToolSpec};
use crate::name::FullName;
use crate::rule;
use crate::types::compatibility::{ContractDifference, Incompatibility, check_compatible, check_exact};
use crate::types::definition::{Definition, DefinitionError};
use crate::types::signature::Signature;
use indexmap::IndexSet;
use patter_gram::Span;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// A value with the definition of a tool, so that declarations can be bound to it.
pub trait HasDefinition {
    /// Returns the definition.
    fn definition(&self) -> &Definition;
}

/// A tool of a library, with what is known about its implementation.
pub trait LibraryTool: HasDefinition {
    /// Returns whether a call may be repeated when the outcome of the first is unknown.
    fn is_idempotent(&self) -> bool;

    /// Returns the name of the kind of implementation, such as `http` or `mcp`.
    fn kind_name(&self) -> &str;

    /// Returns where the tool comes from, for people: `weather.gram:2:3`, `built in`.
    fn source(&self) -> &str;

    /// Returns a hash of the text that declares the implementation, for tools declared in gram.
    fn revision(&self) -> Option<&str>;

    /// Returns what the process of the tool may do, if it has one.
    fn sandbox(&self) -> Option<&Sandbox> {
        None
    }

    /// Returns what a call does, as far as that is known before.
    fn facts(&self) -> ToolFacts {
        ToolFacts::default()
    }
}

/// What a call of a tool does, as far as that is known before. It contains no values of variables, except in `host`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFacts {
    /// The name of its effect.
    pub effect: String,
    /// What an MCP server says about the tool, as JSON.
    pub annotations: Option<String>,
    /// The command that it runs, with its arguments as they are written.
    pub command: Vec<String>,
    /// The folder in which the command runs, as it is written.
    pub folder: Option<String>,
    /// The names of the environment variables of the command.
    pub environment: Vec<String>,
    /// The scheme, host and port of the server that it sends a request to.
    pub host: Option<String>,
}

/// How closely a tool must match a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MatchMode {
    /// The tool accepts all declared arguments, and returns only declared results.
    #[default]
    Compatible,
    /// The name, the description and the schemas are equal.
    Exact,
}

/// A tool or agent that an agent may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    /// The name by which the agent calls it.
    pub name: String,
    /// What the name is bound to.
    pub target: Target,
}

/// What a declaration is bound to.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// A tool of the library.
    Tool {
        /// The full name of the tool.
        name: FullName,
        /// The definition in the agent's file, which is what the model sees, or that of the tool if the file has only
        /// a name.
        declared: Box<Definition>,
    },
    /// Another agent.
    Agent {
        /// Its declaration.
        agent: Box<Agent>,
    },
}

/// An agent that cannot be bound, with all reasons.
#[derive(Debug, Clone, PartialEq, Error)]
pub struct BindError {
    /// The path to the agent.
    pub agent: String,
    /// The declarations that cannot be bound, in order.
    pub failures: Vec<BindFailure>,
}

/// A declaration that cannot be bound.
#[derive(Debug, Clone, PartialEq)]
pub struct BindFailure {
    /// The name of the declaration.
    pub name: String,
    /// The span in the file of the agent.
    pub span: Span,
    /// The toolkit that has the tool, if it is not an element of the agent itself.
    pub toolkit: Option<String>,
    /// The agent that it is inherited from, if it is not an element of the agent itself.
    pub base: Option<String>,
    /// The reason.
    pub reason: UnboundReason,
}

/// The reason why a declaration cannot be bound.
#[derive(Debug, Clone, PartialEq)]
pub enum UnboundReason {
    /// The name is unknown or ambiguous in the library.
    Unresolved(ResolveError),
    /// The declaration itself is invalid.
    Undefined(DefinitionError),
    /// The tool is incompatible.
    Incompatible {
        /// The tool.
        tool: FullName,
        /// All reasons.
        reasons: Vec<Incompatibility>,
    },
    /// The tool differs from the declaration, which requires an exact match.
    Different {
        /// The tool.
        tool: FullName,
        /// All differences.
        differences: Vec<ContractDifference>,
    },
    /// An agent in a toolkit, which can contain only tools.
    NotATool,
    /// An agent with the name of a sealed tool, which it would take the place of.
    Sealed {
        /// The tool.
        tool: FullName,
    },
    /// Several declarations have that name.
    Ambiguous {
        /// Where they are.
        locations: Vec<String>,
    },
}

impl BindFailure {
    /// Returns a hint on how to fix it, if there is one.
    pub fn hint(&self) -> Option<String> {
        match &self.reason {
            UnboundReason::Unresolved(error @ ResolveError::NotFound { .. }) => Some(
                error
                    .hint()
                    .unwrap_or_else(|| "declare it in a toolbox, or register a native tool with that name".to_owned()),
            ),
            UnboundReason::Unresolved(error) => error.hint(),
            UnboundReason::Incompatible { .. } => Some("change the declaration, or use a different tool".to_owned()),
            UnboundReason::Different { .. } => Some("copy the declaration of the tool, or remove `exact`".to_owned()),
            UnboundReason::Ambiguous { .. } => Some("rename all but one".to_owned()),
            UnboundReason::Sealed { .. } => Some("rename the agent".to_owned()),
            UnboundReason::NotATool => Some("add the agent to the elements of the agent that calls it".to_owned()),
            UnboundReason::Undefined(_) => Some("run `patter check` for details".to_owned()),
        }
    }
}

impl fmt::Display for BindFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.reason {
            UnboundReason::NotATool => write!(f, "`{name}` is an agent, but a toolkit can contain only tools"),
            UnboundReason::Sealed { tool } => {
                write!(f, "the agent `{name}` has the name of the tool `{tool}`, which is sealed")
            }
            UnboundReason::Unresolved(ResolveError::NotFound { .. }) => {
                write!(f, "nothing implements the tool `{name}`")
            }
            UnboundReason::Unresolved(error) => write!(f, "{error}"),
            UnboundReason::Undefined(error) => write!(f, "{error}"),
            UnboundReason::Incompatible { tool, reasons } => {
                write!(f, "the tool `{tool}` does not match the declaration of `{name}`: {}", join(reasons))
            }
            UnboundReason::Different { tool, differences } => {
                write!(f, "the tool `{tool}` differs from the declaration of `{name}`: {}", join(differences))
            }
            UnboundReason::Ambiguous { locations } => {
                write!(f, "`{name}` is ambiguous: it is declared in {}", locations.join(" and "))
            }
        }?;
        match (&self.toolkit, &self.base) {
            (Some(toolkit), _) => write!(f, " (in the toolkit `{toolkit}`)"),
            (None, Some(base)) => write!(f, " (inherited from `{base}`)"),
            (None, None) => Ok(()),
        }
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the agent `{}` cannot run: {}", self.agent, join(&self.failures))
    }
}

fn join(parts: &[impl fmt::Display]) -> String {
    parts.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Binds each declaration of an agent to a tool or an agent, in order, or returns all declarations that cannot be bound.
///
/// ```
/// use patter_core::types::definition::Definition;
/// use patter_core::library::{HasDefinition, Entry, Layer, Library, MatchMode, Sealing, bind};
/// use patter_core::{name::FullName, declare::project::Project};
///
/// struct Tool(Definition);
/// impl HasDefinition for Tool {
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
/// let error = bind(&agent, &project, &library, MatchMode::Compatible).unwrap_err();
/// assert_eq!(error.to_string(), "the agent `hi` cannot run: nothing implements the tool `wave`");
/// ```
pub fn bind<T: HasDefinition>(
    agent: &Agent,
    project: &Project,
    library: &Library<T>,
    mode: MatchMode,
) -> Result<Vec<Binding>, BindError> {
    let mut bindings = Vec::new();
    let mut failures = Vec::new();
    for bound in bind_each(agent, project, library, mode) {
        match bound {
            Ok(binding) => bindings.push(binding),
            Err(failure) => failures.push(failure),
        }
    }
    if failures.is_empty() {
        return Ok(bindings);
    }
    Err(BindError { agent: agent.path().to_string(), failures })
}

/// Binds each declaration of an agent on its own, in order, so that one that cannot be bound does not hide the others.
pub fn bind_each<T: HasDefinition>(
    agent: &Agent,
    project: &Project,
    library: &Library<T>,
    mode: MatchMode,
) -> Vec<Result<Binding, BindFailure>> {
    let agent = &project.complete(agent.clone());
    let scope = Scope::new(agent);
    let binder = Binder { project, scope, library, mode, records: Arc::new(project.records().clone()) };
    let bound = project.members(agent).into_iter().filter_map(|member| {
        let element = Element::cast(member.pattern)?;
        let name = element.name().unwrap_or_default().into_owned();
        let toolkit = member.toolkit_name().map(Cow::into_owned);
        let base = member.base_name().map(Cow::into_owned);
        let target = binder.target(&element).and_then(|target| match target {
            Target::Agent { .. } if toolkit.is_some() => Err(UnboundReason::NotATool),
            target => Ok(target),
        });
        let span = agent.pattern().map_or(member.element().span(), |pattern| member.span(pattern));
        Some(match target {
            Ok(target) => Ok(Binding { name, target }),
            Err(reason) => Err(BindFailure { name, span, toolkit, base, reason }),
        })
    });
    bound.collect()
}

/// Returns the names that agents, and the agents that they may call, look up in a library: each once, in order.
///
/// ```
/// use patter_core::{declare::project::Project, library::library_names};
/// let text = "[a:Agent | b, `files/read`] [b:Agent | [greet:Tool {description: 'x'} | ()==>(::Text)], a]";
/// let project = Project::read([("a.gram", text)]);
/// let names = library_names(project.find_agent("a"), &project);
/// assert_eq!(names.iter().collect::<Vec<_>>(), ["files/read", "greet"]);
/// ```
pub fn library_names(agents: impl IntoIterator<Item = Agent>, project: &Project) -> IndexSet<String> {
    let mut names = IndexSet::new();
    let mut seen = HashSet::new();
    let mut open: Vec<_> = agents.into_iter().collect();
    while let Some(agent) = open.pop() {
        if !seen.insert((project.agent_file(&agent), agent.path().to_string())) {
            continue;
        }
        let agent = project.complete(agent);
        let scope = Scope::new(&agent);
        for member in project.members(&agent) {
            match Element::cast(member.pattern) {
                None => {}
                Some(Element::Tool(spec)) => names.extend(spec.name().map(Cow::into_owned)),
                Some(Element::Agent(inner)) => open.push(inner),
                Some(Element::Reference { name, .. }) => {
                    let found = project.resolve(&scope, &name);
                    match found.iter().find_map(|one| Agent::cast(one.pattern)) {
                        Some(called) => open.push(called),
                        None => drop(names.insert(name)),
                    }
                }
            }
        }
    }
    names
}

/// Returns a finding for each declaration of any agent in a project that cannot be bound to a library.
///
/// ```
/// use patter_core::{types::definition::Definition, library::{HasDefinition, Library, find_unbound}, declare::project::Project};
/// struct Tool(Definition);
/// impl HasDefinition for Tool {
///     fn definition(&self) -> &Definition {
///         &self.0
///     }
/// }
/// let project = Project::read([("hi.gram", "[hi:Agent {instruction: 'Greet.', model: 'demo'} | sayHello]")]);
/// let findings = find_unbound(&project, &Library::<Tool>::default());
/// assert_eq!(findings[0].diagnostic.message, "nothing implements the tool `sayHello`");
/// ```
pub fn find_unbound<T: HasDefinition>(project: &Project, library: &Library<T>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, agent) in project.all_agents() {
        let Err(error) = bind(&agent, project, library, MatchMode::Compatible) else { continue };
        // The agent that has the tool reports it, not those that inherit it.
        for failure in error.failures.into_iter().filter(|failure| failure.base.is_none()) {
            let diagnostic = rule::UNBOUND_TOOL.at(failure.span, failure.to_string());
            let diagnostic = match failure.hint() {
                Some(hint) => diagnostic.with_hint(hint),
                None => diagnostic,
            };
            findings.push(Finding { file, diagnostic });
        }
    }
    findings
}

struct Binder<'b, T> {
    project: &'b Project,
    /// The scope of the agent's references.
    scope: Scope<'b>,
    library: &'b Library<T>,
    mode: MatchMode,
    records: Arc<crate::types::signature::Records>,
}

impl<T: HasDefinition> Binder<'_, T> {
    fn target(&self, element: &Element) -> Result<Target, UnboundReason> {
        match element {
            Element::Tool(spec) => self.bind_spec(spec),
            Element::Agent(agent) => self.delegate(agent.clone()),
            Element::Reference { name, .. } => self.reference(name),
        }
    }

    fn reference(&self, name: &str) -> Result<Target, UnboundReason> {
        let found = self.project.resolve(&self.scope, name);
        let has_definition =
            |found: &Candidate<'_>| matches!(found.kind, DeclarationKind::Agent | DeclarationKind::Tool);
        let declared: Vec<_> = found.into_iter().filter(has_definition).collect();
        match declared.as_slice() {
            [] => {
                let entry = self.library.resolve(name).map_err(UnboundReason::Unresolved)?;
                let declared = Box::new(entry.value.definition().clone());
                Ok(Target::Tool { name: entry.name.clone(), declared })
            }
            [one] => match (Agent::cast(one.pattern), ToolSpec::cast(one.pattern)) {
                (Some(agent), _) => self.delegate(agent),
                (None, Some(spec)) => self.bind_spec(&spec),
                (None, None) => Err(UnboundReason::Undefined(DefinitionError::Unnamed)),
            },
            several => {
                let locations = several.iter().map(|one| self.project.location_of(one)).collect();
                Err(UnboundReason::Ambiguous { locations })
            }
        }
    }

    /// Returns another agent as the target, unless it would pass over a sealed tool.
    fn delegate(&self, agent: Agent) -> Result<Target, UnboundReason> {
        match agent.name().and_then(|name| self.library.sealed(&name)) {
            Some(entry) => Err(UnboundReason::Sealed { tool: entry.name.clone() }),
            None => Ok(Target::Agent { agent: Box::new(complete(agent, self.project, self.library)) }),
        }
    }

    fn bind_spec(&self, spec: &ToolSpec) -> Result<Target, UnboundReason> {
        let declared = spec.definition(&self.records).map_err(UnboundReason::Undefined)?;
        let entry = self.library.resolve(&declared.name).map_err(UnboundReason::Unresolved)?;
        let mode = if spec.is_exact() { MatchMode::Exact } else { self.mode };
        check_match(&declared, entry, mode)?;
        Ok(Target::Tool { name: entry.name.clone(), declared: Box::new(declared) })
    }
}

/// Returns an agent with what other declarations and the library say about it: the agents that it extends, and the tools that
/// a pipe starts and ends with.
pub(crate) fn complete<T: HasDefinition>(agent: Agent, project: &Project, library: &Library<T>) -> Agent {
    let agent = project.complete(agent);
    let Some((first, last)) = agent.pipe_ends() else { return agent };
    let signature = |name: &str| {
        let binder = Binder {
            project,
            scope: Scope::new(&agent),
            library,
            mode: MatchMode::Compatible,
            records: Arc::new(project.records().clone()),
        };
        // A pipe does not call agents, and one that calls itself must not lead back here.
        let is_agent = project.resolve(&binder.scope, name).iter().any(|one| one.kind == DeclarationKind::Agent);
        match (!is_agent).then(|| binder.reference(name))? {
            Ok(Target::Tool { declared, .. }) => Some(declared.signature),
            _ => None,
        }
    };
    match (signature(&first), signature(&last)) {
        (Some(first), Some(last)) => {
            agent.clone().with_signature(Signature { parameters: first.parameters, returns: last.returns })
        }
        _ => agent,
    }
}

fn check_match<T: HasDefinition>(
    declared: &Definition,
    entry: &Entry<T>,
    mode: MatchMode,
) -> Result<(), UnboundReason> {
    let tool = entry.value.definition();
    match mode {
        MatchMode::Compatible => {
            check_compatible((&declared.signature, &declared.records), (&tool.signature, &tool.records))
                .map_err(|reasons| UnboundReason::Incompatible { tool: entry.name.clone(), reasons })
        }
        MatchMode::Exact => check_exact(declared.contract(), tool.contract())
            .map_err(|differences| UnboundReason::Different { tool: entry.name.clone(), differences }),
    }
}
