//! Permissions: which calls are allowed, which need approval, and which are denied.
//!
//! Permissions are rules about the full names of tools and their arguments. They are always passed in explicitly. The
//! strictest rule that matches a call decides; a call that no rule matches is denied.

mod condition;
mod rule;
mod unused;

pub use condition::{Condition, Operator};
pub use rule::{Rule, RuleError, ToolPattern};
pub use unused::{KnownTool, UnusedReason, UnusedRule};

use crate::name::FullName;
use indexmap::IndexSet;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use std::fmt;

/// A decision on a call, from the most permissive to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The call is made.
    Allow,
    /// The call is made if someone approves it.
    Ask,
    /// The call is denied.
    Deny,
}

/// A decision on a call, with the reason for it.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedDecision<'p> {
    /// The decision.
    pub decision: Decision,
    /// The reason.
    pub reason: DecisionReason<'p>,
}

/// The reason for a decision.
#[derive(Debug, Clone, PartialEq)]
pub enum DecisionReason<'p> {
    /// A rule matched.
    Rule(&'p Rule),
    /// The agent declares the tool, and no `allow` rule is about it.
    Declared,
    /// No rule matched.
    NoMatch,
}

/// A decision that calls of a tool may lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PossibleDecision {
    /// The decision.
    pub decision: Decision,
    /// The conditions on the arguments; `None` if it is the decision on calls that no condition is about.
    pub when: Option<String>,
    /// The reason, in words.
    pub because: String,
}

/// The permissions of a run: the tools that its agent declares, and the rules.
///
/// ```
/// use patter_core::{name::FullName, permission::{Decision, Permissions, Rule}};
/// use serde_json::json;
/// let write = FullName::parse("fs/writeFile").unwrap();
/// let permissions = Permissions::for_declared([write.clone()])
///     .with(Rule::parse("ask fs/*", "patter.toml").unwrap())
///     .with(Rule::parse(r#"deny fs/writeFile when path matches "/etc/*""#, "patter.toml").unwrap());
/// let decide = |path: &str| permissions.decide(&write, json!({"path": path}).as_object().unwrap()).decision;
/// assert_eq!(decide("notes.txt"), Decision::Ask);
/// assert_eq!(decide("/etc/passwd"), Decision::Deny);
/// assert_eq!(decide("/tmp/../etc/passwd"), Decision::Deny);
/// let other = FullName::parse("fs/readFile").unwrap();
/// assert_eq!(Permissions::default().decide(&other, &Default::default()).decision, Decision::Deny);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Permissions {
    declared: IndexSet<FullName>,
    rules: Vec<Rule>,
}

impl Permissions {
    /// Creates permissions that allow the tools an agent declares, subject to the rules added later.
    pub fn for_declared(tools: impl IntoIterator<Item = FullName>) -> Self {
        Self { declared: tools.into_iter().collect(), rules: Vec::new() }
    }

