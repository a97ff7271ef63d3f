//! Checks of everything that an agent may call, taken together: how many there are, how the model tells them apart,
//! and whether the agent may call them at all.

use super::{Checker, describe_declaration};
use crate::declare::{Agent, DeclarationKind, Member, head_span};
use crate::library::{Library, Toolkits};
use crate::name::FullName;
use crate::permission::{Decision, Rule, ToolPattern};
use crate::rule;
use patter_gram::{Pattern, PatternKind, Span, Syntax};
use std::collections::HashMap;

impl<'p> Checker<'p> {
    /// Checks the tools and delegates of the innermost agent of the scope.
    pub(super) fn check_callables(&mut self, pattern: Pattern<'p>) {
        // An agent with a syntax error may have swallowed what follows it.
        let Some(agent) = self.project.agent(pattern).filter(|_| !self.is_broken(pattern.span())) else { return };
        let members = self.project.members_in(&self.scope, pattern);
        self.check_tool_count(pattern, &agent, members.len());
        self.check_descriptions(pattern, &members);
        self.check_denied(pattern, &agent);
        self.check_unrestricted(pattern, &agent);
    }

    /// Reports an agent with more tools than the provider of its model accepts.
    fn check_tool_count(&mut self, pattern: Pattern<'p>, agent: &Agent, count: usize) {
        let Some(Ok(model)) = agent.model() else { return };
        let Some(max) = model.provider.profile().max_tools() else { return };
        if count > max {
            let agent = describe_declaration("agent", pattern);
            let provider = model.provider.name();
            let message = format!("{agent} has {count} tools, but {provider} accepts at most {max}");
            let found = rule::TOO_MANY_TOOLS.at(head_span(pattern), message);
            self.report(found.with_hint("move some of them into agents of their own, and delegate to these"));
        }
    }

