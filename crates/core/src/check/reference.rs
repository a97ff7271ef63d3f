//! Checks of references between declarations: undefined, ambiguous, cyclic, unused.

use super::Checker;
use crate::declare::project::File;
use crate::declare::scope::Candidate;
use crate::declare::workflow::{self, StepKind, WorkflowSpec, callable_elements, callee};
use crate::declare::{Agent, DeclarationKind, Element};
use crate::permission::{Rule, ToolPattern};
use crate::rule;
use crate::text::nearest;
use crate::types::schema::collect_record_names;
use crate::types::signature::{Presence, Records, Shape, Signature, Type};
use indexmap::IndexMap;
use patter_gram::{Diagnostic, Pattern, PatternKind, Syntax, SyntaxId};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

/// Keeps the check linear: each suggestion compares a name with all others.
const MAX_SUGGESTIONS: usize = 300;

impl<'p> Checker<'p> {
    /// Checks the references of the current file.
    pub(super) fn check_references(&mut self, source: &'p File) {
        for pattern in source.tree.patterns() {
            self.check_references_in(pattern);
        }
    }

    /// Checks the references of a pattern and of all agents inside it.
    fn check_references_in(&mut self, pattern: Pattern<'p>) {
        match DeclarationKind::from_pattern(pattern) {
            Some(DeclarationKind::Agent) => return self.check_references_of(pattern),
            Some(DeclarationKind::Toolkit) => {
                let references = pattern.elements().filter(|element| element.kind() == PatternKind::Reference);
                self.used.extend(references.filter_map(Pattern::name).map(Cow::into_owned));
            }
            _ => {}
        }
        pattern.elements().for_each(|element| self.check_references_in(element));
    }

    /// Checks the references of an agent and of all agents inside it.
    fn check_references_of(&mut self, agent: Pattern<'p>) {
        let caller = self.calls.add(self.file, agent);
        self.scope.enter(self.project, agent);
        let is_workflow = workflow::is_workflow(agent);
        // No model chooses what a workflow calls.
        if !is_workflow {
            self.check_callables(agent);
        }
        let elements = if is_workflow { callable_elements(agent) } else { agent.elements().collect() };
        for element in elements {
            if let Some(name) = callee(element).filter(|_| is_workflow && element.kind() == PatternKind::Node) {
                let found = self.project.resolve(&self.scope, &name);
                self.check_step_callee(agent, element, &name, &found);
                self.add_use(agent, caller, &name, &found);
            } else if element.kind() == PatternKind::Reference {
                let name = element.name().unwrap_or_default();
                let found = self.project.resolve(&self.scope, &name);
                self.check_reference(agent, element, &name, &found);
                if let Some(called) = called_agent(&found) {
                    self.check_meaning_in_library(element, Some(called));
                }
                self.add_use(agent, caller, &name, &found);
            } else {
                self.check_second_meaning(agent, element);
                if DeclarationKind::from_pattern(element) == Some(DeclarationKind::Agent) {
                    self.calls.push(caller, self.file, element);
                }
                self.check_references_in(element);
            }
        }
        self.add_inherited_calls(agent, caller);
        self.scope.leave();
    }

