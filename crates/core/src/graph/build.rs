//! Reading a project as a graph.

use super::{Availability, Edge, EdgeKind, Graph, Node, NodeKind, Permission, Problem, Steps};
use crate::declare::Agent;
use crate::declare::project::{Finding, Project};
use crate::declare::workflow::{StepKind, WorkflowSpec};
use crate::library::{
    BindFailure, Entry, Layer, Library, LibraryTool, MatchMode, ResolveError, Target, Toolkits, UnboundReason,
    bind_each, declared_permissions,
};
use crate::name::FullName;
use crate::permission::Rule;
use patter_gram::Span;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What a graph is built from.
#[derive(Debug)]
pub struct GraphSource<'p, T> {
    /// The project.
    pub project: &'p Project,
    /// Its tools.
    pub library: &'p Library<T>,
    /// The rules that apply beside those of the agents.
    pub rules: &'p [Rule],
    /// The findings of the check.
    pub findings: &'p [Finding],
}

impl<T> Clone for GraphSource<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for GraphSource<'_, T> {}

/// The part of a project that is shown. What it calls is shown too, wherever that is declared.
#[derive(Debug, Clone)]
pub enum Selection {
    /// Everything.
    Project,
    /// The agents and tools of some files, as indices in [`Project::files`].
    Files(BTreeSet<usize>),
    /// The agents with these names or paths, in some files.
    Agents {
        /// The names or paths.
        names: BTreeSet<String>,
        /// The files.
        files: BTreeSet<usize>,
    },
}

/// An agent, as its file and where it starts in it.
type AgentKey = (usize, u32);

/// An agent that is part of a project.
struct KnownAgent {
    agent: Agent,
    path: String,
    file: usize,
    id: String,
}

struct Builder<'p, T> {
    source: GraphSource<'p, T>,
    toolkits: Toolkits,
    rules: Vec<Rule>,
    agents: BTreeMap<AgentKey, KnownAgent>,
    nodes: BTreeMap<String, Node>,
    edges: Vec<Edge>,
}

impl Graph {
    /// Reads a project, or a part of it, as a graph.
    pub fn build<T: LibraryTool>(source: GraphSource<'_, T>, selection: &Selection) -> Self {
        let toolkits = Toolkits::new(source.project, source.library);
        let rules = source.rules.iter().map(|rule| toolkits.expand(rule.clone())).collect();
        let agents = known_agents(source.project);
        let mut builder = Builder { source, toolkits, rules, agents, nodes: BTreeMap::new(), edges: Vec::new() };
        builder.add_agents(selection);
        builder.add_unused_tools(selection);
        builder.add_problems();
        let delegates: BTreeSet<_> = builder
            .edges
            .iter()
            .filter(|edge| edge.kind == EdgeKind::DelegatesTo && edge.from != edge.to)
            .map(|edge| edge.to.clone())
            .collect();
        let nodes = builder.nodes.into_values().map(|node| match node.kind {
            NodeKind::Agent if delegates.contains(&node.id) => Node { kind: NodeKind::Delegate, ..node },
            _ => node,
        });
        Graph::new(nodes, builder.edges)
    }
}

/// Returns all agents of a project, also those inside of others, with their ids.
fn known_agents(project: &Project) -> BTreeMap<AgentKey, KnownAgent> {
    let mut agents = BTreeMap::new();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for (file, agent) in project.all_agents() {
        let path = agent.path().to_string();
        *counts.entry(path.clone()).or_default() += 1;
        let key = (file, agent.span().start);
        agents.insert(key, KnownAgent { agent, path, file, id: String::new() });
    }
    for agent in agents.values_mut() {
        let is_unique = counts.get(&agent.path) == Some(&1) && !agent.path.is_empty();
        agent.id = match is_unique {
            true => format!("agent:{}", agent.path),
            false => format!("agent:{}@{}", agent.path, project.location(agent.file, agent.agent.span())),
        };
    }
    agents
}

