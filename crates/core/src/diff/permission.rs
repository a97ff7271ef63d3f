//! Changes to permission rules.

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
        let names = self.new.members(new).into_iter().filter_map(|member| Some(member.name()?.into_owned()));
        let names: Vec<_> = names.collect();
        let may_apply = |rule: &Rule| may_apply(&toolkits.expand(rule.clone()), &names);
        for (judgement, description) in compare(&before, &after, may_apply) {
            self.push(subject, judgement, description);
        }
    }
}

/// Compares two lists of rules that apply to all agents, and returns each change with its judgement.
///
/// ```
/// use patter_core::{diff::{Judgement, diff_rules}, permission::Rule};
/// let before = Rule::parse("deny fs/*", "patter.toml").unwrap();
/// let after = Rule::parse("deny fs/writeFile", "patter.toml").unwrap();
/// let changes = diff_rules(&[before], &[after]);
/// assert_eq!(changes[1], (Judgement::Breaking, "permission `deny fs/*` removed".to_owned()));
/// ```
pub fn diff_rules(before: &[Rule], after: &[Rule]) -> Vec<(Judgement, String)> {
    compare(before, after, |_| true)
}

/// Compares rules. `may_apply` returns whether a rule may be about anything that is called.
fn compare(before: &[Rule], after: &[Rule], may_apply: impl Fn(&Rule) -> bool) -> Vec<(Judgement, String)> {
    let added = after.iter().filter(|rule| !before.contains(rule)).map(|rule| {
        let is_new = !is_covered(rule, before) && may_apply(rule);
        // An `allow` rule may allow more than the others, and excludes what none of them allows.
        let is_breaking = is_new || rule.decision == Decision::Allow;
        (judge(is_breaking), format!("permission `{rule}` added"))
    });
    let removed = before.iter().filter(|rule| !after.contains(rule)).map(|rule| {
        let is_breaking = match rule.decision {
            Decision::Ask | Decision::Deny => !is_covered(rule, after),
            // Without it, a declared tool may be called with any arguments, unless other rules restrict it.
            Decision::Allow => {
                !rule.conditions.is_empty() || after.iter().any(|other| other.decision == Decision::Allow)
            }
        };
        (judge(is_breaking), format!("permission `{rule}` removed"))
    });
    added.chain(removed).collect()
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
