//! The graph of a project.

mod steps;
mod vertex;

use super::property_graph::{FilePlace, PropertyGraph, Relation, Vertex, VertexIndex};
use crate::case::{Check, read_cases};
use crate::declare::extends_span;
use crate::declare::project::{Declaration, Finding, Project};
use crate::declare::{Agent, DeclarationKind, Member, Toolkit};
use crate::library::{
    BindFailure, Binding, Layer, Library, LibraryTool, MatchMode, ResolveError, Target, Toolkits, UnboundReason,
    bind_each,
};
use crate::name::FullName;
use crate::permission::{Permissions, Rule};
use patter_gram::{Pattern, Severity, Span, Syntax};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use vertex::{add_properties, rule_vertex, tool_places, tool_vertex};

/// What the graph of a project is built from.
#[derive(Debug)]
pub struct ProjectGraph<'p, T> {
    /// The project.
    pub project: &'p Project,
    /// Its tools.
    pub library: &'p Library<T>,
    /// The permission rules that apply beside those of the agents.
    pub rules: &'p [Rule],
    /// The findings of the check.
    pub findings: &'p [Finding],
}

impl<T: LibraryTool> ProjectGraph<'_, T> {
    /// Builds the graph. Its schema is [`PROJECT_SCHEMA`](super::PROJECT_SCHEMA).
    pub fn build(&self) -> PropertyGraph {
        let toolkits = Toolkits::new(self.project, self.library);
        let shared = self.rules.iter().map(|rule| toolkits.expand(rule.clone())).collect();
        let mut builder = Builder {
            source: self,
            toolkits,
            shared,
            graph: PropertyGraph::default(),
            agents: BTreeMap::new(),
            callees: HashMap::new(),
        };
        builder.add_layers();
        builder.add_tools();
        builder.add_toolkits();
        builder.add_agents();
        builder.add_shared_rules();
        builder.add_cases();
        builder.add_schedules();
        builder.add_findings();
        builder.count();
        builder.graph
    }
}

/// An agent, as its file and where it starts in it.
type AgentKey = (usize, u32);

struct Builder<'b, 'p, T> {
    source: &'b ProjectGraph<'p, T>,
    toolkits: Toolkits,
    /// The rules that apply to all agents, with toolkits expanded.
    shared: Vec<Rule>,
    graph: PropertyGraph,
    agents: BTreeMap<AgentKey, (VertexIndex, Agent)>,
    /// What agents call, by the name that rules and cases use.
    callees: HashMap<String, BTreeSet<VertexIndex>>,
}