    /// Adds what an agent refers to by a name: what was found, or what is probably meant.
    fn add_use(&mut self, agent: Pattern<'p>, caller: AgentId, name: &str, found: &[Candidate<'p>]) {
        if let Some((file, called)) = called_agent(found) {
            self.calls.push(caller, file, called);
        }
        let intended = if found.is_empty() { self.suggest(agent, name) } else { None };
        self.used.extend(intended.map(str::to_owned));
        if !self.used.contains(name) {
            self.used.insert(name.to_owned());
        }
    }

    /// Adds the agents that an agent calls because those that it extends do.
    fn add_inherited_calls(&mut self, pattern: Pattern<'p>, caller: AgentId) {
        for base in self.project.bases_of(pattern) {
            for member in self.project.members_of(&self.scope, base, Some(base)) {
                let found = match member.pattern.kind() {
                    PatternKind::Reference => self.resolve(member.pattern),
                    _ => self.project.file_of(member.pattern).map(|file| (file, member.pattern)),
                };
                let is_agent = |called| DeclarationKind::from_pattern(called) == Some(DeclarationKind::Agent);
                if let Some((file, called)) = found.filter(|(_, called)| is_agent(*called)) {
                    self.calls.push(caller, file, called);
                }
            }
        }
    }

    /// Reports a declaration inside an agent whose name has another meaning around it, if one of both is an agent. Tools
    /// of the same name are declarations of the same tool of the library.
    fn check_second_meaning(&mut self, agent: Pattern<'p>, element: Pattern<'p>) {
        let (Some(kind), Some(name)) = (DeclarationKind::from_pattern(element), element.name()) else { return };
        let others = self.project.resolve_outer(&self.scope, &name);
        let is_agent = |other: &&Candidate<'p>| [kind, other.kind].contains(&DeclarationKind::Agent);
        let Some(other) = others.iter().find(is_agent) else {
            if kind == DeclarationKind::Agent {
                self.check_meaning_in_library(element, None);
            }
            return;
        };
        let span = element.identifier().map_or(element.span(), Syntax::span);
        let location = self.project.location_of(other);
        let message =
            format!("`{name}` has two meanings: this {}, and the {} in {location}", kind.noun(), other.kind.noun());
        let agent = agent.name().unwrap_or_default();
        let hint = format!("inside `{agent}` the name refers to this {}; rename one of them", kind.noun());
        self.report(rule::SECOND_MEANING.at(span, message).with_hint(hint));
    }

    /// Reports an element of an agent that calls an agent, but could be taken for a tool of the library. The called agent is
    /// declared in a file, or is the element itself.
    fn check_meaning_in_library(&mut self, element: Pattern<'p>, declared: Option<(usize, Pattern<'p>)>) {
        let name = element.name().unwrap_or_default();
        let Some(tool) = self.library.find(&name) else { return };
        let span = element.identifier().map_or(element.span(), Syntax::span);
        let agent = declared.map_or_else(
            || "this agent".to_owned(),
            |(file, agent)| format!("the agent in {}", self.project.location(file, agent.span())),
        );
        let message = format!("`{name}` has two meanings: {agent}, and the tool `{tool}`");
        let hint = "here the name refers to the agent; rename it to tell the two apart";
        self.report(rule::SECOND_MEANING.at(span, message).with_hint(hint));
    }

    fn check_reference(&mut self, agent: Pattern<'p>, reference: Pattern<'p>, name: &str, found: &[Candidate<'p>]) {
        match found {
            [_] => {}
            // An agent with a syntax error may have swallowed something, or lost it.
            [] if self.is_broken(agent.span()) => {}
            [] => {
                let diagnostic = self.undefined_reference(agent, reference, name);
                if let Some(diagnostic) = diagnostic {
                    self.report(diagnostic);
                }
            }
            several => {
                let locations: Vec<_> = several.iter().map(|one| self.project.location_of(one)).collect();
                let message = format!("`{name}` is declared in {} places", locations.len());
                let diagnostic = rule::AMBIGUOUS_REFERENCE.at(reference.span(), message);
                self.report(
                    diagnostic.with_hint(format!("it is declared in {}; rename all but one", locations.join(" and "))),
                );
            }
        }
    }

    /// Reports a reference of a toolkit that is not declared, or more than once.
    pub(super) fn check_reference_of_toolkit(
        &mut self,
        toolkit: Pattern<'p>,
        reference: Pattern<'p>,
        name: &str,
        count: usize,
    ) {
        let diagnostic = match count {
            0 => self.undefined_reference(toolkit, reference, name),
            1 => None,
            _ => {
                let message = format!("`{name}` is declared in {count} places");
                Some(rule::AMBIGUOUS_REFERENCE.at(reference.span(), message).with_hint("rename all but one"))
            }
        };
        diagnostic.into_iter().for_each(|diagnostic| self.report(diagnostic));
    }

    fn undefined_reference(&self, agent: Pattern<'p>, reference: Pattern<'p>, name: &str) -> Option<Diagnostic> {
        if self.is_in_library(name) {
            return None;
        }
        let is_type = self.project.records().get(name).is_some();
        let is_toolbox =
            self.project.declarations().iter().any(|one| one.kind == DeclarationKind::Toolbox && one.name == name);
        if is_type || is_toolbox {
            let noun = if is_type { "a record type" } else { "a toolbox" };
            let found = rule::NOT_CALLABLE.at(reference.span(), format!("`{name}` is {noun}, which cannot be called"));
            return Some(found.with_hint("an agent can call only tools and other agents"));
        }
        let found = rule::UNDEFINED_REFERENCE.at(reference.span(), format!("`{name}` is not declared in this project"));
        Some(found.with_hint(match self.suggest(agent, name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "declare it, or provide it in a library when the agent runs".to_owned(),
        }))
    }

    /// Returns whether the library contains a tool, or may contain it.
    pub(super) fn is_in_library(&self, name: &str) -> bool {
        self.library.contains(name)
    }

    /// Returns the name that an undefined reference of an agent is most likely a misspelling of. Agents that lead back to
    /// this one are not meant.
    pub(super) fn suggest(&self, agent: Pattern<'p>, name: &str) -> Option<&'p str> {
        if !self.project.resolve(&self.scope, name).is_empty() || self.is_in_library(name) || !self.may_suggest() {
            return None;
        }
        let own = agent.name().unwrap_or_default();
        let near = |excluded: &[&str]| {
            let names = self.project.callable_names().chain(self.library.iter());
            nearest(name, names.filter(|name| !excluded.contains(name)))
        };
        let mut excluded = Vec::new();
        while let Some(found) = near(&excluded) {
            if !self.leads_to(found, &own) {
                return Some(found);
            }
            excluded.push(found);
        }
        None
    }

    /// Returns whether to look for a similar name once more.
    pub(super) fn may_suggest(&self) -> bool {
        self.suggestions.fetch_add(1, Ordering::Relaxed) < MAX_SUGGESTIONS
    }

    /// Returns whether some name got no suggestion because others did.
    pub(super) fn has_spent_suggestions(&self) -> bool {
        self.suggestions.load(Ordering::Relaxed) > MAX_SUGGESTIONS
    }

    /// Returns whether two agents are the same, or the first delegates to the second, directly or through others.
    pub(super) fn leads_to(&self, from: &str, to: &str) -> bool {
        /// Keeps the search short in huge projects. Beyond it, the answer is yes, since a lint must not guess.
        const MAX_AGENTS: usize = 1000;
        let mut open = vec![from.to_owned()];
        let mut seen = HashSet::new();
        while let Some(name) = open.pop() {
            if name == to || seen.len() > MAX_AGENTS {
                return true;
            }
            if seen.insert(name.clone()) {
                let agents = self.project.find_agent(&name).into_iter();
                open.extend(agents.flat_map(|agent| all_callees(&agent)));
            }
        }
        false
    }

    /// Reports top-level tools that no agent uses. Without agents, the files are a library. Declarations of the tools of an
    /// MCP server record what the server offers, so not all of them have to be used.
    pub(super) fn report_unused(&mut self) {
        let project = self.project;
        if project.agents().next().is_none() {
            return;
        }
        for (declaration, tool) in project.tools() {
            let is_of_server = declaration.name.contains('/') && self.is_in_library(&declaration.name);
            if !self.used.contains(&declaration.name) && !declaration.name.is_empty() && !is_of_server {
                let span = tool.pattern().and_then(Pattern::identifier).map_or(declaration.span, Syntax::span);
                let found = rule::UNUSED_DECLARATION.at(span, format!("no agent uses the tool `{}`", declaration.name));
                self.report_at(declaration, found.with_hint("add it to an agent, or remove it"));
            }
        }
        let mut ruled: HashSet<String> = HashSet::new();
        if project.toolkits().next().is_some() {
            let agents = project.files().iter().flat_map(|file| file.tree.walk()).filter_map(Agent::cast);
            let own: Vec<_> = agents.flat_map(|agent| agent.rules("").0).collect();
            ruled.extend(own.iter().chain(self.options.rules).filter_map(tool_in_rule));
        }
        for (declaration, _) in project.toolkits() {
            let is_used = self.used.contains(&declaration.name) || ruled.contains(&declaration.name);
            if !is_used && !declaration.name.is_empty() {
                let pattern = project.pattern(declaration);
                let span = pattern.and_then(Pattern::identifier).map_or(declaration.span, Syntax::span);
                let message = format!("no agent and no rule uses the toolkit `{}`", declaration.name);
                let found = rule::UNUSED_DECLARATION.at(span, message);
                self.report_at(declaration, found.with_hint("add it to an agent or a rule, or remove it"));
            }
        }
        self.report_unused_records();
    }

    /// Collects the record types that the signatures and the agents of a file use.
    pub(super) fn collect_records(&mut self, source: &'p File) {
        let mut names = Vec::new();
        let agents = source.tree.walk().filter_map(Agent::cast);
        let types: Vec<_> = agents.flat_map(|agent| agent_types(&agent, self.project.records())).collect();
        types.iter().for_each(|ty| collect_record_names(ty, &mut names));
        let signatures = self.signatures.get(&self.file).into_iter().flat_map(HashMap::values);
        for Signature { parameters, returns, .. } in signatures {
            parameters.iter().for_each(|parameter| collect_record_names(&parameter.ty, &mut names));
            collect_record_names(returns, &mut names);
        }
        self.records.extend(names.into_iter().map(str::to_owned));
    }

    /// Reports record types that no signature uses, unless there are errors, because an invalid signature may use any.
    fn report_unused_records(&mut self) {
        let project = self.project;
        if self.findings.iter().any(|finding| finding.diagnostic.is_error()) {
            return;
        }
        let mut open: Vec<String> = self.records.drain().collect();
        let mut used = HashSet::new();
        while let Some(name) = open.pop() {
            let mut inner = Vec::new();
            if let Some(record) = project.records().get(&name).filter(|_| !used.contains(&name)) {
                record.fields.iter().for_each(|field| collect_record_names(&field.ty, &mut inner));
            }
            open.extend(inner.into_iter().map(str::to_owned));
            used.insert(name);
        }
        for declaration in project.declarations().iter().filter(|one| one.kind == DeclarationKind::Record) {
            if !used.contains(&declaration.name) {
                let pattern = project.pattern(declaration);
                let span = pattern.and_then(Pattern::identifier).map_or(declaration.span, Syntax::span);
                let found = rule::UNUSED_DECLARATION
                    .at(span, format!("no signature uses the record type `{}`", declaration.name));
                self.report_at(declaration, found.with_hint("use it in a signature, or remove it"));
            }
        }
    }

    /// Reports agents that delegate to themselves, directly or through others.
    pub(super) fn check_cycles(&mut self) {
        /// The maximum number of cycles to report.
        const MAX_CYCLES: usize = 50;
        let cycles = find_cycles(self.calls.agents.len(), |index| self.calls.callees(index));
        for cycle in cycles.into_iter().take(MAX_CYCLES) {
            let members: Vec<_> = cycle.iter().filter_map(|index| self.calls.agents.get_index(*index)).collect();
            let Some(((file, _), (first, _))) = members.first() else { continue };
            let names: Vec<_> = members.iter().map(|(_, (agent, _))| agent.name().unwrap_or_default()).collect();
            let first = *first;
            self.file = *file;
            self.report_cycle(first, &names);
        }
    }

    fn report_cycle(&mut self, agent: Pattern<'p>, cycle: &[Cow<'p, str>]) {
        let span = agent.identifier().map_or(agent.span(), Syntax::span);
        let path: Vec<_> = cycle.iter().chain(cycle.first()).map(|name| format!("`{name}`")).collect();
        let message = match cycle {
            [name] => format!("the agent `{name}` delegates to itself"),
            _ => format!("agents delegate in a cycle: {}", path.join(" → ")),
        };
        let found = rule::DELEGATION_CYCLE.at(span, message);
        self.report(found.with_hint("a run might never end; remove one of the references"));
    }
}

