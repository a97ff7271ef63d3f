//! References between declarations: undefined, ambiguous, circular, unused.

use super::Checker;
use crate::declare::project::Declaration;
use crate::declare::{Agent, Declares, Element};
use crate::types::schema::mentions;
use crate::types::signature::{Presence, Records, Shape, Type};
use crate::{rule, text::nearest};
use indexmap::IndexMap;
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
        if self.is_in_library(name) {
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

    /// Tells whether the library has a tool, or may have it.
    fn is_in_library(&self, name: &str) -> bool {
        let is_within = |known: &str| known.strip_suffix('*').is_some_and(|namespace| name.starts_with(namespace));
        self.options.library.iter().any(|known| *known == name || is_within(known))
    }

    /// Returns what a reference to nothing most likely means.
    pub(super) fn meant(&self, name: &str) -> Option<&'p str> {
        if !self.project.find(name).is_empty() || self.is_in_library(name) {
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
        /// Circles past this number are not worth listing.
        const MOST: usize = 50;
        let project = self.project;
        let agents: IndexMap<&str, (&Declaration, Vec<String>)> = project
            .agents()
            .map(|(declaration, agent)| (declaration.name.as_str(), (declaration, callees(&agent))))
            .collect();
        let next = |index: usize| -> Vec<usize> {
            let callees = agents.get_index(index).map(|(_, (_, callees))| callees.as_slice()).unwrap_or_default();
            callees.iter().filter_map(|name| agents.get_index_of(name.as_str())).collect()
        };
        for cycle in circles(agents.len(), next).into_iter().take(MOST) {
            let members: Vec<_> = cycle.iter().filter_map(|index| agents.get_index(*index)).collect();
            let names: Vec<_> = members.iter().map(|(name, _)| (**name).to_owned()).collect();
            if let Some((_, (declaration, _))) = members.first() {
                self.report_cycle(declaration, &names);
            }
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

/// Returns a circle for each way back that a walk over everything meets, without walking anywhere twice.
fn circles(count: usize, next: impl Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Walked {
        No,
        OnTheWay(usize),
        Done,
    }
    let mut walked = vec![Walked::No; count];
    let mut circles = Vec::new();
    for start in 0..count {
        if walked.get(start) != Some(&Walked::No) {
            continue;
        }
        let mut way: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut enter = Some(start);
        loop {
            if let Some(at) = enter.take() {
                if let Some(slot) = walked.get_mut(at) {
                    *slot = Walked::OnTheWay(way.len());
                }
                way.push((at, next(at)));
            }
            let Some((at, open)) = way.last_mut() else { break };
            let Some(to) = open.pop() else {
                if let Some(slot) = walked.get_mut(*at) {
                    *slot = Walked::Done;
                }
                way.pop();
                continue;
            };
            match walked.get(to) {
                Some(Walked::No) => enter = Some(to),
                Some(Walked::OnTheWay(depth)) if circles.len() < 100 => {
                    circles.push(way.iter().skip(*depth).map(|(at, _)| *at).collect());
                }
                _ => {}
            }
        }
    }
    circles
}

/// Returns the record types that no value can have, since every one would hold another, one for each circle.
pub(crate) fn endless(records: &Records) -> HashSet<String> {
    let names: Vec<&str> = records.iter().map(|(name, _)| name).collect();
    let index: HashMap<&str, usize> = names.iter().enumerate().map(|(index, name)| (*name, index)).collect();
    let next = |at: usize| -> Vec<usize> {
        let record = names.get(at).and_then(|name| records.get(name));
        let mut needed = Vec::new();
        for field in record.into_iter().flat_map(|record| &record.fields) {
            if field.presence == Presence::Required {
                needs(&field.ty, &mut needed);
            }
        }
        needed.iter().filter_map(|name| index.get(name.as_str()).copied()).collect()
    };
    let circles = circles(names.len(), next);
    circles.iter().filter_map(|circle| names.get(*circle.first()?)).map(|name| (*name).to_owned()).collect()
}

/// Collects the record types that a value of a type must hold.
fn needs(ty: &Type, into: &mut Vec<String>) {
    match &ty.shape {
        Shape::Record(name) => into.push(name.clone()),
        // An array may be empty, unless it may not.
        Shape::Array(item) => {
            let least = ty.facets.range.as_ref().and_then(|range| range.lower.as_ref()?.as_u64());
            if least.is_some_and(|least| least > 0) {
                needs(item, into);
            }
        }
        Shape::Object(fields) => {
            let required = fields.iter().filter(|field| field.presence == Presence::Required);
            required.for_each(|field| needs(&field.ty, into));
        }
        _ => {}
    }
}
