//! Checks of agents that extend others.

use super::{Checker, describe_declaration};
use crate::declare::scope::Scope;
use crate::declare::workflow::is_workflow;
use crate::declare::{Agent, DeclarationKind, EXTENDS, MAX_BASES, Member, ToolSpec, base_name, extends_span};
use crate::rule;
use crate::text::{nearest, with_article};
use crate::types::compatibility::{accepts_earlier, check_compatible, keeps_promise};
use crate::types::signature::{Shape, Signature, Type};
use patter_gram::{Diagnostic, Pattern, PatternKind, Span, Syntax};
use std::collections::HashMap;

impl<'p> Checker<'p> {
    /// Reports a base that cannot be extended, and what the agent has in another way than its base.
    pub(super) fn check_base(&mut self, pattern: Pattern<'p>) {
        let Some(name) = base_name(pattern) else { return };
        match self.project.base_of(pattern) {
            None => self.report_unknown_base(pattern, &name),
            Some(base) => {
                self.check_base_chain(pattern);
                self.check_contract(pattern, base);
                self.check_inherited_names(pattern);
            }
        }
    }

    fn report_unknown_base(&mut self, pattern: Pattern<'p>, name: &str) {
        let span = extends_span(pattern);
        let found = self.project.find(name);
        if found.len() > 1 {
            let locations: Vec<_> = found.iter().map(|one| self.project.location(one.file, one.span)).collect();
            let message = format!("`{name}` is declared in {} places", locations.len());
            let hint = format!("it is declared in {}; rename all but one", locations.join(" and "));
            return self.report(rule::AMBIGUOUS_REFERENCE.at(span, message).with_hint(hint));
        }
        if let Some(noun) = self.noun_of(name) {
            let message = format!("`{name}` is {}, and only agents can be extended", with_article(noun));
            let hint = match noun {
                "tool" | "toolkit" => "to use it, add it to the elements of the agent",
                _ => "name an agent that is declared at the top level of a file",
            };
            return self.report(rule::BAD_BASE.at(span, message).with_hint(hint));
        }
        let is_nested = |agent: &Agent| agent.path().is_nested() && agent.name().as_deref() == Some(name);
        let mut all = self.project.files().iter().flat_map(|file| file.tree.walk()).filter_map(Agent::cast);
        let nested = all.find(is_nested).map(|agent| agent.path());
        let own = pattern.name().unwrap_or_default();
        let agents = self.project.agents().filter(|(_, agent)| !agent.is_workflow());
        let names: Vec<_> = agents.map(|(declaration, _)| declaration.name.as_str()).collect();
        let others = names.iter().copied().filter(|name| *name != own);
        let hint = match nested {
            Some(path) => {
                format!("`{path}` is visible only inside of its agent; declare it at the top level of a file")
            }
            None => match nearest(name, others).filter(|_| self.may_suggest()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "declare it, or remove `extends`".to_owned(),
            },
        };
        self.report(rule::UNKNOWN_BASE.at(span, format!("no agent is named `{name}`")).with_hint(hint));
    }