/// Returns the file and the pattern of the agent that a name refers to, if it is one.
fn called_agent<'p>(found: &[Candidate<'p>]) -> Option<(usize, Pattern<'p>)> {
    match found {
        [Candidate { kind: DeclarationKind::Agent, pattern, file: Some(file) }] => Some((*file, *pattern)),
        _ => None,
    }
}

/// Which agents call which.
#[derive(Clone, Default)]
pub(super) struct Calls<'p> {
    /// The agents by file and id, with the agents that they call.
    pub(super) agents: IndexMap<AgentId, (Pattern<'p>, Vec<AgentId>)>,
}

/// The file of an agent, and its id there.
type AgentId = (usize, SyntaxId);

impl<'p> Calls<'p> {
    /// Adds an agent, and returns its id.
    fn add(&mut self, file: usize, pattern: Pattern<'p>) -> AgentId {
        let id = (file, pattern.syntax().id());
        self.agents.entry(id).or_insert((pattern, Vec::new()));
        id
    }

    /// Adds the agents of further files.
    pub(super) fn extend(&mut self, others: Self) {
        self.agents.extend(others.agents);
    }

    fn push(&mut self, caller: AgentId, file: usize, called: Pattern<'p>) {
        if let Some((_, callees)) = self.agents.get_mut(&caller) {
            callees.push((file, called.syntax().id()));
        }
    }

