//! Permission rules that are about nothing. A misspelt rule must not widen permissions silently, so nothing runs with one.

use super::{HasDefinition, Library};
use crate::declare::project::{Finding, Project};
use crate::declare::scope::Scope;
use crate::declare::{Agent, DeclarationKind, Element, ToolSpec};
use crate::name::FullName;
use crate::permission::{KnownTool, Permissions, Rule, ToolPattern, UnusedReason, UnusedRule};
use crate::rule;
use crate::types::signature::{Field, Presence, Shape, Type};
use patter_gram::{Diagnostic, Pattern, PatternKind};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Everything that permission rules may be about: the tools of a library, whether an agent uses them or not, and what a
/// project declares.
#[derive(Debug, Clone, Default)]
pub struct KnownTools<'t> {
    tools: Vec<KnownTool<'t>>,
    toolkits: Toolkits,
    /// The names that agents and toolkits refer to.
    references: HashSet<String>,
    /// The MCP servers whose tools are not known.
    missing_servers: Vec<String>,
}

impl<'t> KnownTools<'t> {
    /// Collects the tools of a library and of a project.
    pub fn new<T: HasDefinition>(project: &'t Project, library: &'t Library<T>) -> Self {
        let in_library = library.entries().map(|entry| {
            let definition = entry.value.definition();
            let parameters = Some(definition.signature.parameters.as_slice().into());
            KnownTool { name: entry.name.clone(), parameters, records: &definition.records }
        });
        let mut known = Self {
            tools: in_library.collect(),
            toolkits: Toolkits::new(project, library),
            references: HashSet::new(),
            missing_servers: library.missing_servers().to_vec(),
        };
        for source in project.files() {
            for pattern in source.tree.patterns() {
                known.add_declared(project, pattern, "");
            }
        }
        known
    }

    /// Returns why a rule never applies, or `None` if it may apply.
    pub fn unused(&self, rule: &Rule) -> Option<UnusedRule> {
        let rule = self.toolkits.expand(rule.clone());
        rule.unused(&self.tools).filter(|unused| !self.may_be_of_server(unused))
    }

    /// Returns whether a rule may be about a tool of a server that was not asked for its tools. A bare name that
    /// resembles a known one is a misspelling all the same, unless an agent refers to a tool by it.
    fn may_be_of_server(&self, unused: &UnusedRule) -> bool {
        let UnusedReason::UnknownTool { nearest } = &unused.reason else { return false };
        let (ToolPattern::Within(name) | ToolPattern::One(name)) = &unused.rule.tools else { return false };
        let is_bare = !name.contains('/') && matches!(unused.rule.tools, ToolPattern::One(_));
        match name.split('/').next() {
            _ if is_bare => (nearest.is_none() || self.references.contains(name)) && !self.missing_servers.is_empty(),
            toolbox => self.missing_servers.iter().any(|server| Some(server.as_str()) == toolbox),
        }
    }

    /// Adds what a pattern declares, and what is inside it.
    fn add_declared(&mut self, project: &'t Project, pattern: Pattern<'_>, namespace: &str) {
        let name = pattern.name().unwrap_or_default();
        let kind = DeclarationKind::from_pattern(pattern);
        let parameters = match kind {
            // Somebody else declares the tool, or nobody does.
            _ if pattern.kind() == PatternKind::Reference => {
                self.references.insert(name.into_owned());
                return;
            }
            Some(DeclarationKind::Agent) => Some(vec![agent_input()]),
            Some(DeclarationKind::Tool | DeclarationKind::Implementation) => {
                let signature = ToolSpec::cast(pattern).and_then(|spec| spec.signature(project.records()).ok());
                signature.map(|signature| signature.parameters)
            }
            Some(DeclarationKind::Toolkit) => {
                pattern.elements().for_each(|tool| self.add_declared(project, tool, ""));
                return;
            }
            Some(DeclarationKind::Toolbox) => {
                pattern.elements().for_each(|tool| self.add_declared(project, tool, &name));
                return;
            }
            _ => return,
        };
        if let Ok(name) = FullName::join(namespace, &name) {
            self.tools.push(KnownTool { name, parameters: parameters.map(Cow::from), records: project.records() });
        }
        if kind == Some(DeclarationKind::Agent) {
            pattern.elements().for_each(|element| self.add_declared(project, element, ""));
        }
    }
}

/// Returns the parameter of agents that are called as tools.
fn agent_input() -> Field {
    Field { name: "input".to_owned(), ty: Type::new(Shape::Text), presence: Presence::Required }
}