    /// Returns the noun for what a name stands for, if that is not an agent.
    fn noun_of(&self, name: &str) -> Option<&'static str> {
        let declarations = self.project.declarations().iter().chain(self.project.find(name));
        let mut declared = declarations.filter(|one| one.name == name || one.kind == DeclarationKind::Implementation);
        match declared.find(|one| one.name == name || one.name.ends_with(&format!("/{name}"))) {
            Some(one) if self.project.pattern(one).is_some_and(is_workflow) => Some("workflow"),
            Some(one) if one.kind == DeclarationKind::Agent => None,
            Some(one) => Some(one.kind.noun()),
            None if self.is_in_library(name) => Some("tool"),
            None => None,
        }
    }

    /// Reports agents that extend each other in a cycle, and those that extend too many.
    fn check_base_chain(&mut self, pattern: Pattern<'p>) {
        let id = |agent: Pattern<'p>| (self.project.file_of(agent), agent.span().start);
        let mut chain = vec![pattern];
        while let Some(base) = chain.last().and_then(|last| self.project.base_of(*last)) {
            if id(base) == id(pattern) {
                // Each cycle is reported once, where its first agent is.
                if chain.iter().all(|other| id(pattern) <= id(*other)) {
                    self.report_base_cycle(pattern, &chain);
                }
                return;
            }
            if chain.iter().any(|other| id(*other) == id(base)) {
                return;
            }
            if chain.len() > MAX_BASES {
                let agent = describe_declaration("agent", pattern);
                let message = format!("{agent} extends more than {MAX_BASES} agents, one through the other");
                let found = rule::TOO_MANY_BASES.at(extends_span(pattern), message);
                return self.report(found.with_hint("extend one of the agents further up the chain instead"));
            }
            chain.push(base);
        }
    }

    fn report_base_cycle(&mut self, pattern: Pattern<'p>, chain: &[Pattern<'p>]) {
        let names: Vec<_> = chain.iter().chain([&pattern]).filter_map(|agent| agent.name()).collect();
        let message = match names.as_slice() {
            [name, _] => format!("the agent `{name}` extends itself"),
            names => {
                let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
                format!("agents extend each other in a cycle: {}", names.join(" → "))
            }
        };
        let found = rule::BASE_CYCLE.at(extends_span(pattern), message);
        self.report(found.with_hint("remove `extends` from one of them"));
    }

    /// Reports `takes` and `returns` with which the agent cannot be used in place of its base.
    fn check_contract(&mut self, pattern: Pattern<'p>, base: Pattern<'p>) {
        let records = self.project.records();
        let (Some(own), Some(base)) = (Agent::cast(pattern), self.project.agent(base)) else { return };
        let name = base.name().unwrap_or_default().into_owned();
        let written = |agent: &Agent, key: &str| {
            agent.property(key).and_then(|value| Some(value.read_text()?.into_owned())).unwrap_or("Text".to_owned())
        };
        if let (Some(Ok(takes)), Ok(before)) = (own.takes(records), base.takes(records).transpose()) {
            let before = before.unwrap_or_else(|| Type::new(Shape::Text));
            if !accepts_earlier((&before, records), (&takes, records)) {
                let before = written(&base, "takes");
                let now = written(&own, "takes");
                let message =
                    format!("`{name}` takes {before}, but this agent takes {now}, which does not accept that");
                let hint = "accept everything that the base accepts, or do not extend it";
                self.report_contract(pattern, "takes", &base, message, hint);
            }
        }
        if let (Some(Ok(returns)), Some(Ok(before))) = (own.returns(records), base.returns(records))
            && !keeps_promise((&before, records), (&returns, records))
        {
            let before = written(&base, "returns");
            let now = written(&own, "returns");
            let message = format!("`{name}` returns {before}, but this agent returns {now}, which is not always one");
            let hint = "return only what the base returns, or do not extend it";
            self.report_contract(pattern, "returns", &base, message, hint);
        }
    }

    fn report_contract(&mut self, pattern: Pattern<'p>, key: &str, base: &Agent, message: String, hint: &str) {
        let Some(value) = pattern.get(key) else { return };
        let found = rule::BROKEN_CONTRACT.at(value.span(), message);
        let place = base.property(key).and_then(|value| {
            // The property may be inherited, too.
            let owner = base.pattern().into_iter().chain(base.bases()).find(|pattern| pattern.get(key).is_some())?;
            Some((self.project.file_of(owner)?, value.span()))
        });
        let found = self.with_place(found, place, "what the base has", hint);
        self.report(found);
    }

    /// Reports elements that are something else than the elements of the base with their names.
    fn check_inherited_names(&mut self, pattern: Pattern<'p>) {
        let project = self.project;
        let own = self.declared_members(pattern, None);
        let mut inherited: HashMap<String, (Member<'p>, Option<Pattern<'p>>, Pattern<'p>)> = HashMap::new();
        for base in project.bases_of(pattern) {
            for (name, (member, declared)) in self.declared_members(base, Some(base)) {
                inherited.entry(name).or_insert((member, declared, base));
            }
        }
        let mut own: Vec<_> = own.into_iter().collect();
        own.sort_by_key(|(_, (member, _))| member.element().span().start);
        for (name, (member, declared)) in own {
            let Some((other, base_declared, base)) = inherited.get(&name) else { continue };
            let Some(difference) = self.difference(declared, *base_declared) else { continue };
            let base_name = base.name().unwrap_or_default();
            let message = format!("`{name}` differs from that of `{base_name}`: {difference}");
            let found = rule::CONFLICTING_ELEMENT.at(name_span(member.element()), message);
            let place = project.file_of(other.element()).map(|file| (file, name_span(other.element())));
            let hint = "rename one of them, or declare it as the base does";
            let found = self.with_place(found, place, "that of the base", hint);
            self.report(found);
        }
    }

    /// Returns what the elements of an agent are, by name, with their declarations in the project.
    fn declared_members(
        &self,
        agent: Pattern<'p>,
        base: Option<Pattern<'p>>,
    ) -> HashMap<String, (Member<'p>, Option<Pattern<'p>>)> {
        let mut scope = Scope::default();
        scope.enter(self.project, agent);
        let members = self.project.members_of(&scope, agent, base).into_iter().filter_map(|member| {
            let name = member.name()?.into_owned();
            let declared = match member.pattern.kind() {
                PatternKind::Reference => self.project.resolve(&scope, &name).first().map(|found| found.pattern),
                _ => Some(member.pattern),
            };
            Some((name, (member, declared)))
        });
        members.collect()
    }

    /// Describes the difference between two declarations of the same name, if there is one. What is not declared is a tool of
    /// the library.
    fn difference(&self, own: Option<Pattern<'p>>, base: Option<Pattern<'p>>) -> Option<String> {
        let is_agent = |pattern: Option<Pattern<'p>>| pattern.and_then(Agent::cast).is_some();
        let noun = |pattern| if is_agent(pattern) { "an agent" } else { "a tool" };
        let records = self.project.records();
        let signature = |pattern: Pattern<'p>| ToolSpec::cast(pattern)?.signature(records).ok();
        match (own, base) {
            _ if is_agent(own) != is_agent(base) => Some(format!("it is {} here, and {} there", noun(own), noun(base))),
            (Some(own), Some(base)) if is_same(self.project.file_of(own), own, self.project.file_of(base), base) => {
                None
            }
            (Some(_), Some(_)) if is_agent(own) => Some("they are different agents".to_owned()),
            (Some(own), Some(base)) => {
                let own = signature(own)?;
                let base = signature(base)?;
                let fits =
                    |one: &Signature, other: &Signature| check_compatible((one, records), (other, records)).is_ok();
                let is_equal = fits(&own, &base) && fits(&base, &own);
                (!is_equal).then(|| format!("{own} instead of {base}"))
            }
            // The library has it, and the other one declares what the library has.
            (None, _) | (_, None) => None,
        }
    }

    /// Adds another place to a diagnostic: as a related span in the same file, and otherwise to the hint.
    fn with_place(
        &self,
        found: Diagnostic,
        place: Option<(usize, Span)>,
        label: &'static str,
        hint: &str,
    ) -> Diagnostic {
        match place {
            Some((file, span)) if file == self.file => found.with_related(span, label).with_hint(hint.to_owned()),
            Some((file, span)) => {
                found.with_hint(format!("{label} is in {}; {hint}", self.project.location(file, span)))
            }
            None => found.with_hint(hint.to_owned()),
        }
    }

    /// Returns whether an agent may leave out a property because the agent that it extends has it.
    pub(super) fn may_inherit(&self, pattern: Pattern<'p>, key: &str) -> bool {
        pattern.property(key).is_none() && pattern.property(EXTENDS).is_some()
    }
}

fn is_same(file: Option<usize>, pattern: Pattern<'_>, other_file: Option<usize>, other: Pattern<'_>) -> bool {
    file == other_file && pattern.syntax().id() == other.syntax().id()
}

fn name_span(element: Pattern<'_>) -> Span {
    element.identifier().map_or(element.span(), Syntax::span)
}