    pub(super) fn callees(&self, index: usize) -> Vec<usize> {
        let callees = self.agents.get_index(index).map(|(_, (_, callees))| callees.as_slice()).unwrap_or_default();
        callees.iter().filter_map(|id| self.agents.get_index_of(id)).collect()
    }
}

/// Returns the types that an agent takes and returns, and those that people return in the steps of a workflow.
fn agent_types(agent: &Agent, records: &Records) -> Vec<Type> {
    let steps = agent.pattern().filter(|_| agent.is_workflow()).map(WorkflowSpec::read);
    let asked = steps.iter().flat_map(|spec| &spec.steps).filter_map(|step| match &step.kind {
        StepKind::Human { returns: Some(ty), .. } => Type::parse(&ty.text, records).ok(),
        _ => None,
    });
    let own = [agent.takes(records), agent.returns(records)].into_iter().flatten().filter_map(Result::ok);
    asked.chain(own).collect()
}

/// Returns the names of everything that an agent and the agents inside it may call.
fn all_callees(agent: &Agent) -> Vec<String> {
    let mut names = Vec::new();
    for element in agent.elements() {
        names.extend(element.name().map(Cow::into_owned));
        if let Element::Agent(inner) = element {
            names.extend(all_callees(&inner));
        }
    }
    names
}