impl<'p, T: LibraryTool> Builder<'_, 'p, T> {
    fn place(&self, vertex: &mut Vertex, file: usize, span: Span) {
        let Some(source) = self.source.project.files().get(file) else { return };
        let (line, _) = source.tree.line_index().line_column(span.start);
        vertex.set("file", source.path.as_str());
        vertex.set("line", line);
        vertex.place = Some(FilePlace { file, span });
        vertex.source = Some(self.source.project.location(file, span));
    }

    fn add_layers(&mut self) {
        for layer in Layer::ALL {
            self.graph.add(Vertex::new("Layer", format!("layer:{layer}"), layer.name()));
        }
    }

    fn layer(&self, layer: Layer) -> Option<VertexIndex> {
        self.graph.find(&format!("layer:{layer}"))
    }

    /// Adds the tools of the library with their toolboxes.
    fn add_tools(&mut self) {
        let places = tool_places(self.source.project);
        for entry in self.source.library.entries() {
            let mut vertex = tool_vertex(entry);
            vertex.place = places.get(entry.name.as_str()).copied().filter(|_| entry.layer == Layer::Project);
            let tool = self.graph.add(vertex);
            let owner = match entry.name.namespace() {
                Some(namespace) => {
                    let id = format!("toolbox:{namespace}");
                    let toolbox = Vertex::new("Toolbox", id, namespace).with("layer", entry.layer.name());
                    let is_new = self.graph.find(&toolbox.id).is_none();
                    let toolbox = self.graph.add(toolbox);
                    if let (true, Some(layer)) = (is_new, self.layer(entry.layer)) {
                        self.graph.relate(Relation::new(layer, "declares", toolbox));
                    }
                    Some(toolbox)
                }
                None => self.layer(entry.layer),
            };
            if let Some(owner) = owner {
                self.graph.relate(Relation::new(owner, "declares", tool));
            }
        }
    }

    fn add_toolkits(&mut self) {
        let project = self.source.project;
        for (declaration, toolkit) in project.toolkits() {
            let mut vertex = Vertex::new("Toolkit", format!("toolkit:{}", declaration.name), &declaration.name);
            vertex.set("description", toolkit.description().map(Cow::into_owned));
            self.place(&mut vertex, declaration.file, declaration.span);
            let index = self.graph.add(vertex);
            if let Some(layer) = self.layer(Layer::Project) {
                self.graph.relate(Relation::new(layer, "declares", index));
            }
            for tool in self.toolkit_tools(&toolkit) {
                self.graph.relate(Relation::new(index, "includes", tool));
            }
        }
    }

    fn toolkit_tools(&self, toolkit: &Toolkit) -> BTreeSet<VertexIndex> {
        let names = self.source.project.toolkit_tools(toolkit);
        let entries = names.iter().filter_map(|name| self.source.library.resolve(name).ok());
        entries.filter_map(|entry| self.graph.find(&format!("tool:{}", entry.name))).collect()
    }

    /// Adds all agents, also those inside of others, and then what each of them has.
    fn add_agents(&mut self) {
        let project = self.source.project;
        let mut found = Vec::new();
        let mut counts: HashMap<String, usize> = HashMap::new();
        for (file, agent) in project.all_agents() {
            let path = agent.path().to_string();
            *counts.entry(path.clone()).or_default() += 1;
            found.push((file, path, agent));
        }
        for (file, path, agent) in found {
            let is_unique = counts.get(&path) == Some(&1) && !path.is_empty();
            let id = match is_unique {
                true => format!("agent:{path}"),
                false => format!("agent:{path}@{}", project.location(file, agent.span())),
            };
            let name = if path.is_empty() { "(no name)".to_owned() } else { path };
            let mut vertex = Vertex::new("Agent", id, name);
            add_properties(&mut vertex, &agent);
            self.place(&mut vertex, file, agent.span());
            let index = self.graph.add(vertex);
            if agent.is_workflow() {
                self.graph.add_label(index, "Workflow");
            }
            if agent.is_pipe() {
                self.graph.add_label(index, "Pipe");
            }
            self.agents.insert((file, agent.span().start), (index, agent));
        }
        let agents: Vec<_> = self.agents.iter().map(|(key, (index, agent))| (*key, *index, agent.clone())).collect();
        for (key, index, agent) in agents {
            self.add_agent(key, index, &agent);
        }
    }

    fn add_agent(&mut self, (file, _): AgentKey, index: VertexIndex, agent: &Agent) {
        let project = self.source.project;
        let around = agent.pattern().and_then(|pattern| pattern.syntax().parent()).and_then(Pattern::cast);
        let around = around.and_then(|around| self.agents.get(&(file, around.span().start))).map(|(index, _)| *index);
        if let Some(owner) = around.or_else(|| self.layer(Layer::Project)) {
            self.graph.relate(Relation::new(owner, "declares", index));
        }
        self.add_base(index, agent);
        let own = agent.model().and_then(Result::ok).map(|model| (model, false));
        let fallbacks = agent.fallbacks().into_iter().filter_map(Result::ok).map(|model| (model, true));
        for (model, is_fallback) in own.into_iter().chain(fallbacks) {
            let name = model.to_string();
            let vertex = Vertex::new("Model", format!("model:{name}"), name).with("provider", model.provider.name());
            let model = self.graph.add(vertex);
            self.graph.relate(Relation::new(index, "served_by", model).with("fallback", is_fallback));
        }
        let members = project.members(agent);
        let mut toolkits = BTreeSet::new();
        for name in members.iter().filter_map(Member::toolkit_name) {
            toolkits.extend(self.graph.find(&format!("toolkit:{name}")));
        }
        for toolkit in toolkits {
            self.graph.relate(Relation::new(index, "uses", toolkit));
        }
        let (rules, _) = agent.rules(project.agent_path(agent).unwrap_or_default());
        let rules: Vec<_> = rules.into_iter().map(|rule| self.toolkits.expand(rule)).collect();
        let bound = bind_each(agent, project, self.source.library, MatchMode::Compatible);
        let mut called = Vec::new();
        let known = self.graph.relations().len();
        for (member, bound) in members.iter().zip(bound) {
            let span = agent.pattern().map_or(member.element().span(), |pattern| member.span(pattern));
            let place = FilePlace { file, span };
            let toolkit = member.toolkit_name().map(Cow::into_owned);
            let base = member.base_name().map(Cow::into_owned);
            let found = match bound {
                Ok(binding) => self.add_call(index, &binding, (toolkit, base), place),
                Err(failure) => self.add_unbound(index, &failure, place),
            };
            let Some((callee, name)) = found else { continue };
            self.add_decisions(index, callee, &name, &rules, place);
            called.push((callee, name));
        }
        let own = self.graph.relations().get(known..).unwrap_or_default().iter();
        let calls = own.filter(|relation| relation.name == "calls");
        let callees = calls.filter_map(|call| Some((call.properties.get("as")?.as_str()?.to_owned(), call.to)));
        let callees: HashMap<_, _> = callees.collect();
        self.add_steps(index, file, agent, &callees);
        for (number, rule) in rules.iter().enumerate() {
            let id = format!("rule:{}#{number}", self.graph.vertex(index).map_or("", |vertex| vertex.id.as_str()));
            let vertex = rule_vertex(rule, id);
            let vertex = self.graph.add(vertex);
            self.graph.relate(Relation::new(index, "declares", vertex));
            let about = called.iter().filter(|(_, name)| rule.matches_tool(name)).map(|(callee, _)| *callee);
            for callee in about.collect::<BTreeSet<_>>() {
                self.graph.relate(Relation::new(vertex, "about", callee));
            }
        }
    }

    /// Adds the relation to the agent that an agent extends.
    fn add_base(&mut self, index: VertexIndex, agent: &Agent) {
        let Some(base) = agent.bases().next() else { return };
        let file = self.source.project.file_of(base);
        let found = file.and_then(|file| self.agents.get(&(file, base.span().start)));
        if let (Some((base, _)), Some(own)) = (found, agent.pattern()) {
            let file = self.source.project.file_of(own);
            let place = file.map(|file| FilePlace { file, span: extends_span(own) });
            self.graph.relate(Relation { place, ..Relation::new(index, "extends", *base) });
        }
    }

    /// Adds a call, and returns what is called, with the name that rules are about.
    fn add_call(
        &mut self,
        agent: VertexIndex,
        binding: &Binding,
        (toolkit, base): (Option<String>, Option<String>),
        place: FilePlace,
    ) -> Option<(VertexIndex, FullName)> {
        let project = self.source.project;
        let (callee, name) = match &binding.target {
            Target::Tool { name, .. } => (self.graph.find(&format!("tool:{name}"))?, Some(name.clone())),
            Target::Agent { agent: other } => {
                let file = project.agent_file(other)?;
                let (callee, _) = self.agents.get(&(file, other.span().start))?;
                (*callee, FullName::parse(&binding.name).ok())
            }
        };
        let is_agent = matches!(binding.target, Target::Agent { .. });
        let called = |relation: &'static str| Relation {
            place: Some(place),
            ..Relation::new(agent, relation, callee).with("as", binding.name.as_str())
        };
        self.graph.relate(called("calls").with("toolkit", toolkit).with("inherited", base));
        if is_agent {
            self.graph.relate(called("delegates_to"));
            if agent != callee {
                self.graph.add_label(callee, "Delegate");
            }
        }
        self.callees.entry(binding.name.clone()).or_default().insert(callee);
        Some((callee, name?))
    }

    /// Adds a relation for each decision that the rules may lead to.
    fn add_decisions(
        &mut self,
        agent: VertexIndex,
        callee: VertexIndex,
        name: &FullName,
        rules: &[Rule],
        place: FilePlace,
    ) {
        let relevant = rules.iter().chain(&self.shared).filter(|rule| rule.matches_tool(name));
        let permissions = Permissions::for_declared([name.clone()]).with_all(relevant.cloned());
        for outcome in permissions.possible_decisions(name) {
            let relation = Relation { place: Some(place), ..Relation::new(agent, "may", callee) };
            let relation = relation.with("decision", outcome.decision.name()).with("because", outcome.because);
            self.graph.relate(relation.with("when", outcome.when));
        }
    }

    /// Adds a tool that is called, but not there. Returns it if it may be there once a server is started.
    fn add_unbound(
        &mut self,
        agent: VertexIndex,
        failure: &BindFailure,
        place: FilePlace,
    ) -> Option<(VertexIndex, FullName)> {
        let is_of_server = matches!(
            &failure.reason,
            UnboundReason::Unresolved(ResolveError::NotFound { missing_servers, .. }) if !missing_servers.is_empty()
        );
        let status = if is_of_server { "not_started" } else { "missing" };
        let mark = if is_of_server { "" } else { "?" };
        let vertex = Vertex::new("Tool", format!("tool:{}{mark}", failure.name), failure.name.as_str());
        let mut vertex = vertex.with("status", status);
        let server = failure.name.split_once('/').map(|(server, _)| server);
        vertex.set("toolbox", server);
        let tool = self.graph.add(vertex);
        if let (true, Some(server)) = (is_of_server, server) {
            let toolbox = self.graph.add(Vertex::new("Toolbox", format!("toolbox:{server}"), server));
            let relation = Relation::new(toolbox, "declares", tool);
            if !self.graph.relations().contains(&relation) {
                self.graph.relate(relation);
            }
        }
        let relation = Relation::new(agent, "calls", tool).with("as", failure.name.as_str());
        self.graph.relate(Relation { place: Some(place), ..relation });
        self.callees.entry(failure.name.clone()).or_default().insert(tool);
        let name = FullName::parse(&failure.name).ok().filter(|_| is_of_server)?;
        Some((tool, name))
    }

    /// Adds the rules that apply to all agents.
    fn add_shared_rules(&mut self) {
        for (number, rule) in self.shared.clone().iter().enumerate() {
            let vertex = rule_vertex(rule, format!("rule:#{number}"));
            let vertex = self.graph.add(vertex);
            for entry in self.source.library.entries().filter(|entry| rule.matches_tool(&entry.name)) {
                if let Some(tool) = self.graph.find(&format!("tool:{}", entry.name)) {
                    self.graph.relate(Relation::new(vertex, "about", tool));
                }
            }
        }
    }

    fn add_cases(&mut self) {
        let project = self.source.project;
        let is_cases = |declaration: &&Declaration| declaration.kind == DeclarationKind::Cases;
        let mut ids: HashMap<usize, HashMap<String, Span>> = HashMap::new();
        for declaration in project.declarations().iter().filter(is_cases) {
            let Some(pattern) = project.pattern(declaration) else { continue };
            let (cases, _) = read_cases(pattern, ids.entry(declaration.file).or_default());
            for case in cases {
                let location = project.location(declaration.file, case.pattern.span());
                let mut vertex = Vertex::new("Case", format!("case:{location}"), case.id.as_str());
                vertex.set("input", case.turns.clone());
                vertex.set("tags", case.tags.clone());
                vertex.set("checks", case.checks.len());
                self.place(&mut vertex, declaration.file, case.pattern.span());
                let index = self.graph.add(vertex);
                let mut expected = BTreeSet::new();
                for (check, _) in &case.checks {
                    let names: &[String] = match check {
                        Check::Called { tool, .. } => std::slice::from_ref(tool),
                        Check::Order { tools } => tools,
                        _ => &[],
                    };
                    expected.extend(names.iter().filter_map(|name| self.callees.get(name)).flatten().copied());
                }
                for callee in expected {
                    self.graph.relate(Relation::new(index, "expects", callee));
                }
            }
        }
    }

    /// Adds the schedules, with the agents that they run.
    fn add_schedules(&mut self) {
        let project = self.source.project;
        let is_schedule = |declaration: &&Declaration| declaration.kind == DeclarationKind::Schedule;
        for declaration in project.declarations().iter().filter(is_schedule) {
            let Some(pattern) = project.pattern(declaration) else { continue };
            let text = |key: &str| pattern.get(key).and_then(Syntax::read_text).map(Cow::into_owned);
            let mut vertex = Vertex::new("Schedule", format!("schedule:{}", declaration.name), &declaration.name);
            for key in ["description", "at", "timezone", "webhook"] {
                vertex.set(key, text(key));
            }
            self.place(&mut vertex, declaration.file, declaration.span);
            let index = self.graph.add(vertex);
            if let Some(agent) = text("agent").and_then(|agent| self.graph.find(&format!("agent:{agent}"))) {
                self.graph.relate(Relation::new(index, "starts", agent));
            }
        }
    }

    /// Adds the findings of the check to what they are in.
    fn add_findings(&mut self) {
        let mut owners: HashMap<usize, Vec<(Span, VertexIndex)>> = HashMap::new();
        for (index, vertex) in self.graph.vertices().iter().enumerate() {
            let Some(place) = vertex.place.filter(|_| vertex.label() != "Case") else { continue };
            let index = VertexIndex(super::property_graph::position(index));
            owners.entry(place.file).or_default().push((place.span, index));
        }
        owners.values_mut().for_each(|owners| owners.sort_by_key(|(span, _)| span.start));
        for (number, finding) in self.source.findings.iter().enumerate() {
            let diagnostic = &finding.diagnostic;
            let level = if diagnostic.severity == Severity::Error { "error" } else { "warning" };
            let vertex = Vertex::new("Finding", format!("finding:{number}"), diagnostic.code).with("level", level);
            let mut vertex = vertex.with("message", diagnostic.message.as_ref());
            self.place(&mut vertex, finding.file, diagnostic.span);
            let index = self.graph.add(vertex);
            let around = owners.get(&finding.file).map_or(&[][..], Vec::as_slice);
            let before = around.partition_point(|(span, _)| span.start <= diagnostic.span.start);
            let before = around.get(..before).unwrap_or_default();
            // The one that starts last is the innermost.
            let owner = before.iter().rev().find(|(span, _)| diagnostic.span.end <= span.end);
            if let Some((_, owner)) = owner {
                self.graph.relate(Relation::new(*owner, "has", index));
            }
        }
    }

    /// Counts callers and callees.
    fn count(&mut self) {
        let mut tools: HashMap<VertexIndex, BTreeSet<VertexIndex>> = HashMap::new();
        let mut delegates = tools.clone();
        let mut callers = tools.clone();
        let mut users = tools.clone();
        for relation in self.graph.relations() {
            match relation.name {
                "calls" => {
                    if relation.from != relation.to {
                        callers.entry(relation.to).or_default().insert(relation.from);
                    }
                    let is_agent = self.graph.vertex(relation.to).is_some_and(|vertex| vertex.label() == "Agent");
                    let counted = if is_agent { &mut delegates } else { &mut tools };
                    if relation.from != relation.to {
                        counted.entry(relation.from).or_default().insert(relation.to);
                    }
                }
                "served_by" => {
                    users.entry(relation.to).or_default().insert(relation.from);
                }
                _ => {}
            }
        }
        let count = |of: &HashMap<VertexIndex, BTreeSet<VertexIndex>>, index| of.get(&index).map_or(0, BTreeSet::len);
        for position in 0..self.graph.vertices().len() {
            let index = VertexIndex(super::property_graph::position(position));
            let Some(vertex) = self.graph.vertex_mut(index) else { continue };
            match vertex.label() {
                "Agent" => {
                    vertex.set("tools", count(&tools, index));
                    vertex.set("delegates", count(&delegates, index));
                    vertex.set("callers", count(&callers, index));
                }
                "Tool" => vertex.set("callers", count(&callers, index)),
                "Model" => vertex.set("agents", count(&users, index)),
                _ => {}
            }
        }
    }
}
