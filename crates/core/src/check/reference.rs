//! References between declarations: undefined, ambiguous, circular, unused.

use super::Checker;
use crate::declare::{Agent, Declares, Element};
use crate::project::Declaration;
use crate::schema::mentions;
use crate::signature::{Presence, Records, Shape, Type};
use crate::{nearest, rule};
use patter_gram::{Diagnostic, Pattern, PatternKind, Syntax};
use std::collections::{HashMap, HashSet};

impl<'p> Checker<'p> {
    pub(super) fn references(&mut self) {
        let mut used: HashSet<String> = HashSet::new();
        let project = self.project;
        for (file, source) in project.files().iter().enumerate() {
            self.file = file;
            for agent in source.tree.walk().filter(|pattern| Declares::of(*pattern) == Some(Declares::Agent)) {
                for reference in agent.elements().filter(|element| element.kind() == PatternKind::Reference) {
                    let name = reference.name().unwrap_or_default();
                    self.reference(reference, &name);
                    used.extend(self.meant(&name).map(str::to_owned));
                    used.insert(name.into_owned());
                }
            }
        }
        self.unused(&used);
        self.cycles();
    }

    fn reference(&mut self, reference: Pattern<'p>, name: &str) {
        let found = self.project.find(name);
        match found.as_slice() {
            [_] => {}
            [] => {
                let diagnostic = self.undefined(reference, name);
                if let Some(diagnostic) = diagnostic {
                    self.report(diagnostic);
                }
            }
            several => {
                let places: Vec<_> = several.iter().map(|one| self.project.place(one.file, one.span)).collect();
                let message = format!("`{name}` is declared in {} places", places.len());
                let diagnostic = rule::AMBIGUOUS.at(reference.span(), message);
                self.report(
                    diagnostic
                        .with_hint(format!("it may be the one in {}; rename all but one", places.join(" or in "))),
                );
            }
        }
    }

    fn undefined(&self, reference: Pattern<'p>, name: &str) -> Option<Diagnostic> {
        if self.options.library.contains(&name) {
            return None;
        }
        let is_type = self.project.records().get(name).is_some();
        let is_toolbox =
            self.project.declarations().iter().any(|one| one.declares == Declares::Toolbox && one.name == name);
        if is_type || is_toolbox {
            let what = if is_type { "a record type" } else { "a toolbox" };
            let found = rule::NOT_CALLABLE.at(reference.span(), format!("`{name}` is {what}, which cannot be called"));
            return Some(found.with_hint("an agent has tools and other agents for elements"));
        }
        let found = rule::UNDEFINED.at(reference.span(), format!("`{name}` is not declared in this project"));
        Some(found.with_hint(match self.meant(name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "declare it, or have a library with it when the agent runs".to_owned(),
        }))
    }