/// Returns a cycle for each back edge in a depth-first search of a graph.
fn find_cycles(count: usize, next: impl Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Visit {
        Unvisited,
        OnPath(usize),
        Done,
    }
    let mut visits = vec![Visit::Unvisited; count];
    let mut cycles = Vec::new();
    for start in 0..count {
        if visits.get(start) != Some(&Visit::Unvisited) {
            continue;
        }
        let mut path: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut enter = Some(start);
        loop {
            if let Some(at) = enter.take() {
                if let Some(visit) = visits.get_mut(at) {
                    *visit = Visit::OnPath(path.len());
                }
                path.push((at, next(at)));
            }
            let Some((at, open)) = path.last_mut() else { break };
            let Some(to) = open.pop() else {
                if let Some(visit) = visits.get_mut(*at) {
                    *visit = Visit::Done;
                }
                path.pop();
                continue;
            };
            match visits.get(to) {
                Some(Visit::Unvisited) => enter = Some(to),
                Some(Visit::OnPath(depth)) if cycles.len() < 100 => {
                    cycles.push(path.iter().skip(*depth).map(|(at, _)| *at).collect());
                }
                _ => {}
            }
        }
    }
    cycles
}

/// Returns the name of the only tool or toolkit that a rule is about.
fn tool_in_rule(rule: &Rule) -> Option<String> {
    match &rule.tools {
        ToolPattern::One(name) => Some(name.to_string()),
        _ => None,
    }
}

/// Returns the infinitely recursive record types, which no finite value can have: one for each cycle of required fields.
pub(crate) fn infinite_records(records: &Records) -> HashSet<String> {
    let names: Vec<&str> = records.iter().map(|(name, _)| name).collect();
    let index: HashMap<&str, usize> = names.iter().enumerate().map(|(index, name)| (*name, index)).collect();
    let next = |at: usize| -> Vec<usize> {
        let record = names.get(at).and_then(|name| records.get(name));
        let mut required = Vec::new();
        for field in record.into_iter().flat_map(|record| &record.fields) {
            if field.presence == Presence::Required {
                collect_required_records(&field.ty, &mut required);
            }
        }
        required.iter().filter_map(|name| index.get(name.as_str()).copied()).collect()
    };
    let cycles = find_cycles(names.len(), next);
    cycles.iter().filter_map(|cycle| names.get(*cycle.first()?)).map(|name| (*name).to_owned()).collect()
}

/// Collects the names of the record types that every value of a type contains.
fn collect_required_records(ty: &Type, into: &mut Vec<String>) {
    match &ty.shape {
        Shape::Record(name) => into.push(name.clone()),
        // An array may be empty, unless its range forbids that.
        Shape::Array(item) => {
            let least = ty.facets.range.as_ref().and_then(|range| range.lower.as_ref()?.as_u64());
            if least.is_some_and(|least| least > 0) {
                collect_required_records(item, into);
            }
        }
        Shape::Object(fields) => {
            let required = fields.iter().filter(|field| field.presence == Presence::Required);
            required.for_each(|field| collect_required_records(&field.ty, into));
        }
        _ => {}
    }
}
