//! Changes to the permission rules of an agent.

use super::{Differ, Judgement, Subject};
use crate::declare::Agent;
use crate::library::{Library, Toolkits};
use crate::permission::{Decision, Rule, ToolPattern};

impl Differ<'_> {
    /// Compares the rules of an agent. Both loosening and tightening them is breaking: something may happen that could not
    /// happen before, or a call that worked may fail.
    pub(super) fn compare_permissions(&mut self, subject: &Subject, old: &Agent, new: &Agent) {
        let (before, _) = old.rules("");
        let (after, _) = new.rules("");
        let toolkits = Toolkits::new(self.new, &Library::<()>::default());
        let names = self.new.members(new).into_iter().filter_map(|member| Some(member.pattern.name()?.into_owned()));
        let names: Vec<_> = names.collect();
        for rule in after.iter().filter(|rule| !before.contains(rule)) {
            let is_new = !is_covered(rule, &before) && may_apply(&toolkits.expand(rule.clone()), &names);
            // An `allow` rule may allow more than the others, and excludes what none of them allows.
            let is_breaking = is_new || rule.decision == Decision::Allow;
            self.push(subject, judge(is_breaking), format!("permission `{rule}` added"));
        }
        for rule in before.iter().filter(|rule| !after.contains(rule)) {
            let is_breaking = match rule.decision {
                Decision::Ask | Decision::Deny => !is_covered(rule, &after),
                // Without it, a declared tool may be called with any arguments, unless other rules restrict it.
                Decision::Allow => {
                    !rule.conditions.is_empty() || after.iter().any(|other| other.decision == Decision::Allow)
                }
            };
            self.push(subject, judge(is_breaking), format!("permission `{rule}` removed"));
        }
    }
}

fn judge(is_breaking: bool) -> Judgement {
    if is_breaking { Judgement::Breaking } else { Judgement::Compatible }
}

/// Returns whether one of several rules is at least as strict as a rule, for all calls that it is about.
fn is_covered(rule: &Rule, others: &[Rule]) -> bool {
    others.iter().any(|other| {
        other.decision >= rule.decision
            && (other.conditions.is_empty() || other.conditions == rule.conditions)
            && includes(&other.tools, &rule.tools)
    })
}

/// Returns whether a pattern matches every tool that another matches.
fn includes(outer: &ToolPattern, inner: &ToolPattern) -> bool {
    match (outer, inner) {
        (ToolPattern::All, _) => true,
        (ToolPattern::Within(outer), ToolPattern::Within(inner) | ToolPattern::One(inner)) => {
            inner.strip_prefix(outer.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
        (outer, inner) => outer == inner,
    }
}

/// Returns whether a rule may be about something that an agent calls. A bare name may be a tool of any toolbox.
fn may_apply(rule: &Rule, names: &[String]) -> bool {
    let own = |name: &str| name.rsplit('/').next().map(str::to_owned);
    names.iter().any(|name| match &rule.tools {
        ToolPattern::All => true,
        ToolPattern::Within(namespace) => {
            !name.contains('/') || name.strip_prefix(namespace.as_str()).is_some_and(|rest| rest.starts_with('/'))
        }
        ToolPattern::One(one) => own(one) == own(name),
        ToolPattern::Toolkit { tools, .. } => tools.iter().any(|one| own(one) == own(name)),
    })
}