impl<T: LibraryTool> Builder<'_, T> {
    /// Adds the selected agents, and all those that they call.
    fn add_agents(&mut self, selection: &Selection) {
        let is_selected = |agent: &KnownAgent| match selection {
            Selection::Project => true,
            Selection::Files(files) => files.contains(&agent.file),
            Selection::Agents { names, files } => {
                let is_named =
                    names.contains(&agent.path) || agent.agent.name().is_some_and(|name| names.contains(&*name));
                files.contains(&agent.file) && is_named
            }
        };
        let mut open: Vec<_> =
            self.agents.iter().filter(|(_, agent)| is_selected(agent)).map(|(key, _)| *key).collect();
        let mut seen: BTreeSet<_> = open.iter().copied().collect();
        while let Some(key) = open.pop() {
            open.extend(self.add_agent(key).into_iter().filter(|called| seen.insert(*called)));
        }
    }

    /// Adds an agent with what it calls, and returns the agents that it calls or extends.
    fn add_agent(&mut self, key: AgentKey) -> Vec<AgentKey> {
        let project = self.source.project;
        let Some(known) = self.agents.get(&key) else { return Vec::new() };
        let agent = known.agent.clone();
        let id = known.id.clone();
        let place = project.location(known.file, agent.span());
        let name = if known.path.is_empty() { "(no name)".to_owned() } else { known.path.clone() };
        let model = agent.model().and_then(Result::ok).map(|model| model.to_string());
        if let Some(model) = &model {
            let node = Node::new(NodeKind::Model, model.as_str());
            self.edges.push(Edge::new(&id, &node.id, EdgeKind::ServedBy));
            self.add(node);
        }
        let node = Node {
            id: id.clone(),
            place: Some(place),
            description: agent.description().map(std::borrow::Cow::into_owned),
            model,
            steps: read_steps(&agent),
            ..Node::new(NodeKind::Agent, name)
        };
        self.add(node);
        let mut called = Vec::new();
        if let Some(base) = agent.bases().next() {
            let key = (project.file_of(base).unwrap_or_default(), base.span().start);
            if let Some(base) = self.agents.get(&key) {
                self.edges.push(Edge::new(&id, &base.id, EdgeKind::Extends));
                called.push(key);
            }
        }
        for bound in bind_each(&agent, project, self.source.library, MatchMode::Compatible) {
            match bound {
                Ok(binding) => match binding.target {
                    Target::Tool { name, .. } => {
                        let Some(entry) = self.source.library.get(name.as_str()) else { continue };
                        let tool = self.add_tool(entry);
                        self.add_call(&agent, &id, tool, &binding.name, &name, EdgeKind::Calls);
                    }
                    Target::Agent { agent: other } => {
                        let file = project.agent_file(&other).unwrap_or_default();
                        let key = (file, other.span().start);
                        let Some(other) = self.agents.get(&key) else { continue };
                        called.push(key);
                        let target = other.id.clone();
                        // Rules are about the name that the agent calls.
                        if let Ok(name) = FullName::parse(&binding.name) {
                            self.add_call(&agent, &id, target, &binding.name, &name, EdgeKind::DelegatesTo);
                        } else {
                            self.edges.push(Edge::new(&id, target, EdgeKind::DelegatesTo));
                        }
                    }
                },
                Err(failure) => self.add_unbound(&id, key.0, &failure),
            }
        }
        called
    }

    fn add_call(&mut self, agent: &Agent, from: &str, to: String, called: &str, name: &FullName, kind: EdgeKind) {
        let permissions =
            declared_permissions(agent, self.source.project, &self.toolkits, name).with_all(self.rules.clone());
        let verdict = permissions.decide(name, &serde_json::Map::new());
        let conditional = permissions.rules_for(name).filter(|rule| !rule.conditions.is_empty());
        let permission = Permission {
            decision: verdict.decision,
            because: verdict.reason.to_string(),
            conditional: conditional.map(ToString::to_string).collect(),
        };
        let is_alias = self.nodes.get(&to).is_some_and(|node| node.name != called) && kind == EdgeKind::Calls;
        // A bare name of a tool says no more than its full name.
        let is_alias = is_alias && name.tool_name() != called;
        let name = is_alias.then(|| called.to_owned());
        self.edges.push(Edge { name, permission: Some(permission), ..Edge::new(from, to, kind) });
    }

    /// Adds a declaration that is not bound, as a tool of its own.
    fn add_unbound(&mut self, from: &str, file: usize, failure: &BindFailure) {
        let missing = match &failure.reason {
            UnboundReason::Unresolved(ResolveError::NotFound { missing_servers, .. }) => missing_servers.as_slice(),
            _ => &[],
        };
        let availability = if missing.is_empty() { Availability::Missing } else { Availability::NotStarted };
        let node = Node { availability, ..Node::new(NodeKind::Tool, failure.name.as_str()) };
        // Another agent may be bound to a tool of that name.
        let node = match availability {
            Availability::Missing => Node { id: format!("tool:{}?", failure.name), ..node },
            _ => node,
        };
        let id = node.id.clone();
        self.edges.push(Edge::new(from, &id, EdgeKind::Calls));
        self.add(node);
        let server = failure.name.split_once('/').map(|(server, _)| server);
        match (missing, server) {
            ([_, ..], Some(server)) => {
                let toolbox = Node { availability, ..Node::new(NodeKind::Toolbox, server) };
                self.edges.push(Edge::new(&id, &toolbox.id, EdgeKind::BoundTo));
                self.add(toolbox);
            }
            ([_, ..], None) => {}
            ([], _) => {
                let place = self.source.project.location(file, failure.span);
                let diagnostic = crate::rule::UNBOUND_TOOL.at(failure.span, failure.to_string());
                let problem = Problem::new(place, &diagnostic);
                let node = self.nodes.get_mut(&id);
                node.into_iter().for_each(|node| add_problem(node, problem.clone()));
            }
        }
    }

    /// Adds a tool with its toolbox and its layer, and returns its id.
    fn add_tool(&mut self, entry: &Entry<T>) -> String {
        let tool = &entry.value;
        let effect = tool.facts().effect;
        let node = Node {
            place: Some(tool.source().to_owned()),
            description: Some(tool.definition().description.trim().to_owned()).filter(|text| !text.is_empty()),
            effect: Some(effect).filter(|effect| !effect.is_empty()),
            layer: Some(entry.layer),
            ..Node::new(NodeKind::Tool, entry.name.as_str())
        };
        let id = node.id.clone();
        if self.nodes.contains_key(&id) {
            return id;
        }
        self.add(node);
        let declared = match entry.name.namespace() {
            Some(namespace) => {
                let toolbox = Node { layer: Some(entry.layer), ..Node::new(NodeKind::Toolbox, namespace) };
                let toolbox_id = toolbox.id.clone();
                self.edges.push(Edge::new(&id, &toolbox_id, EdgeKind::BoundTo));
                self.add(toolbox);
                toolbox_id
            }
            None => id.clone(),
        };
        let layer = Node { layer: Some(entry.layer), ..Node::new(NodeKind::Layer, entry.layer.name()) };
        self.edges.push(Edge::new(&layer.id, declared, EdgeKind::Declares));
        self.add(layer);
        id
    }

    /// Adds the tools of the project that no agent calls, if the project is shown as a whole.
    fn add_unused_tools(&mut self, selection: &Selection) {
        if let Selection::Project = selection {
            let library = self.source.library;
            let declared = library.entries().filter(|entry| entry.layer == Layer::Project);
            declared.for_each(|entry| drop(self.add_tool(entry)));
        }
    }

    /// Adds the findings of the check to the innermost agent or tool that they are in.
    fn add_problems(&mut self) {
        let project = self.source.project;
        let mut tools: HashMap<usize, Vec<(Span, String)>> = HashMap::new();
        let in_toolboxes =
            project.declarations().iter().filter_map(|toolbox| Some((toolbox, project.pattern(toolbox)?)));
        for (toolbox, pattern) in in_toolboxes.filter(|(_, pattern)| pattern.has_label("Toolbox")) {
            for tool in pattern.elements() {
                let id = format!("tool:{}/{}", toolbox.name, tool.name().unwrap_or_default());
                tools.entry(toolbox.file).or_default().push((tool.span(), id));
            }
        }
        tools.values_mut().for_each(|tools| tools.sort_by_key(|(span, _)| span.start));
        for finding in self.source.findings {
            let span = finding.diagnostic.span;
            let contains = |outer: Span| outer.start <= span.start && span.end <= outer.end;
            // The one that starts last is the innermost.
            let around = self.agents.range((finding.file, 0)..=(finding.file, span.start)).rev();
            let agent = around.map(|(_, agent)| agent).find(|agent| contains(agent.agent.span()));
            // Tools are not nested, so only the last one that starts before can contain it.
            let in_file = tools.get(&finding.file).map_or(&[][..], Vec::as_slice);
            let before = in_file.partition_point(|(outer, _)| outer.start <= span.start);
            let tool = in_file.get(..before).and_then(<[_]>::last).filter(|(outer, _)| contains(*outer));
            let Some(id) = agent.map(|agent| &agent.id).or(tool.map(|(_, id)| id)) else { continue };
            let problem = Problem::new(project.location(finding.file, span), &finding.diagnostic);
            if let Some(node) = self.nodes.get_mut(id) {
                add_problem(node, problem);
            }
        }
    }

    fn add(&mut self, node: Node) {
        self.nodes.entry(node.id.clone()).or_insert(node);
    }
}

fn read_steps(agent: &Agent) -> Option<Steps> {
    let spec = WorkflowSpec::read(agent.pattern().filter(|_| agent.is_workflow())?);
    let people = spec.steps.iter().filter(|step| matches!(step.kind, StepKind::Human { .. }));
    Some(Steps { count: spec.steps.len(), people: people.count(), is_pipe: agent.is_pipe() })
}

fn add_problem(node: &mut Node, problem: Problem) {
    if !node.problems.contains(&problem) {
        node.problems.push(problem);
    }
}