/// The toolkits of a project, which permission rules may name.
#[derive(Debug, Clone, Default)]
pub struct Toolkits {
    /// The names of the tools, by the name of the toolkit.
    tools: HashMap<String, Vec<String>>,
}

impl Toolkits {
    /// Reads the toolkits of a project, and finds their tools in a library.
    pub fn new<T>(project: &Project, library: &Library<T>) -> Self {
        let mut tools = HashMap::new();
        for (declaration, toolkit) in project.toolkits() {
            let written = project.toolkit_tools(&toolkit);
            // Rules that allow something need the full name of a tool that the toolkit names without its toolbox.
            let full = written.iter().filter_map(|name| library.resolve(name).ok()).map(|entry| entry.name.to_string());
            let full: Vec<_> = full.filter(|name| !written.contains(name)).collect();
            tools.insert(declaration.name.clone(), written.into_iter().chain(full).collect());
        }
        Self { tools }
    }

    /// Returns a rule in which the name of a toolkit stands for its tools.
    #[must_use]
    pub fn expand(&self, rule: Rule) -> Rule {
        let ToolPattern::One(name) = &rule.tools else { return rule };
        let Some(tools) = self.tools.get(name) else { return rule };
        let tools = ToolPattern::Toolkit { name: name.clone(), tools: tools.clone() };
        Rule { tools, ..rule }
    }
}

/// Returns the permissions of an agent for a tool that it declares: what its own rules say. Other rules can be added.
pub fn declared_permissions(agent: &Agent, project: &Project, toolkits: &Toolkits, tool: &FullName) -> Permissions {
    let (own, _) = agent.rules(project.agent_path(agent).unwrap_or_default());
    Permissions::for_declared([tool.clone()]).with_all(own.into_iter().map(|rule| toolkits.expand(rule)))
}

/// Returns a finding for each permission rule of any agent in a project that is about nothing.
pub fn find_unused_rules<T: HasDefinition>(project: &Project, library: &Library<T>) -> Vec<Finding> {
    // Most projects have no rules in their agents, and reading all signatures takes time.
    let mut known = None;
    let mut findings = Vec::new();
    for (file, source) in project.files().iter().enumerate() {
        // Only its own rules: the agents that it extends report theirs.
        for agent in source.tree.walk().filter_map(Agent::cast).filter(Agent::has_rules) {
            let known = known.get_or_insert_with(|| KnownTools::new(project, library));
            findings.extend(unused_rules(&agent, known).map(|diagnostic| Finding { file, diagnostic }));
        }
    }
    findings
}

/// Returns the first permission rule that is about nothing, of an agent or of an agent that it may call, with the path to
/// that agent.
pub(crate) fn first_unused_rule<T: HasDefinition>(
    agent: &Agent,
    project: &Project,
    library: &Library<T>,
) -> Option<(String, Diagnostic)> {
    let mut known = None;
    let mut open = vec![agent.clone()];
    let mut seen = HashSet::new();
    while let Some(agent) = open.pop() {
        let agent = project.complete(agent);
        let path = agent.path().to_string();
        if !seen.insert((path.clone(), agent.span())) {
            continue;
        }
        if agent.has_rules() {
            let known = known.get_or_insert_with(|| KnownTools::new(project, library));
            // The agent need not be part of the project.
            agent.pattern().into_iter().for_each(|pattern| known.add_declared(project, pattern, ""));
            if let Some(found) = unused_rules(&agent, known).next() {
                return Some((path, found));
            }
        }
        let scope = Scope::new(&agent);
        let members = project.members(&agent);
        let elements = members.iter().filter_map(|member| Element::cast(member.pattern));
        let mut called: Vec<_> = elements.filter_map(|element| delegate(&element, project, &scope)).collect();
        called.reverse();
        open.extend(called);
    }
    None
}

/// Returns the agent that an element refers to.
fn delegate<'p>(element: &Element, project: &'p Project, scope: &Scope<'p>) -> Option<Agent> {
    match element {
        Element::Agent(agent) => Some(agent.clone()),
        Element::Reference { name, .. } => Agent::cast(project.resolve(scope, name).first()?.pattern),
        Element::Tool(_) => None,
    }
}

/// Iterates over diagnostics for the rules of an agent that are about nothing.
fn unused_rules(agent: &Agent, known: &KnownTools<'_>) -> impl Iterator<Item = Diagnostic> {
    let found = agent.rules_with_spans("").0.into_iter().filter_map(|(rule, span)| {
        let unused = known.unused(&rule)?;
        Some(rule::UNUSED_PERMISSION.at(span, unused.to_string()).with_hint(unused.hint()))
    });
    found.collect::<Vec<_>>().into_iter()
}