    /// Returns what a reference to nothing most likely means.
    pub(super) fn meant(&self, name: &str) -> Option<&'p str> {
        if !self.project.find(name).is_empty() || self.options.library.contains(&name) {
            return None;
        }
        nearest(name, self.project.callable_names().chain(self.options.library.iter().copied()))
    }

    /// Reports tools at the top level that no agent uses. Where there are no agents, the files are a library.
    fn unused(&mut self, used: &HashSet<String>) {
        let project = self.project;
        if project.agents().next().is_none() {
            return;
        }
        for (declaration, tool) in project.tools() {
            if !used.contains(&declaration.name) && !declaration.name.is_empty() {
                let span = tool.pattern().and_then(Pattern::identifier).map_or(declaration.span, Syntax::span);
                let found = rule::UNUSED.at(span, format!("no agent uses the tool `{}`", declaration.name));
                self.report_at(declaration, found.with_hint("add it to an agent, or remove it"));
            }
        }
        self.unused_records();
    }

    /// Reports record types that no signature mentions. A signature with mistakes may mean any.
    fn unused_records(&mut self) {
        let project = self.project;
        if self.findings.iter().any(|finding| finding.diagnostic.is_error()) {
            return;
        }
        let mut open = Vec::new();
        for signature in self.signatures.values() {
            signature.parameters.iter().for_each(|parameter| mentions(&parameter.ty, &mut open));
            mentions(&signature.returns, &mut open);
        }
        let mut open: Vec<String> = open.into_iter().map(str::to_owned).collect();
        let mut used = HashSet::new();
        while let Some(name) = open.pop() {
            let mut inner = Vec::new();
            if let Some(record) = project.records().get(&name).filter(|_| !used.contains(&name)) {
                record.fields.iter().for_each(|field| mentions(&field.ty, &mut inner));
            }
            open.extend(inner.into_iter().map(str::to_owned));
            used.insert(name);
        }
        for declaration in project.declarations().iter().filter(|one| one.declares == Declares::Record) {
            if !used.contains(&declaration.name) {
                let pattern = project.pattern(declaration);
                let span = pattern.and_then(Pattern::identifier).map_or(declaration.span, Syntax::span);
                let found = rule::UNUSED.at(span, format!("no signature uses the record type `{}`", declaration.name));
                self.report_at(declaration, found.with_hint("use it in a signature, or remove it"));
            }
        }
    }

    /// Reports agents that delegate to themselves, directly or through others.
    fn cycles(&mut self) {
        let project = self.project;
        let agents: HashMap<_, _> =
            project.agents().map(|(declaration, agent)| (declaration.name.clone(), (declaration, agent))).collect();
        let delegates: HashMap<&str, Vec<String>> =
            agents.iter().map(|(name, (_, agent))| (name.as_str(), callees(agent))).collect();
        let mut reported: HashSet<&str> = HashSet::new();
        for (declaration, _) in project.agents() {
            let name = declaration.name.as_str();
            let Some(cycle) = cycle_from(name, &delegates) else { continue };
            // A circle is one mistake, whichever of its agents it is found from.
            let members: Vec<&str> =
                cycle.iter().filter_map(|name| delegates.get_key_value(name.as_str())).map(|(name, _)| *name).collect();
            if members.iter().any(|member| reported.contains(member)) {
                continue;
            }
            reported.extend(&members);
            self.report_cycle(declaration, &cycle);
        }
    }

    fn report_cycle(&mut self, declaration: &Declaration, cycle: &[String]) {
        let span =
            self.project.pattern(declaration).and_then(Pattern::identifier).map_or(declaration.span, Syntax::span);
        let way: Vec<_> = cycle.iter().chain(cycle.first()).map(|name| format!("`{name}`")).collect();
        let message = if cycle.len() == 1 {
            format!("the agent `{}` delegates to itself", declaration.name)
        } else {
            format!("agents delegate in a circle: {}", way.join(" → "))
        };
        let found = rule::DELEGATE_CYCLE.at(span, message);
        self.report_at(declaration, found.with_hint("a run might not end; remove a reference"));
    }
}

/// Returns the names of everything that an agent, and the agents inside it, refer to.
fn callees(agent: &Agent) -> Vec<String> {
    let mut names = Vec::new();
    for element in agent.elements() {
        match element {
            Element::Reference { name, .. } => names.push(name),
            Element::Agent(inner) => names.extend(callees(&inner)),
            Element::Tool(_) => {}
        }
    }
    names
}

/// Returns the way from an agent back to itself.
fn cycle_from(start: &str, delegates: &HashMap<&str, Vec<String>>) -> Option<Vec<String>> {
    let mut seen: HashSet<&str> = HashSet::new();
    let mut ways: Vec<Vec<&str>> = vec![vec![start]];
    while let Some(way) = ways.pop() {
        let last = way.last().copied()?;
        for next in delegates.get(last).into_iter().flatten() {
            if next == start {
                return Some(way.iter().map(|name| (*name).to_owned()).collect());
            }
            if delegates.contains_key(next.as_str()) && seen.insert(next) {
                ways.push(way.iter().copied().chain([next.as_str()]).collect());
            }
        }
    }
    None
}

/// Tells whether every value of a record type would hold another one, without end.
pub(super) fn is_endless(name: &str, records: &Records) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(next) = open.pop() {
        let Some(record) = records.get(&next) else { continue };
        let required = record.fields.iter().filter(|field| field.presence == Presence::Required);
        let mut needed = Vec::new();
        required.for_each(|field| needs(&field.ty, &mut needed));
        for other in needed {
            if other == name {
                return true;
            }
            if seen.insert(other.clone()) {
                open.push(other);
            }
        }
    }
    false
}

/// Collects the record types that a value of a type must hold.
fn needs(ty: &Type, into: &mut Vec<String>) {
    match &ty.shape {
        Shape::Record(name) => into.push(name.clone()),
        Shape::Object(fields) => {
            let required = fields.iter().filter(|field| field.presence == Presence::Required);
            required.for_each(|field| needs(&field.ty, into));
        }
        _ => {}
    }
}