    /// Reports delegates without a description, and elements with the same description: the model sees nothing else but
    /// their names when it chooses.
    fn check_descriptions(&mut self, agent: Pattern<'p>, members: &[Member<'p>]) {
        let mut first: HashMap<String, &Member<'p>> = HashMap::new();
        for member in members {
            let element = member.pattern;
            let Some((file, declared)) = self.declared_element(element) else { continue };
            let description = declared.get("description").and_then(Syntax::read_text).unwrap_or_default();
            let description = description.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
            if description.is_empty() {
                if DeclarationKind::from_pattern(declared) == Some(DeclarationKind::Agent) {
                    self.report_undescribed_delegate(file, declared);
                }
                continue;
            }
            let Some(earlier) = first.get(&description) else {
                first.insert(description, member);
                continue;
            };
            let one = earlier.pattern.name().unwrap_or_default();
            // The agent that has both reports them, not those that inherit both.
            if member.base.is_some() && earlier.base.is_some() {
                continue;
            }
            let earlier_span = Some(name_span(agent, earlier)).filter(|earlier| *earlier != name_span(agent, member));
            let other = element.name().unwrap_or_default();
            if one == other {
                continue;
            }
            let message = format!("`{one}` and `{other}` have the same description");
            let found = rule::SAME_DESCRIPTION.at(name_span(agent, member), message);
            let found = match earlier_span {
                Some(earlier) => found.with_related(earlier, "the first one"),
                None => found,
            };
            self.report(found.with_hint("models choose by description; say what is different about each of them"));
        }
    }

    fn report_undescribed_delegate(&mut self, file: usize, delegate: Pattern<'p>) {
        let name = delegate.name().unwrap_or_default();
        let message = format!("other agents call `{name}`, but it has no `description`");
        let found = rule::UNDESCRIBED_DELEGATE.at(head_span(delegate), message);
        let found =
            found.with_hint("describe what it does, because the model that calls it knows nothing else about it");
        let here = std::mem::replace(&mut self.file, file);
        self.report(found);
        self.file = here;
    }

    /// Reports tools that the agent has, but that a rule without conditions denies.
    fn check_denied(&mut self, pattern: Pattern<'p>, agent: &Agent) {
        let (own, _) = agent.rules("");
        let is_denying = |rule: &&Rule| rule.decision == Decision::Deny && rule.conditions.is_empty();
        let own = RulesByTool::new(own.iter().filter(is_denying).collect());
        let shared = RulesByTool::new(self.options.rules.iter().filter(is_denying).collect());
        if own.rules.is_empty() && shared.rules.is_empty() {
            return;
        }
        for element in pattern.elements() {
            let Some(name) = element.name() else { continue };
            let names = self.full_names(element, &name);
            let own = own.find(&names);
            let Some(denying) = own.or_else(|| shared.find(&names)) else { continue };
            let span = element.identifier().map_or(element.span(), Syntax::span);
            let message = match own {
                Some(rule) => format!("the agent has `{name}`, but its own rule `{rule}` denies every call"),
                None => format!("the agent has `{name}`, but `{denying}` in {} denies every call", denying.origin),
            };
            let mut found = rule::DENIED_TOOL.at(span, message);
            if let Some(property) = own.and_then(|_| pattern.property(Decision::Deny.name())) {
                found = found.with_related(property.syntax().span(), "denied here");
            }
            self.report(found.with_hint("remove the tool or the rule, or deny only some calls with `when`"));
        }
    }

    /// Reports tools that change the same things as one that a rule restricts, and that no rule names. A rule about all
    /// tools of a toolbox applies to both, and a rule that allows the other tool says that this is intended.
    fn check_unrestricted(&mut self, pattern: Pattern<'p>, agent: &Agent) {
        let (own, _) = agent.rules("");
        if (own.is_empty() && self.options.rules.is_empty()) || self.options.writing.is_empty() {
            return;
        }
        let toolkits = Toolkits::new(self.project, &Library::<()>::default());
        let rules: Vec<_> = own.iter().chain(self.options.rules).map(|rule| toolkits.expand(rule.clone())).collect();
        let names = |rule: &Rule| matches!(rule.tools, ToolPattern::One(_) | ToolPattern::Toolkit { .. });
        let restricting: Vec<_> = rules.iter().filter(|rule| rule.decision > Decision::Allow && names(rule)).collect();
        let writing: Vec<_> = self.options.writing.iter().filter_map(|name| FullName::parse(name).ok()).collect();
        if restricting.is_empty() {
            return;
        }
        // The agent that has a tool and a rule reports both, not those that inherit both.
        let own_rules = Agent::cast(pattern).is_some_and(|agent| agent.has_rules());
        let members = self.project.members_in(&self.scope, pattern).into_iter();
        for member in members.filter(|member| member.base.is_none() || own_rules) {
            let Some(name) = member.name() else { continue };
            let found = self.full_names(member.pattern, &name);
            let Some(open) = writing.iter().find(|tool| found.contains(tool)) else { continue };
            let is_covered = |rule: &&Rule| rule.matches_tool(open) && (names(rule) || rule.decision > Decision::Allow);
            if rules.iter().any(|rule| is_covered(&rule)) {
                continue;
            }
            let restricted = writing.iter().filter(|tool| *tool != open && tool.namespace() == open.namespace());
            let restricted = restricted.flat_map(|tool| restricting.iter().map(move |rule| (tool, rule)));
            let Some((tool, rule)) = restricted.into_iter().find(|(tool, rule)| rule.matches_tool(tool)) else {
                continue;
            };
            let span = name_span(pattern, &member);
            let message = format!("`{rule}` does not apply to `{open}`, which changes the same things as `{tool}`");
            let hint = format!("add `{} {open}`, or `allow {open}` if that is intended", rule.decision.name());
            self.report(rule::UNRESTRICTED_TOOL.at(span, message).with_hint(hint));
        }
    }

    /// Returns the full names of the tools that an element may be bound to.
    fn full_names(&self, element: Pattern<'p>, name: &str) -> Vec<FullName> {
        let (_, declared) = self.declared_element(element).unzip();
        // Agents are called by the name that the caller uses.
        if declared.is_some_and(|declared| DeclarationKind::from_pattern(declared) == Some(DeclarationKind::Agent)) {
            return FullName::parse(name).into_iter().collect();
        }
        let declared = self.project.find(name);
        let in_project = declared.iter().map(|declaration| declaration.name.as_str());
        let in_library = self.library.with_own_name(name).iter().copied();
        let mut names: Vec<_> = in_project.chain(in_library).filter_map(|name| FullName::parse(name).ok()).collect();
        if names.is_empty() {
            names.extend(FullName::parse(name));
        }
        names
    }

    /// Returns the declaration of an element in the project, with its file.
    fn declared_element(&self, element: Pattern<'p>) -> Option<(usize, Pattern<'p>)> {
        match element.kind() {
            PatternKind::Reference => self.resolve(element),
            // It may be inherited from an agent in another file.
            _ => Some((self.project.file_of(element).unwrap_or(self.file), element)),
        }
    }
}

/// Returns where an agent names a member: its element, or the agent that it extends.
pub(super) fn name_span(agent: Pattern<'_>, member: &Member<'_>) -> Span {
    let own = member.element().identifier().filter(|_| member.base.is_none());
    own.map_or(member.span(agent), Syntax::span)
}

/// Rules, indexed by the tool that they are about, so that not every rule is compared with every tool.
struct RulesByTool<'r> {
    rules: Vec<&'r Rule>,
    /// The indices of the rules about one tool, by its name.
    by_name: HashMap<&'r str, Vec<usize>>,
    /// The indices of the rules about several tools.
    others: Vec<usize>,
}

impl<'r> RulesByTool<'r> {
    fn new(rules: Vec<&'r Rule>) -> Self {
        let mut by_name: HashMap<_, Vec<_>> = HashMap::new();
        let mut others = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            match &rule.tools {
                ToolPattern::One(name) => by_name.entry(name.as_str()).or_default().push(index),
                _ => others.push(index),
            }
        }
        Self { rules, by_name, others }
    }

    /// Returns the first rule that matches all of the tools.
    fn find(&self, tools: &[FullName]) -> Option<&'r Rule> {
        let first = tools.first()?;
        let named = [first.as_str(), first.tool_name()].into_iter().filter_map(|name| self.by_name.get(name)).flatten();
        let candidates = named.chain(&self.others).filter_map(|index| Some((index, *self.rules.get(*index)?)));
        let matching = candidates.filter(|(_, rule)| tools.iter().all(|tool| rule.matches_tool(tool)));
        matching.min_by_key(|(index, _)| **index).map(|(_, rule)| rule)
    }
}