    /// Adds a rule.
    #[must_use]
    pub fn with(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Adds rules.
    #[must_use]
    pub fn with_all(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Returns the rules in the order in which they were added.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Decides on a call. The defaults of the arguments must have been filled in.
    ///
    /// A declared tool needs no rule to be allowed. If there are `allow` rules about it, one of them must match.
    pub fn decide(&self, tool: &FullName, arguments: &Map<String, Json>) -> ExplainedDecision<'_> {
        let relevant = self.rules.iter().filter(|rule| rule.matches_tool(tool));
        let matching = relevant.clone().filter(|rule| rule.matches_arguments(arguments));
        // Of equally strict rules, the first one is reported.
        let strictest = matching.reduce(|first, other| if other.decision > first.decision { other } else { first });
        if let Some(rule) = strictest {
            return ExplainedDecision { decision: rule.decision, reason: DecisionReason::Rule(rule) };
        }
        let mut allowing = relevant.filter(|rule| rule.decision == Decision::Allow);
        if self.declared.contains(tool) && allowing.next().is_none() {
            return ExplainedDecision { decision: Decision::Allow, reason: DecisionReason::Declared };
        }
        ExplainedDecision { decision: Decision::Deny, reason: DecisionReason::NoMatch }
    }

    /// Returns the decisions that calls of a tool may lead to, depending on their arguments, the most permissive first.
    ///
    /// Conditions are not compared with one another, so a decision may be listed that no arguments lead to. One that some
    /// arguments lead to is always listed.
    ///
    /// ```
    /// use patter_core::{name::FullName, permission::{Permissions, Rule}};
    /// let refund = FullName::parse("shop/refund").unwrap();
    /// let rule = Rule::parse("ask shop/refund when amount > 100", "patter.toml").unwrap();
    /// let possible = Permissions::for_declared([refund.clone()]).with(rule).possible_decisions(&refund);
    /// let shown: Vec<_> = possible.iter().map(|it| (it.decision.name(), it.when.as_deref())).collect();
    /// assert_eq!(shown, [("allow", None), ("ask", Some("amount > 100"))]);
    /// ```
    pub fn possible_decisions(&self, tool: &FullName) -> Vec<PossibleDecision> {
        let strictest = |first: &'_ Rule, other: &'_ Rule| other.decision > first.decision;
        let always = self.rules_for(tool).filter(|rule| rule.conditions.is_empty());
        let always = always.reduce(|first, other| if strictest(first, other) { other } else { first });
        let conditional: Vec<_> = self.rules_for(tool).filter(|rule| !rule.conditions.is_empty()).collect();
        let needs_match = self.rules_for(tool).any(|rule| rule.decision == Decision::Allow);
        let reason = match always {
            Some(rule) => (rule.decision, DecisionReason::Rule(rule)),
            None if self.declared.contains(tool) && !needs_match => (Decision::Allow, DecisionReason::Declared),
            None => (Decision::Deny, DecisionReason::NoMatch),
        };
        let mut possible = vec![PossibleDecision { decision: reason.0, when: None, because: reason.1.to_string() }];
        for rule in conditional {
            // A rule that always applies and is stricter decides instead.
            if always.is_some_and(|always| always.decision >= rule.decision) {
                continue;
            }
            let conditions: Vec<_> = rule.conditions.iter().map(ToString::to_string).collect();
            possible.push(PossibleDecision {
                decision: rule.decision,
                when: Some(conditions.join(" and ")),
                because: DecisionReason::Rule(rule).to_string(),
            });
        }
        possible.sort_by_key(|one| one.decision);
        possible
    }

    /// Returns the strictest `ask` or `deny` rule that applies to a call.
    pub fn restriction(&self, tool: &FullName, arguments: &Map<String, Json>) -> Option<&Rule> {
        let restricting = self.rules_for(tool).filter(|rule| rule.decision > Decision::Allow);
        let matching = restricting.filter(|rule| rule.matches_arguments(arguments));
        matching.reduce(|first, other| if other.decision > first.decision { other } else { first })
    }

    /// Returns whether some calls of a tool may be made, with or without an approval.
    ///
    /// ```
    /// use patter_core::{name::FullName, permission::{Permissions, Rule}};
    /// let write = FullName::parse("fs/writeFile").unwrap();
    /// let rule = |text: &str| Rule::parse(text, "patter.toml").unwrap();
    /// let asking = Permissions::default().with(rule("ask fs/*"));
    /// assert!(asking.clone().with(rule(r#"deny fs/writeFile when path matches "/etc/*""#)).may_permit(&write));
    /// assert!(!asking.with(rule("deny fs/writeFile")).may_permit(&write));
    /// assert!(!Permissions::default().may_permit(&write));
    /// ```
    pub fn may_permit(&self, tool: &FullName) -> bool {
        let is_denied = |rule: &Rule| rule.decision == Decision::Deny && rule.conditions.is_empty();
        let is_permitted = || self.rules_for(tool).any(|rule| rule.decision < Decision::Deny);
        !self.rules_for(tool).any(is_denied) && (self.declared.contains(tool) || is_permitted())
    }

    /// Iterates over the rules about a tool, regardless of their conditions.
    pub fn rules_for(&self, tool: &FullName) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(|rule| rule.matches_tool(tool))
    }
}

impl Decision {
    /// Returns the keyword of the decision.
    pub const fn name(self) -> &'static str {
        match self {
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        }
    }
}

impl fmt::Display for DecisionReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecisionReason::Rule(rule) => write!(f, "`{rule}` in {}", rule.origin),
            DecisionReason::Declared => f.write_str("the agent declares it"),
            DecisionReason::NoMatch => f.write_str("no rule allows it"),
        }
    }
}
